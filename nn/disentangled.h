/* disentangled.h — DeBERTa's disentangled attention (He et al. 2021): a score also depends on an embedding of the
 * relative position of query and key, which is separate from the embeddings of the tokens. Part of nn.h: include that.
 *
 *     tn_blocks *m = tn_blocks_new(.layers = 12, .dim = 768, .heads = 12, .ff = 3072, .activation = tn_gelu,
 *                                  .attention.positions = tn_distances_new(
 *                                      .dim = 768, .of = {.distance = 512, .buckets = 256}));
 *     tn_tensor *y = tn_blocks_forward(m, x, .key_padding_mask = padding);
 *
 *   score(i, j) = (q_i · k_j + q_i · K r_ij + k_j · Q r_ij) / √(head_dim · (1 + number of position terms))
 *
 * r_ij is the embedding of the relative position i - j. Q and K are the projections of queries and keys, or others of
 * their own. The layers of a stack share the embeddings. */
#ifndef TENON_NN_DISENTANGLED_H
#define TENON_NN_DISENTANGLED_H

#include "modules.h"

TN_C_BEGIN_

/* The part's options. .c2p and .p2c: terms content to position, q_i · K r_ij, and position to content, k_j · Q r_ij. */
typedef struct tn_disentangled {
    int64_t distance;  /* largest relative position with an embedding of its own, without buckets; 0: none */
    int64_t buckets;   /* of each direction: positions up to buckets / 2 have one each, the others, up to .distance,
                        * share the rest, whose widths grow with the distance; 0: every position has an embedding */
    bool    c2p, p2c;  /* neither: both */
    bool    own_projs; /* Q and K are pos_query_proj and pos_key_proj, not those of the tokens (share_att_key: false) */
    bool    no_norm;   /* no layer norm of the embeddings */
} tn_disentangled;

/* The positions of a stack: pass it as .positions. Needs heads of keys for each head, no cache and padded batches. */
typedef struct tn_distances_config {
    int             zero_;
    int64_t         dim; /* width of the attention */
    tn_disentangled of;
    double eps      TN_IS(1e-5); /* epsilon of the norm */
    double          dropout;     /* dropout probability of the embeddings, drawn in each layer */
    tn_dtype        dtype;
    int             end_;
} TN_KEYWORDS_ONLY tn_distances_config;
#define TN_DISTANCES_DEFAULTS .eps = 1e-5
typedef struct {
    tn_module       base;
    tn_disentangled of;
    tn_tensor      *weight; /* [2 · (buckets, or distance without buckets), dim] */
    tn_layer_norm  *norm;   /* NULL with .no_norm */
    tn_dropout     *dropout;
} tn_distances;
TN_API tn_distances *tn_distances_create(tn_distances_config c);
/* The normed embeddings of the relative positions in a sequence of `length` tokens, [R, dim], and *at, i64 [length,
 * length]: the row of each query and key. */
TN_API tn_tensor *tn_distances_forward(tn_distances *m, int64_t length, tn_tensor **at);

TN_C_END_
#define tn_distances_new(...) TN_NEW_(tn_distances_create, tn_distances_config, TN_DISTANCES_DEFAULTS, __VA_ARGS__)
#endif
