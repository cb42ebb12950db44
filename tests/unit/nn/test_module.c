/* test_module.c — the base of modules: building, names, walks, running with hooks and paths, changing whole modules,
 * printing, and error messages. Tying, sharing and copying are in test_module_trees.c. */
#define _GNU_SOURCE
#include "tests/common/check_main.h"
#include "tests/common/faults.h"
#include "tests/common/user_modules.h"

#include <pthread.h>

/* ---- building -------------------------------------------------------------------------------------------------- */

TEST(a_users_module_runs_and_trains)
{
    mlp *m = mlp_new(3);
    ck_assert_ptr_nonnull(m);
    ck_assert_int_eq(tn_count(m), 3 * 12 + 12 + 12 * 3 + 3);
    tn_scope   s = tn_scope_begin();
    tn_tensor *x = tn_uniform(TN_SHAPE(5, 3), -1, 1), *y = tn_call(m, x), *z = mlp_forward(m, x);
    ck_assert(tn_shape_equal(tn_shape_of(y), TN_SHAPE(5, 3)));
    ck_assert(tn_allclose(y, z, 0, 0));
    ck_assert_int_eq(tn_backward(tn_sum(y)), TN_OK);
    for (tn_each p = tn_parameters(m); tn_next(&p);) {
        ck_assert_ptr_nonnull(tn_grad(p.tensor));
        ck_assert(p.parameter && p.saved);
    }
    tn_zero_grads(m);
    for (tn_each p = tn_parameters(m); tn_next(&p);) ck_assert_ptr_null(tn_grad(p.tensor));
    tn_scope_end(s);
    tn_free(m);
}

TEST(parameters_belong_to_the_module_alone)
{
    int64_t before = tn_memory_now().tensors;
    mlp    *m = mlp_new(3);
    ck_assert_int_eq(tn_memory_now().tensors, before + 4);
    tn_free(m);
    ck_assert_int_eq(tn_memory_now().tensors, before); /* although the scope in which they were created is still open */
}

TEST(names_are_dotted_and_in_order)
{
    model *m = model_new(2);
    ck_assert_str_eq(names(tn_parameters(m)),
                     "scale words.weight layers.0.up.weight layers.0.up.bias layers.0.down.weight layers.0.down.bias "
                     "layers.1.up.weight layers.1.up.bias layers.1.down.weight layers.1.down.bias");
    ck_assert_str_eq(names(tn_buffers(m)), "seen mask");
    ck_assert_str_eq(names(tn_modules(m)),
                     "words layers.0 layers.0.up layers.0.down layers.1 layers.1.up layers.1.down head");
    ck_assert_str_eq(names(tn_module_each(m->layers[1], TN_EACH_PARAMETER)), "up.weight up.bias down.weight down.bias");
    /* all names, including tied and shared ones; without unsaved ones */
    ck_assert_str_eq(
        names(tn_module_each(m, TN_EACH_SAVED | TN_EACH_NAME)),
        "scale seen words.weight layers.0.up.weight layers.0.up.bias layers.0.down.weight layers.0.down.bias "
        "layers.1.up.weight layers.1.up.bias layers.1.down.weight layers.1.down.bias head.weight "
        "again.up.weight again.up.bias again.down.weight again.down.bias");
    ck_assert_str_eq(tn_name_of(m->layers[1]->down->bias), "bias");
    ck_assert_int_eq(tn_count(m), 40 + 2 * (16 * 4 + 16 + 16 * 4 + 4) + 4);
    ck_assert(tn_find(m, "layers.1.down") == &m->layers[1]->down->base);
    ck_assert(tn_find(m, "") == &m->base);
    ck_assert(tn_find_tensor(m, "layers.1.down.bias") == m->layers[1]->down->bias);
    ck_assert(tn_find_tensor(m, "seen") == m->seen);
    tn_free(m);
}

TEST(absent_parts_are_left_out)
{
    mlp *m = tn_module_new(mlp);
    ck_assert_ptr_null(tn_param(m, "bias", NULL));
    ck_assert_ptr_null(tn_buffer(m, "mean", NULL));
    m->up = tn_child(m, "up", (tn_linear *)NULL);
    ck_assert_ptr_nonnull(m = tn_built(m));
    ck_assert_str_eq(names(tn_modules(m)), "");
    tn_free(m);
    tn_free((mlp *)NULL);
    tn_each e = tn_modules((mlp *)NULL);
    ck_assert(!tn_next(&e));
}

