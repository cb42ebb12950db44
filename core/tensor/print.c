/* print.c — tn_print, which prints a tensor as PyTorch does (1.13, with its default print options).
 *
 * Floating values have one format for the whole tensor, chosen from the shown values that are finite and not 0:
 *   all are whole       "1.", and scientific if the largest is above 10^8 or above 1000 times the smallest
 *   otherwise           "0.1000", and scientific for these reasons or if the smallest is below 10^-4
 * They are padded to the widest of them. Beyond 1000 elements only three at each end of a dim are shown.
 *
 * Nothing is allocated, nothing is raised, and the program's locale has no effect. */
#include "core/tensor/convert.h"
#include "core/tensor/print.h"
#include "core/tensor/tensor.h"

#include <math.h>
#include <string.h>

enum { PRECISION = 4, THRESHOLD = 1000, EDGE = 3, LINE = 80, TEXT = 32 };

typedef enum { WHOLE, FIXED, SCIENTIFIC } form;

typedef struct {
    FILE            *to;
    const tn_tensor *t;
    int              column; /* column of the next character */
    bool             summary;
    form             form;
    int              width;
} printer;

static void put(printer *p, const char *s)
{
    fputs(s, p->to);
    const char *line = strrchr(s, '\n');
    p->column = line ? (int)strlen(line + 1) : p->column + (int)strlen(s);
}

static void put_spaces(printer *p, int n)
{
    for (; n > 0; n--) put(p, " ");
}

/* ---- one element ---------------------------------------------------------------------------------------------- */

/* printf writes the decimal point of the locale, which is the text between the first and the next digits. */
void tn__c_decimal_point(char *s)
{
    char *point = s + (*s == '-');
    while (*point >= '0' && *point <= '9') point++;
    char *rest = point;
    while (*rest && (*rest < '0' || *rest > '9')) rest++;
    if (rest == point) return;
    *point = '.';
    memmove(point + 1, rest, strlen(rest) + 1);
}

static int element_text(const printer *p, const void *at, char text[TEXT])
{
    const tn_dtype dt = p->t->dtype;
    if (dt == TN_BOOL) return snprintf(text, TEXT, "%s", tn__load_i64(at, dt) ? "True" : "False");
    if (!tn__is_float(dt)) return snprintf(text, TEXT, "%lld", (long long)tn__load_i64(at, dt));
    const double v = tn__load(at, dt);
    if (isnan(v)) return snprintf(text, TEXT, "nan");
    if (isinf(v)) return snprintf(text, TEXT, v < 0 ? "-inf" : "inf");
    if (p->form == WHOLE) return snprintf(text, TEXT, "%.0f.", v);
    snprintf(text, TEXT, p->form == FIXED ? "%.*f" : "%.*e", PRECISION, v);
    tn__c_decimal_point(text);
    return (int)strlen(text);
}

static void put_element(printer *p, const void *at)
{
    char text[TEXT];
    int  n = element_text(p, at, text);
    put_spaces(p, p->width - n);
    put(p, text);
}

/* ---- elements that are shown ------------------------------------------------------------------------------------- */

/* The number of entries of a dim that are shown, and the index of the k-th. */
static int64_t shown(const printer *p, int dim)
{
    const int64_t d = p->t->l.shape.d[dim];
    return p->summary && d > 2 * EDGE ? 2 * EDGE : d;
}
static int64_t shown_index(const printer *p, int dim, int64_t k)
{
    return k < EDGE ? k : p->t->l.shape.d[dim] - shown(p, dim) + k;
}
static bool gap_before(const printer *p, int dim, int64_t k) { return k == EDGE && shown_index(p, dim, k) > EDGE; }

static const void *element(const printer *p, const int64_t k[TN_MAX_DIMS])
{
    int64_t offset = 0;
    for (int i = 0; i < p->t->l.shape.n; i++) offset += shown_index(p, i, k[i]) * p->t->l.stride[i];
    return (const char *)tn__ptr(p->t) + offset * (int64_t)tn__dtype_bytes(p->t->dtype);
}

/* Increments index k in dims 0 … last; returns the dim that changed, -1 at the end. */
static int next(const printer *p, int64_t k[TN_MAX_DIMS], int last)
{
    for (int i = last; i >= 0; i--) {
        if (++k[i] < shown(p, i)) return i;
        k[i] = 0;
    }
    return -1;
}

