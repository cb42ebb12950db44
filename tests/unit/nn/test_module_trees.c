/* test_module_trees.c — modules that refer to each other: tied tensors, shared modules, deep copies, and ownership. */
#define _GNU_SOURCE
#include "tests/common/check_main.h"
#include "tests/common/faults.h"
#include "tests/common/user_modules.h"

TEST(tied_tensors_are_one)
{
    model *m = model_new(1);
    ck_assert(m->head->weight == m->words->weight);
    tn_tensor *x = tn_from_data(TN_I64, TN_SHAPE(2), (int64_t[]){1, 2});
    ck_assert_int_eq(tn_backward(tn_sum(tn_square(model_forward(m, x, NULL)))), TN_OK);
    ck_assert_double_ne(tn_get_at(tn_grad(m->words->weight), TN_SHAPE(7, 0)), 0); /* from the head alone */
    /* under a name of its own */
    tn_tensor *t = tn_tie(m, "second", m->scale);
    ck_assert(t == m->scale && tn_find_tensor(m, "second") == t);
    ck_assert_ptr_null(strstr(names(tn_parameters(m)), "second"));
    tn_free(m);
}

/* All pointers equal to a replaced one are updated, anywhere in the tree; a tied tensor is visited once, in any order
 * of registration. */
TEST(a_tie_reaches_every_member)
{
    model *m = model_new(2);
    tn_tie(m, "layers.0.up.weight", m->layers[1]->up->weight);
    ck_assert(m->layers[0]->up->weight == m->layers[1]->up->weight && m->again->up->weight == m->layers[0]->up->weight);
    tn_tie(m->layers[0], "up.bias", m->layers[1]->up->bias);
    ck_assert(m->layers[0]->up->bias == m->layers[1]->up->bias && m->bias == m->layers[1]->up->bias);
    ck_assert_str_eq(names(tn_parameters(m->layers[0])), "up.weight up.bias down.weight down.bias");
    ck_assert_str_eq(names(tn_parameters(m->layers[1])), "up.weight up.bias down.weight down.bias");
    ck_assert_str_eq(names(tn_parameters(m)),
                     "scale words.weight layers.0.up.weight layers.0.up.bias layers.0.down.weight layers.0.down.bias "
                     "layers.1.down.weight layers.1.down.bias");
    tn_free(m);
    /* a tensor that is registered twice is tied, too */
    mlp *twice_there = tn_module_new(mlp);
    tn_param(twice_there, "b", tn_param(twice_there, "a", tn_ones(TN_SHAPE(3))));
    ck_assert_int_eq(tn_count(twice_there), 3);
    tn_free(twice_there);
}

TEST(many_ties_are_told_apart)
{
    mlp       *m = tn_module_new(mlp);
    tn_tensor *t[20];
    for (int i = 0; i < 20; i++) t[i] = tn_param(m, tn_name("t.%d", i), tn_zeros(TN_SHAPE(i + 1)));
    for (int i = 0; i < 20; i++) tn_tie(m, tn_name("again.%d", i), t[i]);
    for (int i = 0; i < 20; i++) tn_tie(m, tn_name("first.%d", i), t[19 - i]);
    ck_assert_int_eq(tn_count(m), 210);
    tn_sequential *net = tn_sequential_new();
    tn_append(net, tn_identity_new());
    for (int i = 0; i < 20; i++) tn_tie(net, tn_name("%d.t", i + 10), t[i]); /* here the ties come first */
    tn_append(net, m);
    ck_assert_int_eq(tn_count(net), 210);
    tn_free(net);
}

/* A constructor with arrays, ties and shared modules runs out of memory at each allocation; nothing is left. */
TEST(a_failed_tree_leaves_no_trace)
{
    tn_faulty_memory_begin();
    tn_scope s = tn_scope_begin();
    bool     reached = true;
    int64_t  n = 0, tensors = tn_memory_now().tensors;
    tn_zeros(TN_SCALAR); /* allocates the scope stack */
    for (model *m = NULL; reached; n++) {
        const int64_t blocks = tn_memory_blocks();
        tn_fail_memory(n, false);
        const tn_scope inner = tn_scope_begin();
        m = model_new(2);
        reached = tn_memory_calls() > n;
        tn_fail_memory(-1, false);
        tn_scope_end(inner);
        ck_assert(reached == !m && tn_error() == (reached ? TN_ENOMEM : TN_OK));
        tn_clear_error();
        if (reached) ck_assert_uint_eq(tn_current_generator()->position, 0);
        tn_free(m);
        ck_assert_int_eq(tn_memory_now().tensors, tensors + 1);
        ck_assert_int_le(tn_memory_blocks(), blocks + 1); /* the scope stack may have grown */
    }
    ck_assert_int_gt(n, 70);
    tn_scope_end(s);
    tn_faulty_memory_end();
}

TEST(a_shared_module_ends_when_all_let_it_go)
{
    tn_sequential *a = tn_sequential_new(), *b = tn_sequential_new();
    tn_linear     *l = tn_append(a, tn_linear_new(.in = 2, .out = 2));
    ck_assert(tn_share(b, "0", l) == l);
    ck_assert(tn_share(b, "1", l) == l);
    ck_assert_int_eq(tn_count(b), 6);
    tn_free(a);
    ck_assert_ptr_nonnull(tn_call(b, tn_ones(TN_SHAPE(1, 2))));
    tn_free(b);

    l = tn_linear_new(.in = 2, .out = 2); /* a root that is shared is still owned by its creator */
    b = tn_sequential_new();
    tn_share(b, "0", l);
    tn_free(b);
    ck_assert_ptr_nonnull(tn_call(l, tn_ones(TN_SHAPE(1, 2))));
    tn_free(l);
}