/* ---- running --------------------------------------------------------------------------------------------------- */

TEST(a_frame_leaves_nothing_but_its_results)
{
    model     *m = model_new(2);
    tn_tensor *x = tn_from_data(TN_I64, TN_SHAPE(3), (int64_t[]){1, 2, 9}), *h = NULL;
    tn_scope   s = tn_no_grad_begin();
    int64_t    before = tn_memory_now().tensors;
    tn_tensor *y = model_forward(m, x, &h);
    ck_assert_int_eq(tn_memory_now().tensors, before + 2);
    ck_assert_int_eq(tn_size(y, 1), 10);
    ck_assert_int_eq(tn_size(h, 1), 4);
    tn_scope_end(s);
    ck_assert_int_eq(tn_memory_now().tensors, before);
    tn_free(m);
}

TEST(messages_begin_with_the_path)
{
    tn_sequential *net = tn_sequential_new();
    mlp           *m = tn_append(net, mlp_new(3));
    tn_append(net, tn_relu_new());
    tn_tensor *x = tn_ones(TN_SHAPE(2, 5));
    ck_assert_ptr_null(tn_call(net, x)); /* the typed forward inside adds its module's name to the path once */
    ck_error(TN_ESHAPE, "0.up: linear: x [2, 5] does not fit weight [12, 3] ([out, in]): its last dim must be 3");
    ck_refused(mlp_forward(m, x), TN_ESHAPE,
               "0.up: linear: x [2, 5] does not fit weight [12, 3] ([out, in]): its last dim must be 3");
    ck_refused(tn_call(m->down, x), TN_ESHAPE,
               "down: linear: x [2, 5] does not fit weight [3, 12] ([out, in]): its last dim must be 12");
    tn_raise(TN_EINVAL, "outside");
    ck_error(TN_EINVAL, "outside");
    tn_free(net);
}

/* Two results; the second part may fail after the first has drawn random values. */
typedef struct {
    tn_module   base;
    tn_dropout *drop;
    tn_linear  *last;
} noisy;
TN_MODULE(noisy);
static tn_tensor *noisy_forward(noisy *m, tn_tensor *x, double *drawn)
{
    if (!tn_ready(m)) return NULL;
    tn_frame f = tn_enter(m);
    *drawn = tn_random_double(NULL);
    tn_tensor *h = tn_call(m->drop, x), *y = tn_call(m->last, h);
    tn_leave_n(f, &y, &h);
    return y;
}

TEST(a_forward_that_fails_has_drawn_nothing)
{
    noisy *m = tn_module_new(noisy);
    m->drop = tn_child(m, "drop", tn_dropout_new(.p = 0.5));
    m->last = tn_child(m, "last", tn_linear_new(.in = 30, .out = 2));
    m = tn_built(m);
    tn_sequential *net = tn_sequential_new();
    tn_append(net, tn_dropout_new(.p = 0.5));
    tn_append(net, tn_linear_new(.in = 30, .out = 2));
    tn_tensor   *good = tn_ones(TN_SHAPE(2, 30)), *bad = tn_ones(TN_SHAPE(2, 31));
    tn_generator mine = {.seed = 5, .position = 9};
    for (int own = 0; own < 2; own++) {
        tn_generator      *old = tn_use_generator(own ? &mine : NULL), *g = tn_current_generator();
        const tn_generator before = *g;
        double             first, again;
        tn_call(net, bad);
        ck_error(TN_ESHAPE, "1: linear: x [2, 31] does not fit weight [2, 30] ([out, in]): its last dim must be 30");
        ck_assert_uint_eq(g->position, before.position);
        ck_refused(noisy_forward(m, bad, &first), TN_ESHAPE,
                   "last: linear: x [2, 31] does not fit weight [2, 30] ([out, in]): its last dim must be 30");
        ck_assert_uint_eq(g->position, before.position);
        ck_assert_ptr_nonnull(noisy_forward(m, good, &again));
        ck_assert_double_eq(first, again);
        ck_assert_uint_gt(g->position, before.position); /* a successful call has drawn */
        tn_use_generator(old);
    }
    tn_free(m), tn_free(net);
}

