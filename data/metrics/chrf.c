/* chrf.c — chrF (Popović 2015) and chrF++ (2017): the F-score, with recall weighted twice, of the mean precision and
 * the mean recall of n-grams of 1 … 6 characters (without white space), and for chrF++ also of 1 and 2 words. Of
 * several references, a line uses the one with the best score. */
#include "data/metrics/metrics_text.h"
#include "core/base/toolbox.h"

enum { CHARACTERS = 6, ORDERS = 8, BETA2 = 4 };

typedef struct {
    int64_t output[ORDERS], reference[ORDERS], matches[ORDERS];
} stats;

static double f_score(const stats *s, int orders)
{
    double precision = 0, recall = 0;
    int    used = 0;
    for (int i = 0; i < orders; i++) {
        if (!s->output[i] || !s->reference[i]) continue; /* a line too short for this order */
        precision += (double)s->matches[i] / (double)s->output[i];
        recall += (double)s->matches[i] / (double)s->reference[i];
        used++;
    }
    if (!used || precision + recall <= 0) return 0;
    precision /= used, recall /= used;
    return 100 * ((1 + BETA2) * precision * recall / (BETA2 * precision + recall));
}

typedef struct {
    tn__grams  grams;
    tn__points line, characters, words;
} work;

static bool is_ascii_punctuation(uint32_t c)
{
    return (c > ' ' && c < '0') || (c > '9' && c < 'A') || (c > 'Z' && c < 'a') || (c > 'z' && c < 0x7f);
}

/* Splits off punctuation at a word's end, or else at its start, as a separate word. */
static bool add_word(work *w, int64_t from, int64_t to)
{
    const uint32_t *c = w->line.at;
    int64_t         cut = to;
    if (to - from > 1) cut = is_ascii_punctuation(c[to - 1]) ? to - 1 : is_ascii_punctuation(c[from]) ? from + 1 : to;
    for (; from < to; from = cut, cut = to) {
        uint32_t word = (uint32_t)TN__GRAM_WORDS;
        for (int64_t i = from; i < cut; i++)
            if (!(word = tn__grams_add(&w->grams, word, c[i]))) return false;
        if (!tn__points_add(&w->words, word)) return false;
    }
    return true;
}

static bool read_line(work *w, const tn_chrf *c, tn_text text)
{
    if (!tn__points_decode(&w->line, text) || (c->lowercase && !tn__points_lower(&w->line))) return false;
    w->characters.n = w->words.n = 0;
    for (int64_t i = 0, start = 0; i <= w->line.n; i++) {
        bool space = i == w->line.n || tn__is_blank(w->line.at[i]);
        if (!space && !tn__points_add(&w->characters, w->line.at[i])) return false;
        if (!space) continue;
        if (c->word_order && i > start && !add_word(w, start, i)) return false;
        start = i + 1;
    }
    return true;
}

/* by: 1 counts the sequence's n-grams in `column`, 0 resets that count. */
static bool count(tn__grams *g, const tn__points *p, uint32_t root, int orders, int column, int by)
{
    for (int64_t i = 0; i < p->n; i++) {
        uint32_t at = root;
        for (int64_t n = 0; n < orders && i + n < p->n; n++) {
            if (!(at = tn__grams_add(g, at, p->at[i + n]))) return false;
            g->gram[at].count[column] = by ? g->gram[at].count[column] + by : 0;
        }
    }
    return true;
}

/* Adds the matches of each n-gram of the reference with the output, once, and resets the reference's counts. */
static bool match(tn__grams *g, const tn__points *p, uint32_t root, int orders, int64_t *matches)
{
    for (int64_t i = 0; i < p->n; i++) {
        uint32_t at = root;
        for (int64_t n = 0; n < orders && i + n < p->n; n++) {
            if (!(at = tn__grams_add(g, at, p->at[i + n]))) return false;
            int32_t *c = g->gram[at].count;
            matches[n] += tn__min_i64(c[0], c[1]);
            c[1] = 0;
        }
    }
    return true;
}

