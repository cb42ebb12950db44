/* route — the pairs (token, choice) of expert [N, k], ordered by expert, then by choice, then by token: a counting sort
 *
 * Results: the token, the pair token · k + choice, and the expert of each; i64, without gradient. Pairs beyond an
 * expert's capacity come last, with the number of experts as their expert. */
#include "autograd/rooms/room.h"

typedef struct {
    int64_t experts, capacity; /* capacity 0: all pairs */
} args_t;

static bool route_infer(tn_ctx *c)
{
    const tn_tensor *expert = c->in[0];
    char             text[192];
    if (!tn__need_index(c, 0)) return false;
    if (expert->l.shape.n != 2)
        return tn_infer_fail(c, TN_ESHAPE, "the experts must be [tokens, choices], got %s",
                             tn_shape_text(expert->l.shape, text, sizeof text));
    if (TN_ARG(c, experts) < 1 || TN_ARG(c, experts) > INT32_MAX || TN_ARG(c, capacity) < 0)
        return tn_infer_fail(c, TN_EINVAL, "%lld experts of capacity %lld; expected 1 … 2^31 - 1, of at least 0",
                             (long long)TN_ARG(c, experts), (long long)TN_ARG(c, capacity));
    for (int i = 0; i < 3; i++) c->result[i] = (tn_result){TN_I64, TN_SHAPE(tn_numel(expert))};
    return tn__index_check("route", "expert", expert, TN_ARG(c, experts));
}

static void route_forward(tn_ctx *c)
{
    const int64_t n = c->in[0]->l.shape.d[0], k = c->in[0]->l.shape.d[1], experts = TN_ARG(c, experts);
    const int64_t most = TN_ARG(c, capacity) ? TN_ARG(c, capacity) : INT64_MAX;
    int64_t      *token = tn__ptr(c->out[0]), *pair = tn__ptr(c->out[1]), *expert = tn__ptr(c->out[2]), start = 0;
    const size_t  bytes = (size_t)(2 * experts + 1) * sizeof(int64_t);
    int64_t      *next = tn__mem_get(bytes), *count = next ? next + experts + 1 : NULL;
    if (!next) return;
    for (int64_t e = 0; e < experts; e++) count[e] = 0;
    for (int64_t i = 0; i < n * k; i++) count[tn_get_i64(c->in[0], i)]++;
    for (int64_t e = 0; e <= experts; e++) {
        next[e] = start;
        if (e < experts) start += tn__min_i64(count[e], most), count[e] = 0;
    }
    for (int64_t choice = 0; choice < k; choice++)
        for (int64_t i = 0; i < n; i++) {
            const int64_t e = tn_get_i64(c->in[0], i * k + choice), to = count[e]++ < most ? e : experts;
            token[next[to]] = i, pair[next[to]] = i * k + choice, expert[next[to]++] = to;
        }
    tn__mem_put(next, bytes);
}

/* clang-format off */
static const tn__sample samples[] = {
    {.in = {{2, {5, 2}}}, .kind = {TN__ARG_INDEX}, .high = {3}, .args = &(args_t){3, 0}},
    {.in = {{2, {6, 1}}}, .kind = {TN__ARG_INDEX}, .high = {3}, .args = &(args_t){4, 2}},
    {.in = {{2, {4, 3}}}, .kind = {TN__ARG_INDEX}, .high = {2}, .args = &(args_t){2, 1}},
    {.in = {{2, {0, 2}}}, .kind = {TN__ARG_INDEX}, .high = {1}, .args = &(args_t){1, 0}},
    {.in = {{2, {3, 2}}}, .kind = {TN__ARG_INDEX}, .low = {2}, .high = {3}, .args = &(args_t){2, 0},
     TN__FAILS(TN_EINDEX, "route: expert 2 at [0, 0] is outside 0 … 1")},
    {.in = {{1, {3}}}, .kind = {TN__ARG_INDEX}, .args = &(args_t){2, 0},
     TN__FAILS(TN_ESHAPE, "route: the experts must be [tokens, choices], got [3]")},
    {.in = {{2, {3, 2}}}, .kind = {TN__ARG_INDEX}, .args = &(args_t){2, -1},
     TN__FAILS(TN_EINVAL, "route: 2 experts of capacity -1; expected 1 … 2^31 - 1, of at least 0")},
    {.in = {{2, {3, 2}}}, .kind = {TN__ARG_INDEX}, .args = &(args_t){INT64_C(1) << 60, 0},
     TN__FAILS(TN_EINVAL, "route: 1152921504606846976 experts of capacity 0; expected 1 … 2^31 - 1, of at least 0")},
    {.in = {{2, {3, 2}}}, .args = &(args_t){2, 0}, TN__FAILS(TN_EDTYPE, "route: indices must be i64 or i32, got f32")},
};
/* clang-format on */

const tn_op tn__op_route = {TN__ROOM("route", TN_AS_IS), .inputs = 1,          .outputs = 3,
                            .args_size = sizeof(args_t), .infer = route_infer, .forward = route_forward};
TN__SAMPLES(route, samples);

tn_routes tn_route(tn_tensor *expert, int64_t experts, int64_t capacity)
{
    tn_tensor *out[3];
    tn_op_call(&tn__op_route, 1, &expert, 3, out, &(args_t){experts, capacity});
    return (tn_routes){out[0], out[1], out[2]};
}
