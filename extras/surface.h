/* surface.h — the loss surface around a model's weights, probing classifiers, and masks that leak. Part of extras.h:
 * include that.
 *
 *     tn_tensor *x = tn_weights_direction(net, 1), *y = tn_weights_direction(net, 2);
 *     double     values[51 * 51];
 *     for (int i = 0; i < 51 * 51; i++) values[i] = NAN; // to compute
 *     tn_surface(.model = net, .loss = loss_of, .user = &batch, .x = x, .y = y, .nx = 51, .ny = 51, .x0 = -1, .x1 = 1,
 *                .y0 = -1, .y1 = 1, .values = values);
 *
 *     double right = tn_probe(.x = vectors, .y = tags, .test_x = others, .test_y = their_tags);
 *
 *     tn_leak l = tn_mask_leak(.model = net, .run = loss_of, .user = &batch, .tokens = x);
 *     if (l.size > 0) printf("%s, position %lld: depends on later tokens\n", l.path, (long long)l.position); */
#ifndef TENON_EXTRAS_SURFACE_H
#define TENON_EXTRAS_SURFACE_H

#include "../nn/nn.h"
#include "look.h"

TN_C_BEGIN_

/* ---- loss surface (Li et al. 2018) ------------------------------------------------------------------------------- */

TN_API tn_tensor *tn_weights_vector(void *model); /* all parameters, concatenated: [N] */
TN_API tn_status  tn_weights_set(void *model, tn_tensor *vector);
/* A random direction [N]; each filter (row of a matrix) has the norm of the model's own; 0 for 1-d parameters. */
TN_API tn_tensor *tn_weights_direction(void *model, uint64_t seed);
/* PCA of n vectors around the last: the two main directions, [2, N], of norm 1; the vectors' coordinates, [n, 2]. */
TN_API tn_status tn_weights_path(int64_t n, tn_tensor *const *vectors, tn_tensor **directions, tn_tensor **places);
typedef struct tn_surface_args {
    int          zero_;
    void        *model;
    tn_look_loss loss; /* called for copies of the model, in parallel; random numbers are the same at each point */
    void        *user;
    tn_tensor   *x, *y;          /* directions [N]; y NULL: a line */
    int64_t      nx, ny;         /* number of points along x and y */
    double       x0, x1, y0, y1; /* first and last coordinate along x and y */
    double      *values;         /* [ny, nx]: NaN values are computed, others kept */
    int64_t      most;           /* maximum rows to compute in this call, to save and resume a long run; 0: all */
    int          end_;
} TN_KEYWORDS_ONLY tn_surface_args;
TN_API tn_status   tn_surface_run(tn_surface_args a);

/* ---- probes ------------------------------------------------------------------------------------------------------ */

typedef struct tn_probe_args {
    int           zero_;
    tn_tensor    *x, *y, *test_x, *test_y; /* training set: [N, D], classes i64 [N], negative: ignored; test set */
    int64_t       hidden;                  /* width of a hidden layer; 0: a linear classifier */
    int64_t steps TN_IS(500);
    double lr     TN_IS(0.01);
    double decay  TN_IS(0.01);
    uint64_t      seed;
    int           end_;
} TN_KEYWORDS_ONLY tn_probe_args;
#define TN_PROBE_ARGS_DEFAULTS .steps = 500, .lr = 0.01, .decay = 0.01
TN_API double tn_probe_run(tn_probe_args a);      /* accuracy on the test set; NaN: raised */
TN_API double tn_cka(tn_tensor *x, tn_tensor *y); /* linear centred kernel alignment of [N, D] and [N, E], 0 … 1 */

/* ---- masks that leak --------------------------------------------------------------------------------------------- */

/* Runs the model again with other tokens at hidden positions and compares the bits of all modules' results [B, T, …] at
 * the others: without .padding, at most 8 times, with other tokens from some position on, which results before it must
 * not depend on (a causal mask); with .padding, with other tokens where it is true. Call it in eval mode, with a batch
 * in which tokens differ: in a test, or in the loss of tn_fit before the forward, to find the step. */
typedef struct tn_mask_leak_args {
    int          zero_;
    void        *model;
    tn_look_loss run; /* runs the model on .tokens; its result is ignored. All runs have the same random numbers */
    void        *user;
    tn_tensor   *tokens;          /* i64 [B, T]: changed in place, and restored at the end */
    tn_tensor   *padding;         /* bool [B, T]; NULL: no result may depend on later tokens */
    int64_t padding_id TN_IS(-1); /* without .padding: a token with this id stays, and replaces no other */
    int                end_;
} TN_KEYWORDS_ONLY tn_mask_leak_args;
#define TN_MASK_LEAK_ARGS_DEFAULTS .padding_id = -1
typedef struct {
    double  size;                /* the largest difference in this result; 0: no mask leaks, or an error is set */
    char    path[200];           /* of the first module, in the order of the calls, whose result differs */
    int64_t row, position, from; /* its first row and position that differ; the first token changed, -1: padding */
} tn_leak;
TN_API tn_leak tn_mask_leak_run(tn_mask_leak_args a);

TN_C_END_
#define tn_surface(...) TN_CALL_(tn_surface_run(TN_FILLED_(tn_surface_args, TN_NO_DEFAULTS_, __VA_ARGS__)))
#define tn_mask_leak(...) \
    TN_CALL_(tn_mask_leak_run(TN_FILLED_(tn_mask_leak_args, TN_MASK_LEAK_ARGS_DEFAULTS, __VA_ARGS__)))
#define tn_probe(...) TN_CALL_(tn_probe_run(TN_FILLED_(tn_probe_args, TN_PROBE_ARGS_DEFAULTS, __VA_ARGS__)))
#define tn_surface(...) TN_CALL_(tn_surface_run(TN_FILLED_(tn_surface_args, TN_NO_DEFAULTS_, __VA_ARGS__)))
#define tn_probe(...) TN_CALL_(tn_probe_run(TN_FILLED_(tn_probe_args, TN_PROBE_ARGS_DEFAULTS, __VA_ARGS__)))
#endif
