/* answers.c — runs a tuned model over features, and finds answers: over all windows of a text, the pairs of a
 * first and a last token whose logits have the largest sum. */
#include "models/heads/heads_private.h"

#include <math.h>
#include <string.h>

/* Sets all modules to eval mode, or, with the `was` of that call, to the modes they had; also after an error. */
static void set_modes(tn_tuned *m, bool *was, bool back)
{
    int64_t i = 0;
    for (tn_each e = tn_module_each(m, TN_EACH_MODULE); tn_next(&e); i++) {
        if (!back) was[i] = e.module->training;
        e.module->training = back && was[i];
    }
}

tn_status tn_tuned_each(tn_tuned *m, tn_features *f, tn_tuned_listener take, void *user)
{
    if (tn_error() != TN_OK || !tn_ready(m)) return tn_error();
    if (!f || !take) return tn_raise(TN_EINVAL, "tn_tuned_each: the features or the listener is NULL");
    size_t          modules = 0;
    const tn_source s = tn_features_source(f);
    for (tn_each e = tn_module_each(m, TN_EACH_MODULE); tn_next(&e);) modules++;
    bool *was = tn__mem_get(modules);
    if (!was) return tn_error();
    set_modes(m, was, false);
    s.begin(s.user, NULL);
    for (bool more = true; more && tn_error() == TN_OK;) {
        const tn_scope scope = tn_no_grad_begin();
        tn_batch       b;
        if ((more = tn_source_next(&s, &b))) {
            tn_tensor *y = tn_contiguous(tn_to(tn__tuned_logits(m, &b, true), TN_F32)), *row = tn_batch_get(&b, "row");
            const bool pieces = y && tn_ndim(y) == 3;
            const int64_t t = pieces ? tn_size(y, 1) : 1, n = y ? tn_size(y, -1) : 0;
            const float  *at = y ? tn_data(y) : NULL;
            for (int64_t i = 0; at && i < b.rows; i++, at += t * n) take(user, tn_get_i64(row, i), t, n, at);
        }
        tn_scope_end(scope);
    }
    set_modes(m, was, true);
    tn__mem_put(was, modules);
    return tn_error();
}

tn_status tn_tuned_tags(tn_tuned *m, tn_features *f, int64_t i, const float *scores, int64_t *to)
{
    if (tn_error() != TN_OK || !tn_ready(m)) return tn_error();
    const tn_feature x = tn_features_at(f, i);
    if (x.example < 0 || !scores || !to)
        return tn_raise(TN_EINVAL, "tn_tuned_tags: feature %lld does not exist, or an argument is NULL", (long long)i);
    const int64_t  n = m->config.n;
    const tn_scope s = tn_no_grad_begin();
    tn_tensor     *y = tn_empty(TN_SHAPE(x.pieces, n)), *tags = tn_empty_of(TN_I64, TN_SHAPE(x.pieces));
    float         *row = y ? tn_data_mut(y) : NULL;
    int64_t       *tag = tags ? tn_data_mut(tags) : NULL, words = 0;
    for (int64_t k = 0; row && tag && k < x.pieces; k++) /* only the first token of each word */
        if (x.word[k] >= 0) memcpy(row + n * words++, scores + k * n, (size_t)n * sizeof *row);
    if (row && tag && m->crf) tn_crf_best(m->crf, tn_narrow(y, 0, 0, words), tag);
    for (int64_t k = 0; row && tag && !m->crf && k < words; k++) {
        tag[k] = 0;
        for (int64_t l = 1; l < n; l++)
            if (row[k * n + l] > row[k * n + tag[k]]) tag[k] = l;
    }
    for (int64_t k = 0, w = 0; row && tag && tn_error() == TN_OK && k < x.pieces; k++)
        if (x.word[k] >= 0) to[x.word[k]] = tag[w++];
    tn_scope_end(s);
    return tn_error();
}

/* ---- answers ----------------------------------------------------------------------------------------------------- */

/* Keeps the best `most`, best first; of equal ones the earlier. An answer found in two windows is kept once. */
static int64_t insert(tn_answer *to, int64_t n, int64_t most, tn_answer a)
{
    for (int64_t i = 0; i < n; i++) {
        if (to[i].start != a.start || to[i].end != a.end) continue;
        if (to[i].score >= a.score) return n;
        memmove(to + i, to + i + 1, (size_t)(n - i - 1) * sizeof *to);
        n--;
        break;
    }
    int64_t at = n;
    while (at > 0 && to[at - 1].score < a.score) at--;
    if (at == most) return n;
    if (n == most) n--;
    memmove(to + at + 1, to + at, (size_t)(n - at) * sizeof *to);
    to[at] = a;
    return n + 1;
}

static int64_t search_window(const tn_feature *x, const float *scores, int64_t longest, int64_t most, tn_answer *to,
                             int64_t n)
{
    for (int64_t s = 0; s < x->pieces; s++) {
        if (!x->end[s]) continue;
        for (int64_t e = s; e < x->pieces && e - s < longest && x->end[e]; e++) {
            const double sum = (double)scores[2 * s] + (double)scores[2 * e + 1];
            if (n < most || sum > to[n - 1].score)
                n = insert(to, n, most, (tn_answer){.start = x->start[s], .end = x->end[e], .score = sum});
        }
    }
    return n;
}

int64_t tn_answers_best(tn_features *f, int64_t first, int64_t n, const float *const *scores, int64_t longest,
                        int64_t most, tn_answer *to)
{
    static const char *const who = "tn_answers_best";
    double                   none = INFINITY, all;
    int64_t                  found = 0;
    if (tn_error() != TN_OK || !tn__within(who, "most", most, 1, 1 << 20) ||
        !tn__within(who, "longest", longest, 1, 1 << 20))
        return -1;
    if (!f || !scores || !to || first < 0 || n < 1 || n > tn_features_count(f) - first)
        return tn_raise(TN_EINVAL, "%s: the features from %lld do not exist, or an argument is NULL", who,
                        (long long)first),
               -1;
    for (int64_t i = 0; i < n; i++) {
        const tn_feature x = tn_features_at(f, first + i);
        if (tn_error() != TN_OK) return -1;
        none = fmin(none, (double)scores[i][0] + (double)scores[i][1]);
        found = search_window(&x, scores[i], longest, most, to, found);
    }
    /* Softmax over the found answers and "no answer". */
    const double top = found && to[0].score > none ? to[0].score : none;
    all = tn__libm_exp(none - top);
    for (int64_t i = 0; i < found; i++) all += tn__libm_exp(to[i].score - top);
    for (int64_t i = 0; i < found; i++) to[i].probability = tn__libm_exp(to[i].score - top) / all, to[i].none = none;
    return found;
}
