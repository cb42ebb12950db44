/* vit_files.c — ViT's and DeiT's weights and labels to and from a directory as Hugging Face lays it out. Files name the
 * layers in two ways: as they are written (and were always read), and as transformers 5 names them in the program. */
#include "models/vit/vit_private.h"

#include <stdlib.h>
#include <string.h>

#define LAYER "vit.encoder.layer.*."
#define NEW "vit.layers.*."
#define OURS "vit.encoder.layers.*."
#define THIRD(name, i)                                                                                              \
    TN_RENAME(LAYER "attention.attention." name ".weight", OURS "self_attn.in_proj_weight", .part = i, .parts = 3), \
        TN_RENAME(LAYER "attention.attention." name ".bias", OURS "self_attn.in_proj_bias", .part = i, .parts = 3)
#define NAMED(name, as) TN_RENAME(NEW name, LAYER as, .load_only = true)

static const tn_rename rules[] = {
    TN_RENAME("deit", "vit"), /* of DeiT alone */
    /* of files that hold the encoder alone */
    TN_RENAME("embeddings", "vit.embeddings", .load_only = true),
    TN_RENAME("encoder", "vit.encoder", .load_only = true),
    TN_RENAME("layers", "vit.layers", .load_only = true),
    TN_RENAME("layernorm", "vit.layernorm", .load_only = true),
    TN_RENAME("pooler", "vit.pooler", .load_only = true),
    /* heads of what it was trained for: of hidden patches */
    TN_RENAME("vit.embeddings.mask_token", NULL),
    TN_RENAME("decoder", NULL),
    /* a layer */
    NAMED("attention.q_proj", "attention.attention.query"),
    NAMED("attention.k_proj", "attention.attention.key"),
    NAMED("attention.v_proj", "attention.attention.value"),
    NAMED("attention.o_proj", "attention.output.dense"),
    NAMED("mlp.fc1", "intermediate.dense"),
    NAMED("mlp.fc2", "output.dense"),
    NAMED("layernorm_before", "layernorm_before"),
    NAMED("layernorm_after", "layernorm_after"),
    THIRD("query", 0),
    THIRD("key", 1),
    THIRD("value", 2),
    TN_RENAME(LAYER "attention.output.dense", OURS "self_attn.out_proj"),
    TN_RENAME(LAYER "layernorm_before", OURS "norm1"),
    TN_RENAME(LAYER "layernorm_after", OURS "norm2"),
    TN_RENAME(LAYER "intermediate.dense", OURS "linear1"),
    TN_RENAME(LAYER "output.dense", OURS "linear2"),
    TN_RENAME("vit.layernorm", "vit.encoder.norm"),
};
enum { RULES = sizeof rules / sizeof *rules };

static tn_hf_files files_of(bool distilled)
{
    tn_hf_files f = *tn__vit_table();
    f.rules = rules + !distilled, f.renames = RULES - !distilled;
    return f;
}

/* ---- labels ------------------------------------------------------------------------------------------------------ */

/* The labels of id2label, in the order of their numbers, into names[n]. */
static bool read_labels(const tn_json *map, const char *path, int64_t n, const char **names)
{
    for (const tn_json *v = tn_json_first(map); v && tn_error() == TN_OK; v = tn_json_next(v)) {
        char         *end;
        const int64_t i = strtoll(tn_json_key(v), &end, 10);
        if (*end || end == tn_json_key(v) || i < 0 || i >= n || names[i])
            tn_raise(TN_EFORMAT, "'%s': id2label has '%.40s', where the numbers from 0 to %lld are needed, each once",
                     path, tn_json_key(v), (long long)n - 1);
        else names[i] = tn_json_string(v);
    }
    return tn_error() == TN_OK;
}

static void load_labels(tn_vit *m, const char *dir)
{
    char                 path[1024];
    const tn_json_limits limits = {.depth = 32, .bytes = 16 << 20, .values = 1 << 21};
    if (!tn__path_in(dir, "config.json", path, sizeof path)) return;
    tn_json       *doc = tn_json_load_within(path, limits);
    const tn_json *map = tn_json_get(doc, "id2label");
    const int64_t  n = m->config.classes;
    const size_t   bytes = (size_t)(n + 1) * sizeof(char *);
    if (tn_json_type_of(map) == TN_JSON_OBJECT && tn_json_count(map) != n)
        tn_raise(TN_EFORMAT, "'%s': id2label has %lld names, and the weights are for %lld classes", path,
                 (long long)tn_json_count(map), (long long)n);
    else if (tn_json_type_of(map) == TN_JSON_OBJECT) {
        const char **names = tn__mem_zeroed(bytes);
        if (names && read_labels(map, path, n, names)) tn_vit_set_labels(m, names);
        if (names) tn__mem_put(names, bytes);
    }
    tn_json_free(doc);
}

