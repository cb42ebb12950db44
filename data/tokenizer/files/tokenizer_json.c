/* tokenizer_json.c — reads Hugging Face's tokenizer.json. A rule in the file that Tenon does not support is rejected
 * and the error names it: wrong token ids would be worse. The file's truncation and padding are ignored; the caller of
 * the encoder sets them. */
#include "data/tokenizer/files/tokenizer_files.h"
#include "data/text/unicode.h"
#include "core/base/toolbox.h"

#include <string.h>

static bool is(const char *a, const char *b) { return strcmp(a, b) == 0; }

static bool affix(const char *caller, const tn_json *v, char to[TN__AFFIX], uint32_t *bytes)
{
    const char *text = tn_json_string_or(v, "");
    if (strlen(text) >= TN__AFFIX) return tn__unsupported(caller, "an affix of tokens", text);
    *bytes = (uint32_t)strlen(text);
    memcpy(to, text, *bytes);
    return tn_error() == TN_OK;
}

/* ---- tokens ------------------------------------------------------------------------------------------------------ */

typedef struct {
    const char  *caller;
    const char **text; /* by id */
    int64_t      n;
} table;

static bool fits(const table *x, int64_t id)
{
    if (id >= 0 && id < x->n) return true;
    if (tn_error() == TN_OK)
        tn_raise(TN_EFORMAT, "%s: a token has the id %lld, expected 0 to %lld for a vocabulary of this size", x->caller,
                 (long long)id, (long long)x->n - 1);
    return false;
}

/* The number of tokens of the model; the highest id of the added tokens so far, -1: none. Hugging Face's library gives
 * a token that is not in the model the next id, whatever the file specifies. */
typedef struct {
    int64_t model, highest;
} numbering;

static bool number(const table *x, numbering *to, const char *text, int64_t id, bool known)
{
    char          q[TN__QUOTED];
    const int64_t next = to->highest >= to->model ? to->highest + 1 : to->model;
    if (!known && id != next && tn_error() == TN_OK)
        tn_raise(TN_EUNSUPPORTED,
                 "%s: added_tokens: %s has the id %lld, but Hugging Face's library numbers it %lld; correct the id, or "
                 "the order of added_tokens",
                 x->caller, tn__quote(q, text, strlen(text), 40), (long long)id, (long long)next);
    if (id > to->highest) to->highest = id;
    return tn_error() == TN_OK;
}

static bool enter(table *x, const char *text, int64_t id)
{
    char q[TN__QUOTED];
    if (!fits(x, id)) return false;
    if (x->text[id] && !is(x->text[id], text))
        return tn_raise_false(TN_EFORMAT, "%s: %s has the id %lld, which another token has", x->caller,
                              tn__quote(q, text, strlen(text), 40), (long long)id);
    x->text[id] = text;
    return true;
}

static bool fill(tn_tokenizer *t, table *x, const tn_json *vocab, const tn_json *added)
{
    int64_t    end = 0, i = 0;
    const bool list = tn_json_type_of(vocab) == TN_JSON_ARRAY; /* Unigram's: texts and scores */
    for (const tn_json *v = tn_json_first(vocab); v; v = tn_json_next(v), i++)
        if (!enter(x, list ? tn_json_string(tn_json_at(v, 0)) : tn_json_key(v), list ? i : tn_json_i64(v)))
            return false;
    numbering numbers = {tn_json_count(vocab), -1};
    for (const tn_json *a = tn_json_first(added); a; a = tn_json_next(a)) {
        const char   *text = tn_json_string(tn_json_need(a, "content"));
        const int64_t id = tn_json_i64(tn_json_need(a, "id"));
        const bool    known = fits(x, id) && x->text[id];
        if (!enter(x, text, id) || !number(x, &numbers, text, id, known) ||
            !tn__tokenizer_add(t, (tn__added){.id = (int32_t)id, .hidden = true, .outside = !known}))
            return false;
    }
    for (i = 0; i < x->n; i++)
        if (x->text[i]) end = i + 1;
    for (i = 0; i < end; i++) {
        const char *text = x->text[i];
        char        q[TN__QUOTED];
        if (!text || !*text) {
            if (!tn__add_empty_token(t)) return false;
            continue;
        }
        const int64_t id = tn__strings_add(&t->vocab, text, strlen(text));
        if (id == i) continue;
        if (id >= 0)
            tn_raise(TN_EFORMAT, "%s: the token %s has two ids, %lld and %lld", x->caller,
                     tn__quote(q, text, strlen(text), 40), (long long)id, (long long)i);
        return false;
    }
    return true;
}

