/* memory_attention.c — attention of a query to a memory: the memory's sum weighted by softmax(score(q, h_i)). The score
 * is a dot product (Luong) or a small network (Bahdanau). */
#include "nn/attention/checks.h"
#include "nn/base/nn_private.h"

/* ---- shared by both ---------------------------------------------------------------------------------------------- */

typedef struct {
    const char *who;
    int64_t     query, memory, keys; /* widths */
    bool        one;                 /* the query is [B, query] and is viewed as [B, 1, query] */
} form;

static bool memory_attention_fits(form *z, tn_memory_args *a)
{
    char text[192], other[192];
    if (!tn__not_null(z->who, "query", a->query) || !tn__not_null(z->who, "memory", a->memory)) return false;
    const tn_shape q = tn_shape_of(a->query), h = tn_shape_of(a->memory);
    if ((q.n != 2 && q.n != 3) || q.d[q.n - 1] != z->query)
        return tn__wrong_shape(z->who, "query", a->query, "[B, T, %lld] or [B, %lld]", (long long)z->query,
                               (long long)z->query);
    if (h.n != 3 || h.d[2] != z->memory)
        return tn__wrong_shape(z->who, "memory", a->memory, "[B, S, %lld]", (long long)z->memory);
    if (q.d[0] != h.d[0])
        return tn_raise_false(TN_ESHAPE, "%s: query %s and memory %s differ in batch size", z->who,
                              tn_shape_text(q, text, sizeof text), tn_shape_text(h, other, sizeof other));
    if (a->keys && !tn_shape_equal(tn_shape_of(a->keys), TN_SHAPE(h.d[0], h.d[1], z->keys)))
        return tn__wrong_shape(z->who, "keys", a->keys, "[B, S, %lld], one per vector of memory %s", (long long)z->keys,
                               tn_shape_text(h, other, sizeof other));
    if (a->key_padding_mask && !tn_shape_equal(tn_shape_of(a->key_padding_mask), TN_SHAPE(h.d[0], h.d[1])))
        return tn__wrong_shape(z->who, "key_padding_mask", a->key_padding_mask,
                               "[B, S] = [%lld, %lld]; true is padding", (long long)h.d[0], (long long)h.d[1]);
    z->one = q.n == 2;
    if (z->one) a->query = tn_unsqueeze(a->query, 1);
    return a->query != NULL;
}

/* Runs attention and ends the frame; returns NULL if the checks have raised an error. */
static tn_tensor *attended(tn_frame f, const form *z, tn_attention_args t, tn_tensor **weights)
{
    tn_tensor *w = NULL, *y = NULL;
    if (tn_error() == TN_OK) {
        if (weights) t.weights = &w;
        y = tn_attention_run(t);
        if (z->one) y = tn_squeeze(y, 1);
        if (z->one && weights) w = tn_squeeze(w, 1);
    }
    if (!weights) return tn_leave(f, y);
    tn_leave_n(f, &y, &w);
    *weights = w;
    return y;
}

/* ---- dot product ------------------------------------------------------------------------------------------------- */

static void dot_attention_describe(const void *self, char *text, size_t size)
{
    const tn_dot_attention *m = self;
    snprintf(text, size, "query=%lld, memory=%lld, scaled=%s", (long long)m->query, (long long)m->memory,
             tn__python_bool(m->scaled));
}

static const tn_class tn_dot_attention_class = {.size = sizeof(tn_class),
                                                .name = "DotAttention",
                                                .bytes = sizeof(tn_dot_attention),
                                                .describe = dot_attention_describe};

tn_dot_attention *tn_dot_attention_create(tn_dot_attention_config c)
{
    static const char *const who = "tn_dot_attention_new";
    if (c.query == 0) c.query = c.memory;
    if (!tn__at_least(who, "memory", c.memory, 1) || !tn__at_least(who, "query", c.query, 1) ||
        !tn__floating(who, c.dtype))
        return NULL;
    if (!c.general && c.query != c.memory)
        return tn_raise_null(TN_EINVAL,
                             "%s: a query of width %lld does not fit a memory of width %lld; set .general = true to "
                             "multiply by a matrix",
                             who, (long long)c.query, (long long)c.memory);
    tn_dot_attention *m = tn_module_new(tn_dot_attention);
    if (!m) return NULL;
    m->query = c.query, m->memory = c.memory, m->scaled = c.scaled;
    if (c.general)
        m->query_proj =
            tn_child(m, "query_proj", tn_linear_new(.in = c.query, .out = c.memory, .no_bias = true, .dtype = c.dtype));
    return tn_built(m);
}

