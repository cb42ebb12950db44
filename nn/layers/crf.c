/* crf.c — a linear-chain conditional random field.
 *
 *   score(y) = start[y₁] + Σ e[t, y_t] + Σ A[y_{t-1}, y_t] + end[y_T],   p(y) = exp score(y) / Z
 *   α₁ = start + e₁,   α_t[j] = log Σ_i exp(α_{t-1}[i] + A[i, j]) + e_t[j],   log Z = log Σ_j exp(α_T[j] + end[j])
 *
 * The recursion uses ops, so that the tape computes its gradients. The α of a sentence stays unchanged after its end.
 * Viterbi's algorithm replaces the sum with the maximum and needs no tape. */
#include "nn/base/nn_private.h"
#include "nn/crf.h"

#include <math.h>

static void crf_describe(const void *self, char *text, size_t size)
{
    snprintf(text, size, "num_tags=%lld", (long long)((const tn_crf *)self)->labels);
}
static const tn_class tn_crf_class = {
    .size = sizeof(tn_class), .name = "CRF", .bytes = sizeof(tn_crf), .describe = crf_describe};

tn_crf *tn_crf_create(tn_crf_config c)
{
    static const char *const who = "tn_crf_new";
    if (!tn__within(who, "labels", c.labels, 1, 1 << 15) || !tn__floating(who, c.dtype)) return NULL;
    tn_crf *m = tn_module_new(tn_crf);
    if (!m) return NULL;
    m->labels = c.labels;
    m->start = tn_param(m, "start_transitions", tn_uniform_of(c.dtype, TN_SHAPE(c.labels), -0.1, 0.1));
    m->end = tn_param(m, "end_transitions", tn_uniform_of(c.dtype, TN_SHAPE(c.labels), -0.1, 0.1));
    m->transitions = tn_param(m, "transitions", tn_uniform_of(c.dtype, TN_SHAPE(c.labels, c.labels), -0.1, 0.1));
    return tn_built(m);
}

/* ---- the steps with tags ----------------------------------------------------------------------------------------- */

/* The sentences with at least one tag, in the order of the batch, each without its skipped steps. */
typedef struct {
    int64_t    rows, width, steps; /* number of sentences; steps of the longest; steps of all sentences */
    tn_tensor *place, *mask; /* i64 [rows · width]: index in the flattened [B · T]; bool [rows, width]: after the end */
    tn_tensor *tag;          /* i64 [rows · width]: the tag; 0 after the end */
    tn_tensor *first, *last; /* i64 [rows]: the first and the last tag */
    tn_tensor *pair;         /* i64 [steps - rows]: previous tag · labels + tag */
    tn_tensor *score_at;     /* i64 [steps]: index of the tag's score in the flattened [rows · width · labels] */
} steps;

static int64_t counted(const tn_tensor *tags, int64_t row, int64_t t)
{
    int64_t n = 0;
    for (int64_t k = 0; k < t; k++) n += tn_get_i64(tags, row * t + k) >= 0;
    return n;
}

static bool tags_fit(const tn_crf *m, const tn_tensor *scores, const tn_tensor *tags)
{
    char a[192], b[192];
    if (!scores || !tags) return tn_raise_false(TN_EINVAL, "crf: the %s NULL", scores ? "tags are" : "scores are");
    if (tn_ndim(scores) != 3 || tn_ndim(tags) != 2 || tn_size(scores, 2) != m->labels ||
        tn_size(scores, 0) != tn_size(tags, 0) || tn_size(scores, 1) != tn_size(tags, 1))
        return tn_raise_false(TN_ESHAPE,
                              "crf: scores must be [batch, length, %lld] and tags [batch, length], got %s and %s",
                              (long long)m->labels, tn_shape_text(tn_shape_of(scores), a, sizeof a),
                              tn_shape_text(tn_shape_of(tags), b, sizeof b));
    if (tn_dtype_of(tags) != TN_I64 && tn_dtype_of(tags) != TN_I32)
        return tn_raise_false(TN_EDTYPE, "crf: the tags must be i64 or i32, not %s", tn_dtype_name(tn_dtype_of(tags)));
    for (int64_t i = 0; i < tn_numel(tags); i++)
        if (tn_get_i64(tags, i) >= m->labels)
            return tn_raise_false(TN_EINDEX, "crf: tag %lld at [%lld], but there are %lld labels",
                                  (long long)tn_get_i64(tags, i), (long long)i, (long long)m->labels);
    return true;
}

