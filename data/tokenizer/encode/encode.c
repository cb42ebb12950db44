/* encode.c — encodes one or two texts: makes them UTF-8, cuts them at special tokens, splits them into words and these
 * into tokens; then cuts to length, applies the template, and pads. */
#include "data/tokenizer/encode/encoding_private.h"
#include "data/text/unicode.h"
#include "core/base/toolbox.h"

#include <string.h>

/* ---- any bytes as UTF-8 ------------------------------------------------------------------------------------------ */

/* Writes to s->clean the text with U+FFFD for invalid UTF-8, and to s->fix how to find a byte's offset in the text. */
static bool make_valid(tn__encoding *s, const char *text, size_t bytes, bool each_byte)
{
    s->clean.bytes = 0, s->fixes = 0;
    for (size_t at = 0; at < bytes;) {
        const size_t good = tn_utf8_valid(text + at, bytes - at);
        if (tn_string_add(&s->clean, (tn_text){text + at, good}) != TN_OK) return false;
        at += good;
        if (at == bytes) break;
        if (each_byte) at++;
        else tn_utf8_next(text, bytes, &at, NULL);
        if (!tn__grown((void *)&s->fix, &s->fix_room, 2 * (int64_t)s->fixes + 2, sizeof *s->fix)) return false;
        if (tn_string_add(&s->clean, (tn_text){"\xef\xbf\xbd", 3}) != TN_OK) return false;
        s->fix[2 * s->fixes] = (int32_t)s->clean.bytes;
        s->fix[2 * s->fixes++ + 1] = (int32_t)(s->clean.bytes - at);
    }
    return true;
}

/* Converts an offset in s->clean to one in the text. Inside a replacement: its start. */
static int32_t fixed(const tn__encoding *s, int32_t at)
{
    size_t low = 0, high = s->fixes; /* the fixes before `low` end at or before `at` */
    while (low < high) {
        const size_t middle = (low + high) / 2;
        if (s->fix[2 * middle] <= at) low = middle + 1;
        else high = middle;
    }
    if (low < s->fixes && at > s->fix[2 * low] - 3) at = s->fix[2 * low] - 3;
    return low ? at - s->fix[2 * low - 1] : at;
}

/* ---- encoding one text ------------------------------------------------------------------------------------------- */

/* subword-nmt's words: between spaces (U+0020) and line ends. */
static bool blank_words(const tn_tokenizer *t, tn__encoding *s, const char *text, int32_t from, int32_t to,
                        int32_t *number)
{
    for (int32_t at = from, end; at < to; at = end + 1) {
        for (end = at; end < to && text[end] != ' ' && text[end] != '\r' && text[end] != '\n';) end++;
        const tn__word w = {text + at, (size_t)(end - at), 0, at, end, *number};
        if (end > at && (++*number, !tn__encode_word(t, s, &w))) return false;
    }
    return true;
}

/* Marian: a text starts with the code of the target language, ">>fra<<". */
static bool language_code(const tn_tokenizer *t, tn__encoding *s, const char *text, int32_t *from, int32_t to,
                          int32_t *number)
{
    int32_t end = *from;
    if (to - *from < 4 || memcmp(text + *from, ">>", 2) != 0) return true;
    while (end + 2 <= to && memcmp(text + end, "<<", 2) != 0) end++;
    if (end + 2 > to) return true;
    end += 2;
    const size_t   n = (size_t)(end - *from);
    const int64_t  id = tn__strings_find(&t->vocab, text + *from, n);
    const tn__word w = {text + *from, n, 0, *from, end, (*number)++};
    *from = end;
    return tn__token_add(s, &w, id >= 0 && id < t->listed ? (int32_t)id : t->unlisted, 0, n);
}

static bool words(const tn_tokenizer *t, tn__encoding *s, const char *text, int32_t from, int32_t to, int32_t *number)
{
    if (from >= to) return true;
    if (t->split == TN__SPLIT_BYTES) return tn__byte_words(t, s, text, from, to, number);
    if (t->codes && !language_code(t, s, text, &from, to, number)) return false;
    if (t->split == TN__SPLIT_SENTENCE) return from >= to || tn__sentence_words(t, s, text, from, to, number);
    if (t->split == TN__SPLIT_BLANK) return blank_words(t, s, text, from, to, number);
    return t->bert.slow ? tn__bert_words_slow(t, s, text, from, to, number)
                        : tn__bert_words(t, s, text, from, to, number);
}

