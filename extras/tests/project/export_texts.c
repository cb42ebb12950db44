/* export_texts.c — an exported language model with several texts: each has the logits that it has alone. Tokens that it
 * draws have the probabilities of the logits. For export.sh; MODEL_HEADER: the model's header file. */
#include <math.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include MODEL_HEADER

enum { TEXTS = 3, TOKENS = 5, DRAWS = 4000 };
static int wrong;

static int token_of(int text, int i) { return (7 * text + 3 * i + 1) % MODEL_VOCAB; }

static void expect(int good, const char *what)
{
    if (!good) printf("%s\n", what), wrong = 1;
}

static void several_texts(void)
{
    const size_t bytes = (size_t)MODEL_VOCAB * sizeof(float);
    float       *alone[TEXTS];
    void        *text[TEXTS];
    for (int t = 0; t < TEXTS; t++) {
        alone[t] = malloc(bytes), text[t] = calloc(1, model_size());
        model_forget();
        for (int i = 0; i < TOKENS + t; i++) model_read(token_of(t, i));
        memcpy(alone[t], model_logits(), bytes);
    }
    for (int i = 0; i < TOKENS + TEXTS; i++)
        for (int t = 0; t < TEXTS; t++) {
            model_use(text[t]);
            if (i < TOKENS + t) model_read(token_of(t, i));
        }
    for (int t = 0; t < TEXTS; t++) {
        model_use(text[t]);
        expect(!memcmp(alone[t], model_logits(), bytes), "a text among others has other logits");
        free(alone[t]), free(text[t]);
    }
    model_use(NULL);
}

/* The probability of token i with these options, from the definition. */
static double probability(int i, const float *logit, double temperature, int top_k, double top_p)
{
    double all = 0, above = 0;
    int    before = 0;
    for (int k = 0; k < MODEL_VOCAB; k++) {
        int rank = 0;
        for (int m = 0; m < MODEL_VOCAB; m++) rank += logit[m] > logit[k];
        if (rank < top_k) all += exp((logit[k] - logit[i]) / temperature);
        if (rank < top_k && logit[k] > logit[i]) above += exp((logit[k] - logit[i]) / temperature), before++;
    }
    if (before >= top_k || above >= top_p * all) return 0;
    double kept = 0; /* the sum of those that are kept */
    for (int k = 0; k < MODEL_VOCAB; k++) {
        int    rank = 0;
        double likelier = 0;
        for (int m = 0; m < MODEL_VOCAB; m++)
            if (logit[m] > logit[k]) rank++, likelier += exp((logit[m] - logit[i]) / temperature);
        if (rank < top_k && likelier < top_p * all) kept += exp((logit[k] - logit[i]) / temperature);
    }
    return 1 / kept;
}

static void draws(float temperature, int top_k, float top_p)
{
    int     *count = calloc((size_t)MODEL_VOCAB, sizeof *count), best = 0;
    uint32_t seed = 1, same = 9;
    for (int i = 0; i < DRAWS; i++) count[model_sample(temperature, top_k, top_p, &seed)]++;
    const float *logit = model_logits();
    for (int i = 0; i < MODEL_VOCAB; i++) {
        const double p = probability(i, logit, temperature, top_k ? top_k : MODEL_VOCAB, top_p), n = DRAWS * p;
        expect(fabs(count[i] - n) <= 5 * sqrt(n * (1 - p)) + 1e-9, "the number of draws is not that of the logits");
        best = logit[i] > logit[best] ? i : best;
    }
    expect(model_sample(0, 0, 1, &same) == best && same == 9, "temperature 0 is not the most likely token");
    expect(model_sample(temperature, 1, 1, &same) == best, "top_k 1 is not the most likely token");
    free(count);
}

/* A text of the header's sizes is its own again. */
static void spells(void)
{
    static const char text[] = "the sea man went";
    static int        id[MODEL_TOKENS];
    static char       back[MODEL_TEXT];
    const int         n = model_encode(text, sizeof text - 1, id), bytes = model_decode(id, n, back);
    expect(n > 0 && n <= MODEL_RECENT && bytes >= 16 && !memcmp(back + bytes - 16, text, 16), "a text is another one");
}

int main(void)
{
    spells();
    several_texts();
    model_forget();
    for (int i = 0; i < TOKENS; i++) model_read(token_of(0, i));
    draws(1, 0, 1);
    draws(0.5f, 0, 1);
    draws(2, 7, 1);
    draws(1, 0, 0.6f);
    draws(0.8f, 5, 0.7f);
    return wrong;
}
