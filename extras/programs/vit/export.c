/* export.c — vit export: writes a model as one C file. */
#include "../export/export.h"
#include "programs/common/weights.h"
#include "vit.h"

static const char *dir, *out, *dtype;

static int run(int count, char **operands)
{
    model m;
    (void)count, (void)operands;
    if (model_open(dir, &m)) {
        if (!m.vit) tn_raise(TN_EUNSUPPORTED, "'%s' is a convolutional network, which cannot be exported to C", dir);
        else if (weights_pack(m.vit, dtype) && export_image_model(m.vit, &m.processor, dir, out)) printf("%s\n", out);
        model_close(&m);
    }
    return program_end();
}

static const option options[] = {
    OPTION_TEXT("model", 'm', "DIR", &dir, MODEL_HELP, .required = true),
    EXPORT_OPTION(&out),
    EXPORT_DTYPE(&dtype),
    {0},
};
const command export_command =
    COMMAND("export", "write a model as one C file", options,
            .text = EXPORT_TEXT "prints the most probable classes of the images on standard input: an IDX file, not "
                                "compressed, or the bytes of images that already have the model's size.\n\n"
                                "  vit export --model digits --c digits.c\n"
                                "  cc -std=c99 -O2 -march=native -DMODEL_MAIN digits.c -lm -o digits\n"
                                "  zcat t10k-images-idx3-ubyte.gz | ./digits");
