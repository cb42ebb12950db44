/* lstm_proj — long short-term memory whose state is projected (Sak, Senior and Beaufays 2014), over packed sequences
 *
 *   As in lstm.c, but with a matrix R [P, H] between c and h:
 *     i f g o of x + h Wᵀ,   c = f c + i g,   m = o tanh(c),   h = m Rᵀ = y
 *
 *   With gh = gy + the gradient of h from the next step, gc = the gradient of c from the next step:
 *     gm = gh R,   gc += gm o (1 - tanh²c),   go = gm tanh(c),   the rest as in lstm.c
 *     gh₋₁ = gx W,  gW = gxᵀ h₋₁ and gR = ghᵀ m over all steps
 *
 * Kept are i, f, g, o, c₋₁, m, and in a separate, narrower result h₋₁. */
#ifndef TN__REAL /* =============================================================================== the room */
#include "autograd/rooms/recurrent.h"
#include "core/kernels/vecmath.h"

#include <string.h>
#define TN__TEMPLATE "autograd/ops/lstm_proj.c"
#include "core/real.h"

enum { X, WEIGHT, STATE, CELL, PROJ, INPUTS };
enum { Y, LAST, LAST_C, KEPT, BEFORE, RESULTS };
enum { I, F, G, O, C, M, GROUPS };

static const tn__kernel_set step = {lstm_proj_fwd_f32, lstm_proj_fwd_f64, NULL};
static const tn__kernel_set back = {lstm_proj_bwd_f32, lstm_proj_bwd_f64, NULL};
static const tn__kernel_set take = {lstm_proj_take_f32, lstm_proj_take_f64, NULL};

static bool lstm_proj_infer(tn_ctx *c)
{
    static const char *const name[] = {"x", "weight", "h", "c", "proj"};
    const tn_tensor         *x = c->in[X], *h = c->in[STATE], *cell = c->in[CELL];
    char                     text[192];
    bool                     recorded = false;
    for (int i = 0; i < INPUTS; i++) {
        if (!tn__need_real(c, i)) return false;
        if (c->in[i]->dtype != x->dtype && !(i == CELL && c->in[i]->dtype == tn__wide(x->dtype)))
            return tn_infer_fail(c, TN_EDTYPE, "dtypes differ: x is %s, %s %s", tn_dtype_name(x->dtype), name[i],
                                 tn_dtype_name(c->in[i]->dtype));
        recorded = recorded || (tn_grad_enabled() && tn_needs_grad(c->in[i]));
    }
    for (int i = STATE; i <= CELL; i++)
        if (c->in[i]->l.shape.n != 2)
            return tn_infer_fail(c, TN_ESHAPE, "%s must be [rows, %s], got %s", name[i],
                                 i == STATE ? "projected" : "hidden",
                                 tn_shape_text(c->in[i]->l.shape, text, sizeof text));
    const int64_t rows = h->l.shape.d[0], p = h->l.shape.d[1], hidden = cell->l.shape.d[1];
    const int64_t packed = x->l.shape.n ? x->l.shape.d[0] : 0;
    int64_t       wide;
    if (!tn__mul_i64(hidden, GROUPS, &wide)) return tn_infer_fail(c, TN_ESHAPE, "c is too large");
    const tn_shape sums = {.n = 2, .d = {packed, 4 * hidden}}, weight = {.n = 2, .d = {4 * hidden, p}},
                   proj = {.n = 2, .d = {p, hidden}};
    if (!tn_shape_equal(x->l.shape, sums))
        return tn__steps_fail(c, "x", x, sums, "a row for each sequence in each step, of the width of all gates");
    if (!tn_shape_equal(c->in[WEIGHT]->l.shape, weight))
        return tn__steps_fail(c, "weight", c->in[WEIGHT], weight, "[4 · hidden, projected]");
    if (cell->l.shape.d[0] != rows)
        return tn__steps_fail(c, "c", cell, TN_SHAPE(rows, hidden), "a row for each row of h");
    if (!tn_shape_equal(c->in[PROJ]->l.shape, proj))
        return tn__steps_fail(c, "proj", c->in[PROJ], proj, "[projected, hidden]");
    if (!tn__steps_sizes_fit(c, c->args, packed, rows)) return false;
    c->result[Y] = (tn_result){x->dtype, {.n = 2, .d = {packed, p}}};
    c->result[LAST] = (tn_result){x->dtype, h->l.shape};
    c->result[LAST_C] = (tn_result){cell->dtype, cell->l.shape};
    c->result[KEPT] = (tn_result){tn__wide(x->dtype), {.n = 2, .d = {recorded ? packed : 0, wide}}};
    c->result[BEFORE] = (tn_result){x->dtype, {.n = 2, .d = {recorded ? packed : 0, p}}};
    return true;
}

