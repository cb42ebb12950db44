/* bleu.c — BLEU (Papineni et al. 2002):
 *
 *     BP · exp(1/4 Σ_n log p_n),   p_n = matches_n / total_n,   BP = exp(1 - r/c) if c < r, else 1
 *
 * where an n-gram of the output matches at most as often as it occurs in any one reference; c is the number of
 * words of the outputs, r of the references nearest in length. Smoothing "exp": the k-th p_n without a match is
 * 1 / (2^k total_n). The tokenizers are mteval-v13a's, mteval-v14's ("intl"), and none. */
#include "data/metrics/metrics_text.h"
#include "core/base/toolbox.h"
#include "data/text.h"

#include <stdlib.h>

/* ---- words ------------------------------------------------------------------------------------------------------- */

static bool is_digit(uint32_t c) { return c >= '0' && c <= '9'; }
static bool not_digit(uint32_t c) { return !is_digit(c); }
static bool is_stop(uint32_t c) { return c == '.' || c == ','; }
static bool is_dash(uint32_t c) { return c == '-'; }
static bool is_sign(uint32_t c) /* ASCII's punctuation but for ' , - . */
{
    return (c >= '{' && c <= '~') || (c >= '[' && c <= '`') || (c >= ' ' && c <= '&') || (c >= '(' && c <= '+') ||
           (c >= ':' && c <= '@') || c == '/';
}
static bool not_number(uint32_t c) { return tn__class_of(c) != TN__NUMBER; }
static bool is_punctuation(uint32_t c) { return tn__class_of(c) == TN__PUNCTUATION; }
static bool is_symbol(uint32_t c) { return tn__class_of(c) == TN__SYMBOL; }

/* Puts blanks around each character for which a holds. */
static bool around(tn__points *line, tn__points *spare, bool (*a)(uint32_t))
{
    spare->n = 0;
    for (int64_t i = 0; i < line->n; i++) {
        bool hit = a(line->at[i]);
        if ((hit && !tn__points_add(spare, ' ')) || !tn__points_add(spare, line->at[i]) ||
            (hit && !tn__points_add(spare, ' ')))
            return false;
    }
    tn__points swap = *line;
    *line = *spare, *spare = swap;
    return true;
}

/* For each pair of characters for which a and b hold, from left to right without overlap: puts a blank between them,
 * and one on the other side of the stop, which is the pair's first (0) or second (1). */
static bool between(tn__points *line, tn__points *spare, bool (*a)(uint32_t), bool (*b)(uint32_t), int stop)
{
    spare->n = 0;
    for (int64_t i = 0; i < line->n; i++) {
        bool hit = i + 1 < line->n && a(line->at[i]) && b(line->at[i + 1]);
        if ((hit && stop == 0 && !tn__points_add(spare, ' ')) || !tn__points_add(spare, line->at[i])) return false;
        if (!hit) continue;
        if (!tn__points_add(spare, ' ') || !tn__points_add(spare, line->at[++i]) ||
            (stop == 1 && !tn__points_add(spare, ' ')))
            return false;
    }
    tn__points swap = *line;
    *line = *spare, *spare = swap;
    return true;
}

/* Replaces each `old` by `new`, which is not longer. */
static void replace(tn__points *line, const char *old, const char *new)
{
    int64_t to = 0, length = (int64_t)strlen(old);
    for (int64_t i = 0; i < line->n;) {
        int64_t same = 0;
        while (same < length && i + same < line->n && line->at[i + same] == (unsigned char)old[same]) same++;
        if (same < length) {
            line->at[to++] = line->at[i++];
            continue;
        }
        for (const char *p = new; *p; p++) line->at[to++] = (unsigned char)*p;
        i += length;
    }
    line->n = to;
}

