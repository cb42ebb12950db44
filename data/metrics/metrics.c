/* metrics.c — functions shared by the metrics; accuracy and perplexity. */
#include "data/metrics/metrics_text.h"
#include "core/base/toolbox.h"
#include "core/tensor/print.h"
#include "data/text/unicode.h"

#include <math.h>

/* ---- characters -------------------------------------------------------------------------------------------------- */

static int category(uint32_t c) { return c < 0x110000 ? tn__category(c) : UTF8PROC_CATEGORY_CN; }

tn__char_class tn__class_of(uint32_t c)
{
    int k = category(c);
    if (tn__is_number(k)) return TN__NUMBER;
    if (tn__is_punctuation(k)) return TN__PUNCTUATION;
    return k >= UTF8PROC_CATEGORY_SM && k <= UTF8PROC_CATEGORY_SO ? TN__SYMBOL : TN__OTHER;
}

bool tn__points_lower(tn__points *p)
{
    enum {
        SIGMA = 0x3a3,
        FINAL_SIGMA = 0x3c2,
        DOTTED_I = 0x130 /* its lower case is two characters */
    };
    int64_t dotted = 0, sigmas = 0;
    for (int64_t i = 0; i < p->n; i++) dotted += p->at[i] == DOTTED_I, sigmas += p->at[i] == SIGMA;
    for (int64_t i = 0; i < p->n && sigmas; i++)
        if (p->at[i] == SIGMA && tn__final_sigma(p->at, p->n, i)) p->at[i] = FINAL_SIGMA;
    if (dotted && !tn__grown((void *)&p->at, &p->room, p->n + dotted, sizeof *p->at)) return false;
    for (int64_t from = p->n - 1, to = p->n + dotted - 1; from >= 0; from--) {
        uint32_t c = p->at[from], lower[2] = {c};
        if (c < 0x80) lower[0] = c >= 'A' && c <= 'Z' ? c + 32 : c;
        else if (c < 0x110000 && tn__lower(c, lower) == 2) p->at[to--] = lower[1];
        p->at[to--] = lower[0];
    }
    p->n += dotted;
    return true;
}

void tn__points_strip(tn__points *p)
{
    while (p->n && tn__is_blank(p->at[p->n - 1])) p->n--;
}

bool tn__number_words(const tn__points *line, tn__grams *g, tn__points *to)
{
    to->n = 0;
    for (int64_t i = 0; i < line->n;) {
        uint32_t word = (uint32_t)TN__GRAM_WORDS;
        int64_t  start = i;
        for (; i < line->n && !tn__is_blank(line->at[i]); i++)
            if (!(word = tn__grams_add(g, word, line->at[i]))) return false;
        if (i > start && !tn__points_add(to, word)) return false;
        while (i < line->n && tn__is_blank(line->at[i])) i++;
    }
    return true;
}

/* ---- checks and texts -------------------------------------------------------------------------------------------- */

bool tn__metric_check(const char *who, const void *metric, tn_text output, int n, const tn_text *references)
{
    bool right = metric && (output.at || !output.bytes) && references && n >= 1;
    for (int i = 0; right && i < n; i++) right = references[i].at || !references[i].bytes;
    if (right) return true;
    return tn_raise_false(TN_EINVAL, "%s: %s", who,
                          !metric                      ? "the metric is NULL"
                          : !output.at && output.bytes ? "the output is NULL"
                          : n < 1                      ? "a line needs at least one reference"
                                                       : "a reference is NULL");
}

int tn__metric_references(int before, bool first, int n) { return first || before == n ? n : -1; }

const char *tn__metric_number(double v, int decimals, char to[40])
{
    decimals = decimals < 0 ? 0 : decimals > 15 ? 15 : decimals;
    snprintf(to, 40, "%.*f", decimals, v);
    tn__c_decimal_point(to);
    return to;
}

/* ---- accuracy ---------------------------------------------------------------------------------------------------- */

static int64_t largest(const tn_tensor *t, int64_t row, int64_t n)
{
    int64_t best = 0;
    double  most = tn_get(t, row * n);
    for (int64_t i = 1; i < n && most == most; i++) {
        double v = tn_get(t, row * n + i);
        if (v > most || v != v) most = v, best = i;
    }
    return best;
}

tn_status tn_accuracy_add(tn_accuracy *a, const tn_tensor *predicted, const tn_tensor *labels, int64_t ignored)
{
    if (tn__blocked()) return tn__self.error;
    if (!a || !predicted || !labels)
        return tn_raise(TN_EINVAL, "tn_accuracy_add: %s is NULL", !a ? "a" : !predicted ? "predicted" : "labels");
    tn_shape p = tn_shape_of(predicted), l = tn_shape_of(labels), front = p;
    bool     scores = p.n == l.n + 1;
    int64_t  classes = scores ? p.d[p.n - 1] : 1;
    char     ptext[192], ltext[192];
    if (scores) front.n--;
    if (!tn_shape_equal(front, l) || classes < 1)
        return tn_raise(TN_ESHAPE,
                        "tn_accuracy_add: predicted is %s, labels %s; expected the same shape for labels, or one "
                        "more, last dim for scores",
                        tn_shape_text(p, ptext, sizeof ptext), tn_shape_text(l, ltext, sizeof ltext));
    if (tn_dtype_is_float(tn_dtype_of(labels)) || (!scores && tn_dtype_is_float(tn_dtype_of(predicted))))
        return tn_raise(TN_EDTYPE, "tn_accuracy_add: labels must be integers, not %s",
                        tn_dtype_name(tn_dtype_of(tn_dtype_is_float(tn_dtype_of(labels)) ? labels : predicted)));
    for (int64_t i = 0, n = tn_numel(labels); i < n; i++) {
        int64_t label = tn_get_i64(labels, i);
        if (label == ignored) continue;
        a->counted++;
        a->right += (scores ? largest(predicted, i, classes) : tn_get_i64(predicted, i)) == label;
    }
    return TN_OK;
}

double tn_accuracy_value(const tn_accuracy *a) { return a && a->counted ? (double)a->right / (double)a->counted : 0; }

/* ---- perplexity -------------------------------------------------------------------------------------------------- */

void tn_perplexity_add(tn_perplexity *p, double mean_loss, int64_t tokens)
{
    if (!p || tokens < 1) return;
    p->nats += mean_loss * (double)tokens;
    p->tokens += tokens;
}

double tn_perplexity_value(const tn_perplexity *p)
{
    return p && p->tokens ? tn__libm_exp(p->nats / (double)p->tokens) : NAN;
}
