/* ter.c — TER (Snover et al. 2006): edits divided by the references' words, summed over the lines, in lower case unless
 * case-sensitive. Of several references, a line uses the one with the fewest edits, and their mean length. */
#include "data/metrics/metrics_text.h"
#include "core/base/toolbox.h"

static bool read_words(const tn_ter *t, tn_text text, tn__points *line, tn__grams *g, tn__points *words)
{
    return tn__points_decode(line, text) && (t->case_sensitive || tn__points_lower(line)) &&
           tn__number_words(line, g, words);
}

tn_status tn_ter_add(tn_ter *t, tn_text output, int n, const tn_text *references)
{
    if (tn__blocked()) return tn__self.error;
    if (!tn__metric_check("tn_ter_add", t, output, n, references)) return tn__self.error;
    tn__grams  g = {0};
    tn__points line = {0}, words = {0}, reference = {0};
    int64_t    least = -1, length = 0;
    bool       done = read_words(t, output, &line, &g, &words);
    for (int i = 0; done && i < n; i++) {
        done = read_words(t, references[i], &line, &g, &reference);
        int64_t edits = done ? tn__ter_edits(&words, &reference) : -1;
        done = edits >= 0;
        if (least < 0 || edits < least) least = edits;
        length += reference.n;
    }
    if (done) {
        t->edits += least;
        t->words += (double)length / n;
        t->references = tn__metric_references(t->references, !t->references, n);
    }
    tn__grams_free(&g);
    tn__points_free(&line);
    tn__points_free(&words);
    tn__points_free(&reference);
    return tn__self.error;
}

double tn_ter_score(const tn_ter *t)
{
    if (!t) return 0;
    return t->words > 0 ? (double)t->edits / t->words : t->edits > 0;
}

const char *tn_ter_text(const tn_ter *t, int decimals, char to[TN_METRIC_TEXT])
{
    static const tn_ter none;
    char                refs[16] = "var", score[40];
    if (!tn__not_null("tn_ter_text", "the place for the text", to)) return "";
    if (!t) t = &none;
    if (t->references >= 0) snprintf(refs, sizeof refs, "%d", t->references);
    snprintf(to, TN_METRIC_TEXT,
             "TER|nrefs:%s|case:%s|tok:tercom|norm:no|punct:yes|asian:no|version:" TN__SACREBLEU " = %s", refs,
             t->case_sensitive ? "mixed" : "lc", tn__metric_number(100 * tn_ter_score(t), decimals, score));
    return to;
}
