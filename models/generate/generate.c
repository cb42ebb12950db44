/* generate.c — chooses the tokens of texts, step by step.
 *
 * Beam search, as in Hugging Face's transformers: each step takes the 2 · beams best continuations of a prompt's
 * texts, best first. One that ends its text, or reaches the maximum length, is finished if it is among the first
 * `beams`; it replaces the worst if `beams` texts are already finished. The others stay alive, at most `beams` of them.
 * A prompt is done when no text is alive, or when `beams` texts are finished and (.early_stopping) at once, or (without
 * it) the best live text, ranked as if it ended now, is not better than the worst finished one. One beam is greedy
 * decoding. Of equal scores the earlier text and the smaller token id come first. */
#include "core/base/toolbox.h"
#include "models/generate/generation.h"
#include "models/generate/lm_private.h"

#include <float.h>
#include <math.h>
#include <string.h>

typedef tn__text       text;
typedef tn__generation state;

static void *allocate(state *s, int64_t n, size_t size)
{
    size_t bytes;
    if (tn_error() != TN_OK) return NULL;
    if (__builtin_mul_overflow((size_t)n, size, &bytes))
        return tn_raise_null(TN_ENOMEM, "tn_generate: the texts do not fit in memory");
    void *p = tn_mem_get(bytes ? bytes : 1);
    if (p) s->memory[s->blocks] = p, s->bytes[s->blocks++] = bytes ? bytes : 1;
    return p;
}
static text *texts(state *s)
{
    const int64_t n = s->prompts * s->beams, length = s->begin + s->most;
    if (n > INT64_MAX / (length + 1)) return tn_raise_null(TN_ENOMEM, "tn_generate: the texts do not fit in memory");
    int64_t *words = allocate(s, n * length, sizeof *words);
    text    *t = words ? allocate(s, n, sizeof *t) : NULL;
    for (int64_t i = 0; t && i < n; i++) t[i].words = words + i * length;
    return t;
}

static bool begin(state *s)
{
    s->alive = texts(s), s->next = texts(s), s->done = texts(s);
    s->nalive = allocate(s, 2 * s->prompts, sizeof *s->nalive);
    if (tn_error() != TN_OK) return false;
    s->ndone = s->nalive + s->prompts;
    s->g = *tn_current_generator();
    s->rows = s->prompts;
    for (int64_t b = 0; b < s->prompts; b++) {
        text *t = &s->alive[b * s->beams];
        s->nalive[b] = 1, t->row = b, t->n = s->begin;
        const int64_t k = s->before, n = s->begin - k;
        for (int64_t i = 0; i < k; i++) t->words[i] = tn_get_i64(s->a.before, b * k + i);
        for (int64_t i = 0; i < n; i++) t->words[k + i] = tn_get_i64(s->a.prompt, b * n + i);
    }
    return true;
}

/* ---- one step ---------------------------------------------------------------------------------------------------- */

static void copy_text(const state *s, text *to, const text *from)
{
    int64_t *words = to->words;
    float   *covered = to->covered;
    memcpy(words, from->words, (size_t)from->n * sizeof *words);
    if (covered) memcpy(covered, from->covered, (size_t)s->source * sizeof *covered);
    *to = *from;
    to->words = words, to->covered = covered;
}

/* The ranking value of a text with that log-probability. words: its new tokens, including .end if that ended it.
 * covered: NULL for a text that may still cover all of its source. */
static double ranking(const state *s, double score, int64_t words, const float *covered)
{
    const double n = words > 0 ? (double)words : 1;
    double       sum = 0;
    if (s->a.sample || s->beams == 1) return score;
    for (int64_t i = 0; covered && i < s->source; i++)
        sum += tn__libm_log(covered[i] < FLT_MIN ? (double)FLT_MIN : fmin((double)covered[i], 1));
    return score / tn__libm_pow(s->a.gnmt ? (5 + n) / 6 : n, s->penalty) + s->a.coverage * sum;
}

/* True if prompt b's search ends although texts are alive. best: the best of them. */
static bool is_over(const state *s, int64_t b, const text *best)
{
    const text *done = &s->done[b * s->beams];
    double      worst = INFINITY;
    if (s->ndone[b] < s->beams || s->early) return s->ndone[b] == s->beams;
    for (int64_t i = 0; i < s->beams; i++) worst = fmin(worst, done[i].score);
    return !(ranking(s, best->score, best->n - s->begin, NULL) > worst);
}

/* Finishes a text. words: its new tokens, including .end if that ended it. If `beams` texts are already finished, it
 * replaces the worst, of equal ones the last, or is dropped. */
