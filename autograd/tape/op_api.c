/* op_api.c — what ops call: helpers for their infer functions, and gradients that they add in place, to a part of an
 * input or to a few rows of a table. */
#include "autograd/tape/op_api.h"
#include "autograd/tape/engine_parts.h"
#include "core/base/checks.h"

#include <stdarg.h>

bool tn_infer_fail(const tn_ctx *c, tn_status code, const char *fmt, ...)
{
    char    text[700];
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(text, sizeof text, fmt ? fmt : " ", ap);
    va_end(ap);
    return tn_raise_false(code, "%s: %s", c ? c->op->name : "tn_infer_fail", text);
}

bool tn_infer_like(tn_ctx *c, int i, int k)
{
    if (!tn__not_null("tn_infer_like", "the call", c)) return false;
    if (i < 0 || i >= c->nout || k < 0 || k >= c->nin || !c->in[k])
        return tn_infer_fail(c, TN_EINVAL, "its infer makes result %d of %d like input %d of %d, which does not exist",
                             i, c->nout, k, c->nin);
    c->result[i].dtype = c->in[k]->dtype;
    c->result[i].shape = c->in[k]->l.shape;
    return true;
}

tn_tensor *tn__grad_buffer(tn_back *b, int i)
{
    void          **engine = b->engine;
    tn__engine_run *r = engine[0];
    tn__node       *n = engine[1];
    bool            bad;
    tn_tensor     **to = tn__target(r, n, i, &bad);
    if (bad) return NULL;
    if (!to) return tn_zeros_of(b->in_dtype[i], b->in_shape[i]); /* this gradient is not needed */
    if (*to && !(tn__exclusive(*to) && (*to)->dtype == b->in_dtype[i])) {
        tn_tensor *copy = tn__new_owned(b->in_dtype[i], b->in_shape[i]);
        if (!copy) return NULL;
        tn__copy(copy, *to);
        tn_drop(*to);
        *to = copy;
    } else if (!*to) {
        if (!(*to = tn__new_owned(b->in_dtype[i], b->in_shape[i]))) return NULL;
        tn__fill(*to, 0);
    }
    return *to;
}

bool tn__grad_rows(tn_back *b, int i, const tn_tensor *index, const tn_tensor *g, int64_t skip)
{
    void          **engine = b->engine;
    tn_tensor      *leaf = ((tn__node *)engine[1])->edge[i].leaf, **target;
    tn__engine_run *r = leaf ? tn__collector(engine[0], leaf, &target) : NULL;
    tn__grad_slot  *s;
    if (!r || leaf->dtype != g->dtype || !tn_shape_equal(leaf->l.shape, b->in_shape[i])) return false;
    if (tn__tape.anomaly || tn__leaf_watches(leaf)) return false; /* hooks and anomaly mode need the dense gradient */
    if (!(s = tn__leaf_slot(r, leaf))) return true;               /* raised */
    if (s->grad && !s->rows) return false;
    tn__rows_add(leaf, &s->grad, &s->rows, index, g, skip);
    return true;
}
