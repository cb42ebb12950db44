/* recurrent.c — recurrent layers over packed sequences (recurrent.h).
 *
 * Forward: the results h and c hold the current states and are updated in place, step by step. A row does not change
 * after its sequence has ended (in reverse: before it starts), so that after the last step they hold each sequence's
 * last state. Backward: gh and gc hold the gradients of the current states in the same way, and after the last step
 * those of the initial states. The gradient of the weights is one product over all steps.
 *
 * Without a tape nothing is kept for the backward, and all steps use the memory of one. */
#include "autograd/rooms/recurrent.h"

#include <string.h>

static int kept_at(const tn__cell *cell) { return cell->state ? 3 : 2; }

/* ---- the walk ---------------------------------------------------------------------------------------------------- */

tn__steps_walk tn__steps_begin(const tn__steps *a, bool down, int64_t packed, int64_t all)
{
    return (tn__steps_walk){.a = a, .t = down ? a->steps : -1, .at = down ? packed : 0, .all = all, .down = down};
}
bool tn__steps_next(tn__steps_walk *w)
{
    if (w->down ? w->t == 0 : w->t + 1 == w->a->steps) return false;
    if (!w->down) w->at += w->n;
    w->t += w->down ? -1 : 1;
    w->n = w->a->sizes ? w->a->sizes[w->t] : w->all;
    if (w->down) w->at -= w->n;
    return true;
}

tn_tensor tn__step_part(const tn_tensor *x, int64_t at, int64_t n, int64_t from, int64_t width)
{
    tn__layout l = x->l, r;
    tn__view_narrow("rows", &x->l, 0, at, n, &l);
    if (!width) return tn__stack_view(x, &l);
    tn__view_narrow("rows", &l, 1, from, width, &r);
    return tn__stack_view(x, &r);
}
static tn_tensor rows(const tn_tensor *x, int64_t at, int64_t n, int64_t width)
{
    return tn__step_part(x, at, n, 0, width);
}

/* ---- shapes ------------------------------------------------------------------------------------------------------ */

bool tn__steps_fail(const tn_ctx *c, const char *name, const tn_tensor *x, tn_shape want, const char *why)
{
    char a[192], b[192];
    return tn_infer_fail(c, TN_ESHAPE, "%s is %s, but must be %s: %s", name, tn_shape_text(x->l.shape, a, sizeof a),
                         tn_shape_text(want, b, sizeof b), why);
}

bool tn__steps_sizes_fit(const tn_ctx *c, const tn__steps *a, int64_t packed, int64_t rows)
{
    int64_t sum = 0, most = rows;
    if (a->steps < 0)
        return tn_infer_fail(c, TN_EINVAL, "steps is %lld, but must not be negative", (long long)a->steps);
    if (!a->sizes && (!tn__mul_i64(a->steps, rows, &sum) || sum != packed))
        return tn_infer_fail(c, TN_ESHAPE, "x has %lld rows, but there are %lld steps of %lld rows", (long long)packed,
                             (long long)a->steps, (long long)rows);
    for (int64_t t = 0; a->sizes && t < a->steps; t++) {
        if (a->sizes[t] < 0 || a->sizes[t] > most)
            return tn_infer_fail(c, TN_EINVAL,
                                 "step %lld has %lld rows, but sizes must not increase from step to step: at most %lld",
                                 (long long)t, (long long)a->sizes[t], (long long)most);
        most = a->sizes[t];
        if (!tn__add_i64(sum, most, &sum)) break;
    }
    if (sum != packed)
        return tn_infer_fail(c, TN_ESHAPE, "x has %lld rows, but the sizes of the steps add up to %lld",
                             (long long)packed, (long long)sum);
    return true;
}