/* Several threads may run a module at once; each has its own scopes, path and errors. */
typedef struct {
    model     *m;
    tn_tensor *x;
    double     sum;
    bool       told;
} reader;

static void *read_module(void *user)
{
    reader *r = user;
    for (int i = 0; i < 20; i++) {
        tn_scope s = tn_no_grad_begin();
        r->sum = tn_item(tn_sum(model_forward(r->m, r->x, NULL)));
        tn_call(r->m->layers[1], tn_ones(TN_SHAPE(1, 3)));
        r->told = !strncmp(tn_error_message(), "layers.1.up: linear: ", 21);
        tn_clear_error();
        tn_scope_end(s);
    }
    return NULL;
}

TEST(threads_run_one_module)
{
    enum { THREADS = 4 };
    pthread_t  thread[THREADS];
    reader     r[THREADS];
    model     *m = model_new(2);
    tn_tensor *x = tn_from_data(TN_I64, TN_SHAPE(3), (int64_t[]){1, 2, 9});
    double     want = tn_item(tn_sum(model_forward(m, x, NULL)));
    for (int i = 0; i < THREADS; i++) {
        r[i] = (reader){m, x, 0, false};
        ck_assert_int_eq(pthread_create(&thread[i], NULL, read_module, &r[i]), 0);
    }
    for (int i = 0; i < THREADS; i++) {
        pthread_join(thread[i], NULL);
        ck_assert(r[i].sum == want && r[i].told);
    }
    tn_free(m);
}

static tn_tensor *twice(tn_module *m, tn_tensor *x, void *user)
{
    (void)m;
    strcat(user, "b");
    return tn_mul_scalar(x, 2);
}
static tn_tensor *look(tn_module *m, tn_tensor *x, tn_tensor *y, void *user)
{
    (void)m, (void)x, (void)y;
    strcat(user, "l");
    return NULL;
}
static tn_tensor *plus_one(tn_module *m, tn_tensor *x, tn_tensor *y, void *user)
{
    (void)m, (void)x, (void)user;
    return tn_add_scalar(y, 1);
}

TEST(hooks_see_and_replace)
{
    char         log[20] = "", other = 0;
    tn_identity *m = tn_identity_new();
    ck_assert_int_eq(tn_before(m, twice, log), TN_OK);
    ck_assert_int_eq(tn_after(m, look, log), TN_OK);
    ck_assert_int_eq(tn_after(m, plus_one, &other), TN_OK);
    ck_assert_int_eq(tn_before(m, twice, log), TN_OK);
    ck_assert_double_eq(tn_item(tn_call(m, tn_scalar(3))), 13);
    ck_assert_str_eq(log, "bbl");
    tn_remove_hooks(m, log);
    ck_assert_double_eq(tn_item(tn_call(m, tn_scalar(3))), 4);
    ck_assert_str_eq(log, "bbl");
    tn_before(m, NULL, NULL);
    ck_error(TN_EINVAL, "tn_before: the hook is NULL");
    tn_free(m);
}

/* ---- changing whole modules ------------------------------------------------------------------------------------ */

TEST(train_eval_and_freeze_reach_all)
{
    model *m = model_new(1);
    tn_eval(m);
    for (tn_each e = tn_modules(m); tn_next(&e);) ck_assert(!e.module->training);
    tn_train(m, true);
    for (tn_each e = tn_modules(m); tn_next(&e);) ck_assert(e.module->training);
    tn_freeze(m->words, true);
    ck_assert_int_eq(tn_count_trainable(m), tn_count(m) - 40);
    tn_tensor *x = tn_from_data(TN_I64, TN_SHAPE(2), (int64_t[]){1, 2});
    ck_assert_int_eq(tn_backward(tn_sum(model_forward(m, x, NULL))), TN_OK);
    ck_assert_ptr_null(tn_grad(m->words->weight));
    ck_assert_ptr_nonnull(tn_grad(m->scale));
    tn_freeze(m, true);
    ck_assert_int_eq(tn_count_trainable(m), 0);
    ck_assert_ptr_null(tn_grad(m->scale));
    tn_freeze(m, false);
    ck_assert_int_eq(tn_count_trainable(m), tn_count(m));
    tn_free(m);
}

