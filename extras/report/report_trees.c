/* report_trees.c — a figure of two trees over the words of a sentence: arcs above the words and arcs below them. */
#include "extras/report/report_private.h"

enum { TREE_WORDS = 200, GAP = 20 /* pixels for the words between the arcs */ };

static int64_t arc_height(int64_t i, int64_t j) { return 12 + 9 * tn__report_least(i < j ? j - i : i - j, 16); }

/* The height of the largest arc; -1: an index is out of range, raised. */
static int64_t arcs_height(int64_t n, const int64_t *to)
{
    int64_t most = 0;
    for (int64_t i = 0; i < n; i++) {
        if (to[i] < -1 || to[i] >= n || to[i] == i)
            return tn_raise(TN_EINDEX,
                            "tn_report_trees: word %lld is joined to %lld, expected another of %lld words or -1",
                            (long long)i, (long long)to[i], (long long)n),
                   -1;
        if (to[i] >= 0) most = tn__report_most(most, arc_height(i, to[i]));
    }
    return most;
}

/* The arcs of one tree; up is 1 for arcs above y, -1 for arcs below. An arc that `other` lacks is dashed. */
static void put_arcs(tn_report *r, int64_t n, const int64_t *to, const int64_t *other, const double *x, int64_t y,
                     int up)
{
    for (int64_t i = 0; i < n; i++) {
        if (to[i] < 0) continue;
        const bool    common = other[i] == to[i] || other[to[i]] == i;
        const int64_t a = tn__report_least(i, to[i]), b = tn__report_most(i, to[i]),
                      top = y - up * arc_height(i, to[i]);
        tn__report_put(r, "<path class=\"f\" stroke=\"var(--%s)\" stroke-width=\"1.5\"%s d=\"M%s %lldC%s %lld",
                       common ? "good" : "bad", common ? "" : " stroke-dasharray=\"4 3\"", tn__tenths(x[a] + 3).text,
                       (long long)y, tn__tenths(x[a] + 3).text, (long long)top);
        tn__report_put(r, " %s %lld %s %lld\"/>\n", tn__tenths(x[b] - 3).text, (long long)top,
                       tn__tenths(x[b] - 3).text, (long long)y);
    }
}

tn_status tn_report_trees(tn_report *r, const char *title, int64_t n, const char *const *words, const int64_t *above,
                          const int64_t *below)
{
    size_t mark;
    double x[TREE_WORDS] = {0}, width = 4;
    if (!tn__report_begin(r, "tn_report_trees", words, &mark)) return tn_error();
    if (!above || !below || n < 1 || n > TREE_WORDS)
        return tn_raise(TN_EINVAL, "tn_report_trees: expected 1 to %d words and two trees, got %lld words", TREE_WORDS,
                        (long long)n);
    const int64_t up = arcs_height(n, above), down = up < 0 ? -1 : arcs_height(n, below);
    if (down < 0) return tn_error();
    for (int64_t i = 0; i < n; i++) {
        const double wide = 8.0 * (double)tn__report_most(tn__report_width(words[i]), 2) + 8;
        x[i] = width + wide / 2, width += wide;
    }
    tn__report_svg(r, title, "Arcs above and below the words of a sentence", width + 4, (double)(up + GAP + down + 8));
    put_arcs(r, n, above, below, x, up + 2, 1);
    put_arcs(r, n, below, above, x, up + 2 + GAP, -1);
    for (int64_t i = 0; i < n; i++) {
        tn__report_put(r, "<text class=\"m\" x=\"%s\" y=\"%lld\">", tn__tenths(x[i]).text, (long long)up + 16);
        tn__report_text(r, words[i]);
        tn__report_put(r, "</text>\n");
    }
    tn__report_put(r, "</svg></figure>\n");
    return tn__report_end(r, mark);
}
