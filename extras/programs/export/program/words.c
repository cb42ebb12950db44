/* words.c — part of an exported program: an encoder of tokens, and its head. */

/* ---- tokens ------------------------------------------------------------------------------------------------------ */

/* The hidden states of n tokens: rows of DIM_WIDE numbers. */
const float *model_run(const int *id, int n)
{
    int next = FIRST_POSITION; /* padding does not count */
    for (int t = 0; t < n; t++) {
        const int padding = FIRST_POSITION && id[t] == FIRST_POSITION - 1, at = padding ? id[t] : next++;
        for (int i = 0; i < DIM; i++)
#if SEGMENTS
            state.x[t * DIM_WIDE + i] = embedded(id[t], i) + (position[at * DIM + i] + segment[i]);
#else
            state.x[t * DIM_WIDE + i] = embedded(id[t], i) + position[at * DIM + i];
#endif
    }
    norm_rows(n, state.x, first_norm, first_norm_bias, state.x);
    encode_rows(n);
    return state.x;
}
#if FILLS

/* The probabilities of all tokens at token t of the text that model_run has read, [VOCAB]. */
const float *model_fill(int t)
{
    linear(1, DIM, DIM_WIDE, head, head_bias, state.x + t * DIM_WIDE, state.change);
    for (int i = 0; i < DIM; i++) state.change[i] = HEAD_ACTIVATION(state.change[i]);
    norm(state.change, head_norm, head_norm_bias, state.normed);
    linear(1, DIM, VOCAB_WIDE, output, output_bias, state.normed, state.scores);
    softmax(VOCAB, state.scores);
    return state.scores;
}
#endif
#if CLASSIFIES

/* The scores of the text that model_run has read, [CLASSES]. */
const float *model_classify(void)
{
    linear(1, DIM, DIM_WIDE, head, head_bias, state.x, state.change);
    for (int i = 0; i < DIM; i++) state.change[i] = HEAD_ACTIVATION(state.change[i]);
    linear(1, DIM, CLASSES_WIDE, classifier, classifier_bias, state.change, state.scores);
    return state.scores;
}
#endif
#if TAGS

/* The scores of the n tokens that model_run has read: rows of CLASSES_WIDE numbers, of which CLASSES count. */
const float *model_tag(int n)
{
    linear(n, DIM, CLASSES_WIDE, classifier, classifier_bias, state.x, state.scores);
    return state.scores;
}
#endif
#if EMBEDS

/* Scales n numbers to a vector of length 1. */
static void scale_to_one(int n, float *x)
{
    double squares[16] = {0};
    for (int i = 0; i < n; i++) squares[i % 16] += (double)x[i] * (double)x[i];
    const float length = (float)sqrt(total(squares)), most = length > 1e-12f ? length : 1e-12f;
    for (int i = 0; i < n; i++) x[i] = x[i] / most;
}

/* The vector of the text of n tokens that model_run has read, [VECTOR]. */
const float *model_embed(int n)
{
    float *v = state.vector;
    for (int i = 0; i < DIM; i++) {
        const float *x = state.x + i;
#if MEAN
        double lane[16] = {0};
        for (int t = 0; t < n; t++) lane[t % 16] += (double)x[t * DIM_WIDE];
        v[i] = (float)total(lane) / (float)n;
#else
        v[i] = x[0];
#endif
#if MAXIMUM
        for (int t = 1; t < n; t++) v[i] = x[t * DIM_WIDE] > v[i] ? x[t * DIM_WIDE] : v[i];
#endif
    }
    (void)n; /* the vector may be that of the first token */
    FINISH_VECTOR(v, state.next)
    return v;
}
#endif
