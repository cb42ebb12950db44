/* export.c — gpt export: writes a model as one C file. */
#include "../export/export.h"
#include "gpt.h"

static const char *dir, *tokenizer, *out;

static int run(int count, char **operands)
{
    model m;
    (void)count, (void)operands;
    if (model_open(dir, tokenizer, false, &m)) {
        if (export_language_model(&m.all, model_first(&m), dir, out)) printf("%s\n", out);
        model_close(&m);
    }
    return program_end();
}

static const option options[] = {
    OPTION_TEXT("model", 'm', "PATH", &dir, MODEL_HELP, .required = true),
    OPTION_TEXT("tokenizer", 0, "PATH", &tokenizer, TOKENIZER_HELP),
    EXPORT_OPTION(&out),
    {0},
};
const command export_command = COMMAND(
    "export", "write a model as one C file", options,
    .text = "The C99 file holds the weights in f32, the tokenizer and the code of the model: no other files, no "
            "library except libm, no malloc. Its results have the bits of Tenon's. With -DMODEL_MAIN it is a "
            "program that continues the text on standard input, as gpt write --temperature 0 does.\n\n"
            "  gpt export --model book --c book.c\n"
            "  cc -std=c99 -O2 -mfma -DMODEL_MAIN book.c -lm -o book\n"
            "  echo \"The old man\" | ./book");
