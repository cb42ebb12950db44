/* vit_files.c — loads and saves ViT's and DeiT's weights and labels in Hugging Face's directory format. */
#include "extras/vit/vit_private.h"

/* ---- labels ------------------------------------------------------------------------------------------------------ */

static void load_labels(tn_vit *m, const tn_hf_source *s)
{
    const tn_json *map = tn_json_get(tn_hf_source_json(s), "id2label");
    const int64_t  n = m->config.classes;
    const size_t   bytes = (size_t)(n + 1) * sizeof(char *);
    if (tn_json_type_of(map) != TN_JSON_OBJECT) return;
    if (tn_json_count(map) != n) {
        tn_raise(TN_EFORMAT, "'%s/config.json': id2label has %lld names, but the weights are for %lld classes",
                 tn_hf_source_path(s), (long long)tn_json_count(map), (long long)n);
        return;
    }
    const char **names = tn_mem_get(bytes);
    if (names && tn_hf_labels_read(s, n, names)) tn_vit_set_labels(m, names);
    tn_mem_put(names, bytes);
}

/* ---- directories ------------------------------------------------------------------------------------------------- */

/* Rows of a tensor in the file; 0: missing. */
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

static bool config_read(const tn_hf_source *source, tn__vit_stored *s)
{
    *s = (tn__vit_stored){.c = {.zero_ = 0}};
    tn_vit_config *c = &s->c;
    if (!tn_hf_source_read(source, tn__vit_table(), s)) return false;
    c->distilled = s->type == tn__deit_type;
    if (c->dim % c->heads)
        tn_raise(TN_EFORMAT, "'%s/config.json': num_attention_heads %lld does not divide hidden_size %lld",
                 tn_hf_source_path(source), (long long)c->heads, (long long)c->dim);
    else if (c->patch > c->image)
        tn_raise(TN_EFORMAT, "'%s/config.json': patch_size %lld is larger than image_size %lld",
                 tn_hf_source_path(source), (long long)c->patch, (long long)c->image);
    return tn_error() == TN_OK;
}

void *tn__vit_load(const tn_hf_source *source)
{
    tn__vit_stored s;
    tn_hf_weights  w;
    tn_vit        *m = NULL;
    tn_vit_config *c = &s.c;
    if (!config_read(source, &s)) return NULL;
    if (tn_hf_weights_open(&w, source, elements(c), 0)) {
        c->teacher = c->distilled && rows_of(w.file, "distillation_classifier.weight");
        c->classes = rows_of(w.file, c->teacher ? "cls_classifier.weight" : "classifier.weight");
        c->pooler = rows_of(w.file, "pooler.dense.weight");
        if (!c->pooler)
            c->pooler = rows_of(w.file, c->distilled ? "deit.pooler.dense.weight" : "vit.pooler.dense.weight");
        m = tn_vit_create(*c);
    }
    if (m) m->begin = s.begin, m->end = s.end, m->padding = s.padding, m->decoder_begin = s.decoder_begin;
    if (m && c->classes) load_labels(m, source);
    const tn_hf_files files = tn__vit_files(c->distilled);
    return tn_hf_weights_load(&w, m, &files);
}
tn_vit *tn_vit_load(const char *dir) { return tn_hf_load(dir, tn__vit_load); }

tn_status tn_vit_save(tn_vit *m, const char *dir)
{
    if (!tn_ready(m)) return tn_error();
    const tn_vit_config *c = &m->config;
    const tn_hf_files    files = tn__vit_files(c->distilled);
    tn__vit_stored       s = {.c = *c, .model = m, .type = c->distilled ? tn__deit_type : tn__vit_type};
    s.begin = m->begin, s.end = m->end, s.padding = m->padding, s.decoder_begin = m->decoder_begin;
    s.pooler = c->pooler ? c->pooler : c->dim;
    s.architecture = !c->classes    ? c->distilled ? "DeiTModel" : "ViTModel"
                     : c->teacher   ? "DeiTForImageClassificationWithTeacher"
                     : c->distilled ? "DeiTForImageClassification"
                                    : "ViTForImageClassification";
    return tn_hf_write(m, dir, &files, &s);
}
