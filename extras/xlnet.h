/* xlnet.h — the layers of XLNet (Yang et al. 2019): attention with relative positions, segments and a memory, in
 * two streams. Part of extras.h: include that.
 * tn_extras_register adds the kind TN_XLNET of tn_bert, which consists of them.
 *
 *     tn_two_stream *m = tn_two_stream_new(.layers = 6, .dim = 256, .heads = 4);
 *     tn_tensor *blocked = tn_permutation_mask(NULL, where, 2, 128);   // where: tokens to predict, of [2 · 128]
 *     tn_tensor *g = tn_zeros(TN_SHAPE(tn_numel(where), 256));         // in XLNet a learned vector, for all the same
 *     tn_tensor *y = tn_two_stream_forward(m, x, .blocked = blocked, .query = g, .targets = where); // [N, 256]
 *
 * The content stream is x, a vector per token; a token sees itself. The query stream has a vector per token to predict;
 * it sees the vectors of x that the token may see, but not the token itself. Both use the same weights. With the query
 * q at position i, the key k at position j, and s the same for two tokens of one segment, another one for others, a
 * score is ((q + r_w_bias) · k + (q + r_r_bias) · R r(i - j) + (q + r_s_bias) · seg_embed[s]) / √head_dim. r(i - j) are
 * sines and cosines of the distance, so that a text may be of any length. A token that sees no key gets 0 from the
 * attention. Parameters have Hugging Face's names and shapes below layers.*. */
#ifndef TENON_EXTRAS_XLNET_H
#define TENON_EXTRAS_XLNET_H

#include "../nn/nn.h"

TN_C_BEGIN_

typedef struct tn_two_stream_config {
    int            zero_;
    int64_t layers TN_IS(1);
    int64_t        dim, heads; /* dim must be even and a multiple of heads */
    int64_t ff     TN_IS(2048);
    double dropout TN_IS(0.1); /* of the sinusoids, attention weights, hidden layer and results */
    double eps     TN_IS(1e-12);
    tn_tensor *(*activation)(tn_tensor *x); /* NULL: tn_gelu */
    bool     causal;                        /* a token sees no later ones ("uni") */
    int64_t  clamp;                         /* larger distances count as this one; 0: no limit */
    tn_dtype dtype;
    int      end_;
} TN_KEYWORDS_ONLY tn_two_stream_config;
#define TN_TWO_STREAM_DEFAULTS .layers = 1, .ff = 2048, .dropout = 0.1, .eps = 1e-12
typedef struct {
    tn_module      base;
    tn_tensor     *q, *k, *v, *o, *r;              /* [dim, heads, head_dim]: x q; o is applied as its transpose */
    tn_tensor     *r_w_bias, *r_r_bias, *r_s_bias; /* [heads, head_dim] */
    tn_tensor     *seg_embed;                      /* [2, heads, head_dim]: of the same, of another segment */
    tn_linear     *layer_1, *layer_2;
    tn_layer_norm *attention_norm, *ff_norm;
    tn_dropout    *dropout;
    tn_tensor *(*activation)(tn_tensor *x);
} tn_two_stream_layer;
typedef struct {
    tn_module       base;
    int64_t         dim, heads, clamp;
    bool            causal;
    tn_dropout     *dropout;
    tn_module_list *layers; /* tn_two_stream_layer */
} tn_two_stream;
TN_API tn_two_stream *tn_two_stream_create(tn_two_stream_config c);

typedef struct tn_two_stream_args {
    int        zero_;
    tn_tensor *x;                /* [B, T, dim] */
    tn_tensor *blocked;          /* bool [B, T, T], true: token i may not see token j; NULL: all see all */
    tn_tensor *key_padding_mask; /* padding mask, bool [B, T]; NULL: no padding */
    tn_tensor *segments;         /* i64 [B, T]: only whether two are equal matters; NULL: all are */
    tn_tensor *query, *targets;  /* [N, dim], and i64 [N]: their positions in the flattened [B · T]; both or none */
    /* What each layer read of the tokens before x, [B, M, dim], in segment 0: keys that all tokens see. NULL: none.
     * memory_out, may be NULL: what layers read now, appended, detached; of x the first `reuse` tokens (0: all), then
     * the last memory_length of all (0: all); another array than memory. One tensor per layer. */
    tn_tensor *const *memory;
    tn_tensor       **memory_out;
    int64_t           memory_length, reuse;
    tn_tensor       **content; /* output, may be NULL: the content stream, with .query, which else is not complete */
    tn_tensor       **weights; /* output, may be NULL: of each layer the content stream's, [B, heads, T, M + T] */
    int               end_;
} TN_KEYWORDS_ONLY tn_two_stream_args;
TN_API tn_tensor  *tn_two_stream_run(tn_two_stream *m, tn_two_stream_args a); /* [N, dim]; without query [B, T, dim] */

/* The .blocked of a factorisation order. targets i64 [N]: tokens to predict, in the flattened [rows · length]; order
 * i64 [rows, length]: a rank from 0 for each of them, and for other tokens that they may not all see (XLNet's [SEP] and
 * [CLS]); -1 for the rest, which all tokens see and which sees none of these. A target sees lower ranks. order NULL:
 * no token sees a target. */
TN_API tn_tensor *tn_permutation_mask(tn_tensor *order, tn_tensor *targets, int64_t rows, int64_t length);

TN_C_END_
#define tn_two_stream_new(...) TN_NEW_(tn_two_stream_create, tn_two_stream_config, TN_TWO_STREAM_DEFAULTS, __VA_ARGS__)
#define tn_two_stream_forward(m, ...) \
    TN_CALL_(tn_two_stream_run(m, TN_ARGS1_(tn_two_stream_args, TN_NO_DEFAULTS_, x, __VA_ARGS__, TN_END_)))
#endif
