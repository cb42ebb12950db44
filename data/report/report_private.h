/* report_private.h — how the parts of a report write themselves. Private. */
#ifndef TENON_DATA_REPORT_REPORT_PRIVATE_H
#define TENON_DATA_REPORT_REPORT_PRIVATE_H

#include "data/text/data_private.h"
#include "data/report.h"

struct tn_report {
    tn_string body, page;
    char     *title;
    int       choices, alternatives; /* numbers of the last */
    bool      choosing;
};

/* All of them add to the body. put: markup, as printf has it, but without %f, whose point depends on the locale (see
 * tn__tenths); text: a user's, escaped. A part that fails half-way is taken out again by end. */
void      tn__report_put(tn_report *r, const char *fmt, ...) TN_PRINTF(2, 3);
void      tn__report_text(tn_report *r, const char *text);
bool      tn__report_begin(tn_report *r, const char *who, const void *needed, size_t *mark);
tn_status tn__report_end(tn_report *r, size_t mark);
void      tn__report_svg(tn_report *r, const char *title, double width, double height);

/* v with at most one decimal, "12.5", as coordinates are written. */
typedef struct {
    char text[24];
} tn__number_text;
tn__number_text tn__tenths(double v); /* NaN as 0: what has no place */
tn__number_text tn__short(double v);  /* six significant digits: "0.001", "1e-05" */

/* What is drawn: numbers are marked as floats, and their differences and steps must be finite too. What is larger is
 * left out, as infinities and NaN are. */
bool tn__is_drawn(double v);

const char *tn__report_style(void); /* <style>…</style> */

enum { TN__REPORT_COLOURS = 8 };
int64_t tn__report_width(const char *text); /* columns of it, roughly */

#endif
