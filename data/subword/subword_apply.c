/* subword_apply.c — splits words by a byte-pair encoding. A heap holds the pairs of neighbours that can be merged: the
 * earliest merge first, and from left to right, so that a word of n characters takes O(n log n) steps. All occurrences
 * of one merge are done before the merges that they enable. */
#include "data/subword/subword_private.h"
#include "core/base/toolbox.h"

typedef struct {
    int32_t  prev, next;
    int64_t  id; /* a symbol, UNKNOWN, or GONE: merged into its left neighbour */
    uint32_t start, bytes;
} node;
enum { UNKNOWN = -1, GONE = -2 };

typedef struct {
    uint32_t rank, at;
} candidate;

typedef struct {
    int64_t  id;
    uint32_t start, bytes;
    bool     end;
} piece;

typedef struct {
    node      *node;
    candidate *heap, *batch;
    piece     *stack;
    int64_t    node_room, heap_room, batch_room, stack_room, heap_n;
    bool       first; /* nothing of the word has been written yet */
} work;

static void work_free(work *k)
{
    tn__mem_put(k->node, (size_t)k->node_room * sizeof *k->node);
    tn__mem_put(k->heap, (size_t)k->heap_room * sizeof *k->heap);
    tn__mem_put(k->batch, (size_t)k->batch_room * sizeof *k->batch);
    tn__mem_put(k->stack, (size_t)k->stack_room * sizeof *k->stack);
}

/* ---- merging ----------------------------------------------------------------------------------------------------- */

static bool before(candidate a, candidate b) { return a.rank != b.rank ? a.rank < b.rank : a.at < b.at; }

static int64_t rank_at(const tn_subword *s, const work *k, int64_t at)
{
    const node *x = &k->node[at];
    if (x->id < 0 || x->next < 0 || k->node[x->next].id < 0) return -1;
    return (int64_t)tn__grams_find(&s->pairs, (uint32_t)x->id, (uint32_t)k->node[x->next].id) - 1;
}

static bool push(const tn_subword *s, work *k, int64_t at)
{
    int64_t rank = at < 0 ? -1 : rank_at(s, k, at), i = k->heap_n;
    if (rank < 0) return true;
    if (!tn__grown((void *)&k->heap, &k->heap_room, i + 1, sizeof *k->heap)) return false;
    candidate c = {(uint32_t)rank, (uint32_t)at};
    k->heap_n++;
    for (; i > 0 && before(c, k->heap[(i - 1) / 2]); i = (i - 1) / 2) k->heap[i] = k->heap[(i - 1) / 2];
    k->heap[i] = c;
    return true;
}

static candidate pop(work *k)
{
    candidate top = k->heap[0], c = k->heap[--k->heap_n];
    int64_t   at = 0;
    for (int64_t child; (child = 2 * at + 1) < k->heap_n; at = child) {
        if (child + 1 < k->heap_n && before(k->heap[child + 1], k->heap[child])) child++;
        if (!before(k->heap[child], c)) break;
        k->heap[at] = k->heap[child];
    }
    k->heap[at] = c;
    return top;
}

static bool merge_all(const tn_subword *s, work *k)
{
    while (k->heap_n) {
        uint32_t rank = k->heap[0].rank;
        int64_t  n = 0;
        while (k->heap_n && k->heap[0].rank == rank) {
            if (!tn__grown((void *)&k->batch, &k->batch_room, n + 1, sizeof *k->batch)) return false;
            k->batch[n++] = pop(k);
        }
        for (int64_t i = 0; i < n; i++) {
            node *x = &k->node[k->batch[i].at];
            if (rank_at(s, k, k->batch[i].at) != (int64_t)rank) continue;
            node *y = &k->node[x->next];
            x->id = s->whole[rank];
            x->bytes += y->bytes;
            x->next = y->next;
            y->id = GONE;
            if (x->next >= 0) k->node[x->next].prev = (int32_t)k->batch[i].at;
            if (!push(s, k, x->prev) || !push(s, k, k->batch[i].at)) return false;
        }
    }
    return true;
}

static int64_t symbol(const tn_subword *s, const char *text, size_t bytes, bool end)
{
    char with_end[4 + TN__WORD_END_BYTES];
    if (!end) return tn__strings_find(&s->symbols, text, bytes);
    memcpy(with_end, text, bytes);
    memcpy(with_end + bytes, TN__WORD_END, TN__WORD_END_BYTES);
    return tn__strings_find(&s->symbols, with_end, bytes + TN__WORD_END_BYTES);
}

