/* info.c — translate info: prints a model's configuration. */
#include "translate.h"

#include <string.h>

/* Multiply-adds with weights for a target token, if the source has as many tokens: an element of a matrix is used once
 * per token, except in tables of embeddings and positions, read by row. Scores of attention are not counted. */
static double multiply_adds(tn_seq2seq *m)
{
    double n = (double)tn_numel(m->out);
    for (tn_each p = tn_parameters(m); tn_next(&p);)
        if (tn_ndim(p.tensor) == 2 && tn_size(p.tensor, 1) > 1 && p.tensor != m->source->weight &&
            p.tensor != m->target->weight && p.tensor != m->out && !strstr(p.name, "positions."))
            n += (double)tn_numel(p.tensor);
    return n;
}

static int run(int count, char **operands)
{
    model m;
    (void)count;
    if (!model_open(operands[0], &m)) return program_end();
    const tn_seq2seq_config *c = &m.net->config;
    const bool               transformer = c->kind == TN_SEQ2SEQ_TRANSFORMER;
    const bool               gnmt = c->kind == TN_SEQ2SEQ_GNMT;
    printf("kind        %s", tn_seq2seq_kind_name(c->kind));
    if (c->type) printf(" (%s)", c->type);
    printf("\nlayers      %lld of the encoder, %lld of the decoder", (long long)c->layers,
           (long long)(c->decoder_layers ? c->decoder_layers : c->layers));
    if (transformer) printf(", %lld heads", (long long)c->heads);
    printf(", width %lld", (long long)c->dim);
    if (transformer) printf(", inner width %lld\nnorms       %s", (long long)c->ff, c->norm_first ? "first" : "last");
    else if (c->kernel)
        printf("\nwindows     %lld tokens in the encoder, %lld in the decoder", (long long)c->kernel,
               (long long)c->decoder_kernel);
    else
        printf("\ncells       %s, the encoder%s reads %s", gnmt || c->lstm ? "LSTM" : "GRU",
               gnmt ? "'s first layer" : "", c->one_way && !gnmt ? "forwards" : "both ways");
    printf("\nparameters  %lld\n", (long long)tn_count(m.net));
    printf("arithmetic  %.2f million multiply-adds with weights per target token\n", multiply_adds(m.net) / 1e6);
    if (transformer || m.net->positions) printf("context     %lld tokens\n", (long long)c->positions);
    printf("vocabulary  %lld tokens of the source%s, %lld of the target\n", (long long)c->source_words,
           c->shared ? " and the target, shared" : "",
           (long long)(c->target_words ? c->target_words : c->source_words));
    if (settings.verbose) tn_summary(stdout, m.net);
    model_close(&m);
    return program_end();
}

const command info_command = COMMAND("info", "show a model's configuration", NULL, .operands = "DIR", .least = 1,
                                     .most = 1, .text = "With --verbose, also lists all parameters.");
