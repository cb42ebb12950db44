/* from_parts.c — creates a tokenizer from its parts: tokens with scores and types, as in SentencePiece, GGUF and
 * llama2.c. */
#include "data/tokenizer/tokenizer_private.h"
#include "core/base/toolbox.h"

#include <string.h>

static int guess_type(const char *piece)
{
    size_t n = strlen(piece);
    if (tn__byte_of_token(piece, n) >= 0) return TN_TYPE_BYTE;
    if (!strcmp(piece, "<unk>")) return TN_TYPE_UNKNOWN;
    return strcmp(piece, "<s>") && strcmp(piece, "</s>") ? TN_TYPE_NORMAL : TN_TYPE_CONTROL;
}

/* True for types that are matched in the text unchanged, before the other tokens, as in llama.cpp. */
static bool is_matched_first(int type)
{
    return type == TN_TYPE_CONTROL || type == TN_TYPE_USER || type == TN_TYPE_UNKNOWN;
}

/* Converts a spelling: llama2.c writes newlines around "<s>", and spaces for SentencePiece's "▁"; tokens that are
 * matched in the text keep their spaces. */
static bool convert_spelling(tn_string *to, const char *piece, bool matched_first)
{
    to->bytes = 0;
    if (!strcmp(piece, "\n<s>\n")) piece = "<s>";
    if (!strcmp(piece, "\n</s>\n")) piece = "</s>";
    bool ok = tn_string_add(to, (tn_text){"", 0}) == TN_OK;
    for (const char *end; ok && *piece; piece = end) {
        const bool space = *piece == ' ' && !matched_first;
        end = piece + (space ? 1 : matched_first ? strlen(piece) : strcspn(piece, " "));
        ok = tn_string_add(to, space ? (tn_text){TN__SPACE, 3} : (tn_text){piece, (size_t)(end - piece)}) == TN_OK;
    }
    return ok;
}

static bool add_token(tn_tokenizer *t, const char *caller, const char *piece, int64_t i, const tn_from_vocab_args *args,
                      tn_string *text)
{
    char q[TN__QUOTED];
    if (!piece) return tn_raise_false(TN_EINVAL, "%s: token %lld is NULL", caller, (long long)i);
    if (t->kind != TN_BYTE_BPE && !convert_spelling(text, piece, args->types && is_matched_first(args->types[i])))
        return false;
    if (t->kind != TN_BYTE_BPE) piece = text->at;
    const size_t n = strlen(piece);
    if (tn_utf8_valid(piece, n) < n)
        return tn_raise_false(TN_EFORMAT, "%s: token %lld, %s, is not UTF-8", caller, (long long)i,
                              tn__quote(q, piece, n, 40));
    const int type = args->types ? args->types[i] : t->kind == TN_BYTE_BPE ? TN_TYPE_NORMAL : guess_type(piece);
    if (type < TN_TYPE_NORMAL || type > TN_TYPE_BYTE)
        return tn_raise_false(TN_EFORMAT, "%s: token %lld has the type %d, expected 1 to 6", caller, (long long)i,
                              type);
    t->type[i] = (uint8_t)type;
    if (t->score) t->score[i] = args->scores ? args->scores[i] : -(float)i;
    if (!n) return tn__add_empty_token(t);
    const int64_t id = tn__strings_add(&t->vocab, piece, n);
    if (id >= 0 && id != i)
        tn_raise(TN_EFORMAT, "%s: the token %s has two ids, %lld and %lld", caller, tn__quote(q, piece, n, 40),
                 (long long)id, (long long)i);
    if (id != i) return false;
    return !is_matched_first(type) ||
           tn__tokenizer_add(t, (tn__added){.id = (int32_t)i, .special = type != TN_TYPE_USER});
}

static bool add_merges(tn_tokenizer *t, const char *caller, const tn_from_vocab_args *args)
{
    if (!tn__merges_room(&t->merges, (size_t)args->n_merges)) return false;
    for (int64_t i = 0; i < args->n_merges; i++) {
        const char *merge = args->merges ? args->merges[i] : NULL, *space = merge ? strchr(merge, ' ') : NULL;
        if (!space || strchr(space + 1, ' '))
            return tn_raise_false(TN_EFORMAT, "%s: merge %lld is not two tokens separated by a space", caller,
                                  (long long)i + 1);
        if (!tn__merge_texts(t, caller, merge, (size_t)(space - merge), space + 1, strlen(space + 1))) return false;
    }
    return true;
}