static bool cut(tn_bleu_tokenizer how, tn__points *line, tn__points *spare)
{
    if (how == TN_BLEU_INTL)
        return between(line, spare, not_number, is_punctuation, 1) &&
               between(line, spare, is_punctuation, not_number, 0) && around(line, spare, is_symbol);
    if (how == TN_BLEU_NONE) return true;
    replace(line, "<skipped>", "");
    replace(line, "-\n", "");
    replace(line, "\n", " ");
    replace(line, "&quot;", "\"");
    replace(line, "&amp;", "&");
    replace(line, "&lt;", "<");
    replace(line, "&gt;", ">");
    spare->n = 0; /* a blank on either side, so that a stop at the end is seen */
    if (!tn__points_add(spare, ' ')) return false;
    for (int64_t i = 0; i < line->n; i++)
        if (!tn__points_add(spare, line->at[i])) return false;
    if (!tn__points_add(spare, ' ')) return false;
    tn__points swap = *line;
    *line = *spare, *spare = swap;
    return around(line, spare, is_sign) && between(line, spare, not_digit, is_stop, 1) &&
           between(line, spare, is_stop, not_digit, 0) && between(line, spare, is_digit, is_dash, 1);
}

tn_status tn_bleu_words(tn_bleu_tokenizer how, tn_text line, tn_string *words)
{
    if (tn__blocked()) return tn__self.error;
    if (!words || (line.bytes && !line.at) || (unsigned)how > TN_BLEU_NONE)
        return tn_raise(TN_EINVAL, "tn_bleu_words: %s",
                        !words              ? "words is NULL"
                        : (unsigned)how > 2 ? "how is not a tn_bleu_tokenizer"
                                            : "the line is NULL");
    tn__points p = {0}, spare = {0};
    bool       done = tn__points_decode(&p, line);
    if (done) tn__points_strip(&p), done = cut(how, &p, &spare);
    words->bytes = 0;
    done = done && tn__string_room(words, (size_t)p.n * 4);
    for (int64_t i = 0; done && i < p.n; i++) {
        uint32_t c = p.at[i];
        char    *to = words->at + words->bytes;
        if (tn__is_blank(c)) {
            if (words->bytes && to[-1] != ' ') *to = ' ', words->bytes++;
        } else if (c >= 0x110000) {
            *to = (char)c, words->bytes++; /* an invalid byte */
        } else {
            words->bytes += (size_t)tn_utf8_put(c, to);
        }
    }
    if (done && words->bytes && words->at[words->bytes - 1] == ' ') words->bytes--;
    if (done) words->at[words->bytes] = 0;
    tn__points_free(&p);
    tn__points_free(&spare);
    return tn__self.error;
}

/* ---- counting ---------------------------------------------------------------------------------------------------- */

enum {
    IN_OUTPUT,
    MAX_REFERENCE,
    IN_REFERENCE
}; /* counts of an n-gram: in the output, maximum of the references, this reference */

typedef struct {
    tn__grams  grams;
    tn__points line, spare, words;
} work;

static void work_free(work *w)
{
    tn__grams_free(&w->grams);
    tn__points_free(&w->line);
    tn__points_free(&w->spare);
    tn__points_free(&w->words);
}

static bool read_words(work *w, const tn_bleu *b, tn_text text)
{
    if (!tn__points_decode(&w->line, text) || (b->lowercase && !tn__points_lower(&w->line))) return false;
    tn__points_strip(&w->line);
    return cut(b->tokenize, &w->line, &w->spare) && tn__number_words(&w->line, &w->grams, &w->words);
}

/* Counts the words' n-grams in `column`, or sets that count to 0. */
static bool count(work *w, int column, bool reset)
{
    for (int64_t i = 0; i < w->words.n; i++) {
        uint32_t at = (uint32_t)TN__GRAM_PHRASES;
        for (int64_t n = 0; n < 4 && i + n < w->words.n; n++) {
            if (!(at = tn__grams_add(&w->grams, at, w->words.at[i + n]))) return false;
            int32_t *c = w->grams.gram[at].count;
            if (reset) c[column] = 0;
            else if (++c[column] > c[MAX_REFERENCE] && column == IN_REFERENCE) c[MAX_REFERENCE] = c[IN_REFERENCE];
        }
    }
    return true;
}

/* Sums the output's n-grams: those that match a reference, and all. */
static bool collect(work *w, int64_t matches[4], int64_t total[4])
{
    for (int64_t i = 0; i < w->words.n; i++) {
        uint32_t at = (uint32_t)TN__GRAM_PHRASES;
        for (int64_t n = 0; n < 4 && i + n < w->words.n; n++) {
            if (!(at = tn__grams_add(&w->grams, at, w->words.at[i + n]))) return false;
            int32_t *c = w->grams.gram[at].count;
            matches[n] += tn__min_i64(c[IN_OUTPUT], c[MAX_REFERENCE]); /* once for each different n-gram */
            c[IN_OUTPUT] = 0;
            total[n]++;
        }
    }
    return true;
}

