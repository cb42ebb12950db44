/* decode.c — converts token ids to text: WordPiece appends a token inside a word and puts a space before any other; BPE
 * ends a word at the suffix; GPT-2's characters become their bytes; SentencePiece's "▁" becomes a space. The tokens of
 * a tokenizer.json are all decoded by its decoder, special and added ones, too; those of a .model or a GGUF by type. */
#include "data/tokenizer/encode/encoding_private.h"
#include "core/base/toolbox.h"

#include <string.h>

/* BERT's decoder writes no space before these. */
static bool closes_up(const char *piece, size_t n)
{
    static const char *const whole[] = {".", "?", "!", ","}, *const begin[] = {"n't", "'m", "'s", "'ve", "'re"};
    for (size_t i = 0; i < sizeof whole / sizeof *whole; i++)
        if (n >= 1 && piece[0] == whole[i][0]) return true;
    for (size_t i = 0; i < sizeof begin / sizeof *begin; i++)
        if (n >= strlen(begin[i]) && !memcmp(piece, begin[i], strlen(begin[i]))) return true;
    return false;
}

static bool add(tn_string *to, const char *text, size_t n) { return tn_string_add(to, (tn_text){text, n}) == TN_OK; }

/* Applies BERT's rules for spaces to the text from byte `first`: a token with a space in it, or the whole text. */
static void clean(tn_string *to, size_t first, bool tokens)
{
    static const char *const rule[][2] = {{" .", "."},   {" ?", "?"},     {" !", "!"},    {" ,", ","},
                                          {" ' ", "'"},  {" n't", "n't"}, {" 'm", "'m"},  {" do not", " don't"},
                                          {" 's", "'s"}, {" 've", "'ve"}, {" 're", "'re"}};
    for (size_t i = 0; i < sizeof rule / sizeof *rule; i++) {
        if (!tokens && !strcmp(rule[i][0], " do not")) continue;
        const size_t from = strlen(rule[i][0]), with = strlen(rule[i][1]), end = to->bytes;
        for (size_t at = to->bytes = first; at < end;) {
            if (end - at < from || memcmp(to->at + at, rule[i][0], from) != 0) {
                to->at[to->bytes++] = to->at[at++];
                continue;
            }
            memcpy(to->at + to->bytes, rule[i][1], with);
            to->bytes += with, at += from;
        }
    }
    to->at[to->bytes] = 0;
}

static bool add_word_piece(const tn_tokenizer *t, const char *piece, size_t n, bool first, bool spaces, tn_string *to)
{
    const size_t prefix = t->affix_bytes, before = to->bytes;
    const bool   inner = !first && n >= prefix && !memcmp(piece, t->affix, prefix), cleans = t->cleanup && !spaces;
    if (inner) piece += prefix, n -= prefix;
    const bool inside = cleans && memchr(piece, ' ', n), space = !first && !inner;
    if (space && (inside || !cleans || !closes_up(piece, n)) && !add(to, " ", 1)) return false;
    if (!add(to, piece, n)) return false;
    if (inside) clean(to, before, true);
    return true;
}

/* subword-nmt's suffix is at the end of a token; the decoder of a tokenizer.json replaces it everywhere. */
static bool add_suffixed(const tn_tokenizer *t, const char *piece, size_t n, bool last, tn_string *to)
{
    const size_t suffix = t->affix_bytes;
    for (size_t i = 0, k; i < n; i = k) {
        const bool here =
            n - i >= suffix && !memcmp(piece + i, t->affix, suffix) && (t->kind != TN_SUBWORD || n - i == suffix);
        for (k = here ? i + suffix : i + 1; !here && k < n && piece[k] != t->affix[0];) k++;
        if (!(here ? last || add(to, " ", 1) : add(to, piece + i, k - i))) return false;
    }
    return true;
}

/* Appends the token's bytes; one with a character that is not in GPT-2's alphabet is appended unchanged, and one that
 * is special by its type. */
static bool add_bytes(const char *piece, size_t n, bool special, tn_string *to)
{
    for (size_t at = 0; !special && at < n;) {
        const int byte = tn__char_to_byte(tn_utf8_next(piece, n, &at, NULL));
        special = byte < 0;
    }
    if (special) return add(to, piece, n);
    for (size_t at = 0; at < n;) {
        const char byte = (char)tn__char_to_byte(tn_utf8_next(piece, n, &at, NULL));
        if (!add(to, &byte, 1)) return false;
    }
    return true;
}

/* Returns the byte that a token is decoded to, or -1. */
static int byte_of(const tn_tokenizer *t, int32_t id, const char *piece, size_t n)
{
    const int byte = t->split == TN__SPLIT_SENTENCE && !t->joined ? tn__byte_of_token(piece, n) : -1;
    return byte >= 0 && (t->score ? t->byte_token[byte] == id : t->sentence.decode_bytes) ? byte : -1;
}

