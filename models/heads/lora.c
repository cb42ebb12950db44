/* lora.c — low-rank adapters (Hu et al. 2021): the encoder is frozen; alpha / rank · B A, with B [dim, rank] and
 * A [rank, dim], is added to each layer's query and value matrices. Only A, B and the head are trained.
 *
 * Before each run, ops compute the sum, which replaces the packed matrix of queries, keys and values until the end of
 * the run. So the layers need no change, and the tape computes the gradients of A and B. The product costs rank · dim²
 * multiplications per layer and run, little compared with the run itself. */
#include "models/bert/bert_private.h"
#include "models/heads/heads_private.h"

#include <math.h>
#include <string.h>

static const tn_class tn_lora_class = {.size = sizeof(tn_class), .name = "LoRA", .bytes = sizeof(tn_lora)};

/* The adapted thirds of the packed matrix, and their names in files. */
static const struct {
    const char *name, *file, *distil, *albert;
    int64_t     third;
} parts[TN__ADAPTED] = {{"query", "attention.self.query", "attention.q_lin", "attention.query", 0},
                        {"value", "attention.self.value", "attention.v_lin", "attention.value", 2}};

static tn_mha *attention_of(const tn_tuned *m, int64_t i)
{
    tn_transformer_encoder_layer *layer = tn_at(m->encoder->encoder->layers, i);
    return layer ? layer->self_attn : NULL;
}

/* ---- building ---------------------------------------------------------------------------------------------------- */

/* Adapters have dtype dt: f64 for an f64 encoder, else f32, as in PEFT, since they are small. */
static tn_lora *new_adapters(const tn_bert_config *e, int64_t layers, int64_t rank, double alpha, tn_dtype dt)
{
    tn_lora *l = tn_module_new(tn_lora);
    if (!l) return NULL;
    l->rank = rank, l->layers = layers, l->scale = alpha / (double)rank;
    const double bound = 1 / sqrt((double)e->dim);
    l->a = tn_array(l, TN__ADAPTED * layers, tn_tensor *), l->b = tn_array(l, TN__ADAPTED * layers, tn_tensor *);
    l->kept = tn_array(l, layers, tn_tensor *);
    for (int64_t i = 0; l->a && l->b && i < TN__ADAPTED * layers; i++) {
        const int64_t layer = i / TN__ADAPTED;
        const char   *name = parts[i % TN__ADAPTED].name;
        l->a[i] = tn_param(l, tn_name("%lld.%s.lora_A", (long long)layer, name),
                           tn_to(tn_uniform(TN_SHAPE(rank, e->dim), -bound, bound), dt));
        l->b[i] =
            tn_param(l, tn_name("%lld.%s.lora_B", (long long)layer, name), tn_zeros_of(dt, TN_SHAPE(e->dim, rank)));
    }
    return tn_built(l);
}

tn_status tn_tuned_adapt(tn_tuned *m, int64_t rank, double alpha)
{
    static const char *const who = "tn_tuned_adapt";
    if (!tn_ready(m)) return tn_error();
    if (!tn__within(who, "rank", rank, 1, m->encoder->config.dim)) return tn_error();
    if (!(alpha > 0 && alpha < 1e6)) return tn_raise(TN_EINVAL, "%s: alpha is %g, but must be above 0", who, alpha);
    if (m->lora) return tn_raise(TN_ESTATE, "%s: this model already has adapters", who);
    for (tn_each e = tn_modules(m); tn_next(&e);)
        if (!strcmp(e.name, "lora"))
            return tn_raise(
                TN_ESTATE, "%s: this model had adapters that were merged; save it, load it again, and adapt that", who);
    const int64_t layers = tn_length(m->encoder->encoder->layers);
    for (int64_t i = 0; i < layers; i++)
        if (!attention_of(m, i) || !attention_of(m, i)->in_proj_weight)
            return tn_raise(TN_EUNSUPPORTED, "%s: layer %lld has no packed matrix of queries, keys and values", who,
                            (long long)i);
        else if (!tn_shape_equal(tn_shape_of(attention_of(m, i)->in_proj_weight),
                                 TN_SHAPE(3 * m->encoder->config.dim, m->encoder->config.dim)))
            return tn_raise(TN_EUNSUPPORTED,
                            "%s: the attention of layer %lld is packed (tn_quantize, tn_halve) or pruned", who,
                            (long long)i);
    const tn_dtype dt = tn_dtype_of(attention_of(m, 0)->in_proj_weight) == TN_F64 ? TN_F64 : TN_F32;
    m->lora = tn_child(m, "lora", new_adapters(&m->encoder->config, layers, rank, alpha, dt));
    if (m->lora) tn_freeze(m->encoder, true);
    return tn_error();
}