static bool add_line(work *w, const tn_bleu *b, tn_text output, int n, const tn_text *references, tn_bleu *to)
{
    if (!read_words(w, b, output) || !count(w, IN_OUTPUT, false)) return false;
    int64_t length = w->words.n, nearest = -1;
    for (int i = 0; i < n; i++) {
        if (!read_words(w, b, references[i]) || !count(w, IN_REFERENCE, true) || !count(w, IN_REFERENCE, false))
            return false;
        int64_t away = llabs(w->words.n - length), best = llabs(nearest - length);
        if (nearest < 0 || away < best || (away == best && w->words.n < nearest)) nearest = w->words.n;
    }
    to->words += length, to->reference_words += nearest;
    return read_words(w, b, output) && collect(w, to->matches, to->total);
}

tn_status tn_bleu_add(tn_bleu *b, tn_text output, int n, const tn_text *references)
{
    if (tn__blocked()) return tn__self.error;
    if (!tn__metric_check("tn_bleu_add", b, output, n, references)) return tn__self.error;
    if ((unsigned)b->tokenize > TN_BLEU_NONE)
        return tn_raise(TN_EINVAL, "tn_bleu_add: .tokenize is not a tn_bleu_tokenizer");
    work    w = {0};
    tn_bleu to = *b;
    if (add_line(&w, b, output, n, references, &to)) {
        to.references = tn__metric_references(b->references, !b->references, n);
        *b = to;
    }
    work_free(&w);
    return tn__self.error;
}

/* ---- the score --------------------------------------------------------------------------------------------------- */

static double brevity(const tn_bleu *b)
{
    if (b->words >= b->reference_words) return 1;
    return b->words ? tn__libm_exp(1 - (double)b->reference_words / (double)b->words) : 0;
}

static double precisions(const tn_bleu *b, double p[4])
{
    double halved = 1, sum = 0;
    bool   any = false;
    for (int n = 0; n < 4; n++) p[n] = 0, any = any || b->matches[n];
    for (int n = 0; n < 4 && any && b->total[n]; n++) {
        if (!b->matches[n]) halved *= 2;
        p[n] = 100 * (b->matches[n] ? (double)b->matches[n] : 1 / halved) / (double)b->total[n];
    }
    int order = 4;
    while (b->effective_order && order > 1 && !b->total[order - 1]) order--;
    for (int n = 0; n < order; n++) sum += p[n] > 0 ? tn__libm_log(p[n]) : -9999999999.0; /* sacreBLEU's log of 0 */
    return any ? brevity(b) * tn__libm_exp(sum / order) : 0;
}

double tn_bleu_score(const tn_bleu *b)
{
    double p[4];
    return b ? precisions(b, p) : 0;
}

const char *tn_bleu_text(const tn_bleu *b, int decimals, char to[TN_METRIC_TEXT])
{
    static const char *const names[] = {"13a", "intl", "none"};
    static const tn_bleu     none;
    char                     refs[16] = "var", score[40], part[6][40];
    double                   p[4];
    if (!tn__not_null("tn_bleu_text", "the place for the text", to)) return "";
    if (!b) b = &none;
    double value = precisions(b, p);
    if (b->references >= 0) snprintf(refs, sizeof refs, "%d", b->references);
    for (int n = 0; n < 4; n++) tn__metric_number(p[n], 1, part[n]);
    tn__metric_number(brevity(b), 3, part[4]);
    tn__metric_number(b->reference_words ? (double)b->words / (double)b->reference_words : 0, 3, part[5]);
    snprintf(to, TN_METRIC_TEXT,
             "BLEU|nrefs:%s|case:%s|eff:%s|tok:%s|smooth:exp|version:" TN__SACREBLEU
             " = %s %s/%s/%s/%s (BP = %s ratio = %s hyp_len = %lld ref_len = %lld)",
             refs, b->lowercase ? "lc" : "mixed", b->effective_order ? "yes" : "no", names[(unsigned)b->tokenize % 3],
             tn__metric_number(value, decimals, score), part[0], part[1], part[2], part[3], part[4], part[5],
             (long long)b->words, (long long)b->reference_words);
    return to;
}
