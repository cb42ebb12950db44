/* squad.c — scores answers as the scripts of SQuAD: in lower case, without ASCII punctuation and the articles a, an and
 * the, comparing words as bags. Letters and white space are those of Python's re and str.split(). */
#include "core/base/toolbox.h"
#include "data/metrics/metrics_text.h"
#include "data/text/unicode.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>

/* ---- the words of an answer -------------------------------------------------------------------------------------- */

static bool is_punctuation(uint32_t c)
{
    return (c >= '!' && c <= '/') || (c >= ':' && c <= '@') || (c >= '[' && c <= '`') || (c >= '{' && c <= '~');
}

/* Python's \w: letters, numbers of any kind, and _. */
static bool is_word(uint32_t c)
{
    if (c >= 0x110000) return false; /* an invalid byte */
    const int k = tn__category(c);
    return c == '_' || tn__is_letter(k) || tn__is_number(k);
}

/* True if the word of n characters is a, an or the. */
static bool is_article(const uint32_t *c, int64_t n)
{
    static const char *const articles[] = {"a", "an", "the"};
    for (int i = 0; i < 3; i++) {
        int64_t k = 0;
        while (k < n && articles[i][k] && c[k] == (uint32_t)articles[i][k]) k++;
        if (k == n && !articles[i][k]) return true;
    }
    return false;
}

/* Lower-cases, removes punctuation and blanks out articles, in place. */
static bool normalised(tn__points *p)
{
    int64_t n = 0;
    if (!tn__points_lower(p)) return false;
    for (int64_t i = 0; i < p->n; i++)
        if (!is_punctuation(p->at[i])) p->at[n++] = p->at[i];
    p->n = n;
    for (int64_t i = 0, end; i < n; i = end + 1) {
        for (end = i; end < n && is_word(p->at[end]);) end++;
        if (end == i || !is_article(p->at + i, end - i)) continue;
        for (int64_t k = i; k < end; k++) p->at[k] = ' ';
    }
    return true;
}

static bool word_numbers(tn_text answer, tn__grams *g, tn__points *points, tn__points *to)
{
    return tn__points_decode(points, answer) && normalised(points) && tn__number_words(points, g, to);
}

static bool put_utf8(tn_string *to, uint32_t c)
{
    utf8proc_uint8_t bytes[4];
    if (c >= 0x110000) bytes[0] = (utf8proc_uint8_t)(c - 0x110000);
    const long n = c >= 0x110000 ? 1 : (long)utf8proc_encode_char((utf8proc_int32_t)c, bytes);
    return tn_string_add(to, (tn_text){(const char *)bytes, (size_t)n}) == TN_OK;
}

tn_status tn_squad_words(tn_text answer, tn_string *words)
{
    if (tn__blocked()) return tn_error();
    if (!words || (answer.bytes && !answer.at)) return tn_raise(TN_EINVAL, "tn_squad_words: an argument is NULL");
    tn__points p = {.n = 0};
    bool       fine = tn__points_decode(&p, answer) && normalised(&p), gap = false;
    words->bytes = 0;
    fine = fine && tn_string_add(words, tn_text_of("")) == TN_OK;
    for (int64_t i = 0; fine && i < p.n; i++) {
        if (tn__is_blank(p.at[i])) {
            gap = words->bytes > 0;
            continue;
        }
        if (gap) fine = tn_string_add(words, tn_text_of(" ")) == TN_OK;
        fine = fine && put_utf8(words, p.at[i]);
        gap = false;
    }
    tn__points_free(&p);
    return tn_error();
}

/* ---- two answers ------------------------------------------------------------------------------------------------- */

static int by_number(const void *a, const void *b)
{
    const uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;
    return (x > y) - (x < y);
}
static bool same(const tn__points *a, const tn__points *b)
{
    return a->n == b->n && (!a->n || !memcmp(a->at, b->at, (size_t)a->n * sizeof *a->at));
}

/* F1 of two bags of sorted words. For empty bags, 2.0 scores 1 if both are empty, else 0; 1.1 scores 0. */
static double bag_f1(const tn__points *a, const tn__points *b, bool v2)
{
    int64_t common = 0;
    if (v2 && (!a->n || !b->n)) return a->n == b->n;
    for (int64_t i = 0, k = 0; i < a->n && k < b->n;) {
        common += a->at[i] == b->at[k];
        const bool left = a->at[i] <= b->at[k], right = b->at[k] <= a->at[i];
        i += left, k += right;
    }
    if (!common) return 0;
    const double precision = (double)common / (double)a->n, recall = (double)common / (double)b->n;
    return 2 * precision * recall / (precision + recall);
}

