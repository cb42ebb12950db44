/* rnn_cell.c — RNNCell, LSTMCell, GRUCell: one step of a recurrent network, for programs with their own loop over time.
 * A cell is a layer over sequences of length 1. */
#include "nn/recurrent/rnn_private.h"

static tn_tensor *rnn_cell_forward(void *self, tn_tensor *x) { return tn_rnn_cell_forward((tn_rnn_cell *)self, x); }

static void rnn_cell_describe(const void *self, char *text, size_t size)
{
    const tn_rnn_cell *m = self;
    snprintf(text, size, "%lld, %lld%s%s", (long long)m->in, (long long)m->hidden, m->bias_ih ? "" : ", bias=False",
             m->relu ? ", nonlinearity=relu" : "");
}

#define CLASS(title, kind)                                              \
    static const tn_class kind##_class = {.size = sizeof(tn_class),     \
                                          .name = title,                \
                                          .bytes = sizeof(tn_rnn_cell), \
                                          .forward = rnn_cell_forward,  \
                                          .describe = rnn_cell_describe}
CLASS("RNNCell", tn_rnn_cell);
CLASS("LSTMCell", tn_lstm_cell);
CLASS("GRUCell", tn_gru_cell);

static tn_rnn_cell *rnn_cell_create(const tn_class *kind, const char *who, int64_t gates, tn_rnn_cell_config c)
{
    if (!tn__at_least(who, "in", c.in, 1) || !tn__at_least(who, "hidden", c.hidden, 1) || !tn__floating(who, c.dtype))
        return NULL;
    if (c.relu && gates != 1) return tn_raise_null(TN_EINVAL, "%s: .relu is for tn_rnn_cell_new", who);
    tn_rnn_cell *m = tn_module_create(kind);
    if (!m) return NULL;
    m->in = c.in, m->hidden = c.hidden, m->gates = gates, m->relu = c.relu;
    const tn__layer_weights w = tn__recurrent_weights(m, "", gates, c.in, c.hidden, 0, c.no_bias, c.dtype);
    m->weight_ih = w.weight_ih, m->weight_hh = w.weight_hh, m->bias_ih = w.bias_ih, m->bias_hh = w.bias_hh;
    return tn_built(m);
}

tn_rnn_cell *tn_rnn_cell_create(tn_rnn_cell_config c)
{
    return rnn_cell_create(&tn_rnn_cell_class, "tn_rnn_cell_new", 1, c);
}
tn_lstm_cell *tn_lstm_cell_create(tn_rnn_cell_config c)
{
    return rnn_cell_create(&tn_lstm_cell_class, "tn_lstm_cell_new", 4, c);
}
tn_gru_cell *tn_gru_cell_create(tn_rnn_cell_config c)
{
    return rnn_cell_create(&tn_gru_cell_class, "tn_gru_cell_new", 3, c);
}

static bool state_fits(const tn_rnn_cell *m, const char *name, const tn_tensor *h, int64_t batch)
{
    const tn_shape want = TN_SHAPE(batch, m->hidden);
    char           a[192], b[192];
    if (!h) return true;
    if (!tn__state_floating(&m->base, name, h)) return false;
    if (tn_shape_equal(tn_shape_of(h), want)) return true;
    return tn_raise_false(TN_ESHAPE, "%s: %s %s must be [B, hidden] = %s", tn__kind_name(&m->base), name,
                          tn_shape_text(tn_shape_of(h), a, sizeof a), tn_shape_text(want, b, sizeof b));
}

static bool rnn_cell_fits(const tn_rnn_cell *m, const tn_rnn_cell_args *a)
{
    const char *who = tn__kind_name(&m->base);
    char        text[192];
    if (!a->x) return tn_raise_false(TN_EINVAL, "%s: x is NULL", who);
    const tn_shape s = tn_shape_of(a->x);
    if (s.n != 2 || s.d[1] != m->in)
        return tn_raise_false(TN_ESHAPE, "%s: x %s must be [B, %lld]", who, tn_shape_text(s, text, sizeof text),
                              (long long)m->in);
    if ((a->c || a->c_n) && m->gates != 4)
        return tn_raise_false(TN_EINVAL, "%s: %s is for an LSTMCell; this has one state, h", who, a->c ? "c" : "c_n");
    return state_fits(m, "h", a->h, s.d[0]) && state_fits(m, "c", a->c, s.d[0]);
}

tn_tensor *tn_rnn_cell_run(tn_rnn_cell *m, tn_rnn_cell_args a)
{
    if (a.c_n) *a.c_n = NULL;
    if (!tn_ready(m)) return NULL;
    const tn_frame f = tn_enter(m);
    tn_tensor     *y = NULL, *c = NULL;
    if (rnn_cell_fits(m, &a)) {
        const tn__layer_weights w = {m->weight_ih, m->weight_hh, m->bias_ih, m->bias_hh, NULL};
        const tn_shape          s = TN_SHAPE(tn_size(a.x, 0), m->hidden);
        tn_steps_args           t = {.h = a.h, .c = a.c, .steps = 1, .relu = m->relu};
        if (!t.h) t.h = tn_zeros_of(tn_dtype_of(a.x), s);
        if (m->gates == 4) t.last_c = &c;
        if (!t.c && m->gates == 4) t.c = tn_zeros_of(tn_dtype_of(a.x), s);
        y = tn__recurrent_layer(m->gates, &w, a.x, t);
    }
    tn_leave_n(f, &y, &c);
    if (a.c_n) *a.c_n = c;
    return y;
}