/* Creates and fills the tensors of s; its sizes are set. */
static void fill_steps(const tn_crf *m, const tn_tensor *tags, steps *s)
{
    const int64_t b = tn_size(tags, 0), t = tn_size(tags, 1), all = s->rows * s->width, n = m->labels;
    s->place = tn_zeros_of(TN_I64, TN_SHAPE(all)), s->tag = tn_zeros_of(TN_I64, TN_SHAPE(all));
    s->mask = tn_ones_of(TN_BOOL, TN_SHAPE(s->rows, s->width));
    s->first = tn_zeros_of(TN_I64, TN_SHAPE(s->rows)), s->last = tn_zeros_of(TN_I64, TN_SHAPE(s->rows));
    s->pair = tn_zeros_of(TN_I64, TN_SHAPE(s->steps - s->rows)), s->score_at = tn_zeros_of(TN_I64, TN_SHAPE(s->steps));
    int64_t *place = tn_data_mut(s->place), *tag = tn_data_mut(s->tag), *first = tn_data_mut(s->first),
            *last = tn_data_mut(s->last), *pair = tn_data_mut(s->pair), *score_at = tn_data_mut(s->score_at);
    uint8_t *mask = tn_data_mut(s->mask);
    int64_t  row = 0, pairs = 0, scores_set = 0;
    for (int64_t i = 0; i < b && tn_error() == TN_OK; i++) {
        int64_t at = 0;
        for (int64_t k = 0; k < t; k++) {
            const int64_t y = tn_get_i64(tags, i * t + k), to = row * s->width + at;
            if (y < 0) continue;
            place[to] = i * t + k, tag[to] = y, mask[to] = 0, score_at[scores_set++] = to * n + y;
            if (at) pair[pairs++] = last[row] * n + y;
            else first[row] = y;
            last[row] = y, at++;
        }
        row += at > 0;
    }
}

/* ---- the loss ---------------------------------------------------------------------------------------------------- */

static tn_tensor *sum_at(tn_tensor *x, tn_tensor *index) { return tn_sum(tn_index_select(x, 0, index)); }

static tn_tensor *path_score(tn_crf *m, tn_tensor *e, const steps *s)
{
    tn_tensor *y = tn_add(sum_at(m->start, s->first), sum_at(m->end, s->last));
    y = tn_add(y, sum_at(tn_reshape(e, TN_SHAPE(-1)), s->score_at));
    return s->steps > s->rows ? tn_add(y, sum_at(tn_reshape(m->transitions, TN_SHAPE(-1)), s->pair)) : y;
}

static tn_tensor *log_partition(tn_crf *m, tn_tensor *e, const steps *s)
{
    tn_tensor *alpha = tn_add(tn_select(e, 1, 0), m->start);
    for (int64_t t = 1; t < s->width && tn_error() == TN_OK; t++) {
        tn_tensor *next = tn_add(tn_unsqueeze(alpha, 2), m->transitions); /* [rows, from, to] */
        next = tn_add(tn_logsumexp(next, .dims = TN_DIMS(1)), tn_select(e, 1, t));
        alpha = tn_where(tn_unsqueeze(tn_select(s->mask, 1, t), 1), alpha, next);
    }
    return tn_sum(tn_logsumexp(tn_add(alpha, m->end), .dims = TN_DIMS(1)));
}