/* ---- writing ----------------------------------------------------------------------------------------------------- */

static bool write(const tn_subword *s, work *k, tn_text text, tn_string *to)
{
    if (!tn__string_room(to, text.bytes + s->separator.bytes + 1)) return false;
    if (!k->first) {
        memcpy(to->at + to->bytes, s->separator.at, s->separator.bytes);
        to->bytes += s->separator.bytes;
        to->at[to->bytes++] = ' ';
    }
    if (text.bytes) memcpy(to->at + to->bytes, text.at, text.bytes);
    to->bytes += text.bytes;
    k->first = false;
    return true;
}

/* Splits a subword that is not in the vocabulary, undoing its merges. */
static bool write_known(const tn_subword *s, work *k, tn_text word, piece first, tn_string *to)
{
    int64_t n = 0;
    if (!tn__grown((void *)&k->stack, &k->stack_room, 2, sizeof *k->stack)) return false;
    k->stack[n++] = first;
    while (n) {
        piece   p = k->stack[--n];
        int32_t split = p.id < 0 || s->known[p.id] & (p.end ? TN__AT_END : TN__IN_WORD) ? -1 : s->split[p.id];
        size_t  left = split < 0 ? 0 : tn__strings_at(&s->symbols, s->merge[split].left).bytes;
        if (split < 0 || left > p.bytes) {
            if (!write(s, k, (tn_text){word.at + p.start, p.bytes}, to)) return false;
            continue;
        }
        if (!tn__grown((void *)&k->stack, &k->stack_room, n + 2, sizeof *k->stack)) return false;
        uint32_t cut = (uint32_t)left;
        k->stack[n++] = (piece){s->merge[split].right, p.start + cut, p.bytes - cut, p.end};
        k->stack[n++] = (piece){s->merge[split].left, p.start, cut, false};
    }
    return true;
}

static bool apply_word(const tn_subword *s, work *k, tn_text word, tn_string *to)
{
    size_t  bytes;
    int64_t n = 0;
    tn__point(word.at, word.bytes, &bytes);
    if (bytes == word.bytes || tn__strings_find(&s->glossaries, word.at, word.bytes) >= 0) return write(s, k, word, to);
    if (word.bytes >= INT32_MAX) return tn_raise(TN_EUNSUPPORTED, "tn_subword_apply: a word has 2 GiB or more"), false;
    if (!tn__grown((void *)&k->node, &k->node_room, (int64_t)word.bytes + 1, sizeof *k->node)) return false;
    for (size_t at = 0; at < word.bytes; at += bytes, n++) {
        tn__point(word.at + at, word.bytes - at, &bytes);
        bool end = s->version == 2 && at + bytes == word.bytes;
        k->node[n] =
            (node){(int32_t)n - 1, (int32_t)n + 1, symbol(s, word.at + at, bytes, end), (uint32_t)at, (uint32_t)bytes};
    }
    if (s->version == 1) {
        k->node[n] = (node){(int32_t)n - 1, -1, symbol(s, "", 0, true), (uint32_t)word.bytes, 0};
        n++;
    }
    k->node[n - 1].next = -1;
    k->heap_n = 0;
    for (int64_t i = 0; i < n; i++)
        if (!push(s, k, i)) return false;
    if (!merge_all(s, k)) return false;
    for (int64_t i = 0; i >= 0; i = k->node[i].next) {
        const node *x = &k->node[i];
        piece       p = {x->id, x->start, x->bytes, x->start + x->bytes == word.bytes};
        if (!x->bytes) continue; /* the end symbol alone */
        if (s->known ? !write_known(s, k, word, p, to) : !write(s, k, (tn_text){word.at + p.start, p.bytes}, to))
            return false;
    }
    return true;
}

/* ---- glossaries -------------------------------------------------------------------------------------------------- */

static const char *find(tn_text text, tn_text part)
{
    for (size_t i = 0; part.bytes && i + part.bytes <= text.bytes; i++) {
        const char *at = memchr(text.at + i, *part.at, text.bytes - i - part.bytes + 1);
        if (!at) return NULL;
        if (!memcmp(at, part.at, part.bytes)) return at;
        i = (size_t)(at - text.at);
    }
    return NULL;
}