static tn_tensor *count(tn_module *m, tn_tensor *x, void *user)
{
    (void)m, (void)x;
    ++*(int *)user;
    return NULL;
}

TEST(a_copy_is_deep)
{
    int    calls = 0;
    model *m = model_new(2), *c;
    tn_before(m->head, count, &calls);
    tn_eval(m->layers[1]);
    tn_freeze(m->layers[0], true);
    tn_set(m->mask, 1, 7);
    tn_tensor *x = tn_from_data(TN_I64, TN_SHAPE(3), (int64_t[]){1, 2, 9}), *y = model_forward(m, x, NULL), *z;
    ck_assert_ptr_nonnull(c = tn_copy(m));
    ck_assert(tn_allclose(y, model_forward(c, x, NULL), 0, 0));
    ck_assert_int_eq(calls, 2);
    /* every member points into the copy */
    ck_assert(c->words != m->words && c->words->weight != m->words->weight && c->layers != m->layers);
    ck_assert(c->head->weight == c->words->weight && c->again == c->layers[0] && c->count == 2);
    ck_assert(tn_find(c, "layers.1") == &c->layers[1]->base && tn_find_tensor(c, "mask") == c->mask);
    ck_assert(!c->layers[1]->base.training && c->layers[0]->base.training);
    ck_assert(!tn_needs_grad(c->layers[0]->up->weight) && tn_needs_grad(c->scale) && tn_get(c->mask, 1) == 7);
    ck_assert_str_eq(tn_name_of(c->layers[1]->up->weight), "weight");
    ck_assert_int_eq(tn_count(c), tn_count(m));
    /* nothing is shared with the original */
    tn_scope s = tn_no_grad_begin();
    for (tn_each p = tn_parameters(m); tn_next(&p);) tn_fill(p.tensor, 0);
    z = model_forward(c, x, NULL);
    tn_scope_end(s);
    (void)z;
    tn_free(m);
    ck_assert(tn_allclose(y, model_forward(c, x, NULL), 0, 0));
    /* a part of a tree becomes a root; a tensor tied outside of it is its own in the copy */
    tn_linear *head = tn_copy(c->head);
    ck_assert(head->weight != c->head->weight);
    tn_free(c);
    ck_assert_int_eq(tn_count(head), 40);
    tn_free(head);
}

/* Memory of the module's own: the purpose of .copied and .freed. */
typedef struct {
    tn_module base;
    int      *number;
    void     *self;
} owner;
static int  alive;
static void owner_copied(void *m, const void *from)
{
    owner *o = m;
    o->number = malloc(sizeof *o->number);
    *o->number = *((const owner *)from)->number;
    alive++;
}
static void owner_freed(void *m)
{
    free(((owner *)m)->number);
    alive--;
}
static const tn_class owner_class = {
    .size = sizeof(tn_class), .name = "Owner", .bytes = sizeof(owner), .copied = owner_copied, .freed = owner_freed};
static const tn_class careless_class = {
    .size = sizeof(tn_class), .name = "Careless", .bytes = sizeof(owner), .freed = owner_freed};

TEST(a_module_may_own_more_than_tensors)
{
    owner *o = tn_module_new(owner), *c;
    o->number = malloc(sizeof *o->number), *o->number = 42, o->self = o;
    alive = 1;
    ck_assert_ptr_nonnull(c = tn_copy(o));
    ck_assert(c->number != o->number && *c->number == 42 && c->self == c);
    tn_free(o), tn_free(c);
    ck_assert_int_eq(alive, 0);
    o = tn_module_create(&careless_class);
    o->number = NULL, alive = 1;
    ck_refused(tn_copy(o), TN_EUNSUPPORTED,
               "tn_copy: the class of Careless has .freed but no .copied; set .copied to copy the "
               "memory that .freed frees");
    ck_assert_int_eq(alive, 1);
    tn_free(o);
}

/* A copy that runs out of memory halfway frees nothing of the original. */
TEST(a_failed_copy_leaves_no_trace)
{
    tn_faulty_memory_begin();
    tn_scope       s = tn_scope_begin();
    tn_sequential *net = tn_sequential_new(), *c = NULL;
    for (int i = 0; i < 2; i++) {
        owner *o = tn_append(net, (owner *)tn_module_new(owner));
        o->number = malloc(sizeof *o->number), *o->number = i;
        tn_append(net, mlp_new(2));
    }
    tn_array(net, 3, int);
    alive = 2;
    bool    reached = true;
    int64_t n = 0, tensors = tn_memory_now().tensors, blocks = tn_memory_blocks();
    for (; reached; n++) {
        tn_fail_memory(n, false);
        c = tn_copy(net);
        reached = tn_memory_calls() > n;
        tn_fail_memory(-1, false);
        ck_assert(reached == !c && tn_error() == (reached ? TN_ENOMEM : TN_OK));
        tn_clear_error();
        ck_assert_int_eq(alive, reached ? 2 : 4);
        if (reached) ck_assert(tn_memory_now().tensors == tensors && tn_memory_blocks() == blocks);
    }
    ck_assert_int_gt(n, 30);
    tn_free(net), tn_free(c);
    ck_assert_int_eq(alive, 0);
    tn_scope_end(s);
    tn_faulty_memory_end();
}
