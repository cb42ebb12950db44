/* reductions.c — shared code of the reductions' rooms: the shape rule, and dims as the skeleton takes them. */
#include "autograd/rooms/room.h"

bool tn__infer_reduced(tn_ctx *c, int i, tn_dims dims, bool keepdim, tn_dtype dt)
{
    c->result[i].dtype = dt;
    return tn__reduced_shape(c->op->name, c->in[0]->l.shape, &dims, keepdim, &c->result[i].shape);
}

bool tn__need_elements(const tn_ctx *c, tn_dims dims)
{
    const tn_shape x = c->in[0]->l.shape;
    char           text[192];
    if (!tn__wrap_dims(c->op->name, &dims, x.n)) return false;
    for (int i = 0; i < dims.n; i++)
        if (x.d[dims.d[i]] == 0)
            return tn_infer_fail(c, TN_ESHAPE, "dim %d of %s is empty: there is no element to choose", dims.d[i],
                                 tn_shape_text(x, text, sizeof text));
    return true;
}

tn_dims tn__dims_of(const tn_tensor *x, tn_dims dims)
{
    tn__wrap_dims("reduction", &dims, x->l.shape.n);
    return dims;
}

int64_t tn__count_of(tn_shape x, tn_dims dims)
{
    int64_t n = 1;
    tn__wrap_dims("reduction", &dims, x.n);
    for (int i = 0; i < dims.n; i++) n *= x.d[dims.d[i]];
    return n;
}

tn_tensor *tn__joined(tn_tensor *t, int k)
{
    if (!t || k == 1) return t;
    tn_shape s = {.n = t->l.shape.n - k + 1};
    for (int i = 0; i < s.n - 1; i++) s.d[i] = t->l.shape.d[i];
    s.d[s.n - 1] = 1;
    for (int i = s.n - 1; i < t->l.shape.n; i++) s.d[s.n - 1] *= t->l.shape.d[i];
    return tn_reshape(t, s);
}