/* Writes glossary g and those after it unsplit, and splits the text between them. The caller's list of glossaries
 * bounds the depth. */
static bool apply_parts(const tn_subword *s, work *k, tn_text word, int64_t g, tn_string *to)
{
    for (; g < (int64_t)s->glossaries.n && word.bytes; g++) {
        tn_text     part = tn__strings_at(&s->glossaries, g);
        const char *at;
        if (part.bytes == word.bytes && !memcmp(part.at, word.at, part.bytes)) return write(s, k, word, to);
        while (word.bytes > part.bytes && (at = find(word, part))) {
            tn_text head = {word.at, (size_t)(at - word.at)};
            if (head.bytes && !apply_parts(s, k, head, g + 1, to)) return false;
            if (!write(s, k, part, to)) return false;
            word.bytes -= head.bytes + part.bytes;
            word.at = at + part.bytes;
        }
        if (part.bytes == word.bytes && !memcmp(part.at, word.at, part.bytes)) return write(s, k, word, to);
    }
    return !word.bytes || apply_word(s, k, word, to);
}

/* ---- lines ------------------------------------------------------------------------------------------------------- */

static bool is_blank(char c) { return c == ' ' || c == '\r' || c == '\n'; }

static bool apply_line(const tn_subword *s, work *k, tn_text line, tn_string *to)
{
    size_t from = 0, end = line.bytes;
    bool   first = true;
    while (from < end && is_blank(line.at[from])) from++;
    while (end > from && is_blank(line.at[end - 1])) end--;
    to->bytes = 0;
    if (tn_string_add(to, (tn_text){line.at, from}) != TN_OK) return false;
    for (size_t at = from; at < end;) {
        const char *blank = memchr(line.at + at, ' ', end - at);
        size_t      n = blank ? (size_t)(blank - line.at) - at : end - at;
        if (n) {
            if (!first && tn_string_add(to, (tn_text){" ", 1}) != TN_OK) return false;
            first = false, k->first = true;
            if (!apply_parts(s, k, (tn_text){line.at + at, n}, 0, to)) return false;
        }
        at += n + 1;
    }
    return tn_string_add(to, (tn_text){line.at + end, line.bytes - end}) == TN_OK;
}

tn_status tn_subword_apply(const tn_subword *s, tn_text line, tn_string *to)
{
    if (tn__blocked()) return tn__self.error;
    if (!s || !to || (line.bytes && !line.at))
        return tn_raise(TN_EINVAL, "tn_subword_apply: %s is NULL", !s ? "s" : !to ? "to" : "the line");
    work k = {0};
    if (!line.at) line.at = "";
    apply_line(s, &k, line, to);
    work_free(&k);
    return tn__self.error;
}

tn_status tn_subword_join(const tn_subword *s, tn_text line, tn_string *to)
{
    if (tn__blocked()) return tn__self.error;
    if (!s || !to || (line.bytes && !line.at))
        return tn_raise(TN_EINVAL, "tn_subword_join: %s is NULL", !s ? "s" : !to ? "to" : "the line");
    size_t n = s->separator.bytes;
    to->bytes = 0;
    if (!tn__string_room(to, line.bytes)) return tn__self.error;
    for (size_t i = 0; i < line.bytes;) {
        bool mark = n && i + n <= line.bytes && !memcmp(line.at + i, s->separator.at, n);
        if (mark && (i + n == line.bytes || line.at[i + n] == ' ')) i += n + 1;
        else to->at[to->bytes++] = line.at[i++];
    }
    to->at[to->bytes] = 0;
    return TN_OK;
}

tn_status tn_subword_count(const tn_subword *s, const tn_word_counts *words, tn_word_counts *to)
{
    if (tn__blocked()) return tn__self.error;
    if (!s || !words || !to || words == to)
        return tn_raise(TN_EINVAL, "tn_subword_count: %s",
                        words && words == to ? "words and to are the same" : "an argument is NULL");
    work      k = {0};
    tn_string text = {0};
    for (int64_t i = 0; i < (int64_t)words->words.n && tn__self.error == TN_OK; i++) {
        int64_t times;
        tn_text word = tn_word_counts_at(words, i, &times);
        text.bytes = 0, k.first = true;
        if (!apply_parts(s, &k, word, 0, &text)) break;
        for (size_t at = 0, n; at < text.bytes && tn__self.error == TN_OK; at += n + 1) {
            const char *blank = memchr(text.at + at, ' ', text.bytes - at);
            n = blank ? (size_t)(blank - text.at) - at : text.bytes - at;
            if (n) tn_word_counts_add(to, (tn_text){text.at + at, n}, times);
        }
    }
    work_free(&k);
    tn_string_free(&text);
    return tn__self.error;
}

