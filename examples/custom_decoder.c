/* custom_decoder.c — a complete custom decoder: LLaMA's architecture, with config, Hugging Face's files, and the
 * library's loss and generation as a tn_lm. It learns to count by threes, is saved, loaded, and continues a sequence.
 * Build: cc -O2 custom_decoder.c -o custom_decoder $(pkg-config --cflags --libs tenon) */
#include <stdio.h>
#include <sys/stat.h>
#include <tenon/tenon.h>

typedef struct {
    int64_t     vocab, dim, layers, heads, kv_heads, ff, positions;
    double      eps, theta, init;
    const char *activation;
    bool        tied;
} config;

typedef struct {
    tn_module     base;
    config        c;
    tn_embedding *words;
    tn_blocks    *blocks;
    tn_tensor    *out; /* [vocab, dim] */
} decoder;

/* ---- files ------------------------------------------------------------------------------------------------------- */

static const tn_hf_row rows[] = {
    {"architectures", TN_HF_NAME, .text = "LlamaForCausalLM"},
    {"attention_bias", TN_HF_MUST, .silent = true},
    TN_HF("hidden_act", config, activation, .text = "silu"),
    TN_HF("hidden_size", config, dim, .needed = true, .low = 1, .high = 65536),
    TN_HF("initializer_range", config, init, .otherwise = 0.02, .high = 1),
    TN_HF("intermediate_size", config, ff, .needed = true, .low = 1, .high = 1048576),
    TN_HF("max_position_embeddings", config, positions, .otherwise = 2048, .low = 1, .high = 10000000),
    {"mlp_bias", TN_HF_MUST, .silent = true},
    {"model_type", TN_HF_TYPE, .text = "llama"},
    TN_HF("num_attention_heads", config, heads, .needed = true, .low = 1, .high = 1024),
    TN_HF("num_hidden_layers", config, layers, .needed = true, .low = 1, .high = 1024),
    TN_HF("num_key_value_heads", config, kv_heads, .needed = true, .low = 1, .high = 1024),
    TN_HF("rms_norm_eps", config, eps, .otherwise = 1e-6, .high = 0.1),
    {"rope_scaling", TN_HF_EMPTY, .silent = true},
    TN_HF("rope_theta", config, theta, .otherwise = 10000, .low = 1, .high = 1e9),
    TN_HF("tie_word_embeddings", config, tied, .otherwise = false),
    TN_HF("vocab_size", config, vocab, .needed = true, .low = 1, .high = 10000000),
};

#define LAYER "blocks.layers.*."
static const tn_rename rules[] = {
    TN_RENAME("model.embed_tokens", "embed_tokens"),
    TN_RENAME("model.norm", "blocks.norm"),
    TN_RENAME("model.layers", "blocks.layers"),
    TN_RENAME(LAYER "self_attn.o_proj", LAYER "self_attn.out_proj"),
    TN_RENAME(LAYER "mlp.gate_proj", LAYER "gate"),
    TN_RENAME(LAYER "mlp.up_proj", LAYER "linear1"),
    TN_RENAME(LAYER "mlp.down_proj", LAYER "linear2"),
    TN_RENAME(LAYER "input_layernorm", LAYER "norm1"),
    TN_RENAME(LAYER "post_attention_layernorm", LAYER "norm2"),
};
static const tn_hf_files files = TN_HF_FILES(rows, rules);

/* ---- the model: functions of tn_lm_forward, tn_lm_loss, tn_lm_decoding and tn_lm_save ---------------------------- */

static tn_lm_info info(const void *module)
{
    const decoder *m = module;
    const config   c = m->c;
    return (tn_lm_info){.type = "llama",
                        .vocab = c.vocab,
                        .dim = c.dim,
                        .layers = c.layers,
                        .heads = c.heads,
                        .kv_heads = c.kv_heads,
                        .positions = c.positions,
                        .blocks = m->blocks,
                        .out = m->out};
}

