/* report_private.h — the report struct, and how its parts write markup. Private. */
#ifndef TENON_EXTRAS_REPORT_REPORT_PRIVATE_H
#define TENON_EXTRAS_REPORT_REPORT_PRIVATE_H

#include "data/data.h"
#include "extras/report.h"

#include <errno.h>
#include <math.h>

struct tn_report {
    tn_string body, page;
    tn_string title;
    tn_string figure_title, legend;      /* text and SVG elements of the last figure; for tn_report_save_figure */
    int       width, height, legend_end; /* the last figure's sizes, in its units */
    bool      log_x, log_y;              /* scales of the next curves */
    int       choices, alternatives;     /* numbers of the last choice and alternative */
    bool      choosing;
    bool      parts;     /* the next figure has parts that a reader chooses */
    size_t    figure_at; /* where the last figure's <svg> starts in the body, or before */
    int       margin;    /* pixels by which parts of the last figure reach beyond its <svg> on the left */
    bool      scripted;  /* a figure uses the script */
    int       refresh;   /* seconds until a reader loads the page again; 0: never */
};

enum { TN__REPORT_LEFT = 62, TN__REPORT_RIGHT = 24 };            /* margins of curves, in pixels; also in the style */
void tn__report_head(tn_string *to, bool scripted, int refresh); /* from <!doctype> on */

/* These functions append to the body. put: markup with printf formats, except %f, whose decimal point depends on the
 * locale (see tn__tenths); text: a user's text, escaped. After an error, end removes a partly written part. */
void      tn__report_put(tn_report *r, const char *fmt, ...) TN_PRINTF(2, 3);
void      tn__report_text(tn_report *r, const char *text);
bool      tn__report_begin(tn_report *r, const char *who, const void *needed, size_t *mark);
tn_status tn__report_end(tn_report *r, size_t mark);
/* <figure>, the title, and <svg>, scaled so that its letters have at least 10 pixels. `about` describes the figure to a
 * reader who does not see it; NULL: only the title does. */
void tn__report_svg(tn_report *r, const char *title, const char *about, double width, double height);
/* The rest of an <svg> tag: role, name, description. */
void tn__report_about(tn_report *r, const char *title, const char *about);
/* Notes the title and size of the next <svg>, for tn_report_save_figure. tn__report_svg calls it. */
void tn__report_figure(tn_report *r, const char *title, double width, double height);
/* An entry of the legend, which is below the figure on the page and above it in a saved figure. */
void tn__report_legend(tn_report *r, int k, const char *name);

/* v with at most one decimal, "12.5", for coordinates. */
typedef struct {
    char text[24];
} tn__number_text;
tn__number_text tn__tenths(double v); /* NaN as 0 */
tn__number_text tn__short(double v);  /* six significant digits: "0.001", "1e-05" */

/* f(x) of the C library, which leaves errno as it was. The pointer hides from the compiler, which expects that errno is
 * never set, what is called. */
static inline double tn__report_math(double (*volatile f)(double), double x)
{
    const int    keep = errno;
    const double y = f(x);
    errno = keep;
    return y;
}
static inline double tn__report_log(double x) { return tn__report_math(log, x); }
static inline double tn__power_of_ten(double x)
{
    double (*volatile f)(double, double) = pow;
    const int    keep = errno;
    const double y = f(10, x);
    errno = keep;
    return y;
}

static inline int64_t tn__report_least(int64_t a, int64_t b) { return a < b ? a : b; }
static inline int64_t tn__report_most(int64_t a, int64_t b) { return a > b ? a : b; }

/* True if v can be drawn: labels are floats, and their differences and steps must be finite too. Larger values are
 * skipped, like infinities and NaN. */
bool tn__is_drawn(double v);

const char *tn__report_style(void);  /* <style>…</style> */
const char *tn__report_script(void); /* <script>…</script> */

enum { TN__REPORT_COLOURS = 8 };
int64_t tn__report_width(const char *text); /* approximate width in columns */

#endif
