/* t5.c — the tokenizer that Hugging Face's T5Tokenizer makes of a SentencePiece model: its tokens with their scores,
 * which are added in f64, and the sentinels <extra_id_99> … <extra_id_0>. Words end at white space, and "▁" is put
 * before each. "</s>" is added after each text. */
#include "data/tokenizer/tokenizer_private.h"
#include "core/base/toolbox.h"

#include <stdio.h>
#include <string.h>

static bool put_special(tn_tokenizer *t, const char *caller, const char *name)
{
    const int64_t id = tn__strings_find(&t->vocab, name, strlen(name));
    if (id < 0) return tn_raise_false(TN_EFORMAT, "%s: T5's token %s is not in the vocabulary", caller, name);
    return tn__tokenizer_add(t, (tn__added){.id = (int32_t)id, .special = true});
}

bool tn__t5_rules(tn_tokenizer *t, const char *caller, int64_t sentinels)
{
    char          name[32];
    const int64_t own = t->vocab.n, most = own + sentinels;
    if (t->kind != TN_UNIGRAM || !t->score)
        return tn_raise_false(TN_EUNSUPPORTED, "%s: T5's tokenizer needs a SentencePiece model of type Unigram",
                              caller);
    t->added.n = 0; /* T5's special tokens are found in texts, and there are no others */
    for (int64_t i = sentinels - 1; i >= 0; i--) {
        snprintf(name, sizeof name, "<extra_id_%lld>", (long long)i);
        if (tn__strings_add(&t->vocab, name, strlen(name)) < 0 || !put_special(t, caller, name)) return false;
    }
    if (!put_special(t, caller, "<pad>") || !put_special(t, caller, "</s>") || !put_special(t, caller, "<unk>") ||
        !tn__grown((void *)&t->type, &t->type_room, most, 1) ||
        !tn__grown((void *)&t->score64, &t->score64_room, most, sizeof *t->score64))
        return false;
    for (int64_t i = 0; i < most; i++) t->type[i] = TN_TYPE_NORMAL, t->score64[i] = i < own ? (double)t->score[i] : 0;
    tn__mem_put(t->score, (size_t)t->score_room * sizeof *t->score);
    t->score = NULL, t->score_room = 0;
    t->steps = 0;
    if (t->charsmap.units) t->step[t->steps++].kind = TN__STEP_CHARSMAP;
    t->sentence =
        (tn__sentence){.space = TN__SPACE_EACH, .escape = true, .words = true, .cut = true, .decode_first = true};
    tn__template_ends(t, -1, (int32_t)tn_tokenizer_id(t, "</s>"));
    return true;
}
