/* lora_models.h — small models of every family for the tests of adapters, and names of weights in their files. */
#ifndef TENON_TESTS_COMMON_LORA_MODELS_H
#define TENON_TESTS_COMMON_LORA_MODELS_H

#include "tests/common/answers.h"

#include "models/models.h"

static void *a_gpt(void)
{
    return tn_gpt_new(.vocab = 50, .dim = 32, .layers = 2, .heads = 2, .positions = 16, .dropout = 0);
}
static void *a_llama(void)
{
    return tn_llama_new(.vocab = 50, .dim = 32, .layers = 2, .heads = 4, .kv_heads = 2, .positions = 16, .ff = 64,
                        .dropout = 0, .attention_dropout = 0);
}
static void *a_bert(void)
{
    return tn_bert_new(.vocab = 50, .dim = 32, .layers = 2, .heads = 2, .positions = 16, .dropout = 0,
                       .attention_dropout = 0);
}
static void *a_phi(void) /* files join q, k and v, and gate and up */
{
    return tn_llama_new(.vocab = 50, .dim = 32, .layers = 2, .heads = 4, .kv_heads = 2, .positions = 16, .ff = 64,
                        .dropout = 0, .attention_dropout = 0, .type = "phi3");
}
static void *a_neox(void) /* files join q, k and v, whose heads alternate */
{
    return tn_llama_new(.vocab = 50, .dim = 32, .layers = 2, .heads = 4, .positions = 16, .ff = 64, .dropout = 0,
                        .attention_dropout = 0, .type = "gpt_neox", .norm = TN_NORM_LAYER, .plain_ff = true,
                        .ff_bias = true, .qkv_bias = true, .out_bias = true, .activation = "gelu");
}
static void *a_bart(void)
{
    return tn_seq2seq_new(.source_words = 50, .dim = 32, .layers = 2, .heads = 2, .ff = 64, .positions = 16,
                          .shared = true, .dropout = 0, .type = "bart", .activation = "gelu", .no_final_norm = true,
                          .norm_embedding = true, .position_kind = TN_SEQ2SEQ_LEARNED, .fixed_out_bias = true);
}
static void *a_t5(void)
{
    return tn_seq2seq_create(tn_seq2seq_t5(TN_WITH(tn_seq2seq_config, TN_SEQ2SEQ_DEFAULTS, .source_words = 50,
                                                   .dim = 32, .layers = 2, .heads = 2, .ff = 64, .dropout = 0)));
}
static const struct model {
    void *(*make)(void);
    const char *names, *first, *other; /* a name in files; of a weight that gets none */
    int         pairs;                 /* with .names */
} models[] = {{a_gpt, "c_attn", "transformer.h.0.attn.c_attn", "mlp.c_fc", 2},
              {a_llama, "q_proj,v_proj down_proj", "model.layers.0.self_attn.q_proj", "up_proj", 6},
              {a_bert, "query value layer.1.output.dense", "bert.encoder.layer.0.attention.self.query", "key", 5},
              {a_phi, "q_proj v_proj gate_up_proj", "model.layers.0.self_attn.qkv_proj", "down_proj", 8},
              {a_neox, "query_key_value", "gpt_neox.layers.0.attention.query_key_value", "dense", 6},
              {a_bart, "q_proj encoder_attn.v_proj fc2", "model.encoder.layers.0.self_attn.q_proj", "k_proj", 12},
              {a_t5, "q EncDecAttention.v wi_0", "encoder.block.0.layer.0.SelfAttention.q", "wo", 12}};
enum { MODELS = sizeof models / sizeof *models };

/* B starts at 0: random values make a difference. A's, too: PEFT's adapters of joined weights have one A. */
static void shake(void *m)
{
    tn_seed(9);
    const tn_scope s = tn_no_grad_begin();
    for (tn_each p = tn_module_each(m, TN_EACH_PARAMETER); tn_next(&p);) {
        const char *end = strrchr(p.name, '.');
        if (!end || !strstr(p.name, "lora.") || end[2]) continue;
        tn_copy_from(p.tensor, tn_normal(tn_shape_of(p.tensor), 0, end[1] == 'B' ? 0.3 : 0.15));
    }
    tn_scope_end(s);
}

#endif
