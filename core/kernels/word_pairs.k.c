/* word_pairs.k.c — kernels for word vectors: a step for all pairs of some rows; means of rows; GloVe. */
#include "core/kernels/kernels.h"
#include "core/kernels/sigmoid.h"

enum { N = v_n_f32, MOST = TN__WORD_PAIRS_IN * TN__WORD_PAIRS_OUT + 2 * 16 };

/* clang-format off: it takes TN__UNROLL for a function */

/* to[l] = the sum of the lanes of x[l], for a square of vectors, which is overwritten. Halves are added as soon as two
 * vectors fit into one: that takes half as many shuffles as transposing the square. */
TN__INLINE void sum_square(v_f32 *x, float *to)
{
    TN__UNROLL for (int i = 0; i < N; i += 4)
    {
        const v_f32 ab = v_unpacklo_f32(x[i], x[i + 1]) + v_unpackhi_f32(x[i], x[i + 1]);
        const v_f32 cd = v_unpacklo_f32(x[i + 2], x[i + 3]) + v_unpackhi_f32(x[i + 2], x[i + 3]);
        x[i] = (v_f32)v_unpacklo_f64((v_f64)ab, (v_f64)cd) + (v_f32)v_unpackhi_f64((v_f64)ab, (v_f64)cd);
    }
    v_transpose_lanes_f32(x);
    v_f32 sum = x[0];
    TN__UNROLL for (int i = 4; i < N; i += 4) sum += x[i];
    v_store_f32(to, sum);
}

/* dot[j * ins + i] for some rows of out at a time; pointers after the last repeat the last. */
TN__INLINE void some_dots(const int ins, const int some, const tn__word_pairs_step *s, int j0, float *dot)
{
    enum { SQUARES = (24 + N - 1) / N };
    v_f32        sum[SQUARES * N];
    const float *out[8];
    TN__UNROLL for (int j = 0; j < some; j++) out[j] = s->out[j0 + j < s->outs ? j0 + j : s->outs - 1];
    for (int i = 0; i < (ins * some + N - 1) / N * N; i++) sum[i] = v_zero_f32();
    for (int64_t k = 0; k < s->width; k += N) {
        v_f32 x[TN__WORD_PAIRS_IN];
        TN__UNROLL for (int i = 0; i < ins; i++) x[i] = v_load_f32(s->in[i] + k);
        TN__UNROLL for (int j = 0; j < some; j++)
        {
            const v_f32 o = v_load_f32(out[j] + k);
            TN__UNROLL for (int i = 0; i < ins; i++) sum[j * ins + i] = v_fma_f32(x[i], o, sum[j * ins + i]);
        }
    }
    for (int t = 0; t < ins * some; t += N) sum_square(sum + t, dot + j0 * ins + t);
}

/* Converts the dots to g. */
TN__INLINE void slopes(const int ins, const tn__word_pairs_step *s, float *g)
{
    const v_f32 rate = v_broadcast_f32(&s->rate);
    for (int t = ins * s->outs; t % N; t++) g[t] = 0; /* the rest of the last vector, which is also computed */
    for (int j = 0; s->shift && j < s->outs; j++)
        for (int i = 0; i < ins; i++) g[j * ins + i] -= s->shift[j];
    for (int t = 0; t < ins * s->outs; t += N) v_store_f32(g + t, v_zero_f32() - v_sigmoid(v_load_f32(g + t)) * rate);
    for (int j = 0; j < s->outs; j++)
        if (s->label[j] != 0)
            for (int i = 0; i < ins; i++) g[j * ins + i] += s->label[j] * s->rate;
}

/* `to` is s->in, or separate sums. */
TN__INLINE void update(const int ins, const tn__word_pairs_step *s, const float *g, float *const *to)
{
    for (int64_t k = 0; k < s->width; k += N) {
        v_f32 x[TN__WORD_PAIRS_IN], more[TN__WORD_PAIRS_IN];
        TN__UNROLL for (int i = 0; i < ins; i++) x[i] = v_load_f32(s->in[i] + k), more[i] = v_zero_f32();
        const float *slope = g;
        for (int j = 0; j < s->outs; j++, slope += ins) {
            const v_f32 o = v_load_f32(s->out[j] + k);
            v_f32       now = o;
            TN__UNROLL for (int i = 0; i < ins; i++)
            {
                const v_f32 by = v_broadcast_f32(slope + i);
                more[i] = v_fma_f32(by, o, more[i]);
                now = v_fma_f32(by, x[i], now);
            }
            v_store_f32(s->out[j] + k, now);
        }
        /* A row may occur twice: read again what its first occurrence added. */
        TN__UNROLL for (int i = 0; i < ins; i++) v_store_f32(to[i] + k, v_load_f32(to[i] + k) + more[i]);
    }
}