static void finish(state *s, int64_t b, const text *t, double score, int64_t words)
{
    text   *done = &s->done[b * s->beams];
    int64_t n = s->ndone[b], worst = 0;
    score = ranking(s, score, words, t->covered);
    if (n == s->beams) {
        for (int64_t i = 1; i < n; i++) worst = done[i].score <= done[worst].score ? i : worst;
        if (!(done[worst].score < score)) return;
        const text goes = done[worst];
        for (n--; worst < n; worst++) done[worst] = done[worst + 1];
        done[n] = goes;
    }
    copy_text(s, &done[n], t);
    done[n].score = score, s->ndone[b] = n + 1;
}

typedef struct {
    tn__choice c;
    text      *of;
} candidate;

/* The scores [rows, vocab] of the next tokens: those to choose from, which are logits for greedy decoding, else
 * log-probabilities; and log-probabilities, or NULL if they are not needed. */
typedef struct {
    float       *from;
    const float *p;
} rows_of_scores;

/* The best continuations of prompt b's texts, at most 2 · beams, best first; returns their number. With .adjust, a text
 * without any ends here. */
static int64_t find_candidates(state *s, int64_t b, rows_of_scores r, candidate *best)
{
    int64_t n = 0;
    text   *alive = &s->alive[b * s->beams];
    for (int64_t i = 0; i < s->nalive[b]; i++) {
        text         *t = &alive[i];
        float        *row = r.from + t->row * s->vocab;
        const int64_t made = t->n - s->begin;
        if (isnan(row[0])) /* all tokens are forbidden: log_softmax of -∞ alone is NaN */
            for (int64_t w = 0; w < s->vocab; w++) row[w] = -INFINITY;
        if (made < s->least && s->end >= 0 && s->end < s->vocab) row[s->end] = -INFINITY;
        tn__forbid_repeats(row, s->vocab, t->words, t->n, s->a.no_repeat);
        const tn_next_token next = {b, t->n, made, s->vocab, t->words, row};
        if (s->a.adjust && !tn__adjust(&s->a, &next)) return 0;
        int64_t m;
        if (s->a.sample) {
            tn_generator g = {s->g.seed, s->g.position + (uint64_t)(b * s->most + made)};
            m = tn__sample_token(row, s->vocab, &s->a, tn_random_double(&g), s->room, &s->room[0]);
        } else m = tn__choose_best(row, s->vocab, 2 * s->beams, s->room);
        if (m == 0 && s->a.adjust) finish(s, b, t, t->score, made);
        for (int64_t k = 0; r.p && r.p != r.from && k < m; k++)
            s->room[k].score = (double)r.p[t->row * s->vocab + s->room[k].word];
        for (int64_t k = 0; k < m; k++) {
            const candidate c = {{t->score + s->room[k].score, s->room[k].word}, t};
            if (n == 2 * s->beams && !(best[n - 1].c.score < c.c.score)) break;
            int64_t at = n < 2 * s->beams ? n++ : n - 1;
            for (; at > 0 && best[at - 1].c.score < c.c.score; at--) best[at] = best[at - 1];
            best[at] = c;
        }
    }
    return n;
}

/* Extends the texts of prompt b by the best tokens. */
static void extend(state *s, int64_t b, rows_of_scores r)
{
    candidate     best[2 * TN__MOST_BEAMS] = {{{0, 0}, NULL}};
    const int64_t n = find_candidates(s, b, r, best);
    int64_t       kept = 0;
    text         *alive = &s->alive[b * s->beams], *next = &s->next[b * s->beams];
    for (int64_t k = 0; k < n && kept < s->beams && (k < s->beams || !s->early || s->ndone[b] < s->beams); k++) {
        const text *t = best[k].of;
        if (best[k].c.word == s->end) {
            if (k < s->beams) finish(s, b, t, best[k].c.score, t->n - s->begin + 1);
            continue;
        }
        text *to = &next[kept];
        copy_text(s, to, t);
        to->words[to->n++] = best[k].c.word, to->score = best[k].c.score;
        const bool on = !s->a.each || s->a.each(b, best[k].c.word, s->a.user);
        if (on && to->n < s->begin + tn__most_of(s, b)) kept++;
        else if (k < s->beams) finish(s, b, to, to->score, to->n - s->begin);
    }
    if (n == 0 && !s->a.adjust) /* no token is allowed: the texts end */
        for (int64_t i = 0; i < s->nalive[b]; i++) finish(s, b, &alive[i], alive[i].score, alive[i].n - s->begin);
    s->nalive[b] = kept && !is_over(s, b, next) ? kept : 0;
}

