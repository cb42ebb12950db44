/* sweep.c — one pass over the elements of many tensors, distributed over the threads as if they were one list. Also the
 * passes that compute the norm of the gradients. */
#ifndef TN__REAL
#include "optim/optim_private.h"

enum { CHUNK = 16384, BLOCK = 512, LANES = TN__SUM_LANES };

/* ---- allocation -------------------------------------------------------------------------------------------------- */

static size_t piece_bytes(const tn__sweep *w) { return (size_t)w->room * TN__SUMS * sizeof *w->piece; }

bool tn__sweep_init(tn__sweep *w, int64_t segments, int64_t elements)
{
    *w = (tn__sweep){.most = segments, .room = elements / CHUNK + 1 + segments};
    if ((w->segment = tn_mem_get((size_t)segments * sizeof *w->segment)) &&
        (w->from = tn_mem_get((size_t)segments * sizeof *w->from)) && (w->piece = tn_mem_get(piece_bytes(w))))
        return true;
    tn__sweep_free(w);
    return false;
}

bool tn__sweep_reserve(tn__sweep *w, int64_t segments, int64_t elements)
{
    tn__sweep more;
    if (segments <= w->most && elements / CHUNK + 1 + segments <= w->room) return true;
    if (!tn__sweep_init(&more, 2 * segments, elements)) return false;
    tn__sweep_free(w);
    *w = more;
    return true;
}

void tn__sweep_free(tn__sweep *w)
{
    tn_mem_put(w->segment, (size_t)w->most * sizeof *w->segment);
    tn_mem_put(w->from, (size_t)w->most * sizeof *w->from);
    tn_mem_put(w->piece, piece_bytes(w));
    *w = (tn__sweep){0};
}

void tn__sweep_clear(tn__sweep *w) { w->count = w->total = 0; }

tn__segment *tn__sweep_add(tn__sweep *w, tn_dtype dt, int64_t n, void *p, void *g)
{
    tn__segment *s = w->segment + w->count;
    *s = (tn__segment){.n = n, .dtype = dt, .p = p, .g = g};
    w->from[w->count++] = w->total;
    w->total += n;
    return s;
}

/* ---- running ----------------------------------------------------------------------------------------------------- */

/* bf16: converts blocks to f32 and back. */
static void narrow_piece(const tn__segment *s, const tn__sweep_pass *k, int64_t at, int64_t n, double sum[TN__SUMS])
{
    _Alignas(64) float p[BLOCK] = {0}, g[BLOCK] = {0};
    for (int64_t done = 0; done < n;) {
        const int64_t m = n - done < BLOCK ? n - done : BLOCK;
        uint16_t     *sp = s->p ? (uint16_t *)s->p + at + done : NULL, *sg = s->g ? (uint16_t *)s->g + at + done : NULL;
        for (int64_t i = 0; sp && i < m; i++) p[i] = tn__bf16_to_f32(sp[i]);
        for (int64_t i = 0; sg && i < m; i++) g[i] = tn__bf16_to_f32(sg[i]);
        k->f32(s, at + done, m, sp ? p : NULL, sg ? g : NULL, sum);
        for (int64_t i = 0; sp && k->flags & TN__WRITES_P && i < m; i++) sp[i] = tn__f32_to_bf16(p[i]);
        for (int64_t i = 0; sg && k->flags & TN__WRITES_G && i < m; i++) sg[i] = tn__f32_to_bf16(g[i]);
        done += m;
    }
}

static void run_piece(const tn__segment *s, const tn__sweep_pass *k, int64_t at, int64_t n, double sum[TN__SUMS])
{
    if (s->dtype == TN_BF16) {
        narrow_piece(s, k, at, n, sum);
        return;
    }
    const int64_t size = s->dtype == TN_F64 ? (int64_t)sizeof(double) : (int64_t)sizeof(float);
    (s->dtype == TN_F64 ? k->f64 : k->f32)(s, at, n, s->p ? (char *)s->p + at * size : NULL,
                                           s->g ? (char *)s->g + at * size : NULL, sum);
}

/* The index of the segment with element `at` of the list. */
static int64_t segment_at(const tn__sweep *w, int64_t at)
{
    int64_t low = 0, high = w->count;
    while (high - low > 1) {
        const int64_t middle = low + (high - low) / 2;
        if (w->from[middle] <= at) low = middle;
        else high = middle;
    }
    return low;
}

typedef struct {
    const tn__sweep *w;
    tn__sweep_pass   k;
} job;

/* From one piece to the next, the chunk index, the segment index or both increase by one, so their sum is the index of
 * the piece. Moments of a weight without gradients decay to denormals, on which arithmetic is about 100 times slower;
 * therefore denormals are treated as 0 here. */
static void run_chunks(int64_t from, int64_t to, void *user)
{
    const job       *j = user;
    const tn__sweep *w = j->w;
    const uint64_t   before = tn__denormals_off();
    for (int64_t c = from; c < to; c++) {
        int64_t       at = c * CHUNK;
        const int64_t end = w->total - at < CHUNK ? w->total : at + CHUNK;
        for (int64_t s = segment_at(w, at); at < end; s++) {
            const tn__segment *segment = w->segment + s;
            const int64_t local = at - w->from[s], n = segment->n - local < end - at ? segment->n - local : end - at;
            double        sum[TN__SUMS] = {0};
            run_piece(segment, &j->k, local, n, sum);
            memcpy(w->piece + (c + s) * TN__SUMS, sum, sizeof sum);
            at += n;
        }
    }
    tn__denormals_restore(before);
}

