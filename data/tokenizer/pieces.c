/* pieces.c — creates a tokenizer from its parts: tokens with scores and types, as in SentencePiece, GGUF and
 * llama2.c. */
#include "data/tokenizer/tokenizer_private.h"
#include "core/base/toolbox.h"

#include <string.h>

static int guessed(const char *piece)
{
    size_t n = strlen(piece);
    if (tn__byte_named(piece, n) >= 0) return TN_TYPE_BYTE;
    if (!strcmp(piece, "<unk>")) return TN_TYPE_UNKNOWN;
    return strcmp(piece, "<s>") && strcmp(piece, "</s>") ? TN_TYPE_NORMAL : TN_TYPE_CONTROL;
}

/* True for types that are matched in the text unchanged, before the other tokens, as in llama.cpp. */
static bool is_found(int type) { return type == TN_TYPE_CONTROL || type == TN_TYPE_USER || type == TN_TYPE_UNKNOWN; }

/* Converts a spelling: llama2.c writes newlines around "<s>", and spaces for SentencePiece's "▁"; tokens that are
 * matched in the text keep their spaces. */
static bool spelled(tn_string *to, const char *piece, bool found)
{
    to->bytes = 0;
    if (!strcmp(piece, "\n<s>\n")) piece = "<s>";
    if (!strcmp(piece, "\n</s>\n")) piece = "</s>";
    bool ok = tn_string_add(to, (tn_text){"", 0}) == TN_OK;
    for (const char *end; ok && *piece; piece = end) {
        const bool space = *piece == ' ' && !found;
        end = piece + (space ? 1 : found ? strlen(piece) : strcspn(piece, " "));
        ok = tn_string_add(to, space ? (tn_text){TN__SPACE, 3} : (tn_text){piece, (size_t)(end - piece)}) == TN_OK;
    }
    return ok;
}

static bool add_piece(tn_tokenizer *t, const char *who, const char *piece, int64_t i, const tn_pieces_args *how,
                      tn_string *text)
{
    char q[TN__QUOTED];
    if (!piece) return tn_raise(TN_EINVAL, "%s: token %lld is NULL", who, (long long)i), false;
    if (t->kind != TN_BYTE_BPE && !spelled(text, piece, how->types && is_found(how->types[i]))) return false;
    if (t->kind != TN_BYTE_BPE) piece = text->at;
    const size_t n = strlen(piece);
    if (tn_utf8_valid(piece, n) < n)
        return tn_raise(TN_EFORMAT, "%s: token %lld, %s, is not UTF-8", who, (long long)i, tn__quote(q, piece, n, 40)),
               false;
    const int type = how->types ? how->types[i] : t->kind == TN_BYTE_BPE ? TN_TYPE_NORMAL : guessed(piece);
    if (type < TN_TYPE_NORMAL || type > TN_TYPE_BYTE)
        return tn_raise(TN_EFORMAT, "%s: token %lld has the type %d, expected 1 to 6", who, (long long)i, type), false;
    t->type[i] = (uint8_t)type;
    if (t->score) t->score[i] = how->scores ? how->scores[i] : -(float)i;
    if (!n) return tn__skip_piece(t);
    const int64_t id = tn__strings_add(&t->pieces, piece, n);
    if (id >= 0 && id != i)
        tn_raise(TN_EFORMAT, "%s: the token %s has two ids, %lld and %lld", who, tn__quote(q, piece, n, 40),
                 (long long)id, (long long)i);
    if (id != i) return false;
    return !is_found(type) || tn__tokenizer_add(t, (tn__added){.id = (int32_t)i, .special = type != TN_TYPE_USER});
}

static bool add_merges(tn_tokenizer *t, const char *who, const tn_pieces_args *how)
{
    if (!tn__merges_room(&t->merges, (size_t)how->n_merges)) return false;
    for (int64_t i = 0; i < how->n_merges; i++) {
        const char *merge = how->merges ? how->merges[i] : NULL, *space = merge ? strchr(merge, ' ') : NULL;
        if (!space || strchr(space + 1, ' '))
            return tn_raise(TN_EFORMAT, "%s: merge %lld is not two tokens separated by a space", who, (long long)i + 1),
                   false;
        if (!tn__merge_texts(t, who, merge, (size_t)(space - merge), space + 1, strlen(space + 1))) return false;
    }
    return true;
}