TEST(all_of_a_module_changes_its_number_type)
{
    model     *m = model_new(1);
    tn_tensor *w = m->words->weight, *x = tn_from_data(TN_I64, TN_SHAPE(2), (int64_t[]){1, 2});
    double     first = tn_get(w, 7);
    tn_tensor *loss = tn_sum(model_forward(m, x, NULL));
    ck_assert_int_eq(tn_backward(tn_sum(model_forward(m, x, NULL))), TN_OK);
    double grad = tn_get(tn_grad(w), 7);
    ck_assert_int_eq(tn_module_to(m, TN_F64), TN_OK);
    ck_assert(m->words->weight == w && m->head->weight == w);
    ck_assert_int_eq(tn_dtype_of(w), TN_F64);
    ck_assert_int_eq(tn_dtype_of(tn_grad(w)), TN_F64);
    ck_assert_int_eq(tn_dtype_of(m->mask), TN_F64);
    ck_assert_int_eq(tn_dtype_of(m->seen), TN_I64);
    ck_assert(tn_get(w, 7) == first && tn_get(tn_grad(w), 7) == grad);
    /* the tape recorded before has saved values that no longer exist */
    ck_assert_int_ne(tn_backward(loss), TN_OK);
    ck_assert_ptr_nonnull(strstr(tn_error_message(), "tn_adopt"));
    tn_clear_error();
    ck_assert_int_eq(tn_backward(tn_sum(model_forward(m, x, NULL))), TN_OK);
    ck_assert_int_eq(tn_module_to(m, TN_BF16), TN_OK);
    ck_assert_int_eq(tn_dtype_of(tn_call(m->layers[0], tn_zeros_of(TN_BF16, TN_SHAPE(1, 4)))), TN_BF16);
    ck_fails(tn_module_to(m, TN_I32), TN_EDTYPE, "tn_module_to: parameters are f32, f64 or bf16, not i32");
    tn_free(m);
}

/* ---- printing -------------------------------------------------------------------------------------------------- */

TEST(it_prints_as_pytorch_does)
{
    tn_sequential *net = tn_sequential_new();
    tn_append(net, tn_linear_new(.in = 1, .out = 32));
    tn_append(net, tn_gelu_new());
    tn_sequential *inner = tn_append(net, tn_sequential_new());
    tn_append(inner, tn_linear_new(.in = 32, .out = 1, .no_bias = true));
    tn_append(inner, tn_sequential_new());
    tn_append(net, tn_relu_new());
    ck_assert_str_eq(printed(net, tn_module_print), "Sequential(\n"
                                                    "  (0): Linear(in_features=1, out_features=32, bias=True)\n"
                                                    "  (1): GELU(approximate='none')\n"
                                                    "  (2): Sequential(\n"
                                                    "    (0): Linear(in_features=32, out_features=1, bias=False)\n"
                                                    "    (1): Sequential()\n"
                                                    "  )\n"
                                                    "  (3): ReLU()\n"
                                                    ")\n");
    ck_assert_str_eq(printed(inner->base.base ? tn_find(net, "0") : NULL, tn_module_print),
                     "Linear(in_features=1, out_features=32, bias=True)\n");
    tn_free(net);
}

TEST(a_summary_counts)
{
    model *m = model_new(1);
    tn_freeze(m->layers[0], true);
    ck_assert_str_eq(printed(m, tn_module_summary),
                     "name                  type  shape                      elements        bytes\n"
                     "scale                 f32   [4]                               4         16 B\n"
                     "seen (buffer)         i64   []                                1          8 B\n"
                     "mask (buffer)         f32   [3]                               3         12 B\n"
                     "words.weight          f32   [10, 4]                          40        160 B\n"
                     "layers.0.up.weight    f32   [16, 4]                          64        256 B  frozen\n"
                     "layers.0.up.bias      f32   [16]                             16         64 B  frozen\n"
                     "layers.0.down.weight  f32   [4, 16]                          64        256 B  frozen\n"
                     "layers.0.down.bias    f32   [4]                               4         16 B  frozen\n"
                     "model: 192 parameters (148 frozen), 4 elements in buffers, 788 B\n");
    tn_free(m);
}