static bool read_vocab(tn_tokenizer *t, const char *caller, const tn_json *vocab, const tn_json *added)
{
    if (tn_json_type_of(vocab) != (t->kind == TN_UNIGRAM ? TN_JSON_ARRAY : TN_JSON_OBJECT) ||
        (added && tn_json_type_of(added) != TN_JSON_ARRAY))
        return tn_raise_false(TN_EFORMAT, "%s: model.vocab must be an %s, added_tokens an array", caller,
                              t->kind == TN_UNIGRAM ? "array" : "object");
    const int64_t count = tn_json_count(vocab) + tn_json_count(added);
    table         x = {caller, NULL, 2 * count + 1000};
    if (count > TN__VOCAB_MAX) return tn_raise_false(TN_EUNSUPPORTED, "%s: more than %d tokens", caller, TN__VOCAB_MAX);
    x.text = tn__mem_zeroed((size_t)x.n * sizeof(char *));
    const bool ok = x.text && fill(t, &x, vocab, added);
    tn__mem_put(x.text, (size_t)x.n * sizeof(char *));
    return ok && tn_error() == TN_OK;
}

/* True if the normalizer may change a token's text, or where it matches. A form without compatibility mappings does not
 * change these characters or produce them from others, except letters with a mark after them; "K", ";" and "`" have
 * equivalents. */
static bool may_change(const tn_tokenizer *t, const char *text)
{
    const size_t n = strlen(text);
    const char   last = n ? text[n - 1] : ' ';
    bool         stays = !(last >= 'a' && last <= 'z') && !(last >= 'A' && last <= 'Z') && last != '<' && last != '=';
    for (size_t i = 0; i < n; i++) stays = stays && (unsigned char)text[i] < 0x80 && !strchr("K;`", text[i]);
    for (int i = 0; i < t->steps; i++)
        if (t->step[i].kind != TN__STEP_FORM || t->step[i].form & UTF8PROC_COMPAT || !stays) return true;
    return t->bert.enabled;
}

bool tn__json_added(tn_tokenizer *t, const char *caller, const tn_json *a, int64_t id, bool special)
{
    const bool normalized = tn_json_bool_or(tn_json_get(a, "normalized"), !a && !special);
    if (normalized && may_change(t, tn_tokenizer_token(t, id)))
        return tn__unsupported(caller, "an added token that the normalizer may change (normalized true)",
                               tn_tokenizer_token(t, id));
    const tn__added x = {.id = (int32_t)id,
                         .normalized = normalized,
                         .special = tn_json_bool_or(tn_json_get(a, "special"), special),
                         .left = tn_json_bool_or(tn_json_get(a, "lstrip"), false),
                         .word = tn_json_bool_or(tn_json_get(a, "single_word"), false),
                         .right = tn_json_bool_or(tn_json_get(a, "rstrip"), false)};
    return tn_error() == TN_OK && tn__tokenizer_add(t, x);
}

static bool differs(const tn__added *a, const tn__added *b)
{
    return a->special != b->special || a->left != b->left || a->right != b->right || a->word != b->word ||
           a->normalized != b->normalized;
}

static bool read_added(tn_tokenizer *t, const char *caller, const tn_json *added)
{
    for (const tn_json *a = tn_json_first(added); a; a = tn_json_next(a)) {
        if (!*tn_json_string(tn_json_need(a, "content")))
            return tn_raise_false(TN_EFORMAT, "%s: an added token is empty", caller);
        const int64_t   id = tn_json_i64(tn_json_get(a, "id"));
        const tn__added before = *tn__added_as(t, (int32_t)id);
        if (!tn__json_added(t, caller, a, id, false)) return false;
        if (!before.hidden && differs(&before, tn__added_as(t, (int32_t)id)))
            return tn__unsupported(caller, "a token that added_tokens defines twice", tn_tokenizer_token(t, id));
    }
    return true;
}

