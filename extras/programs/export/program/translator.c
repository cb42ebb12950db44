/* translator.c — part of an exported program: reads a text with the encoder; a decoder writes another one. */

/* ---- the decoder ------------------------------------------------------------------------------------------------- */

static const struct step { /* a layer: own.norm2 is that of the attention to the text, norm3 of the feed-forward */
    struct layer own;
    const float *cross_query, *cross_query_bias, *cross_key, *cross_key_bias, *cross_value, *cross_value_bias;
    const float *cross_out, *cross_out_bias, *norm3, *norm3_bias;
} steps[STEPS];

typedef key_block   key_rows[LENGTH_WIDE / KEYS];
typedef value_block value_rows[LENGTH_WIDE / KEYS];

/* The cache of keys and values, of tokens and of the text. The current token is row 0 of `state`. */
static struct {
    int        length, source; /* tokens read; of the text */
    key_rows   key[STEPS][HEADS], source_key[STEPS][HEADS];
    value_rows value[STEPS][HEADS], source_value[STEPS][HEADS];
    float      logits[VOCAB_WIDE];
} decoder;

static void embed(int row, int token, int at)
{
    for (int i = 0; i < DIM; i++)
        state.x[row * DIM_WIDE + i] = embedded(token, i) * EMBEDDING_SCALE + position[at * DIM + i];
}

/* Stores n keys and values as those from number `at` on. */
static void store_heads(int n, int at, key_rows *key, value_rows *value)
{
    for (int t = 0; t < n; t++)
        for (int h = 0, from = t * KV_WIDE; h < HEADS; h++, from += HEAD)
            store(at + t, state.key + from, state.value + from, key[h], value[h]);
}

/* Computes the result of the heads over n keys, from state.query to change. */
static void attend_heads(int n, key_rows *key, value_rows *value, const float *out, const float *out_bias)
{
    for (int h = 0; h < HEADS; h++)
        attend(1, state.query + h * HEAD, HEAD, n, key[h], value[h], state.attended + h * HEAD);
    linear(1, HEADS * HEAD, DIM_WIDE, out, out_bias, state.attended, state.change);
}

/* Reads a text of n tokens, and forgets what was written. */
void model_run(const int *id, int n)
{
    for (int t = 0; t < n; t++) embed(t, id[t], t);
    encode_rows(n);
    for (int l = 0; l < STEPS; l++) {
        linear(n, DIM, KV_WIDE, steps[l].cross_key, steps[l].cross_key_bias, state.x, state.key);
        linear(n, DIM, KV_WIDE, steps[l].cross_value, steps[l].cross_value_bias, state.x, state.value);
        store_heads(n, 0, decoder.source_key[l], decoder.source_value[l]);
    }
    decoder.source = n, decoder.length = 0;
}

static void look_back(const struct layer *w, int l, int at, const float *x)
{
    linear(1, DIM, QUERY_WIDE, w->query, w->query_bias, x, state.query);
    linear(1, DIM, KV_WIDE, w->key, w->key_bias, x, state.key);
    linear(1, DIM, KV_WIDE, w->value, w->value_bias, x, state.value);
    store_heads(1, at, decoder.key[l], decoder.value[l]);
    attend_heads(at + 1, decoder.key[l], decoder.value[l], w->out, w->out_bias);
}
static void look_at_text(const struct step *w, int l, const float *x)
{
    linear(1, DIM, QUERY_WIDE, w->cross_query, w->cross_query_bias, x, state.query);
    attend_heads(decoder.source, decoder.source_key[l], decoder.source_value[l], w->cross_out, w->cross_out_bias);
}

/* Reads a token of the translation, the first of which is BEGIN. */
void model_read(int token)
{
    const int at = decoder.length++;
    embed(0, token, at);
    for (int l = 0; l < STEPS; l++) {
        const struct step *w = &steps[l];
#if NORM_FIRST
        norm_rows(1, state.x, w->own.norm1, w->own.norm1_bias, state.normed);
        look_back(&w->own, l, at, state.normed);
        add_change(1);
        norm_rows(1, state.x, w->own.norm2, w->own.norm2_bias, state.normed);
        look_at_text(w, l, state.normed);
        add_change(1);
        norm_rows(1, state.x, w->norm3, w->norm3_bias, state.normed);
        feed_forward(&w->own, 1, state.normed);
        add_change(1);
#else
        look_back(&w->own, l, at, state.x);
        add_change(1);
        norm_rows(1, state.x, w->own.norm1, w->own.norm1_bias, state.x);
        look_at_text(w, l, state.x);
        add_change(1);
        norm_rows(1, state.x, w->own.norm2, w->own.norm2_bias, state.x);
        feed_forward(&w->own, 1, state.x);
        add_change(1);
        norm_rows(1, state.x, w->norm3, w->norm3_bias, state.x);
#endif
    }
#if FINAL_NORM
    norm_rows(1, state.x, written_norm, written_norm_bias, state.x);
#endif
}

/* The logits of the next token, [VOCAB]. */
const float *model_logits(void)
{
    linear(1, DIM, VOCAB_WIDE, output, OUTPUT_BIAS, state.x, decoder.logits);
    return decoder.logits;
}