tn_tensor *tn_crf_loss(tn_crf *m, tn_tensor *scores, tn_tensor *tags)
{
    if (!tn_ready(m)) return NULL;
    const tn_frame f = tn_enter(m);
    steps          s = {.rows = 0};
    tn_tensor     *y = NULL;
    if (tags_fit(m, scores, tags)) {
        for (int64_t i = 0; i < tn_size(tags, 0); i++) {
            const int64_t n = counted(tags, i, tn_size(tags, 1));
            s.rows += n > 0, s.steps += n, s.width = tn__max_i64(s.width, n);
        }
        if (s.steps) {
            fill_steps(m, tags, &s);
            tn_tensor *e = tn_index_select(tn_reshape(scores, TN_SHAPE(-1, m->labels)), 0, s.place);
            e = tn_reshape(e, TN_SHAPE(s.rows, s.width, m->labels));
            y = tn_div_scalar(tn_sub(log_partition(m, e, &s), path_score(m, e, &s)), (double)s.steps);
        } else y = tn_sum(tn_narrow(scores, 1, 0, 0)); /* no tags: 0, with a gradient of zeros */
    }
    return tn_leave(f, y);
}

/* ---- the best tags ----------------------------------------------------------------------------------------------- */

/* Sets from[t · n + j] to the tag before tag j at step t on the best path to it, and now[j] to the score of the best
 * path that ends in tag j. */
static void forward_best(tn_crf *m, const tn_tensor *scores, int64_t t, double *now, double *next, int32_t *from)
{
    const int64_t    n = m->labels;
    const tn_tensor *start = tn_clone(m->start), *pair = tn_clone(m->transitions); /* ops: see tn_functional_begin */
    for (int64_t j = 0; j < n; j++) now[j] = tn_get(start, j) + tn_get(scores, j);
    for (int64_t k = 1; k < t; k++) {
        for (int64_t j = 0; j < n; j++) {
            int64_t best = 0;
            for (int64_t i = 1; i < n; i++)
                if (now[i] + tn_get(pair, i * n + j) > now[best] + tn_get(pair, best * n + j)) best = i;
            from[k * n + j] = (int32_t)best;
            next[j] = now[best] + tn_get(pair, best * n + j) + tn_get(scores, k * n + j);
        }
        for (int64_t j = 0; j < n; j++) now[j] = next[j];
    }
}

double tn_crf_best(tn_crf *m, const tn_tensor *scores, int64_t *to)
{
    char text[192];
    if (!tn_ready(m)) return NAN;
    if (!scores || tn_ndim(scores) != 2 || tn_size(scores, 1) != m->labels) {
        tn_raise(TN_ESHAPE, "crf: scores of one sentence must be [length, %lld], got %s", (long long)m->labels,
                 scores ? tn_shape_text(tn_shape_of(scores), text, sizeof text) : "NULL");
        return NAN;
    }
    if (!to) return tn_raise(TN_EINVAL, "crf: to is NULL; it must have room for one tag per step of the scores"), NAN;
    const int64_t t = tn_size(scores, 0), n = m->labels;
    int64_t       cells, bytes;
    if (!t) return 0;
    if (!tn__mul_i64(t, n, &cells) || !tn__mul_i64(cells, 4, &bytes)) bytes = INT64_MAX;
    const size_t rows = (size_t)(2 * n) * sizeof(double);
    double      *now = tn_mem_get(rows);
    int32_t     *from = now ? tn_mem_get((size_t)bytes) : NULL;
    double       best = NAN;
    if (from) {
        const tn_scope s = tn_no_grad_begin();
        forward_best(m, scores, t, now, now + n, from);
        const tn_tensor *end = tn_clone(m->end);
        for (int64_t j = 0; j < n; j++) now[j] += tn_get(end, j);
        tn_scope_end(s);
        int64_t last = 0;
        for (int64_t j = 1; j < n; j++)
            if (now[j] > now[last]) last = j;
        best = now[last];
        for (int64_t k = t - 1; k >= 0; k--) to[k] = last, last = k ? from[k * n + last] : 0;
        tn_mem_put(from, (size_t)bytes);
    }
    if (now) tn_mem_put(now, rows);
    if (from && isnan(best))
        tn_raise(TN_ENUMERIC, "crf: the best path has the score NaN; check the scores for NaN and Inf");
    return best;
}