/* Does a later class have this one's name? A key is there once, with the last number, as in Python. */
static bool comes_again(const tn_vit *m, int64_t i)
{
    const char *name = tn_vit_label(m, i);
    for (int64_t k = i + 1; m->labels && k < m->config.classes; k++)
        if (!strcmp(m->labels + m->label[k], name)) return true;
    return false;
}

static void put_labels(tn_json_writer *w, const void *user)
{
    const tn_vit *m = user;
    char          number[24];
    if (!m->config.classes) return;
    tn_json_open_object(w, "id2label");
    for (int64_t i = 0; i < m->config.classes; i++) {
        snprintf(number, sizeof number, "%lld", (long long)i);
        tn_json_put_string(w, number, tn_vit_label(m, i));
    }
    tn_json_close(w);
    tn_json_open_object(w, "label2id");
    for (int64_t i = 0; i < m->config.classes; i++)
        if (!comes_again(m, i)) tn_json_put_i64(w, tn_vit_label(m, i), i);
    tn_json_close(w);
}

/* ---- directories ------------------------------------------------------------------------------------------------- */

/* Rows of a tensor of the file; 0: it is not there. */
static int64_t rows_of(const tn_safetensors *f, const char *name)
{
    const int64_t i = tn_safetensors_find(f, name);
    return i < 0 ? 0 : tn_safetensors_at(f, i).shape.d[0];
}

static int64_t elements(const tn_vit_config *c)
{
    const int64_t grid = tn__vit_grid(c);
    return c->dim * (grid * grid + c->channels * c->patch * c->patch) +
           c->layers * (4 * c->dim * (c->dim + 1) + 2 * c->dim * c->ff);
}

static bool config_load(const char *dir, tn__vit_stored *s)
{
    *s = (tn__vit_stored){.c = {.zero_ = 0}};
    tn_vit_config *c = &s->c;
    if (!tn_hf_config_read(dir, tn__vit_table(), s)) return false;
    c->distilled = s->type == tn__deit_type;
    if (c->dim % c->heads)
        tn_raise(TN_EFORMAT, "'%s/config.json': num_attention_heads %lld does not divide hidden_size %lld", dir,
                 (long long)c->heads, (long long)c->dim);
    else if (c->patch > c->image)
        tn_raise(TN_EFORMAT, "'%s/config.json': patch_size %lld is larger than image_size %lld", dir,
                 (long long)c->patch, (long long)c->image);
    return tn_error() == TN_OK;
}

tn_vit *tn_vit_load(const char *dir)
{
    char           path[1024];
    tn__vit_stored s;
    if (tn_error() != TN_OK || !config_load(dir, &s)) return NULL;
    tn_safetensors *f = tn__weights_open(dir, path);
    tn_vit         *m = NULL;
    if (f && tn__enough(f, path, elements(&s.c))) {
        s.c.teacher = s.c.distilled && rows_of(f, "distillation_classifier.weight");
        s.c.classes = rows_of(f, s.c.teacher ? "cls_classifier.weight" : "classifier.weight");
        s.c.pooler = rows_of(f, "pooler.dense.weight");
        if (!s.c.pooler)
            s.c.pooler = rows_of(f, s.c.distilled ? "deit.pooler.dense.weight" : "vit.pooler.dense.weight");
        m = tn_vit_create(s.c);
    }
    if (m && s.c.classes) load_labels(m, dir);
    const tn_hf_files files = files_of(s.c.distilled);
    return tn__model_read(m, f, path, &files);
}

tn_status tn_vit_save(tn_vit *m, const char *dir)
{
    if (!tn_ready(m)) return tn_error();
    const tn_vit_config *c = &m->config;
    const tn__hf_more    more = {.members = put_labels, .user = m};
    const tn_hf_files    files = files_of(c->distilled);
    tn__vit_stored       s = {.c = *c, .type = c->distilled ? tn__deit_type : tn__vit_type};
    s.pooled = c->pooler ? c->pooler : c->dim;
    s.architecture = !c->classes    ? c->distilled ? "DeiTModel" : "ViTModel"
                     : c->teacher   ? "DeiTForImageClassificationWithTeacher"
                     : c->distilled ? "DeiTForImageClassification"
                                    : "ViTForImageClassification";
    return tn__hf_write_more(m, dir, &files, &s, &more);
}
