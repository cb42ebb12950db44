/* test_average.c — the mean of several weight files: equals the mean computed by hand; a file that does not fit changes
 * nothing. */
#include "tests/common/check_main.h"

#include "models/models.h"
#include "tests/common/faults.h"

/* A module with floating values, a counter (batches tracked) and saved statistics. */
static tn_sequential *net_of(int i)
{
    tn_seed((uint64_t)i + 1);
    tn_sequential *net = tn_sequential_new();
    tn_append(net, tn_linear_new(.in = 3, .out = 4));
    tn_append(net, tn_batch_norm1d_new(.features = 4));
    for (int k = 0; k <= i; k++) tn_call(net, tn_normal(TN_SHAPE(5, 3), 0, 1));
    return net;
}
static const char *file_of(int i)
{
    static char path[3][300];
    char        name[32];
    snprintf(name, sizeof name, "mean-%d.safetensors", i);
    snprintf(path[i], sizeof path[i], "%s", tn_test_file(name));
    tn_sequential *net = net_of(i);
    ck_assert_int_eq(tn_save(net, path[i]), TN_OK);
    tn_free(net);
    return path[i];
}
static double first_of(tn_sequential *net)
{
    tn_each p = tn_parameters(net);
    tn_next(&p);
    return tn_get(p.tensor, 0);
}

TEST(by_hand)
{
    const tn_scope s = tn_scope_begin();
    tn_sequential *net[3], *mean = net_of(1);
    tn_load_args   from[3] = {{.path = NULL}};
    for (int i = 0; i < 3; i++) from[i].path = file_of(i), net[i] = net_of(i);
    ck_assert_int_eq(tn_load_mean(mean, 3, from), TN_OK);
    int64_t checked = 0;
    for (tn_each a = tn_module_each((tn_module *)net[0], TN_EACH_SAVED),
                 b = tn_module_each((tn_module *)net[1], TN_EACH_SAVED),
                 c = tn_module_each((tn_module *)net[2], TN_EACH_SAVED),
                 m = tn_module_each((tn_module *)mean, TN_EACH_SAVED);
         tn_next(&a) && tn_next(&b) && tn_next(&c) && tn_next(&m);) {
        if (!tn_dtype_is_float(tn_dtype_of(m.tensor))) {
            ck_assert_int_eq(tn_get_i64(m.tensor, 0), 3); /* from the last file */
            continue;
        }
        for (int64_t i = 0; i < tn_numel(m.tensor); i++, checked++)
            ck_assert(tn_get(m.tensor, i) ==
                      (float)((tn_get(a.tensor, i) + tn_get(b.tensor, i) + tn_get(c.tensor, i)) / 3));
    }
    ck_assert_int_eq(checked, 12 + 4 + 4 + 4 + 4 + 4);
    for (int i = 0; i < 3; i++) tn_free(net[i]);
    tn_free(mean);
    tn_scope_end(s);
}

/* The mean of one file, or of the same file several times, has its bits. A checkpoint may be one of the files. */
TEST(of_equals)
{
    const tn_scope s = tn_scope_begin();
    tn_sequential *net = net_of(0), *mean = net_of(1);
    const char    *path = file_of(0), *checkpoint = tn_test_file("mean.ckpt");
    ck_assert_int_eq(tn_checkpoint_save(checkpoint, .module = net, .step = 3), TN_OK);
    const tn_load_args from[3] = {{.path = path}, {.path = checkpoint, .prefix = "model."}, {.path = path}};
    for (int n = 1; n <= 3; n += 2) {
        ck_assert_int_eq(tn_load_mean(mean, n, from), TN_OK);
        for (tn_each a = tn_parameters(net), b = tn_parameters(mean); tn_next(&a) && tn_next(&b);)
            ck_assert(tn_same_bits(a.tensor, b.tensor) && tn_needs_grad(b.tensor));
    }
    tn_free(net), tn_free(mean);
    tn_scope_end(s);
}

TEST(wrong_use)
{
    const tn_scope s = tn_scope_begin();
    char           text[700];
    const char    *other = tn_test_file("other.safetensors"), *fewer = tn_test_file("fewer.safetensors");
    tn_sequential *wide = tn_sequential_new(), *net = net_of(0);
    tn_load_args   from[2] = {{.path = file_of(1)}, {.path = other}};
    const double   before = first_of(net);
    tn_append(wide, tn_linear_new(.in = 3, .out = 5));
    tn_append(wide, tn_batch_norm1d_new(.features = 5));
    ck_assert_int_eq(tn_save(wide, other), TN_OK);
    tn_free(wide);
    wide = tn_sequential_new();
    tn_append(wide, tn_linear_new(.in = 3, .out = 4));
    ck_assert_int_eq(tn_save(wide, fewer), TN_OK);
    tn_free(wide);

    ck_assert_int_eq(tn_load_mean(net, 2, from), TN_EFORMAT);
    snprintf(text, sizeof text,
             "tn_load: '%s' holds another model: 6 of another shape: 0.bias is [4], the file has [5]", other);
    ck_error(TN_EFORMAT, text);
    from[1].path = fewer;
    ck_assert_int_eq(tn_load_mean(net, 2, from), TN_EFORMAT);
    snprintf(text, sizeof text, "tn_load: '%s' holds another model: 5 names missing (1.weight, …)", fewer);
    ck_error(TN_EFORMAT, text);
    ck_fails(tn_load_mean(net, 0, from), TN_EINVAL, "tn_load_mean: a mean needs at least 1 file, got 0");
    from[0].allow_missing = true;
    ck_fails(tn_load_mean(net, 2, from), TN_EINVAL,
             "tn_load_mean: .allow_... is set, but each file must fit completely; remove it");
    ck_assert(first_of(net) == before);
    tn_free(net);
    tn_scope_end(s);
}

static double once(int i)
{
    const tn_scope     s = tn_scope_begin();
    tn_sequential     *net = net_of(i);
    static const char *path[2];
    if (!path[0]) path[0] = tn_test_file("mean-0.safetensors");
    const tn_load_args from[2] = {{.path = path[0]}, {.path = path[0]}};
    tn_load_mean(net, 2, from);
    const double v = tn_error() == TN_OK ? first_of(net) : 0;
    tn_free(net);
    tn_scope_end(s);
    return v;
}
BARE_TEST(memory)
{
    const tn_scope s = tn_scope_begin();
    file_of(0);
    tn_scope_end(s);
    tn_each_allocation_fails(once, 1, 1, 7, 40);
}
