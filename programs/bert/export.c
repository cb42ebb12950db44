/* export.c — bert export: writes a model as one C file: of bert train, of bert tune, or of texts' vectors. */
#include "extras/programs/export/export.h"
#include "../common/files.h"
#include "../common/weights.h"
#include "bert.h"
#include "tune.h"

static bool export_any(const tn_model *m, const char *dir, const char *out)
{
    static const char *const tasks[] = {"classify", "tag", "answer", "choose"};
    if (m->family == TN_MODEL_ENCODER) return export_masked_model(m->bert, m->tokenizer, dir, out);
    if (m->family == TN_MODEL_TUNED)
        return export_tuned_model(m->tuned, m->tokenizer, tune_task_of(tasks[m->tuned->config.task])->length, dir, out);
    return tn_raise_false(TN_EUNSUPPORTED, "'%s': model_type is '%s', expected an encoder", dir, m->type);
}

/* What bert embed computes. */
static bool export_sentences(const char *dir, const char *out, const char *dtype)
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

bool export_this(const export_options *a)
{
    char path[1024];
    if (a->embed || file_exists(in_folder(a->dir, "modules.json", path)))
        return export_sentences(a->dir, a->out, a->dtype);
    tn_model   m = tn_model_open(a->dir, .needs_tokenizer = true);
    const bool done = m.family && weights_pack(m.module, a->dtype) && export_any(&m, a->dir, a->out);
    tn_model_close(&m);
    return done;
}

static const option options[] = {
    OPTION_TEXT("model", 'm', "DIR", &export_asked.dir, "the model's folder", .required = true),
    EXPORT_OPTIONS,
    OPTION_FLAG("embed", 0, &export_asked.embed,
                "export what bert embed computes (default: only for folders of sentence-transformers)"),
    {0},
};
const command export_command =
    EXPORT_COMMAND("bert", "book", options,
                   "predicts the [MASK] tokens in each line of standard input, as bert fill does; a model of bert tune "
                   "that classifies texts or tags words does what bert classify or bert tag does, a folder of "
                   "sentence-transformers what bert embed does.",
                   "echo \"The old [MASK] went to the sea.\" | ./book");