/* ---- running ----------------------------------------------------------------------------------------------------- */

/* The addend of a layer's packed matrix: [3 dim, dim] of its dtype, with zeros for the keys. */
static tn_tensor *addend(const tn_tuned *m, int64_t layer)
{
    const tn_lora *l = m->lora;
    const int64_t  dim = m->encoder->config.dim, i = TN__ADAPTED * layer;
    tn_tensor     *q = tn_matmul(l->b[i], l->a[i]), *v = tn_matmul(l->b[i + 1], l->a[i + 1]);
    tn_tensor     *none = tn_zeros_of(tn_dtype_of(q), TN_SHAPE(dim, dim));
    return tn_to(tn_mul_scalar(tn_cat(0, q, none, v), l->scale), tn_dtype_of(attention_of(m, layer)->in_proj_weight));
}

void tn__lora_apply(tn_tuned *m)
{
    for (int64_t i = 0; m->lora && i < m->lora->layers; i++) {
        tn_mha *a = attention_of(m, i);
        m->lora->kept[i] = a->in_proj_weight;
        tn_tensor *sum = tn_error() == TN_OK ? tn_add(a->in_proj_weight, addend(m, i)) : NULL;
        if (sum) a->in_proj_weight = sum;
    }
}
void tn__lora_remove(tn_tuned *m)
{
    for (int64_t i = 0; m->lora && i < m->lora->layers; i++) attention_of(m, i)->in_proj_weight = m->lora->kept[i];
}

tn_status tn_tuned_merge(tn_tuned *m)
{
    if (!tn_ready(m)) return tn_error();
    const tn_scope s = tn_no_grad_begin();
    for (int64_t i = 0; m->lora && i < m->lora->layers && tn_error() == TN_OK; i++)
        tn_add_(attention_of(m, i)->in_proj_weight, addend(m, i));
    tn_scope_end(s);
    if (tn_error() != TN_OK || !m->lora) return tn_error();
    m->lora = NULL; /* it stays an unused child */
    tn_freeze(m->encoder, false);
    return tn_error();
}

/* ---- files ------------------------------------------------------------------------------------------------------- */

/* The weight's name in PEFT. */
static const char *peft_name(const tn_tuned *m, int64_t i, bool b)
{
    const tn_bert_config *e = &m->encoder->config;
    const char           *prefix = tn__bert_format_of(e)->prefix;
    const long long       layer = (long long)(i / TN__ADAPTED);
    const int             k = (int)(i % TN__ADAPTED);
    const char            letter = b ? 'B' : 'A';
    if (e->kind == TN_DISTILBERT)
        return tn_name("base_model.model.%stransformer.layer.%lld.%s.lora_%c.weight", prefix, layer, parts[k].distil,
                       letter);
    if (e->kind == TN_ALBERT)
        return tn_name("base_model.model.%sencoder.albert_layer_groups.%lld.albert_layers.0.%s.lora_%c.weight", prefix,
                       layer, parts[k].albert, letter);
    return tn_name("base_model.model.%sencoder.layer.%lld.%s.lora_%c.weight", prefix, layer, parts[k].file, letter);
}

