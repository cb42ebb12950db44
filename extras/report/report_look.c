/* report_look.c — figures of a model's inside: alternatives of which one is shown, the paths of attention through the
 * layers from one word, and words coloured by value. No script: radio buttons choose, so that the keyboard works
 * too. */
#include "extras/report/report_private.h"

#include <math.h>

/* ---- choices ----------------------------------------------------------------------------------------------------- */

tn_status tn_report_choice(tn_report *r, const char *title, const char *name, bool first)
{
    size_t mark;
    if (!tn__report_begin(r, "tn_report_choice", name, &mark)) return tn_error();
    if (first) {
        if (r->choosing) tn__report_put(r, "</div></div>\n");
        r->choices++;
        tn__report_put(r, "<fieldset class=\"t\"><legend>");
        tn__report_text(r, title ? title : "");
        tn__report_put(r, "</legend></fieldset><div class=\"t\">\n");
    } else if (!r->choosing) {
        return tn_raise(TN_ESTATE, "tn_report_choice: no choice is open; pass first = true with the first alternative");
    } else tn__report_put(r, "</div>\n");
    r->alternatives = first ? 0 : r->alternatives + 1;
    tn__report_put(r, "<input type=\"radio\" name=\"g%d\" id=\"g%d_%d\"%s><label for=\"g%d_%d\">", r->choices,
                   r->choices, r->alternatives, first ? " checked" : "", r->choices, r->alternatives);
    tn__report_text(r, name);
    tn__report_put(r, "</label><div class=\"p\">\n");
    r->choosing = true;
    return tn__report_end(r, mark);
}

tn_status tn_report_choice_end(tn_report *r)
{
    size_t mark;
    if (!tn__report_begin(r, "tn_report_choice_end", r, &mark)) return tn_error();
    if (r->choosing) tn__report_put(r, "</div></div>\n");
    r->choosing = false;
    return tn__report_end(r, mark);
}

/* ---- from layer to layer ----------------------------------------------------------------------------------------- */

enum { STEP = 22, TOP = 26, MAX_WORDS = 200, MAX_LAYERS = 128 };

static bool is_weights(const char *who, const tn_tensor *w, int64_t n, int64_t word)
{
    char text[192];
    if (tn_ndim(w) != 3 || tn_size(w, 1) != n || tn_size(w, 2) != n || !tn_dtype_is_float(tn_dtype_of(w)))
        return tn_raise_false(TN_ESHAPE,
                              "%s: weights is %s of dtype %s, expected a floating dtype and [layers, %lld, %lld]", who,
                              tn_shape_text(tn_shape_of(w), text, sizeof text), tn_dtype_name(tn_dtype_of(w)),
                              (long long)n, (long long)n);
    if (n < 1 || n > MAX_WORDS || word < 0 || word >= n || tn_size(w, 0) < 1 || tn_size(w, 0) > MAX_LAYERS)
        return tn_raise_false(TN_EINDEX, "%s: word %lld of %lld words (at most %d) and %lld layers (1 to %d)", who,
                              (long long)word, (long long)n, MAX_WORDS, (long long)tn_size(w, 0), MAX_LAYERS);
    return true;
}

/* Lines from layer l + 1 at x1 to layer l at x0, with the strength of their flow; replaces `here` by the flow into
 * layer l. */
static void put_step(tn_report *r, const tn_tensor *w, int64_t l, int64_t n, double x0, double x1, double *here)
{
    double below[MAX_WORDS] = {0};
    for (int64_t i = 0; i < n; i++)
        for (int64_t j = 0; j < n; j++) {
            const double v = tn_get(w, (l * n + i) * n + j), flow = here[i] * (v > 0 ? fmin(v, 1) : 0);
            below[j] += flow;
            if (flow < 0.02) continue;
            tn__report_put(
                r, "<path d=\"M%s %lldL%s %lld\" stroke=\"var(--c0)\" stroke-width=\"%s\" stroke-opacity=\"%s\">",
                tn__tenths(x1).text, (long long)(TOP + i * STEP + 10), tn__tenths(x0).text,
                (long long)(TOP + j * STEP + 10), tn__tenths(1 + 4 * flow).text,
                tn__short(round(100 * fmin(1, 0.15 + flow)) / 100).text);
            tn__report_put(r, "<title>%d%%</title></path>\n", (int)(100 * flow + 0.5));
        }
    for (int64_t j = 0; j < n; j++) here[j] = below[j];
}

