/* random_api.c — random programs against the public API: tensors, ops, views, in-place writes, leaves, backward,
 * gradient checkpointing, scopes, correct and wrong ownership, on one thread and on several, with failing allocations.
 *
 *     random_api [FIRST [COUNT]]      the programs of these seeds; default: 0, and TENON_RANDOM_SEEDS or 60
 *
 * Checks in each program: a failing call changes nothing (values, gradients, needs_grad, the generator); no call
 * changes errno, the rounding mode, the locale or other state of the process; a freed tensor is an error; at the end no
 * object is alive and all memory is freed; and without failing allocations, results have the same bits on one thread
 * and on three. Also run under sanitizers. A violation is printed with its seed, and the program aborts. */
#define _GNU_SOURCE
#include "autograd/autograd.h"
#include "core/system/system.h"
#include "tests/common/process.h"

#include <errno.h>
#include <math.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { SLOTS = 10, STEPS = 40, HASHES = SLOTS + 1 };

typedef struct {
    uint64_t   random, seed, hash;
    bool       failing; /* some allocations fail */
    int        threads, step, what;
    tn_tensor *slot[SLOTS]; /* owned, taken with tn_take */
    tn_tensor *shared;      /* borrowed by all threads, read only */
} program;

static _Thread_local int64_t left = -1; /* number of allocations of this thread until one fails; -1: none fails */
static _Thread_local bool    for_ever;
static _Atomic(int64_t)      blocks;
static _Atomic(long)         failures, calls;

static void *get(void *user, size_t bytes)
{
    (void)user;
    if (left == 0) {
        if (!for_ever) left = -1;
        return NULL;
    }
    if (left > 0) left--;
    void *p = tn__sys_alloc(64, (bytes + 63) / 64 * 64);
    if (p) memset(p, 0xa5, bytes), blocks++;
    return p;
}
static void put(void *user, void *p, size_t bytes)
{
    (void)user;
    memset(p, 0x5a, bytes);
    tn__sys_free(p);
    blocks--;
}

static _Noreturn void broken(const program *p, const char *what)
{
    fprintf(stderr, "random_api: seed %llu, step %d (kind %d): %s; error: %s\n", (unsigned long long)p->seed, p->step,
            p->what, what, tn_error_message());
    abort();
}

static uint64_t draw(program *p)
{
    p->random ^= p->random << 13, p->random ^= p->random >> 7, p->random ^= p->random << 17;
    return p->random * 0x2545f4914f6cdd1dULL >> 16;
}
static int64_t    below(program *p, int64_t n) { return (int64_t)(draw(p) % (uint64_t)n); }
static bool       one_in(program *p, int64_t n) { return below(p, n) == 0; }
static tn_tensor *any(program *p) { return one_in(p, 12) ? p->shared : p->slot[below(p, SLOTS)]; }
static int        dim_of(program *p, const tn_tensor *x) { return tn_ndim(x) > 0 ? (int)below(p, tn_ndim(x)) : 0; }

/* ---- state that must not change when a call fails ---------------------------------------------------------------- */

static uint64_t mix(uint64_t h, const void *data, size_t bytes)
{
    for (size_t i = 0; i < bytes; i++) h = (h ^ ((const unsigned char *)data)[i]) * 0x100000001b3ULL;
    return h;
}
static uint64_t hash_of(const tn_tensor *t)
{
    if (!t) return 1;
    const tn_shape s = tn_shape_of(t);
    const tn_dtype dt = tn_dtype_of(t);
    const size_t   bytes = (size_t)tn_numel(t) * tn_dtype_size(dt);
    unsigned char *data = malloc(bytes + 1);
    uint64_t       h = mix(mix(0xcbf29ce484222325ULL, s.d, (size_t)s.n * sizeof *s.d), &dt, sizeof dt);
    if (data && bytes && tn_copy_out(t, dt, data, bytes) == TN_OK) h = mix(h, data, bytes);
    free(data);
    return h;
}
static void snapshot(const program *p, uint64_t *to)
{
    for (int i = 0; i < SLOTS; i++) {
        const tn_tensor *t = p->slot[i];
        const bool       needs = t && tn_needs_grad(t);
        const uint64_t   h[3] = {hash_of(t), needs ? hash_of(tn_grad(t)) : 0, needs};
        to[i] = mix(0, h, sizeof h);
    }
    to[SLOTS] = mix(0, tn_current_generator(), sizeof(tn_generator));
}