static bool read_merges(tn_tokenizer *t, const char *caller, const tn_json *merges)
{
    if (tn_json_type_of(merges) != TN_JSON_ARRAY)
        return tn_raise_false(TN_EFORMAT, "%s: model.merges is not an array", caller);
    if (!tn__merges_room(&t->merges, (size_t)tn_json_count(merges))) return false;
    for (const tn_json *m = tn_json_first(merges); m; m = tn_json_next(m)) {
        const char *a, *b;
        size_t      na;
        if (tn_json_type_of(m) == TN_JSON_ARRAY && tn_json_count(m) == 2) {
            a = tn_json_string(tn_json_at(m, 0)), b = tn_json_string(tn_json_at(m, 1));
            na = strlen(a);
        } else {
            a = tn_json_string(m);
            const char *space = strchr(a, ' ');
            if (!space || strchr(space + 1, ' ')) {
                if (tn_error() == TN_OK)
                    tn_raise(TN_EFORMAT, "%s: merge %u is not two tokens separated by a space", caller,
                             t->merges.n + 1);
                return false;
            }
            na = (size_t)(space - a), b = space + 1;
        }
        if (tn_error() != TN_OK || !tn__merge_texts(t, caller, a, na, b, strlen(b))) return false;
    }
    return true;
}

/* ---- rules ------------------------------------------------------------------------------------------------------- */

static bool read_normalizer(tn_tokenizer *t, const char *caller, const tn_json *v)
{
    t->bert.enabled = t->bert.clean = t->bert.chinese = t->bert.strip = t->bert.lower = false;
    if (t->split == TN__SPLIT_SENTENCE || t->split == TN__SPLIT_BYTES) return tn__json_steps(t, caller, v);
    if (!v || tn_json_type_of(v) == TN_JSON_NULL) return true;
    const char *type = tn_json_string(tn_json_need(v, "type"));
    if (tn_error() != TN_OK || !is(type, "BertNormalizer")) return tn__unsupported(caller, "the normalizer", type);
    const tn_json *strip = tn_json_get(v, "strip_accents");
    t->bert.enabled = true;
    t->bert.clean = tn_json_bool_or(tn_json_get(v, "clean_text"), true);
    t->bert.chinese = tn_json_bool_or(tn_json_get(v, "handle_chinese_chars"), true);
    t->bert.lower = tn_json_bool_or(tn_json_get(v, "lowercase"), true);
    t->bert.strip = tn_json_bool_or(strip, t->bert.lower);
    if (tn_json_type_of(strip) == TN_JSON_BOOL) t->bert.strip_option = t->bert.strip ? TN_YES : TN_NO;
    return tn_error() == TN_OK;
}

/* True if the pre_tokenizer is ByteLevel, alone or in a sequence. */
static bool has_bytes(const tn_json *v)
{
    const char *type = tn_json_type_of(v) == TN_JSON_OBJECT ? tn_json_string(tn_json_need(v, "type")) : "null";
    if (is(type, "ByteLevel")) return true;
    for (const tn_json *p = is(type, "Sequence") ? tn_json_first(tn_json_get(v, "pretokenizers")) : NULL; p;
         p = tn_json_next(p))
        if (is(tn_json_string_or(tn_json_get(p, "type"), ""), "ByteLevel")) return true;
    return false;
}

