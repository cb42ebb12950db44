/* rnn.c — layers of recurrent networks: RNN, LSTM, GRU. Sequences are packed once (nn/recurrent/packing.c) and run
 * through all layers. A layer is one matrix product for all steps and an op that loops over time
 * (autograd/rooms/recurrent.h). */
#include "nn/recurrent/rnn_private.h"

#include <math.h>

static tn_tensor *rnn_forward(void *self, tn_tensor *x) { return tn_rnn_forward((tn_rnn *)self, x); }

static void rnn_describe(const void *self, char *text, size_t size)
{
    const tn_rnn *m = self;
    char          layers[40] = "", dropout[60] = "", proj[40] = "";
    if (m->proj_size) snprintf(proj, sizeof proj, ", proj_size=%lld", (long long)m->proj_size);
    if (m->layers != 1) snprintf(layers, sizeof layers, ", num_layers=%lld", (long long)m->layers);
    if (m->dropout > 0) snprintf(dropout, sizeof dropout, ", dropout=%s", tn__format_python(m->dropout));
    snprintf(text, size, "%lld, %lld%s%s%s%s%s%s", (long long)m->in, (long long)m->hidden, proj, layers,
             m->bias_ih[0] ? "" : ", bias=False", m->time_first ? "" : ", batch_first=True", dropout,
             m->directions == 2 ? ", bidirectional=True" : "");
}

#define CLASS(title, kind)                                          \
    static const tn_class kind##_class = {.size = sizeof(tn_class), \
                                          .name = title,            \
                                          .bytes = sizeof(tn_rnn),  \
                                          .forward = rnn_forward,   \
                                          .describe = rnn_describe}
CLASS("RNN", tn_rnn);
CLASS("LSTM", tn_lstm);
CLASS("GRU", tn_gru);

/* ---- building ---------------------------------------------------------------------------------------------------- */

