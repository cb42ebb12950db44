/* normalize.c — normalizes a text before it is split: each step reads s->word and writes s->other, then the two are
 * swapped. Each byte keeps the range of the text that it comes from. */
#include "data/tokenizer/encode/encoding_private.h"
#include "data/text/unicode.h"
#include "core/base/toolbox.h"

#include <string.h>

typedef struct { /* input of a step */
    const char    *text;
    const int32_t *from; /* NULL: the text itself, from offset base */
    size_t         n;
    int32_t        base;
} input;

static int32_t begins(const input *in, size_t i)
{
    if (!in->from) return in->base + (int32_t)i;
    return i < in->n ? in->from[2 * i] : in->n ? in->from[2 * in->n - 1] : in->base;
}
static int32_t ends(const input *in, size_t i) { return in->from ? in->from[2 * i + 1] : in->base + (int32_t)i + 1; }

/* Appends n bytes that come from bytes a to b of the text. */
static bool put(tn__encoding *s, const char *bytes, size_t n, int32_t a, int32_t b)
{
    const size_t end = s->output_bytes + n;
    if (!tn__grown((void *)&s->output, &s->output_room, (int64_t)end, 1) ||
        !tn__grown((void *)&s->output_from, &s->output_from_room, 2 * (int64_t)end, sizeof *s->output_from))
        return false;
    if (n) memcpy(s->output + s->output_bytes, bytes, n);
    for (size_t i = s->output_bytes; i < end; i++) s->output_from[2 * i] = a, s->output_from[2 * i + 1] = b;
    s->output_bytes = end;
    return true;
}

/* Appends bytes i to k of the input unchanged. */
static bool keep(tn__encoding *s, const input *in, size_t i, size_t k)
{
    const size_t first = s->output_bytes;
    if (!put(s, in->text + i, k - i, 0, 0)) return false;
    for (size_t j = i; j < k; j++) {
        s->output_from[2 * (first + j - i)] = begins(in, j);
        s->output_from[2 * (first + j - i) + 1] = ends(in, j);
    }
    return true;
}

static bool replace(tn__encoding *s, const input *in, size_t i, size_t k, const char *with, size_t n)
{
    return put(s, with, n, begins(in, i), k > i ? ends(in, k - 1) : begins(in, i));
}

static size_t letter_end(const input *in, size_t i)
{
    tn_utf8_next(in->text, in->n, &i, NULL);
    return i;
}

/* ---- SentencePiece's rules --------------------------------------------------------------------------------------- */

/* Returns the end of the next characters of the input; *with, *n: their replacement. */
static size_t next_rule(const tn_tokenizer *t, const input *in, size_t i, const char **with, size_t *n)
{
    int32_t value;
    size_t  length = tn__trie_longest(&t->user, in->text + i, in->n - i, &value);
    *with = in->text + i;
    if (length) return *n = length, i + length;
    const char *rule = tn__charsmap_find(&t->charsmap, in->text + i, in->n - i, true, &length);
    if (rule) return *with = rule, *n = strlen(rule), i + length;
    length = letter_end(in, i) - i;
    return *n = length, i + length;
}

static bool put_escaped(tn__encoding *s, const input *in, size_t i, size_t k, const char *with, size_t n)
{
    if (with == in->text + i && !memchr(with, ' ', n)) return keep(s, in, i, k);
    for (size_t at = 0, end; at < n; at = end) {
        end = at + 1;
        if (with[at] == ' ') {
            if (!replace(s, in, i, k, TN__SPACE, 3)) return false;
            continue;
        }
        while (end < n && with[end] != ' ') end++;
        if (!replace(s, in, i, k, with + at, end - at)) return false;
    }
    return true;
}