/* Reorders the decoding's rows to match the texts that are alive. Returns their number; *tokens: their last tokens. */
static int64_t reorder_rows(state *s, tn_tensor **tokens)
{
    int64_t rows = 0, n = 0;
    bool    same = true;
    for (int64_t b = 0; b < s->prompts; b++) rows += s->nalive[b];
    if (!rows) return 0;
    tn_tensor *index = tn_empty_of(TN_I64, TN_SHAPE(rows)), *last = tn_empty_of(TN_I64, TN_SHAPE(rows, 1));
    int64_t   *from = index ? tn_data_mut(index) : NULL, *word = last ? tn_data_mut(last) : NULL;
    if (!from || !word) return -1;
    for (int64_t b = 0; b < s->prompts; b++)
        for (int64_t i = 0; i < s->nalive[b]; i++) {
            text *t = &s->next[b * s->beams + i];
            same &= t->row == n;
            from[n] = t->row, word[n] = t->words[t->n - 1], t->row = n++;
        }
    text *swap = s->alive;
    s->alive = s->next, s->next = swap;
    *tokens = last;
    same &= rows == s->rows;
    s->rows = rows;
    if (same) return rows;
    return s->a.from->kind->reorder(s->a.from, index) == TN_OK ? rows : -1;
}

/* y with the repetition penalty applied: logits, or log-probabilities. */
static tn_tensor *apply_penalty(const state *s, tn_tensor *y)
{
    tn_tensor    *z = tn_clone(y);
    const float  *from = z ? tn_data(y) : NULL;
    float        *to = from ? tn_data_mut(z) : NULL;
    const int64_t vocab = tn_size(y, 1);
    for (int64_t b = 0; to && b < s->prompts; b++)
        for (int64_t i = 0; i < s->nalive[b]; i++) {
            const text *t = &s->alive[b * s->beams + i];
            tn__penalise(from + t->row * vocab, to + t->row * vocab, vocab, t->words, t->n, s->a.repetition_penalty);
        }
    return z;
}

/* Raises if a row of logits has NaN or +∞; -∞, also for all tokens of a row, forbids them. p: log-probabilities, or
 * NULL. */
static bool are_numbers(const state *s, const float *scores, const float *p)
{
    for (int64_t b = 0; b < s->prompts; b++)
        for (int64_t i = 0; i < s->nalive[b]; i++) {
            const int64_t row = s->alive[b * s->beams + i].row * s->vocab;
            for (int64_t w = 0; (!p || isnan(p[row])) && w < s->vocab; w++)
                if (!(scores[row + w] < INFINITY))
                    return tn_raise_false(
                        TN_ENUMERIC,
                        "tn_generate: the logit of token %lld, after %lld tokens of prompt %lld, is %g; "
                        "check the model's weights for NaN and Inf",
                        (long long)w, (long long)s->alive[b * s->beams + i].n, (long long)b, (double)scores[row + w]);
        }
    return true;
}

/* The scores of the next tokens from their logits y. .from is NULL: raised. */
static rows_of_scores rows_of(state *s, tn_tensor *y)
{
    rows_of_scores r = {.from = NULL};
    const bool     penalty = s->a.repetition_penalty != 1, greedy = s->beams == 1 && !s->a.sample;
    if (penalty && s->beams == 1) y = apply_penalty(s, y);
    else if (greedy && (s->least || s->a.no_repeat || s->a.adjust)) y = tn_clone(y); /* some will be forbidden */
    tn_tensor *p = greedy && s->a.unscored ? NULL : tn_contiguous(tn_log_softmax(y, -1));
    if (penalty && s->beams > 1) p = apply_penalty(s, p);
    const float *scores = tn_error() == TN_OK ? tn_data(y) : NULL;
    if (!scores) return r;
    s->vocab = tn_size(y, 1);
    if (p) r.p = tn_data(p);
    if (!s->vocab || are_numbers(s, scores, r.p)) r.from = tn_data_mut(greedy ? y : p);
    return r;
}

/* Adds the attention of the last step, f32 [rows, source], to what each text covers. */
static bool add_attention(state *s, const tn_tensor *attention)
{
    const float  *from = tn_data(attention);
    const int64_t n = attention ? tn_size(attention, 1) : 0, each = s->prompts * s->beams;
    if (from && !s->source && s->alive && s->next && s->done) {
        text  *lists[] = {s->alive, s->next, s->done};
        float *all = n > 0 && each <= INT64_MAX / 3 / n ? allocate(s, 3 * each * n, sizeof *all) : NULL;
        for (int64_t i = 0; all && i < 3 * each; i++) lists[i / each][i % each].covered = all + i * n;
        if (all) memset(all, 0, (size_t)(3 * each * n) * sizeof *all), s->source = n;
    }
    if (!from || n != s->source || tn_error() != TN_OK) return false;
    for (int64_t b = 0; b < s->prompts; b++)
        for (int64_t i = 0; i < s->nalive[b]; i++) {
            text *t = &s->alive[b * s->beams + i];
            for (int64_t k = 0; k < n; k++) t->covered[k] += from[t->row * n + k];
        }
    return true;
}