static void choose_form(printer *p)
{
    const tn_dtype dt = p->t->dtype;
    const int      last = p->t->l.shape.n - 1;
    char           text[TEXT];
    double         least = INFINITY, most = 0;
    bool           whole = true;
    p->form = WHOLE, p->width = 1;
    if (tn__is_float(dt)) {
        int64_t k[TN_MAX_DIMS] = {0};
        do {
            const double v = tn__load(element(p, k), dt);
            if (!isfinite(v) || v == 0) continue;
            least = fmin(least, fabs(v)), most = fmax(most, fabs(v));
            whole = whole && v == ceil(v);
        } while (next(p, k, last) >= 0);
        if (!whole) p->form = FIXED;
        if (most > 0 && (most / least > 1000 || most > 1e8 || (!whole && least < 1e-4))) p->form = SCIENTIFIC;
    }
    int64_t k[TN_MAX_DIMS] = {0};
    do { /* infinities, NaN and 0 do not widen the column, as in PyTorch */
        const void  *at = element(p, k);
        const double v = tn__is_float(dt) ? tn__load(at, dt) : 1;
        const int    n = isfinite(v) && v != 0 ? element_text(p, at, text) : 0;
        if (n > p->width) p->width = n;
    } while (next(p, k, last) >= 0);
}

/* ---- the whole tensor -------------------------------------------------------------------------------------------- */

/* Prints the elements of the last dim, as many per line as fit; k: index of the row. */
static void put_row(printer *p, int64_t k[TN_MAX_DIMS], int indent)
{
    const int dim = p->t->l.shape.n - 1, fit = (LINE - indent) / (p->width + 2);
    int       in_line = 0;
    put(p, "[");
    for (k[dim] = 0; k[dim] < shown(p, dim); k[dim]++) {
        for (int gap = gap_before(p, dim, k[dim]); gap >= 0; gap--) {
            if (in_line && in_line >= fit) {
                put(p, ",\n"), put_spaces(p, indent + 1);
                in_line = 0;
            } else if (k[dim] > 0) {
                put(p, ", ");
            }
            if (gap) put(p, " ...");
            else put_element(p, element(p, k));
            in_line++;
        }
    }
    k[dim] = 0;
    put(p, "]");
}

/* Prints the comma between two entries of a dim above the rows. */
static void put_break(printer *p, int dim, int indent)
{
    put(p, ",");
    for (int i = p->t->l.shape.n - 1 - dim; i > 0; i--) put(p, "\n");
    put_spaces(p, indent + dim + 1);
}

static void put_elements(printer *p, int indent)
{
    const int n = p->t->l.shape.n;
    int64_t   k[TN_MAX_DIMS] = {0};
    choose_form(p);
    if (n == 0) {
        put_element(p, element(p, k));
        return;
    }
    for (int i = 0; i < n - 1; i++) put(p, "[");
    for (;;) {
        put_row(p, k, indent + n - 1);
        const int moved = next(p, k, n - 2);
        for (int i = n - 2; i > moved; i--) put(p, "]");
        if (moved < 0) return;
        put_break(p, moved, indent);
        if (gap_before(p, moved, k[moved])) put(p, "..."), put_break(p, moved, indent);
        for (int i = n - 2; i > moved; i--) put(p, "[");
    }
}

/* Prints ", dtype=f64", on a new line if the line would be too long. */
static void put_suffix(printer *p, const char *text, int *length, int indent)
{
    const int n = (int)strlen(text);
    if (*length + n + 2 > LINE) {
        put(p, ",\n"), put_spaces(p, indent);
        *length = indent + n;
    } else {
        put(p, ", ");
        *length += n + 2;
    }
    put(p, text);
}

void tn_print(FILE *to, const tn_tensor *t)
{
    if (!to) return;
    if (!t) {
        const bool failed = tn_error() != TN_OK;
        fprintf(to, "tensor(NULL)%s%s\n", failed ? ": " : "", failed ? tn_error_message() : "");
        return;
    }
    const int64_t n = tn_shape_numel(t->l.shape);
    printer       p = {.to = to, .t = t, .summary = n > THRESHOLD};
    char          text[256], shape[192];
    put(&p, "tensor(");
    const int indent = p.column;
    if (n) put_elements(&p, indent);
    else put(&p, "[]");

    int length = p.column + 2; /* PyTorch counts two more */
    if (!n && t->l.shape.n != 1) {
        tn_shape_text(t->l.shape, shape, sizeof shape);
        shape[strlen(shape) - 1] = 0;
        snprintf(text, sizeof text, "size=(%s)", shape + 1);
        put_suffix(&p, text, &length, indent);
    }
    if (n ? t->dtype != TN_F32 && t->dtype != TN_I64 && t->dtype != TN_BOOL : t->dtype != TN_F32) {
        snprintf(text, sizeof text, "dtype=%s", tn_dtype_name(t->dtype));
        put_suffix(&p, text, &length, indent);
    }
    if (t->leaf) put_suffix(&p, "requires_grad=True", &length, indent);
    put(&p, ")\n");
}
