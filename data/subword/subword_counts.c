/* subword_counts.c — words and their counts: from texts, and as files. */
#include "data/subword/subword_private.h"
#include "core/base/toolbox.h"

/* Learning takes about 60 bytes per character of a word: a file without spaces and line ends is not a text. */
enum { MOST_WORD = 1 << 16, MOST_LINE = 64 << 20 };

tn_word_counts *tn_word_counts_new(void) { return tn__blocked() ? NULL : tn__mem_zeroed(sizeof(tn_word_counts)); }

void tn_word_counts_free(tn_word_counts *w)
{
    if (!w) return;
    tn__strings_free(&w->words);
    tn__mem_put(w->times, (size_t)w->times_room * sizeof *w->times);
    tn__mem_put(w, sizeof *w);
}

int64_t tn_word_counts_size(const tn_word_counts *w) { return w ? (int64_t)w->words.n : 0; }

tn_text tn_word_counts_at(const tn_word_counts *w, int64_t i, int64_t *times)
{
    bool there = w && i >= 0 && i < (int64_t)w->words.n;
    if (times) *times = there ? w->times[i] : 0;
    return there ? tn__strings_at(&w->words, i) : (tn_text){"", 0};
}

int64_t tn_word_counts_get(const tn_word_counts *w, tn_text word)
{
    int64_t i = w && (word.at || !word.bytes) ? tn__strings_find(&w->words, word.at, word.bytes) : -1;
    return i < 0 ? 0 : w->times[i];
}

static bool add(tn_word_counts *w, tn_text word, int64_t times)
{
    if (!tn__grown((void *)&w->times, &w->times_room, (int64_t)w->words.n + 1, sizeof *w->times)) return false;
    uint32_t n = w->words.n;
    int64_t  i = tn__strings_add(&w->words, word.at, word.bytes);
    if (i < 0) return false;
    if (w->words.n > n) w->times[i] = 0;
    if (!tn__add_i64(w->times[i], times, &w->times[i])) w->times[i] = INT64_MAX;
    return true;
}

tn_status tn_word_counts_add(tn_word_counts *w, tn_text word, int64_t times)
{
    if (tn__blocked()) return tn__self.error;
    if (!w || !word.at || !word.bytes || times < 0)
        return tn_raise(TN_EINVAL, "tn_word_counts_add: %s",
                        !w          ? "w is NULL"
                        : times < 0 ? "times is negative"
                                    : "the word is empty");
    if (memchr(word.at, ' ', word.bytes) || memchr(word.at, '\n', word.bytes))
        return tn_raise(TN_EINVAL, "tn_word_counts_add: the word contains a space or a line end");
    add(w, word, times);
    return tn__self.error;
}

/* Python also ends a line at a lone "\r". No word may contain one: codes with it could not be read again. */
static bool ends_word(char c) { return c == ' ' || c == '\r'; }

static tn_text trimmed(tn_text t) /* removes spaces and line ends on both sides */
{
    while (t.bytes && (*t.at == ' ' || *t.at == '\r' || *t.at == '\n')) t.at++, t.bytes--;
    while (t.bytes && (t.at[t.bytes - 1] == ' ' || t.at[t.bytes - 1] == '\r' || t.at[t.bytes - 1] == '\n')) t.bytes--;
    return t;
}

static bool add_line(tn_word_counts *w, tn_text line, const char *who, int64_t number)
{
    line = trimmed(line);
    for (size_t at = 0; at < line.bytes;) {
        size_t n = 0;
        while (at + n < line.bytes && !ends_word(line.at[at + n])) n++;
        if (n > MOST_WORD)
            return tn_raise(TN_EFORMAT, "%s: line %lld has a word of %zu bytes, expected at most %d in a text", who,
                            (long long)number, n, MOST_WORD),
                   false;
        if (n && !add(w, (tn_text){line.at + at, n}, 1)) return false;
        at += n + 1;
    }
    return true;
}

tn_status tn_word_counts_add_line(tn_word_counts *w, tn_text line)
{
    if (tn__blocked()) return tn__self.error;
    if (!w || (line.bytes && !line.at))
        return tn_raise(TN_EINVAL, "tn_word_counts_add_line: %s is NULL", w ? "the line" : "w");
    add_line(w, line, "tn_word_counts_add_line", 1);
    return tn__self.error;
}

tn_status tn_word_counts_add_file(tn_word_counts *w, const char *path)
{
    if (tn__blocked()) return tn__self.error;
    if (!w) return tn_raise(TN_EINVAL, "tn_word_counts_add_file: w is NULL");
    tn__reader r;
    tn_text    line;
    if (!tn__reader_open(&r, "tn_word_counts_add_file", path)) return tn__self.error;
    r.most = MOST_LINE;
    while (tn__reader_line(&r, &line) && add_line(w, line, r.label, r.line)) continue;
    tn__reader_close(&r);
    return tn__self.error;
}

/* Parses "word count"; false if the line has another form. */
static bool parse(tn_text line, tn_text *word, int64_t *times)
{
    line = trimmed(line);
    const char *blank = memchr(line.at, ' ', line.bytes);
    *times = 0;
    if (!blank || blank + 1 == line.at + line.bytes) return false;
    *word = (tn_text){line.at, (size_t)(blank - line.at)};
    for (const char *p = blank + 1; p < line.at + line.bytes; p++)
        if (*p < '0' || *p > '9' || !tn__mul_i64(*times, 10, times) || !tn__add_i64(*times, *p - '0', times))
            return false;
    return true;
}

tn_status tn_word_counts_load(tn_word_counts *w, const char *path)
{
    if (tn__blocked()) return tn__self.error;
    if (!w) return tn_raise(TN_EINVAL, "tn_word_counts_load: w is NULL");
    tn__reader r;
    tn_text    line, word;
    int64_t    times;
    if (!tn__reader_open(&r, "tn_word_counts_load", path)) return tn__self.error;
    while (tn__reader_line(&r, &line)) {
        char shown[TN__QUOTED];
        if (!parse(line, &word, &times)) {
            tn_raise(TN_EFORMAT, "%s: line %lld is %s, expected a word, a space and its count", r.label,
                     (long long)r.line, tn__quote(shown, line.at, line.bytes, 60));
            break;
        }
        if (!add(w, word, times)) break;
    }
    tn__reader_close(&r);
    return tn__self.error;
}

static bool comes_first(const void *owner, uint32_t a, uint32_t b)
{
    const tn_word_counts *w = owner;
    return w->times[a] != w->times[b] ? w->times[a] > w->times[b] : a < b;
}

tn_status tn_word_counts_save(const tn_word_counts *w, const char *path)
{
    if (tn__blocked()) return tn__self.error;
    if (!w) return tn_raise(TN_EINVAL, "tn_word_counts_save: w is NULL");
    size_t    n = w->words.n;
    tn_string text = {0};
    uint32_t *order = tn__mem_get((n + 1) * sizeof *order);
    if (order) {
        for (uint32_t i = 0; i < n; i++) order[i] = i;
        tn__sort(order, n, comes_first, w);
        for (size_t i = 0; i < n && tn__self.error == TN_OK; i++) {
            char times[32];
            tn_string_add(&text, tn__strings_at(&w->words, order[i]));
            snprintf(times, sizeof times, " %lld\n", (long long)w->times[order[i]]);
            tn_string_add(&text, tn_text_of(times));
        }
        if (tn__self.error == TN_OK) (void)!tn_file_write(path, text.at, text.bytes);
    }
    tn__mem_put(order, (n + 1) * sizeof *order);
    tn_string_free(&text);
    return tn__self.error;
}
