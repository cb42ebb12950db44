/* xlnet_format.c — XLNet's file format: the members of config.json, the names of the weights; checks of its config. */
#include "extras/xlnet/xlnet_private.h"

typedef tn__bert_stored stored;

static const char *const attentions[] = {"bi", "uni", NULL};
#define LENGTH(key, member) TN_HF(key, stored, c.member, .nullable = true, .high = 1000000000)
#define XLNET_SIZE(key, member, most) TN_HF(key, stored, c.member, .needed = true, .low = 1, .high = (most))
/* clang-format off */
static const tn_hf_row xlnet_rows[] = {
    {"attn_type", TN_HF_CHOICE, .at = offsetof(stored, attention), .choices = attentions},
    {"bi_data", TN_HF_MUST, .otherwise = false},
    TN_HF("clamp_len", stored, c.clamp, .otherwise = -1, .low = -1, .high = 1000000000),
    TN_HF("d_head", stored, head_dim, .nullable = true, .omitted = true, .high = 65536),
    XLNET_SIZE("d_inner", ff, 1048576),
    XLNET_SIZE("d_model", dim, 65536),
    TN_HF("dropout", stored, c.dropout, .otherwise = 0.1, .high = 1, .below = true),
    TN_HF("ff_activation", stored, c.activation, .text = "gelu"),
    TN_HF("layer_norm_eps", stored, c.eps, .otherwise = 1e-12, .low = 1e-15, .high = 0.1),
    LENGTH("mem_len", memory),
    XLNET_SIZE("n_head", heads, 1024),
    XLNET_SIZE("n_layer", layers, 1024),
    LENGTH("reuse_len", reuse),
    {"same_length", TN_HF_MUST, .otherwise = false},
    {"summary_activation", TN_HF_MUST, .text = "tanh"},
    TN_HF("summary_last_dropout", stored, c.head_dropout, .otherwise = 0.1, .high = 1, .below = true),
    {"summary_type", TN_HF_MUST, .text = "last"},
    {"summary_use_proj", TN_HF_MUST, .otherwise = true},
    {"untie_r", TN_HF_MUST, .otherwise = true},
    TN_HF("vocab_size", stored, c.vocab, .needed = true, .low = 1, .high = 10000000, .also = "n_token"),
    {"pruned_heads", TN_HF_EMPTY, .silent = true},
    TN__UNUSED("end_n_top start_n_top use_mems_eval use_mems_train"), /* of a head that is not loaded; of calls */
};
/* clang-format on */

static const tn_rename xlnet_names[] = {
    TN_RENAME("word_embedding", "transformer.word_embedding", .load_only = true), /* of files with only the encoder */
    TN_RENAME("mask_emb", "transformer.mask_emb", .load_only = true),
    TN_RENAME("layer", "transformer.layer", .load_only = true),
    TN_RENAME("transformer.word_embedding", "bert.embeddings.word_embeddings"),
    TN_RENAME("transformer.mask_emb", "bert.mask_emb"),
    TN_RENAME("transformer.layer", "bert.encoder.layers"),
    TN_RENAME("lm_loss.bias", "cls.predictions.bias"),
    TN_RENAME("lm_loss", "cls.predictions.decoder"),
    TN_RENAME("classifier", NULL),
    TN_RENAME("qa_outputs", NULL),
    TN_RENAME("sequence_summary", NULL),
    TN_RENAME("logits_proj", NULL),
    TN_RENAME("start_logits", NULL),
    TN_RENAME("end_logits", NULL),
    TN_RENAME("answer_class", NULL),
    TN_RENAME("crf", NULL),
};
const tn__bert_format tn__xlnet_format = {.type = "xlnet",
                                          .kind = TN_XLNET,
                                          .own = TN_HF_FILES(xlnet_rows, xlnet_names),
                                          .own_rows = true,
                                          .own_names = true,
                                          .model = "XLNetModel",
                                          .masked = "XLNetLMHeadModel",
                                          .prefix = "transformer.",
                                          .words = "lm_loss.bias",
                                          .padding = 5};

/* XLNet has one dropout probability, and a memory is of what was read. */
bool tn__xlnet_check(const char *who, const tn_bert_config *c)
{
    if (c->dim % 2) tn_raise(TN_EINVAL, "%s: .dim is %lld, but must be even for XLNet", who, (long long)c->dim);
    else if (c->attention_dropout != c->dropout)
        tn_raise(TN_EINVAL, "%s: .attention_dropout is %s and .dropout %s, but XLNet has one probability; set both",
                 who, tn__format_number(c->attention_dropout), tn__format_number(c->dropout));
    return tn_error() == TN_OK && tn__within(who, "memory", c->memory, 0, 1000000000) &&
           tn__within(who, "reuse", c->reuse, 0, 1000000000) && tn__within(who, "clamp", c->clamp, 0, 1000000000);
}

void tn__xlnet_read(tn__bert_stored *s, const char *name)
{
    tn_bert_config *c = &s->c;
    c->types = 3, c->attention_dropout = c->dropout, c->causal = s->attention != attentions[0];
    if (c->clamp < 0) c->clamp = 0;
    if (s->head_dim && c->dim % c->heads == 0 && s->head_dim != c->dim / c->heads)
        tn_raise(TN_EFORMAT, "'%s': d_head is %lld, but must be d_model / n_head, %lld / %lld", name,
                 (long long)s->head_dim, (long long)c->dim, (long long)c->heads);
    else if (c->dim % 2)
        tn_raise(TN_EUNSUPPORTED, "'%s': d_model is %lld; only even numbers are supported", name, (long long)c->dim);
}

void tn__xlnet_store(tn__bert_stored *s)
{
    s->attention = attentions[s->c.causal];
    if (!s->c.clamp) s->c.clamp = -1;
}
