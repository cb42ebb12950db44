/* decoder.c — part of an exported program: a decoder: reads a token, computes the logits of the next. */

/* ---- the model ------------------------------------------------------------------------------------------------------
 *
 * Rows of numbers, and the outputs of a matrix, are padded to a multiple of 16. */

static const struct layer { /* an absent bias is NULL */
    const float *norm1, *norm1_bias;
    const float *query, *query_bias, *key, *key_bias, *value, *value_bias, *out, *out_bias;
    const float *norm2, *norm2_bias;
    const float *gate, *gate_bias, *up, *up_bias, *down, *down_bias;
} layers[LAYERS]; /* this and other constants: see the end of the file */

/* Everything that changes with the text: the cache of keys and values, and the numbers of the current token. */
static struct text {
    int         length; /* tokens read */
    key_block   key[LAYERS][KV_HEADS][LENGTH_WIDE / KEYS];
    value_block value[LAYERS][KV_HEADS][LENGTH_WIDE / KEYS];
    float       x[DIM_WIDE], normed[DIM_WIDE], change[DIM_WIDE]; /* the residual stream; after a norm; to be added */
    float       query[QUERY_WIDE], key_now[KV_WIDE], value_now[KV_WIDE], attended[QUERY_WIDE];
    float       hidden[FF_WIDE];
#if GATED
    float gate[FF_WIDE];
#endif
    float logits[VOCAB_WIDE], likely[VOCAB_WIDE]; /* likely: of model_sample, relative to the best token */
} own, *state = &own;

#if ROTARY
/* Rotates pairs of elements of each head by angles that grow with the position. */
static void rotate(int heads, int at, float *x)
{
    for (int i = 0; i < ROTARY_PAIRS; i++) {
        const float c = angles[(2 * at) * ROTARY_PAIRS + i], s = angles[(2 * at + 1) * ROTARY_PAIRS + i];
        for (int h = 0; h < heads; h++) {
            float      *first = x + h * HEAD + i * ROTARY_STEP, *second = first + ROTARY_APART;
            const float a = *first, b = *second;
            *first = a * c - b * s, *second = b * c + a * s;
        }
    }
}

#endif
/* Adds the attention's result to x. */
static void attention(const struct layer *w, int at, int l)
{
    linear(1, DIM, QUERY_WIDE, w->query, w->query_bias, state->normed, state->query);
    linear(1, DIM, KV_WIDE, w->key, w->key_bias, state->normed, state->key_now);
    linear(1, DIM, KV_WIDE, w->value, w->value_bias, state->normed, state->value_now);
#if ROTARY
    rotate(HEADS, at, state->query);
    rotate(KV_HEADS, at, state->key_now);
#endif
    for (int h = 0; h < KV_HEADS; h++) { /* HEADS / KV_HEADS heads of queries share keys and values */
        const int q = h * (HEADS / KV_HEADS) * HEAD;
        store(at, state->key_now + h * HEAD, state->value_now + h * HEAD, state->key[l][h], state->value[l][h]);
        attend(HEADS / KV_HEADS, state->query + q, HEAD, at + 1, state->key[l][h], state->value[l][h],
               state->attended + q);
    }
    linear(1, HEADS * HEAD, DIM_WIDE, w->out, w->out_bias, state->attended, state->change);
    for (int i = 0; i < DIM; i++) state->x[i] = state->x[i] + state->change[i];
}

/* Adds the feed-forward's result to x. */
static void feed_forward(const struct layer *w)
{
#if GATED
    linear(1, DIM, FF_WIDE, w->gate, w->gate_bias, state->normed, state->gate);
    linear(1, DIM, FF_WIDE, w->up, w->up_bias, state->normed, state->hidden);
    for (int i = 0; i < FF; i++) state->hidden[i] = ACTIVATION(state->gate[i]) * state->hidden[i];
#else
    linear(1, DIM, FF_WIDE, w->up, w->up_bias, state->normed, state->hidden);
    for (int i = 0; i < FF; i++) state->hidden[i] = ACTIVATION(state->hidden[i]);
#endif
    linear(1, FF, DIM_WIDE, w->down, w->down_bias, state->hidden, state->change);
    for (int i = 0; i < DIM; i++) state->x[i] = state->x[i] + state->change[i];
}

/* Reads a token: adds its keys and values to the cache. */
void model_read(int token)
{
    const int at = state->length++;
    for (int i = 0; i < DIM; i++) state->x[i] = embedded(token, i);
#if POSITIONS
    for (int i = 0; i < DIM; i++) state->x[i] = state->x[i] + position[at * DIM + i];
#endif
    for (int l = 0; l < LAYERS; l++) {
        norm(state->x, layers[l].norm1, layers[l].norm1_bias, state->normed);
        attention(&layers[l], at, l);
        norm(state->x, layers[l].norm2, layers[l].norm2_bias, state->normed);
        feed_forward(&layers[l]);
    }
}

/* The logits of the next token, [VOCAB]. */
const float *model_logits(void)
{
    norm(state->x, last_norm, LAST_NORM_BIAS, state->normed);
    linear(1, DIM, VOCAB_WIDE, output, OUTPUT_BIAS, state->normed, state->logits);
    return state->logits;
}

void model_forget(void) { state->length = 0; }

/* Several texts: each needs model_size() bytes, which are zeros at its start. model_use chooses the text that the other
 * functions continue; NULL: that of this file. */
size_t model_size(void) { return sizeof own; }
void   model_use(void *text) { state = text ? (struct text *)text : &own; }