/* ---- settings ---------------------------------------------------------------------------------------------------- */

tn_status tn_subword_set_separator(tn_subword *s, const char *separator)
{
    if (tn__blocked()) return tn__self.error;
    if (!s || !separator || !*separator || strchr(separator, ' '))
        return tn_raise(TN_EINVAL, "tn_subword_set_separator: %s",
                        s ? "the separator must be a text without spaces" : "s is NULL");
    tn_string text = {0};
    if (tn_string_add(&text, tn_text_of(separator)) != TN_OK) return tn__self.error;
    tn_string_free(&s->separator);
    s->separator = text;
    return TN_OK;
}

tn_status tn_subword_set_glossaries(tn_subword *s, int n, const char *const *glossaries)
{
    if (tn__blocked()) return tn__self.error;
    if (!s || n < 0 || n > 1000 || (n && !glossaries))
        return tn_raise(TN_EINVAL, "tn_subword_set_glossaries: %s", s ? "expected 0 to 1000 glossaries" : "s is NULL");
    tn__strings all = {0};
    for (int i = 0; i < n && tn__self.error == TN_OK; i++) {
        if (!glossaries[i] || !*glossaries[i] || strchr(glossaries[i], ' '))
            tn_raise(TN_EINVAL, "tn_subword_set_glossaries: glossary %d must be a text without spaces", i);
        else tn__strings_add(&all, glossaries[i], strlen(glossaries[i]));
    }
    tn__strings *old = tn__self.error == TN_OK ? &s->glossaries : &all;
    tn__strings  swap = *old;
    if (old == &s->glossaries) s->glossaries = all;
    tn__strings_free(&swap);
    return tn__self.error;
}

static bool occurs(const tn_word_counts *v, tn_text a, tn_text b, int64_t threshold, tn_string *text)
{
    text->bytes = 0;
    if (tn_string_add(text, a) != TN_OK || tn_string_add(text, b) != TN_OK) return false;
    int64_t i = tn__strings_find(&v->words, text->at, text->bytes);
    return i >= 0 && v->times[i] >= threshold;
}

tn_status tn_subword_set_vocabulary(tn_subword *s, const tn_word_counts *v, int64_t threshold)
{
    if (tn__blocked()) return tn__self.error;
    if (!s) return tn_raise(TN_EINVAL, "tn_subword_set_vocabulary: s is NULL");
    if (v && s->version == 1)
        return tn_raise(TN_EUNSUPPORTED,
                        "tn_subword_set_vocabulary: codes of version 0.1 have no vocabulary; learn new codes");
    size_t    n = s->symbols.n + 1;
    uint8_t  *known = v && v->words.n ? tn__mem_zeroed(n) : NULL;
    tn_string text = {0};
    for (uint32_t i = 0; known && i < s->symbols.n; i++) {
        tn_text symbol_text = tn__strings_at(&s->symbols, i), word = symbol_text;
        tn_text mark = {s->separator.at, s->separator.bytes};
        if (occurs(v, symbol_text, mark, threshold, &text)) known[i] |= TN__IN_WORD;
        if (word.bytes < TN__WORD_END_BYTES) continue;
        word.bytes -= TN__WORD_END_BYTES;
        if (memcmp(word.at + word.bytes, TN__WORD_END, TN__WORD_END_BYTES) != 0) continue;
        if (occurs(v, word, (tn_text){"", 0}, threshold, &text)) known[i] |= TN__AT_END;
    }
    tn_string_free(&text);
    if (tn__self.error != TN_OK) {
        tn__mem_put(known, n);
        return tn__self.error;
    }
    tn__mem_put(s->known, (size_t)s->known_n);
    s->known = known, s->known_n = known ? (int64_t)n : 0;
    return TN_OK;
}