/* Appends a text in which "▁" is a space; first: of the first token. */
static bool add_spaces(const tn_tokenizer *t, const char *piece, size_t n, bool first, tn_string *to)
{
    for (size_t at = 0, end; at < n; at = end) {
        const bool space = n - at >= 3 && !memcmp(piece + at, TN__SPACE, 3);
        end = at + (space ? 3 : 1);
        while (!space && end < n && piece[end] != TN__SPACE[0]) end++;
        if (space && first && t->sentence.decode_first) continue;
        if (!(space ? add(to, " ", 1) : add(to, piece + at, end - at))) return false;
    }
    return true;
}

/* SentencePiece's kinds, of a tokenizer.json: all tokens are decoded like this one. */
static bool add_space_token(const tn_tokenizer *t, const char *piece, size_t n, bool *begun, tn_string *to)
{
    const bool   first = !*begun, space = n >= 3 && !memcmp(piece, TN__SPACE, 3);
    const size_t dropped = !first || !t->sentence.decode_space ? 0 : space ? 3 : *piece == ' ';
    *begun = true;
    return add_spaces(t, piece + dropped, n - dropped, first, to);
}

/* SentencePiece's kinds: "▁" is a space, except the one added before the text. */
static bool add_sentence(const tn_tokenizer *t, int32_t id, const char *piece, size_t n, bool *begun, tn_string *to)
{
    const tn__sentence *r = &t->sentence;
    const bool          first = !*begun, typed = t->score != NULL;
    const int           type = t->type ? t->type[id] : TN_TYPE_NORMAL, byte = byte_of(t, id, piece, n);
    if (byte >= 0) {
        const char c = (char)byte;
        *begun = true;
        return (first && !typed && r->decode_space && c == ' ') || add(to, &c, 1);
    }
    if (!typed) return add_space_token(t, piece, n, begun, to);
    if (type == TN_TYPE_CONTROL || tn_tokenizer_is_special(t, id)) return *begun = true, add(to, piece, n);
    if (type == TN_TYPE_UNKNOWN) return *begun = *begun || r->unknown_bytes, add(to, r->unknown, r->unknown_bytes);
    if (first && r->decode_space && n >= 3 && !memcmp(piece, TN__SPACE, 3)) piece += 3, n -= 3, *begun = !r->decode_all;
    if (n) *begun = true;
    return add_spaces(t, piece, n, false, to);
}

static bool skipped(const tn_tokenizer *t, int32_t id, const tn_decode_args *o)
{
    return !o->keep_special && tn_tokenizer_is_special(t, id);
}

/* Appends the text of one token, which may end in half a character. last: no token follows. */
static bool add_one(const tn_tokenizer *t, int32_t id, const tn_decode_args *o, bool *begun, bool last, tn_string *to)
{
    size_t      n;
    const char *piece = tn__strings_text(&t->vocab, (uint32_t)id, &n);
    if (!*piece) return true; /* an id without a token */
    if (t->split == TN__SPLIT_SENTENCE && !t->joined) return add_sentence(t, id, piece, n, begun, to);
    const bool first = !*begun;
    *begun = true;
    if (t->joined) return (first || add(to, " ", 1)) && add(to, piece, n);
    if (t->kind == TN_WORDPIECE) return add_word_piece(t, piece, n, first, o->keep_spaces, to);
    if (t->kind == TN_BPE || t->kind == TN_SUBWORD) return add_suffixed(t, piece, n, last, to);
    return add_bytes(piece, n, t->type && tn_tokenizer_is_special(t, id), to);
}

/* Appends the byte tokens from ids[i]: their text, or a U+FFFD for each of them if they are not UTF-8, as in Hugging
 * Face's library. Returns the index after the last one; i: there are none; -1: raised. */
static int64_t add_byte_run(const tn_tokenizer *t, const int32_t *ids, int64_t i, int64_t last, const tn_decode_args *o,
                            bool *begun, tn_string *to)
{
    const size_t before = to->bytes;
    for (; i <= last && !t->score; i++) {
        size_t      n;
        const char *piece = tn__strings_text(&t->vocab, (uint32_t)ids[i], &n);
        const int   byte = skipped(t, ids[i], o) ? -1 : byte_of(t, ids[i], piece, n);
        const char  c = (char)byte;
        if (byte < 0 && !skipped(t, ids[i], o)) break;
        if (byte >= 0 && !add(to, &c, 1)) return -1;
    }
    const size_t n = to->bytes - before;
    if (tn_utf8_valid(to->at + before, n) < n) {
        to->bytes = before;
        for (size_t k = 0; k < n; k++)
            if (!add(to, "\xef\xbf\xbd", 3)) return -1;
    } else if (n && !*begun && t->sentence.decode_space && to->at[before] == ' ') {
        memmove(to->at + before, to->at + before + 1, n);
        to->bytes--;
    }
    if (n) *begun = true;
    return i;
}

/* Appends the tokens up to ids[last]. */
static bool add_tokens(const tn_tokenizer *t, const int32_t *ids, int64_t last, const tn_decode_args *o, tn_string *to)
{
    bool begun = false;
    for (int64_t i = 0; i <= last; i++) {
        if (t->split == TN__SPLIT_SENTENCE) i = add_byte_run(t, ids, i, last, o, &begun, to);
        if (i < 0) return false;
        if (i > last || skipped(t, ids[i], o)) continue;
        if (!add_one(t, ids[i], o, &begun, i == last, to)) return false;
    }
    return true;
}

