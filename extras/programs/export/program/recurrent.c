/* recurrent.c — part of an exported program: a recurrent network: reads a token, computes the logits of the next. */

/* ---- the model ------------------------------------------------------------------------------------------------------
 *
 * Rows of numbers, and the outputs of a matrix, are padded to a multiple of 16. */

static const struct layer {
    int          in, width, wide; /* of the input; of the state; of the sums of all gates, rounded up */
    const float *input, *input_bias, *before, *before_bias; /* for the input and for the state before; bias: or NULL */
} layers[LAYERS];                                           /* this and other constants: see the end of the file */

/* Everything that changes with the text: the states of the layers, and the numbers of the current token. */
static struct text {
    float h[LAYERS][WIDE];
#if LSTM
    float c[LAYERS][WIDE];
#endif
    float x[WIDE], sums[SUMS], products[SUMS];    /* of a layer: from its input, from its state */
    float logits[VOCAB_WIDE], likely[VOCAB_WIDE]; /* likely: of model_sample */
} own, *state = &own;

/* The next states of a layer of n units. */
#if LSTM
static void step(int n, int l)
{
    float *const x = state->sums, *const c = state->c[l];
    for (int k = 0; k < 4 * n; k++) x[k] = state->products[k] + x[k];
    for (int k = 0; k < n; k++) {
        const float in = sigmoid(x[k]), keep = sigmoid(x[n + k]), new = tanh_of(x[2 * n + k]);
        c[k] = keep * c[k] + in * new;
        state->h[l][k] = tanh_of(c[k]) * sigmoid(x[3 * n + k]);
    }
}
#endif
#if GRU
static void step(int n, int l)
{
    const float *const x = state->sums, *const s = state->products;
    float *const h = state->h[l];
    for (int k = 0; k < n; k++) {
        const float reset = sigmoid(s[k] + x[k]), keep = sigmoid(s[n + k] + x[n + k]);
        const float new = tanh_of(x[2 * n + k] + reset * s[2 * n + k]);
        h[k] = new + keep *(h[k] - new);
    }
}
#endif
#if ELMAN
static void step(int n, int l)
{
    for (int k = 0; k < n; k++) state->h[l][k] = tanh_of(state->products[k] + state->sums[k]);
}
#endif

/* Reads a token: updates the states. */
void model_read(int token)
{
    const float *x = state->x;
    for (int i = 0; i < DIM; i++) state->x[i] = embedded(token, i);
    for (int l = 0; l < LAYERS; x = state->h[l++]) {
        const struct layer *w = &layers[l];
        linear_float(1, w->in, w->wide, w->input, w->input_bias, x, state->sums);
        linear_float(1, w->width, w->wide, w->before, w->before_bias, state->h[l], state->products);
        step(w->width, l);
    }
}

/* The logits of the next token, [VOCAB]. */
const float *model_logits(void)
{
    linear(1, layers[LAYERS - 1].width, VOCAB_WIDE, output, output_bias, state->h[LAYERS - 1], state->logits);
    return state->logits;
}

void model_forget(void)
{
    for (int l = 0; l < LAYERS; l++)
        for (int k = 0; k < WIDE; k++) {
            state->h[l][k] = 0;
#if LSTM
            state->c[l][k] = 0;
#endif
        }
}

/* Several texts: each needs model_size() bytes, which are zeros at its start. model_use chooses the text that the other
 * functions continue; NULL: that of this file. */
size_t model_size(void) { return sizeof own; }
void   model_use(void *text) { state = text ? (struct text *)text : &own; }