bool tn__each_word(const tn_tokenizer *t, tn_encoding *e, const char *text, size_t bytes, tn__word_sink sink,
                   void *user)
{
    tn__encoding *s = (tn__encoding *)(void *)e;
    int32_t       number = 0;
    s->sink = sink, s->user = user;
    if (tn_utf8_valid(text, bytes) == bytes) return words(t, s, text, 0, (int32_t)bytes, &number);
    return make_valid(s, text, bytes, t->sentence.each_byte) &&
           words(t, s, s->clean.at, 0, (int32_t)s->clean.bytes, &number);
}

/* Returns the longest added token at text[at], or NULL. */
static const tn__added *added_at(const tn_tokenizer *t, bool normalized, const char *text, int32_t at, int32_t to,
                                 size_t *bytes)
{
    int32_t id;
    if (!t->added.first[normalized][(unsigned char)text[at]]) return NULL;
    *bytes = tn__trie_longest(&t->added.text[normalized], text + at, (size_t)(to - at), &id);
    return *bytes ? tn__added_as(t, id) : NULL;
}

/* The class \w of a regex. */
static bool in_word(uint32_t c)
{
    const int k = tn__category(c);
    return tn__is_letter(k) || k == UTF8PROC_CATEGORY_ND || k == UTF8PROC_CATEGORY_NL || k == UTF8PROC_CATEGORY_PC ||
           (k >= UTF8PROC_CATEGORY_MN && k <= UTF8PROC_CATEGORY_ME) || c == 0x200c || c == 0x200d ||
           (c >= 0x24b6 && c <= 0x24e9) || (c >= 0x1f130 && c <= 0x1f149) || (c >= 0x1f150 && c <= 0x1f169) ||
           (c >= 0x1f170 && c <= 0x1f189);
}

/* Returns the code point before text[at]; *begin: its offset. */
static uint32_t before(const char *text, int32_t at, int32_t *begin)
{
    size_t i = (size_t)at - 1;
    while (i > 0 && ((unsigned char)text[i] & 0xc0) == 0x80) i--;
    *begin = (int32_t)i;
    return tn_utf8_next(text, (size_t)at, &i, NULL);
}

static uint32_t after(const char *text, int32_t at, int32_t bytes, int32_t *end)
{
    size_t         i = (size_t)at;
    const uint32_t c = tn_utf8_next(text, (size_t)bytes, &i, NULL);
    *end = (int32_t)i;
    return c;
}

/* Splits a part of a text between special tokens into words. */
typedef bool (*split_rest)(const tn_tokenizer *, tn__encoding *, const char *, int32_t, int32_t, int32_t *);

static bool split_at(const tn_tokenizer *t, tn__encoding *s, const char *text, int32_t from, int32_t to,
                     int32_t *number, bool normalized, split_rest rest)
{
    const int32_t first = from;
    int32_t       next;
    for (int32_t at = from; at < to;) {
        size_t           n = 0;
        const tn__added *a = added_at(t, normalized, text, at, to, &n);
        if (!a) {
            at++;
            continue;
        }
        int32_t begin = at, end = at + (int32_t)n;
        if (a->special && s->literal) {
            at = end;
            continue;
        }
        if (a->word && ((begin > first && in_word(before(text, begin, &next))) ||
                        (end < to && in_word(after(text, end, to, &next))))) {
            at = end;
            continue;
        }
        while (a->left && begin > from && tn__is_space(before(text, begin, &next))) begin = next;
        if (a->left && begin < from) begin = from;
        while (a->right && end < to && tn__is_space(after(text, end, to, &next))) end = next;
        if (!rest(t, s, text, from, begin, number)) return false;
        const tn__word w = {text + begin, (size_t)(end - begin), 0, begin, end, *number};
        if (begin < end && (++*number, !tn__token_add(s, &w, a->id, 0, w.bytes))) return false;
        from = end, at += (int32_t)n; /* a token that starts in the white space that this one takes is found, too */
    }
    return rest(t, s, text, from, to, number);
}

static bool split_at_normalized(const tn_tokenizer *t, tn__encoding *s, const char *text, int32_t from, int32_t to,
                                int32_t *number)
{
    return split_at(t, s, text, from, to, number, true, words);
}

static bool segments(const tn_tokenizer *t, tn__encoding *s, const char *text, int32_t bytes)
{
    int32_t number = 0;
    if (!t->added.n) return words(t, s, text, 0, bytes, &number);
    return split_at(t, s, text, 0, bytes, &number, false, t->added.any_normalized ? split_at_normalized : words);
}

