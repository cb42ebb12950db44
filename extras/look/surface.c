/* surface.c — the loss surface around a model's weights (Li et al. 2018): all parameters as one vector, directions, and
 * the loss at points of a plane.
 *
 * Weights before a norm can be scaled without changing the function, which makes plain random directions meaningless.
 * So each filter d_i, a row of a matrix, gets the norm of the model's own filter: d_i · ‖w_i‖ / ‖d_i‖. */
#include "extras/surface.h"

#include <math.h>

/* ---- weights as a vector ----------------------------------------------------------------------------------------- */

tn_tensor *tn_weights_vector(void *model)
{
    if (!tn_module_ready("tn_weights_vector", model)) return NULL;
    const tn_scope s = tn_no_grad_begin();
    int64_t        at = 0;
    tn_tensor     *v = tn_empty(TN_SHAPE(tn_module_count(model, false)));
    for (tn_each p = tn_module_each(model, TN_EACH_PARAMETER); tn_error() == TN_OK && tn_next(&p);) {
        const int64_t n = tn_numel(p.tensor);
        tn_copy_from(tn_narrow(v, 0, at, n), tn_reshape(p.tensor, TN_SHAPE(n)));
        at += n;
    }
    return tn_scope_return(s, v);
}

tn_status tn_weights_set(void *model, tn_tensor *vector)
{
    char text[192];
    if (!tn_module_ready("tn_weights_set", model)) return tn_error();
    const int64_t all = tn_module_count(model, false);
    if (!vector || tn_ndim(vector) != 1 || tn_numel(vector) != all)
        return tn_raise(TN_ESHAPE, "tn_weights_set: the vector is %s, but the model has [%lld] parameters",
                        vector ? tn_shape_text(tn_shape_of(vector), text, sizeof text) : "NULL", (long long)all);
    const tn_scope s = tn_no_grad_begin();
    int64_t        at = 0;
    for (tn_each p = tn_module_each(model, TN_EACH_PARAMETER); tn_error() == TN_OK && tn_next(&p);) {
        const int64_t n = tn_numel(p.tensor);
        tn_copy_from(p.tensor, tn_reshape(tn_narrow(vector, 0, at, n), tn_shape_of(p.tensor)));
        at += n;
    }
    tn_scope_end(s);
    return tn_error();
}

/* d, of w's shape, with its rows scaled to the norms of w's rows; 0 for 1-d parameters. */
static tn_tensor *filter_normalised(tn_tensor *d, tn_tensor *w)
{
    const int64_t n = tn_numel(w), compute_rows = tn_size(w, 0);
    if (tn_ndim(w) < 2) return tn_zeros(TN_SHAPE(n));
    const tn_shape s = TN_SHAPE(compute_rows, compute_rows ? n / compute_rows : 0);
    tn_tensor     *a = tn_norm(tn_reshape(w, s), .dims = TN_DIMS(1), .keepdim = true);
    tn_tensor     *b = tn_norm(tn_reshape(d, s), .dims = TN_DIMS(1), .keepdim = true);
    d = tn_mul(tn_reshape(d, s), tn_div(tn_to(a, TN_F32), tn_add_scalar(b, 1e-10)));
    return tn_reshape(d, TN_SHAPE(n));
}

tn_tensor *tn_weights_direction(void *model, uint64_t seed)
{
    if (!tn_module_ready("tn_weights_direction", model)) return NULL;
    const tn_scope s = tn_no_grad_begin();
    tn_generator   g = {seed, 0}, *before = tn_use_generator(&g);
    int64_t        at = 0;
    tn_tensor     *v = tn_empty(TN_SHAPE(tn_module_count(model, false)));
    for (tn_each p = tn_module_each(model, TN_EACH_PARAMETER); tn_error() == TN_OK && tn_next(&p);) {
        const int64_t n = tn_numel(p.tensor);
        tn_tensor    *d = tn_normal(tn_shape_of(p.tensor), 0, 1);
        tn_copy_from(tn_narrow(v, 0, at, n), filter_normalised(d, p.tensor));
        at += n;
    }
    tn_use_generator(before);
    return tn_scope_return(s, v);
}

/* ---- the path of a training run ---------------------------------------------------------------------------------- */