enum { ERRNO = 4711 };
static tn_process process;

static void same_process(const program *p, bool whole)
{
    const int   e = errno;
    tn_process  now = process;
    const char *other;
    if (whole) tn_process_now(&now);
    else tn_process_numbers(&now);
    if ((other = tn_process_differs(&process, &now))) broken(p, other);
    if (!whole && e != ERRNO) broken(p, "a call has changed errno");
}

/* begin and end enclose the call of a step that may fail. end returns true if it succeeded. */
static void begin(program *p, uint64_t *before)
{
    if (tn_error() != TN_OK) broken(p, "an error stands before the call");
    snapshot(p, before);
    if (tn_error() != TN_OK) broken(p, "reading failed");
    calls++;
    errno = ERRNO;
    if (!p->failing || !one_in(p, 3)) return;
    for_ever = one_in(p, 2);
    left = below(p, 12);
}
static bool end(program *p, const uint64_t *before)
{
    left = -1;
    same_process(p, false);
    if (tn_error() == TN_OK) return true;
    failures++;
    const tn_status s = tn_error();
    if (s == TN_ENOMEM && !p->failing) broken(p, "memory ran out");
    if (s == TN_EIO || s == TN_EFORMAT || !*tn_error_message()) broken(p, "an error of another kind");
    uint64_t       after[HASHES];
    tn_error_state aside;
    tn_error_push(&aside);
    snapshot(p, after);
    tn_error_pop(&aside);
    /* a failed backward resets the generator to the start of its tape, so that it can be called again */
    const int count = p->what == 8 || p->what == 9 ? SLOTS : HASHES;
    for (int i = 0; i < count; i++)
        if (before[i] != after[i]) broken(p, i < SLOTS ? "a failing call changed a tensor" : "... the generator");
    tn_clear_error();
    return false;
}

static void put_into(program *p, tn_tensor *t)
{
    if (!t || tn_shares_memory(t, p->shared)) return; /* other threads read the shared tensor */
    tn_tensor **at = &p->slot[below(p, SLOTS)], *old = *at;
    *at = tn_take(t); /* may be the old tensor: tn_contiguous can return its input */
    tn_drop(old);
    if (tn_error() != TN_OK) broken(p, "a tensor could not be taken");
}

/* ---- the steps --------------------------------------------------------------------------------------------------- */

static tn_tensor *made(program *p)
{
    static const tn_dtype types[] = {TN_F32, TN_F32, TN_F64, TN_BF16};
    tn_shape              s = {.n = (int)below(p, 4), .d = {0}};
    for (int i = 0; i < s.n; i++) s.d[i] = one_in(p, 30) ? 0 : 1 + below(p, 5);
    if (one_in(p, 25)) s = TN_SHAPE(130, 170);
    switch (below(p, 6)) {
    case 0: return tn_randint(s, 0, 4);
    case 1: return tn_bernoulli_of(TN_BOOL, s, 0.5);
    case 2: return tn_scalar(0.5);
    default: return tn_uniform_of(types[below(p, 4)], s, 0.25, 1.25);
    }
}