static bool one_text(const tn_tokenizer *t, tn__encoding *s, const char *text, size_t bytes, const tn_encode_args *o)
{
    if (!text && bytes) return tn_raise_false(TN_EINVAL, "tn_tokenizer_encode: the text is NULL");
    if (bytes > INT32_MAX / 4)
        return tn_raise_false(TN_EINVAL,
                              "tn_tokenizer_encode: the text has %zu bytes, more than %d; encode it in parts", bytes,
                              INT32_MAX / 4);
    const size_t good = bytes ? tn_utf8_valid(text, bytes) : 0, before = s->tokens;
    if (good == bytes) return segments(t, s, text, (int32_t)bytes);
    if (o->strict)
        return tn_raise_false(TN_EFORMAT, "tn_tokenizer_encode: byte %zu of the text is not UTF-8 (0x%02x)", good,
                              (unsigned)(unsigned char)text[good]);
    if (!make_valid(s, text, bytes, t->sentence.each_byte) || !segments(t, s, s->clean.at, (int32_t)s->clean.bytes))
        return false;
    for (size_t i = before; i < s->tokens; i++) {
        s->token[i].start = fixed(s, s->token[i].start);
        s->token[i].end = fixed(s, s->token[i].end);
    }
    s->result.invalid += (int64_t)s->fixes;
    return true;
}

/* ---- the result -------------------------------------------------------------------------------------------------- */

typedef struct {
    const tn__token *token;
    int64_t          n;
} part;

/* Cuts both texts to `most` tokens together. */
static bool cut(part text[2], int64_t most, const tn_encode_args *o)
{
    int64_t keep[2] = {text[0].n, text[1].n}, over = keep[0] + keep[1] - most;
    if (over <= 0) return true;
    if (o->cut == TN_CUT_LONGEST) {
        const int     small = keep[0] > keep[1];
        const int64_t half = most / 2;
        if (keep[small] <= half) {
            keep[!small] = most - keep[small];
        } else {
            keep[small] = half, keep[!small] = most - half;
        }
    } else {
        const int which = o->cut == TN_CUT_SECOND;
        keep[which] -= over;
        if (keep[which] < 0)
            return tn_raise_false(TN_EINVAL,
                                  "tn_tokenizer_encode: the %s text has %lld tokens, but %lld must be removed to fit "
                                  ".max_length, which is %lld; cut the other text, too",
                                  which ? "second" : "first", (long long)text[which].n, (long long)over,
                                  (long long)o->max_length);
    }
    for (int i = 0; i < 2; i++) {
        if (o->cut_left) text[i].token += text[i].n - keep[i];
        text[i].n = keep[i];
    }
    return true;
}

typedef struct {
    int32_t *id, *start, *end, *word;
    uint8_t *segment, *special;
    int64_t  at;
} result_arrays;

static void put_token(result_arrays *to, tn__token token, uint8_t segment, uint8_t special)
{
    const int64_t i = to->at++;
    to->id[i] = token.id, to->start[i] = token.start, to->end[i] = token.end, to->word[i] = token.word;
    to->segment[i] = segment, to->special[i] = special;
}

static void pad(result_arrays *to, int64_t n, int32_t id)
{
    for (int64_t i = 0; i < n; i++) put_token(to, (tn__token){id, 0, 0, -1}, 0, TN_TOKEN_PADDING);
}

