/* export.c — vit export: writes a model as one C file. */
#include "../export/export.h"
#include "programs/common/weights.h"
#include "vit.h"

bool export_this(const export_options *a)
{
    model m;
    bool  done = false;
    if (!model_open(a->dir, &m)) return false;
    if (!m.vit) tn_raise(TN_EUNSUPPORTED, "'%s' is a convolutional network, which cannot be exported to C", a->dir);
    else done = weights_pack(m.vit, a->dtype) && export_image_model(m.vit, &m.processor, a->dir, a->out);
    model_close(&m);
    return done;
}

static const option options[] = {
    OPTION_TEXT("model", 'm', "DIR", &export_asked.dir, MODEL_HELP, .required = true), EXPORT_OPTIONS, {0}};
const command export_command =
    EXPORT_COMMAND("vit", "digits", options,
                   "prints the most probable classes of the images on standard input: an IDX file, not compressed, or "
                   "the bytes of images that already have the model's size.",
                   "zcat t10k-images-idx3-ubyte.gz | ./digits");