static tn_tensor *one_input(program *p, tn_tensor *x)
{
    static tn_tensor *(*const of[])(tn_tensor *) = {
        tn_neg,  tn_abs,   tn_exp,        tn_log1p, tn_sqrt, tn_square, tn_reciprocal, tn_tanh, tn_sigmoid,
        tn_gelu, tn_clone, tn_contiguous, tn_silu,  tn_relu, tn_isnan,  tn_nonzero,    tn_erf,  tn_mish};
    return of[below(p, (int64_t)(sizeof of / sizeof *of))](x);
}
static tn_tensor *two_inputs(program *p, tn_tensor *x, tn_tensor *y)
{
    static tn_tensor *(*const of[])(tn_tensor *, tn_tensor *) = {
        tn_add, tn_sub, tn_mul, tn_div, tn_maximum, tn_pow, tn_lt, tn_eq, tn_matmul, tn_outer, tn_masked_select};
    return of[below(p, (int64_t)(sizeof of / sizeof *of))](x, y);
}
static tn_tensor *several(program *p, tn_tensor *x, tn_tensor *y, tn_tensor *z)
{
    const int dim = dim_of(p, x);
    switch (below(p, 16)) {
    case 0: return tn_sum(x, .dims = TN_DIMS(dim), .keepdim = one_in(p, 2));
    case 1: return tn_mean(x);
    case 2: return tn_softmax(x, dim);
    case 3: return tn_sort(x, dim).values;
    case 4: return tn_max(x, dim, true).indices;
    case 5: return tn_cat(dim, x, y, z);
    case 6: return tn_stack(0, x, y);
    case 7: return tn_where(x, y, z);
    case 8: return tn_dropout(x, 0.5);
    case 9: return tn_index_select(x, dim, y);
    case 10: return tn_layer_norm(x, NULL, NULL, 1e-5);
    case 11: return tn_to(x, (tn_dtype)below(p, 7));
    case 12: return tn_var(x, .dims = TN_DIMS(dim));
    case 13: return tn_linear(x, y, z);
    case 14: return tn_repeat_interleave(x, 2, dim);
    default: return tn_cumsum(x, dim);
    }
}
static tn_tensor *viewed(program *p, tn_tensor *x)
{
    const int     dim = dim_of(p, x);
    const int64_t n = tn_ndim(x) > 0 ? tn_size(x, dim) : 1, at = n ? below(p, n) : 0;
    switch (below(p, 11)) {
    case 0: return tn_narrow(x, dim, at, 1 + below(p, n - at + 1));
    case 1: return tn_select(x, dim, at);
    case 2: return tn_slice(x, dim, at, n, 2);
    case 3: return tn_transpose(x, dim, dim_of(p, x));
    case 4: return tn_view(x, (tn_shape){.n = 1, .d = {-1}});
    case 5: return tn_unsqueeze(x, dim);
    case 6: return tn_squeeze(x, dim);
    case 7: return tn_unfold(x, dim, 2, 1);
    case 8: return tn_expand(x, TN_SHAPE(2, -1, -1));
    case 9: return tn_diagonal(x, 0, 0, 1);
    default: return tn_detach(x);
    }
}
static tn_tensor *written(program *p, tn_tensor *x, tn_tensor *y)
{
    switch (below(p, 11)) {
    case 0: return tn_add_(x, y);
    case 1: return tn_mul_(x, y);
    case 2: return tn_copy_(x, y);
    case 3: return tn_tanh_(x);
    case 4: return tn_mul_scalar_(x, 0.5);
    case 5: return tn_masked_fill_(x, y, 0.25);
    case 6: return tn_clamp_(x, 0.25, 0.75);
    case 7: return tn_fill(x, 0.5), x;
    case 8: return tn_copy_from(x, y), x;
    case 9: return tn_numel(x) > 0 ? (tn_set(x, 0, 0.5), x) : x;
    default: return tn_neg_(x);
    }
}
static tn_tensor *twice(tn_tensor *const *in, int n, void *user)
{
    (void)n, (void)user;
    return tn_mul(tn_tanh(in[0]), tn_dropout(in[0], 0.5));
}
static tn_tensor *looked_at(tn_tensor *g, void *user)
{
    (void)user;
    return tn_mul_scalar(g, 0.5);
}

