/* run.c — tn_generate: the rows of one decoding, or with .lengths the texts of a tn_live, which is as fast. */
#include "core/base/toolbox.h"
#include "models/generate/generation.h"
#include "models/generate/lm_private.h"
#include "models/live.h"

/* ---- prompts of one length --------------------------------------------------------------------------------------- */

static tn_generated of_one_length(tn_generate_args a)
{
    tn_generated    r = {NULL, NULL, NULL};
    const tn_scope  outer = tn_no_grad_begin();
    tn__generation *s = tn__generation_begin(a);
    tn_tensor      *tokens = s ? tn_keep(tn_to(a.prompt, TN_I64)) : NULL;
    while (tokens && tn_error() == TN_OK) {
        const tn_scope inner = tn_scope_begin();
        tn_tensor     *next = NULL;
        next = tn__generation_next(s, tn__generation_scores(s, tokens), &next) && next ? tn_keep(next) : NULL;
        tn_drop(tokens);
        tokens = next;
        tn_scope_end(inner);
    }
    tn_drop(tokens);
    if (s && tn_error() == TN_OK) r = tn__generation_result(s);
    if (tn_error() != TN_OK) r = (tn_generated){NULL, NULL, NULL};
    else if (a.sample) tn_current_generator()->position = s->g.position + tn__generation_draws(s);
    tn__generation_free(s);
    tn_scope_return_list(outer, 3, (tn_tensor *[]){r.tokens, r.lengths, r.scores});
    return r;
}

/* ---- prompts of several lengths ---------------------------------------------------------------------------------- */

/* What the caller's functions need to see their row, which is row 0 of its text. */
typedef struct {
    const tn_generate_args *a;
    int64_t                 row, text;
} row;

static bool each(int64_t only, int64_t word, void *user)
{
    const row *r = user;
    (void)only;
    return r->a->each(r->row, word, r->a->user);
}

static tn_status adjust(const tn_next_token *next, void *user)
{
    const row    *r = user;
    tn_next_token of = *next;
    of.row = r->row;
    return r->a->adjust(&of, r->a->user);
}

/* The model of the decoding; NULL: raised, the options are not those of prompts of several lengths. */
static void *model_of(const tn_generate_args *a)
{
    const tn__cached *d = tn__as_cached(a->from);
    const int64_t     n = a->prompt && tn_ndim(a->prompt) == 2 ? tn_size(a->prompt, 0) : 0;
    char              shape[192];
    if (!d || d->step != tn__lm_step || d->sinks || d->read || a->read || a->before || a->beams != 1)
        return tn_raise_null(
            TN_EUNSUPPORTED,
            "tn_generate: .lengths needs a new decoding of tn_lm_decoding for a model with a key/value "
            "cache, one beam, and neither .read nor .before");
    if (n < 1 || n > d->base.rows)
        return tn_raise_null(
            TN_ESHAPE, "tn_generate: the prompt must be [batch, length] with at most %lld rows, got %s",
            (long long)d->base.rows, a->prompt ? tn_shape_text(tn_shape_of(a->prompt), shape, sizeof shape) : "NULL");
    if (tn_dtype_of(a->lengths) != TN_I64 || tn_ndim(a->lengths) != 1 || tn_numel(a->lengths) != n)
        return tn_raise_null(TN_ESHAPE, "tn_generate: .lengths must be i64 [%lld], one number per prompt, got %s %s",
                             (long long)n, tn_dtype_name(tn_dtype_of(a->lengths)),
                             tn_shape_text(tn_shape_of(a->lengths), shape, sizeof shape));
    for (int64_t b = 0; b < n; b++)
        if (tn_get_i64(a->lengths, b) < 1 || tn_get_i64(a->lengths, b) > tn_size(a->prompt, 1))
            return tn_raise_null(TN_EINVAL, "tn_generate: .lengths is %lld for prompt %lld, but must be from 1 to %lld",
                                 (long long)tn_get_i64(a->lengths, b), (long long)b, (long long)tn_size(a->prompt, 1));
    return d->model;
}

/* Copies the one text of `from` to row b. */
static void put(tn_generated to, int64_t b, tn_generated from)
{
    const int64_t n = tn_size(from.tokens, 2);
    if (n) tn_copy_from(tn_narrow(tn_narrow(to.tokens, 0, b, 1), 2, 0, n), from.tokens);
    tn_copy_from(tn_narrow(to.lengths, 0, b, 1), from.lengths);
    tn_copy_from(tn_narrow(to.scores, 0, b, 1), from.scores);
}

/* The texts of l, one for each of n rows. */
static tn_generated collect(tn_live *l, int64_t n, const row *r)
{
    tn_generated *one = tn_mem_get((size_t)n * sizeof *one), all = {NULL, NULL, NULL};
    int64_t       longest = 0;
    for (int64_t b = 0; one && b < n && tn_error() == TN_OK; b++) {
        one[b] = tn_live_take(l, r[b].text);
        if (one[b].tokens && tn_size(one[b].tokens, 2) > longest) longest = tn_size(one[b].tokens, 2);
    }
    all.tokens = tn_full_of(TN_I64, TN_SHAPE(n, 1, longest), -1);
    all.lengths = tn_zeros_of(TN_I64, TN_SHAPE(n, 1)), all.scores = tn_zeros_of(TN_F64, TN_SHAPE(n, 1));
    for (int64_t b = 0; b < n && tn_error() == TN_OK; b++) put(all, b, one[b]);
    if (one) tn_mem_put(one, (size_t)n * sizeof *one);
    return all;
}

static tn_generated of_lengths(tn_generate_args a)
{
    tn_generated   all = {NULL, NULL, NULL};
    const tn_scope s = tn_no_grad_begin();
    void          *m = tn_error() == TN_OK ? model_of(&a) : NULL;
    const int64_t  n = m ? tn_size(a.prompt, 0) : 0;
    row           *r = m ? tn_mem_get((size_t)n * sizeof *r) : NULL;
    tn_live       *l = r ? tn_live_new(m, .rows = n, .length = a.from->length) : NULL;
    for (int64_t b = 0; l && b < n && tn_error() == TN_OK; b++) {
        tn_generate_args one = a;
        r[b] = (row){&a, b, 0};
        one.from = NULL, one.lengths = NULL, one.user = &r[b];
        one.prompt = tn_narrow(tn_narrow(a.prompt, 0, b, 1), 1, 0, tn_get_i64(a.lengths, b));
        if (a.most_each) one.most_each = tn_narrow(a.most_each, 0, b, 1);
        if (a.each) one.each = each;
        if (a.adjust) one.adjust = adjust;
        r[b].text = tn_live_add_run(l, one);
    }
    while (l && tn_error() == TN_OK && tn_live_step(l) > 0) {}
    if (l && tn_error() == TN_OK) all = collect(l, n, r);
    tn_live_free(l);
    if (r) tn_mem_put(r, (size_t)n * sizeof *r);
    if (tn_error() != TN_OK) all = (tn_generated){NULL, NULL, NULL};
    tn_scope_return_list(s, 3, (tn_tensor *[]){all.tokens, all.lengths, all.scores});
    return all;
}

tn_generated tn_generate_run(tn_generate_args a) { return a.lengths ? of_lengths(a) : of_one_length(a); }
