/* bert.h — BERT and its family, RoBERTa, DistilBERT, ALBERT, ELECTRA: encoders that learn to say which words have been
 * hidden. Part of models.h: include that.
 *
 *     tn_bert_config c = tn_bert_size("mini");
 *     c.vocab = 8000;
 *     tn_bert   *bert = tn_bert_create(c);
 *     tn_tensor *loss = tn_bert_loss(bert, .ids = ids, .blocked_keys = padding, .masked = where, .words = what);
 *
 *     tn_bert *bert = tn_bert_load("bert-base-uncased");          // a directory as Hugging Face lays it out
 *     tn_tensor *y = tn_bert_forward(bert, ids);                  // [B, T, dim]
 *
 * Names are Hugging Face's for BERT, so that messages and files speak of the same things. */
#ifndef TENON_MODELS_BERT_H
#define TENON_MODELS_BERT_H

#include "../data/data.h"
#include "../nn/nn.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef enum {
    TN_BERT = 0,
    TN_ROBERTA,     /* positions are counted from behind the padding's id, and padding stands at it; no next sentence */
    TN_XLM_ROBERTA, /* the same, with another name in files */
    TN_DISTILBERT,  /* no segments, pooler and next sentence */
    TN_ALBERT,      /* layers share weights; .next is whether two pieces of text stand in their order */
    TN_ELECTRA      /* no pooler and next sentence; .replaced: the discriminator, else the generator */
} tn_bert_kind;

typedef struct tn_bert_config {
    int                      zero_;
    tn_bert_kind             kind;
    int64_t                  vocab; /* words: rows of the embedding */
    int64_t dim              TN_IS(256), layers TN_IS(4), heads TN_IS(4);
    int64_t                  ff;         /* 0: 4 dim */
    int64_t                  embedding;  /* ALBERT, ELECTRA: the width of the embeddings, projected to dim; 0: dim */
    int64_t                  groups;     /* ALBERT: layers share so many blocks; 0: 1 */
    int64_t positions        TN_IS(512); /* the longest text, in pieces */
    int64_t types            TN_IS(2);   /* segments; DistilBERT: none */
    int64_t                  padding;    /* the id of padding, whose embedding is zero; negative: none */
    double dropout           TN_IS(0.1);
    double attention_dropout TN_IS(0.1);   /* of the attention's weights */
    double head_dropout      TN_IS(-1);    /* of heads; below 0: ALBERT 0.1, DistilBERT 0.2, else as dropout */
    double init              TN_IS(0.02);  /* the standard deviation of fresh weights */
    double eps               TN_IS(1e-12); /* of the norms */
    const char              *activation;   /* by Hugging Face's name; NULL: "gelu" */
    bool                     norm_first;   /* norms before attention and feed-forward, and one behind the last layer */
    bool                     no_words;     /* no head for hidden words */
    bool                     no_pooler;    /* no pooler, and so ... */
    bool                     no_next;      /* ... no head for the next sentence */
    bool                     replaced;     /* ELECTRA: a head that tells replaced words */
    int                      end_;
} TN_KEYWORDS_ONLY tn_bert_config;
#define TN_BERT_DEFAULTS                                                                                         \
    .dim = 256, .layers = 4, .heads = 4, .positions = 512, .types = 2, .dropout = 0.1, .attention_dropout = 0.1, \
    .head_dropout = -1, .init = 0.02, .eps = 1e-12

typedef struct {
    tn_module      base;
    tn_bert_config config;                    /* all of it, with the defaults put in */
    tn_embedding  *words, *positions, *types; /* types and what follows the encoder: NULL where there is none */
    tn_layer_norm *norm;
    tn_dropout    *dropout, *head_dropout;
    tn_linear     *project; /* from .embedding to .dim; NULL where they are one */
    tn_transformer_encoder *encoder;
    tn_mlm_head            *head;
    tn_linear              *pooler, *next, *replaced, *replaced_out;
    char                    left[256]; /* heads that a directory has besides, as "classifier.weight, …" */
} tn_bert;

TN_API const char *tn_bert_kind_name(tn_bert_kind kind); /* "BERT", "XLM-RoBERTa" … */
/* The published sizes: "tiny", "mini", "small", "medium", "base", "large"; vocab is left 0. Raises for other names. */
TN_RETURNS_CONFIG_(TN_API tn_bert_config tn_bert_size(const char *name);)
TN_API tn_bert *tn_bert_create(tn_bert_config c);

/* ---- running it -------------------------------------------------------------------------------------------------- */

typedef struct tn_bert_args {
    int         zero_;
    tn_tensor  *ids;          /* i64 or i32 [B, T] */
    tn_tensor  *types;        /* the same; NULL: all 0; looked at only where there are segments */
    tn_tensor  *blocked_keys; /* bool [B, T]: true is padding; NULL: none */
    tn_tensor **weights;      /* out, may be NULL: an array, for each layer [B, heads, T, T] */
    int         end_;
} TN_KEYWORDS_ONLY tn_bert_args;
TN_API tn_tensor  *tn_bert_run(tn_bert *m, tn_bert_args a); /* a vector for each piece: [B, T, dim] */