tn_status tn_report_paths(tn_report *r, const char *title, int64_t n, const char *const *words, const tn_tensor *w,
                          int64_t word)
{
    size_t  mark;
    double  here[MAX_WORDS] = {0};
    int64_t wide = 3;
    if (!tn__report_begin(r, "tn_report_paths", w, &mark)) return tn_error();
    if (!words) return tn_raise(TN_EINVAL, "tn_report_paths: the words are NULL");
    if (!is_weights("tn_report_paths", w, n, word)) return tn_error();
    for (int64_t i = 0; i < n; i++) wide = tn__report_most(wide, tn__report_width(words[i]));
    const int64_t layers = tn_size(w, 0), left = tn__report_least(wide, 24) * 8 + 14, gap = layers > 8 ? 60 : 90;
    tn__report_svg(r, title, NULL, (double)(2 * left + layers * gap), (double)(TOP + n * STEP + 8));
    here[word] = 1;
    for (int64_t l = layers; l >= 0; l--) {
        const int64_t x = left + l * gap;
        tn__report_put(r, "<text class=\"d m\" x=\"%lld\" y=\"14\">%lld</text>\n", (long long)x, (long long)l);
        for (int64_t i = 0; i < n; i++)
            tn__report_put(r, "<circle cx=\"%lld\" cy=\"%lld\" r=\"%s\" fill=\"var(--c0)\" fill-opacity=\"%s\"/>\n",
                           (long long)x, (long long)(TOP + i * STEP + 10), tn__tenths(2 + 5 * fmin(1, here[i])).text,
                           tn__short(round(100 * fmin(1, 0.12 + here[i])) / 100).text);
        if (l) put_step(r, w, l - 1, n, (double)(x - gap), (double)x, here);
    }
    for (int64_t i = 0; i < n; i++) {
        tn__report_put(r, "<text class=\"e\" x=\"%lld\" y=\"%lld\">", (long long)left - 10,
                       (long long)(TOP + i * STEP + 14));
        tn__report_text(r, words[i]);
        tn__report_put(r, "</text><text%s x=\"%lld\" y=\"%lld\">", i == word ? " font-weight=\"700\"" : " class=\"d\"",
                       (long long)(left + layers * gap + 10), (long long)(TOP + i * STEP + 14));
        tn__report_text(r, words[i]);
        tn__report_put(r, "</text>\n");
    }
    tn__report_put(r,
                   "</svg><small>from the last layer on the right to the words on the left; the strength of a line is "
                   "its flow</small></figure>\n");
    return tn__report_end(r, mark);
}

/* ---- words by value ---------------------------------------------------------------------------------------------- */

tn_status tn_report_values(tn_report *r, const char *title, int64_t n, const char *const *words, const double *values)
{
    size_t mark;
    double most = 0;
    if (!tn__report_begin(r, "tn_report_values", words, &mark)) return tn_error();
    if (!values || n < 1) return tn_raise(TN_EINVAL, "tn_report_values: n is below 1, or values is NULL");
    for (int64_t i = 0; i < n; i++) most = fmax(most, isfinite(values[i]) ? fabs(values[i]) : 0);
    tn__report_put(r, "<figure><figcaption>");
    tn__report_text(r, title ? title : "");
    tn__report_put(r, "</figcaption><div class=\"w\">");
    for (int64_t i = 0; i < n; i++) {
        const double value = isfinite(values[i]) ? values[i] : 0, v = most > 0 ? value / most : 0;
        tn__report_put(r, "<span tabindex=\"0\" class=\"%s\" style=\"--s:%d%%\" title=\"%s\">", v < 0 ? "x" : "y",
                       (int)(65 * fabs(v) + 0.5), tn__short(value).text);
        tn__report_text(r, words[i]);
        tn__report_put(r, "<small>%s</small></span> ",
                       isfinite(values[i]) ? tn__short(round(1000 * value) / 1000).text : "–");
    }
    tn__report_put(r, "</div></figure>\n");
    return tn__report_end(r, mark);
}