bool tn__steps_infer(tn_ctx *c, const tn__cell *cell)
{
    const char *const name[] = {"x", "weight", "h", cell->state ? "c" : "bias"};
    const tn_tensor  *x = c->in[TN__STEPS_X], *w = c->in[TN__STEPS_WEIGHT], *h = c->in[TN__STEPS_H];
    char              text[192];
    for (int i = 0; i < c->nin; i++) {
        if (i == TN__STEPS_BIAS && !c->in[i]) continue;
        if (!tn__need_real(c, i)) return false;
        const bool wide =
            i == TN__STEPS_C && c->in[i]->dtype == tn__wide(x->dtype); /* autocast leaves c and bias f32 */
        if (c->in[i]->dtype != x->dtype && !wide)
            return tn_infer_fail(c, TN_EDTYPE, "dtypes differ: x is %s, %s %s", tn_dtype_name(x->dtype), name[i],
                                 tn_dtype_name(c->in[i]->dtype));
    }
    if (h->l.shape.n != 2)
        return tn_infer_fail(c, TN_ESHAPE, "h must be [rows, hidden], got %s",
                             tn_shape_text(h->l.shape, text, sizeof text));
    const int64_t rows = h->l.shape.d[0], hidden = h->l.shape.d[1], packed = x->l.shape.n ? x->l.shape.d[0] : 0;
    int64_t       wide;
    if (!tn__mul_i64(hidden, cell->kept, &wide)) return tn_infer_fail(c, TN_ESHAPE, "h is too large");
    const tn_shape sums = {.n = 2, .d = {packed, cell->gates * hidden}},
                   weight = {.n = 2, .d = {cell->gates * hidden, hidden}}, bias = {.n = 1, .d = {cell->gates * hidden}};
    if (!tn_shape_equal(x->l.shape, sums))
        return tn__steps_fail(c, "x", x, sums, "a row for each sequence in each step, of the width of all gates");
    if (!tn_shape_equal(w->l.shape, weight)) return tn__steps_fail(c, "weight", w, weight, "[gates · hidden, hidden]");
    if (cell->state && !tn_shape_equal(c->in[TN__STEPS_C]->l.shape, h->l.shape))
        return tn__steps_fail(c, "c", c->in[TN__STEPS_C], h->l.shape, "like h");
    if (cell->split && c->in[TN__STEPS_BIAS] && !tn_shape_equal(c->in[TN__STEPS_BIAS]->l.shape, bias))
        return tn__steps_fail(c, "bias", c->in[TN__STEPS_BIAS], bias, "[gates · hidden]");
    if (!tn__steps_sizes_fit(c, c->args, packed, rows)) return false;
    c->result[TN__STEPS_Y] = (tn_result){x->dtype, {.n = 2, .d = {packed, hidden}}};
    c->result[TN__STEPS_LAST] = (tn_result){x->dtype, h->l.shape};
    if (cell->state) c->result[TN__STEPS_LAST_C] = (tn_result){c->in[TN__STEPS_C]->dtype, h->l.shape};
    bool recorded = false;
    for (int i = 0; i < c->nin; i++) recorded = recorded || (tn_grad_enabled() && tn_needs_grad(c->in[i]));
    c->result[kept_at(cell)] = (tn_result){tn__wide(x->dtype), {.n = 2, .d = {recorded ? packed : 0, wide}}};
    return true;
}

bool tn__steps_copy(void *to, const void *from)
{
    tn__steps   *a = to;
    const size_t bytes = (size_t)a->steps * sizeof *a->sizes;
    (void)from;
    if (!a->sizes) return true;
    int64_t *sizes = tn__mem_get(bytes);
    if (!sizes) return false;
    memcpy(sizes, a->sizes, bytes);
    a->sizes = sizes;
    return true;
}
void tn__steps_free(void *args)
{
    tn__steps *a = args;
    if (a->sizes) tn__mem_put((void *)(uintptr_t)a->sizes, (size_t)a->steps * sizeof *a->sizes);
}

/* ---- forward and backward ---------------------------------------------------------------------------------------- */

tn_tensor tn__step_weight(tn_tensor *w, int64_t steps)
{
    enum { FEW = 2, PAD = 16 };
    const tn_shape s = w->l.shape;
    tn__layout     l;
    tn__view_transpose("rows", &w->l, 0, 1, &l);
    tn_tensor t = tn__stack_view(w, &l);
    if (steps <= FEW || !s.d[0]) return t;
    const tn_tensor *copy = tn__new(w->dtype, TN_SHAPE(s.d[1], s.d[0] + PAD));
    if (!copy) return t;
    tn_tensor y = rows(copy, 0, s.d[1], s.d[0]);
    tn__copy(&y, &t);
    return y;
}

void tn__steps_forward(tn_ctx *c, const tn__cell *cell)
{
    const tn__steps *a = c->args;
    const tn_scope   s = tn_no_grad_begin();
    tn_tensor *const x = c->in[TN__STEPS_X], *const state = cell->state ? c->in[TN__STEPS_C] : NULL;
    tn_tensor *const bias = cell->split ? c->in[TN__STEPS_BIAS] : NULL, *const y = c->out[TN__STEPS_Y];
    tn_tensor *const h = c->out[TN__STEPS_LAST], *const last = state ? c->out[TN__STEPS_LAST_C] : NULL;
    tn_tensor    *kept = c->out[kept_at(cell)];
    const int64_t packed = x->l.shape.d[0], all = h->l.shape.d[0], gates = x->l.shape.d[1];
    const bool    recorded = kept->l.shape.d[0] == packed;
    if (!recorded) kept = tn__new(kept->dtype, TN_SHAPE(all, kept->l.shape.d[1]));
    const tn_tensor weight = tn__step_weight(c->in[TN__STEPS_WEIGHT], a->steps);
    tn__copy(h, c->in[TN__STEPS_H]);
    if (state) tn__copy(last, state);
    for (tn__steps_walk w = tn__steps_begin(a, a->reverse, packed, all); !tn_error() && tn__steps_next(&w);) {
        tn_tensor xt = rows(x, w.at, w.n, 0), yt = rows(y, w.at, w.n, 0), ht = rows(h, 0, w.n, 0), ct;
        tn_tensor kt = rows(kept, recorded ? w.at : 0, w.n, 0), sums = rows(&kt, 0, w.n, gates);
        if (state) ct = rows(last, 0, w.n, 0);
        tn__gemm(1, &ht, &weight, 0, &sums);
        if (!tn_error())
            tn__rows(cell->forward, -1, TN__LIST(&yt, &ht, state ? &ct : NULL, &kt),
                     TN__LIST(&xt, &ht, state ? &ct : NULL, bias), a);
    }
    tn_scope_end(s);
}

