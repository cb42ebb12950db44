/* t5.c — the tokenizers that Hugging Face's T5Tokenizer and XLNetTokenizer make of a SentencePiece model: its tokens
 * with their scores, which are added in f64. Words end at white space, and "▁" is put before each. T5 adds the
 * sentinels <extra_id_99> … <extra_id_0>, and "</s>" after each text; XLNet removes accents, and adds "<sep><cls>"
 * after each text. */
#include "data/tokenizer/tokenizer_private.h"
#include "data/text/unicode.h"
#include "core/base/toolbox.h"

#include <stdio.h>
#include <string.h>

static bool put_special(tn_tokenizer *t, const char *caller, const char *name)
{
    const int64_t id = tn__strings_find(&t->vocab, name, strlen(name));
    if (id < 0) return tn_raise_false(TN_EFORMAT, "%s: the special token %s is not in the vocabulary", caller, name);
    return tn__tokenizer_add(t, (tn__added){.id = (int32_t)id, .special = true, .left = !strcmp(name, "<mask>")});
}

/* Replaces the rules of SentencePiece; tokens from `own` on have no score. */
static bool set_rules(tn_tokenizer *t, int64_t own)
{
    if (!tn__grown((void *)&t->type, &t->type_room, t->vocab.n, 1) ||
        !tn__grown((void *)&t->score64, &t->score64_room, t->vocab.n, sizeof *t->score64))
        return false;
    for (int64_t i = 0; i < t->vocab.n; i++)
        t->type[i] = TN_TYPE_NORMAL, t->score64[i] = i < own ? (double)t->score[i] : 0;
    tn__mem_put(t->score, (size_t)t->score_room * sizeof *t->score);
    t->score = NULL, t->score_room = 0;
    t->steps = 0;
    t->sentence =
        (tn__sentence){.space = TN__SPACE_EACH, .escape = true, .words = true, .cut = true, .decode_first = true};
    return true;
}

static bool is_unigram(const tn_tokenizer *t, const char *caller, const char *name)
{
    if (t->kind == TN_UNIGRAM && t->score) return true;
    return tn_raise_false(TN_EUNSUPPORTED, "%s: %s's tokenizer needs a SentencePiece model of type Unigram", caller,
                          name);
}

bool tn__xlnet_rules(tn_tokenizer *t, const char *caller, bool lower)
{
    static const char *const names[] = {"<unk>", "<s>", "</s>", "<cls>", "<sep>", "<pad>", "<mask>", "<eod>", "<eop>"};
    if (!is_unigram(t, caller, "XLNet")) return false;
    t->added.n = 0;
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (!put_special(t, caller, names[i])) return false;
    for (uint32_t i = 0; i < t->vocab.n; i++) /* user-defined tokens: a "▁" is put after them */
        if (t->type[i] == TN_TYPE_USER && !tn__added_as(t, (int32_t)i) &&
            !tn__tokenizer_add(t, (tn__added){.id = (int32_t)i}))
            return false;
    if (!set_rules(t, t->vocab.n)) return false;
    for (int i = 0; i < 2; i++)
        t->step[t->steps++] = (tn__step){.kind = TN__STEP_REPLACE,
                                         .pattern_bytes = 2,
                                         .content_bytes = 1,
                                         .pattern = {"`'"[i], "`'"[i]},
                                         .content = "\""};
    t->step[t->steps++] =
        (tn__step){.kind = TN__STEP_FORM, .form = UTF8PROC_STABLE | UTF8PROC_DECOMPOSE | UTF8PROC_COMPAT};
    t->step[t->steps++].kind = TN__STEP_ACCENTS;
    if (lower) t->step[t->steps++].kind = TN__STEP_LOWER;
    if (t->charsmap.units) t->step[t->steps++].kind = TN__STEP_CHARSMAP;
    tn__template_xlnet(t, (int32_t)tn_tokenizer_id(t, "<cls>"), (int32_t)tn_tokenizer_id(t, "<sep>"));
    return true;
}

bool tn__t5_rules(tn_tokenizer *t, const char *caller, int64_t sentinels)
{
    char          name[32];
    const int64_t own = t->vocab.n;
    if (!is_unigram(t, caller, "T5")) return false;
    t->added.n = 0; /* T5's special tokens are found in texts, and there are no others */
    for (int64_t i = sentinels - 1; i >= 0; i--) {
        snprintf(name, sizeof name, "<extra_id_%lld>", (long long)i);
        if (tn__strings_add(&t->vocab, name, strlen(name)) < 0 || !put_special(t, caller, name)) return false;
    }
    if (!put_special(t, caller, "<pad>") || !put_special(t, caller, "</s>") || !put_special(t, caller, "<unk>") ||
        !set_rules(t, own))
        return false;
    if (t->charsmap.units) t->step[t->steps++].kind = TN__STEP_CHARSMAP;
    tn__template_ends(t, -1, (int32_t)tn_tokenizer_id(t, "</s>"));
    return true;
}
