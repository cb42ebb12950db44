/* export.c — bert export: writes a model as one C file: of bert train, of bert tune, or of texts' vectors. */
#include "extras/programs/export/export.h"
#include "../common/files.h"
#include "../common/weights.h"
#include "bert.h"
#include "tune.h"

static const char *dir, *out, *dtype;
static bool        embeds;

static bool export_any(const tn_model *m)
{
    static const char *const tasks[] = {"classify", "tag", "answer", "choose"};
    if (m->family == TN_MODEL_ENCODER) return export_masked_model(m->bert, m->tokenizer, dir, out);
    if (m->family == TN_MODEL_TUNED)
        return export_tuned_model(m->tuned, m->tokenizer, tune_task_of(tasks[m->tuned->config.task])->length, dir, out);
    return tn_raise_false(TN_EUNSUPPORTED, "'%s': model_type is '%s', expected an encoder", dir, m->type);
}

/* What bert embed computes. */
static bool export_sentences(void)
{
    model     m;
    sentences how;
    if (!sentences_open(dir, &how, &m)) return false;
    export_vectors v = {how.pooling, how.length, how.dim, how.steps, {{NULL, NULL}}};
    for (int i = 0; i < how.steps; i++) v.step[i].dense = how.step[i].dense, v.step[i].then = how.step[i].then;
    if (how.prompt) tn_raise(TN_EUNSUPPORTED, "'%s': default_prompt_name: such a model cannot be exported to C", dir);
    else if (weights_pack(m.bert, dtype)) export_embedder(m.bert, m.tokens, &v, dir, out);
    sentences_close(&how, &m);
    return tn_error() == TN_OK;
}

static int run(int count, char **operands)
{
    (void)count, (void)operands;
    char path[1024];
    if (embeds || file_exists(in_folder(dir, "modules.json", path))) {
        if (export_sentences()) printf("%s\n", out);
        return program_end();
    }
    tn_model m = tn_model_open(dir, .needs_tokenizer = true);
    if (m.family && weights_pack(m.module, dtype) && export_any(&m)) printf("%s\n", out);
    tn_model_close(&m);
    return program_end();
}

static const option options[] = {
    OPTION_TEXT("model", 'm', "DIR", &dir, "the model's folder", .required = true),
    EXPORT_OPTION(&out),
    EXPORT_DTYPE(&dtype),
    OPTION_FLAG("embed", 0, &embeds,
                "export what bert embed computes (default: only for folders of sentence-transformers)"),
    {0},
};
const command export_command = COMMAND(
    "export", "write a model as one C file", options,
    .text = EXPORT_TEXT "predicts the [MASK] tokens in each line of standard input, as bert fill does; a model of "
                        "bert tune that classifies texts or tags words does what bert classify or bert tag does, a "
                        "folder of sentence-transformers what bert embed does.\n\n"
                        "  bert export --model book --c book.c\n"
                        "  cc -std=c99 -O2 -march=native -DMODEL_MAIN book.c -lm -o book\n"
                        "  echo \"The old [MASK] went to the sea.\" | ./book");
