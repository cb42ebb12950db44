/* info.c — bert info: prints the configuration of a model. */
#include "bert.h"

static const char *dir;

static void print_heads(const tn_bert *m)
{
    const char *const heads[] = {m->head ? "masked tokens" : NULL,
                                 !m->next                      ? NULL
                                 : m->config.kind == TN_ALBERT ? "sentence order"
                                                               : "next sentence",
                                 m->replaced ? "replaced tokens" : NULL, *m->left ? m->left : NULL};
    const char *between = "";
    printf("heads       ");
    for (int i = 0; i < 4; i++)
        if (heads[i]) printf("%s%s%s", between, heads[i], i == 3 ? " (ignored)" : ""), between = ", ";
    printf("%s\n", *between ? "" : "none");
}

static int run(int count, char **operands)
{
    model     m;
    sentences how;
    if (!dir == !count) return program_usage("expected one folder: bert info --model DIR");
    if (sentences_open_as(dir ? dir : operands[0], true, &how, &m)) {
        const tn_bert_config    *c = &m.bert->config;
        static const char *const kinds[] = {"WordPiece", "BPE", "byte-level BPE", "SentencePiece BPE",
                                            "SentencePiece unigram"};
        static const char *const pools[] = {"mean of the tokens", "first token", "maximum of the tokens"};
        printf("kind        %s\n", tn_bert_kind_name(c->kind));
        printf("layers      %lld, %lld heads, width %lld, inner width %lld\n", (long long)c->layers,
               (long long)c->heads, (long long)c->dim, (long long)c->ff);
        printf("parameters  %lld\n", (long long)tn_count(m.bert));
        if (c->kind != TN_XLNET) printf("context     %lld tokens\n", (long long)c->positions);
        else if (c->memory) printf("context     any length, a memory of %lld tokens\n", (long long)c->memory);
        else printf("context     any length\n");
        printf("vocabulary  %lld tokens, %s\n", (long long)c->vocab,
               m.tokens ? kinds[tn_tokenizer_kind_of(m.tokens)] : "no tokenizer");
        print_heads(m.bert);
        printf("norms       %s\n", c->kind == TN_MODERNBERT ? "first"
                                   : c->norm_first          ? "first: RobertaPreLayerNorm in Hugging Face's libraries"
                                                            : "last");
        if (c->window && c->global_every != 1)
            printf("window      less than %lld tokens away, in all layers but every %lldth\n", (long long)c->window,
                   (long long)c->global_every);
        if (c->disentangled.distance > 0)
            printf("positions   relative, up to %lld, %lld buckets%s\n", (long long)c->disentangled.distance,
                   (long long)c->disentangled.buckets, c->mask_decoder ? "; absolute in the mask decoder" : "");
        if (c->embedding != c->dim) printf("embeddings  width %lld\n", (long long)c->embedding);
        if (c->groups) printf("weights     %lld blocks shared by all layers\n", (long long)c->groups);
        if (how.given)
            printf("sentences   %s, at most %lld tokens, width %lld, %s\n", pools[how.pooling], (long long)how.length,
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
const command info_command = COMMAND("info", "show a model's configuration", options, .operands = "[DIR]", .least = 0,
                                     .most = 1, .text = "With --verbose, also lists all parameters.");
