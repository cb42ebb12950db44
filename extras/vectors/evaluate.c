/* evaluate.c — evaluation of vectors: rank correlation with human scores; analogies; and sentence vectors. */
#include "extras/vectors/queries.h"
#include "core/base/toolbox.h"
#include "data/metrics.h"

#include <math.h>

enum { MAX_LINE = 1 << 16, FIELDS = 5 };

static int fields_of(tn_text line, tn_text to[FIELDS])
{
    int n = 0;
    for (size_t at = 0; at < line.bytes && n < FIELDS;) {
        const size_t from = at;
        while (at < line.bytes && !tn__is_gap(line.at[at])) at++;
        if (at > from) to[n++] = (tn_text){line.at + from, at - from};
        at += at == from;
    }
    return n;
}

/* Looks up a word as it is, then in lower case (ASCII only; files with other letters can be adapted). */
static int64_t look_up(const tn_vectors *v, tn_text word)
{
    char          text[TN__WORD_MAX];
    const int64_t i = tn_vectors_find(v, word);
    if (i >= 0 || word.bytes > sizeof text) return i;
    for (size_t k = 0; k < word.bytes; k++) {
        const char c = word.at[k];
        text[k] = c >= 'A' && c <= 'Z' ? (char)(c - 'A' + 'a') : c;
    }
    return tn_vectors_find(v, (tn_text){text, word.bytes});
}

/* ---- similarity -------------------------------------------------------------------------------------------------- */

typedef struct {
    double *x;
    int64_t n, room;
} numbers;

static bool add(numbers *a, double x)
{
    if (!tn__grown((void *)&a->x, &a->room, a->n + 1, sizeof *a->x)) return false;
    a->x[a->n++] = x;
    return true;
}

static double cosine(const tn_vectors *v, int64_t a, int64_t b)
{
    double dot = 0;
    for (int64_t k = 0; k < v->dim; k++) dot += (double)v->row[a * v->dim + k] * (double)v->row[b * v->dim + k];
    const double by = (double)v->length[a] * (double)v->length[b];
    return by > 0 ? dot / by : 0;
}

tn_vectors_score tn_vectors_similarity(const tn_vectors *v, const char *path)
{
    tn_vectors_score score = {0};
    tn__reader       r;
    tn_text          line, field[FIELDS];
    numbers          ours = {0}, theirs = {0};
    if (tn__blocked()) return score;
    if (!v) return tn_raise(TN_EINVAL, "tn_vectors_similarity: v is NULL"), score;
    if (!tn__reader_open(&r, "tn_vectors_similarity", path)) return score;
    r.most = MAX_LINE;
    while (tn__reader_line(&r, &line)) {
        double    rating;
        const int n = fields_of(line, field);
        if (!n || (n > 0 && *line.at == '#')) continue;
        if (n < 3 || !tn_parse_double(field[2].at, field[2].bytes, &rating)) {
            if (r.line == 1) continue; /* column names */
            tn_raise(TN_EFORMAT, "%s: line %lld: expected two words and a number", r.label, (long long)r.line);
            break;
        }
        const int64_t a = look_up(v, field[0]), b = look_up(v, field[1]);
        if (a < 0 || b < 0) score.missing++;
        else if (!add(&ours, cosine(v, a, b)) || !add(&theirs, rating)) break;
    }
    tn__reader_close(&r);
    score.asked = theirs.n;
    if (tn__self.error == TN_OK && !score.asked)
        tn_raise(TN_EFORMAT,
                 "%s: the vectors have no pair of its words (%lld pairs); expected two words and a number "
                 "per line, in the spelling of the vectors (lower case?)",
                 r.label, (long long)score.missing);
    if (tn__self.error == TN_OK) score.value = tn_spearman(score.asked, ours.x, theirs.x);
    if (isnan(score.value)) score.value = 0; /* equal cosines or ratings only */
    tn__mem_put(ours.x, (size_t)ours.room * sizeof *ours.x),
        tn__mem_put(theirs.x, (size_t)theirs.room * sizeof *theirs.x);
    return score;
}

/* ---- analogies --------------------------------------------------------------------------------------------------- */

typedef struct {
    int64_t (*abc)[3];
    int64_t *answer, n, abc_room, answer_room;
} questions;

