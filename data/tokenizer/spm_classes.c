/* spm_classes.c — the tokenizers that transformers makes of a SentencePiece model for CamemBERT, XLM-RoBERTa and
 * DeBERTa v2 and v3. The first two place the pieces after special tokens of fairseq: CamemBERT's ids are
 * SentencePiece's plus 4, XLM-RoBERTa's plus 1. Text rules are not the model's: words end at white space; DeBERTa's
 * text is in NFC, with one space for white space. */
#include "data/tokenizer/tokenizer_private.h"
#include "data/text/unicode.h"
#include "core/base/toolbox.h"

#include <string.h>

static const struct {
    const char *head[5]; /* the first tokens, instead of the first `from` pieces */
    uint32_t    from;
    const char *unknown, *mask, *first, *end;
} spm_classes[] = {
    [TN__SPM_CAMEMBERT] =
        {{"<s>NOTUSED", "<pad>", "</s>NOTUSED", "<unk>", "<unk>NOTUSED"}, 1, "<unk>", "<mask>", "<s>", "</s>"},
    [TN__SPM_XLM_ROBERTA] = {{"<s>", "<pad>", "</s>", "<unk>"}, 3, "<unk>", "<mask>", "<s>", "</s>"},
    [TN__SPM_DEBERTA] = {{NULL}, 0, "[UNK]", "[MASK]", "[CLS]", "[SEP]"},
};

static bool put_piece(tn_tokenizer *t, const char *text, size_t bytes, double score, uint8_t type)
{
    const int64_t i = t->vocab.n;
    if (!tn__grown((void *)&t->type, &t->type_room, i + 1, 1) ||
        !tn__grown((void *)&t->score64, &t->score64_room, i + 1, sizeof *t->score64))
        return false;
    const int64_t id = text ? tn__strings_add(&t->vocab, text, bytes) : -1;
    if (!text && !tn__add_empty_token(t)) return false;
    t->type[i] = TN_TYPE_NORMAL, t->score64[i] = score;
    if (text && id < 0) return false;
    return type != TN_TYPE_USER || tn__tokenizer_add(t, (tn__added){.id = (int32_t)i});
}

/* The new vocabulary: the head, the pieces, the mask, which DeBERTa's pieces may contain. A piece that is one of the
 * other tokens keeps its id, empty. */
static bool place_pieces(tn_tokenizer *t, tn__spm_class kind, const tn__strings *old, const uint8_t *type,
                         const float *score)
{
    const char *const *head = spm_classes[kind].head, *mask = spm_classes[kind].mask;
    for (int i = 0; i < 5 && head[i]; i++)
        if (!put_piece(t, head[i], strlen(head[i]), i < 4 ? 0 : -100, TN_TYPE_NORMAL)) return false;
    const bool append = kind != TN__SPM_DEBERTA || tn__strings_find(old, mask, strlen(mask)) < 0;
    for (uint32_t i = spm_classes[kind].from; i < old->n; i++) {
        size_t      n;
        const char *text = tn__strings_text(old, i, &n);
        const bool  other = tn__strings_find(&t->vocab, text, n) >= 0 || (append && !strcmp(text, mask));
        if (!put_piece(t, other ? NULL : text, n, (double)score[i], other ? TN_TYPE_NORMAL : type[i])) return false;
    }
    return !append || put_piece(t, mask, strlen(mask), 0, TN_TYPE_NORMAL);
}

static void set_steps(tn_tokenizer *t, tn__spm_class kind, bool lower)
{
    const bool deberta = kind == TN__SPM_DEBERTA;
    t->steps = 0;
    if (!deberta && t->charsmap.units) t->step[t->steps++].kind = TN__STEP_CHARSMAP;
    t->sentence =
        (tn__sentence){.space = TN__SPACE_EACH, .escape = true, .words = !deberta, .cut = true, .decode_first = true};
    if (!deberta) return;
    if (lower) t->step[t->steps++] = (tn__step){.kind = TN__STEP_LOWER};
    t->step[t->steps++] = (tn__step){.kind = TN__STEP_SPACES, .left = true, .content = " ", .content_bytes = 1};
    t->step[t->steps++] = (tn__step){.kind = TN__STEP_FORM, .form = UTF8PROC_STABLE | UTF8PROC_COMPOSE};
    t->step[t->steps++] = (tn__step){.kind = TN__STEP_STRIP, .right = true};
}

bool tn__spm_rules(tn_tokenizer *t, const char *caller, tn__spm_class kind, bool lower)
{
    if (t->kind != TN_UNIGRAM || !t->score)
        return tn_raise_false(TN_EUNSUPPORTED, "%s: expected a SentencePiece model of type Unigram", caller);
    tn__strings   old = t->vocab;
    uint8_t      *type = t->type;
    float        *score = t->score;
    const int64_t types = t->type_room, scores = t->score_room;
    t->vocab = (tn__strings){.n = 0}, t->type = NULL, t->score = NULL, t->type_room = t->score_room = 0;
    t->added.n = 0;
    bool ok = place_pieces(t, kind, &old, type, score);
    tn__strings_free(&old);
    tn__mem_put(type, (size_t)types), tn__mem_put(score, (size_t)scores * sizeof *score);
    const int32_t first = (int32_t)tn_tokenizer_id(t, spm_classes[kind].first),
                  end = (int32_t)tn_tokenizer_id(t, spm_classes[kind].end),
                  mask = (int32_t)tn_tokenizer_id(t, spm_classes[kind].mask);
    t->unknown = (int32_t)tn_tokenizer_id(t, spm_classes[kind].unknown);
    if (ok && (first < 0 || end < 0 || t->unknown < 0))
        ok = tn_raise_false(TN_EFORMAT, "%s: the pieces lack %s", caller,
                            first < 0 ? spm_classes[kind].first
                            : end < 0 ? spm_classes[kind].end
                                      : spm_classes[kind].unknown);
    ok = ok && tn__tokenizer_add(t, (tn__added){.id = mask, .special = true, .left = kind == TN__SPM_CAMEMBERT});
    if (!ok) return false;
    set_steps(t, kind, lower);
    tn__template_frame(t, first, end, kind != TN__SPM_DEBERTA);
    return true;
}