/* Reads a Split by a known regex, then ByteLevel: GPT-4's, LLaMA 3's, Qwen2's; or Digits, then ByteLevel: SmolLM's. */
static bool read_regex(tn_tokenizer *t, const char *caller, const tn_json *list)
{
    const tn_json *split = tn_json_at(list, 0), *bytes = tn_json_at(list, 1);
    const char    *type = tn_json_string_or(tn_json_get(split, "type"), "");
    const bool     digits = is(type, "Digits") && tn_json_bool_or(tn_json_get(split, "individual_digits"), false);
    if (tn_json_count(list) != 2 || (!is(type, "Split") && !digits))
        return tn__unsupported(caller, "the pre_tokenizer", "a sequence other than Split and ByteLevel");
    const tn_json *regex = tn_json_get(tn_json_get(split, "pattern"), "Regex");
    const char    *regex_text = tn_json_string_or(regex, "");
    t->bytes.splitter = digits ? tn__splitter_named("smollm") : tn__splitter_of(regex_text);
    if (t->bytes.splitter < 0 || tn_json_bool_or(tn_json_get(split, "invert"), false) ||
        (!digits && !is(tn_json_string_or(tn_json_get(split, "behavior"), ""), "Isolated")))
        return t->bytes.splitter = 0, tn__unsupported(caller, "the pre_tokenizer's Split", regex_text);
    if (tn_json_bool_or(tn_json_get(bytes, "use_regex"), true) != digits)
        return tn__unsupported(caller, "the pre_tokenizer",
                               digits ? "Digits and then ByteLevel without its regex"
                                      : "Split and then ByteLevel's own regex");
    t->split = TN__SPLIT_BYTES, t->kind = TN_BYTE_BPE;
    t->bytes.prefix_space = tn_json_bool_or(tn_json_get(bytes, "add_prefix_space"), true);
    if (t->bytes.prefix_space) return tn__unsupported(caller, "the pre_tokenizer", "add_prefix_space after Split");
    return tn_error() == TN_OK;
}

static bool read_split(tn_tokenizer *t, const char *caller, const tn_json *v)
{
    const char *type = tn_json_type_of(v) == TN_JSON_OBJECT ? tn_json_string(tn_json_need(v, "type")) : "null";
    const bool  bert = is(type, "BertPreTokenizer") || is(type, "WhitespaceSplit");
    if (t->kind == TN_BPE && !bert && !has_bytes(v)) t->kind = TN_SENTENCE_BPE, t->split = TN__SPLIT_SENTENCE;
    if (t->split == TN__SPLIT_SENTENCE) return tn_error() == TN_OK;
    if (is(type, "Sequence") && t->kind == TN_BPE) return read_regex(t, caller, tn_json_get(v, "pretokenizers"));
    if (is(type, "BertPreTokenizer")) t->split = TN__SPLIT_BERT;
    else if (is(type, "WhitespaceSplit")) t->split = TN__SPLIT_SPACE;
    else if (!is(type, "ByteLevel") || t->kind == TN_WORDPIECE)
        return tn__unsupported(caller, "the pre_tokenizer", type);
    else {
        t->split = TN__SPLIT_BYTES, t->kind = TN_BYTE_BPE;
        t->bytes.prefix_space = tn_json_bool_or(tn_json_get(v, "add_prefix_space"), true);
        t->bytes.regex = tn_json_bool_or(tn_json_get(v, "use_regex"), true);
    }
    return tn_error() == TN_OK;
}

static bool read_model(tn_tokenizer *t, const char *caller, const tn_json *v)
{
    if (t->kind == TN_UNIGRAM) return tn__json_unigram(t, caller, v);
    const char *unknown = tn_json_string_or(tn_json_get(v, "unk_token"), "");
    t->unknown = *unknown ? (int32_t)tn__model_find(t, unknown, strlen(unknown)) : -1;
    if (*unknown && t->unknown < 0)
        return tn_raise_false(TN_EFORMAT, "%s: the unknown token (unk_token), '%.40s', is not in model.vocab", caller,
                              unknown);
    const tn_json *prefix = tn_json_get(v, "continuing_subword_prefix");
    if (t->kind != TN_WORDPIECE) t->prefix_bytes = t->suffix_bytes = 0;
    if ((prefix || !t->prefix_bytes) && !affix(caller, prefix, t->prefix, &t->prefix_bytes)) return false;
    if (t->kind == TN_WORDPIECE) {
        t->longest_word = tn_json_i64_or(tn_json_get(v, "max_input_chars_per_word"), 100);
        if (t->longest_word >= 1 && t->longest_word <= TN__WORD_CHARS_MAX) return tn_error() == TN_OK;
        return tn_raise_false(TN_EUNSUPPORTED, "%s: max_input_chars_per_word is %lld, expected 1 to %d", caller,
                              (long long)t->longest_word, TN__WORD_CHARS_MAX);
    }
    t->fuse_unknown = tn_json_bool_or(tn_json_get(v, "fuse_unk"), false);
    t->whole_words = tn_json_bool_or(tn_json_get(v, "ignore_merges"), false);
    if (tn_json_double_or(tn_json_get(v, "dropout"), 0) != 0) return tn__unsupported(caller, "the model's", "dropout");
    t->sentence.fallback = tn_json_bool_or(tn_json_get(v, "byte_fallback"), false);
    if (t->sentence.fallback && t->split != TN__SPLIT_SENTENCE)
        return tn__unsupported(caller, "the model's", "byte_fallback");
    if (!affix(caller, tn_json_get(v, "end_of_word_suffix"), t->suffix, &t->suffix_bytes)) return false;
    if (t->sentence.fallback && (t->prefix_bytes || t->suffix_bytes))
        return tn__unsupported(caller, "the model's byte_fallback with a prefix or suffix",
                               t->prefix_bytes ? "continuing_subword_prefix" : "end_of_word_suffix");
    return read_merges(t, caller, tn_json_need(v, "merges"));
}