static bool read_questions(const tn_vectors *v, const char *path, questions *q, int64_t *missing)
{
    tn__reader r;
    tn_text    line, field[FIELDS];
    if (!tn__reader_open(&r, "tn_vectors_analogies", path)) return false;
    r.most = MAX_LINE;
    while (tn__reader_line(&r, &line)) {
        const int n = fields_of(line, field);
        if (!n || field[0].at[0] == ':') continue;
        if (n != 4) {
            tn_raise(TN_EFORMAT, "%s: line %lld: expected four words, or ': section'", r.label, (long long)r.line);
            break;
        }
        int64_t id[4];
        bool    known = true;
        for (int k = 0; k < 4; k++) known = (id[k] = look_up(v, field[k])) >= 0 && known;
        *missing += !known;
        if (!known) continue;
        if (!tn__grown((void *)&q->abc, &q->abc_room, q->n + 1, sizeof *q->abc) ||
            !tn__grown((void *)&q->answer, &q->answer_room, q->n + 1, sizeof *q->answer))
            break;
        memcpy(q->abc[q->n], id, sizeof *q->abc);
        q->answer[q->n++] = id[3];
    }
    tn__reader_close(&r);
    return tn__self.error == TN_OK;
}

tn_vectors_score tn_vectors_analogies(const tn_vectors *v, const char *path, bool product)
{
    tn_vectors_score score = {0};
    questions        q = {0};
    if (tn__blocked()) return score;
    if (!v) return tn_raise(TN_EINVAL, "tn_vectors_analogies: v is NULL"), score;
    if (read_questions(v, path, &q, &score.missing) && q.n) {
        const size_t     bytes = (size_t)q.n * (sizeof(tn_vectors_near) + sizeof(int64_t));
        tn_vectors_near *near = tn__mem_get(bytes);
        int64_t         *found = near ? (int64_t *)(void *)(near + q.n) : NULL, right = 0;
        if (near && tn__analogies(v, q.n, (const int64_t(*)[3])q.abc, product, 1, near, found)) {
            for (int64_t i = 0; i < q.n; i++) right += found[i] && near[i].word == q.answer[i];
            score.asked = q.n, score.value = (double)right / (double)q.n;
        }
        tn__mem_put(near, bytes);
    }
    tn__mem_put(q.abc, (size_t)q.abc_room * sizeof *q.abc),
        tn__mem_put(q.answer, (size_t)q.answer_room * sizeof *q.answer);
    return score;
}

/* ---- sentences --------------------------------------------------------------------------------------------------- */

/* The frequency of a word: by its count, or by its rank with Zipf's law and the harmonic number of all words. */
static double frequency(const tn_vectors *v, int64_t word)
{
    if (v->total > 0) return (double)v->count[word] / v->total;
    return 1 / ((double)(word + 1) * (tn__libm_log((double)v->words.n) + 0.5772));
}

static void add_word(const tn_vectors *v, int64_t i, double sif, const float *x, float *to)
{
    const double p = sif > 0 && i >= 0 ? frequency(v, i) : 0; /* a word composed of n-grams has no count */
    const float  by = sif > 0 ? (float)(sif / (sif + p)) : 1.0f;
    for (int64_t k = 0; k < v->dim; k++) to[k] += by * x[k];
}

bool tn_vectors_sentence(const tn_vectors *v, tn_text sentence, double sif, float *to)
{
    int64_t n = 0;
    if (tn__blocked() || !v || !to || (sentence.bytes && !sentence.at)) return false;
    const size_t bytes = (size_t)v->dim * sizeof *to;
    float       *unseen = tn__mem_get(bytes);
    memset(to, 0, bytes);
    for (size_t at = 0; unseen && at < sentence.bytes;) {
        const size_t from = at;
        while (at < sentence.bytes && !tn__is_gap(sentence.at[at])) at++;
        const tn_text word = {sentence.at + from, at - from};
        at += at == from;
        if (!word.bytes) continue;
        const int64_t i = look_up(v, word);
        if (i < 0 && !tn_vectors_of(v, word, unseen)) continue;
        add_word(v, i, sif, i < 0 ? unseen : v->row + i * v->dim, to);
        n++;
    }
    for (int64_t k = 0; n && k < v->dim; k++) to[k] /= (float)n;
    tn__mem_put(unseen, bytes);
    return n > 0;
}
