/* export.c — translate export: writes a model as one C file. */
#include "extras/programs/export/export.h"
#include "../common/weights.h"
#include "translate.h"

static const char *model_dir, *out, *dtype;

static int run(int count, char **operands)
{
    model m;
    (void)count, (void)operands;
    if (model_open(model_dir, &m)) {
        if (weights_pack(m.net, dtype) && export_translator(m.net, m.tokens, model_dir, out)) printf("%s\n", out);
        model_close(&m);
    }
    return program_end();
}

static const option options[] = {
    OPTION_TEXT("model", 'm', "DIR", &model_dir, "folder of the model", .required = true),
    EXPORT_OPTION(&out),
    EXPORT_DTYPE(&dtype),
    {0},
};
const command export_command = COMMAND(
    "export", "write a model as one C file", options,
    .text = EXPORT_TEXT "translates the lines of standard input, as translate run --beam 1 does. The model must be a "
                        "Transformer of translate train.\n\n"
                        "  translate export --model ende --c ende.c\n"
                        "  cc -std=c99 -O2 -march=native -DMODEL_MAIN ende.c -lm -o ende\n"
                        "  ./ende < test.en > test.out");
