/* info.c — gpt info: prints a model's format, sizes and tokenizer. */
#include "gpt.h"

static const char *tokenizer;

static int run(int count, char **operands)
{
    model m;
    (void)count;
    if (model_open(operands[0], tokenizer, true, &m)) {
        static const char *const kinds[] = {"WordPiece", "BPE", "byte-level BPE", "SentencePiece BPE",
                                            "SentencePiece unigram"};
        const tn_lm_info        *a = &m.about;
        printf("format      %s\nkind        %s\n", m.all.form, a->type ? a->type : "custom");
        printf("layers      %lld, %lld heads", (long long)a->layers, (long long)a->heads);
        if (a->kv_heads != a->heads) printf(" (%lld of keys and values)", (long long)a->kv_heads);
        printf(", width %lld\nparameters  %lld\n", (long long)a->dim, (long long)tn_count(m.net));
        printf("context     %lld tokens%s\nvocabulary  %lld tokens", (long long)a->positions,
               a->limited ? "" : " in training; longer texts are possible", (long long)a->vocab);
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
const command info_command = COMMAND("info", "show a model's format, size and tokenizer", options, .operands = "PATH",
                                     .least = 1, .most = 1, .text = "With --verbose, also lists all parameters.");
