/* mask_leak.c — finds a mask that leaks: the model runs again with other tokens where a mask must hide them, and all
 * results of modules that must not depend on these are compared, bit by bit.
 *
 * Without .padding, the tokens from a position on are other ones, and results before it are compared: for at most
 * PLACES positions, the second and the last token among them. The last one reveals each query that attends to it,
 * whatever the mask; the others, masks that are wrong only within a part of the sequence. */
#include "extras/surface.h"

#include <math.h>
#include <string.h>

enum { PLACES = 8 };

typedef struct {
    const tn_mask_leak_args *a;
    tn_look                 *look[2]; /* results with the tokens as they were, and with others */
    const int64_t           *was;     /* [rows, width]: the tokens as they were */
    const bool              *padding; /* [rows, width]; NULL: see from */
    int64_t                  rows, width, from, compared;
    bool                     hidden, changed; /* a token must be another one; one is */
} search;

static bool is_other(const search *s, int64_t row, int64_t at)
{
    return s->padding ? s->padding[row * s->width + at] : at >= s->from;
}

/* Replaces hidden tokens with others of the same row, whose ids are valid: padding with the first that differs. */
static void change(search *s, int64_t *to)
{
    for (int64_t i = 0; i < s->rows * s->width; i++) {
        const int64_t at = i % s->width, *row = s->was + i - at;
        if (!is_other(s, i / s->width, at) || (!s->padding && row[at] == s->a->padding_id)) continue;
        s->hidden = true;
        int64_t of = s->padding ? 0 : (at + s->from) % s->width;
        while (!s->padding && row[of] == s->a->padding_id) of = (of + 1) % s->width;
        while (s->padding && of < s->width - 1 && (row[of] == row[at] || is_other(s, i / s->width, of))) of++;
        to[i] = row[of];
        s->changed |= to[i] != row[at];
    }
}

/* All runs have the same random numbers. */
static void run(const search *s, int i)
{
    tn_generator      *g = tn_current_generator();
    const tn_generator before = *g;
    const tn_scope     observed = tn_look_begin(s->look[i]);
    s->a->run(s->a->model, s->a->user);
    tn_scope_end(observed);
    *g = before;
}

typedef struct {
    double  size;
    int64_t row, position;
} place;

/* Compares a result, x before and y now, of which one dim counts rows and another one positions: the largest difference
 * at positions that must not have one, and where the first is. */
static place differs(const search *s, const tn_tensor *x, const tn_tensor *y, int row, int position)
{
    place         p = {.size = 0};
    const double *u = tn_data(x), *v = tn_data(y);
    int64_t       step[3] = {tn_numel(x)};
    for (int i = 0; i < 3; i++) step[i] = step[i ? i - 1 : 0] / tn_size(x, i);
    for (int64_t i = 0; i < tn_numel(x); i++) {
        const int64_t r = i / step[row] % tn_size(x, row), at = i / step[position] % tn_size(x, position);
        if (u[i] == v[i] || (isnan(u[i]) && isnan(v[i])) || is_other(s, r, at)) continue;
        if (p.size == 0) p.row = r, p.position = at;
        p.size = fmax(p.size, isfinite(u[i] - v[i]) ? fabs(u[i] - v[i]) : INFINITY);
    }
    return p;
}

/* Compares the results of a module. If its shape can be read in several ways, as with as many heads as tokens, it leaks
 * only if it does so in all of them, because one is right; the place may be that of another one. */
static place compare(search *s, tn_tensor *x, tn_tensor *y)
{
    place found = {.size = 0};
    int   readings = 0, leaks = 0;
    if (tn_ndim(x) < 3 || !tn_dtype_is_float(tn_dtype_of(x)) || !tn_numel(x) || tn_numel(x) != tn_numel(y))
        return found;
    const tn_scope scope = tn_scope_begin();
    x = tn_contiguous(tn_to(x, TN_F64)), y = tn_contiguous(tn_to(y, TN_F64));
    for (int k = 0; k < 6 && tn_error() == TN_OK; k++) {
        const int     row = k / 3, position = k % 3;
        const int64_t shorter = s->width - tn_size(x, position); /* a decoder reads one token less than its targets */
        if (row == position || tn_size(x, row) != s->rows || (shorter && (s->padding || shorter != 1))) continue;
        const place p = differs(s, x, y, row, position);
        if (p.size > 0 && !leaks++) found = p;
        readings++;
    }
    tn_scope_end(scope);
    s->compared += readings;
    if (leaks < readings) found.size = 0;
    return found;
}

