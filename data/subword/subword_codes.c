/* subword_codes.c — the merges of a byte-pair encoding: as a table, and as subword-nmt's file: a line with the version
 * (without it, 0.1), then the two sides of each merge with a space between them, in the order of learning. */
#include "data/subword/subword_private.h"
#include "core/base/toolbox.h"

tn_subword *tn__subword_new(int version)
{
    tn_subword *s = tn__mem_zeroed(sizeof *s);
    if (!s) return NULL;
    s->version = version;
    if (tn_subword_set_separator(s, "@@") != TN_OK) tn_subword_free(s), s = NULL;
    return s;
}

void tn_subword_free(tn_subword *s)
{
    if (!s) return;
    tn__strings_free(&s->symbols);
    tn__grams_free(&s->pairs);
    tn__mem_put(s->merge, (size_t)s->merge_room * sizeof *s->merge);
    tn__mem_put(s->whole, s->whole ? (size_t)(s->merges + 1) * sizeof *s->whole : 0);
    tn__mem_put(s->split, (size_t)s->split_n * sizeof *s->split);
    tn__mem_put(s->known, (size_t)s->known_n);
    tn_string_free(&s->separator);
    tn__strings_free(&s->glossaries);
    tn__mem_put(s, sizeof *s);
}

bool tn__subword_add(tn_subword *s, tn_text left, tn_text right)
{
    int64_t a = tn__strings_add(&s->symbols, left.at, left.bytes);
    int64_t b = a < 0 ? -1 : tn__strings_add(&s->symbols, right.at, right.bytes);
    if (b < 0) return false;
    if (!tn__grown((void *)&s->merge, &s->merge_room, s->merges + 1, sizeof *s->merge)) return false;
    uint32_t before = s->pairs.n;
    if (!tn__grams_add(&s->pairs, (uint32_t)a, (uint32_t)b)) return false;
    if (s->pairs.n > before) s->merge[s->merges++] = (tn__merge){(uint32_t)a, (uint32_t)b};
    return true;
}

/* Adds the symbols that merges make, and finds the first merge of each symbol. */
bool tn__subword_finish(tn_subword *s)
{
    tn_string text = {0};
    uint32_t *whole = s->whole = tn__mem_get((size_t)(s->merges + 1) * sizeof *whole);
    bool      done = whole;
    for (int64_t i = 0; done && i < s->merges; i++) {
        text.bytes = 0;
        tn_string_add(&text, tn__strings_at(&s->symbols, s->merge[i].left));
        tn_string_add(&text, tn__strings_at(&s->symbols, s->merge[i].right));
        int64_t id = tn__self.error == TN_OK ? tn__strings_add(&s->symbols, text.at, text.bytes) : -1;
        done = id >= 0;
        if (done) whole[i] = (uint32_t)id;
    }
    if (done) done = (s->split = tn__mem_get((s->symbols.n + 1) * sizeof *s->split));
    if (done) {
        s->split_n = (int64_t)s->symbols.n + 1;
        for (int64_t i = 0; i < s->split_n; i++) s->split[i] = -1;
        for (int64_t i = s->merges; i-- > 0;) s->split[whole[i]] = (int32_t)i;
    }
    tn_string_free(&text);
    return done;
}

int64_t tn_subword_merges(const tn_subword *s) { return s ? s->merges : 0; }

tn_status tn_subword_merge_at(const tn_subword *s, int64_t i, tn_text *left, tn_text *right)
{
    if (tn__blocked()) return tn__self.error;
    if (!s || !left || !right) return tn_raise(TN_EINVAL, "tn_subword_merge_at: an argument is NULL");
    if (i < 0 || i >= s->merges)
        return tn_raise(TN_EINDEX, "tn_subword_merge_at: i is %lld, but there are %lld merges", (long long)i,
                        (long long)s->merges);
    *left = tn__strings_at(&s->symbols, s->merge[i].left);
    *right = tn__strings_at(&s->symbols, s->merge[i].right);
    return TN_OK;
}

/* ---- as a file --------------------------------------------------------------------------------------------------- */

/* Codes that were learned from invalid UTF-8 could not be read again. */
static bool all_utf8(const tn_subword *s, const char *path)
{
    char shown[TN__QUOTED];
    for (int64_t i = 0; i < s->merges; i++)
        for (int side = 0; side < 2; side++) {
            const tn_text t = tn__strings_at(&s->symbols, side ? s->merge[i].right : s->merge[i].left);
            if (tn_utf8_valid(t.at, t.bytes) == t.bytes) continue;
            tn_raise(TN_EFORMAT,
                     "tn_subword_save: '%s': the subword %s is not UTF-8; convert the text that it was "
                     "learned from, for example with iconv -f latin1 -t utf-8",
                     path ? path : "", tn__quote(shown, t.at, t.bytes, 40));
            return false;
        }
    return true;
}