tn_tensor *tn_dot_attention_run(tn_dot_attention *m, tn_memory_args a)
{
    if (a.weights) *a.weights = NULL;
    if (!tn_ready(m)) return NULL;
    const tn_frame    f = tn_enter(m);
    form              z = {.who = "dot_attention", .query = m->query, .memory = m->memory, .keys = m->memory};
    tn_attention_args t = {TN_ATTENTION_ARGS_DEFAULTS};
    if (memory_attention_fits(&z, &a)) {
        t.q = m->query_proj ? tn_call(m->query_proj, a.query) : a.query;
        t.k = a.keys ? a.keys : a.memory, t.v = a.memory, t.key_padding_mask = a.key_padding_mask;
        if (!m->scaled) t.scale = 1;
    }
    return attended(f, &z, t, a.weights);
}

/* ---- a small network --------------------------------------------------------------------------------------------- */

static const tn_class tn_additive_attention_class = {
    .size = sizeof(tn_class), .name = "AdditiveAttention", .bytes = sizeof(tn_additive_attention)};

tn_additive_attention *tn_additive_attention_create(tn_additive_attention_config c)
{
    static const char *const who = "tn_additive_attention_new";
    if (c.hidden == 0) c.hidden = c.query;
    if (!tn__at_least(who, "query", c.query, 1) || !tn__at_least(who, "memory", c.memory, 1) ||
        !tn__at_least(who, "hidden", c.hidden, 1) || !tn__floating(who, c.dtype))
        return NULL;
    tn_additive_attention *m = tn_module_new(tn_additive_attention);
    if (!m) return NULL;
    m->query = c.query, m->memory = c.memory, m->hidden = c.hidden;
    m->query_proj =
        tn_child(m, "query_proj", tn_linear_new(.in = c.query, .out = c.hidden, .no_bias = true, .dtype = c.dtype));
    m->memory_proj = tn_child(m, "memory_proj", tn_linear_new(.in = c.memory, .out = c.hidden, .dtype = c.dtype));
    m->score = tn_child(m, "score", tn_linear_new(.in = c.hidden, .out = 1, .no_bias = true, .dtype = c.dtype));
    return tn_built(m);
}

tn_tensor *tn_additive_attention_keys(tn_additive_attention *m, tn_tensor *memory)
{
    if (!tn_ready(m)) return NULL;
    const tn_frame f = tn_enter(m);
    return tn_leave(f, tn_call(m->memory_proj, memory));
}

/* Uses tn_attention for mask, softmax and sum: its queries and keys have width 0, so that their scores are 0, and the
 * scores computed here are passed as the mask that it adds. */
tn_tensor *tn_additive_attention_run(tn_additive_attention *m, tn_memory_args a)
{
    if (a.weights) *a.weights = NULL;
    if (!tn_ready(m)) return NULL;
    const tn_frame    f = tn_enter(m);
    form              z = {.who = "additive_attention", .query = m->query, .memory = m->memory, .keys = m->hidden};
    tn_attention_args t = {TN_ATTENTION_ARGS_DEFAULTS};
    if (memory_attention_fits(&z, &a)) {
        tn_tensor *keys = a.keys ? a.keys : tn_call(m->memory_proj, a.memory); /* [B, S, hidden] */
        tn_tensor *q = tn_unsqueeze(tn_call(m->query_proj, a.query), 2);       /* [B, T, 1, hidden] */
        tn_tensor *e = tn_tanh(tn_add(q, tn_unsqueeze(keys, 1)));              /* [B, T, S, hidden] */
        t.attn_mask = tn_squeeze(tn_call(m->score, e), 3);                     /* [B, T, S] */
        if (t.attn_mask) {
            const tn_shape s = tn_shape_of(t.attn_mask);
            const tn_dtype dt = tn_dtype_of(t.attn_mask);
            t.q = tn_zeros_of(dt, TN_SHAPE(s.d[0], s.d[1], 0)), t.k = tn_zeros_of(dt, TN_SHAPE(s.d[0], s.d[2], 0));
            t.v = a.memory, t.key_padding_mask = a.key_padding_mask;
        }
    }
    return attended(f, &z, t, a.weights);
}