static bool from_parts(tn_tokenizer *t, const char *caller, int64_t n, const char *const *pieces,
                       const tn_from_vocab_args *args)
{
    const bool sentence = t->kind != TN_BYTE_BPE;
    tn_string  text = {0};
    bool       ok = tn__grown((void *)&t->type, &t->type_room, n, 1) &&
              (!sentence || tn__grown((void *)&t->score, &t->score_room, n, sizeof *t->score));
    for (int64_t i = 0; ok && i < n; i++) ok = add_token(t, caller, pieces[i], i, args, &text);
    tn_string_free(&text);
    if (!ok) return false;
    const int32_t first = args->first >= 0 ? args->first : (int32_t)tn_tokenizer_id(t, "<s>");
    const int32_t last = args->last >= 0 ? args->last : (int32_t)tn_tokenizer_id(t, "</s>");
    if (first >= n || last >= n)
        return tn_raise_false(TN_EINVAL, "%s: the first token is %d, the last %d, but there are %lld tokens", caller,
                              first, last, (long long)n);
    if (sentence) {
        t->sentence.space = args->no_space ? TN__SPACE_NEVER : TN__SPACE_EACH;
        t->sentence.decode_space = !args->no_space;
        t->step[t->steps++].kind = TN__STEP_SENTENCE;
    } else if (!add_merges(t, caller, args)) {
        return false;
    }
    t->whole_words = args->whole_words && !sentence;
    tn__template_ends(t, args->bare ? -1 : first, args->ends ? last : -1);
    if (!tn__tokenizer_finish(t, caller)) return false;
    if (first >= 0) t->role.first = first;
    if (last >= 0) t->role.last = last;
    return true;
}

tn_tokenizer *tn_tokenizer_from_vocab_run(int64_t n, const char *const *pieces, tn_from_vocab_args args)
{
    if (tn__blocked()) return NULL;
    const char *caller = "tn_tokenizer_from_vocab";
    if (n < 1 || n > TN__VOCAB_MAX || !pieces || args.n_merges < 0 || args.n_merges > TN__VOCAB_MAX)
        return tn_raise_null(TN_EINVAL, "%s: %s, expected 1 to %d", caller,
                             pieces ? "n or .n_merges is out of range" : "pieces is NULL", TN__VOCAB_MAX);
    if (args.kind != TN_SENTENCE_BPE && args.kind != TN_UNIGRAM && args.kind != TN_BYTE_BPE)
        return tn_raise_null(TN_EINVAL, "%s: .kind is %d, expected TN_SENTENCE_BPE, TN_UNIGRAM or TN_BYTE_BPE", caller,
                             (int)args.kind);
    const bool bytes = args.kind == TN_BYTE_BPE;
    if (!args.n_merges != !args.merges)
        return tn_raise_null(TN_EINVAL, "%s: .n_merges is %lld, but .merges is %s", caller, (long long)args.n_merges,
                             args.merges ? "set" : "NULL");
    if (bytes ? args.scores != NULL : args.n_merges || args.splitter || args.whole_words)
        return tn_raise_null(TN_EINVAL,
                             bytes ? "%s: .scores are for TN_SENTENCE_BPE and TN_UNIGRAM; set .merges for TN_BYTE_BPE"
                                   : "%s: .merges, .splitter and .whole_words are for TN_BYTE_BPE",
                             caller);
    const int splitter = args.splitter ? tn__splitter_named(args.splitter) : 0;
    if (splitter < 0)
        return tn_raise_null(TN_EUNSUPPORTED,
                             "%s: .splitter is '%.40s', expected \"gpt2\", \"gpt4\", \"qwen2\" or \"smollm\"", caller,
                             args.splitter);
    tn_tokenizer *t = tn__tokenizer_new(args.kind);
    if (t) t->bytes.splitter = splitter;
    if (!t || from_parts(t, caller, n, pieces, &args)) return t;
    return tn_tokenizer_free(t), NULL;
}
