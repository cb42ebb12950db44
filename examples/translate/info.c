/* info.c — translate info: prints a model's configuration. */
#include "translate.h"

static int run(int count, char **operands)
{
    model m;
    (void)count;
    if (!model_open(operands[0], &m)) return program_end();
    const tn_seq2seq_config *c = &m.net->config;
    const bool               transformer = c->kind == TN_SEQ2SEQ_TRANSFORMER;
    printf("kind        %s", tn_seq2seq_kind_name(c->kind));
    if (c->type) printf(" (%s)", c->type);
    printf("\nlayers      %lld of the encoder, %lld of the decoder", (long long)c->layers,
           (long long)(c->decoder_layers ? c->decoder_layers : c->layers));
    if (transformer) printf(", %lld heads", (long long)c->heads);
    printf(", width %lld", (long long)c->dim);
    if (transformer) printf(", inner width %lld\nnorms       %s", (long long)c->ff, c->norm_first ? "first" : "last");
    else
        printf("\ncells       %s, the encoder reads %s", c->lstm ? "LSTM" : "GRU",
               c->one_way ? "forwards" : "both ways");
    printf("\nparameters  %lld\n", (long long)tn_count(m.net));
    if (transformer) printf("context     %lld tokens\n", (long long)c->positions);
    printf("vocabulary  %lld tokens of the source%s, %lld of the target\n", (long long)c->source_words,
           c->shared ? " and the target, shared" : "",
           (long long)(c->target_words ? c->target_words : c->source_words));
    if (settings.verbose) tn_summary(stdout, m.net);
    model_close(&m);
    return program_end();
}

const command info_command = COMMAND("info", "show a model's configuration", NULL, .operands = "DIR", .least = 1,
                                     .most = 1, .text = "With --verbose, also lists all parameters.");
