/* attention.h — attention as modules, and the cache of keys and values for decoding. Part of nn.h: include that.
 *
 *     tn_mha    *attn = tn_mha_new(.dim = 512, .heads = 8);
 *     tn_tensor *y = tn_mha_forward(attn, x, x, x, .causal = true);
 *
 * A mask says in its name what true means: what is blocked may not be attended, and takes no part whatever it holds. A
 * query that may attend to nothing gets 0, and gradient 0. */
#ifndef TENON_NN_ATTENTION_H
#define TENON_NN_ATTENTION_H

#include "module.h"
#include "modules.h"

#ifdef __cplusplus
extern "C" {
#endif

/* ---- masks ------------------------------------------------------------------------------------------------------- */

TN_API tn_tensor *tn_causal_mask(int64_t length); /* f32 [length, length]: -inf above the diagonal, else 0: added */
TN_API tn_tensor *tn_padding_mask(tn_tensor *tokens, int64_t padding); /* bool like tokens: true where one is padding */

/* ---- keys and values of what has been read so far ---------------------------------------------------------------- */

/* Owned by the program: no module holds one. All of its memory is allocated when it is made. To be used without
 * recording (tn_no_grad_begin). Decoding token by token with a cache gives the same bits as reading all at once with
 * .causal. A call that fails leaves the cache as it was. */
typedef struct tn_kv_cache tn_kv_cache;
typedef struct tn_kv_cache_config {
    int            zero_;
    int64_t layers TN_IS(1);
    int64_t        batch;           /* the most rows ... */
    int64_t        length;          /* ... and positions of a row */
    int64_t        memory_length;   /* the most positions of a memory, for cross-attention; 0: none */
    int64_t        heads, head_dim; /* of the layers' keys and values: kv_heads, and mostly dim / heads */
    tn_dtype       dtype;
    int            end_;
} TN_KEYWORDS_ONLY tn_kv_cache_config;
#define TN_KV_CACHE_DEFAULTS .layers = 1
TN_API tn_kv_cache *tn_kv_cache_create(tn_kv_cache_config c);
TN_API void         tn_kv_cache_free(tn_kv_cache *c);
TN_API int64_t   tn_kv_cache_length(const tn_kv_cache *c); /* positions that every layer holds: where the next begin */
TN_API int64_t   tn_kv_cache_rows(const tn_kv_cache *c);   /* of the batch that is in it; 0 if it is empty */
TN_API tn_status tn_kv_cache_trim(tn_kv_cache *c, int64_t length); /* drops the positions from `length` on */
TN_API void      tn_kv_cache_clear(tn_kv_cache *c);                /* drops all, the memory too */
/* Drops `count` positions from `from` on; those behind move up: from 0 on they keep their numbers (rotary). */
TN_API tn_status tn_kv_cache_forget(tn_kv_cache *c, int64_t from, int64_t count);
/* Row i becomes what row index[i] was; there may be more or fewer than before. For beams. index: i64 or i32 [rows]. */
TN_API tn_status tn_kv_cache_reorder(tn_kv_cache *c, const tn_tensor *index);

/* ---- several heads: PyTorch's MultiheadAttention ----------------------------------------------------------------- */

typedef struct tn_mha_config {
    int     zero_;
    int64_t dim, heads;
    int64_t kdim, vdim; /* 0: dim */
    /* Heads of keys and values, each shared by heads / kv_heads heads of queries, whose keys are not copied. If
     * kv_heads is given (even if equal to heads), or head_dim, the projections are three modules, as in Hugging Face's
     * models. */
    int64_t        kv_heads, head_dim;   /* 0: heads, dim / heads */
    double         scale;                /* of the scores; 0: 1/√head_dim */
    double         dropout;              /* of the weights; 0: none */
    int64_t        window;               /* query t sees keys t - window + 1 … t, with .causal; 0: keys 0 … t */
    bool           rotary;               /* queries and keys are rotated by their positions: tn_rope */
    tn_rope_config rope;                 /* ... how; .dim 0: all of a head */
    bool           no_bias, no_out_bias; /* none at all; none of the last projection */
    bool           time_first;           /* [T, B, dim], as is PyTorch's default */
    tn_dtype       dtype;
    int            end_;
} TN_KEYWORDS_ONLY tn_mha_config;
#define TN_MHA_DEFAULTS .rope = {TN_ROPE_DEFAULTS}
typedef struct {
    tn_module      base;
    int64_t        dim, heads, kdim, vdim, kv_heads, head_dim;
    int64_t        made_heads, made_kv_heads; /* before any was taken out: tn_mha_prune */
    int64_t       *left;                      /* [heads]: the numbers that those left had then */
    int64_t        window;
    double         scale, dropout;
    bool           time_first, rotary;
    tn_rope_config rope;
    tn_tensor     *in_proj_weight; /* [3 dim, dim]: of queries, keys, values; or, if kdim ... */
    tn_tensor     *q_proj_weight, *k_proj_weight,
        *v_proj_weight;                  /* ... or vdim differ, [dim, dim], [dim, kdim], [dim, vdim] */
    tn_tensor *in_proj_bias;             /* [3 dim] */
    tn_linear *q_proj, *k_proj, *v_proj; /* instead of all these, with kv_heads */
    tn_linear *out_proj;
} tn_mha;
TN_API tn_mha *tn_mha_create(tn_mha_config c); /* tn_call(m, x) is self-attention without a mask */

typedef struct tn_mha_args {
    int        zero_;
    tn_tensor *query, *key, *value; /* [B, T, dim], [B, S, kdim], [B, S, vdim] */
    /* bool (true: may not be attended) or floating (added to the scores): [T, S], PyTorch's [B·heads, T, S], or
     * [B, heads, T, S], where B and heads may be 1 */
    tn_tensor  *blocked;
    tn_tensor  *blocked_keys;     /* bool [B, S]: true is padding */
    bool        causal;           /* query t sees keys 0 … t */
    tn_tensor **weights;          /* out, may be NULL: [B, T, S], the mean over the heads, after dropout */
    bool        weights_per_head; /* ... [B, heads, T, S] instead */
    /* With a cache the keys and values are those of layer `layer` so far, and after them the ones given: S, in the
     * masks, too, counts all of them, and causal goes on where they end. */
    tn_kv_cache *cache;
    int64_t      layer;
    bool         memory; /* keys and values are a memory: stored by the first call, later ones may leave them out */
    tn_tensor   *angles; /* rotary: of x's positions, as tn_rope_angles makes them; NULL: those after the cache's */
    int          end_;
} TN_KEYWORDS_ONLY tn_mha_args;
TN_API tn_tensor  *tn_mha_run(tn_mha *m, tn_mha_args a); /* [B, T, dim] */
/* The angles of so many positions from offset on, to be given to all layers like m; NULL if m is not rotary. */
TN_API tn_tensor *tn_mha_angles(const tn_mha *m, int64_t offset, int64_t length);

/* ---- one query against a memory, as decoders of recurrent networks do -------------------------------------------- */

/* score(q, h) = q · h; .general: q W h; .scaled: divided by √memory */
typedef struct tn_dot_attention_config {
    int      zero_;
    int64_t  query, memory; /* their sizes; query 0: memory */
    bool     general, scaled;
    tn_dtype dtype;
    int      end_;
} TN_KEYWORDS_ONLY tn_dot_attention_config;
typedef struct {
    tn_module  base;
    int64_t    query, memory;
    bool       scaled;
    tn_linear *query_proj; /* Wᵀ, without bias; NULL if not general */
} tn_dot_attention;
TN_API tn_dot_attention *tn_dot_attention_create(tn_dot_attention_config c);

/* Bahdanau: score(q, h) = vᵀ tanh(W_q q + W_h h + b) */
typedef struct tn_additive_attention_config {
    int      zero_;
    int64_t  query, memory;
    int64_t  hidden; /* 0: query */
    tn_dtype dtype;
    int      end_;
} TN_KEYWORDS_ONLY tn_additive_attention_config;
typedef struct {
    tn_module  base;
    int64_t    query, memory, hidden;
    tn_linear *query_proj, *memory_proj, *score; /* W_q; W_h and b; v */
} tn_additive_attention;
TN_API tn_additive_attention *tn_additive_attention_create(tn_additive_attention_config c);

typedef struct tn_memory_args {
    int         zero_;
    tn_tensor  *query;        /* [B, T, query], or [B, query] */
    tn_tensor  *memory;       /* [B, S, memory] */
    tn_tensor  *blocked_keys; /* bool [B, S]: true is padding */
    tn_tensor  *keys;         /* what is compared, if not memory: [B, S, memory]; additive: see below */
    tn_tensor **weights;      /* out, may be NULL: [B, T, S], or [B, S] */
    int         end_;
} TN_KEYWORDS_ONLY tn_memory_args;
/* Σ weight · memory: [B, T, memory], or [B, memory] */
TN_API tn_tensor *tn_dot_attention_run(tn_dot_attention *m, tn_memory_args a);
TN_API tn_tensor *tn_additive_attention_run(tn_additive_attention *m, tn_memory_args a);
/* W_h h + b, [B, S, hidden]: made once and given as .keys, it need not be made again for each query. */
TN_API tn_tensor *tn_additive_attention_keys(tn_additive_attention *m, tn_tensor *memory);

/* ---- positions: added to x [B, T, dim] (.time_first: [T, B, dim]), then dropout -------------------------------- */

typedef struct tn_positions_config {
    int      zero_;
    int64_t  dim, length; /* length: of the longest x; 0: 5000 for sinusoids */
    double   dropout;
    bool     time_first;
    tn_dtype dtype;
    int      end_;
} TN_KEYWORDS_ONLY tn_positions_config;
typedef struct {
    tn_module  base;
    int64_t    dim, length;
    double     dropout;
    bool       time_first;
    tn_tensor *weight; /* [length, dim]: the parameter "weight", or for sinusoids "pe", which is not saved */
} tn_positions;
/* pe[t, 2i] = sin(t / 10000^(2i/dim)), pe[t, 2i+1] = cos of the same */
TN_API tn_positions *tn_sinusoidal_positions_create(tn_positions_config c);
TN_API tn_positions *tn_learned_positions_create(tn_positions_config c);                 /* N(0, 1), as an embedding */
TN_API tn_tensor    *tn_positions_forward(tn_positions *m, tn_tensor *x, int64_t start); /* x[:, 0] stands at `start` */

/* A learned number for each head and distance from a query to a key, added to the scores, as in T5: a bucket for each
 * short distance, then buckets that grow up to the one for `distance` and beyond; half of them each way, or .causal. */
typedef struct tn_relative_positions_config {
    int             zero_;
    int64_t         heads;
    int64_t buckets TN_IS(32), distance TN_IS(128);
    bool            causal; /* keys behind the query share a bucket, as a causal mask hides them */
    tn_dtype        dtype;
    int             end_;
} TN_KEYWORDS_ONLY tn_relative_positions_config;
#define TN_RELATIVE_POSITIONS_DEFAULTS .buckets = 32, .distance = 128
typedef struct {
    tn_module  base;
    int64_t    heads, buckets, distance;
    bool       causal;
    tn_tensor *weight; /* [buckets, heads] */
} tn_relative_positions;
TN_API tn_relative_positions *tn_relative_positions_create(tn_relative_positions_config c);
/* [1, heads, queries, keys], to be given as .blocked; the queries are the last of the keys. */
TN_API tn_tensor *tn_relative_positions_forward(tn_relative_positions *m, int64_t queries, int64_t keys);

#ifdef __cplusplus
}
#else
#define tn_relative_positions_new(...) \
    TN_NEW_(tn_relative_positions_create, tn_relative_positions_config, TN_RELATIVE_POSITIONS_DEFAULTS, __VA_ARGS__)
