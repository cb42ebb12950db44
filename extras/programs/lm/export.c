/* export.c — lm export: writes a model as one C file. */
#include "../export/export.h"
#include "lm.h"

static const char *dir, *out;

static int run(int count, char **operands)
{
    model      m;
    tn_rnn_lm *lm;
    (void)count, (void)operands;
    if (recurrent_open(dir, &m, &lm)) {
        if (export_recurrent_model(&m.all, dir, out)) printf("%s\n", out);
        model_close(&m);
    }
    return program_end();
}

static const option options[] = {
    OPTION_TEXT("model", 'm', "DIR", &dir, "the model's folder", .required = true),
    EXPORT_OPTION(&out),
    {0},
};
const command export_command =
    COMMAND("export", "write a model as one C file", options,
            .text = EXPORT_TEXT "continues the text on standard input, as lm write --temperature 0 does.\n\n"
                                "  lm export --model book --c book.c\n"
                                "  cc -std=c99 -O2 -march=native -DMODEL_MAIN book.c -lm -o book\n"
                                "  echo \"The old man\" | ./book");
