/* export.c — bert export: writes a model as one C file. */
#include "../export/export.h"
#include "bert.h"

static const char *dir, *out;

static int run(int count, char **operands)
{
    model m;
    (void)count, (void)operands;
    if (model_open(dir, &m)) {
        if (export_masked_model(m.bert, m.tokens, dir, out)) printf("%s\n", out);
        model_close(&m);
    }
    return program_end();
}

static const option options[] = {
    OPTION_TEXT("model", 'm', "DIR", &dir, "the model's folder", .required = true),
    EXPORT_OPTION(&out),
    {0},
};
const command export_command = COMMAND(
    "export", "write a model as one C file", options,
    .text = "The C99 file holds the weights in f32, the tokenizer and the code of the model: no other files, no "
            "library except libm, no malloc. Its results have the bits of Tenon's. With -DMODEL_MAIN it is a "
            "program that predicts the [MASK] tokens in each line of standard input, as bert fill does.\n\n"
            "  bert export --model book --c book.c\n"
            "  cc -std=c99 -O2 -mfma -DMODEL_MAIN book.c -lm -o book\n"
            "  echo \"The old [MASK] went to the sea.\" | ./book");
