/* init_orthogonal.c — a matrix whose rows (or columns, whichever are fewer) are orthogonal and of length gain: normal
 * random values, orthogonalised by Gram-Schmidt, as in QR with a positive diagonal.
 *
 * Computed in f64, in panels of PANEL rows. First the panel's projection on the finished rows is subtracted, by two
 * matrix products; then the panel's rows are made orthogonal to each other. Both steps run twice, which is enough
 * (Giraud, Langou, Rozložník: On the loss of orthogonality in the Gram-Schmidt orthogonalization process; 2005). */
#include "nn/base/nn_private.h"

#include <math.h>

enum { PANEL = 32 };

static double dot(int64_t n, const double *x, const double *y)
{
    double s = 0;
    for (int64_t i = 0; i < n; i++) s += x[i] * y[i];
    return s;
}

/* q [rows, n], rows <= n: makes rows from … to - 1 orthonormal. False if a row becomes 0, which random rows do not. */
static bool within(double *q, int64_t n, int64_t from, int64_t to)
{
    for (int64_t i = from; i < to; i++) {
        double *row = q + i * n;
        for (int again = 0; again < 2; again++)
            for (int64_t k = from; k < i; k++) {
                const double share = dot(n, row, q + k * n);
                for (int64_t j = 0; j < n; j++) row[j] -= share * q[k * n + j];
            }
        const double length = sqrt(dot(n, row, row));
        if (!(length > 0)) return false;
        for (int64_t j = 0; j < n; j++) row[j] /= length;
    }
    return true;
}

static bool right_angles(tn_tensor *q, int64_t rows, int64_t n)
{
    for (int64_t from = 0; from < rows; from += PANEL) {
        const int64_t  to = from + PANEL < rows ? from + PANEL : rows;
        const tn_scope s = tn_scope_begin();
        for (int again = 0; again < 2 && from; again++) {
            tn_tensor *done = tn_narrow(q, 0, 0, from), *panel = tn_narrow(q, 0, from, to - from);
            tn_sub_(panel, tn_matmul(tn_matmul(panel, tn_transpose(done, 0, 1)), done));
        }
        double *v = tn_data_mut(q);
        if (v && !within(v, n, from, to))
            tn_raise(TN_ENUMERIC, "tn_init_orthogonal: the random values are linearly dependent; call it again");
        tn_scope_end(s);
        if (tn_error() != TN_OK) return false;
    }
    return true;
}

tn_tensor *tn_init_orthogonal(tn_tensor *t, double gain)
{
    char text[192];
    if (tn__blocked()) return NULL;
    if (!t || !tn_dtype_is_float(tn_dtype_of(t)) || tn_ndim(t) < 2)
        return tn_raise_null(TN_ESHAPE,
                             "tn_init_orthogonal: the tensor must be floating with at least two dims, got %s",
                             t ? tn_shape_text(tn_shape_of(t), text, sizeof text) : "NULL");
    if (!tn_numel(t) || tn__self.mode.blank) return t;
    const tn_scope     s = tn_no_grad_begin();
    const tn_generator before = *tn_current_generator();
    const int64_t      rows = tn_size(t, 0), cols = tn_numel(t) / rows, few = rows < cols ? rows : cols,
                  many = rows < cols ? cols : rows;
    tn_tensor *q = tn_normal_of(TN_F64, TN_SHAPE(few, many), 0, 1);
    bool       ok = q && right_angles(q, few, many);
    if (ok) {
        if (rows > cols) q = tn_transpose(q, 0, 1);
        q = tn_reshape(tn_mul_scalar(q, gain), tn_shape_of(t));
        ok = q && tn_copy_from(t, q) == TN_OK;
    }
    tn_scope_end(s);
    if (!ok) *tn_current_generator() = before;
    return ok ? t : NULL;
}
