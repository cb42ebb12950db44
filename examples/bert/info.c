/* info.c — bert info: what a model's folder holds. */
#include "bert.h"

static int run(int count, char **operands)
{
    model m;
    (void)count;
    if (model_open(operands[0], &m)) {
        const tn_bert_config    *c = &m.bert->config;
        static const char *const kinds[] = {"WordPiece", "byte-pair encoding", "byte-pair encoding of bytes"};
        printf("layers      %lld of %lld heads, %lld wide, %lld inside\n", (long long)c->layers, (long long)c->heads,
               (long long)c->dim, (long long)c->ff);
        printf("parameters  %lld\n", (long long)tn_count(m.bert));
        printf("text        at most %lld pieces of %lld, %s\n", (long long)c->positions, (long long)c->vocab,
               kinds[tn_tokenizer_kind_of(m.tokens)]);
        printf("heads       %s%s%s\n", m.bert->head ? "hidden words" : "", m.bert->head && m.bert->next ? ", " : "",
               m.bert->next   ? "next sentence"
               : m.bert->head ? ""
                              : "none");
        printf("norms       %s\n", c->norm_first ? "first: RobertaPreLayerNorm in Hugging Face's libraries" : "last");
        if (settings.verbose) tn_summary(stdout, m.bert);
        model_close(&m);
    }
    return program_end();
}

const command info_command = COMMAND("info", "what a model's folder holds", NULL, .operands = "DIR", .least = 1,
                                     .most = 1, .text = "With --verbose, every parameter.");