static bool frame(const tn_tokenizer *t, tn__encoding *s, part text[2], const tn_encode_args *o)
{
    static const tn__template_part bare[2] = {{.text = 0, .segment = 0}, {.text = 1, .segment = 1}};
    const tn__template_part *template = o->bare ? bare : o->pair ? t->pair.part : t->single.part;
    const int parts = o->bare ? 1 + (o->pair != NULL) : o->pair ? t->pair.n : t->single.n;
    int64_t   extra = 0, n = text[0].n + text[1].n;
    for (int i = 0; i < parts; i++) extra += template[i].text < 0;
    if (o->max_length && o->max_length < extra)
        return tn_raise_false(TN_EINVAL,
                              "tn_tokenizer_encode: .max_length is %lld, but the template alone adds %lld tokens",
                              (long long)o->max_length, (long long)extra);
    if (o->max_length && !cut(text, o->max_length - extra, o)) return false;
    s->result.cut = n - text[0].n - text[1].n;
    n = text[0].n + text[1].n + extra;
    const int64_t padding = o->pad_to > n ? o->pad_to - n : 0;
    if (padding && t->role.pad < 0)
        return tn_raise_false(TN_EINVAL,
                              "tn_tokenizer_encode: .pad_to is set, but this tokenizer has no padding token");

    const size_t total = (size_t)(n + padding), bytes = (total + 3) / 4;
    if (!tn__grown((void *)&s->arrays, &s->array_room, (int64_t)(4 * total + 2 * bytes) + 1, sizeof *s->arrays))
        return false;
    int32_t      *a = s->arrays;
    result_arrays to = {.id = a, .start = a + total, .end = a + 2 * total, .word = a + 3 * total};
    to.segment = (uint8_t *)(a + 4 * total), to.special = to.segment + 4 * bytes;
    if (o->pad_left) pad(&to, padding, t->role.pad);
    for (int i = 0; i < parts; i++) {
        const tn__template_part *p = template + i;
        if (p->text < 0) put_token(&to, (tn__token){p->id, 0, 0, -1}, p->segment, TN_TOKEN_FROM_TEMPLATE);
        for (int64_t k = 0; p->text >= 0 && k < text[p->text].n; k++)
            put_token(&to, text[p->text].token[k], p->segment, TN_TOKEN_FROM_TEXT);
    }
    if (!o->pad_left) pad(&to, padding, t->role.pad);
    tn_encoding *e = &s->result;
    e->n = to.at, e->id = to.id, e->start = to.start, e->end = to.end, e->word = to.word;
    e->segment = to.segment, e->special = to.special;
    return true;
}

static bool args_fit(const tn_tokenizer *t, const tn_encode_args *o)
{
    if (o->max_length < 0 || o->pad_to < 0 || o->pad_to > INT32_MAX)
        return tn_raise_false(TN_EINVAL, "tn_tokenizer_encode: %s is %lld, expected 0 (none) to %d",
                              o->max_length < 0 ? ".max_length" : ".pad_to",
                              (long long)(o->max_length < 0 ? o->max_length : o->pad_to), INT32_MAX);
    if ((o->sample != 0 || o->nth) && (t->kind != TN_UNIGRAM || t->sentence.cut || !(o->sample >= 0) || o->nth < 0))
        return tn_raise_false(
            TN_EINVAL, "tn_tokenizer_encode: .sample and .nth must be 0 or more, and are for TN_UNIGRAM of a .model");
    if (o->pairs || (o->pair_bytes && !o->pair) || (unsigned)o->cut > TN_CUT_SECOND)
        return tn_raise_false(TN_EINVAL, o->pairs ? "tn_tokenizer_encode: .pairs is for tn_tokenizer_batch; use .pair"
                                         : o->pair_bytes && !o->pair
                                             ? "tn_tokenizer_encode: .pair_bytes is set, but .pair is NULL"
                                             : "tn_tokenizer_encode: .cut is not a tn_cut");
    return true;
}

tn_status tn_tokenizer_encode_run(const tn_tokenizer *t, tn_encoding *e, const char *text, size_t bytes,
                                  tn_encode_args o)
{
    if (tn__blocked()) return tn__self.error;
    if (!t || !e) return tn_raise(TN_EINVAL, "tn_tokenizer_encode: %s is NULL", t ? "e" : "t");
    if (!args_fit(t, &o)) return tn__self.error;
    tn__encoding *s = (tn__encoding *)(void *)e;
    s->result = (tn_encoding){0}, s->tokens = 0;
    s->literal = o.literal || t->literal;
    s->sample = o.sample, s->seed = o.seed, s->drawn = 0, s->nth = o.nth;
    if (!one_text(t, s, text, bytes, &o)) return tn__self.error;
    const size_t first = s->tokens;
    if (o.pair && !one_text(t, s, o.pair, o.pair_bytes, &o)) return tn__self.error;
    part both[2] = {{s->token, (int64_t)first}, {s->token, (int64_t)(s->tokens - first)}};
    if (both[1].n) both[1].token += first;
    if (!frame(t, s, both, &o)) s->result = (tn_encoding){0};
    return tn__self.error;
}

static tn_status encode_line(void *user, tn_text line, tn_ids *to)
{
    tn__encoding *s = user;
    if (tn_tokenizer_encode_run(s->tokenizer, &s->result, line.at, line.bytes, (tn_encode_args){.bare = true}) !=
            TN_OK ||
        !tn__ids_room(to, s->result.n))
        return tn__self.error;
    if (s->result.n) memcpy(to->at + to->n, s->result.id, (size_t)s->result.n * sizeof *to->at);
    to->n += s->result.n;
    return TN_OK;
}