TEST(containers_hold_modules)
{
    tn_module_list *list = tn_module_list_new();
    tn_module_dict *dict = tn_module_dict_new();
    for (int i = 0; i < 3; i++) tn_append(list, mlp_new(2));
    tn_child(dict, "en", tn_linear_new(.in = 1, .out = 2));
    tn_child(dict, "de", tn_linear_new(.in = 3, .out = 4));
    ck_assert_int_eq(tn_length(list), 3);
    mlp *last = tn_at(list, -1), *third = tn_at(list, 2);
    ck_assert(last == third && tn_find(list, "2") == &last->base);
    ck_assert_int_eq(((tn_linear *)tn_find(dict, "de"))->in, 3);
    ck_refused(tn_at(list, 3), TN_EINDEX, "tn_at: 3 is outside a ModuleList of 3");
    ck_refused(tn_at(list, -4), TN_EINDEX, "tn_at: -4 is outside a ModuleList of 3");
    ck_refused(tn_call(list, tn_ones(TN_SHAPE(1, 2))), TN_EUNSUPPORTED,
               "tn_call: ModuleList has no forward of one input and one result; call its typed "
               "function");
    tn_free(list), tn_free(dict);
}

/* ---- wrong use ------------------------------------------------------------------------------------------------- */

static mlp *bare(void) { return tn_module_new(mlp); }

/* A finished module stays unchanged if something cannot be added to it; adding it again succeeds. */
TEST(a_finished_module_stays)
{
    tn_sequential *net = tn_sequential_new();
    tn_append(net, tn_linear_new(.in = 2, .out = 2));
    tn_tensor *x = tn_ones(TN_SHAPE(1, 2));
    tn_matmul(x, x); /* an unrelated error */
    ck_assert_ptr_null(tn_append(net, tn_relu_new()));
    tn_clear_error();
    ck_assert_ptr_null(tn_append(net, tn_linear_new(.in = -1, .out = 2)));
    tn_clear_error();
    ck_assert_ptr_null(tn_tie_to(net, "0.weight", "1.weight"));
    tn_clear_error();
    ck_assert_int_eq(tn_length(net), 1);
    ck_assert_ptr_nonnull(tn_call(net, x));
    ck_assert_ptr_nonnull(tn_append(net, tn_relu_new()));
    ck_assert_ptr_nonnull(tn_call(net, x));
    tn_free(net);
#if !TN_TEST_ASAN
    /* a freed module is also recognised by the functions that build */
    ck_refused_code(tn_append(net, tn_relu_new()), TN_ESTATE);
    ck_refused(tn_param(net, "w", tn_zeros(TN_SHAPE(2))), TN_ESTATE, "tn_param: this module was already freed");
    ck_refused(tn_built(net), TN_ESTATE, "tn_built: this module was already freed");
    tn_sequential *other = tn_sequential_new();
    ck_refused(tn_child(other, "a", net), TN_ESTATE, "tn_child: this module was already freed");
    tn_free(other);
#endif
}

/* A hook that removes itself, as hooks that run once do; without a cache, freed memory is returned at once. */
static tn_tensor *counts(tn_module *m, tn_tensor *x, tn_tensor *y, void *user)
{
    (void)m, (void)x, (void)y;
    ++*(int *)user;
    return NULL;
}
static tn_tensor *goes(tn_module *m, tn_tensor *x, tn_tensor *y, void *user)
{
    (void)x, (void)y;
    tn_remove_hooks(m, user);
    return NULL;
}
TEST(hooks_that_go_while_they_run)
{
    int        me = 0, other = 0;
    tn_linear *l = tn_linear_new(.in = 2, .out = 2);
    tn_tensor *x = tn_ones(TN_SHAPE(1, 2));
    tn_after(l, counts, &me), tn_after(l, goes, &me), tn_after(l, counts, &me), tn_after(l, counts, &other);
    for (int i = 0; i < 2; i++) ck_assert_ptr_nonnull(tn_call(l, x));
    ck_assert_int_eq(me, 1);
    ck_assert_int_eq(other, 2);
    tn_remove_hooks(l, &other);
    tn_call(l, x);
    ck_assert_int_eq(other, 2);
    tn_free(l);
}