/* Scoring of one answer against the right ones. */
typedef struct {
    tn__grams  g;
    tn__points points, answer, sorted, right; /* word numbers: the answer's, these sorted, the right answer's */
    bool       v2, exact, some;               /* some: a right answer is not empty */
    double     best;
} match;

/* Compares with one more right answer; none: in 2.0, "no answer". False: raised. */
static bool matched(match *m, tn_text right, bool none)
{
    if (!word_numbers(right, &m->g, &m->points, &m->right)) return false;
    if (m->v2 && !m->right.n && !none) return true;
    m->some = true;
    m->exact = m->exact || same(&m->answer, &m->right);
    if (m->right.n) qsort(m->right.at, (size_t)m->right.n, sizeof *m->right.at, by_number);
    m->best = fmax(m->best, bag_f1(&m->sorted, &m->right, m->v2));
    return true;
}

static bool match_all(match *m, tn_text answer, int n, const tn_text *right)
{
    if (!word_numbers(answer, &m->g, &m->points, &m->answer)) return false;
    for (int64_t i = 0; i < m->answer.n; i++)
        if (!tn__points_add(&m->sorted, m->answer.at[i])) return false;
    if (m->sorted.n) qsort(m->sorted.at, (size_t)m->sorted.n, sizeof *m->sorted.at, by_number);
    for (int i = 0; i < n; i++)
        if (!matched(m, right[i], false)) return false;
    return m->some || !m->v2 || matched(m, tn_text_of(""), true);
}

tn_status tn_squad_add(tn_squad *s, tn_text answer, int n, const tn_text *right)
{
    if (tn__blocked()) return tn_error();
    if (!s) return tn_raise(TN_EINVAL, "tn_squad_add: s is NULL");
    if (n < 0 || (n && !right) || (answer.bytes && !answer.at))
        return tn_raise(TN_EINVAL, "tn_squad_add: the answers are NULL");
    if (!s->v2 && !n) return tn_raise(TN_EINVAL, "tn_squad_add: no right answer; set .v2 to allow this");
    match      m = {.v2 = s->v2};
    const bool fine = match_all(&m, answer, n, right);
    tn__grams_free(&m.g);
    tn__points_free(&m.points), tn__points_free(&m.answer), tn__points_free(&m.sorted), tn__points_free(&m.right);
    if (fine) s->n++, s->exact += m.exact, s->f1 += m.best, s->last = m.best, s->last_exact = m.exact;
    return tn_error();
}

double tn_squad_exact(const tn_squad *s) { return s && s->n ? 100 * (double)s->exact / (double)s->n : 0; }
double tn_squad_f1(const tn_squad *s) { return s && s->n ? 100 * s->f1 / (double)s->n : 0; }

/* ---- the threshold ----------------------------------------------------------------------------------------------- */

typedef struct {
    double  none;
    int64_t i;
} entry;
static int by_none(const void *a, const void *b)
{
    const entry *x = a, *y = b;
    if (x->none != y->none) return x->none < y->none ? -1 : 1;
    return x->i < y->i ? -1 : 1; /* stable, as in Python */
}

double tn_squad_threshold(int64_t n, const double *none, const double *value, const bool *empty, const bool *answerable,
                          double *threshold)
{
    if (threshold) *threshold = NAN;
    if (tn__blocked()) return NAN;
    if (n < 1 || !none || !value || !empty || !answerable)
        return tn_raise(TN_EINVAL, "tn_squad_threshold: %s",
                        n < 1 ? "n is 0; expected at least 1 question" : "an array is NULL"),
               NAN;
    int64_t bytes;
    if (!tn__mul_i64(n, (int64_t)sizeof(entry), &bytes)) bytes = INT64_MAX;
    entry *e = tn__mem_get((size_t)bytes);
    if (!e) return NAN;
    double now = 0, best, at;
    for (int64_t i = 0; i < n; i++) e[i] = (entry){none[i], i}, now += !answerable[i];
    qsort(e, (size_t)n, sizeof *e, by_none);
    /* First, no question is answered: a threshold below the smallest score, or 0 if all are above 0. */
    const int keep = errno; /* nextafter of 0 is denormal: ERANGE in some C libraries */
    best = now, at = e[0].none > 0 ? 0 : nextafter(e[0].none, -INFINITY);
    errno = keep;
    for (int64_t i = 0; i < n; i++) {
        const int64_t k = e[i].i;
        now += answerable[k] ? value[k] : empty[k] ? 0 : -1;
        if (now > best) best = now, at = none[k]; /* also within equal scores, as the script does */
    }
    tn__mem_put(e, (size_t)bytes);
    if (threshold) *threshold = at;
    return 100 * best / (double)n;
}
