/* golden_case.c — compares modules with values of PyTorch; see golden_case.h. */
#include "tests/common/golden_case.h"
#include "tests/common/check_main.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

tn_tensor *tn_golden_values(const char *name, tn_dtype dt, tn_shape s)
{
    uint32_t h = 2166136261u;
    for (const char *c = name; *c; c++) h = (h ^ (uint8_t)*c) * 16777619u;
    tn_tensor *t = tn_zeros_of(dt, s);
    for (int64_t i = 0; i < tn_numel(t); i++) tn_set(t, i, (double)((i * 7919 + (int64_t)h) % 10007 - 5003) / 8192);
    return t;
}

static const char *key(const tn_golden *k, const char *between, const char *what)
{
    return tn_name("%s/%s%s", k->name, between, what);
}

tn_tensor *tn_golden_input(tn_golden *k, const char *what, tn_shape s)
{
    ck_assert_int_lt(k->inputs, TN_GOLDEN_INPUTS);
    tn_tensor *x = tn_mul_scalar(tn_golden_values(key(k, "", what), k->dtype, s), 2);
    k->what[k->inputs] = what;
    return k->input[k->inputs++] = tn_requires_grad(x);
}

void *tn_golden_fill(tn_golden *k, void *module)
{
    ck_assert_msg(module != NULL, "%s: %s", k->name, tn_error_message());
    ck_assert(!k->module);
    k->module = module;
    const tn_scope s = tn_no_grad_begin();
    for (tn_each p = tn_module_each(module, TN_EACH_PARAMETER); tn_next(&p);) {
        const size_t n = strlen(p.name);
        tn_tensor   *v = tn_golden_values(key(k, "", p.name), k->dtype, tn_shape_of(p.tensor));
        if (tn_ndim(v) > 1) v = tn_mul_scalar(v, k->matrices == 0 ? 1 : k->matrices);
        else if (n >= 6 && !strcmp(p.name + n - 6, "weight")) v = tn_add_scalar(tn_mul_scalar(v, 0.5), 1);
        ck_assert_int_eq(tn_copy_from(p.tensor, v), TN_OK);
    }
    tn_scope_end(s);
    return module;
}

static void compare(tn_safetensors *file, const char *name, const tn_tensor *got, double tol)
{
    tn_tensor *want = tn_safetensors_get(file, name);
    ck_assert_msg(want != NULL, "%s: %s", name, tn_error_message());
    ck_assert_msg(got != NULL, "%s: nothing was computed", name);
    ck_assert_msg(tn_shape_equal(tn_shape_of(got), tn_shape_of(want)), "%s: another shape", name);
    double largest = 0, worst = 0;
    for (int64_t i = 0; i < tn_numel(want); i++) largest = fmax(largest, fabs(tn_get(want, i)));
    for (int64_t i = 0; i < tn_numel(want); i++) {
        const double w = tn_get(want, i), g = tn_get(got, i);
        worst = fmax(worst, fabs(w - g) / largest);
        ck_assert_msg(fabs(w - g) <= tol * largest, "%s [%lld]: PyTorch has %.10g, we have %.10g (relative %.2g)", name,
                      (long long)i, w, g, fabs(w - g) / largest);
    }
    if (getenv("TENON_TEST_WORST")) printf("%.2g %s %s\n", worst, tn_dtype_name(tn_dtype_of(got)), name);
}

void tn_golden_check(tn_safetensors *golden, const tn_golden_case *c)
{
    for (int f64 = 1; f64 >= 0; f64--) {
        const double   tol = f64 ? 1e-10 : 2e-6;
        const tn_scope s = tn_scope_begin();
        tn_golden      k = {.name = c->name, .dtype = f64 ? TN_F64 : TN_F32};
        tn_tensor     *y = c->run(&k);
        int64_t        compared = 0, there = 0;
        ck_assert_msg(y != NULL, "%s: %s", c->name, tn_error_message());
        ck_assert_int_eq(tn_dtype_of(y), k.dtype);
        tn_backward(y, .seed = tn_golden_values(key(&k, "", "gy"), k.dtype, tn_shape_of(y)));
        ck_assert_msg(tn_error() == TN_OK, "%s: %s", c->name, tn_error_message());
        compare(golden, key(&k, "", "y"), y, tol), compared++;
        if (k.w) compare(golden, key(&k, "", "w"), k.w, tol), compared++;
        for (int i = 0; i < k.inputs; i++)
            compare(golden, key(&k, "grad/", k.what[i]), tn_grad(k.input[i]), tol), compared++;
        for (tn_each p = tn_module_each(k.module, TN_EACH_PARAMETER); tn_next(&p);)
            compare(golden, key(&k, "grad/", p.name), tn_grad(p.tensor), tol), compared++;
        for (int64_t i = 0; i < tn_safetensors_count(golden); i++) {
            const char *name = tn_safetensors_at(golden, i).name;
            there += !strncmp(name, c->name, strlen(c->name)) && name[strlen(c->name)] == '/';
        }
        ck_assert_msg(compared == there, "%s: PyTorch has %lld tensors, %lld were compared", c->name, (long long)there,
                      (long long)compared);
        tn_module_free(k.module);
        tn_scope_end(s);
    }
}
