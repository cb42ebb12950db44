/* llama2c.c — reads llama2.c's files, version 0: a LLaMA, as a config.json and a table of tensors.
 *
 *     i32 dim, hidden, layers, heads, kv heads, vocab (negative: the output layer is not tied), positions
 *     then f32: each kind of weight for all layers; two tables of angles, which are ignored */
#include "core/base/checked.h"
#include "core/files/safetensors.h"
#include "models/files/model_file.h"

#include <stdio.h>
#include <string.h>

enum { HEADER = 28 };
typedef struct {
    int64_t dim, hidden, layers, heads, kv_heads, vocab, positions;
    bool    untied;
} shape;

typedef struct {
    const char *name;       /* with %d for the layer, if each layer has one; NULL: ignored */
    int64_t     rows, cols; /* cols 0: one dim */
    int64_t     heads;      /* number of heads whose rows are stored in pairs; 0: none */
} part;
enum { PARTS = 14, ANGLES = 11 };

/* All weights in file order. */
static void parts(const shape *s, part p[PARTS])
{
    const int64_t head = s->dim / s->heads, kv = s->kv_heads * head;
    const part    all[PARTS] = {{"model.embed_tokens.weight", s->vocab, s->dim, 0},
                                {"model.layers.%d.input_layernorm.weight", s->dim, 0, 0},
                                {"model.layers.%d.self_attn.q_proj.weight", s->dim, s->dim, s->heads},
                                {"model.layers.%d.self_attn.k_proj.weight", kv, s->dim, s->kv_heads},
                                {"model.layers.%d.self_attn.v_proj.weight", kv, s->dim, 0},
                                {"model.layers.%d.self_attn.o_proj.weight", s->dim, s->dim, 0},
                                {"model.layers.%d.post_attention_layernorm.weight", s->dim, 0, 0},
                                {"model.layers.%d.mlp.gate_proj.weight", s->hidden, s->dim, 0},
                                {"model.layers.%d.mlp.down_proj.weight", s->dim, s->hidden, 0},
                                {"model.layers.%d.mlp.up_proj.weight", s->hidden, s->dim, 0},
                                {"model.norm.weight", s->dim, 0, 0},
                                {NULL, s->positions, head / 2, 0},
                                {NULL, s->positions, head / 2, 0},
                                {s->untied ? "lm_head.weight" : NULL, s->untied ? s->vocab : 0, s->dim, 0}};
    memcpy(p, all, sizeof all);
}

static bool in_layers(const part *p) { return p->name && strchr(p->name, '%'); }

static const char *header_error(const unsigned char *header, int64_t size, shape *s)
{
    int64_t n[7];
    for (int i = 0; i < 7; i++) {
        uint32_t v = 0;
        for (int b = 3; b >= 0; b--) v = v << 8 | header[4 * i + b];
        n[i] = v < 0x80000000u ? (int64_t)v : (int64_t)v - ((int64_t)1 << 32);
    }
    *s = (shape){n[0], n[1], n[2], n[3], n[4], n[5] < 0 ? -n[5] : n[5], n[6], n[5] < 0};
    if (n[0] == 0x616b3432) return "this is llama2.c's second format ('ak42'); export with version 0";
    if (s->dim < 1 || s->dim > 65536 || s->hidden < 1 || s->hidden > 1048576 || s->layers < 1 || s->layers > 1024 ||
        s->heads < 1 || s->heads > 1024 || s->kv_heads < 1 || s->vocab < 1 || s->vocab > 10000000 || s->positions < 1 ||
        s->positions > 10000000 || s->dim % s->heads || s->heads % s->kv_heads || s->dim / s->heads % 2)
        return "not a model of llama2.c: its first seven numbers are not the sizes of a model";
    part    p[PARTS];
    int64_t bytes = HEADER;
    parts(s, p);
    for (int i = 0; i < PARTS; i++) { /* below 2^20 · 2^24 · 2^10 · 4 each: no overflow */
        const int64_t each = p[i].rows * (p[i].cols ? p[i].cols : 1) * 4;
        bytes += each * (in_layers(&p[i]) ? s->layers : 1);
    }
    return bytes == size ? NULL : "the file size does not match the model that its first seven numbers describe";
}

