/* export.c — gpt export: writes a model as one C file. */
#include "extras/programs/export/export.h"
#include "../common/weights.h"
#include "gpt.h"

bool export_this(const export_options *a)
{
    model m;
    if (!model_open(a->dir, a->tokenizer, false, &m)) return false;
    const bool done = weights_pack(m.net, a->dtype) && export_language_model(&m.all, model_first(&m), a->dir, a->out);
    model_close(&m);
    return done;
}

static const option options[] = {
    OPTION_TEXT("model", 'm', "PATH", &export_asked.dir, MODEL_HELP, .required = true),
    OPTION_TEXT("tokenizer", 0, "PATH", &export_asked.tokenizer, TOKENIZER_HELP),
    EXPORT_OPTIONS,
    {0},
};
const command export_command =
    EXPORT_COMMAND("gpt", "book", options, "continues the text on standard input, as gpt write --temperature 0 does.",
                   "echo \"The old man\" | ./book");
