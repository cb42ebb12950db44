/* infer.c — helpers for the infer functions of ops. */
#include "autograd/tape/tape.h"
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
