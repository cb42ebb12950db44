/* gguf_limits.c — the rules of a tokenizer that GGUF cannot express, or that llama.cpp does not follow: a GGUF file
 * without them would give other tokens for a text. */
#include "data/tokenizer/files/tokenizer_files.h"
#include "core/base/toolbox.h"

#include <string.h>

/* ---- GPT-2's kind ------------------------------------------------------------------------------------------------ */

/* True if the merges make this token of its characters: then it does not matter whether words are looked up first. */
static bool is_made(const tn_tokenizer *t, uint32_t id)
{
    enum { MOST = 512 };
    int32_t     part[MOST];
    size_t      n, parts = 0;
    const char *text = tn__strings_text(&t->vocab, id, &n);
    for (size_t at = 0, next = 0; at < n && parts < MOST; at = next) {
        tn_utf8_next(text, n, &next, NULL);
        const int64_t letter = tn__strings_find(&t->vocab, text + at, next - at);
        if (letter < 0) return false;
        part[parts++] = (int32_t)letter;
    }
    for (size_t best = 0; parts > 1 && best < parts;) {
        int64_t least = -1;
        best = parts;
        for (size_t i = 0; i + 1 < parts; i++) {
            const int64_t rank = tn__merge_rank(&t->merges, part[i], part[i + 1]);
            if (rank >= 0 && (least < 0 || rank < least)) least = rank, best = i;
        }
        if (best == parts) break;
        part[best] = t->merges.becomes[least];
        memmove(part + best + 1, part + best + 2, (parts-- - best - 2) * sizeof *part);
    }
    return parts == 1 && part[0] == (int32_t)id;
}

/* True if llama.cpp would look up words differently with a different result: of these splitters it looks up words for
 * llama-bpe alone, the second. */
static bool differs_in_lookup(const tn_tokenizer *t)
{
    if (t->whole_words == (t->bytes.splitter == 1)) return false;
    uint8_t *added = tn__mem_zeroed(t->vocab.n);
    bool     made = added != NULL;
    for (uint32_t i = 0; made && i < t->added.n; i++) added[t->added.token[i].id] = 1;
    for (uint32_t i = 0; made && i < t->vocab.n; i++) made = added[i] || !*tn_tokenizer_token(t, i) || is_made(t, i);
    tn__mem_put(added, added ? t->vocab.n : 0);
    return !made;
}

static const char *byte_rule(const tn_tokenizer *t)
{
    /* llama.cpp's converter omits Qwen2's NFC, too; a text that is not composed is rare. */
    const bool nfc = t->bytes.splitter == 2 && t->steps == 1 && t->step[0].kind == TN__STEP_FORM &&
                     !strcmp(tn__step_name(t->step), "NFC");
    if (t->steps && !nfc) return tn__step_name(t->step);
    if (t->bytes.prefix_space) return "add_prefix_space";
    if (!t->bytes.regex) return "use_regex";
    if (t->prefix_bytes) return "continuing_subword_prefix";
    if (t->suffix_bytes) return "end_of_word_suffix";
    return differs_in_lookup(t) ? "ignore_merges" : NULL;
}

/* ---- SentencePiece's kind ---------------------------------------------------------------------------------------- */

/* True if a token has a "▁" after another character. */
static bool crosses_space(const tn_tokenizer *t)
{
    for (uint32_t i = 0; i < t->vocab.n; i++) {
        const char *text = tn_tokenizer_token(t, i);
        if (*text && strstr(text + 1, TN__SPACE)) return true;
    }
    return false;
}

/* llama.cpp's converter also omits that a space is added only before the first part of a text, and not before one that
 * starts with a space: texts without special tokens and leading spaces give the same result. */
static const char *sentence_rule(const tn_tokenizer *t)
{
    bool escapes = t->sentence.escape;
    if (t->charsmap.units) return "precompiled_charsmap";
    if (t->sentence.squeeze) return "remove_extra_whitespaces";
    for (int i = 0; i < t->steps; i++) {
        const tn__step *s = t->step + i;
        const bool replaces = s->kind == TN__STEP_REPLACE && !strcmp(s->pattern, " ") && !strcmp(s->content, TN__SPACE),
                   prepends = s->kind == TN__STEP_PREPEND && !strcmp(s->content, TN__SPACE);
        if (s->kind != TN__STEP_SENTENCE && !replaces && !prepends) return tn__step_name(s);
        escapes = escapes || !prepends;
    }
    if (!escapes) return "pre_tokenizer";
    if (t->sentence.words) return "WhitespaceSplit";
    if (t->sentence.cut && crosses_space(t)) return "Metaspace";
    return t->whole_words ? "ignore_merges" : NULL;
}

/* ---- both kinds -------------------------------------------------------------------------------------------------- */

/* True if the template is at most the first token before a text and the last token after it. */
static bool has_simple_template(const tn_tokenizer *t)
{
    int i = 0;
    if (i < t->single.n && t->single.part[i].text < 0 && t->single.part[i].id == t->role.first) i++;
    if (i == t->single.n || t->single.part[i++].text != 0) return false;
    if (i < t->single.n && t->single.part[i].text < 0 && t->single.part[i].id == t->role.last) i++;
    return i == t->single.n;
}

const char *tn__gguf_missing_rule(const tn_tokenizer *t)
{
    for (uint32_t i = 0; i < t->added.n; i++) {
        const tn__added *a = t->added.token + i;
        if (!a->hidden && (a->left || a->right || a->word))
            return a->word ? "single_word" : a->left ? "lstrip" : "rstrip";
    }
    if (!has_simple_template(t)) return "post_processor";
    return t->kind == TN_BYTE_BPE ? byte_rule(t) : sentence_rule(t);
}