/* Hidden states of a.ids [B, T], which follow the tokens in the cache (NULL: no cache). */
static tn_tensor *hidden(void *module, tn_decoder_args a)
{
    decoder *m = module;
    return tn_blocks_forward(m->blocks, tn_call(m->words, a.ids), .causal = true, .cache = a.cache,
                             .key_padding_mask = a.key_padding_mask, .skip_padding = a.skip_padding);
}

static tn_status save(void *m, const char *dir) { return tn_hf_write(m, dir, &files, &((decoder *)m)->c); }

static const tn_lm_ops ops = {.info = info, .hidden = hidden, .save = save};
static const tn_class  decoder_class = {sizeof(tn_class), .name = "Decoder", .bytes = sizeof(decoder), .lm = &ops};

static decoder *decoder_new(config c)
{
    decoder *m = tn_module_new(decoder);
    if (!m) return NULL;
    m->c = c;
    m->words = tn_child(m, "embed_tokens", tn_embedding_new(.count = c.vocab, .dim = c.dim));
    m->blocks = tn_child(m, "blocks",
                         tn_blocks_new(.layers = c.layers, .dim = c.dim, .heads = c.heads, .ff = c.ff, .gated = true,
                                       .attention.kv_heads = c.kv_heads, .norm = {.kind = TN_NORM_RMS, .eps = c.eps},
                                       .attention.positions = tn_rotary_new(.theta = c.theta), .order = TN_NORM_FIRST,
                                       .activation = tn_hf_activation(c.activation), .final_norm = true, .dropout = 0,
                                       .no_bias = true));
    if (!c.tied) m->out = tn_weight(m, "lm_head.weight", tn_empty(TN_SHAPE(c.vocab, c.dim)));
    else if (m->words) m->out = m->words->weight;
    for (tn_each p = tn_parameters(m); !tn_error() && tn_next(&p);)
        if (tn_ndim(p.tensor) > 1) tn_init_normal(p.tensor, 0, c.init);
    return tn_built(m);
}

static decoder *decoder_load(const char *dir)
{
    config c;
    return tn_hf_config_read(dir, &files, &c) ? tn_hf_weights_read(decoder_new(c), dir, &files) : NULL;
}

/* ---- training and use -------------------------------------------------------------------------------------------- */

int main(void)
{
    const config  c = {20, 32, 2, 4, 2, 48, 64, 1e-6, 10000, 0.1, "silu", false};
    decoder      *m = decoder_new(c), *again;
    tn_optimizer *opt = tn_adamw_new(m, .lr = 1e-2);
    tn_tensor    *start = tn_view(tn_arange(20), TN_SHAPE(20, 1)), *step = tn_mul_scalar(tn_arange(12), 3);
    tn_tensor *ids = tn_remainder(tn_add(start, step), tn_full_of(TN_I64, TN_SHAPE(1), 20)); /* 7 10 13 16 19 2 … */
    for (int i = 0; i <= 100 && !tn_error(); i++) {
        const tn_scope s = tn_scope_begin();
        tn_tensor     *loss = tn_lm_loss(m, ids, NULL);
        if (i % 50 == 0) printf("%3d  %.3f\n", i, tn_item(loss));
        tn_backward(loss);
        tn_step(opt);
        tn_scope_end(s);
    }
    mkdir("counts", 0777);
    again = tn_lm_save(m, "counts") == TN_OK ? decoder_load("counts") : NULL;
    tn_decoding *d = again ? tn_lm_decoding(again, 1, 20) : NULL;
    tn_generated g = tn_generate(d, tn_narrow(ids, 0, 7, 1), .most = 6); /* after 7 10 13 … 0 */
    for (int i = 0; i < 6 && !tn_error(); i++) printf("%d ", (int)tn_get_i64(g.tokens, i));
    printf("\n");
    if (tn_error()) fprintf(stderr, "%s\n", tn_error_message());
    tn_decoding_free(d), tn_optimizer_free(opt), tn_free(m), tn_free(again);
    return tn_error() != TN_OK;
}
