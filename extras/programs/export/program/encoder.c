/* encoder.c — part of an exported program: the layers of an encoder. */

/* ---- the encoder ----------------------------------------------------------------------------------------------------
 *
 * Rows of numbers, and the outputs of a matrix, are padded to a multiple of 16. */

static const struct layer { /* an absent bias is NULL */
    const float *norm1, *norm1_bias;
    const float *query, *query_bias, *key, *key_bias, *value, *value_bias, *out, *out_bias;
    const float *norm2, *norm2_bias;
    const float *gate, *gate_bias, *up, *up_bias, *down, *down_bias;
} layers[LAYERS]; /* this and other constants: see the end of the file */

/* The numbers of the current input: a row for each token or patch. */
static struct {
    float     x[LENGTH * DIM_WIDE], normed[LENGTH * DIM_WIDE], change[LENGTH * DIM_WIDE];
    float     query[LENGTH * QUERY_WIDE], key[LENGTH * KV_WIDE], value[LENGTH * KV_WIDE], attended[LENGTH * QUERY_WIDE];
    float     hidden[LENGTH * FF_WIDE];
    key_block keys[LENGTH_WIDE / KEYS]; /* of one head */
    value_block values[LENGTH_WIDE / KEYS];
#if SCORED
    float scores[SCORES];
#endif
#if EMBEDS
    float vector[VECTOR_WIDE], next[VECTOR_WIDE];
#endif
#if IMAGES
    float patches[PATCHES * PATCH_WIDE];
#endif
} state;

static void norm_rows(int n, const float *x, const float *weight, const float *bias, float *y)
{
    for (int t = 0; t < n; t++) norm(x + t * DIM_WIDE, weight, bias, y + t * DIM_WIDE);
}
static void add_change(int n)
{
    for (int i = 0; i < n * DIM_WIDE; i++) state.x[i] = state.x[i] + state.change[i];
}

/* Computes the attention's result from x to change. */
static void attention(const struct layer *w, int n, const float *x)
{
    linear(n, DIM, QUERY_WIDE, w->query, w->query_bias, x, state.query);
    linear(n, DIM, KV_WIDE, w->key, w->key_bias, x, state.key);
    linear(n, DIM, KV_WIDE, w->value, w->value_bias, x, state.value);
    for (int h = 0; h < HEADS; h++) {
        for (int t = 0, at = h * HEAD; t < n; t++, at += KV_WIDE)
            store(t, state.key + at, state.value + at, state.keys, state.values);
        attend(n, state.query + h * HEAD, QUERY_WIDE, n, state.keys, state.values, state.attended + h * HEAD);
    }
    linear(n, HEADS * HEAD, DIM_WIDE, w->out, w->out_bias, state.attended, state.change);
}

/* Computes the feed-forward's result from x to change. */
static void feed_forward(const struct layer *w, int n, const float *x)
{
    linear(n, DIM, FF_WIDE, w->up, w->up_bias, x, state.hidden);
    for (int i = 0; i < n * FF_WIDE; i++) state.hidden[i] = ACTIVATION(state.hidden[i]);
    linear(n, FF, DIM_WIDE, w->down, w->down_bias, state.hidden, state.change);
}

/* The hidden states of n rows, in place. */
static void encode_rows(int n)
{
    for (int l = 0; l < LAYERS; l++) {
        const struct layer *w = &layers[l];
#if NORM_FIRST
        norm_rows(n, state.x, w->norm1, w->norm1_bias, state.normed);
        attention(w, n, state.normed);
        add_change(n);
        norm_rows(n, state.x, w->norm2, w->norm2_bias, state.normed);
        feed_forward(w, n, state.normed);
        add_change(n);
#else
        attention(w, n, state.x);
        add_change(n);
        norm_rows(n, state.x, w->norm1, w->norm1_bias, state.x);
        feed_forward(w, n, state.x);
        add_change(n);
        norm_rows(n, state.x, w->norm2, w->norm2_bias, state.x);
#endif
    }
#if FINAL_NORM
    norm_rows(n, state.x, last_norm, last_norm_bias, state.x);
#endif
}