static bool read_decoder(tn_tokenizer *t, const char *caller, const tn_json *v)
{
    static const char *const fits[] = {"WordPiece", "BPEDecoder", "ByteLevel"};
    t->joined = !v || tn_json_type_of(v) == TN_JSON_NULL;
    if (t->joined) return tn_error() == TN_OK;
    if (t->split == TN__SPLIT_SENTENCE) return tn__json_decoder(t, caller, v);
    const char *type = tn_json_string(tn_json_need(v, "type"));
    if (tn_error() != TN_OK || !is(type, fits[t->kind])) return tn__unsupported(caller, "the decoder", type);
    const tn_json *own = tn_json_get(v, t->kind == TN_WORDPIECE ? "prefix" : "suffix");
    t->cleanup = tn_json_bool_or(tn_json_get(v, "cleanup"), true);
    if (t->kind == TN_BYTE_BPE || !own) return tn_error() == TN_OK;
    if (t->kind == TN_BPE && !*tn_json_string(own)) return tn__unsupported(caller, "the decoder's suffix", "");
    return affix(caller, own, t->affix, &t->affix_bytes);
}

tn_tokenizer *tn__tokenizer_read(const char *caller, const tn_json *v)
{
    const tn_json *model = tn_json_need(v, "model"), *added = tn_json_get(v, "added_tokens");
    const char    *type = tn_json_string(tn_json_need(model, "type"));
    if (tn_error() == TN_OK && !is(type, "WordPiece") && !is(type, "BPE") && !is(type, "Unigram"))
        tn__unsupported(caller, "the model", type);
    const tn_tokenizer_kind kind = is(type, "BPE") ? TN_BPE : is(type, "Unigram") ? TN_UNIGRAM : TN_WORDPIECE;
    tn_tokenizer           *t = tn_error() == TN_OK ? tn__tokenizer_new(kind) : NULL;
    if (!t) return NULL;
    if (read_split(t, caller, tn_json_get(v, "pre_tokenizer")) &&
        read_normalizer(t, caller, tn_json_get(v, "normalizer")) &&
        (t->split != TN__SPLIT_SENTENCE || tn__json_metaspace(t, caller, tn_json_get(v, "pre_tokenizer"))) &&
        read_vocab(t, caller, tn_json_need(model, "vocab"), added) && read_added(t, caller, added) &&
        read_model(t, caller, model) && tn__json_user_tokens(t, caller, tn_json_get(v, "pre_tokenizer")) &&
        tn__json_template(t, caller, tn_json_get(v, "post_processor")) &&
        read_decoder(t, caller, tn_json_get(v, "decoder")) && tn__tokenizer_finish(t, caller))
        return t;
    return tn_tokenizer_free(t), NULL;
}

tn_tokenizer *tn_tokenizer_parse(const char *json, size_t bytes)
{
    if (tn__blocked()) return NULL;
    tn_json      *v = tn_json_parse(json, bytes);
    tn_tokenizer *t = v ? tn__tokenizer_read("tn_tokenizer_parse", v) : NULL;
    tn_json_free(v);
    return t;
}
