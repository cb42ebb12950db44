/* export.c — translate export: writes a model as one C file. */
#include "extras/programs/export/export.h"
#include "../common/weights.h"
#include "translate.h"

bool export_this(const export_options *a)
{
    model m;
    if (!model_open(a->dir, &m)) return false;
    const bool done = weights_pack(m.net, a->dtype) && export_translator(m.net, m.tokens, a->dir, a->out);
    model_close(&m);
    return done;
}

static const option options[] = {
    OPTION_TEXT("model", 'm', "DIR", &export_asked.dir, "folder of the model", .required = true), EXPORT_OPTIONS, {0}};
const command export_command =
    EXPORT_COMMAND("translate", "ende", options,
                   "translates the lines of standard input, as translate run --beam 1 does. The model must be a "
                   "Transformer of translate train.",
                   "./ende < test.en > test.out");