static void leaf_step(program *p, tn_tensor *x)
{
    switch (below(p, 5)) {
    case 0: tn_freeze_tensor(x); break;
    case 1: tn_retain_grad(x); break;
    case 2: tn_on_grad(x, looked_at, NULL); break;
    default: tn_requires_grad(x); break;
    }
}
static tn_tensor *backward_step(program *p, tn_tensor *root, tn_tensor *x)
{
    switch (below(p, 4)) {
    case 0: return tn_grad_wrt(root, x, true);
    case 1: tn_backward(root, .retain = true); return NULL;
    default: tn_backward(root); return NULL;
    }
}

typedef struct {
    const tn_tensor *x;
    double           sum[4];
} shares;
static void share(int64_t from, int64_t to, void *user)
{
    shares *s = user;
    for (int64_t i = from; i < to; i++) {
        tn_tensor *y = tn_mul_scalar((tn_tensor *)s->x, (double)i);
        s->sum[i] = tn_item(tn_sum(tn_to(y, TN_F64)));
    }
}

/* Passes a freed tensor to a function, which must raise an error. */
static void gone(program *p)
{
    const bool was = p->failing;
    p->failing = false;
    tn_tensor *t;
    if (one_in(p, 2)) {
        tn_scope s = tn_scope_begin();
        t = tn_ones(TN_SHAPE(2));
        tn_scope_end(s);
    } else {
        t = tn_take(tn_ones(TN_SHAPE(2)));
        tn_drop(t);
    }
    if (tn_error() != TN_OK) broken(p, "ending a tensor failed");
    uint64_t before[HASHES];
    begin(p, before);
    switch (below(p, 5)) {
    case 0: tn_drop(t); break;
    case 1: tn_keep(t); break;
    case 2: tn_exp(t); break;
    case 3: tn_add(p->shared, t); break;
    default: tn_requires_grad(t); break;
    }
    if (tn_error() != TN_ESTATE) broken(p, "a tensor that is gone was taken");
    end(p, before);
    p->failing = was;
}

static tn_tensor *one_call(program *p, tn_tensor *x, tn_tensor *y, tn_tensor *z, tn_tensor *root, shares *shared)
{
    switch (p->what) {
    case 0: return made(p);
    case 1: return one_input(p, x);
    case 2:
    case 3: return two_inputs(p, x, y);
    case 4: return viewed(p, x);
    case 5:
    case 6: return written(p, x, y), NULL;
    case 7: return leaf_step(p, x), NULL;
    case 8:
    case 9: return backward_step(p, root, y);
    case 10: return tn_checkpoint(twice, NULL, 1, &x);
    case 11: return tn_parallel_for(4, 1, share, shared), NULL;
    default: return several(p, x, y, z);
    }
}

static void one_step(program *p)
{
    uint64_t   before[HASHES];
    tn_tensor *x = any(p), *y = any(p), *z = any(p);
    p->what = (int)below(p, 16);
    if (!x || !y || !z) p->what = 0;
    if (p->what == 15) {
        gone(p);
        return;
    }
    if (p->what >= 5 && p->what <= 7 && x == p->shared) x = tn_clone(x); /* do not write to the shared tensor */
    const int  mode = (int)below(p, 12);
    tn_tensor *root = p->what == 8 || p->what == 9 ? tn_sum(tn_to(x, TN_F64)) : NULL;
    tn_clear_error();
    tn_scope s = mode == 0 ? tn_no_grad_begin() : mode == 1 ? tn_autocast_begin(true) : tn_scope_begin();
    shares   shared = {x, {0}};
    begin(p, before);
    tn_tensor *result = one_call(p, x, y, z, root, &shared);
    const bool right = end(p, before);
    if (!right && result) broken(p, "a failing call gave a result");
    if (right && p->what == 11) p->hash = mix(p->hash, shared.sum, sizeof shared.sum);
    result = tn_scope_return(s, result);
    if (right) put_into(p, result);
}

