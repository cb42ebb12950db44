/* rotary.c — rotary positions (Su et al. 2021) as a part of attention: queries and keys are rotated by angles that all
 * layers share. */
#include "nn/attention/block.h"

static void rotary_describe(const void *self, char *text, size_t size)
{
    const tn_rotary *m = self;
    snprintf(text, size, "%lld, theta=%s", (long long)m->rope.dim, tn__format_python(m->rope.theta));
}

/* The config of the angles, which have the dtype of the attention's weights. */
static tn_rope_config rope_of(const tn_rotary *m, const tn_mha *attention)
{
    tn_rope_config c = m->rope;
    c.dtype = tn_weight_dtype(attention->out_proj->weight);
    return c;
}

static bool rotary_join(void *self, tn_mha *attention)
{
    tn_rotary    *m = self;
    const int64_t head = attention->head_dim, dim = m->rope.dim ? m->rope.dim : head;
    if (dim < 2 || dim % 2 || dim > head)
        return tn_raise_false(TN_EINVAL, "rotary: .dim is %lld, but must be even and at most a head's %lld",
                              (long long)dim, (long long)head);
    m->rope.dim = dim;
    return true;
}

static bool rotary_place(void *self, tn_placed *p)
{
    const tn_rope_config c = rope_of(self, p->attention);
    if (tn_kv_cache_at(p->cache)) p->made[0] = tn__cache_angles(p->cache, c);
    else if (p->at) p->made[0] = tn_rope_angles_at(c, p->at);
    else p->made[0] = tn_rope_angles(c, p->first, p->queries);
    return tn_error() == TN_OK;
}

static bool rotary_turn(void *self, const tn_placed *p, tn_tensor **q, tn_tensor **k)
{
    const tn_rotary *m = self;
    tn_tensor       *angles = p->made[0];
    if (!angles || tn_ndim(angles) < 2 || tn_size(angles, -1) != m->rope.dim)
        return tn__unexpected("rotary", angles, false, "angles must be [.., %lld], as returned by tn_mha_angles",
                              (long long)m->rope.dim);
    if (tn_ndim(angles) == 3) angles = tn_unsqueeze(angles, 1); /* [B, n, R]: different positions in each row */
    *q = tn_rope(*q, angles, m->rope.interleaved), *k = tn_rope(*k, angles, m->rope.interleaved);
    return tn_error() == TN_OK;
}

static const tn_position_ops ops = {.join = rotary_join, .place = rotary_place, .turn = rotary_turn, .unpadded = true};
static const tn_class        tn_rotary_class = {.size = sizeof(tn_class),
                                                .name = "Rotary",
                                                .bytes = sizeof(tn_rotary),
                                                .describe = rotary_describe,
                                                .positions = &ops};

tn_rotary *tn_rotary_create(tn_rope_config c)
{
    tn_rotary *m = tn_module_new(tn_rotary);
    if (!m) return NULL;
    m->rope = c;
    const tn_scope s = tn_no_grad_begin();
    if (!c.dim) c.dim = 2;
    tn_rope_angles(c, 0, 0); /* raises an error if the config is invalid */
    tn_scope_end(s);
    return tn_built(m);
}

tn_rotary *tn_rotary_of(const tn_mha *m)
{
    return m && m->positions && m->positions->kind == &tn_rotary_class ? (tn_rotary *)(void *)m->positions : NULL;
}

tn_rope_config tn__mha_rope(const tn_mha *m) { return rope_of(tn_rotary_of(m), m); }

tn_tensor *tn_mha_angles(const tn_mha *m, int64_t first, int64_t n)
{
    return tn_rotary_of(m) ? tn_rope_angles(tn__mha_rope(m), first, n) : NULL;
}