tn_encoder tn_tokenizer_encoder(const tn_tokenizer *t, tn_encoding *e)
{
    if (e) ((tn__encoding *)(void *)e)->tokenizer = t;
    return (tn_encoder){encode_line, e};
}

/* ---- many texts -------------------------------------------------------------------------------------------------- */

/* The encoded texts, one after the other. */
typedef struct {
    tn_ids   ids, marks; /* marks: the segment, plus 4 for padding */
    int64_t *length, width;
} rows;

static bool collect(const tn_tokenizer *t, tn_encoding *e, int64_t n, const char *const *texts, tn_encode_args *o,
                    rows *to, tn_token_batch *sums)
{
    const char *const *const pairs = o->pairs;
    if (o->pair || o->pair_bytes)
        return tn_raise_false(TN_EINVAL, "tn_tokenizer_batch: .pair is for tn_tokenizer_encode; use .pairs");
    o->pairs = NULL;
    for (int64_t i = 0; i < n; i++) {
        const char *text = texts[i];
        o->pair = pairs ? pairs[i] : NULL, o->pair_bytes = o->pair ? strlen(o->pair) : 0;
        if (tn_tokenizer_encode_run(t, e, text, text ? strlen(text) : 0, *o) != TN_OK ||
            !tn__ids_room(&to->ids, e->n) || !tn__ids_room(&to->marks, e->n))
            return false;
        for (int64_t k = 0; k < e->n; k++) {
            to->ids.at[to->ids.n++] = e->id[k];
            to->marks.at[to->marks.n++] = e->segment[k] + 4 * (e->special[k] == TN_TOKEN_PADDING);
        }
        to->length[i] = e->n, to->width = tn__max_i64(to->width, e->n);
        sums->cut += e->cut, sums->invalid += e->invalid;
    }
    if (t->role.pad >= 0 || to->ids.n == n * to->width) return true;
    return tn_raise_false(TN_EINVAL,
                          "tn_tokenizer_batch: the texts differ in length, but this tokenizer has no padding "
                          "token; encode them one by one");
}

static bool fill(const tn_tokenizer *t, int64_t n, const rows *from, bool left, tn_token_batch *to)
{
    const tn_shape shape = {.n = 2, .d = {n, from->width}};
    to->ids = tn_empty_of(TN_I64, shape);
    to->segments = to->ids ? tn_empty_of(TN_I64, shape) : NULL;
    to->key_padding_mask = to->segments ? tn_empty_of(TN_BOOL, shape) : NULL;
    if (!to->key_padding_mask) return false;
    int64_t *id = tn_data_mut(to->ids), *segment = tn_data_mut(to->segments), at = 0;
    uint8_t *padding = tn_data_mut(to->key_padding_mask);
    if (!id || !segment || !padding) return false;
    for (int64_t i = 0; i < n; at += from->length[i++]) {
        const int64_t shift = left ? from->width - from->length[i] : 0;
        for (int64_t k = -shift; k < from->width - shift; k++) {
            const bool inside = k >= 0 && k < from->length[i];
            const int  flags = inside ? from->marks.at[at + k] : 4;
            *id++ = inside ? from->ids.at[at + k] : t->role.pad;
            *segment++ = flags & 3, *padding++ = flags >= 4;
        }
    }
    return true;
}

tn_status tn_tokenizer_batch_run(const tn_tokenizer *t, tn_token_batch *to, int64_t n, const char *const *texts,
                                 tn_encode_args o)
{
    if (tn__blocked()) return tn__self.error;
    if (!t || !to || n < 0 || (n && !texts))
        return tn_raise(TN_EINVAL, "tn_tokenizer_batch: %s", n < 0 ? "n is negative" : "a pointer is NULL");
    *to = (tn_token_batch){0};
    tn_token_batch made = {0};
    const size_t   bytes = (size_t)(n + 1) * sizeof(int64_t);
    rows           all = {.width = o.pad_to};
    tn_encoding   *e = tn_encoding_new();
    const tn_scope scope = tn_scope_begin();
    all.length = e ? tn__mem_get(bytes) : NULL;
    const bool ok = all.length && collect(t, e, n, texts, &o, &all, &made) && fill(t, n, &all, o.pad_left, &made);
    tn__mem_put(all.length, bytes);
    tn_ids_free(&all.ids), tn_ids_free(&all.marks);
    tn_encoding_free(e);
    tn_tensor *tensors[3] = {made.ids, made.segments, made.key_padding_mask};
    if (ok) tn_scope_return_list(scope, 3, tensors), *to = made;
    else tn_scope_end(scope);
    return tn__self.error;
}