static void run(program *p)
{
    p->random = p->seed * 0x9e3779b97f4a7c15ULL + 0x1234567, p->hash = 0;
    tn_set_threads(p->threads);
    tn_generator g = {p->seed, 0}, *old = tn_use_generator(&g);
    tn_scope     s = tn_scope_begin();
    for (p->step = 0; p->step < STEPS; p->step++) {
        tn_scope inner = tn_scope_begin();
        one_step(p);
        tn_scope_end(inner);
        if (tn_error() != TN_OK) broken(p, "an error stands after the step");
    }
    uint64_t h[HASHES];
    snapshot(p, h);
    p->hash = mix(p->hash, h, sizeof h);
    for (int i = 0; i < SLOTS; i++) tn_drop(p->slot[i]), p->slot[i] = NULL;
    tn_scope_end(s);
    tn_use_generator(old);
    if (tn_error() != TN_OK) broken(p, "dropping failed");
}
static void *run_in_thread(void *p) { return run(p), NULL; }

/* Seeds 0 and 1 modulo 4 have failing allocations, seed 2 runs on one thread and again on three, seed 3 runs three
 * programs in parallel. */
static void seed(uint64_t n)
{
    const size_t before = tn_memory_now().live;
    tn_scope     s = tn_scope_begin();
    tn_tensor   *shared = tn_take(tn_uniform(TN_SHAPE(3, 4), 0.25, 1.25));
    tn_scope_end(s);
    program p[3];
    for (int i = 0; i < 3; i++) p[i] = (program){.seed = n, .threads = 1, .shared = shared, .failing = n % 4 < 2};
    if (n % 4 == 3) {
        pthread_t thread[3];
        for (int i = 0; i < 3; i++) p[i].seed = n + (uint64_t)i * 1000003, p[i].threads = 2;
        for (int i = 0; i < 3; i++)
            if (pthread_create(&thread[i], NULL, run_in_thread, &p[i])) abort();
        for (int i = 0; i < 3; i++) pthread_join(thread[i], NULL);
    } else {
        run(&p[0]);
        if (n % 4 == 2) {
            p[1].threads = 3;
            run(&p[1]);
            if (p[0].hash != p[1].hash) broken(p, "three threads have other bits than one");
        }
    }
    tn_drop(shared);
    same_process(p, true);
    if (tn_memory_now().tensors != 0) broken(p, "a tensor stays alive");
    if (n % 4 < 2 && tn_memory_now().live != before)
        broken(p, "memory is not given back"); /* only without helper threads, which keep a scope stack */
}

int main(int argc, char **argv)
{
    const char    *most = getenv("TENON_RANDOM_SEEDS");
    const uint64_t first = argc > 1 ? strtoull(argv[1], NULL, 10) : 0;
    const uint64_t count = strtoull(argc > 2 ? argv[2] : most ? most : "60", NULL, 10);
    if (tn_set_allocator(&(tn_allocator){get, put, NULL}) != TN_OK) return 1;
    tn_process_now(&process);
    tn_scope s = tn_scope_begin(); /* allocates the scope stack, which is kept */
    for (int i = 0; i < 5000; i++) tn_scalar(0);
    tn_scope_end(s);
    for (int pass = 0; pass < 2;
         pass++) /* one-threaded programs first: memory counts are exact without helper threads */
        for (uint64_t i = 0; i < count; i++)
            if (((first + i) % 4 < 2) == (pass == 0)) seed(first + i);
    printf("random_api: %llu programs from seed %llu: %ld calls, %ld of them rejected or out of memory, no finding\n",
           (unsigned long long)count, (unsigned long long)first, (long)calls, (long)failures);
    return 0;
}
