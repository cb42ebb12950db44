/* export.c — lm export: writes a model as one C file. */
#include "../export/export.h"
#include "lm.h"

bool export_this(const export_options *a)
{
    model      m;
    tn_rnn_lm *lm;
    if (!recurrent_open(a->dir, &m, &lm)) return false;
    const bool done = export_recurrent_model(&m.all, a->dir, a->out);
    model_close(&m);
    return done;
}

static const option options[] = {
    OPTION_TEXT("model", 'm', "DIR", &export_asked.dir, "the model's folder", .required = true), EXPORT_FILE, {0}};
const command export_command =
    EXPORT_COMMAND("lm", "book", options, "continues the text on standard input, as lm write --temperature 0 does.",
                   "echo \"The old man\" | ./book");