tn_tensor *tn__step_state_grad(tn_dtype dt, tn_shape s, const tn_tensor *g)
{
    tn_tensor *y = tn_zeros_of(dt, s);
    if (y && g) tn__copy(y, g);
    return y;
}

void tn__steps_backward(tn_back *b, const tn__cell *cell)
{
    const tn__steps *a = b->args;
    tn_tensor *const w = b->in[TN__STEPS_WEIGHT], *const kept = b->out[kept_at(cell)], *const gy = b->gy[TN__STEPS_Y];
    tn_tensor *const gkept = b->gy[kept_at(cell)];
    const tn_shape   sums = b->in_shape[TN__STEPS_X], states = b->in_shape[TN__STEPS_H];
    const int64_t    packed = sums.d[0], all = states.d[0], hidden = states.d[1];
    tn_tensor       *gx = tn_empty_of(w->dtype, sums), *gp = cell->split ? tn_empty_of(w->dtype, sums) : gx;
    tn_tensor       *gh = tn__step_state_grad(kept->dtype, states, b->gy[TN__STEPS_LAST]), *gc = NULL;
    if (cell->state) gc = tn__step_state_grad(kept->dtype, states, b->gy[TN__STEPS_LAST_C]);
    for (tn__steps_walk s = tn__steps_begin(a, !a->reverse, packed, all); !tn_error() && tn__steps_next(&s);) {
        tn_tensor gxt = rows(gx, s.at, s.n, 0), gpt = rows(gp, s.at, s.n, 0), ght = rows(gh, 0, s.n, 0), gct;
        tn_tensor kt = rows(kept, s.at, s.n, 0), gyt, gkt;
        if (gc) gct = rows(gc, 0, s.n, 0);
        if (gy) gyt = rows(gy, s.at, s.n, 0);
        if (gkept) gkt = rows(gkept, s.at, s.n, 0);
        tn__rows(cell->backward, -1, TN__LIST(&gxt, cell->split ? &gpt : NULL, &ght, gc ? &gct : NULL),
                 TN__LIST(&kt, gy ? &gyt : NULL, gkept ? &gkt : NULL), a);
        tn__gemm(1, &gpt, w, 1, &ght);
    }
    if (tn_error()) return;
    b->gx[TN__STEPS_X] = gx, b->gx[TN__STEPS_H] = gh;
    if (cell->state) b->gx[TN__STEPS_C] = gc;
    if (cell->split) b->gx[TN__STEPS_BIAS] = gp;
    if (b->need[TN__STEPS_WEIGHT]) {
        tn_tensor *from = tn_narrow(kept, 1, (cell->kept - 1) * hidden, hidden); /* the states before each step */
        b->gx[TN__STEPS_WEIGHT] = tn__weight_grad(b, gp, tn_to(from, w->dtype));
    }
}

/* ---- the backward made of ops ------------------------------------------------------------------------------------ */

tn_tensor *tn__step_replace_rows(tn_tensor *x, tn_tensor *y, int64_t n)
{
    const int64_t all = x ? x->l.shape.d[0] : n;
    return n == all ? y : tn_cat(0, y, tn_narrow(x, 0, n, all - n));
}