static void lstm_proj_forward(tn_ctx *c)
{
    const tn__steps *a = c->args;
    const tn_scope   s = tn_no_grad_begin();
    tn_tensor *const x = c->in[X], *const y = c->out[Y], *const h = c->out[LAST], *const last = c->out[LAST_C];
    const int64_t packed = x->l.shape.d[0], all = h->l.shape.d[0], gates = x->l.shape.d[1];
    tn_tensor    *kept = c->out[KEPT], *before = c->out[BEFORE];
    const bool    recorded = kept->l.shape.d[0] == packed;
    if (!recorded) kept = tn__new(kept->dtype, TN_SHAPE(all, kept->l.shape.d[1]));
    tn_tensor *m = tn__new(x->dtype, last->l.shape);
    tn__copy(h, c->in[STATE]), tn__copy(last, c->in[CELL]);
    if (!tn_error()) {
        const tn_tensor weight = tn__step_weight(c->in[WEIGHT], a->steps);
        const tn_tensor proj = tn__step_weight(c->in[PROJ], a->steps);
        for (tn__steps_walk w = tn__steps_begin(a, a->reverse, packed, all); !tn_error() && tn__steps_next(&w);) {
            tn_tensor xt = tn__step_part(x, w.at, w.n, 0, 0), yt = tn__step_part(y, w.at, w.n, 0, 0);
            tn_tensor ht = tn__step_part(h, 0, w.n, 0, 0), ct = tn__step_part(last, 0, w.n, 0, 0);
            tn_tensor mt = tn__step_part(m, 0, w.n, 0, 0), kt = tn__step_part(kept, recorded ? w.at : 0, w.n, 0, 0);
            tn_tensor sums = tn__step_part(&kt, 0, w.n, 0, gates);
            if (recorded) {
                tn_tensor bt = tn__step_part(before, w.at, w.n, 0, 0);
                tn__copy(&bt, &ht);
            }
            tn__gemm(1, &ht, &weight, 0, &sums);
            if (!tn_error()) tn__rows(step, -1, TN__LIST(&mt, &ct, &kt), TN__LIST(&xt, &ct), a);
            if (!tn_error()) tn__gemm(1, &mt, &proj, 0, &yt);
            if (!tn_error()) tn__copy(&ht, &yt);
        }
    }
    tn_scope_end(s);
}

