/* bert.h — BERT and its family, RoBERTa, DistilBERT, ALBERT, ELECTRA, ModernBERT, DeBERTa v2 and v3, XLNet: encoders
 * that are trained to predict masked tokens. Part of models.h: include that.
 *
 *     tn_bert_config c = tn_bert_size("mini");
 *     c.vocab = 8000;
 *     tn_bert   *bert = tn_bert_create(c);
 *     tn_tensor *loss = tn_bert_loss(bert, .ids = ids, .key_padding_mask = padding, .masked = where, .words = what);
 *
 *     tn_bert *bert = tn_bert_load("bert-base-uncased");          // a directory in Hugging Face's format
 *     tn_tensor *y = tn_bert_forward(bert, ids);                  // [B, T, dim]
 *
 * Modules have Hugging Face's names for BERT, so that messages and files agree. */
#ifndef TENON_MODELS_BERT_H
#define TENON_MODELS_BERT_H

#include "../data/data.h"
#include "../nn/nn.h"
#include "decoding.h"

TN_C_BEGIN_

typedef enum {
    TN_BERT = 0,
    TN_ROBERTA,     /* positions start at .padding + 1, those of padding tokens are .padding; no next-sentence head */
    TN_XLM_ROBERTA, /* RoBERTa with another name in files */
    TN_CAMEMBERT,   /* also */
    TN_DISTILBERT,  /* no segments, no pooler, no next-sentence head */
    TN_ALBERT,      /* layers share weights; .next predicts whether two segments are in their original order */
    TN_ELECTRA,     /* no pooler, no next-sentence head; .replaced: the discriminator, else the generator */
    TN_MODERNBERT,  /* rotary positions, windows, gated feed-forward, norms first, no biases; no segments, no pooler */
    TN_DEBERTA,     /* v2 and v3: disentangled attention; no pooler, no next-sentence head; .replaced: as ELECTRA */
    TN_XLNET        /* of the extras (xlnet.h): predicts tokens in a random order; a memory; no pooler */
} tn_bert_kind;

typedef struct tn_bert_config {
    int               zero_;
    tn_bert_kind      kind;
    int64_t           vocab; /* tokens: rows of the embedding */
    int64_t dim       TN_IS(256), layers TN_IS(4), heads TN_IS(4);
    int64_t           ff;         /* 0: 4 dim */
    int64_t           embedding;  /* ALBERT, ELECTRA, DeBERTa: width of the embeddings, projected to dim; 0: dim */
    int64_t           groups;     /* ALBERT: distinct blocks that the layers share; 0: 1 */
    int64_t positions TN_IS(512); /* maximum tokens in a sequence; XLNet: that programs read, it has no maximum */
    int64_t types     TN_IS(2);   /* segments; DistilBERT: none; XLNet: any, 2 is that of [CLS] */
    int64_t           padding;    /* padding token id, its embedding is zero; negative: none */
    double dropout    TN_IS(0.1);
    double attention_dropout TN_IS(0.1);   /* dropout probability of attention weights */
    double head_dropout      TN_IS(-1);    /* of heads; below 0: ALBERT 0.1, DistilBERT 0.2, else .dropout */
    double init              TN_IS(0.02);  /* standard deviation of initial weights */
    double eps               TN_IS(1e-12); /* epsilon of the norms */
    const char              *activation;   /* Hugging Face's name; NULL: "gelu" */
    bool                     norm_first;   /* norms before attention and feed-forward, and one after the last layer */
    bool                     no_words;     /* no head for masked tokens */
    bool                     no_pooler;    /* no pooler; implies .no_next */
    bool                     no_next;      /* no head for the next sentence */
    bool                     replaced;     /* ELECTRA, DeBERTa: a head that detects replaced tokens */
    int64_t                  global_every; /* ModernBERT: every n-th layer, from the first, sees all tokens; 0: 3 */
    int64_t                  window;       /* ModernBERT: other layers see tokens less than this far away; 0: 65 */
    double                   theta;        /* ModernBERT: of the rotary positions in layers that see all; 0: 160000 */
    double                   local_theta;  /* ModernBERT: in the other layers; 0: 10000 */
    bool mean_heads; /* ModernBERT: heads for a whole text use the mean of its tokens, not the first */
    /* DeBERTa: all 0: v3's, both terms, norm, and 256 buckets or, if fewer, .positions / 2. .distance: 0: .positions;
     * below 0: no relative positions */
    tn_disentangled disentangled;
    bool            input_positions; /* DeBERTa: position embeddings are added to the input, as in BERT */
    bool            mask_decoder;    /* DeBERTa: enhanced mask decoder: position embeddings enter at the last layer */
    int64_t memory, reuse, clamp;    /* XLNet: see tn_two_stream_args (.memory_length, .reuse), tn_two_stream_config */
    bool    causal;                  /* XLNet: a token sees no later ones */
    int     end_;
} TN_KEYWORDS_ONLY tn_bert_config;
#define TN_BERT_DEFAULTS                                                                                         \
    .dim = 256, .layers = 4, .heads = 4, .positions = 512, .types = 2, .dropout = 0.1, .attention_dropout = 0.1, \
    .head_dropout = -1, .init = 0.02, .eps = 1e-12

