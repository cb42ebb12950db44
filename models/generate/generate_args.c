/* generate_args.c — checks the arguments of a generation. */
#include "models/generate/generation.h"
#include "models/generate/lm_private.h"
#include "models/generate/sampling.h"

static bool invalid(const char *what, int64_t got, const char *expected)
{
    return tn_raise_false(TN_EINVAL, "tn_generate: .%s is %lld, but must be %s", what, (long long)got, expected);
}

static bool are_integers(const char *what, const tn_tensor *t)
{
    if (tn_dtype_of(t) == TN_I64 || tn_dtype_of(t) == TN_I32) return true;
    return tn_raise_false(TN_EDTYPE, "tn_generate: %s must hold integers, i64 or i32", what);
}

static bool check_prompt(const tn_generate_args *a)
{
    char             shape[192];
    const tn_tensor *before = a->before;
    if (!a->from) return tn_raise_false(TN_EINVAL, "tn_generate: the decoding is NULL");
    if (!a->prompt || tn_ndim(a->prompt) != 2 || tn_size(a->prompt, 1) < 1 || tn_size(a->prompt, 0) < 1)
        return tn_raise_false(TN_ESHAPE, "tn_generate: the prompt must be [batch, length], both at least 1, got %s",
                              a->prompt ? tn_shape_text(tn_shape_of(a->prompt), shape, sizeof shape) : "NULL");
    if (before &&
        (tn_ndim(before) != 2 || tn_size(before, 0) != tn_size(a->prompt, 0) || tn_size(before, 1) != a->read))
        return tn_raise_false(TN_ESHAPE,
                              "tn_generate: .before must be [%lld, %lld], the .read tokens of each prompt, got %s",
                              (long long)tn_size(a->prompt, 0), (long long)a->read,
                              tn_shape_text(tn_shape_of(before), shape, sizeof shape));
    return are_integers("the prompt", a->prompt) && (!before || are_integers(".before", before));
}

/* True if the decoding has enough rows and length; else raises. */
static bool check_decoding(const tn__generation *s)
{
    const tn_decoding *d = s->a.from;
    const int64_t      room = d->length - s->a.read, prompt = s->begin - s->before;
    if (s->a.read < 0) return invalid("read", s->a.read, "at least 0");
    if (s->a.coverage > 0 && d->kind->size != sizeof(tn__attending_kind))
        return tn_raise_false(TN_EUNSUPPORTED,
                              "tn_generate: .coverage is %g, but this decoding has no attention to a source; only that "
                              "of tn_seq2seq_decoding has",
                              s->a.coverage);
    if (d->kind->size >= sizeof(tn_decoding_kind) && d->kind->read) {
        const int64_t read = d->kind->read(d);
        if (read != s->a.read)
            return tn_raise(TN_ESTATE,
                            "tn_generate: the decoding has read %lld tokens, but .read is %lld; make a new decoding "
                            "for a new text, or set .read to continue this one",
                            (long long)read, (long long)s->a.read),
                   false;
    }
    if (s->prompts > d->rows / s->beams)
        return tn_raise_false(
            TN_EINVAL, "tn_generate: %lld prompts with %lld beams each need %lld rows; the decoding has %lld",
            (long long)s->prompts, (long long)s->beams, (long long)(s->prompts * s->beams), (long long)d->rows);
    if (prompt > room || s->most > room - prompt || s->most < 1)
        return tn_raise_false(
            TN_EINVAL,
            "tn_generate: a prompt of %lld tokens and %lld new ones do not fit the decoding's length of "
            "%lld%s",
            (long long)prompt, (long long)s->most, (long long)d->length,
            s->a.read ? ", part of which has been read" : "");
    return true;
}

static bool fit_together(tn__generation *s)
{
    const tn_generate_args *a = &s->a;
    if (tn_error() != TN_OK || !check_prompt(a)) return false;
    const int64_t prompt = tn_size(a->prompt, 1);
    s->prompts = tn_size(a->prompt, 0), s->before = a->before ? a->read : 0, s->begin = s->before + prompt;
    s->beams = a->beams, s->most = a->most ? a->most : a->from->length - a->read - prompt;
    s->least = a->least, s->end = a->end;
    s->penalty = a->length_penalty, s->early = a->early_stopping || s->beams == 1;
    const int64_t best = a->best;
    if (s->beams < 1 || s->beams > TN__MOST_BEAMS) return invalid("beams", a->beams, "from 1 to 64");
    if (best < 1 || best > s->beams) return invalid("best", a->best, "from 1 to .beams");
    if (a->sample && s->beams > 1) return invalid("beams", a->beams, "1 for sampling");
    if (a->each && s->beams > 1) return invalid("beams", a->beams, "1 with .each");
    if (a->most < 0) return invalid("most", a->most, "at least 0");
    if (s->least < 0 || s->least > s->most) return invalid("least", a->least, "from 0 to .most");
    if (a->no_repeat < 0) return invalid("no_repeat", a->no_repeat, "at least 0");
    return tn__check_choice(a) && check_decoding(s);
}

static bool check_most_each(const tn__generation *s)
{
    char             shape[192];
    const tn_tensor *t = s->a.most_each;
    if (!t) return true;
    if (tn_dtype_of(t) != TN_I64 || tn_ndim(t) != 1 || tn_numel(t) != s->prompts)
        return tn_raise_false(TN_ESHAPE, "tn_generate: .most_each must be i64 [%lld], one number per prompt, got %s %s",
                              (long long)s->prompts, tn_dtype_name(tn_dtype_of(t)),
                              tn_shape_text(tn_shape_of(t), shape, sizeof shape));
    for (int64_t b = 0; b < s->prompts; b++)
        if (tn__most_of(s, b) < 1 || tn__most_of(s, b) > s->most || tn__most_of(s, b) < s->least)
            return tn_raise_false(TN_EINVAL,
                                  "tn_generate: .most_each is %lld for prompt %lld, but must be from %lld to %lld",
                                  (long long)tn__most_of(s, b), (long long)b, (long long)(s->least > 1 ? s->least : 1),
                                  (long long)s->most);
    return true;
}

bool tn__generation_fits(tn__generation *s) { return fit_together(s) && check_most_each(s); }