/* Power iteration: v becomes the eigenvector of the largest eigenvalue of a symmetric [n, n]; a is then deflated. */
static double eigen(double *a, int64_t n, double *v)
{
    double value = 0;
    for (int64_t i = 0; i < n; i++) v[i] = 1 + 0.1 * (double)(i % 7); /* not orthogonal to a typical v */
    for (int step = 0; step < 500; step++) {
        double norm = 0, next[1024];
        for (int64_t i = 0; i < n; i++) {
            next[i] = 0;
            for (int64_t j = 0; j < n; j++) next[i] += a[i * n + j] * v[j];
            norm += next[i] * next[i];
        }
        value = sqrt(norm);
        if (!(value > 0)) break;
        for (int64_t i = 0; i < n; i++) v[i] = next[i] / value;
    }
    for (int64_t i = 0; i < n; i++)
        for (int64_t j = 0; j < n; j++) a[i * n + j] -= value * v[i] * v[j];
    return value;
}

/* The two main directions of rows x [n, N], as linear combinations of the rows, from their small Gram matrix [n, n].
 * Rows are scaled to a maximum of 1 first, so that squares stay in f32's range. */
static tn_tensor *main_directions(tn_tensor *x)
{
    const int64_t n = tn_size(x, 0);
    const double  most = tn_item(tn_amax(tn_abs(tn_reshape(x, TN_SHAPE(-1))), .dims = TN_DIMS(0)));
    if (tn_error() != TN_OK) return NULL;
    if (!(most > 0 && most < INFINITY))
        return tn_raise_null(TN_ENUMERIC, most == 0 ? "tn_weights_path: all vectors are equal"
                                                    : "tn_weights_path: the vectors are not all finite");
    x = tn_mul_scalar(x, 1 / most);
    const size_t bytes = (size_t)(n * n + 2 * n) * sizeof(double);
    double      *a = tn_mem_get(bytes);
    if (!a) return NULL;
    tn_tensor *part = tn_zeros_of(TN_F64, TN_SHAPE(2, n));
    double    *v = a + n * n;
    if (part && tn_copy_out(tn_matmul(x, tn_transpose(x, 0, 1)), TN_F64, a, (size_t)(n * n) * sizeof *a) == TN_OK) {
        const double first = eigen(a, n, v), second = eigen(a, n, v + n);
        if (!(second > 1e-6 * first))
            tn_raise(TN_ENUMERIC, "tn_weights_path: the vectors lie on one line and span no plane; pass more or other "
                                  "vectors");
        tn_copy_in(part, TN_F64, v, (size_t)(2 * n) * sizeof *v);
    }
    tn_mem_put(a, bytes);
    tn_tensor *d = tn_matmul(tn_to(part, TN_F32), x);
    return tn_div(d, tn_add_scalar(tn_norm(d, .dims = TN_DIMS(1), .keepdim = true), 1e-30));
}

tn_status tn_weights_path(int64_t n, tn_tensor *const *vectors, tn_tensor **directions, tn_tensor **places)
{
    if (directions) *directions = NULL;
    if (places) *places = NULL;
    if (tn_blocked()) return tn_error();
    if (!vectors || !directions || !places || n < 3 || n > 1024)
        return tn_raise(TN_EINVAL, "tn_weights_path: n must be from 3 to 1024, and vectors, directions and places not "
                                   "NULL");
    const tn_scope s = tn_no_grad_begin();
    tn_tensor     *x = tn_stack_list(0, (int)n, vectors);
    x = tn_sub(x, tn_unsqueeze(vectors[n - 1], 0));
    tn_tensor *d = x ? main_directions(x) : NULL, *out[2] = {d, d ? tn_matmul(x, tn_transpose(d, 0, 1)) : NULL};
    if (tn_error() == TN_OK) *directions = out[0], *places = out[1];
    tn_scope_return_list(s, tn_error() == TN_OK ? 2 : 0, out);
    return tn_error();
}

/* ---- the plane --------------------------------------------------------------------------------------------------- */

typedef struct {
    const tn_surface_args *a;
    tn_tensor             *at; /* the model's weights */
    const int64_t         *row;
    tn_generator           numbers; /* the caller's: random numbers, as of dropout, are the same at each point */
} plane;

