/* rows_case.h — the checks of test_rows.c for one dtype: included by core/real.h, once for f32 and once for f64. */

/* The results of all row kernels for a row of n elements. */
typedef struct {
    TN__REAL scaled[MOST], soft[MOST], minus[MOST], log_soft[MOST], y[MOST], rms[MOST], gx[MOST], gw[MOST], gb[MOST];
    TN__REAL dropped[3][MOST], stat[3], rms_stat[3];
} TN__(results);

static bool TN__(near)(TN__REAL got, double want, double size)
{
    return fabs((double)got - want) <= (sizeof(TN__REAL) == 4 ? 1e-6 : 1e-14) * (fabs(want) + size);
}

static void TN__(compute)(const tn__kernel_table *t, int64_t n, bool front, const TN__REAL *in, TN__(results) * r)
{
    const size_t size = sizeof(TN__REAL), bytes = (size_t)n * size;
    TN__REAL    *at[ROOMS];
    for (int p = 0; p < ROOMS; p++) {
        at[p] = room(p, n, size, front);
        if (n) memcpy(at[p], in + p * MOST, bytes);
    }
    memset(r, 0, sizeof *r);
#define TAKE(from, to)                  \
    if (n) memcpy(to, at[from], bytes); \
    for (int p = 0; p < ROOMS; p++) expect(untouched(p, n, size, front), #to ": room %d of %d", p, (int)n)
    t->TN__(rows)->scale(n, at[Y], at[X], (TN__REAL)0.75);
    TAKE(Y, r->scaled);
    t->TN__(rows)->softmax_back(n, at[Y], at[X], at[GY]);
    TAKE(Y, r->soft);
    t->TN__(rows)->log_softmax(n, at[Y], at[X], (TN__REAL)1.5, 0.3);
    TAKE(Y, r->minus);
    if (n) memcpy(at[Y], in + B * MOST, bytes);
    t->TN__(rows)->log_softmax_back(n, at[Y], at[GY]);
    TAKE(Y, r->log_soft);
    const TN__(tn__norm_row) rms = {at[Y], r->rms_stat, at[X], NULL, NULL, 0.01, true, false};
    t->TN__(rows)->norm(n, &rms);
    TAKE(Y, r->rms);
    const TN__(tn__norm_row) norm = {at[Y], r->stat, at[X], at[W], at[B], 0.01, false, front};
    t->TN__(rows)->norm(n, &norm);
    TAKE(Y, r->y);
    const TN__(tn__norm_back_row) back = {at[GX], at[GW], at[GB], at[GY], at[X], at[W], r->stat, false, front};
    t->TN__(rows)->norm_back(n, &back);
    TAKE(GX, r->gx);
    TAKE(GW, r->gw);
    TAKE(GB, r->gb);
    for (int64_t first = 0; first < 3; first++) {
        t->TN__(rows)->dropout(n, at[Y], at[X], first == 2 ? at[B] : NULL, &drop, first * 5, first ? at[GX] : NULL,
                               first == 2 ? at[GY] : NULL);
        TAKE(Y, r->dropped[first]);
        if (first) expect(!n || !memcmp(at[GX], at[Y], bytes), "streamed from %d: %d", (int)first, (int)n);
        if (first == 2) expect(!n || !memcmp(at[GY], at[X], bytes), "x streamed: %d", (int)n);
    }
#undef TAKE
}

/* Compares the results with the formulas in f64. */
static void TN__(compare)(int64_t n, const TN__REAL *in, const TN__(results) * r)
{
    const TN__REAL *x = in, *gy = in + GY * MOST, *w = in + W * MOST, *b = in + B * MOST;
    double          mean = 0, var = 0, square = 0, dot = 0, sum = 0, g_mean = 0, g_along = 0;
    for (int64_t i = 0; i < n; i++) mean += (double)x[i] / (double)n, dot += (double)x[i] * (double)gy[i];
    for (int64_t i = 0; i < n; i++) {
        var += ((double)x[i] - mean) * ((double)x[i] - mean) / (double)n;
        square += (double)x[i] * (double)x[i] / (double)n, sum += (double)gy[i];
    }
    const double s = 1 / sqrt(var + 0.01);
    for (int64_t i = 0; i < n; i++) {
        const double g = (double)gy[i] * (double)w[i];
        g_mean += g / (double)n, g_along += g * ((double)x[i] - mean) * s / (double)n;
    }
    for (int64_t i = 0; i < n; i++) {
        const double   v = (double)x[i], g = (double)gy[i], hat = (v - mean) * s;
        const double   want[] = {v * 0.75,
                                 v * (g - dot),
                                 v - 1.5 - 0.3,
                                 g - (double)b[i] * sum,
                                 v / sqrt(square + 0.01),
                                 hat * (double)w[i] + (double)b[i],
                                 s * (g * (double)w[i] - g_mean - hat * g_along),
                                 (double)in[GW * MOST + i] + g * hat,
                                 (double)in[GB * MOST + i] + g};
        const TN__REAL got[] = {r->scaled[i], r->soft[i], r->minus[i], r->log_soft[i], r->rms[i],
                                r->y[i],      r->gx[i],   r->gw[i],    r->gb[i]};
        for (int k = 0; k < 9; k++)
            expect(TN__(near)(got[k], want[k], k == 1 || k == 3 ? 50 : 4), "result %d, element %d of %d: %g, not %g", k,
                   (int)i, (int)n, (double)got[k], want[k]);
        for (int64_t first = 0; first < 3; first++) {
            const int64_t e = first * 5 + i; /* its bits: half of a word of two blocks */
            uint32_t      word[4];
            tn__philox(drop.seed, drop.position + (uint64_t)(e / 16 * 2 + e % 8 / 4), word);
            const uint32_t half = e % 16 < 8 ? word[e % 4] & 0xffff : word[e % 4] >> 16;
            const TN__REAL kept = half > drop.limit >> 16 ? x[i] * (TN__REAL)drop.scale : 0;
            const TN__REAL all = first == 2 ? kept + b[i] : kept;
            expect(r->dropped[first][i] == all, "dropout from %d: element %d of %d", (int)first, (int)i, (int)n);
        }
    }
}

static void TN__(rows)(void)
{
    static TN__REAL in[ROOMS * MOST];
    static TN__(results) first, other;
    for (int i = 0; i < ROOMS * MOST; i++) in[i] = (TN__REAL)sin(i * 1.3 + 0.1 * (i % 7)) + (TN__REAL)(i < MOST);
    for (int64_t n = 0; n <= MOST; n++) {
        for (int isa = 0; isa < 2 * ISAS; isa++) {
            const tn__kernel_table *t = tn__kernels_of(isas[isa / 2]);
            if (!t) continue;
            TN__(compute)(t, n, isa % 2, in, isa ? &other : &first);
            if (isa == 0) TN__(compare)(n, in, &first);
            else if (n) expect(!memcmp(&first, &other, sizeof first), "%d elements on %s", (int)n, isas[isa / 2]);
        }
    }
}