/* From what tn_bert_forward gave: a score for each word of the vocabulary, for the pieces at those places of the
 * flattened [B · T] (i64 [N]; NULL: all): [N, vocab]; one vector for the whole, tanh of a projection of the first
 * piece's: [B, dim]; and how well the second sentence follows the first: [B, 2], of which 0 says that it does. */
TN_API tn_tensor *tn_bert_word_scores(tn_bert *m, tn_tensor *y, tn_tensor *where);
TN_API tn_tensor *tn_bert_pooled(tn_bert *m, tn_tensor *y);
TN_API tn_tensor *tn_bert_next_scores(tn_bert *m, tn_tensor *y);
TN_API tn_tensor *tn_bert_replaced_scores(tn_bert *m, tn_tensor *y); /* [B, T]: above 0 where a piece is wrong */

/* What it is trained with, added up: the mean cross-entropy over the hidden words (0 without any), that of .next, and
 * of .replaced over all pieces but padding, if given. */
typedef struct tn_bert_loss_args {
    int         zero_;
    tn_tensor  *ids, *types, *blocked_keys; /* as above */
    tn_tensor  *masked;                     /* i64 [N]: the places of the hidden words in the flattened [B · T] ... */
    tn_tensor  *words;                      /* ... and which words they are, i64 [N] */
    tn_tensor  *next;                       /* i64 [B]: 0 where the second sentence follows the first, else 1 */
    tn_tensor  *replaced;                   /* bool [B, T] */
    tn_tensor **word_loss, **next_loss;     /* out, may be NULL: the parts, without a tape */
    int         end_;
} TN_KEYWORDS_ONLY tn_bert_loss_args;
TN_API tn_tensor  *tn_bert_loss_run(tn_bert *m, tn_bert_loss_args b);

/* ---- with texts -------------------------------------------------------------------------------------------------- */

typedef struct {
    int64_t mask; /* which [MASK] of the text, from 0 */
    int64_t id;
    double  probability;
} tn_bert_fill;
/* What stands where the text has [MASK], or what the tokenizer calls so: for each, the k likeliest pieces, best first,
 * in to[k · masks]; `most` is how many fit there. Returns how many masks there are; -1: raised, also if none is. */
TN_API int64_t tn_bert_fill_in(tn_bert *m, const tn_tokenizer *t, const char *text, int64_t k, int64_t most,
                               tn_bert_fill *to);

typedef enum { TN_POOL_MEAN = 0, TN_POOL_FIRST, TN_POOL_MAX } tn_bert_pooling;
/* Of what tn_bert_forward gave, [n, T, dim], a vector for each text, [n, dim]: its pieces' mean, the first one's, or
 * the largest. And the whole way: n texts, cut where they are too long, to vectors of length 1. */
TN_API tn_tensor *tn_bert_sentences(tn_tensor *y, tn_tensor *blocked_keys, tn_bert_pooling pooling);
TN_API tn_tensor *tn_bert_embed(tn_bert *m, const tn_tokenizer *t, int64_t n, const char *const *texts,
                                tn_bert_pooling pooling);

/* ---- directories as Hugging Face has them ------------------------------------------------------------------------ */

/* Reads config.json and model.safetensors, or the files that its index names, or pytorch_model.bin. Heads that the
 * weights lack are left out, as the config says then; .left names heads it was tuned for. The model is in eval mode. */
TN_API tn_bert *tn_bert_load(const char *dir);
/* Writes both into a directory that is there. A BERT with norm_first Hugging Face opens as RobertaPreLayerNorm, without
 * the next sentence; with another activation than gelu the config says "tenon-bert", so that it is refused there. */
TN_API tn_status tn_bert_save(tn_bert *m, const char *dir) TN_CHECKED;
TN_RETURNS_CONFIG_(
    TN_API tn_bert_config tn_bert_config_load(const char *dir);) /* .vocab = 0 and an error standing if it fails */

#ifdef __cplusplus
}
#else
#define tn_bert_new(...) TN_NEW_(tn_bert_create, tn_bert_config, TN_BERT_DEFAULTS, __VA_ARGS__)
#define tn_bert_forward(m, ...) \
    TN_CALL_(tn_bert_run(m, TN_ARGS1_(tn_bert_args, TN_NO_DEFAULTS_, ids, __VA_ARGS__, .zero_ = 0)))
#define tn_bert_loss(m, ...) \
    TN_CALL_(tn_bert_loss_run(m, ((tn_bert_loss_args){TN_NO_DEFAULTS_, TN_NAMED_, __VA_ARGS__})))
#endif
#endif
