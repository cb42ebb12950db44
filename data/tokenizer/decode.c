/* decode.c — numbers back to text: WordPiece joins what goes on and puts a space before what does not; BPE ends a word
 * at its suffix; GPT-2's letters become their bytes again. */
#include "data/tokenizer/tokenizer_private.h"
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
    if ((spaces || !closes_up(piece, n)) && !add(to, " ", 1)) return false;
    return add(to, piece, n);
}

static bool add_suffixed(const tn_tokenizer *t, const char *piece, size_t n, bool last, tn_string *to)
{
    const size_t suffix = t->suffix_bytes;
    if (!suffix || n < suffix || memcmp(piece + n - suffix, t->suffix, suffix) != 0) return add(to, piece, n);
    return add(to, piece, n - suffix) && (last || add(to, " ", 1));
}

/* The piece's bytes; a special token is spelled as it is. */
static bool add_bytes(const char *piece, size_t n, bool special, tn_string *to)
{
    for (size_t at = 0; !special && at < n;) {
        const int byte = tn__letter_byte(tn_utf8_next(piece, n, &at, NULL));
        special = byte < 0;
    }
    if (special) return add(to, piece, n);
    for (size_t at = 0; at < n;) {
        const char byte = (char)tn__letter_byte(tn_utf8_next(piece, n, &at, NULL));
        if (!add(to, &byte, 1)) return false;
    }
    return true;
}

static bool skipped(const tn_tokenizer *t, int32_t id, const tn_decode_args *o)
{
    return !o->keep_special && tn_tokenizer_is_special(t, id);
}

tn_status tn_tokenizer_decode_run(const tn_tokenizer *t, const int32_t *ids, int64_t n, tn_decode_args o, tn_string *to)
{
    if (tn__blocked()) return tn__self.error;
    const char *who = "tn_tokenizer_decode";
    if (!t || !to || (n && !ids) || n < 0)
        return tn_raise(TN_EINVAL, "%s: %s", who, n < 0 ? "n is negative" : "a pointer is NULL");
    int64_t last = -1;
    for (int64_t i = 0; i < n; i++) {
        if (ids[i] < 0 || (uint32_t)ids[i] >= t->pieces.n)
            return tn_raise(TN_EINDEX, "%s: number %lld is %d, but the pieces have numbers from 0 to %lld", who,
                            (long long)i, ids[i], (long long)t->pieces.n - 1);
        if (!skipped(t, ids[i], &o)) last = i;
    }
    const size_t before = to->bytes;
    tn_string    raw = {0}; /* of bytes: made UTF-8 at the end */
    bool         first = true, ok = tn_string_add(to, (tn_text){"", 0}) == TN_OK;
    for (int64_t i = 0; ok && i <= last; i++) {
        if (skipped(t, ids[i], &o)) continue;
        size_t      bytes;
        const char *piece = tn__strings_text(&t->pieces, (uint32_t)ids[i], &bytes);
        if (t->kind == TN_WORDPIECE) ok = add_word_piece(t, piece, bytes, first, o.keep_spaces, to);
        else if (t->kind == TN_BPE) ok = add_suffixed(t, piece, bytes, i == last, to);
        else ok = add_bytes(piece, bytes, tn_tokenizer_is_special(t, ids[i]), &raw);
        first = false;
    }
    if (ok && raw.bytes) ok = tn_string_add_valid(to, (tn_text){raw.at, raw.bytes}) >= 0;
    tn_string_free(&raw);
    if (!ok && to->at) to->at[to->bytes = before] = 0;
    return tn__self.error;
}