TEST(mistakes_in_building)
{
    mlp *m = bare();
    ck_refused(tn_param(m, "w", tn_zeros_of(TN_I64, TN_SHAPE(2))), TN_EDTYPE,
               "tn_requires_grad: only floating tensors have gradients, this one is i64");
    ck_refused(tn_built(m), TN_ESTATE, "mlp: a step of its constructor failed");

    m = bare();
    tn_param(m, "w", tn_zeros(TN_SHAPE(2)));
    ck_refused(tn_param(m, "w", tn_zeros(TN_SHAPE(2))), TN_EINVAL,
               "tn_param: mlp already has a 'w'; names must be unique");
    ck_refused(tn_param(m, "", tn_zeros(TN_SHAPE(2))), TN_EINVAL,
               "tn_param: '' is not a valid name for a part of mlp; valid are \"weight\" or \"layers.0\"");
    ck_refused(tn_child(m, ".up", tn_identity_new()), TN_EINVAL,
               "tn_child: '.up' is not a valid name for a part of mlp; valid are \"weight\" or \"layers.0\"");
    ck_refused(tn_buffer(m, "b", tn_requires_grad(tn_zeros(TN_SHAPE(2)))), TN_EINVAL,
               "tn_buffer: 'b' requires grad; register it with tn_param, or tn_detach it");
    ck_refused(tn_tie(m, "w", tn_zeros(TN_SHAPE(3))), TN_ESHAPE,
               "tn_tie: 'w' is [2], the tensor is [3]; tied tensors must have the same shape");
    ck_refused(tn_tie_to(m, "w", "v"), TN_EINDEX, "tn_find_tensor: there is no 'v' in mlp: it has w");
    ck_refused(tn_tie(m, "w", NULL), TN_EINVAL, "tn_tie: 'w': the tensor is NULL");
    ck_refused(tn_call(m, tn_zeros(TN_SHAPE(2))), TN_ESTATE,
               "mlp: the module is incomplete because its constructor failed; free it and create it again");
    tn_free(m);

    m = NULL;
    ck_refused(tn_child(m, "up", tn_linear_new(.in = 1, .out = 1)), TN_EINVAL,
               "tn_child: the module is NULL; a constructor starts with tn_module_new and `if (!m) return NULL;`");
    ck_refused(tn_name("%0300d", 1)[0] == '0' ? NULL : m, TN_EINVAL,
               "tn_name: '0000000000000000000000000000000000000000...' has 300 bytes, a name has at most 255");
    ck_refused(tn_linear_new(.in = 3), TN_EINVAL, "tn_linear_new: .out is 0, but must be at least 1");
}

/* A file could not distinguish two parts with the same path. */
TEST(paths_are_unique)
{
    mlp *m = bare();
    tn_child(m, "up", tn_linear_new(.in = 1, .out = 1));
    ck_assert_ptr_nonnull(tn_param(m, "up.scale", tn_zeros(TN_SHAPE(1))));
    ck_refused(tn_param(m, "up.weight", tn_zeros(TN_SHAPE(1))), TN_EINVAL,
               "tn_param: mlp already has a 'up.weight', a part of a child; choose another name");
    tn_free(m);
    m = bare();
    tn_param(m, "up.weight", tn_zeros(TN_SHAPE(1)));
    ck_refused(tn_child(m, "up", tn_linear_new(.in = 1, .out = 1)), TN_EINVAL,
               "tn_child: mlp already has a 'up.weight', a part of a child; choose another name");
    tn_free(m);
}

TEST(mistakes_with_owners)
{
    tn_sequential *a = tn_sequential_new(), *b = tn_sequential_new();
    tn_linear     *l = tn_append(a, tn_linear_new(.in = 2, .out = 2));
    tn_free(l);
    ck_error(TN_ESTATE, "tn_free: this Linear is '0' of a Sequential, which frees it; free only the root");
    ck_refused(tn_append(b, l), TN_EINVAL,
               "tn_child: '0' is already '0' of a Sequential; use tn_share for a second name");
    tn_free(b);
    b = tn_append(a, tn_sequential_new());
    ck_refused(tn_share(b, "up", a), TN_EINVAL, "tn_share: 'up' would make this Sequential a part of itself");
    tn_free(a);
    a = tn_sequential_new();
    ck_refused(tn_append(a, a), TN_EINVAL, "tn_child: '0' would make this Sequential a part of itself");
    tn_free(a);
}

