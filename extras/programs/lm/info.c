/* info.c — lm info: prints a model's configuration. */
#include "lm.h"

static int run(int count, char **operands)
{
    model      m;
    tn_rnn_lm *lm;
    (void)count;
    if (!recurrent_open(operands[0], &m, &lm)) return program_end();
    const tn_rnn_lm_config *c = &lm->config;
    printf("cell        %s\nlayers      %lld, hidden size %lld, embedding size %lld\nparameters  %lld\n", c->cell,
           (long long)c->layers, (long long)c->hidden, (long long)c->dim, (long long)tn_count(m.net));
    printf("vocabulary  %lld %s\n", (long long)c->vocab, texts_are_words(m.tokens) ? "words" : "tokens");
    if (c->cutoffs[0]) {
        printf("softmax     adaptive, clusters start at");
        for (int i = 0; i < TN_CUTOFFS && c->cutoffs[i]; i++) printf(" %lld", (long long)c->cutoffs[i]);
        printf("\n");
    } else {
        printf("softmax     %s\n", c->untied ? "weights of its own" : "tied to the embeddings");
    }
    printf("dropout     %g of embeddings, %g between layers, %g of outputs, %g of words, %g of recurrent weights%s\n",
           c->dropout_in, c->dropout_between, c->dropout, c->dropout_words, c->weight_drop,
           c->unlocked ? "; a new mask in each step" : "");
    if (settings.verbose) tn_summary(stdout, m.net);
    model_close(&m);
    return program_end();
}

static const option options[] = {{0}};
const command info_command = COMMAND("info", "show a model's configuration", options, .operands = "DIR", .least = 1,
                                     .most = 1, .text = "With --verbose, also lists all parameters.");