static void compare_all(search *s, tn_leak *to)
{
    tn_look *a = s->look[0], *b = s->look[1];
    for (int64_t i = 0, k; i < tn_look_count(a) && to->size == 0 && tn_error() == TN_OK; i++) {
        const char *path = tn_look_name(a, i);
        for (k = 0; k < tn_look_count(b) && strcmp(tn_look_name(b, k), path) != 0;) k++;
        if (k == tn_look_count(b)) continue;
        const place p = compare(s, tn_look_at(a, path), tn_look_at(b, path));
        if (!(p.size > 0)) continue;
        to->size = p.size, to->row = p.row, to->position = p.position, to->from = s->from;
        snprintf(to->path, sizeof to->path, "%s", path);
    }
}

static bool is_matrix(const tn_tensor *t, tn_dtype dt)
{
    return t && tn_dtype_of(t) == dt && tn_ndim(t) == 2 && tn_is_contiguous(t);
}

static void find(search *s, int64_t *tokens, tn_leak *to)
{
    const int64_t n = s->padding ? 1 : PLACES;
    run(s, 0);
    for (int64_t i = 0; i < n && to->size == 0 && tn_error() == TN_OK; i++) {
        const int64_t from = s->padding ? -1 : 1 + i * (s->width - 2) / (PLACES - 1);
        if (i && from == s->from) continue;
        s->from = from;
        change(s, tokens);
        tn_look_clear(s->look[1]);
        run(s, 1);
        compare_all(s, to);
        memcpy(tokens, s->was, (size_t)(s->rows * s->width) * sizeof *tokens);
    }
    if (tn_error() == TN_OK && s->padding && s->hidden && !s->changed)
        tn_raise(TN_EINVAL, "tn_mask_leak: no token where .padding is true can be another one of its row");
    else if (tn_error() == TN_OK && !s->compared)
        tn_raise(TN_EINVAL, "tn_mask_leak: no module of .model has a result [%lld, %lld, …] in .run",
                 (long long)s->rows, (long long)s->width);
}

static bool check(const tn_mask_leak_args *a)
{
    const tn_tensor *x = a->tokens, *p = a->padding;
    if (tn_blocked() || !tn_module_ready("tn_mask_leak", a->model)) return false;
    if (a->run && is_matrix(x, TN_I64) &&
        (!p || (is_matrix(p, TN_BOOL) && tn_size(p, 0) == tn_size(x, 0) && tn_size(p, 1) == tn_size(x, 1))))
        return true;
    return tn_raise_false(TN_EINVAL, "tn_mask_leak: needs .run, .tokens, i64 [B, T], and .padding NULL or bool [B, T], "
                                     "both contiguous");
}

tn_leak tn_mask_leak_run(tn_mask_leak_args a)
{
    tn_leak found = {.size = 0};
    if (!check(&a)) return found;
    const tn_scope scope = tn_no_grad_begin();
    search         s = {.a = &a, .rows = tn_size(a.tokens, 0), .width = tn_size(a.tokens, 1)};
    for (int i = 0; i < 2; i++) s.look[i] = tn_look_new(), tn_look_request(s.look[i], "**");
    if (a.padding) s.padding = tn_data(a.padding);
    const tn_tensor *copy = tn_clone(a.tokens);
    if (copy && s.rows && s.width > 1) s.was = tn_data(copy), find(&s, tn_data_mut(a.tokens), &found);
    for (int i = 0; i < 2; i++) tn_look_free(s.look[i]);
    tn_scope_end(scope);
    return found;
}