static void put_config(const tn_tuned *m, tn_json_writer *w)
{
    static const char *const tasks[] = {"SEQ_CLS", "TOKEN_CLS", "QUESTION_ANS", "SEQ_CLS"};
    const tn_bert_config    *e = &m->encoder->config;
    const tn__head           h = tn__head_for(e, m->config.task);
    tn_json_open_object(w, NULL);
    tn_json_put_string(w, "peft_type", "LORA");
    tn_json_put_string(w, "task_type", tasks[m->config.task]);
    tn_json_put_i64(w, "r", m->lora->rank);
    tn_json_put_double(w, "lora_alpha", m->lora->scale * (double)m->lora->rank);
    tn_json_put_double(w, "lora_dropout", 0);
    tn_json_put_string(w, "bias", "none");
    tn_json_put_bool(w, "fan_in_fan_out", false);
    tn_json_open_array(w, "target_modules");
    for (int k = 0; k < TN__ADAPTED; k++)
        tn_json_put_string(w, NULL, e->kind == TN_DISTILBERT ? strchr(parts[k].distil, '.') + 1 : parts[k].name);
    tn_json_close(w);
    tn_json_open_array(w, "modules_to_save");
    if (h.dense && !strcmp(h.dense, "pre_classifier")) tn_json_put_string(w, NULL, h.dense);
    tn_json_put_string(w, NULL, m->config.task == TN_TASK_QUESTION_ANSWERING ? "qa_outputs" : "classifier");
    tn_json_close(w);
    tn_json_close(w);
}

static const char head_prefix[] = "base_model.model.";

tn_status tn_tuned_save_adapter(tn_tuned *m, const char *dir)
{
    char path[1024];
    if (!tn_ready(m)) return tn_error();
    if (!m->lora) return tn_raise(TN_ESTATE, "tn_tuned_save_adapter: this model has no adapters; see tn_tuned_adapt");
    const tn__head         h = tn__head_for(&m->encoder->config, m->config.task);
    tn_json_writer        *j = tn_json_writer_new(2);
    tn_safetensors_writer *w = tn_safetensors_writer_new();
    put_config(m, j);
    for (int64_t i = 0; i < TN__ADAPTED * m->lora->layers; i++) {
        tn_safetensors_put(w, peft_name(m, i, false), m->lora->a[i]);
        tn_safetensors_put(w, peft_name(m, i, true), m->lora->b[i]);
    }
    if (m->dense) tn_save_run(m->dense, (tn_save_args){.writer = w, .prefix = tn_name("%s%s.", head_prefix, h.dense)});
    tn_save_run(m->classifier, (tn_save_args){.writer = w, .prefix = tn_name("%s%s.", head_prefix, h.out)});
    if (m->crf) tn_save_run(m->crf, (tn_save_args){.writer = w, .prefix = tn_name("%scrf.", head_prefix)});
    if (tn__config_save(j, dir, "adapter_config.json") &&
        tn__path_in(dir, "adapter_model.safetensors", path, sizeof path)) {
        const tn_status saved = tn_safetensors_save(w, path);
        (void)saved; /* the error is set */
    }
    tn_json_writer_free(j);
    tn_safetensors_writer_free(w);
    return tn_error();
}

/* Raises for PEFT options that are not supported. */
static bool check_options(const tn_json *doc, const char *path)
{
    static const char *const flags[] = {"use_rslora", "use_dora", "fan_in_fan_out"}, *const maps[] = {"alpha_pattern",
                                                                                                      "rank_pattern"};
    if (strcmp(tn_json_string_or(tn_json_get(doc, "peft_type"), "LORA"), "LORA") != 0)
        return tn_raise_false(TN_EUNSUPPORTED, "'%s': peft_type must be LORA; other adapters are not supported", path);
    if (strcmp(tn_json_string_or(tn_json_get(doc, "bias"), "none"), "none") != 0)
        return tn_raise_false(TN_EUNSUPPORTED, "'%s': adapters with a bias are not supported", path);
    for (size_t i = 0; i < sizeof flags / sizeof *flags; i++)
        if (tn_json_bool_or(tn_json_get(doc, flags[i]), false))
            return tn_raise_false(TN_EUNSUPPORTED, "'%s': adapters with %s are not supported", path, flags[i]);
    for (size_t i = 0; i < sizeof maps / sizeof *maps; i++)
        if (tn_json_first(tn_json_get(doc, maps[i])))
            return tn_raise_false(TN_EUNSUPPORTED, "'%s': adapters with %s are not supported", path, maps[i]);
    return tn_error() == TN_OK;
}