static bool sentence(const tn_tokenizer *t, tn__encoding *s, const tn__step *step, const input *in)
{
    (void)step;
    const bool  squeeze = t->sentence.squeeze;
    const char *with;
    size_t      i = 0, n;
    while (squeeze && i < in->n) { /* spaces at the start of the text */
        const size_t next = next_rule(t, in, i, &with, &n);
        if (n != 1 || *with != ' ') break;
        i = next;
    }
    if (i == in->n) return true;
    if (t->sentence.space != TN__SPACE_NEVER && !put(s, TN__SPACE, 3, begins(in, i), begins(in, i))) return false;
    for (bool space = squeeze; i < in->n;) {
        const size_t next = next_rule(t, in, i, &with, &n), all = n;
        const char  *text = with;
        while (space && n && *text == ' ') text++, n--;
        if (n) {
            const bool as_is = n == all && with == in->text + i;
            if (!put_escaped(s, in, i, next, as_is ? with : text, n)) return false;
            space = squeeze && text[n - 1] == ' ';
        }
        i = next;
    }
    while (squeeze && s->output_bytes >= 3 && !memcmp(s->output + s->output_bytes - 3, TN__SPACE, 3))
        s->output_bytes -= 3;
    return true;
}

/* ---- Hugging Face's rules ---------------------------------------------------------------------------------------- */

/* Applies one rule to a whole grapheme of less than 6 bytes, the shortest that matches its start; else one to each
 * character. Characters deleted at the start of the text belong to the first that remains. */
static bool charsmap(const tn_tokenizer *t, tn__encoding *s, const tn__step *step, const input *in)
{
    (void)step;
    for (size_t i = 0, k; i < in->n; i = k) {
        utf8proc_int32_t state = 0;
        size_t           at = i, length;
        uint32_t         c = tn_utf8_next(in->text, in->n, &at, NULL);
        for (k = at; k < in->n; k = at) {
            const uint32_t next = tn_utf8_next(in->text, in->n, &at, NULL);
            if (utf8proc_grapheme_break_stateful((utf8proc_int32_t)c, (utf8proc_int32_t)next, &state)) break;
            c = next;
        }
        const char *rule = k - i < 6 ? tn__charsmap_find(&t->charsmap, in->text + i, k - i, false, &length) : NULL;
        if (rule) {
            if (!replace(s, in, i, k, rule, strlen(rule))) return false;
            continue;
        }
        for (size_t a = i, b; a < k; a = b) {
            b = letter_end(in, a);
            rule = tn__charsmap_find(&t->charsmap, in->text + a, b - a, false, &length);
            if (!(rule ? replace(s, in, a, b, rule, strlen(rule)) : keep(s, in, a, b))) return false;
        }
    }
    if (s->output_bytes) s->output_from[0] = begins(in, 0);
    return true;
}

/* Writes the decomposition of c; returns its code points. */
enum { DECOMPOSED = 32 };
static int decomposed(uint32_t c, utf8proc_option_t options, utf8proc_int32_t to[DECOMPOSED])
{
    int        boundary = 0;
    const long n = (long)utf8proc_decompose_char((utf8proc_int32_t)c, to, DECOMPOSED, options, &boundary);
    if (n >= 1 && n <= DECOMPOSED) return (int)n;
    return to[0] = (utf8proc_int32_t)c, 1; /* unreachable: no decomposition has more than 18 */
}

static int order_of(utf8proc_int32_t c) { return utf8proc_get_property(c)->combining_class; }

/* True if no form changes c because of what precedes it: not for marks, nor for vowels and finals of Hangul. */
static bool starts(utf8proc_int32_t c)
{
    if (c < 0x300 || (c >= 0x1160 && c <= 0x11ff)) return c < 0x300;
    const int category = tn__category((uint32_t)c);
    return (category < UTF8PROC_CATEGORY_MN || category > UTF8PROC_CATEGORY_ME) && order_of(c) == 0;
}

/* Sorts each run of marks by their combining class, stably. A long run takes a pass for each class; room for n. */
static void order_marks(utf8proc_int32_t *c, int64_t n, utf8proc_int32_t *room)
{
    enum { SHORT = 16, CLASSES = 256 };
    for (int64_t i = 0, k; i < n; i = k + 1) {
        for (k = i; k < n && order_of(c[k]) > 0;) k++;
        int64_t to = 0;
        for (int order = 1; k - i > SHORT && order < CLASSES; order++)
            for (int64_t j = i; j < k; j++)
                if (order_of(c[j]) == order) room[to++] = c[j];
        if (to) memcpy(c + i, room, (size_t)to * sizeof *c);
        for (int64_t j = i + 1; j < k; j++)
            for (int64_t at = j; at > i && order_of(c[at - 1]) > order_of(c[at]); at--) {
                const utf8proc_int32_t higher = c[at - 1];
                c[at - 1] = c[at], c[at] = higher;
            }
    }
}