TN__INLINE void learn_some(const int ins, const tn__word_pairs_step *s)
{
    const int some = ins <= 4 ? 6 : 3;
    float     g[MOST + 6 * TN__WORD_PAIRS_IN];
    for (int j = 0; j < s->outs; j += some) some_dots(ins, some, s, j, g);
    slopes(ins, s, g);
    update(ins, s, g, s->in);
}

TN__INLINE void dots_some(const int ins, const tn__word_pairs_step *s, float *dot)
{
    const int some = ins <= 4 ? 6 : 3;
    float     g[MOST + 6 * TN__WORD_PAIRS_IN];
    for (int j = 0; j < s->outs; j += some) some_dots(ins, some, s, j, g);
    for (int j = 0, t = 0; j < s->outs; j++)
        for (int i = 0; i < ins; i++, t++) dot[t] = g[t];
}
/* clang-format on */

static void dots(const tn__word_pairs_step *s, float *dot)
{
    if (s->ins == 1) dots_some(1, s, dot);
    else dots_some(TN__WORD_PAIRS_IN, s, dot);
}

static void push(const tn__word_pairs_step *s, const float *slope, float *const *more)
{
    if (s->ins == 1) update(1, s, slope, more);
    else update(TN__WORD_PAIRS_IN, s, slope, more);
}

static void learn(const tn__word_pairs_step *s)
{
    switch (s->ins) {
    case 1: learn_some(1, s); return;
    case 2: learn_some(2, s); return;
    case 3: learn_some(3, s); return;
    case 4: learn_some(4, s); return;
    case 5: learn_some(5, s); return;
    case 6: learn_some(6, s); return;
    case 7: learn_some(7, s); return;
    default: learn_some(8, s); return;
    }
}

static void mean(int64_t n, const float *const *row, int64_t width, float by, float *to)
{
    const v_f32 scale = v_broadcast_f32(&by);
    for (int64_t k = 0; k < width; k += N) {
        v_f32 sum = v_zero_f32();
        for (int64_t i = 0; i < n; i++) sum += v_load_f32(row[i] + k);
        v_store_f32(to + k, sum * scale);
    }
}

static void spread(int64_t n, float *const *row, int64_t width, float by, const float *now, const float *before)
{
    const v_f32 scale = v_broadcast_f32(&by);
    for (int64_t k = 0; k < width; k += N) {
        const v_f32 more = (v_load_f32(now + k) - v_load_f32(before + k)) * scale;
        for (int64_t i = 0; i < n; i++) v_store_f32(row[i] + k, v_load_f32(row[i] + k) + more);
    }
}

static void subtract(int64_t n, float *x, const float *from)
{
    for (int64_t k = 0; k < n; k += N) v_store_f32(x + k, v_load_f32(x + k) - v_load_f32(from + k));
}

static void add(int64_t n, float *to, const float *x)
{
    for (int64_t k = 0; k < n; k += N) v_store_f32(to + k, v_load_f32(to + k) + v_load_f32(x + k));
}

/* ---- GloVe ------------------------------------------------------------------------------------------------------- */

/* Updates one element: x -= rate · slope / √squares, then squares += slope². */
static void learn_bias(float *x, float *squares, float slope)
{
    *x -= slope / sqrtf(*squares);
    *squares += slope * slope;
}

static v_f32 root(v_f32 x)
{
    for (int l = 0; l < N; l++) x[l] = sqrtf(x[l]);
    return x;
}

static float glove(const tn__glove_step *s)
{
    const int64_t bias = s->width;
    v_f32         sum = v_zero_f32();
    float         lanes[N], off = s->word[bias] + s->context[bias] - s->log_count;
    for (int64_t k = 0; k < s->width; k += N) sum = v_fma_f32(v_load_f32(s->word + k), v_load_f32(s->context + k), sum);
    v_store_f32(lanes, sum);
    for (int l = 0; l < N; l++) off += lanes[l];
    const float slope = s->weight * off;
    const v_f32 by = v_broadcast_f32(&slope);
    for (int64_t k = 0; k < s->width; k += N) {
        const v_f32 w = v_load_f32(s->word + k), c = v_load_f32(s->context + k), dw = by * c, dc = by * w;
        const v_f32 sw = v_load_f32(s->word_squares + k), sc = v_load_f32(s->context_squares + k);
        v_store_f32(s->word + k, w - dw / root(sw));
        v_store_f32(s->context + k, c - dc / root(sc));
        v_store_f32(s->word_squares + k, v_fma_f32(dw, dw, sw));
        v_store_f32(s->context_squares + k, v_fma_f32(dc, dc, sc));
    }
    learn_bias(s->word + bias, s->word_squares + bias, slope);
    learn_bias(s->context + bias, s->context_squares + bias, slope);
    return 0.5f * slope * off;
}

extern const tn__word_pairs_kernels TN__FOR_ISA(tn__word_pairs);
const tn__word_pairs_kernels TN__FOR_ISA(tn__word_pairs) = {learn, mean, spread, subtract, add, glove, dots, push};