static void lstm_proj_backward(tn_back *b)
{
    const tn__steps *a = b->args;
    tn_tensor *const w = b->in[WEIGHT], *const proj = b->in[PROJ], *const kept = b->out[KEPT];
    tn_tensor *const gy = b->gy[Y], *const gkept = b->gy[KEPT], *const gbefore = b->gy[BEFORE];
    const tn_shape sums = b->in_shape[X], states = b->in_shape[STATE], cells = b->in_shape[CELL];
    const int64_t  packed = sums.d[0], all = states.d[0];
    tn_tensor     *gx = tn_empty_of(w->dtype, sums), *gall = tn_empty_of(w->dtype, TN_SHAPE(packed, states.d[1]));
    tn_tensor     *gh = tn__step_state_grad(kept->dtype, states, b->gy[LAST]), *gm = tn_empty_of(kept->dtype, cells);
    tn_tensor     *gc = tn__step_state_grad(kept->dtype, cells, b->gy[LAST_C]);
    for (tn__steps_walk s = tn__steps_begin(a, !a->reverse, packed, all); !tn_error() && tn__steps_next(&s);) {
        tn_tensor gxt = tn__step_part(gx, s.at, s.n, 0, 0), gat = tn__step_part(gall, s.at, s.n, 0, 0);
        tn_tensor ght = tn__step_part(gh, 0, s.n, 0, 0), gct = tn__step_part(gc, 0, s.n, 0, 0);
        tn_tensor gmt = tn__step_part(gm, 0, s.n, 0, 0), kt = tn__step_part(kept, s.at, s.n, 0, 0), gyt, gkt, gbt;
        if (gy) gyt = tn__step_part(gy, s.at, s.n, 0, 0);
        if (gkept) gkt = tn__step_part(gkept, s.at, s.n, 0, 0);
        if (gbefore) gbt = tn__step_part(gbefore, s.at, s.n, 0, 0);
        tn__rows(take, -1, TN__LIST(&gat, &ght), TN__LIST(&ght, gy ? &gyt : NULL, gbefore ? &gbt : NULL), a);
        if (!tn_error()) tn__gemm(1, &gat, proj, 0, &gmt);
        if (!tn_error()) tn__rows(back, -1, TN__LIST(&gxt, &gct), TN__LIST(&kt, &gct, &gmt, gkept ? &gkt : NULL), a);
        if (!tn_error()) tn__gemm(1, &gxt, w, 1, &ght);
    }
    if (tn_error()) return;
    b->gx[X] = gx, b->gx[STATE] = gh, b->gx[CELL] = gc;
    if (b->need[WEIGHT]) b->gx[WEIGHT] = tn__weight_grad(b, gx, b->out[BEFORE]);
    if (b->need[PROJ]) {
        tn_tensor *m = tn_narrow(kept, 1, M * cells.d[1], cells.d[1]);
        b->gx[PROJ] = tn__weight_grad(b, gall, tn_to(m, w->dtype));
    }
}

/* The backward of one step, made of ops: replaces gh and gc by those of the step before. */
static tn_tensor *step_backward(const tn_back *b, const tn__steps_walk *s, tn_tensor **gh, tn_tensor **gc,
                                tn_tensor **gx)
{
    const int64_t    hidden = b->in_shape[CELL].d[1];
    tn_tensor *const gy = b->gy[Y], *const gkept = b->gy[KEPT], *const gbefore = b->gy[BEFORE],
                     *const w = b->in[WEIGHT];
    tn_tensor              *k[GROUPS], *g[GROUPS] = {NULL};
    for (int i = 0; i < GROUPS; i++) {
        k[i] = tn_narrow(tn_narrow(b->out[KEPT], 0, s->at, s->n), 1, i * hidden, hidden);
        if (gkept) g[i] = tn_narrow(tn_narrow(gkept, 0, s->at, s->n), 1, i * hidden, hidden);
    }
    tn_tensor *all = tn__add_optional(tn_narrow(*gh, 0, 0, s->n), gy ? tn_narrow(gy, 0, s->at, s->n) : NULL);
    tn_tensor *gm = tn__add_optional(tn_matmul(all, b->in[PROJ]), g[M]);
    tn_tensor *t = tn_tanh(tn_add(tn_mul(k[F], k[C]), tn_mul(k[I], k[G])));
    tn_tensor *g_c = tn_add(tn_narrow(*gc, 0, 0, s->n), tn__tanh_back(tn_mul(gm, k[O]), t));
    tn_tensor *gi = tn__add_optional(tn_mul(g_c, k[G]), g[I]), *gf = tn__add_optional(tn_mul(g_c, k[C]), g[F]);
    tn_tensor *gg = tn__add_optional(tn_mul(g_c, k[I]), g[G]), *go = tn__add_optional(tn_mul(gm, t), g[O]);
    *gx = tn_cat(1, tn__sigmoid_back(gi, k[I]), tn__sigmoid_back(gf, k[F]), tn__tanh_back(gg, k[G]),
                 tn__sigmoid_back(go, k[O]));
    tn_tensor *before =
        tn__add_optional(tn_matmul(tn_to(*gx, w->dtype), w), gbefore ? tn_narrow(gbefore, 0, s->at, s->n) : NULL);
    *gh = tn__step_replace_rows(*gh, before, s->n);
    *gc = tn__step_replace_rows(*gc, tn__add_optional(tn_mul(g_c, k[F]), g[C]), s->n);
    return all;
}

