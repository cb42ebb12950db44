/* report_map.c — words in a plane. Places are percentages of the figure's width, and letters have one size, so labels
 * that have room on a telephone have room everywhere. They are placed twice, from the first word on: for a narrow page,
 * and for a wide one, where more of them have room. */
#include "extras/report/report_private.h"

#include <math.h>

enum { WIDTH = 860, NARROW = 360, HEIGHT = 560, LINE = 14, LETTER = 7, EDGE = 12, MAX_WORDS = 5000 };

typedef struct {
    double x0, y0, x1, y1;
} box;

/* Places the labels that are not placed yet, if they have room in this width. `level` marks the placed ones. */
static void place_labels(const tn_report_map *m, const double *at, int width, char *level, char mark, box *boxes)
{
    int64_t n = 0;
    for (int64_t pass = 0; pass < 2; pass++)
        for (int64_t i = 0; i < m->n; i++) {
            const double x = EDGE + at[2 * i] * (width - 2 * EDGE), y = EDGE + at[2 * i + 1] * (HEIGHT - 2 * EDGE);
            const double wide = (double)(LETTER * tn__report_width(m->words[i]) + 8), left = at[2 * i] > 0.5 ? wide : 0;
            const box    b = {x - left, y - LINE / 2.0, x - left + wide, y + LINE / 2.0};
            bool         free = pass ? !level[i] : level[i] != 0; /* first the places of the labels that are placed */
            for (int64_t k = 0; pass && free && k < n; k++)
                free = b.x1 < boxes[k].x0 || b.x0 > boxes[k].x1 || b.y1 < boxes[k].y0 || b.y0 > boxes[k].y1;
            if (!free || (pass && (b.x0 < 0 || b.x1 > width))) continue;
            boxes[n++] = b;
            if (pass) level[i] = mark;
        }
}

/* place[i]: the index of word i among the page's words. */
static void put_word(tn_report *r, const tn_report_map *m, int64_t i, const double *at, char level,
                     const int64_t *place)
{
    const tn__number_text x = tn__short(round(1e4 * (EDGE + at[2 * i] * (WIDTH - 2 * EDGE)) / WIDTH) / 100);
    const double          y = EDGE + at[2 * i + 1] * (HEIGHT - 2 * EDGE);
    tn__report_put(r, "<g class=\"b\" tabindex=\"0\" data-n=\"");
    for (int64_t k = 0; k < m->near; k++)
        if (m->neighbours[i * m->near + k] >= 0)
            tn__report_put(r, "%s%lld %s", k ? "," : "", (long long)place[m->neighbours[i * m->near + k]],
                           tn__short(round(100 * m->similarity[i * m->near + k]) / 100).text);
    tn__report_put(r, "\"><circle cx=\"%s%%\" cy=\"%s\" r=\"3\" fill=\"var(--c0)\"/>", x.text, tn__tenths(y).text);
    tn__report_put(r, "<text class=\"%s%s\" x=\"%s%%\" dx=\"%d\" y=\"%s\">", level ? (level > 1 ? "o" : "") : "z",
                   at[2 * i] > 0.5 ? " e" : "", x.text, at[2 * i] > 0.5 ? -6 : 6, tn__tenths(y + 4).text);
    tn__report_text(r, m->words[i]);
    tn__report_put(r, "</text></g>\n");
}

/* Scales the coordinates to [0, 1], y downwards. */
static void fit(const tn_report_map *m, double *to)
{
    for (int axis = 0; axis < 2; axis++) {
        double low = INFINITY, high = -INFINITY;
        for (int64_t i = 0; i < m->n; i++) low = fmin(low, m->at[2 * i + axis]), high = fmax(high, m->at[2 * i + axis]);
        for (int64_t i = 0; i < m->n; i++) {
            const double t = high > low ? (m->at[2 * i + axis] - low) / (high - low) : 0.5;
            to[2 * i + axis] = axis ? 1 - t : t;
        }
    }
}

static bool check(const tn_report_map *m)
{
    if (!m->words || !m->at || m->n < 1 || m->n > MAX_WORDS || m->near < 0 ||
        (m->near && (!m->neighbours || !m->similarity)))
        return tn_raise_false(TN_EINVAL,
                              "tn_report_words: expected 1 to %d .words, .at, and .neighbours and .similarity if .near "
                              "is above 0",
                              MAX_WORDS);
    for (int64_t i = 0; i < 2 * m->n; i++)
        if (!tn__is_drawn(m->at[i]))
            return tn_raise_false(TN_ENUMERIC, "tn_report_words: the place of word %lld is not in -1e37 … 1e37",
                                  (long long)i / 2);
    for (int64_t i = 0; i < m->n * m->near; i++)
        if (m->neighbours[i] >= m->n)
            return tn_raise_false(TN_EINDEX, "tn_report_words: neighbour %lld of %lld words",
                                  (long long)m->neighbours[i], (long long)m->n);
    return true;
}

tn_status tn_report_words(tn_report *r, const char *title, const tn_report_map *m)
{
    size_t mark;
    if (!tn__report_begin(r, "tn_report_words", m, &mark) || !check(m)) return tn_error();
    const size_t n = (size_t)m->n;
    double      *at = tn_mem_get(2 * n * sizeof *at);
    box         *boxes = tn_mem_get(n * sizeof *boxes);
    int64_t     *place = tn_mem_get(n * sizeof *place);
    char        *level = tn_mem_get(n);
    if (at && boxes && place && level) {
        fit(m, at);
        place_labels(m, at, NARROW, level, 1, boxes);
        place_labels(m, at, WIDTH, level, 2, boxes);
        tn__report_figure(r, title, WIDTH, HEIGHT);
        r->scripted = true, r->parts = true;
        tn__report_put(r, "<figure class=\"v\"><figcaption>");
        tn__report_text(r, title);
        tn__report_put(r, "</figcaption>\n<label class=\"j\" hidden>Search <input type=\"search\"></label>\n"
                          "<svg class=\"v map\" ");
        tn__report_about(r, title, "Words near each other have similar vectors");
        for (int64_t k = 0, next = 0; k < 2; k++) /* words with a label come last: no point hides a label */
            for (int64_t i = 0; i < m->n; i++)
                if ((level[i] != 0) == (k == 1)) place[i] = next++;
        for (int64_t k = 0; k < 2; k++)
            for (int64_t i = 0; i < m->n; i++)
                if ((level[i] != 0) == (k == 1)) put_word(r, m, i, at, level[i], place);
        tn__report_put(r, "</svg>\n<div><output><span class=\"j\" hidden>A click on a word shows its neighbours.</span>"
                          "</output></div></figure>\n");
    }
    tn_mem_put(at, 2 * n * sizeof *at);
    tn_mem_put(boxes, n * sizeof *boxes);
    tn_mem_put(place, n * sizeof *place);
    tn_mem_put(level, n);
    return tn__report_end(r, mark);
}