typedef struct tn_bert {
    tn_module      base;
    tn_bert_config config;                    /* with defaults filled in */
    tn_embedding  *words, *positions, *types; /* the last two and those after the encoder: NULL if the model has none */
    tn_layer_norm *norm;
    tn_dropout    *dropout, *head_dropout;
    tn_linear     *project;          /* from .embedding to .dim; NULL if they are equal and the kind is not ALBERT */
    tn_transformer_encoder *encoder; /* NULL: XLNet, which has the following two */
    tn_module              *streams; /* tn_two_stream */
    tn_tensor              *mask;    /* [1, 1, dim]: the query stream before the first layer */
    tn_mlm_head            *head;
    tn_linear              *pooler, *next, *replaced, *replaced_out;
    tn_layer_norm          *replaced_norm; /* DeBERTa's head for replaced tokens has one; else NULL */
    /* config.json's bos_token_id, eos_token_id, decoder_start_token_id, and ModernBERT's cls_token_id and sep_token_id;
     * they do not change results */
    tn_token_ids begin, end, decoder_begin, cls, sep;
    char         left[256]; /* other heads in the loaded directory, as "classifier.weight, …" */
} tn_bert;

TN_API const char *tn_bert_kind_name(tn_bert_kind kind); /* "BERT", "XLM-RoBERTa" … */
/* The published sizes: "tiny", "mini", "small", "medium", "base", "large"; .vocab is 0. Raises for other names. */
TN_RETURNS_CONFIG_(TN_API tn_bert_config tn_bert_size(const char *name);)
TN_API tn_bert *tn_bert_create(tn_bert_config c);

/* ---- running it -------------------------------------------------------------------------------------------------- */

typedef struct tn_bert_args {
    int         zero_;
    tn_tensor  *ids;              /* i64 or i32 [B, T] */
    tn_tensor  *types;            /* segments, i64 or i32 [B, T]; NULL: all 0; ignored by models without segments */
    tn_tensor  *key_padding_mask; /* padding mask, bool [B, T]: true at padding; NULL: no padding */
    bool        skip_padding;     /* do no work for padding: hidden states are 0 there; ignored by DeBERTa and XLNet */
    tn_tensor **weights;          /* out, may be NULL: one tensor per layer, attention weights [B, heads, T, T] */
    bool        for_words; /* hidden states for tn_bert_mlm_logits: .mask_decoder runs; other models ignore this */
    /* Gradient-disentangled embedding sharing (DeBERTa v3): the embeddings of this model, of the same widths, are added
     * to m's, without a gradient. m's own are then differences. NULL: none */
    struct tn_bert *shared;
    /* Positions in the flattened [B · T] whose hidden states alone are returned, i64 [N]; NULL: all. XLNet: those of
     * the query stream, which does not see the tokens there; order: see tn_permutation_mask. */
    tn_tensor *targets, *order;
    /* XLNet: what the tokens before ids left (see tn_two_stream_args), one tensor per layer, in two arrays;
     * both may be NULL */
    tn_tensor *const *memory;
    tn_tensor       **memory_out;
    int               end_;
} TN_KEYWORDS_ONLY tn_bert_args;
TN_API tn_tensor  *tn_bert_run(tn_bert *m, tn_bert_args a); /* hidden states [B, T, dim], with .targets [N, dim] */

/* Heads, computed from y, the hidden states of tn_bert_forward. mlm_logits: logits over the vocabulary, [N, vocab], of
 * the tokens at positions `where` of the flattened [B · T] (i64 [N]; NULL: all), from y of .for_words. pooled: tanh of
 * a projection of the first token, [B, dim]. nsp_logits: [B, 2]; class 0: the second sentence follows the first. */
TN_API tn_tensor *tn_bert_mlm_logits(tn_bert *m, tn_tensor *y, tn_tensor *where);
TN_API tn_tensor *tn_bert_pooled(tn_bert *m, tn_tensor *y);
TN_API tn_tensor *tn_bert_nsp_logits(tn_bert *m, tn_tensor *y);
TN_API tn_tensor *tn_bert_replaced_logits(tn_bert *m, tn_tensor *y); /* logits [B, T]: above 0 for replaced tokens */

/* The training loss: the sum of the mean cross-entropy over masked tokens (0 if N is 0), that of .next, and the mean
 * binary cross-entropy of .replaced over all tokens except padding. Parts whose targets are NULL are omitted. */