void tn__steps_backward_ops(tn_back *b, const tn__cell *cell)
{
    const tn__steps *a = b->args;
    tn_tensor *const w = b->in[TN__STEPS_WEIGHT], *const kept = b->out[kept_at(cell)], *const gy = b->gy[TN__STEPS_Y];
    tn_tensor *const gkept = b->gy[kept_at(cell)];
    const tn_shape   sums = b->in_shape[TN__STEPS_X], states = b->in_shape[TN__STEPS_H];
    const int64_t    packed = sums.d[0], all = states.d[0], hidden = states.d[1];
    tn_tensor       *gh = b->gy[TN__STEPS_LAST], *gc = cell->state ? b->gy[TN__STEPS_LAST_C] : NULL;
    if (!gh) gh = tn_zeros_of(w->dtype, states);
    if (cell->state && !gc) gc = tn_zeros_of(w->dtype, states);
    const size_t bytes = 2 * (size_t)(a->steps + 1) * sizeof(tn_tensor *);
    tn_tensor  **gx = tn__mem_get(bytes),
              **gp = gx ? gx + a->steps + 1 : NULL; /* one for each step; the last covers steps = 0 */
    if (!gx) return;
    gx[a->steps] = gp[a->steps] = tn_zeros_of(w->dtype, TN_SHAPE(0, sums.d[1]));
    for (tn__steps_walk s = tn__steps_begin(a, !a->reverse, packed, all); !tn_error() && tn__steps_next(&s);) {
        tn_tensor *k[TN__MOST_KEPT], *g[TN__MOST_KEPT] = {NULL}, *kt = tn_narrow(kept, 0, s.at, s.n);
        tn_tensor *gkt = gkept ? tn_narrow(gkept, 0, s.at, s.n) : NULL;
        for (int i = 0; i < cell->kept; i++) k[i] = tn_narrow(kt, 1, i * hidden, hidden);
        tn_tensor *ght = tn__add_optional(tn_narrow(gh, 0, 0, s.n), gy ? tn_narrow(gy, 0, s.at, s.n) : NULL);
        cell->spread(a, k, ght, gc ? tn_narrow(gc, 0, 0, s.n) : NULL, g);
        for (int i = 0; gkt && i < cell->kept; i++)
            g[i] = tn__add_optional(g[i], tn_narrow(gkt, 1, i * hidden, hidden));
        cell->chain(a, k, g, &gx[s.t], &gp[s.t]);
        gh =
            tn__step_replace_rows(gh, tn__add_optional(g[cell->kept - 1], tn_matmul(tn_to(gp[s.t], w->dtype), w)), s.n);
        if (gc) gc = tn__step_replace_rows(gc, g[cell->kept - 2], s.n);
    }
    const int n = a->steps < INT_MAX ? (int)a->steps + 1 : 0;
    if (!n) tn_raise(TN_EUNSUPPORTED, "%s: too many steps for gradients of gradients", b->op->name);
    if (!tn_error()) {
        tn_tensor *all_gp = tn_cat_list(0, n, gp), *from = tn_narrow(kept, 1, (cell->kept - 1) * hidden, hidden);
        b->gx[TN__STEPS_X] = cell->split ? tn_cat_list(0, n, gx) : all_gp;
        b->gx[TN__STEPS_H] = gh;
        if (cell->state) b->gx[TN__STEPS_C] = gc;
        if (cell->split) b->gx[TN__STEPS_BIAS] = all_gp;
        if (b->need[TN__STEPS_WEIGHT])
            b->gx[TN__STEPS_WEIGHT] = tn_matmul(tn_transpose(all_gp, 0, 1), tn_to(from, tn_dtype_of(all_gp)));
    }
    tn__mem_put(gx, bytes);
}

/* ---- the call ---------------------------------------------------------------------------------------------------- */

bool tn__steps_options(const tn_op *op, const tn_steps_args *a, bool state, bool bias)
{
    const struct {
        bool        given;
        const char *name, *whose;
    } of_others[] = {
        {!state && a->c, "c", "only for an LSTM"},
        {!state && a->last_c, "last_c", "only for an LSTM"},
        {!state && a->proj, "proj", "only for an LSTM"},
        {!bias && a->bias, "bias", "only for a GRU; elsewhere it is a part of x"},
        {(state || bias) && a->relu, "relu", "only for a plain network; these gates have fixed functions"}};
    if (a->last_h) *a->last_h = NULL;
    if (a->last_c) *a->last_c = NULL;
    for (size_t i = 0; i < sizeof of_others / sizeof *of_others; i++)
        if (of_others[i].given)
            return tn_raise_false(TN_EINVAL, "%s: .%s is %s", op->name, of_others[i].name, of_others[i].whose);
    return true;
}

tn_tensor *tn__steps_call(const tn_op *op, tn_steps_args a, bool state, bool bias)
{
    tn_tensor *in[4] = {a.x, a.weight, a.h, state ? a.c : bias ? a.bias : NULL}, *out[4];
    if (!tn__steps_options(op, &a, state, bias)) return NULL;
    tn__promote_all(4, in);
    const tn__steps s = {a.sizes, a.steps, a.reverse, a.relu};
    if (tn_op_call(op, state || bias ? 4 : 3, in, state ? 4 : 3, out, &s) != TN_OK) return NULL;
    if (a.last_h) *a.last_h = out[TN__STEPS_LAST];
    if (a.last_c) *a.last_c = out[TN__STEPS_LAST_C];
    return out[TN__STEPS_Y];
}