static bool of_pieces(tn_tokenizer *t, const char *who, int64_t n, const char *const *pieces, const tn_pieces_args *how)
{
    const bool sentence = t->kind != TN_BYTE_BPE;
    tn_string  text = {0};
    bool       ok = tn__grown((void *)&t->type, &t->type_room, n, 1) &&
              (!sentence || tn__grown((void *)&t->score, &t->score_room, n, sizeof *t->score));
    for (int64_t i = 0; ok && i < n; i++) ok = add_piece(t, who, pieces[i], i, how, &text);
    tn_string_free(&text);
    if (!ok) return false;
    const int32_t first = how->first >= 0 ? how->first : (int32_t)tn_tokenizer_id(t, "<s>");
    const int32_t last = how->last >= 0 ? how->last : (int32_t)tn_tokenizer_id(t, "</s>");
    if (first >= n || last >= n)
        return tn_raise(TN_EINVAL, "%s: the first token is %d, the last %d, but there are %lld tokens", who, first,
                        last, (long long)n),
               false;
    if (sentence) {
        t->sentence.space = how->no_space ? TN__SPACE_NEVER : TN__SPACE_EACH;
        t->sentence.decode_space = !how->no_space;
        t->step[t->steps++].kind = TN__STEP_SENTENCE;
    } else if (!add_merges(t, who, how)) {
        return false;
    }
    t->whole_words = how->whole_words && !sentence;
    tn__template_ends(t, how->bare ? -1 : first, how->ends ? last : -1);
    if (!tn__tokenizer_ready(t, who)) return false;
    if (first >= 0) t->role.first = first;
    if (last >= 0) t->role.last = last;
    return true;
}

tn_tokenizer *tn_tokenizer_of_pieces_run(int64_t n, const char *const *pieces, tn_pieces_args how)
{
    if (tn__blocked()) return NULL;
    const char *who = "tn_tokenizer_of_pieces";
    if (n < 1 || n > TN__VOCAB_MOST || !pieces || how.n_merges < 0 || how.n_merges > TN__VOCAB_MOST)
        return tn_raise(TN_EINVAL, "%s: %s, expected 1 to %d", who,
                        pieces ? "n or .n_merges is out of range" : "pieces is NULL", TN__VOCAB_MOST),
               NULL;
    if (how.kind != TN_SENTENCE_BPE && how.kind != TN_UNIGRAM && how.kind != TN_BYTE_BPE)
        return tn_raise(TN_EINVAL, "%s: .kind is %d, expected TN_SENTENCE_BPE, TN_UNIGRAM or TN_BYTE_BPE", who,
                        (int)how.kind),
               NULL;
    const bool bytes = how.kind == TN_BYTE_BPE;
    if (!how.n_merges != !how.merges)
        return tn_raise(TN_EINVAL, "%s: .n_merges is %lld, but .merges is %s", who, (long long)how.n_merges,
                        how.merges ? "set" : "NULL"),
               NULL;
    if (bytes ? how.scores != NULL : how.n_merges || how.splitter || how.whole_words)
        return tn_raise(TN_EINVAL,
                        bytes ? "%s: .scores are for TN_SENTENCE_BPE and TN_UNIGRAM; set .merges for TN_BYTE_BPE"
                              : "%s: .merges, .splitter and .whole_words are for TN_BYTE_BPE",
                        who),
               NULL;
    const int splitter = how.splitter ? tn__splitter_named(how.splitter) : 0;
    if (splitter < 0)
        return tn_raise(TN_EUNSUPPORTED, "%s: .splitter is '%.40s', expected \"gpt2\", \"gpt4\" or \"qwen2\"", who,
                        how.splitter),
               NULL;
    tn_tokenizer *t = tn__tokenizer_new(how.kind);
    if (t) t->splitter = splitter;
    if (!t || of_pieces(t, who, n, pieces, &how)) return t;
    return tn_tokenizer_free(t), NULL;
}