static double larger(double a, double b) { return a >= b || a != a ? a : b; } /* NaN if either is NaN */

void tn__sweep_run(tn__sweep *w, tn__sweep_pass k)
{
    if (!w->total) return;
    job j = {w, k};
    tn_parallel_for((w->total - 1) / CHUNK + 1, 1, run_chunks, &j);
    for (int64_t s = 0; s < w->count; s++) {
        tn__segment *segment = w->segment + s;
        for (int i = 0; i < TN__SUMS; i++) {
            double sum = 0;
            for (int64_t c = w->from[s] / CHUNK; c <= (w->from[s] + segment->n - 1) / CHUNK; c++) {
                const double piece = w->piece[(c + s) * TN__SUMS + i];
                sum = k.flags & TN__LARGEST ? larger(sum, piece) : sum + piece;
            }
            segment->sum[i] = sum;
        }
    }
}

/* ---- norms ------------------------------------------------------------------------------------------------------- */

#define TN__TEMPLATE "optim/sweep.c"
#include "core/real.h"

/* The sum of squares of all gradients times unit, or their largest magnitude. */
static double sums(tn__sweep *w, double unit, bool by_largest)
{
    double all = 0;
    for (int64_t s = 0; s < w->count; s++) w->segment[s].number.scale = unit;
    tn__sweep_run(w, by_largest ? TN__PASS(largest, TN__LARGEST) : TN__PASS(squares, TN__READS));
    for (int64_t s = 0; s < w->count; s++)
        all = by_largest ? larger(all, w->segment[s].sum[0]) : all + w->segment[s].sum[0];
    return all;
}

double tn__sweep_norm(tn__sweep *w, double scale, bool by_largest, bool squared, int64_t *bad)
{
    double unit = 1, all = sums(w, unit, by_largest);
    bool   f64 = false;
    for (int64_t s = 0; s < w->count; s++) f64 |= w->segment[s].dtype == TN_F64;
    if (!by_largest && f64 && isinf(all))
        unit = 0x1p-600, all = sums(w, unit, false); /* the sum of squares overflowed */
    if (bad) *bad = -1;
    for (int64_t s = 0; bad && s < w->count && *bad < 0; s++) {
        const tn__segment *segment = w->segment + s;
        const double       own = (by_largest ? segment->sum[0] : sqrt(segment->sum[0])) / unit * fabs(scale);
        if (!isfinite(own) || (squared && own > (segment->dtype == TN_F64 ? 1.3407807e154 : 1.8446742e19))) *bad = s;
    }
    return (by_largest ? all : sqrt(all)) / unit * fabs(scale);
}

const char *tn__sweep_problem(const tn__segment *bad)
{
    if (!isfinite(bad->sum[0])) return "has a NaN or Inf";
    return bad->dtype == TN_F64 ? "is too large: its square overflows f64" : "is too large: its square overflows f32";
}

bool tn__clip_check(const char *who, const tn_clip *c)
{
    if (!(c->norm >= 0) || !(c->value >= 0)) {
        const bool norm = !(c->norm >= 0);
        tn_raise(TN_EINVAL, "%s: .clip.%s is %s, but must not be negative; 0 disables clipping", who,
                 norm ? "norm" : "value", tn__format_number(norm ? c->norm : c->value));
        return false;
    }
    if (c->largest && !(c->norm > 0))
        return tn_raise(TN_EINVAL, "%s: .clip.largest is set but has no effect because .clip.norm is 0", who), false;
    if (c->norm > 0 && c->value > 0)
        return tn_raise(TN_EINVAL, "%s: .clip.norm and .clip.value are both set; choose one", who), false;
    return true;
}

/* clang-format off */
#else /* ==================================================================================== per dtype */
/* clang-format on */

/* Sums in lanes, so that compilers can use vectors and the order is fixed. */
static void TN__(squares)(const tn__segment *s, int64_t at, int64_t n, void *p, void *g, double sum[TN__SUMS])
{
    (void)at, (void)p;
    const TN__REAL *restrict x = g;
    const double unit = s->number.scale;
    double       lane[LANES] = {0};
    int64_t      i = 0;
    for (; i + LANES <= n; i += LANES)
        for (int k = 0; k < LANES; k++) lane[k] += unit * (double)x[i + k] * (unit * (double)x[i + k]);
    for (int k = 0; i + k < n; k++) lane[k] += unit * (double)x[i + k] * (unit * (double)x[i + k]);
    sum[0] += tn__lanes_in_order(lane);
}

static void TN__(largest)(const tn__segment *s, int64_t at, int64_t n, void *p, void *g, double sum[TN__SUMS])
{
    (void)s, (void)at, (void)p;
    const TN__REAL *restrict x = g;
    for (int64_t i = 0; i < n; i++) sum[0] = larger(sum[0], fabs((double)x[i]));
}
#endif
