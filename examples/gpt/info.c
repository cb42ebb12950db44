/* info.c — gpt info: prints a model's format, sizes and tokenizer. */
#include "gpt.h"

static const char *tokenizer;

static int run(int count, char **operands)
{
    model m;
    (void)count;
    if (model_open(operands[0], tokenizer, true, &m)) {
        static const char *const kinds[] = {"WordPiece", "byte-pair encoding", "byte-pair encoding of bytes",
                                            "SentencePiece's byte-pair encoding", "SentencePiece's unigrams"};
        const tn_lm_info        *a = &m.about;
        printf("form        %s\nkind        %s\n", m.all.form, a->type ? a->type : "none that others know");
        printf("layers      %lld of %lld heads", (long long)a->layers, (long long)a->heads);
        if (a->kv_heads != a->heads) printf(" and %lld of keys", (long long)a->kv_heads);
        printf(", %lld wide\nparameters  %lld\n", (long long)a->dim, (long long)tn_count(m.net));
        printf("text        at most %lld pieces%s of %lld", (long long)a->positions,
               a->limited ? "" : " in training, and more", (long long)a->vocab);
        if (!m.tokens) printf(", no tokenizer");
        else if ((size_t)tn_tokenizer_kind_of(m.tokens) < sizeof kinds / sizeof *kinds)
            printf(", %s", kinds[tn_tokenizer_kind_of(m.tokens)]);
        printf("\n");
        if (settings.verbose) tn_summary(stdout, m.net);
        model_close(&m);
    }
    return program_end();
}

static const option options[] = {OPTION_TEXT("tokenizer", 0, "PATH", &tokenizer, TOKENIZER_HELP), {0}};
const command info_command = COMMAND("info", "what a model is", options, .operands = "PATH", .least = 1, .most = 1,
                                     .text = "With --verbose, every parameter.");