static void lstm_proj_backward_ops(tn_back *b)
{
    const tn__steps *a = b->args;
    tn_tensor *const w = b->in[WEIGHT], *const kept = b->out[KEPT];
    const tn_shape states = b->in_shape[STATE], cells = b->in_shape[CELL];
    const int64_t  packed = b->in_shape[X].d[0], hidden = cells.d[1];
    tn_tensor     *gh = b->gy[LAST], *gc = b->gy[LAST_C];
    const int      n = a->steps < INT_MAX ? (int)a->steps + 1 : 0;
    if (!n) {
        tn_raise(TN_EUNSUPPORTED, "%s: too many steps for gradients of gradients", b->op->name);
        return;
    }
    const size_t bytes = 2 * (size_t)n * sizeof(tn_tensor *);
    tn_tensor  **gx = tn__mem_get(bytes), **all = gx ? gx + n : NULL; /* one for each step; the last covers steps = 0 */
    if (!gx) return;
    if (!gh) gh = tn_zeros_of(w->dtype, states);
    if (!gc) gc = tn_zeros_of(w->dtype, cells);
    gx[n - 1] = tn_zeros_of(w->dtype, TN_SHAPE(0, 4 * hidden)),
           all[n - 1] = tn_zeros_of(w->dtype, TN_SHAPE(0, states.d[1]));
    for (tn__steps_walk s = tn__steps_begin(a, !a->reverse, packed, states.d[0]); !tn_error() && tn__steps_next(&s);)
        all[s.t] = step_backward(b, &s, &gh, &gc, &gx[s.t]);
    if (!tn_error()) {
        tn_tensor *sums = tn_cat_list(0, n, gx), *gall = tn_cat_list(0, n, all),
                  *m = tn_narrow(kept, 1, M * hidden, hidden);
        b->gx[X] = sums, b->gx[STATE] = gh, b->gx[CELL] = gc;
        if (b->need[WEIGHT])
            b->gx[WEIGHT] = tn_matmul(tn_transpose(sums, 0, 1), tn_to(b->out[BEFORE], tn_dtype_of(sums)));
        if (b->need[PROJ]) b->gx[PROJ] = tn_matmul(tn_transpose(gall, 0, 1), tn_to(m, tn_dtype_of(gall)));
    }
    tn__mem_put(gx, bytes);
}

#define SIZES(...) \
    .args = &(tn__steps) { .sizes = __VA_ARGS__ }
