/* sample.c — part of an exported program: draws the next token. */

/* The number of likelihoods of at least `least`, and their sum. */
static int count_from(const float *likely, float least, double *sum)
{
    int n = 0;
    *sum = 0;
    for (int i = 0; i < VOCAB; i++)
        if (likely[i] >= least) n++, *sum += (double)likely[i];
    return n;
}

/* The greatest bound that at least n likelihoods reach, and whose sum reaches `part`. It is found bit by bit: positive
 * numbers have the order of their bits. */
static float bound_of(const float *likely, int n, double part)
{
    union {
        uint32_t bits;
        float    value;
    } bound = {0}, more;
    for (int i = 30; i >= 0; i--) {
        double sum;
        more.bits = bound.bits | (uint32_t)1 << i;
        if (more.bits <= 0x3f800000 && count_from(likely, more.value, &sum) >= n && sum >= part) bound = more;
    }
    return bound.value;
}

/* Draws the next token: among the top_k most likely ones (0: all), and of these among the fewest whose probabilities
 * reach top_p (1: all). temperature divides the logits; 0: the most likely token. *seed, any number, is changed. */
int model_sample(float temperature, int top_k, float top_p, uint32_t *seed)
{
    float       *likely = state->likely;
    const float *logit = model_logits();
    int          best = 0, last = 0;
    double       sum, at = 0;
    for (int i = 1; i < VOCAB; i++) best = logit[i] > logit[best] ? i : best;
    if (!(temperature > 0) || top_k == 1) return best;
    for (int i = 0; i < VOCAB; i++) likely[i] = (float)exp((double)(logit[i] - logit[best]) / (double)temperature);
    const float of_k = top_k > 0 && top_k < VOCAB ? bound_of(likely, top_k, 0) : 0;
    for (int i = 0; i < VOCAB; i++) likely[i] = likely[i] < of_k ? 0 : likely[i];
    count_from(likely, 0, &sum);
    const float least = top_p < 1 ? bound_of(likely, 1, (double)top_p * sum) : 0;
    count_from(likely, least, &sum);
    *seed = *seed * 1664525u + 1013904223u;
    uint32_t u = *seed; /* an LCG's lower bits repeat: mix them */
    u = (u ^ u >> 16) * 0x45d9f3bu, u = (u ^ u >> 16) * 0x45d9f3bu, u ^= u >> 16;
    for (int i = 0; i < VOCAB; i++) {
        if (likely[i] < least || likely[i] <= 0) continue;
        last = i, at += (double)likely[i];
        if (at > (double)u / 4294967296.0 * sum) break;
    }
    return last;
}
