/* decode.c — converts token ids to text: WordPiece appends a token inside a word and puts a space before any other; BPE
 * ends a word at the suffix; GPT-2's characters become their bytes; SentencePiece's "▁" becomes a space. */
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

static bool add_word_piece(const tn_tokenizer *t, const char *piece, size_t n, bool first, bool spaces, tn_string *to)
{
    const size_t prefix = t->prefix_bytes;
    if (first) return add(to, piece, n);
    if (prefix && n >= prefix && !memcmp(piece, t->prefix, prefix)) return add(to, piece + prefix, n - prefix);
    if ((spaces || !t->cleanup || !closes_up(piece, n)) && !add(to, " ", 1)) return false;
    return add(to, piece, n);
}

static bool add_suffixed(const tn_tokenizer *t, const char *piece, size_t n, bool last, tn_string *to)
{
    const size_t suffix = t->suffix_bytes;
    if (!suffix || n < suffix || memcmp(piece + n - suffix, t->suffix, suffix) != 0) return add(to, piece, n);
    return add(to, piece, n - suffix) && (last || add(to, " ", 1));
}

/* Appends the token's bytes; a special token is appended unchanged. */
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

/* SentencePiece's kinds: "▁" is a space, except the one added before the text. */
static bool add_sentence(const tn_tokenizer *t, int32_t id, const char *piece, size_t n, bool *begun, tn_string *to)
{
    const tn__sentence *r = &t->sentence;
    const int           type = t->type ? t->type[id] : TN_TYPE_NORMAL, byte = tn__byte_of_token(piece, n);
    if (byte >= 0 && t->byte_token[byte] == id) {
        const char c = (char)byte;
        return *begun = true, add(to, &c, 1);
    }
    if (type == TN_TYPE_CONTROL || tn_tokenizer_is_special(t, id)) return *begun = true, add(to, piece, n);
    if (type == TN_TYPE_UNKNOWN) return *begun = true, add(to, r->unknown, r->unknown_bytes);
    if (!*begun && r->decode_space && n >= 3 && !memcmp(piece, TN__SPACE, 3))
        piece += 3, n -= 3, *begun = !r->decode_all;
    if (n) *begun = true;
    for (size_t at = 0, end; at < n; at = end) {
        const bool space = n - at >= 3 && !memcmp(piece + at, TN__SPACE, 3);
        end = at + (space ? 3 : 1);
        while (!space && end < n && piece[end] != TN__SPACE[0]) end++;
        if (!(space ? add(to, " ", 1) : add(to, piece + at, end - at))) return false;
    }
    return true;
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
    if (t->split == TN__SPLIT_SENTENCE && !t->joined) return add_sentence(t, id, piece, n, begun, to);
    const bool first = !*begun;
    *begun = true;
    if (t->joined) return (first || add(to, " ", 1)) && add(to, piece, n);
    if (t->kind == TN_WORDPIECE) return add_word_piece(t, piece, n, first, o->keep_spaces, to);
    if (t->suffix_bytes || t->kind == TN_BPE) return add_suffixed(t, piece, n, last, to);
    return add_bytes(piece, n, tn_tokenizer_is_special(t, id), to);
}

static bool id_in_range(const tn_tokenizer *t, const char *caller, int64_t i, int32_t id)
{
    if (id >= 0 && (uint32_t)id < t->vocab.n) return true;
    tn_raise(TN_EINDEX, "%s: ids[%lld] is %d, expected a token id from 0 to %lld", caller, (long long)i, id,
             (long long)t->vocab.n - 1);
    return false;
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
    bool         begun = false, ok = tn_string_add(to, (tn_text){"", 0}) == TN_OK;
    for (int64_t i = 0; ok && i <= last; i++)
        if (!skipped(t, ids[i], &o)) ok = add_one(t, ids[i], &o, &begun, i == last, bytes ? &raw : to);
    if (ok && raw.bytes) ok = tn_string_add_valid(to, (tn_text){raw.at, raw.bytes}) >= 0;
    tn_string_free(&raw);
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
