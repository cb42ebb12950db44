/* image.c — exports a tn_vit that classifies images: see export.h. */
#include "emit.h"
#include "export.h"

#include <string.h>

static bool fits(const tn_vit *m, const char *path)
{
    if (!m->classifier) return emit_rejected(path, "no classifier");
    if (m->config.image % m->config.patch) return emit_rejected(path, "patch_size does not divide image_size");
    if (!blocks_function(((tn_block *)tn_at(m->encoder->layers, 0))->activation))
        return emit_rejected(path, "hidden_act");
    return blocks_fit((void *)(uintptr_t)m, m->encoder, path);
}

typedef struct {
    int64_t tokens, grid, patches, patch_in, length;
} image_sizes;
static image_sizes sizes_of(const tn_vit_config *c)
{
    image_sizes s = {.tokens = c->distilled ? 2 : 1, .grid = c->image / c->patch};
    s.patches = s.grid * s.grid, s.patch_in = c->channels * c->patch * c->patch, s.length = s.tokens + s.patches;
    return s;
}

static int64_t state_bytes(const tn_vit *m)
{
    const image_sizes s = sizes_of(&m->config);
    return encoder_state(m->encoder, s.length) + 4 * (s.patches * emit_wide(s.patch_in) + emit_wide(m->config.classes));
}

/* The numbers of all values of a pixel in each channel, [channels, 1, 256]. */
static tn_tensor *pixel_values(tn_image_processor p)
{
    tn_tensor *x = tn_empty_of(TN_U8, TN_SHAPE(p.channels, 1, 256));
    uint8_t   *to = x ? tn_data_mut(x) : NULL;
    for (int64_t i = 0; to && i < tn_numel(x); i++) to[i] = (uint8_t)(i % 256);
    p.height = p.width = p.shortest = p.crop_height = p.crop_width = 0;
    return x ? tn_image_ready(x, &p) : NULL;
}

static void add_weights(emitter *e, const tn_vit *m, const tn_image_processor *p)
{
    const image_sizes s = sizes_of(&m->config);
    tn_tensor *const  start = m->distillation ? tn_cat(1, m->token, m->distillation) : m->token;
    encoder_add(e, m->encoder);
    emit_vector(e, "pixel_value", pixel_values(*p));
    emit_matrix(e, "patch", tn_reshape(m->patches->weight, TN_SHAPE(m->config.dim, s.patch_in)), 0, m->config.dim);
    emit_vector(e, "patch_bias", m->patches->bias);
    emit_vector(e, "start", start), emit_vector(e, "position", m->positions);
    emit_matrix(e, "classifier", m->classifier->weight, 0, m->config.classes);
    emit_vector(e, "classifier_bias", m->classifier->bias);
    if (!m->taught) return;
    emit_matrix(e, "taught", m->taught->weight, 0, m->config.classes);
    emit_vector(e, "taught_bias", m->taught->bias);
}

static void put_sizes(emitter *e, const tn_vit *m)
{
    const tn_vit_config *c = &m->config;
    const image_sizes    s = sizes_of(c);
    const emit_size      sizes[] = {
             {"SIDE", c->image, "pixels of a row and a column"},
             {"CHANNELS", c->channels, NULL},
             {"PATCH", c->patch, "pixels of a side of a patch"},
             {"GRID", s.grid, "patches of a row"},
             {"PATCHES", s.patches, NULL},
             {"PATCH_WIDE", emit_wide(s.patch_in), "numbers of a patch, rounded up"},
             {"TOKENS", s.tokens, "rows before those of the patches"},
             {"CLASSES", c->classes, NULL},
             {"CLASSES_WIDE", emit_wide(c->classes), NULL},
             {"SCORES", emit_wide(c->classes), NULL},
    };
    encoder_sizes(e, m->encoder, s.length, "rows of an image");
    emit_sizes(e, sizes, sizeof sizes / sizeof *sizes);
}

static const emit_function functions[] = {
    {"const float *model_classify(const unsigned char *pixels);",
     "The scores of an image, [MODEL_CLASSES]. pixels: MODEL_CHANNELS planes of MODEL_SIDE rows of MODEL_SIDE\n"
     " * values from 0 to 255."},
    {"const float *model_probabilities(void);", "The probabilities of that image's classes; the scores are lost."},
    {NULL, NULL}};

static void put_labels(emitter *e, const tn_vit *m)
{
    const int64_t n = m->config.classes;
    emit(e, "#ifdef MODEL_MAIN\nstatic const char *const label[CLASSES] = {\n");
    for (int64_t i = 0; i < n; i++) {
        const char *text = tn_vit_label(m, i);
        emit(e, "    "), emit_string(e, text, strlen(text)), emit(e, ",\n");
    }
    emit(e, "};\n#endif\n");
}

static void put_file(emitter *e, const tn_vit *m, const tn_image_processor *p, const char *path)
{
    const tn_mha *a = ((tn_block *)tn_at(m->encoder->layers, 0))->self_attn;
    encoder_features(e, m->encoder);
    emit_feature(e, "IMAGES", true), emit_feature(e, "SCORED", true), emit_feature(e, "SOFTMAX", true);
    emit_feature(e, "TEACHER", m->taught != NULL);
    add_weights(e, m, p);
    if (!emit_fits(e, state_bytes(m))) return;
    emit_title(e, &(emit_about){.path = path,
                                .program = "vit",
                                .kind = "ViT",
                                .use = "./model <t10k-images-idx3-ubyte",
                                .layers = m->config.layers,
                                .dim = m->config.dim,
                                .state = state_bytes(m),
                                .main = m->config.channels * m->config.image * m->config.image + 4 * m->config.classes,
                                .stack = 8192 + 32 * a->head_dim});
    emit_template(e, template_head);
    put_sizes(e, m);
    emit_weight_names(e);
    emit_interface(e, functions);
    emit_template(e, template_arithmetic);
    emit_template(e, template_functions);
    emit_template(e, template_encoder);
    emit(e, "\n");
    emit_template(e, template_image);
    emit(e, "\n#ifdef MODEL_MAIN\nstatic const char *const label[CLASSES];\n#endif\n");
    emit_template(e, template_image_main);
    emit_constants(e, "sizeof state", state_bytes(m) + 64);
    put_labels(e, m);
    blocks_emit(e, m->encoder, "layer");
    emit_weights(e);
}

bool export_image_model(const tn_vit *m, const tn_image_processor *p, const char *path, const char *out)
{
    emitter        e = {.f = NULL};
    const tn_scope s = tn_no_grad_begin();
    if (fits(m, path) && emit_open(&e, out)) {
        put_file(&e, m, p, path);
        emit_close(&e);
    }
    tn_scope_end(s);
    return tn_error() == TN_OK;
}