/* Normalizes parts by themselves: a character and the marks after it. */
static bool form(const tn_tokenizer *t, tn__encoding *s, const tn__step *step, const input *in)
{
    (void)t;
    const utf8proc_option_t options = (utf8proc_option_t)step->form;
    for (size_t i = 0, k; i < in->n; i = k) {
        utf8proc_int32_t part[DECOMPOSED];
        int64_t          n = 0;
        for (k = i; k < in->n && (unsigned char)in->text[k] < 128;) k++; /* marks may follow the last one */
        if (k > i && k < in->n) k--;
        if (k > i) {
            if (!keep(s, in, i, k)) return false;
            continue;
        }
        for (size_t next = i; k < in->n; k = next) {
            const int more = decomposed(tn_utf8_next(in->text, in->n, &next, NULL), options, part);
            if (n && starts(part[0])) break;
            if (!tn__grown((void *)&s->point, &s->point_room, 2 * (n + more), sizeof *s->point)) return false;
            memcpy(s->point + n, part, (size_t)more * sizeof *part);
            n += more;
        }
        order_marks(s->point, n, s->point + n);
        n = utf8proc_normalize_utf32(s->point, n, options);
        const size_t first = s->output_bytes;
        for (int64_t p = 0; p < n; p++) {
            char      letter[4];
            const int bytes = tn_utf8_put((uint32_t)s->point[p], letter);
            if (!replace(s, in, i, k, letter, (size_t)bytes)) return false;
        }
        if (s->output_bytes - first == k - i && !memcmp(s->output + first, in->text + i, k - i)) {
            s->output_bytes = first;
            if (!keep(s, in, i, k)) return false;
        }
    }
    return true;
}

static bool lower(const tn_tokenizer *t, tn__encoding *s, const tn__step *step, const input *in)
{
    (void)t, (void)step;
    for (size_t i = 0, k; i < in->n; i = k) {
        uint32_t to[2];
        char     letters[8];
        k = i;
        const uint32_t c = tn_utf8_next(in->text, in->n, &k, NULL);
        const int      n = tn__lower(c, to);
        size_t         bytes = (size_t)tn_utf8_put(to[0], letters);
        if (n > 1) bytes += (size_t)tn_utf8_put(to[1], letters + bytes);
        if (!(n == 1 && to[0] == c ? keep(s, in, i, k) : replace(s, in, i, k, letters, bytes))) return false;
    }
    return true;
}

static bool accents(const tn_tokenizer *t, tn__encoding *s, const tn__step *step, const input *in)
{
    (void)t, (void)step;
    for (size_t i = 0, k; i < in->n; i = k) {
        k = i;
        const int  category = tn__category(tn_utf8_next(in->text, in->n, &k, NULL));
        const bool mark = category >= UTF8PROC_CATEGORY_MN && category <= UTF8PROC_CATEGORY_ME;
        if (!mark && !keep(s, in, i, k)) return false;
    }
    return true;
}

static bool replaced(const tn_tokenizer *t, tn__encoding *s, const tn__step *step, const input *in)
{
    (void)t;
    const size_t bytes = step->pattern_bytes;
    for (size_t i = 0, k; i < in->n; i = k) {
        const bool here = in->n - i >= bytes && !memcmp(in->text + i, step->pattern, bytes);
        k = here ? i + bytes : i + 1;
        while (!here && k < in->n && in->text[k] != step->pattern[0]) k++;
        if (!(here ? replace(s, in, i, k, step->content, step->content_bytes) : keep(s, in, i, k))) return false;
    }
    return true;
}