static const int64_t falling[] = {3, 2, 1};
/* clang-format off */
static const tn__sample samples[] = {
    {.in = {{2, {6, 12}}, {2, {12, 2}}, {2, {3, 2}}, {2, {3, 3}}, {2, {2, 3}}}, SIZES(NULL, .steps = 2)},
    {.in = {{2, {6, 8}}, {2, {8, 1}}, {2, {3, 1}}, {2, {3, 2}}, {2, {1, 2}}}, SIZES(falling, .steps = 3)},
    {.in = {{2, {6, 4}}, {2, {4, 2}}, {2, {4, 2}}, {2, {4, 1}}, {2, {2, 1}}},
     SIZES(falling, .steps = 3, .reverse = true)}, /* one sequence is empty */
    {.in = {{2, {1, 12}}, {2, {12, 2}}, {2, {1, 2}}, {2, {1, 3}}, {2, {2, 3}}},
     SIZES(NULL, .steps = 1, .reverse = true)},
    {.in = {{2, {0, 8}}, {2, {8, 2}}, {2, {3, 2}}, {2, {3, 2}}, {2, {2, 2}}}, SIZES(NULL, .steps = 0)},
    {.in = {{2, {0, 8}}, {2, {8, 2}}, {2, {0, 2}}, {2, {0, 2}}, {2, {2, 2}}}, SIZES(NULL, .steps = 3)},
    {.in = {{2, {6, 9}}, {2, {12, 2}}, {2, {3, 2}}, {2, {3, 3}}, {2, {2, 3}}}, SIZES(NULL, .steps = 2),
     TN__FAILS(TN_ESHAPE,
     "lstm_proj: x is [6, 9], but must be [6, 12]: a row for each sequence in each step, of the width of all "
     "gates")},
    {.in = {{2, {6, 12}}, {2, {12, 3}}, {2, {3, 2}}, {2, {3, 3}}, {2, {2, 3}}}, SIZES(NULL, .steps = 2),
     TN__FAILS(TN_ESHAPE, "lstm_proj: weight is [12, 3], but must be [12, 2]: [4 · hidden, projected]")},
    {.in = {{2, {6, 12}}, {2, {12, 2}}, {1, {2}}, {2, {3, 3}}, {2, {2, 3}}}, SIZES(NULL, .steps = 2),
     TN__FAILS(TN_ESHAPE, "lstm_proj: h must be [rows, projected], got [2]")},
    {.in = {{2, {6, 12}}, {2, {12, 2}}, {2, {3, 2}}, {2, {2, 3}}, {2, {2, 3}}}, SIZES(NULL, .steps = 2),
     TN__FAILS(TN_ESHAPE, "lstm_proj: c is [2, 3], but must be [3, 3]: a row for each row of h")},
    {.in = {{2, {6, 12}}, {2, {12, 2}}, {2, {3, 2}}, {2, {3, 3}}, {2, {3, 2}}}, SIZES(NULL, .steps = 2),
     TN__FAILS(TN_ESHAPE, "lstm_proj: proj is [3, 2], but must be [2, 3]: [projected, hidden]")},
    {.in = {{2, {6, 12}}, {2, {12, 2}}, {2, {3, 2}}, {2, {3, 3}}, {2, {2, 3}}}, SIZES(NULL, .steps = 3),
     TN__FAILS(TN_ESHAPE, "lstm_proj: x has 6 rows, but there are 3 steps of 3 rows")},
    {.in = {{2, {6, 12}}, {2, {12, 2}}, {2, {3, 2}}, {2, {3, 3}}, {2, {2, 3}}}, .kind = {0, 0, 0, 0, TN__ARG_INT},
     SIZES(NULL, .steps = 2),
     TN__FAILS(TN_EDTYPE, "lstm_proj: needs a floating tensor, got i64; convert it with tn_to(x, TN_F32)")},
};
/* clang-format on */

const tn_op tn__op_lstm_proj = {TN__ROOM("lstm_proj", TN_WIDE),
                                .inputs = INPUTS,
                                .outputs = RESULTS,
                                .saves =
                                    TN_SAVE_IN(WEIGHT) | TN_SAVE_IN(PROJ) | TN_SAVE_OUT(KEPT) | TN_SAVE_OUT(BEFORE),
                                .args_size = sizeof(tn__steps),
                                .args_copy = tn__steps_copy,
                                .args_free = tn__steps_free,
                                .infer = lstm_proj_infer,
                                .forward = lstm_proj_forward,
                                .backward = lstm_proj_backward,
                                .backward_ops = lstm_proj_backward_ops};
TN__SAMPLES(lstm_proj, samples);

tn_tensor *tn__lstm_proj_call(tn_steps_args a)
{
    tn_tensor      *in[INPUTS] = {a.x, a.weight, a.h, a.c, a.proj}, *out[RESULTS];
    const tn__steps s = {a.sizes, a.steps, a.reverse, a.relu};
    if (!tn__steps_options(&tn__op_lstm_proj, &a, true, false)) return NULL;
    tn__promote_all(INPUTS, in);
    if (tn_op_call(&tn__op_lstm_proj, INPUTS, in, RESULTS, out, &s) != TN_OK) return NULL;
    if (a.last_h) *a.last_h = out[LAST];
    if (a.last_c) *a.last_c = out[LAST_C];
    return out[Y];
}

