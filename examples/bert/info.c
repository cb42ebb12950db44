/* info.c — bert info: prints the configuration of a model. */
#include "bert.h"

static const char *dir;

static void print_heads(const tn_bert *m)
{
    const char *const heads[] = {m->head ? "hidden words" : NULL,
                                 !m->next                      ? NULL
                                 : m->config.kind == TN_ALBERT ? "order of two texts"
                                                               : "next sentence",
                                 m->replaced ? "replaced words" : NULL, *m->left ? m->left : NULL};
    const char *between = "";
    printf("heads       ");
    for (int i = 0; i < 4; i++)
        if (heads[i]) printf("%s%s%s", between, heads[i], i == 3 ? " (not used here)" : ""), between = ", ";
    printf("%s\n", *between ? "" : "none");
}

static int run(int count, char **operands)
{
    model     m;
    sentences how;
    if (!dir == !count) return program_usage("one folder is needed: bert info --model DIR");
    if (sentences_open(dir ? dir : operands[0], &how, &m)) {
        const tn_bert_config    *c = &m.bert->config;
        static const char *const kinds[] = {"WordPiece", "byte-pair encoding", "byte-pair encoding of bytes",
                                            "SentencePiece's byte-pair encoding", "SentencePiece's Unigram"};
        static const char *const pools[] = {"mean of the pieces", "the first piece", "largest of the pieces"};
        printf("kind        %s\n", tn_bert_kind_name(c->kind));
        printf("layers      %lld of %lld heads, %lld wide, %lld inside\n", (long long)c->layers, (long long)c->heads,
               (long long)c->dim, (long long)c->ff);
        printf("parameters  %lld\n", (long long)tn_count(m.bert));
        printf("text        at most %lld pieces of %lld, %s\n", (long long)c->positions, (long long)c->vocab,
               kinds[tn_tokenizer_kind_of(m.tokens)]);
        print_heads(m.bert);
        printf("norms       %s\n", c->norm_first ? "first: RobertaPreLayerNorm in Hugging Face's libraries" : "last");
        if (c->embedding != c->dim) printf("embeddings  %lld wide\n", (long long)c->embedding);
        if (c->groups) printf("weights     %lld blocks for all layers\n", (long long)c->groups);
        if (how.given)
            printf("sentences   %s, at most %lld, vectors of %lld, %s\n", pools[how.pooling], (long long)how.length,
                   (long long)how.dim, !how.steps || how.step[how.steps - 1].dense ? "of any length" : "of length 1");
        if (settings.verbose) tn_summary(stdout, m.bert);
        sentences_close(&how, &m);
    }
    return program_end();
}

static const option options[] = {
    OPTION_TEXT("model", 'm', "DIR", &dir, "the model's folder"),
    {0},
};
const command info_command = COMMAND("info", "what a model's folder holds", options, .operands = "[DIR]", .least = 0,
                                     .most = 1, .text = "With --verbose, every parameter.");