tn_tensor *tn__generation_scores(state *s, tn_tensor *tokens)
{
    tn_decoding *const      d = s->a.from;
    const tn_decoding_kind *kind = d->kind;
    tn_tensor              *attention = NULL;
    if (!(s->a.coverage > 0)) return kind->scores(d, tokens);
    tn_tensor *y = ((const tn__attending_kind *)(const void *)kind)->attended(d, tokens, &attention);
    return y && add_attention(s, attention) ? y : NULL;
}

bool tn__generation_next(state *s, tn_tensor *y, tn_tensor **tokens)
{
    *tokens = NULL;
    if (!y || tn_error() != TN_OK) return false;
    const rows_of_scores r = rows_of(s, tn_contiguous(tn_to(y, TN_F32)));
    if (!r.from) return false;
    const int64_t wide = s->a.sample ? s->vocab : 2 * s->beams;
    if (!s->room && !(s->room = allocate(s, wide > s->vocab ? wide : s->vocab, sizeof *s->room))) return false;
    for (int64_t b = 0; b < s->prompts; b++)
        if (s->nalive[b]) extend(s, b, r);
    return reorder_rows(s, tokens) >= 0;
}

/* ---- the whole --------------------------------------------------------------------------------------------------- */

tn_generated tn__generation_result(state *s)
{
    const int64_t best = s->a.best;
    int64_t       longest = 0;
    for (int64_t b = 0; b < s->prompts; b++) {
        text *d = &s->done[b * s->beams];
        for (int64_t i = 1; i < s->ndone[b]; i++) { /* best first, of equal scores the earlier text */
            const text t = d[i];
            int64_t    at = i;
            for (; at > 0 && d[at - 1].score < t.score; at--) d[at] = d[at - 1];
            d[at] = t;
        }
        for (int64_t i = 0; i < best && i < s->ndone[b]; i++)
            if (d[i].n - s->begin > longest) longest = d[i].n - s->begin;
    }
    const tn_generated r = {.tokens = tn_full_of(TN_I64, TN_SHAPE(s->prompts, best, longest), -1),
                            .lengths = tn_zeros_of(TN_I64, TN_SHAPE(s->prompts, best)),
                            .scores = tn_full_of(TN_F64, TN_SHAPE(s->prompts, best), -INFINITY)};
    if (tn_error() != TN_OK) return r;
    int64_t *words = tn_data_mut(r.tokens), *lengths = tn_data_mut(r.lengths);
    double  *scores = tn_data_mut(r.scores);
    if (!words || !lengths || !scores) return r;
    for (int64_t b = 0; b < s->prompts; b++)
        for (int64_t i = 0; i < best && i < s->ndone[b]; i++) {
            const text *d = &s->done[b * s->beams + i];
            lengths[b * best + i] = d->n - s->begin, scores[b * best + i] = d->score;
            memcpy(words + (b * best + i) * longest, d->words + s->begin, (size_t)(d->n - s->begin) * sizeof *words);
        }
    return r;
}

tn__generation *tn__generation_begin(tn_generate_args a)
{
    state *s = tn_error() == TN_OK ? tn_mem_get(sizeof *s) : NULL;
    if (!s) return NULL;
    s->a = a;
    if (tn__generation_fits(s) && begin(s)) return s;
    tn__generation_free(s);
    return NULL;
}
void tn__generation_stop(tn__generation *s)
{
    for (int64_t b = 0; b < s->prompts; b++)
        for (; s->nalive[b] > 0; s->nalive[b]--) {
            const text *t = &s->alive[b * s->beams + s->nalive[b] - 1];
            finish(s, b, t, t->score, t->n - s->begin);
        }
}
void tn__generation_free(tn__generation *s)
{
    if (!s) return;
    while (s->blocks > 0) s->blocks--, tn_mem_put(s->memory[s->blocks], s->bytes[s->blocks]);
    tn_mem_put(s, sizeof *s);
}

void tn_decoding_free(tn_decoding *d)
{
    if (d && d->kind->free) d->kind->free(d);
}