static int64_t ngrams(int64_t length, int n) { return tn__max_i64(length - n + 1, 0); }

static bool add_line(work *w, const tn_chrf *c, tn_text output, int n, const tn_text *references, stats *best)
{
    const uint32_t letters = (uint32_t)TN__GRAM_CHARACTERS, phrases = (uint32_t)TN__GRAM_PHRASES;
    if (!read_line(w, c, output) || !count(&w->grams, &w->characters, letters, CHARACTERS, 0, 1) ||
        !count(&w->grams, &w->words, phrases, c->word_order, 0, 1))
        return false;
    int64_t length = w->characters.n, words = w->words.n;
    double  most = -1;
    for (int i = 0; i < n; i++) {
        stats s = {0};
        if (!read_line(w, c, references[i]) || !count(&w->grams, &w->characters, letters, CHARACTERS, 1, 1) ||
            !count(&w->grams, &w->words, phrases, c->word_order, 1, 1) ||
            !match(&w->grams, &w->characters, letters, CHARACTERS, s.matches) ||
            !match(&w->grams, &w->words, phrases, c->word_order, s.matches + CHARACTERS))
            return false;
        for (int k = 0; k < CHARACTERS + c->word_order; k++) {
            bool letter = k < CHARACTERS;
            int  order = letter ? k + 1 : k - CHARACTERS + 1;
            s.reference[k] = ngrams(letter ? w->characters.n : w->words.n, order);
            s.output[k] = s.reference[k] ? ngrams(letter ? length : words, order) : 0; /* no n-grams to match */
        }
        double f = f_score(&s, CHARACTERS + c->word_order);
        if (f > most) most = f, *best = s;
    }
    return true;
}

tn_status tn_chrf_add(tn_chrf *c, tn_text output, int n, const tn_text *references)
{
    if (tn__blocked()) return tn__self.error;
    if (!tn__metric_check("tn_chrf_add", c, output, n, references)) return tn__self.error;
    if (c->word_order < 0 || c->word_order > 2)
        return tn_raise(TN_EINVAL, "tn_chrf_add: .word_order is %d; expected 0 (chrF), 1 or 2 (chrF++)", c->word_order);
    work  w = {0};
    stats s = {0};
    if (add_line(&w, c, output, n, references, &s)) {
        for (int i = 0; i < ORDERS; i++)
            c->output[i] += s.output[i], c->reference[i] += s.reference[i], c->matches[i] += s.matches[i];
        c->references = tn__metric_references(c->references, !c->references, n);
    }
    tn__grams_free(&w.grams);
    tn__points_free(&w.line);
    tn__points_free(&w.characters);
    tn__points_free(&w.words);
    return tn__self.error;
}

double tn_chrf_score(const tn_chrf *c)
{
    if (!c) return 0;
    stats s;
    memcpy(s.output, c->output, sizeof s.output);
    memcpy(s.reference, c->reference, sizeof s.reference);
    memcpy(s.matches, c->matches, sizeof s.matches);
    return f_score(&s, CHARACTERS + (c->word_order > 2 ? 2 : c->word_order));
}

const char *tn_chrf_text(const tn_chrf *c, int decimals, char to[TN_METRIC_TEXT])
{
    static const tn_chrf none;
    char                 refs[16] = "var", score[40];
    if (!tn__not_null("tn_chrf_text", "the place for the text", to)) return "";
    if (!c) c = &none;
    if (c->references >= 0) snprintf(refs, sizeof refs, "%d", c->references);
    snprintf(to, TN_METRIC_TEXT, "chrF2%s|nrefs:%s|case:%s|eff:yes|nc:6|nw:%d|space:no|version:" TN__SACREBLEU " = %s",
             c->word_order == 2   ? "++"
             : c->word_order == 1 ? "+"
                                  : "",
             refs, c->lowercase ? "lc" : "mixed", c->word_order, tn__metric_number(tn_chrf_score(c), decimals, score));
    return to;
}