TEST(there_is_a_floor)
{
    tn_sequential *root = tn_sequential_new(), *at = root;
    for (int i = 1; i < TN_MAX_DEPTH; i++) ck_assert_ptr_nonnull(at = tn_append(at, tn_sequential_new()));
    ck_refused(tn_append(at, tn_sequential_new()), TN_EINVAL, "tn_child: '0' would nest modules more than 48 deep");
    int n = 0;
    for (tn_each e = tn_modules(root); tn_next(&e);) n++;
    ck_assert_int_eq(n, TN_MAX_DEPTH);
    tn_free(root);
}

TEST(mistakes_in_running)
{
    mlp   *m = NULL;
    model *n = model_new(1);
    ck_refused(
        tn_call(m, tn_zeros(TN_SHAPE(1))), TN_EINVAL,
        "tn_call: the module is NULL: it is an absent child, or its constructor failed and the error was cleared");
    ck_refused(tn_call(n->head, NULL), TN_EINVAL, "head: Linear: the input is NULL");
    ck_refused(tn_call(n, tn_zeros(TN_SHAPE(1))), TN_EUNSUPPORTED,
               "tn_call: model has no forward of one input and one result; call its typed function");
    ck_refused(tn_find(n, "layers.0.upp"), TN_EINDEX,
               "tn_find: there is no 'layers.0.upp' in model: 'layers.0' has up, down");
    ck_refused(tn_find(n, "layers.0.up.wieght.x"), TN_EINDEX,
               "tn_find: there is no 'layers.0.up.wieght.x' in model: 'layers.0.up' has weight, bias");
    ck_refused(
        tn_find_tensor(n, "wrods.weight"), TN_EINDEX,
        "tn_find_tensor: there is no 'wrods.weight' in model: it has words, layers.0, scale, seen, mask, head, again");
    ck_refused(tn_find_tensor(n, "words"), TN_EINDEX, "tn_find_tensor: 'words' is a module; use tn_find");
    ck_refused(tn_find(n, "scale"), TN_EINDEX, "tn_find: 'scale' is a tensor; use tn_find_tensor");
    tn_free(n);
}

/* While an error is set, nothing is built or changed, and nothing leaks. */
TEST(an_error_stops_everything)
{
    model *m = model_new(1);
    mlp   *half = bare();
    tn_raise(TN_EINVAL, "before");
    ck_assert_ptr_null(mlp_new(3));
    ck_assert_ptr_null(bare());
    ck_assert_ptr_null(tn_param(half, "w", NULL));
    ck_assert_ptr_null(tn_copy(m));
    ck_assert_ptr_null(tn_call(m->head, NULL));
    tn_eval(m);
    tn_freeze(m, true);
    ck_assert_int_eq(tn_module_to(m, TN_F64), TN_EINVAL);
    ck_assert_str_eq(names(tn_buffers(m)), "seen mask"); /* readers work */
    tn_free(half);
    tn_clear_error();
    ck_assert(m->base.training && tn_needs_grad(m->scale) && tn_dtype_of(m->scale) == TN_F32);
    tn_free(m);
}

/* A child created before the error is freed by the parent that cannot take it. */
TEST(no_child_is_lost)
{
    tn_generator before = *tn_current_generator();
    mlp         *m = bare();
    tn_linear   *l = tn_linear_new(.in = 2, .out = 2);
    tn_raise(TN_EINVAL, "between");
    m->up = tn_child(m, "up", l);
    ck_assert_ptr_null(m->up);
    ck_assert_ptr_null(tn_built(m));
    tn_clear_error();
    ck_assert_uint_eq(tn_current_generator()->position, before.position);
}

/* Its random draws are undone, too, if its new parent has no memory for its name. */
TEST(a_failed_append_leaves_no_trace)
{
    tn_faulty_memory_begin();
    tn_scope s = tn_scope_begin();
    bool     reached = true;
    for (int64_t n = 0; reached; n++) {
        tn_seed(1);
        tn_sequential *net = tn_sequential_new();
        tn_append(net, tn_linear_new(.in = 2, .out = 2));
        const uint64_t before = tn_current_generator()->position;
        tn_fail_memory(n, false);
        tn_append(net, tn_linear_new(.in = 2, .out = 2));
        reached = tn_memory_calls() > n;
        tn_fail_memory(-1, false);
        tn_clear_error();
        ck_assert(reached == (tn_current_generator()->position == before));
        ck_assert_int_eq(tn_length(net), reached ? 1 : 2);
        tn_free(net);
    }
    tn_scope_end(s);
    tn_faulty_memory_end();
}