static bool llama2c_open(tn__source *from, const char *label, const char *path, shape *s, const char **why)
{
    unsigned char header[HEADER];
    *why = NULL;
    if (!tn__source_open(from, label, path)) return false;
    if (from->size < HEADER) *why = "not a model of llama2.c: it has less than 28 bytes";
    else if (tn__source_read(from, header, 0, HEADER)) *why = header_error(header, from->size, s);
    if (tn_error() == TN_OK && !*why) return true;
    tn__source_close(from);
    return false;
}

static bool llama2c_open_or_raise(tn__source *from, const char *label, const char *path, shape *s)
{
    const char *why;
    if (llama2c_open(from, label, path, s, &why)) return true;
    if (why) tn_raise(TN_EFORMAT, "'%s': %s", path, why);
    return false;
}

bool tn__is_llama2c(const char *path)
{
    tn__source  f;
    shape       s = {0};
    const char *why;
    if (!llama2c_open(&f, path, path, &s, &why)) return tn_clear_error(), false;
    tn__source_close(&f);
    return true;
}

tn_json *tn__llama2c_config(const char *path)
{
    tn__source f;
    shape      s = {0};
    char       text[600];
    if (!llama2c_open_or_raise(&f, path, path, &s)) return NULL;
    tn__source_close(&f);
    const int n =
        snprintf(text, sizeof text,
                 "{\"model_type\": \"llama\", \"hidden_size\": %lld, \"intermediate_size\": %lld, "
                 "\"num_hidden_layers\": %lld, \"num_attention_heads\": %lld, \"num_key_value_heads\": %lld, "
                 "\"vocab_size\": %lld, \"max_position_embeddings\": %lld, \"tie_word_embeddings\": %s, "
                 "\"rms_norm_eps\": 1e-5, \"rope_theta\": 10000.0}",
                 (long long)s.dim, (long long)s.hidden, (long long)s.layers, (long long)s.heads, (long long)s.kv_heads,
                 (long long)s.vocab, (long long)s.positions, s.untied ? "false" : "true");
    return tn_json_parse(text, (size_t)n);
}

tn_safetensors *tn__llama2c_tensors(const char *path)
{
    shape           s = {.heads = 1};
    part            p[PARTS];
    tn_safetensors *f = tn__st_begin("llama2.c's file", path);
    bool            ok = f && llama2c_open_or_raise(&f->source, f->label, path, &s);
    if (ok) {
        parts(&s, p);
        ok = tn__st_reserve(f, (uint32_t)(PARTS + 9 * s.layers), (size_t)(PARTS + 9 * s.layers) * 64);
    }
    int64_t at = HEADER;
    for (int i = 0; ok && i < PARTS; i++) {
        const int64_t bytes = p[i].rows * (p[i].cols ? p[i].cols : 1) * 4, n = in_layers(&p[i]) ? s.layers : 1;
        for (int64_t k = 0; ok && k < n; k++, at += bytes) {
            char name[128];
            if (!p[i].name) continue;
            const char *number = strchr(p[i].name, '%');
            if (number)
                snprintf(name, sizeof name, "%.*s%lld%s", (int)(number - p[i].name), p[i].name, (long long)k,
                         number + 2);
            else snprintf(name, sizeof name, "%s", p[i].name);
            tn__st_entry *e = tn__st_add(f, name, strlen(name));
            if (!(ok = e != NULL)) break;
            e->shape = p[i].cols ? TN_SHAPE(p[i].rows, p[i].cols) : TN_SHAPE(p[i].rows);
            e->element = tn__element_of_dtype(TN_F32), e->heads = (int32_t)p[i].heads;
            e->begin = at, e->end = at + bytes;
        }
    }
    if (ok && tn__st_index_names(f)) return f;
    tn_safetensors_close(f);
    return NULL;
}