#define tn_sinusoidal_positions_new(...) \
    TN_NEW_(tn_sinusoidal_positions_create, tn_positions_config, TN_NO_DEFAULTS_, __VA_ARGS__)
#define tn_learned_positions_new(...) \
    TN_NEW_(tn_learned_positions_create, tn_positions_config, TN_NO_DEFAULTS_, __VA_ARGS__)
#define tn_kv_cache_new(...) TN_NEW_(tn_kv_cache_create, tn_kv_cache_config, TN_KV_CACHE_DEFAULTS, __VA_ARGS__)
#define tn_mha_new(...) TN_NEW_(tn_mha_create, tn_mha_config, TN_MHA_DEFAULTS, __VA_ARGS__)
#define tn_mha_forward(m, ...) \
    TN_CALL_(tn_mha_run(m, TN_ARGS3_(tn_mha_args, TN_NO_DEFAULTS_, query, key, value, __VA_ARGS__, .zero_ = 0)))
#define tn_dot_attention_new(...) \
    TN_NEW_(tn_dot_attention_create, tn_dot_attention_config, TN_NO_DEFAULTS_, __VA_ARGS__)
#define tn_dot_attention_forward(m, ...) \
    TN_CALL_(                            \
        tn_dot_attention_run(m, TN_ARGS2_(tn_memory_args, TN_NO_DEFAULTS_, query, memory, __VA_ARGS__, .zero_ = 0)))
#define tn_additive_attention_new(...) \
    TN_NEW_(tn_additive_attention_create, tn_additive_attention_config, TN_NO_DEFAULTS_, __VA_ARGS__)
#define tn_additive_attention_forward(m, ...) \
    TN_CALL_(tn_additive_attention_run(       \
        m, TN_ARGS2_(tn_memory_args, TN_NO_DEFAULTS_, query, memory, __VA_ARGS__, .zero_ = 0)))
#endif
#endif
