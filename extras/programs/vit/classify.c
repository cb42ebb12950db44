/* classify.c — vit classify: prints the most probable classes of images. */
#include "programs/common/numbers.h"
#include "programs/common/texts.h"
#include "programs/common/weights.h"
#include "vit.h"

static const char *dir, *dtype;
static int64_t     best = 3;
static bool        json, negative;

/* Prints text as a JSON string. */
static void print_json(const char *text)
{
    tn_json_writer *w = tn_json_writer_new(0);
    texts_put(w, NULL, text);
    const char *s = tn_json_text(w, NULL);
    if (s) fputs(s, stdout);
    tn_json_writer_free(w);
}

static void print_classes(const model *m, const char *file, tn_tensor *scores)
{
    const int64_t k = best < m->classes ? best : m->classes;
    const tn_pair top = tn_topk(tn_softmax(scores, -1), k, -1);
    for (int64_t i = 0; i < k && tn_error() == TN_OK; i++) numbers_finite(tn_get(top.values, i), "a probability");
    if (tn_error() != TN_OK) return;
    if (json) printf("{\"file\": "), print_json(file), printf(", \"classes\": [");
    else printf("%s", file);
    for (int64_t i = 0; i < k; i++) {
        char         number[LABEL_NUMBER];
        const char  *label = model_label(m, tn_get_i64(top.indices, i), number);
        const double p = tn_get(top.values, i);
        if (json)
            printf("%s{\"label\": ", i ? ", " : ""), print_json(label), numbers_json(", \"probability\": ", p, 6),
                printf("}");
        else printf("\t%s %.3f", label, p);
    }
    printf(json ? "]}\n" : "\n");
}

static void invert(tn_tensor *image)
{
    uint8_t *x = image ? tn_data_mut(image) : NULL;
    for (int64_t i = 0; x && i < tn_numel(image); i++) x[i] = (uint8_t)(255 - x[i]);
}

static bool classify(const model *m, const char *file)
{
    const tn_scope s = tn_no_grad_begin();
    tn_tensor     *image = tn_image_load(file, m->processor.channels, TN_U8);
    if (negative) invert(image);
    tn_tensor *x = model_ready(m, &m->processor, image);
    if (x) print_classes(m, file, tn_module_call(m->net, tn_unsqueeze(x, 0)));
    tn_scope_end(s);
    return tn_error() == TN_OK;
}

static int run(int count, char **operands)
{
    model m;
    if (model_open(dir, &m)) {
        weights_pack(m.net, dtype);
        for (int i = 0; i < count && classify(&m, operands[i]); i++) {}
        model_close(&m);
    }
    return program_end();
}

static const option options[] = {
    OPTION_TEXT("model", 'm', "DIR", &dir, MODEL_HELP, .required = true),
    OPTION_INT("top", 'k', "N", &best, "print the N most probable classes", .least = 1, .most = 1e6),
    OPTION_FLAG("negative", 0, &negative, "invert the images, for example dark ink for a model of light digits"),
    OPTION_FLAG("json", 0, &json, "print one line of JSON per image"),
    OPTION_WEIGHTS(&dtype),
    {0},
};
const command classify_command = COMMAND(
    "classify", "classify image files", options, .operands = "FILE...", .least = 1, .most = -1,
    .text =
        "Reads PGM, PPM and PNG images of any size and resizes them to the model's input. Prints one line per file: "
        "its name, then the most probable classes with their probabilities.\n\n"
        "  vit classify --model digits --negative scan.png");