tn__layer_weights tn__recurrent_weights(void *m, const char *suffix, int64_t gates, int64_t in, int64_t hidden,
                                        int64_t proj, bool no_bias, tn_dtype dt)
{
    const double      k = 1 / sqrt((double)hidden);
    const int64_t     n = gates * hidden;
    tn__layer_weights w = {.weight_ih = NULL};
#define DRAWN(name, ...) \
    w.name = tn_module_param(m, tn_name(#name "%s", suffix), tn_uniform_of(dt, TN_SHAPE(__VA_ARGS__), -k, k))
    DRAWN(weight_ih, n, in);
    DRAWN(weight_hh, n, proj ? proj : hidden);
    if (!no_bias) {
        DRAWN(bias_ih, n);
        DRAWN(bias_hh, n);
    }
    if (proj) DRAWN(weight_hr, proj, hidden);
#undef DRAWN
    return w;
}

/* Of h. */
static int64_t state_size(const tn_rnn *m) { return m->proj_size ? m->proj_size : m->hidden; }

static bool config_fits(const char *who, int64_t gates, const tn_rnn_config *c)
{
    if (!tn__at_least(who, "in", c->in, 1) || !tn__at_least(who, "hidden", c->hidden, 1) ||
        !tn__at_least(who, "layers", c->layers, 1) || !tn__probability(who, "dropout", c->dropout) ||
        !tn__probability(who, "weight_drop", c->weight_drop) || !tn__floating(who, c->dtype))
        return false;
    if (c->relu && gates != 1)
        return tn_raise_false(TN_EINVAL, "%s: .relu is only for tn_rnn_new; LSTM and GRU have fixed activations", who);
    if (c->locked && c->dropout == 0)
        return tn_raise_false(TN_EINVAL, "%s: .locked is set but has no effect because .dropout is 0", who);
    if (c->proj_size && gates != 4) return tn_raise_false(TN_EINVAL, "%s: .proj_size is for tn_lstm_new", who);
    if (c->proj_size >= 0 && (!c->proj_size || c->proj_size < c->hidden)) return true;
    return tn_raise_false(TN_EINVAL, "%s: .proj_size is %lld, but must be less than .hidden, %lld, or 0 for none", who,
                          (long long)c->proj_size, (long long)c->hidden);
}

static tn_rnn *rnn_create(const tn_class *kind, const char *who, int64_t gates, tn_rnn_config c)
{
    if (!config_fits(who, gates, &c)) return NULL;
    tn_rnn *m = tn_module_create(kind);
    if (!m) return NULL;
    m->in = c.in, m->hidden = c.hidden, m->layers = c.layers, m->directions = c.bidirectional ? 2 : 1;
    m->gates = gates, m->dropout = c.dropout, m->relu = c.relu, m->time_first = c.time_first;
    m->proj_size = c.proj_size, m->weight_drop = c.weight_drop, m->locked = c.locked;
    const int64_t n = m->layers * m->directions;
    m->weight_ih = tn_array(m, n, tn_tensor *), m->weight_hh = tn_array(m, n, tn_tensor *);
    m->bias_ih = tn_array(m, n, tn_tensor *), m->bias_hh = tn_array(m, n, tn_tensor *);
    m->weight_hr = tn_array(m, n, tn_tensor *);
    for (int64_t i = 0; i < n && tn_error() == TN_OK; i++) {
        const int64_t           layer = i / m->directions, in = layer ? m->directions * state_size(m) : c.in;
        const char             *suffix = tn_name("_l%lld%s", (long long)layer, i % m->directions ? "_reverse" : "");
        const tn__layer_weights w =
            tn__recurrent_weights(m, suffix, gates, in, c.hidden, c.proj_size, c.no_bias, c.dtype);
        m->weight_ih[i] = w.weight_ih, m->weight_hh[i] = w.weight_hh;
        m->bias_ih[i] = w.bias_ih, m->bias_hh[i] = w.bias_hh, m->weight_hr[i] = w.weight_hr;
    }
    return tn_built(m);
}

tn_rnn  *tn_rnn_create(tn_rnn_config c) { return rnn_create(&tn_rnn_class, "tn_rnn_new", 1, c); }
tn_lstm *tn_lstm_create(tn_rnn_config c) { return rnn_create(&tn_lstm_class, "tn_lstm_new", 4, c); }
tn_gru  *tn_gru_create(tn_rnn_config c) { return rnn_create(&tn_gru_class, "tn_gru_new", 3, c); }

/* ---- running ----------------------------------------------------------------------------------------------------- */

static bool is_lstm(int64_t gates) { return gates == 4; }

tn_tensor *tn__recurrent_layer(int64_t gates, const tn__layer_weights *w, tn_tensor *packed, tn_steps_args s)
{
    const bool split = gates == 3; /* GRU: the reset gate multiplies W_hh h + b_hh before the sum */
    tn_tensor *bias = w->bias_ih && !split ? tn_add(w->bias_ih, w->bias_hh) : w->bias_ih;
    s.x = tn_linear(packed, w->weight_ih, bias), s.weight = w->weight_hh, s.proj = w->weight_hr;
    if (split) s.bias = w->bias_hh;
    return gates == 1 ? tn_rnn_steps_run(s) : split ? tn_gru_steps_run(s) : tn_lstm_steps_run(s);
}

static bool states_fit(const tn_rnn *m, const char *name, const tn_tensor *h, int64_t batch, int64_t size)
{
    const tn_shape want = TN_SHAPE(m->layers * m->directions, batch, size);
    char           a[192], b[192];
    if (!h) return true;
    if (!tn__state_floating(&m->base, name, h)) return false;
    if (tn_shape_equal(tn_shape_of(h), want)) return true;
    return tn_raise_false(TN_ESHAPE, "%s: %s %s must be [%s, B, %s] = %s", tn__kind_name(&m->base), name,
                          tn_shape_text(tn_shape_of(h), a, sizeof a), m->directions == 2 ? "layers · 2" : "layers",
                          size == m->proj_size ? "proj_size" : "hidden", tn_shape_text(want, b, sizeof b));
}

static bool rnn_fits(const tn_rnn *m, const tn_rnn_args *a, int64_t *batch, int64_t *length)
{
    const char *who = tn__kind_name(&m->base);
    char        text[192];
    if (!a->x) return tn_raise_false(TN_EINVAL, "%s: x is NULL", who);
    const tn_shape s = tn_shape_of(a->x);
    if (s.n != 3 || s.d[2] != m->in)
        return tn_raise_false(TN_ESHAPE, "%s: x %s must be [%s, %lld]%s", who, tn_shape_text(s, text, sizeof text),
                              m->time_first ? "T, B" : "B, T", (long long)m->in,
                              s.n == 2 && s.d[1] == m->in ? "; one sequence is a batch of 1: see tn_unsqueeze" : "");
    if ((a->c0 || a->c_n) && !is_lstm(m->gates))
        return tn_raise_false(TN_EINVAL, "%s: %s is for an LSTM; this has one state, h", who, a->c0 ? "c0" : "c_n");
    *batch = s.d[m->time_first], *length = s.d[!m->time_first];
    return states_fit(m, "h0", a->h0, *batch, state_size(m)) && states_fit(m, "c0", a->c0, *batch, m->hidden);
}

/* State i of all layers and directions, or zeros if `all` is NULL. */
static tn_tensor *state_of(tn_tensor *all, int64_t i, const tn_tensor *x, int64_t batch, int64_t size)
{
    return all ? tn_select(all, 0, i) : tn_zeros_of(tn_dtype_of(x), TN_SHAPE(batch, size));
}

static tn_tensor *dropped(const tn_rnn *m, const tn__by_steps *p, tn_tensor *x)
{
    if (!m->base.training || m->dropout <= 0) return x;
    return m->locked ? tn__pack_locked(p, x, m->dropout) : tn_dropout(x, m->dropout);
}

static tn_tensor *layers(tn_rnn *m, const tn__by_steps *p, tn_rnn_args *a, tn_tensor **last)
{
    const int64_t n = m->layers * m->directions;
    tn_tensor    *x = tn__pack(p, a->x, m->time_first);
    tn_tensor    *h0 = a->h0 ? tn__pack_states(p, a->h0) : NULL, *c0 = a->c0 ? tn__pack_states(p, a->c0) : NULL;
    for (int64_t layer = 0; layer < m->layers && tn_error() == TN_OK; layer++) {
        tn_tensor *y[2] = {NULL};
        for (int64_t d = 0; d < m->directions; d++) {
            const int64_t     i = layer * m->directions + d;
            tn__layer_weights w = {m->weight_ih[i], m->weight_hh[i], m->bias_ih[i], m->bias_hh[i], m->weight_hr[i]};
            if (m->base.training && m->weight_drop > 0) w.weight_hh = tn_dropout(w.weight_hh, m->weight_drop);
            tn_steps_args s = {.sizes = p->sizes, .steps = p->steps, .reverse = d == 1, .relu = m->relu};
            s.h = state_of(h0, i, x, p->batch, state_size(m)), s.last_h = last + i;
            if (is_lstm(m->gates)) s.c = state_of(c0, i, x, p->batch, m->hidden), s.last_c = last + n + i;
            y[d] = tn__recurrent_layer(m->gates, &w, x, s);
        }
        x = m->directions == 2 ? tn_cat_list(1, 2, y) : y[0];
        if (layer + 1 < m->layers) x = dropped(m, p, x);
    }
    if (a->h_n) *a->h_n = tn__unpack_states(p, tn_stack_list(0, (int)n, last));
    if (a->c_n) *a->c_n = tn__unpack_states(p, tn_stack_list(0, (int)n, last + n));
    return tn__unpack(p, x, m->time_first);
}

tn_tensor *tn_rnn_run(tn_rnn *m, tn_rnn_args a)
{
    tn_tensor *y = NULL, *h = NULL, *c = NULL, **h_n = a.h_n, **c_n = a.c_n;
    int64_t    batch, length;
    if (h_n) *h_n = NULL, a.h_n = &h;
    if (c_n) *c_n = NULL, a.c_n = &c;
    if (!tn_ready(m)) return NULL;
    const tn_frame f = tn_enter(m);
    if (rnn_fits(m, &a, &batch, &length)) {
        const size_t bytes = (size_t)(2 * m->layers * m->directions) * sizeof(tn_tensor *);
        tn_tensor  **last = tn_mem_get(bytes);
        tn__by_steps p = {.sizes = NULL};
        if (last && tn__packing_begin(&p, tn__kind_name(&m->base), batch, length, a.lengths, m->time_first))
            y = layers(m, &p, &a, last);
        tn__packing_end(&p);
        if (last) tn_mem_put(last, bytes);
    }
    tn_leave_n(f, &y, &h, &c);
    if (h_n) *h_n = h;
    if (c_n) *c_n = c;
    return y;
}
