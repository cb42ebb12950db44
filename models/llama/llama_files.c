/* llama_files.c — loads and saves LLaMA, Mistral and Qwen2 in Hugging Face's directory format. */
#include "models/llama/llama_private.h"

#define LAYER "model.layers.*."
static const tn_rename rules[] = {
    TN_RENAME("lm_head", "model.embed_tokens", .load_only = true), /* if tied; else this rule is skipped */
    TN_RENAME("layers", "model.layers", .load_only = true),        /* of files without the head */
    TN_RENAME("norm", "model.norm", .load_only = true),
    TN_RENAME("model.embed_tokens", "embed_tokens"),
    TN_RENAME(LAYER "self_attn.rotary_emb.inv_freq", NULL), /* of old files: recomputed */
    TN_RENAME(LAYER "self_attn.o_proj", LAYER "self_attn.out_proj"),
    TN_RENAME(LAYER "mlp.gate_proj", LAYER "gate"),
    TN_RENAME(LAYER "mlp.up_proj", LAYER "linear1"),
    TN_RENAME(LAYER "mlp.down_proj", LAYER "linear2"),
    TN_RENAME(LAYER "input_layernorm", LAYER "norm1"),
    TN_RENAME(LAYER "post_attention_layernorm", LAYER "norm2"),
};
enum { RULES = sizeof rules / sizeof *rules };

/* The rows of config.json and the rules of the weights. */
static tn_hf_files files_of(const tn_llama_config *c)
{
    tn_hf_files f = *tn__llama_table();
    f.rules = c->tied ? rules : rules + 1, f.renames = c->tied ? RULES : RULES - 1;
    return f;
}

tn_llama *tn_llama_load(const char *dir)
{
    tn_llama_config c;
    char            path[1024];
    if (!tn__llama_config_read(dir, &c)) return NULL;
    tn__pruned pruned;
    if (!tn__pruned_open(dir, &pruned)) return NULL;
    const tn_hf_files files = files_of(&c);
    tn_safetensors   *f = tn__weights_open(dir, path);
    const int64_t     d = c.head_dim ? c.head_dim : c.dim / c.heads;
    const int64_t     layer = c.dim * (2 * d * (c.heads + c.kv_heads) + 3 * c.ff);
    const int64_t     all = c.vocab * c.dim * (c.tied ? 1 : 2) + c.layers * layer;
    tn_llama         *m = NULL;
    const tn_scope    blank = tn__blank_begin();
    if (f && tn__has_elements_pruned(f, path, all, &pruned, d * (4 * c.dim + 3))) m = tn_llama_create(c);
    tn_scope_end(blank);
    tn__pruned_apply(&pruned, m);
    tn__pruned_close(&pruned);
    return tn__model_read(m, f, path, &files);
}

tn_status tn__llama_save_as(tn_llama *m, const char *to, const tn__gguf_options *gguf)
{
    tn__llama_stored s;
    if (!tn__llama_config_write(&m->config, to, &s)) return tn_error();
    const tn_hf_files files = files_of(&m->config);
    return tn__hf_write_as(m, to, &files, &s, gguf);
}
tn_status tn_llama_save(tn_llama *m, const char *dir)
{
    return tn_ready(m) ? tn__llama_save_as(m, dir, NULL) : tn_error();
}