tn_status tn_subword_save(const tn_subword *s, const char *path)
{
    if (tn__blocked()) return tn__self.error;
    if (!s) return tn_raise(TN_EINVAL, "tn_subword_save: s is NULL");
    if (!all_utf8(s, path)) return tn__self.error;
    tn_string text = {0};
    tn_string_add(&text, tn_text_of(s->version == 1 ? "#version: 0.1\n" : "#version: 0.2\n"));
    for (int64_t i = 0; i < s->merges && tn__self.error == TN_OK; i++) {
        tn_string_add(&text, tn__strings_at(&s->symbols, s->merge[i].left));
        tn_string_add(&text, (tn_text){" ", 1});
        tn_string_add(&text, tn__strings_at(&s->symbols, s->merge[i].right));
        tn_string_add(&text, (tn_text){"\n", 1});
    }
    if (tn__self.error == TN_OK) (void)!tn_file_write(path, text.at, text.bytes);
    tn_string_free(&text);
    return tn__self.error;
}

static bool starts_with(tn_text t, const char *with)
{
    size_t n = strlen(with);
    return t.bytes >= n && !memcmp(t.at, with, n);
}

/* Returns 1, 2, or 0 for an unknown version. "0.2.0" is 0.2. */
static int version_of(tn_text line)
{
    tn_text word = line;
    for (size_t i = 0; i < line.bytes; i++)
        if (line.at[i] == ' ') word = (tn_text){line.at + i + 1, line.bytes - i - 1};
    while (word.bytes > 3 && !memcmp(word.at + word.bytes - 2, ".0", 2)) word.bytes -= 2;
    return word.bytes == 3 && !memcmp(word.at, "0.", 2) && (word.at[2] == '1' || word.at[2] == '2') ? word.at[2] - '0'
                                                                                                    : 0;
}

static bool read_merge(tn_subword *s, const tn__reader *r, tn_text line)
{
    const char *blank = memchr(line.at, ' ', line.bytes), *end = line.at + line.bytes;
    char        shown[TN__QUOTED];
    if (tn_utf8_valid(line.at, line.bytes) < line.bytes || !blank || blank == line.at || blank + 1 == end ||
        memchr(blank + 1, ' ', (size_t)(end - blank - 1))) {
        tn_raise(TN_EFORMAT, "%s: line %lld is %s, expected two subwords in UTF-8 separated by a space", r->label,
                 (long long)r->line, tn__quote(shown, line.at, line.bytes, 60));
        return false;
    }
    if (s->merges >= INT32_MAX) return tn_raise(TN_EFORMAT, "%s: too many merges", r->label), false;
    return tn__subword_add(s, (tn_text){line.at, (size_t)(blank - line.at)},
                           (tn_text){blank + 1, (size_t)(end - blank - 1)});
}

static bool read_codes(tn_subword *s, tn__reader *r)
{
    tn_text line;
    int64_t empty = 0; /* empty lines, which are allowed at the end only */
    while (tn__reader_line(r, &line)) {
        while (line.bytes && (line.at[line.bytes - 1] == ' ' || line.at[line.bytes - 1] == '\r')) line.bytes--;
        if (r->line == 1 && starts_with(line, "#version:")) {
            char shown[TN__QUOTED];
            if ((s->version = version_of(line))) continue;
            tn_raise(TN_EUNSUPPORTED, "%s: %s, expected version 0.1 or 0.2", r->label,
                     tn__quote(shown, line.at, line.bytes, 60));
            return false;
        }
        if (!line.bytes) {
            empty++;
            continue;
        }
        if (empty) return tn_raise(TN_EFORMAT, "%s: line %lld is empty", r->label, (long long)(r->line - empty)), false;
        if (!read_merge(s, r, line)) return false;
    }
    return tn__self.error == TN_OK && tn__subword_finish(s);
}

tn_subword *tn_subword_load(const char *path)
{
    if (tn__blocked()) return NULL;
    tn__reader r;
    if (!tn__reader_open(&r, "tn_subword_load", path)) return NULL;
    tn_subword *s = tn__subword_new(1);
    if (s && !read_codes(s, &r)) tn_subword_free(s), s = NULL;
    tn__reader_close(&r);
    return s;
}
