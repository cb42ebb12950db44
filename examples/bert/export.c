/* export.c — bert export: writes a model as one C file: of bert train, or of bert tune. */
#include "../export/export.h"
#include "../common/weights.h"
#include "bert.h"
#include "tune.h"

static const char *dir, *out, *dtype;

static bool export_any(const tn_model *m)
{
    static const char *const tasks[] = {"classify", "tag", "answer", "choose"};
    if (m->family == TN_MODEL_ENCODER) return export_masked_model(m->bert, m->tokenizer, dir, out);
    if (m->family == TN_MODEL_TUNED)
        return export_tuned_model(m->tuned, m->tokenizer, tune_task_of(tasks[m->tuned->config.task])->length, dir, out);
    return tn_raise_false(TN_EUNSUPPORTED, "'%s': model_type is '%s', expected an encoder", dir, m->type);
}

static int run(int count, char **operands)
{
    (void)count, (void)operands;
    tn_model m = tn_model_open(dir, .needs_tokenizer = true);
    if (m.family && weights_pack(m.module, dtype) && export_any(&m)) printf("%s\n", out);
    tn_model_close(&m);
    return program_end();
}

static const option options[] = {
    OPTION_TEXT("model", 'm', "DIR", &dir, "the model's folder", .required = true),
    EXPORT_OPTION(&out),
    EXPORT_DTYPE(&dtype),
    {0},
};
const command export_command = COMMAND(
    "export", "write a model as one C file", options,
    .text = EXPORT_TEXT "predicts the [MASK] tokens in each line of standard input, as bert fill does; a model of "
                        "bert tune that classifies texts or tags words does what bert classify or bert tag does.\n\n"
                        "  bert export --model book --c book.c\n"
                        "  cc -std=c99 -O2 -march=native -DMODEL_MAIN book.c -lm -o book\n"
                        "  echo \"The old [MASK] went to the sea.\" | ./book");
