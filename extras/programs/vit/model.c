/* model.c — opens and saves a model's folder: a ViT in Hugging Face's layout, or a convolutional network. */
#include "vit.h"

#include <string.h>

static const char type[] = "tenon-convolutions";

tn_sequential *convolutions_new(int64_t side, int64_t channels, int64_t filters, int64_t classes, double dropout)
{
    const int64_t  after = side / 2 / 2;
    tn_sequential *net = tn_sequential_new();
    tn_append(net, tn_conv2d_new(.in = channels, .out = filters, .size = 3, .padding = 1));
    tn_append(net, tn_relu_new());
    tn_append(net, tn_max_pool2d_new(.size = 2));
    tn_append(net, tn_conv2d_new(.in = filters, .out = 2 * filters, .size = 3, .padding = 1));
    tn_append(net, tn_relu_new());
    tn_append(net, tn_max_pool2d_new(.size = 2));
    tn_append(net, tn_flatten_new());
    tn_append(net, tn_dropout_new(.p = dropout));
    tn_append(net, tn_linear_new(.in = 2 * filters * after * after, .out = 8 * filters));
    tn_append(net, tn_relu_new());
    tn_append(net, tn_linear_new(.in = 8 * filters, .out = classes));
    if (tn_error() == TN_OK) return net;
    tn_free(net);
    return NULL;
}

typedef struct {
    int64_t side, channels, filters, classes;
} stored;
static const tn_hf_row rows[] = {
    TN_HF("filters", stored, filters, .needed = true, .low = 1, .high = 4096),
    TN_HF("image_size", stored, side, .needed = true, .low = 4, .high = 4096),
    {"model_type", TN_HF_TYPE, .text = type},
    TN_HF("num_channels", stored, channels, .needed = true, .low = 1, .high = 4),
    TN_HF("num_labels", stored, classes, .needed = true, .low = 1, .high = 1e6),
};
static const tn_hf_files table = {rows, TN_HF_COUNT_(rows), NULL, 0};

static bool is_convolutions(const char *dir)
{
    char path[1024];
    if (!file_exists(dir)) return tn_raise_false(TN_EIO, "'%s': no such file or directory", dir);
    tn_json   *doc = tn_json_load(in_folder(dir, "config.json", path));
    const bool is = !strcmp(tn_json_string_or(tn_json_get(doc, "model_type"), ""), type);
    tn_json_free(doc);
    return is && tn_error() == TN_OK;
}

bool model_open_any(const char *dir, model *m)
{
    char   path[1024];
    stored s;
    *m = (model){.net = NULL};
    if (is_convolutions(dir)) {
        if (tn_hf_config_read(dir, &table, &s))
            m->net = tn_hf_weights_read(convolutions_new(s.side, s.channels, s.filters, s.classes, 0), dir, &table);
        m->side = s.side, m->classes = s.classes, m->filters = s.filters;
    } else if (tn_error() == TN_OK) {
        m->net = m->vit = tn_vit_load(dir);
        if (m->vit) m->side = m->vit->config.image, m->classes = m->vit->config.classes;
    }
    const bool given = m->net && file_exists(in_folder(dir, "preprocessor_config.json", path));
    if (given && tn_image_processor_load(dir, &m->processor) != TN_OK) return model_close(m), false;
    if (m->net && !given) /* the defaults of ViT's processor */
        m->processor = (tn_image_processor){.channels = m->vit ? m->vit->config.channels : s.channels,
                                            .height = m->side,
                                            .width = m->side,
                                            .mean = {.5, .5, .5, .5},
                                            .std = {.5, .5, .5, .5}};
    if (tn_error() == TN_OK) return true;
    model_close(m);
    return false;
}

bool model_open(const char *dir, model *m)
{
    if (!model_open_any(dir, m)) return false;
    if (m->classes) return true;
    model_close(m);
    return tn_raise_false(TN_EUNSUPPORTED,
                          "'%s' contains a model without classifier; vit needs a model like "
                          "ViTForImageClassification, or vit tune, which adds a classifier",
                          dir);
}

tn_tensor *model_ready(const model *m, const tn_image_processor *how, const tn_tensor *image)
{
    tn_tensor *x = image ? tn_image_ready(image, how) : NULL;
    if (!x || (tn_size(x, 1) == m->side && tn_size(x, 2) == m->side)) return x;
    return tn_raise_null(TN_EFORMAT,
                         "'preprocessor_config.json' produces images of %lld x %lld pixels, but the model needs %lld x "
                         "%lld",
                         (long long)tn_size(x, 1), (long long)tn_size(x, 2), (long long)m->side, (long long)m->side);
}

bool model_save(const model *m, const char *dir)
{
    const stored s = {m->side, m->processor.channels, m->filters, m->classes};
    return (m->vit ? tn_vit_save(m->vit, dir) : tn_hf_write(m->net, dir, &table, &s)) == TN_OK &&
           tn_image_processor_save(&m->processor, dir) == TN_OK;
}

const char *model_label(const model *m, int64_t i, char number[LABEL_NUMBER])
{
    if (m->vit) return tn_vit_label(m->vit, i);
    snprintf(number, LABEL_NUMBER, "%lld", (long long)i);
    return number;
}

void model_close(model *m)
{
    tn_module_free(m->net);
    *m = (model){.net = NULL};
}