#else /* =========================================================== kernels: contiguous rows, one real type */

/* Out: m, c, the kept values (which hold the product on entry); in: x, c. */
static void TN__(lstm_proj_fwd)(int64_t n, void *const *out, const void *const *in, const void *args)
{
    const int64_t   h = n / 4;
    TN__REAL *const m = out[0], *const c = out[1], *const k = out[2];
    TN__REAL *const before = k + 4 * h, *const kept_m = k + 5 * h;
    const TN__REAL *const x = in[0], *const from_c = in[1]; /* may be c itself */
    const TN__REAL *const i = k, *const f = k + h, *const g = k + 2 * h, *const o = k + 3 * h;
    (void)args;
    for (int64_t j = 0; j < n; j++) k[j] += x[j];
    TN__(tn__sigmoid)(2 * h, k, k);
    TN__(tn__tanh)(h, k + 2 * h, k + 2 * h);
    TN__(tn__sigmoid)(h, k + 3 * h, k + 3 * h);
    memcpy(before, from_c, (size_t)h * sizeof *before);
    for (int64_t j = 0; j < h; j++) c[j] = f[j] * before[j] + i[j] * g[j];
    TN__(tn__tanh)(h, kept_m, c);
    for (int64_t j = 0; j < h; j++) kept_m[j] *= o[j];
    memcpy(m, kept_m, (size_t)h * sizeof *m);
}

/* Takes the gradient of this step's state and adds y's; the gradient for the step before is initialised to gbefore, or
 * to 0. */
static void TN__(lstm_proj_take)(int64_t n, void *const *out, const void *const *in, const void *args)
{
    TN__REAL *const all = out[0], *const gh = out[1];
    const TN__REAL *const gy = in[1], *const gbefore = in[2];
    (void)args;
    for (int64_t j = 0; j < n; j++) all[j] = gh[j] + (gy ? gy[j] : 0);
    for (int64_t j = 0; j < n; j++) gh[j] = gbefore ? gbefore[j] : 0;
}

/* Many small loops, which the compiler vectorises. Out: gx, gc; in: kept, gc, gm, gkept. */
static void TN__(lstm_proj_bwd)(int64_t n, void *const *out, const void *const *in, const void *args)
{
    const int64_t   h = n / 6;
    TN__REAL *const gx = out[0], *const gc = out[1];
    TN__REAL *const gi = gx, *const gf = gx + h, *const gg = gx + 2 * h, *const go = gx + 3 * h;
    const TN__REAL *const k = in[0], *const gm = in[2], *const gk = in[3];
    const TN__REAL *const i = k, *const f = k + h, *const g = k + 2 * h;
    const TN__REAL *const o = k + 3 * h, *const before = k + 4 * h;
    (void)args;
    for (int64_t j = 0; j < h; j++) gi[j] = f[j] * before[j] + i[j] * g[j];
    TN__(tn__tanh)(h, gi, gi);
    for (int64_t j = 0; j < h; j++) gf[j] = gm[j] + (gk ? gk[5 * h + j] : 0);
    for (int64_t j = 0; j < h; j++) gc[j] += gf[j] * o[j] * (1 - gi[j] * gi[j]);
    for (int64_t j = 0; j < h; j++) go[j] = gf[j] * gi[j];
    for (int64_t j = 0; j < h; j++) gi[j] = gc[j] * g[j];
    for (int64_t j = 0; j < h; j++) gf[j] = gc[j] * before[j];
    for (int64_t j = 0; j < h; j++) gg[j] = gc[j] * i[j];
    for (int64_t j = 0; j < h; j++) gc[j] *= f[j];
    for (int64_t j = 0; gk && j < 4 * h; j++) gx[j] += gk[j];
    for (int64_t j = 0; gk && j < h; j++) gc[j] += gk[4 * h + j];
    for (int64_t j = 0; j < 2 * h; j++) gx[j] *= k[j] * (1 - k[j]);
    for (int64_t j = 0; j < h; j++) gg[j] *= 1 - g[j] * g[j], go[j] *= o[j] * (1 - o[j]);
}
#endif
