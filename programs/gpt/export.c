/* export.c — gpt export: writes a model as one C file. */
#include "extras/programs/export/export.h"
#include "../common/weights.h"
#include "gpt.h"

static const char *dir, *tokenizer, *out, *dtype;

static int run(int count, char **operands)
{
    model m;
    (void)count, (void)operands;
    if (model_open(dir, tokenizer, false, &m)) {
        if (weights_pack(m.net, dtype) && export_language_model(&m.all, model_first(&m), dir, out)) printf("%s\n", out);
        model_close(&m);
    }
    return program_end();
}

static const option options[] = {
    OPTION_TEXT("model", 'm', "PATH", &dir, MODEL_HELP, .required = true),
    OPTION_TEXT("tokenizer", 0, "PATH", &tokenizer, TOKENIZER_HELP),
    EXPORT_OPTION(&out),
    EXPORT_DTYPE(&dtype),
    {0},
};
const command export_command =
    COMMAND("export", "write a model as one C file", options,
            .text = EXPORT_TEXT "continues the text on standard input, as gpt write --temperature 0 does.\n\n"
                                "  gpt export --model book --c book.c\n"
                                "  cc -std=c99 -O2 -march=native -DMODEL_MAIN book.c -lm -o book\n"
                                "  echo \"The old man\" | ./book");