/* Runs of white space, and single line ends and tabs. */
static bool white_space(tn__encoding *s, const tn__step *step, const input *in)
{
    for (size_t i = 0, k; i < in->n; i = k) {
        size_t next = k = i, n = 0;
        while (next < in->n && tn__is_space(tn_utf8_next(in->text, in->n, &next, NULL))) k = next, n++;
        const bool space = n > 1 || (n && strchr("\n\r\t", in->text[i]));
        if (k == i) k = letter_end(in, i);
        if (!(space ? replace(s, in, i, k, step->content, step->content_bytes) : keep(s, in, i, k))) return false;
    }
    return true;
}

static bool spaces(const tn_tokenizer *t, tn__encoding *s, const tn__step *step, const input *in)
{
    (void)t;
    if (step->left) return white_space(s, step, in);
    for (size_t i = 0, k; i < in->n; i = k) {
        const bool space = in->text[i] == ' ';
        for (k = i + 1; k < in->n && (in->text[k] == ' ') == space;) k++;
        if (!(space && k - i > 1 ? replace(s, in, i, k, step->content, step->content_bytes) : keep(s, in, i, k)))
            return false;
    }
    return true;
}

/* SentencePiece strips spaces only; at the end, where spaces are "▁" already, also "▁" of the text. */
static bool is_stripped(const tn__step *step, uint32_t c, bool end)
{
    return step->pattern_bytes ? c == ' ' || (end && c == 0x2581) : tn__is_space(c);
}

static bool strip(const tn_tokenizer *t, tn__encoding *s, const tn__step *step, const input *in)
{
    (void)t;
    size_t i = 0, k = in->n;
    for (size_t next = 0; step->left && next < in->n; i = next)
        if (!is_stripped(step, tn_utf8_next(in->text, in->n, &next, NULL), false)) break;
    while (step->right && k > i) {
        size_t back = k - 1;
        while (back > i && ((unsigned char)in->text[back] & 0xc0) == 0x80) back--;
        size_t next = back;
        if (!is_stripped(step, tn_utf8_next(in->text, in->n, &next, NULL), true)) break;
        k = back;
    }
    return keep(s, in, i, k);
}

static bool prepend(const tn_tokenizer *t, tn__encoding *s, const tn__step *step, const input *in)
{
    (void)t;
    if (!in->n) return true;
    return put(s, step->content, step->content_bytes, begins(in, 0), begins(in, 0)) && keep(s, in, 0, in->n);
}

/* ---- all steps --------------------------------------------------------------------------------------------------- */

int64_t tn__normalize(const tn_tokenizer *t, tn__encoding *s, const char *text, int32_t from, int32_t to)
{
    static bool (*const run[])(const tn_tokenizer *, tn__encoding *, const tn__step *, const input *) = {
        [TN__STEP_SENTENCE] = sentence, [TN__STEP_CHARSMAP] = charsmap, [TN__STEP_FORM] = form,
        [TN__STEP_LOWER] = lower,       [TN__STEP_ACCENTS] = accents,   [TN__STEP_REPLACE] = replaced,
        [TN__STEP_SPACES] = spaces,     [TN__STEP_STRIP] = strip,       [TN__STEP_PREPEND] = prepend};
    input in = {text + from, NULL, (size_t)(to - from), from};
    for (int i = 0; i < t->steps || i == 0; i++) {
        s->output_bytes = 0;
        if (!(t->steps ? run[t->step[i].kind](t, s, t->step + i, &in) : keep(s, &in, 0, in.n))) return -1;
        if (s->output_bytes > INT32_MAX / 4)
            return tn_raise(TN_EINVAL, "the text becomes too long when normalized"), -1;
        char *const    word = s->word;
        int32_t *const map = s->from;
        const int64_t  room = s->word_room, map_room = s->from_room;
        s->word = s->output, s->from = s->output_from, s->output = word, s->output_from = map;
        s->word_room = s->output_room, s->from_room = s->output_from_room;
        s->output_room = room, s->output_from_room = map_room;
        in = (input){s->word, s->from, s->output_bytes, from};
    }
    return (int64_t)in.n;
}