/* Called before the model is changed: raises unless the file has exactly the adapters of these shapes. */
static bool check_adapters(const tn_tuned *m, const tn_safetensors *f, int64_t layers, int64_t rank)
{
    const int64_t dim = m->encoder->config.dim;
    int64_t       there = 0;
    char          x[192], y[192];
    for (int64_t i = 0; i < 2 * TN__ADAPTED * layers && tn_error() == TN_OK; i++) {
        const bool     b = i % 2 == 1;
        const tn_shape want = b ? TN_SHAPE(dim, rank) : TN_SHAPE(rank, dim);
        const tn_scope s = tn_scope_begin();
        tn_tensor     *from = tn_safetensors_get(f, peft_name(m, i / 2, b));
        if (from && !tn_shape_equal(tn_shape_of(from), want))
            tn_raise(TN_ESHAPE, "%s is %s, expected %s", peft_name(m, i / 2, b),
                     tn_shape_text(tn_shape_of(from), x, sizeof x), tn_shape_text(want, y, sizeof y));
        tn_scope_end(s);
    }
    for (int64_t i = 0; i < tn_safetensors_count(f); i++) {
        const char *name = tn_safetensors_at(f, i).name;
        there += strstr(name, ".lora_") != NULL;
    }
    if (tn_error() == TN_OK && there != 2 * TN__ADAPTED * layers)
        tn_raise(TN_EUNSUPPORTED,
                 "the file has adapters of other weights than queries and values: %lld tensors, expected %lld",
                 (long long)there, (long long)(2 * TN__ADAPTED * layers));
    return tn_error() == TN_OK;
}

static void read_adapter(tn_tuned *m, const tn_safetensors *f)
{
    for (int64_t i = 0; i < 2 * TN__ADAPTED * m->lora->layers && tn_error() == TN_OK; i++) {
        const bool b = i % 2 == 1;
        tn_copy_from(b ? m->lora->b[i / 2] : m->lora->a[i / 2], tn_safetensors_get(f, peft_name(m, i / 2, b)));
    }
}

tn_status tn_tuned_load_adapter(tn_tuned *m, const char *dir)
{
    char path[1024];
    if (!tn_ready(m)) return tn_error();
    if (!tn__path_in(dir, "adapter_config.json", path, sizeof path)) return tn_error();
    const tn_json_limits limits = {.depth = 8, .bytes = 1 << 20, .values = 10000};
    tn_json             *doc = tn_json_load_within(path, limits);
    const int64_t        rank = tn_json_i64(tn_json_need(doc, "r"));
    const double         alpha = tn_json_double(tn_json_need(doc, "lora_alpha"));
    if (tn_error() == TN_OK) check_options(doc, path);
    tn_json_free(doc);
    const tn__head  h = tn__head_for(&m->encoder->config, m->config.task);
    tn_safetensors *f =
        tn__path_in(dir, "adapter_model.safetensors", path, sizeof path) ? tn_safetensors_open(path) : NULL;
    const bool fits = f && check_adapters(m, f, tn_length(m->encoder->encoder->layers), m->lora ? m->lora->rank : rank);
    if (!fits || (!m->lora && tn_tuned_adapt(m, rank, alpha) != TN_OK)) return tn_safetensors_close(f), tn_error();
    const tn_scope s = tn_no_grad_begin();
    m->lora->scale = alpha / (double)m->lora->rank;
    if (f) read_adapter(m, f);
    if (f && m->dense)
        tn_load_run(m->dense,
                    (tn_load_args){.path = path, .file = f, .prefix = tn_name("%s%s.", head_prefix, h.dense)});
    if (f)
        tn_load_run(m->classifier,
                    (tn_load_args){.path = path, .file = f, .prefix = tn_name("%s%s.", head_prefix, h.out)});
    if (f && m->crf)
        tn_load_run(m->crf, (tn_load_args){.path = path, .file = f, .prefix = tn_name("%scrf.", head_prefix)});
    tn_scope_end(s);
    tn_safetensors_close(f);
    return tn_error();
}