static double coordinate(double from, double to, int64_t i, int64_t n)
{
    return n > 1 ? from + (to - from) * (double)i / (double)(n - 1) : from;
}

static bool row_is_done(const tn_surface_args *a, int64_t y)
{
    for (int64_t x = 0; x < a->nx; x++)
        if (isnan(a->values[y * a->nx + x])) return false;
    return true;
}

/* Computes a range of rows on one thread, with its own copy of the model. */
static void compute_rows(int64_t from, int64_t to, void *user)
{
    const plane           *p = user;
    const tn_surface_args *a = p->a;
    tn_module             *m = tn_module_copy(a->model);
    for (int64_t i = from; i < to && m && tn_error() == TN_OK; i++)
        for (int64_t x = 0; x < a->nx && tn_error() == TN_OK; x++) {
            double *to_value = &a->values[p->row[i] * a->nx + x];
            if (!isnan(*to_value)) continue;
            const tn_scope s = tn_no_grad_begin();
            tn_generator   numbers = p->numbers, *before = tn_use_generator(&numbers);
            tn_tensor     *v = tn_add(p->at, tn_mul_scalar(a->x, coordinate(a->x0, a->x1, x, a->nx)));
            if (a->y) v = tn_add(v, tn_mul_scalar(a->y, coordinate(a->y0, a->y1, p->row[i], a->ny)));
            tn_tensor *loss = tn_weights_set(m, v) == TN_OK ? a->loss(m, a->user) : NULL;
            if (!loss && tn_error() == TN_OK) tn_raise(TN_EINVAL, "tn_surface: the loss is NULL");
            const double value = loss ? tn_item(loss) : NAN;
            if (tn_error() == TN_OK) *to_value = isnan(value) ? INFINITY : value; /* NaN marks points to compute */
            tn_use_generator(before);
            tn_scope_end(s);
        }
    tn_module_free(m);
}

static bool check_arguments(const tn_surface_args *a)
{
    const double bounds = a->x0 + a->x1 + a->y0 + a->y1;
    if (bounds - bounds != 0) return tn_raise_false(TN_EINVAL, "tn_surface: .x0, .x1, .y0 and .y1 must be finite");
    const tn_tensor *const d[] = {a->x, a->y};
    if (!a->loss || !a->x || !a->values)
        return tn_raise_false(TN_EINVAL, "tn_surface: .%s is missing", !a->loss ? "loss" : !a->x ? "x" : "values");
    if (a->nx < 1 || a->nx > 10000 || a->ny < 1 || a->ny > 10000 || (!a->y && a->ny != 1))
        return tn_raise_false(
            TN_EINVAL, "tn_surface: %lld by %lld points; .nx and .ny must be from 1 to 10000, and .ny 1 without .y",
            (long long)a->nx, (long long)a->ny);
    for (int i = 0; i < 2; i++)
        if (d[i] && (tn_ndim(d[i]) != 1 || tn_numel(d[i]) != tn_module_count(a->model, false)))
            return tn_raise_false(TN_ESHAPE, "tn_surface: the direction .%s must be [%lld], one element per parameter",
                                  i ? "y" : "x", (long long)tn_module_count(a->model, false));
    return true;
}

tn_status tn_surface_run(tn_surface_args a)
{
    if (!tn_module_ready("tn_surface", a.model)) return tn_error();
    if (a.ny == 0 && !a.y) a.ny = 1;
    if (!check_arguments(&a)) return tn_error();
    int64_t        n = 0;
    const size_t   bytes = (size_t)a.ny * sizeof(int64_t);
    int64_t       *row = tn_mem_get(bytes);
    const tn_scope s = tn_no_grad_begin();
    for (int64_t y = 0; row && y < a.ny && (a.most <= 0 || n < a.most); y++)
        if (!row_is_done(&a, y)) row[n++] = y;
    plane p = {.a = &a, .at = tn_weights_vector(a.model), .row = row, .numbers = *tn_current_generator()};
    if (tn_error() == TN_OK) tn_parallel_for(n, 1, compute_rows, &p);
    tn_scope_end(s);
    tn_mem_put(row, bytes);
    return tn_error();
}