static bool id_in_range(const tn_tokenizer *t, const char *caller, int64_t i, int32_t id)
{
    if (id >= 0 && (uint32_t)id < t->vocab.n) return true;
    return tn_raise_false(TN_EINDEX, "%s: ids[%lld] is %d, expected a token id from 0 to %lld", caller, (long long)i,
                          id, (long long)t->vocab.n - 1);
}

tn_status tn_tokenizer_decode_run(const tn_tokenizer *t, const int32_t *ids, int64_t n, tn_decode_args o, tn_string *to)
{
    if (tn__blocked()) return tn__self.error;
    const char *caller = "tn_tokenizer_decode";
    if (!t || !to || (n && !ids) || n < 0)
        return tn_raise(TN_EINVAL, "%s: %s", caller, n < 0 ? "n is negative" : "a pointer is NULL");
    int64_t last = -1;
    for (int64_t i = 0; i < n; i++) {
        if (!id_in_range(t, caller, i, ids[i])) return tn__self.error;
        if (!skipped(t, ids[i], &o)) last = i;
    }
    const size_t before = to->bytes;
    const bool   bytes = t->kind == TN_BYTE_BPE || t->split == TN__SPLIT_SENTENCE;
    tn_string    raw = {0}; /* bytes that may not be UTF-8; converted at the end */
    bool         ok = add(to, "", 0) && add(&raw, "", 0);
    ok = ok && add_tokens(t, ids, last, &o, bytes ? &raw : to);
    if (ok && raw.bytes) ok = tn_string_add_valid(to, (tn_text){raw.at, raw.bytes}) >= 0;
    tn_string_free(&raw);
    if (ok && t->clean_up && !o.keep_spaces) clean(to, before, false);
    if (!ok && to->at) to->at[to->bytes = before] = 0;
    return tn__self.error;
}

/* ---- one token at a time ----------------------------------------------------------------------------------------- */

/* Returns the number of bytes at the end of n that start an incomplete character. */
static size_t open_end(const char *text, size_t n)
{
    for (size_t back = 1; back <= 3 && back <= n; back++) {
        const unsigned char b = (unsigned char)text[n - back];
        if ((b & 0xc0) == 0x80) continue;
        const size_t whole = b < 0xc2 ? 1 : b < 0xe0 ? 2 : b < 0xf0 ? 3 : b < 0xf5 ? 4 : 1;
        if (whole <= back) return 0;
        size_t at = n - back; /* the bytes must be a prefix of a valid character: one maximal part */
        tn_utf8_next(text, n, &at, NULL);
        return at == n ? back : 0;
    }
    return 0;
}

tn_status tn_tokenizer_decode_next(const tn_tokenizer *t, tn_text_stream *d, int32_t id, tn_string *to)
{
    if (tn__blocked()) return tn__self.error;
    const char *caller = "tn_tokenizer_decode_next";
    if (!t || !d || !to) return tn_raise(TN_EINVAL, "%s: a pointer is NULL", caller);
    if (d->bytes < 0 || d->bytes > 4) return tn_raise(TN_EINVAL, "%s: d was not initialised with zeros", caller);
    if (!id_in_range(t, caller, 0, id)) return tn__self.error;
    const tn_decode_args o = {TN_NO_DEFAULTS_};
    if (skipped(t, id, &o)) return tn_string_add(to, (tn_text){"", 0}); /* a text, though empty */
    tn_text_stream next = *d;
    const size_t   before = to->bytes;
    tn_string      raw = {0};
    bool           ok = add(to, "", 0) && add(&raw, d->held, (size_t)d->bytes);
    ok = ok && add_one(t, id, &o, &next.begun, false, &raw);
    size_t held = ok ? open_end(raw.at, raw.bytes) : 0;
    if ((t->kind == TN_BPE || t->kind == TN_SUBWORD) && !t->joined && ok && raw.bytes && raw.at[raw.bytes - 1] == ' ')
        held = 1; /* until a word follows */
    if (ok) {
        next.bytes = (int)held;
        memcpy(next.held, raw.at + raw.bytes - held, held);
        ok = tn_string_add_valid(to, (tn_text){raw.at, raw.bytes - held}) >= 0;
    }
    tn_string_free(&raw);
    if (ok) *d = next;
    else if (to->at) to->at[to->bytes = before] = 0;
    return tn__self.error;
}

tn_status tn_tokenizer_decode_end(tn_text_stream *d, tn_string *to)
{
    if (tn__blocked()) return tn__self.error;
    if (!d || !to || d->bytes < 0 || d->bytes > 4)
        return tn_raise(TN_EINVAL, "tn_tokenizer_decode_end: %s",
                        d && to ? "d was not initialised with zeros" : "NULL");
    const bool half = d->bytes > 0 && d->held[0] != ' ';
    if (half && tn_string_add_valid(to, (tn_text){d->held, (size_t)d->bytes}) < 0) return tn__self.error;
    *d = (tn_text_stream){0};
    return TN_OK;
}