typedef struct tn_bert_loss_args {
    int         zero_;
    tn_tensor  *ids, *types, *key_padding_mask; /* as in tn_bert_args */
    tn_tensor  *masked;                         /* i64 [N]: positions of the masked tokens in the flattened [B · T] */
    tn_tensor  *words;                          /* i64 [N]: their targets, token ids; required with .masked */
    tn_tensor  *next;                           /* i64 [B]: 0 if the second sentence follows the first, else 1 */
    tn_tensor  *replaced;                       /* bool [B, T]: true for replaced tokens */
    tn_tensor **word_loss, **next_loss;         /* out, may be NULL: these parts of the loss, detached */
    tn_bert    *shared;                         /* as in tn_bert_args */
    /* XLNet: .masked are the tokens to predict, which ids contains; order: see tn_permutation_mask. segment: tokens
     * of a segment; the text is read segment by segment, each with the memory of those before; 0: as one segment */
    tn_tensor *order;
    int64_t    segment;
    int        end_;
} TN_KEYWORDS_ONLY tn_bert_loss_args;
TN_API tn_tensor  *tn_bert_loss_run(tn_bert *m, tn_bert_loss_args b);
/* The loss of a batch of tn_mlm_source: a tn_fit_loss. segment: NULL, or the address of .segment, an int64_t. */
TN_API tn_tensor *tn_bert_fit_loss(void *bert, const tn_batch *b, void *segment);

/* ---- with texts -------------------------------------------------------------------------------------------------- */

typedef struct {
    int64_t mask; /* index of the [MASK] in the text, from 0 */
    int64_t id;
    double  probability;
} tn_bert_fill;
/* Predicts the tokens at each [MASK] (the tokenizer's mask token) of the text: the k most likely ones, best first, in
 * to[k · masks], which has room for `most`. Returns the number of masks; -1: raised, also if the text has none. */
TN_API int64_t tn_bert_fill_in(tn_bert *m, const tn_tokenizer *t, const char *text, int64_t k, int64_t most,
                               tn_bert_fill *to);

/* Writes the pseudo-log-likelihoods of n texts (Salazar and others, 2020), in nats, to to[n]: each token of a text is
 * masked in turn, and its log probabilities given all other tokens are summed; in eval mode, which is then restored.
 * Tokens of the tokenizer's template do not count. Texts are not truncated. A text has the same score in any
 * list. After an error all are NaN. */
TN_API tn_status tn_bert_scores(tn_bert *m, const tn_tokenizer *t, int64_t n, const char *const *texts, double *to);

typedef enum { TN_POOL_MEAN = 0, TN_POOL_FIRST, TN_POOL_MAX } tn_bert_pooling;
/* tn_bert_sentences reduces hidden states y [n, T, dim] to one vector per text, [n, dim]: the mean over tokens, the
 * first token, or the maximum. tn_bert_embed encodes n texts, truncates long ones, and returns vectors of norm 1. */
TN_API tn_tensor *tn_bert_sentences(tn_tensor *y, tn_tensor *key_padding_mask, tn_bert_pooling pooling);
TN_API tn_tensor *tn_bert_embed(tn_bert *m, const tn_tokenizer *t, int64_t n, const char *const *texts,
                                tn_bert_pooling pooling);

/* ---- Hugging Face directories ------------------------------------------------------------------------------------ */

/* Reads config.json and model.safetensors, or the files that its index names, or pytorch_model.bin. The model has no
 * heads that the weights lack (see its config); .left names unread heads. The model is in eval mode. */
TN_API tn_bert *tn_bert_load(const char *dir);
/* Writes both files into an existing directory. With norm_first, Hugging Face opens it as RobertaPreLayerNorm, without
 * the next-sentence head, or, if the activation is not gelu, rejects it: model_type is then "tenon-bert". */
TN_API tn_status tn_bert_save(tn_bert *m, const char *dir) TN_CHECKED;
TN_RETURNS_CONFIG_(TN_API tn_bert_config tn_bert_config_load(const char *dir);) /* on failure raises, .vocab is 0 */

TN_C_END_
#define tn_bert_new(...) TN_NEW_(tn_bert_create, tn_bert_config, TN_BERT_DEFAULTS, __VA_ARGS__)
#define tn_bert_forward(m, ...) \
    TN_CALL_(tn_bert_run(m, TN_ARGS1_(tn_bert_args, TN_NO_DEFAULTS_, ids, __VA_ARGS__, TN_END_)))
#define tn_bert_loss(m, ...) TN_CALL_(tn_bert_loss_run(m, TN_FILLED_(tn_bert_loss_args, TN_NO_DEFAULTS_, __VA_ARGS__)))
#endif
