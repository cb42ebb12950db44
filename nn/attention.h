/* attention.h — attention modules, positions, and the cache of keys and values for decoding. Part of nn.h: include
 * that.
 *
 *     tn_mha    *attn = tn_mha_new(.dim = 512, .heads = 8);
 *     tn_tensor *y = tn_mha_forward(attn, x, x, x, .causal = true);
 *
 * The name of a mask states what true means: a blocked key may not be attended to, and its values have no effect, even
 * if they are NaN. A query whose keys are all blocked gets the result 0 and the gradient 0. */
#ifndef TENON_NN_ATTENTION_H
#define TENON_NN_ATTENTION_H

#include "disentangled.h"
#include "module.h"
#include "modules.h"

TN_C_BEGIN_

/* ---- masks ------------------------------------------------------------------------------------------------------- */

TN_API tn_tensor *tn_causal_mask(int64_t length); /* f32 [length, length], to add: -inf above the diagonal, else 0 */
TN_API tn_tensor *tn_padding_mask(tn_tensor *tokens, int64_t padding); /* bool, shape of tokens: token == padding */

/* ---- batches without padding ------------------------------------------------------------------------------------- */

/* The rows of a batch [B, T, ...] that are not padding, one sequence after another: [1, N, ...]. Modules that are
 * passed a tn_unpadded do no work for padding. Stacks of blocks do it all if asked: .skip_padding, transformer.h. */
typedef struct tn_unpadded {
    tn_tensor *offsets;       /* i64 [B + 1]: the first row of each sequence, and N */
    tn_tensor *rows;          /* i64 [N]: the index of each row in the padded batch [B · T] */
    int64_t    batch, length; /* B, T */
    bool       in_order;      /* no sequence has padding before or between its rows */
} tn_unpadded;
TN_API tn_unpadded tn_unpad(tn_tensor *padding); /* from a padding mask, bool [B, T]; after an error .rows is NULL */
TN_API tn_tensor  *tn_unpad_rows(tn_unpadded u, tn_tensor *x); /* [B, T, ...] to [1, N, ...] */
TN_API tn_tensor  *tn_pad_rows(tn_unpadded u, tn_tensor *x);   /* and back, with 0 in the rows of padding */
/* For a model m with parts before its stack: x's rows that are not padding, and *u. Or x itself, with u->rows NULL: no
 * padding, or not only at the ends; padding is NULL or does not fit x; hooks in m or a tn_look would see the rows. */
TN_API tn_tensor *tn_skip_padding(void *m, tn_tensor *x, tn_tensor *padding, tn_unpadded *u);

/* ---- the cache of keys and values of tokens already read --------------------------------------------------------- */

/* Owned by the program, never by a module. All memory is allocated at creation. Use it without recording
 * (tn_no_grad_begin). Decoding token by token with a cache gives the same bits as one call over the whole text with
 * .causal; if the cache is int8, as one call with an empty cache. A call that fails leaves the cache unchanged. */
typedef struct tn_kv_cache tn_kv_cache;
typedef struct tn_kv_cache_config {
    int            zero_;
    int64_t layers TN_IS(1);
    int64_t        batch;                 /* maximum number of rows */
    int64_t        length, memory_length; /* maximum positions per row; of a memory for cross-attention, 0: none */
    int64_t        heads, head_dim;       /* heads of the keys (kv_heads) and their width (dim / heads, or .head_dim) */
    tn_dtype       dtype;                 /* of the keys and values */
    bool           int8; /* store them in 8 bits: head_dim + 4 bytes for a head and position (tn_int8_rows); not f64 */
    int            end_;
} TN_KEYWORDS_ONLY tn_kv_cache_config;
#define TN_KV_CACHE_DEFAULTS .layers = 1
TN_API tn_kv_cache *tn_kv_cache_create(tn_kv_cache_config c);
TN_API void         tn_kv_cache_free(tn_kv_cache *c);
TN_API int64_t   tn_kv_cache_length(const tn_kv_cache *c); /* positions stored in every layer; the next one's index */
TN_API int64_t   tn_kv_cache_rows(const tn_kv_cache *c);   /* rows of the batch it stores; 0 if it is empty */
TN_API tn_status tn_kv_cache_trim(tn_kv_cache *c, int64_t length); /* removes positions `length` and later */
TN_API void      tn_kv_cache_clear(tn_kv_cache *c);                /* removes all positions and the memory */
/* Removes positions `from` … `from` + `count` - 1 and moves later ones up. If `from` is 0, later positions keep their
 * numbers for rotary angles; else see tn_blocks_forget. */
TN_API tn_status tn_kv_cache_forget(tn_kv_cache *c, int64_t from, int64_t count);
/* Sets row i to the old row index[i]; the number of rows may change. For beam search. index: i64 or i32 [rows]. */
TN_API tn_status tn_kv_cache_reorder(tn_kv_cache *c, const tn_tensor *index);
/* A step that adds one position, as a tn_replay (autograd/replay.h): with small models in two thirds of the time.
 *
 *     tn_tensor   *next(void *user); // a step as for tn_replay_record, which adds a position to the cache
 *     tn_kv_cache *cache = tn_blocks_cache(gpt->blocks, 1, 200, 0);
 *     ... the prompt ...
 *     tn_replay *r = tn_kv_cache_record(cache, next, cache); // runs the step once; the cache is unchanged
 *     tn_tensor *logits = tn_kv_cache_replay(cache, r);      // adds a position; instead of tn_replay_run
 *
 * Both give the bits of the step without a replay. The cache must have positions when the step is recorded, and as many
 * rows in each replay; a cache has one replay, a new one replaces it. The step reads the position from tn_kv_cache_at
 * instead of tn_kv_cache_length. Its attention must be causal self-attention in tn_blocks without further arguments,
 * not under autocast, not while a tn_look is open; otherwise TN_EUNSUPPORTED. An error leaves the cache unchanged. */
TN_API tn_replay *tn_kv_cache_record(tn_kv_cache *c, tn_tensor *(*step)(void *user), void *user);
TN_API tn_tensor *tn_kv_cache_replay(tn_kv_cache *c, tn_replay *r);
TN_API tn_tensor *tn_kv_cache_at(const tn_kv_cache *c); /* recorded step: i64 [1], its position; of joined caches:
                                                           i64 [n, 1]; otherwise NULL */
/* Caches of n texts of different lengths as the cache of one step that adds a token to each, ids [n, 1]: the step reads
 * the weights once for all of them, and each row has the bits of a step of its own. Each cache has one row, of the
 * same model, and has read its text's first tokens. The result is for one step; freeing it leaves the caches.
 *
 *     tn_kv_cache *all = tn_kv_cache_join(n, caches);
 *     tn_tensor   *logits = tn_lm_run(gpt, (tn_decoder_args){.ids = ids, .cache = all, .last = true}); // [n, 1, vocab]
 *     tn_kv_cache_free(all);
 *
 * The step is as for tn_kv_cache_record. An error in tn_blocks leaves the caches unchanged; after an error in a later
 * layer, tn_kv_cache_trim removes the token. tn_live (models/live.h) does this. */
TN_API tn_kv_cache *tn_kv_cache_join(int64_t n, tn_kv_cache *const *each);

/* ---- positions: a part of attention ------------------------------------------------------------------------------ */

/* Where the queries and keys of a call are, and what the positions have computed from that for all layers. */
enum { TN_PLACED = 2 };
typedef struct tn_placed {
    struct tn_mha *attention;       /* the module that calls */
    int64_t        first, queries;  /* queries are at positions first, first + 1, …, and the last keys at the same */
    int64_t        keys;            /* number of keys, with those in the cache */
    tn_tensor     *at;              /* unpadded batch: the queries' positions, i64 [1, queries]; else NULL */
    tn_kv_cache   *cache;           /* may be NULL */
    tn_tensor     *made[TN_PLACED]; /* results of .place: angles, a table's rows, … */
} tn_placed;

/* A position scheme is a module whose tn_class has .positions, a struct of functions, each of which may be NULL. It may
 * be the part of many attentions, which share its parameters: its owner is the stack, block or tn_mha that was created
 * with it first, and frees it, also if creating that fails. */
typedef struct tn_position_ops {
    bool (*join)(void          *m,
                 struct tn_mha *attention); /* at its creation: checks it, may set its scale and add children */
    bool (*place)(void *m, tn_placed *p);   /* once per call of a stack: sets p->made, which layers share */
    /* Changes queries and keys, [B, heads, queries, head_dim], before keys are stored in a cache. */
    bool (*turn)(void *m, const tn_placed *p, tn_tensor **q, tn_tensor **k);
    /* Returns what is added to the scores, [B or 1, heads or 1, queries, keys]. k: all keys, [B, heads, keys, D]. */
    tn_tensor *(*scores)(void *m, const tn_placed *p, tn_tensor *q, tn_tensor *k);
    bool        no_heads;       /* .scores does not read q and k, which are NULL */
    bool        unpadded;       /* can be used with unpadded batches, for which it reads p->at */
    bool        in_first_layer; /* a stack registers it in its first layer, not in itself */
    const char *name;           /* its name in the module that owns it; NULL: "positions" */
} tn_position_ops;
/* Calls .place of m's positions for *p, whose .first, .queries, .keys, .at and .cache are set. False: raised. */
TN_API bool tn_mha_place(struct tn_mha *m, tn_placed *p);

/* Rotary positions (Su et al. 2021): queries and keys are rotated by angles that are proportional to their positions.
 * The options are those of tn_rope_angles; .dim 0: the whole head. */
typedef struct {
    tn_module      base;
    tn_rope_config rope;
} tn_rotary;
TN_API tn_rotary *tn_rotary_create(tn_rope_config c);
TN_API tn_rotary *tn_rotary_of(const struct tn_mha *m); /* m's positions if they are rotary; else NULL */
/* The angles of positions first … first + n - 1 for attention m; NULL if m's positions are not rotary. */
TN_API tn_tensor *tn_mha_angles(const struct tn_mha *m, int64_t first, int64_t n);

/* T5's relative positions (Raffel et al. 2020): a learned bias for each head and distance from a query to a key. Each
 * short distance has a bucket; longer distances share buckets of growing width; the last bucket is for `distance` and
 * more. Half of the buckets are for keys after the query, unless .causal is set. */
typedef struct tn_relative_positions_config {
    int             zero_;
    int64_t         heads;
    int64_t buckets TN_IS(32), distance TN_IS(128);
    bool            causal; /* for use with a causal mask: all keys after the query share bucket 0 */
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
/* Returns the bias [1, heads, queries, keys]. The queries have the last positions of the keys. */
TN_API tn_tensor *tn_relative_positions_forward(tn_relative_positions *m, int64_t queries, int64_t keys);

/* ---- multi-head attention: PyTorch's MultiheadAttention ---------------------------------------------------------- */

/* RMS norm of queries and keys, before rotary positions: of each head (Qwen3), or of all heads together (OLMo 2). */
typedef enum { TN_QK_NORM_NONE = 0, TN_QK_NORM_HEAD, TN_QK_NORM_ALL } tn_qk_norm;

/* How scores are computed: scale · q · k, capped, of the keys in the window. 0 in all: as in PyTorch. */
typedef struct {
    double     scale;   /* 0: 1/√head_dim */
    double     cap;     /* scores are c·tanh(score / c), before masks are added; 0: not capped */
    int64_t    window;  /* keys less than `window` positions away count, with .causal only earlier ones; 0: all */
    tn_qk_norm qk_norm; /* makes the projections three tn_linear modules */
    double     eps;     /* epsilon of qk_norm; 0: 1e-6. In a block .eps and .add_one are those of its .norm */
    bool       add_one; /* factors of qk_norm are 1 + weight (see tn_rms_norm_config) */
} tn_scores;

typedef struct tn_mha_config {
    int     zero_;
    int64_t dim, heads;
    int64_t kdim, vdim; /* width of the keys and of the values; 0: dim */
    /* kv_heads: number of heads of keys and values, each shared by heads / kv_heads query heads without copies; 0:
     * heads. head_dim: width of a head; 0: dim / heads. If either is set (kv_heads even if equal to heads), the
     * projections are three tn_linear modules, as in Hugging Face's models. */
    int64_t   kv_heads, head_dim;
    tn_scores scores;
    double    dropout;   /* dropout probability of the attention weights; 0: none */
    void     *positions; /* module of a class with .positions, taken over unless it has an owner; NULL: none */
    bool      no_bias, no_out_bias; /* no biases; no bias in the output projection */
    tn_dtype  dtype;
    int       end_;
} TN_KEYWORDS_ONLY tn_mha_config;
typedef struct tn_mha {
    tn_module  base;
    int64_t    dim, heads, kdim, vdim, kv_heads, head_dim;
    int64_t    made_heads, made_kv_heads; /* number of heads before tn_mha_prune */
    int64_t   *left;                      /* [heads]: original number of each remaining head */
    tn_scores  scores;
    double     dropout;
    tn_module *positions;      /* may belong to another module of the tree; NULL: none */
    tn_tensor *in_proj_weight; /* [3 dim, dim]: projections of queries, keys, values; NULL if stored separately */
    /* [dim, dim], [dim, kdim], [dim, vdim]: separate projections if kdim or vdim is not dim; else NULL */
    tn_tensor   *q_proj_weight, *k_proj_weight, *v_proj_weight;
    tn_tensor   *in_proj_bias;             /* [3 dim]; NULL without bias or with q_proj, k_proj, v_proj */
    tn_linear   *q_proj, *k_proj, *v_proj; /* the projections if kv_heads, head_dim or qk_norm was set; else NULL */
    tn_rms_norm *q_norm, *k_norm; /* [head_dim], or TN_QK_NORM_ALL: [heads · head_dim]; NULL without qk_norm */
    tn_linear   *pos_key_proj, *pos_query_proj; /* of tn_distances with .own_projs; else NULL */
    tn_linear   *out_proj;
    struct tn_lora_pair *lora; /* of in_proj_weight, see nn/lora.h; NULL: none */
} tn_mha;
TN_API tn_mha *tn_mha_create(tn_mha_config c); /* tn_call(m, x) is self-attention without a mask */

typedef struct tn_mha_args {
    int        zero_;
    tn_tensor *query, *key, *value; /* [B, T, dim], [B, S, kdim], [B, S, vdim] */
    /* attention mask: bool (true: may not be attended to) or floating (added to the scores): [T, S], PyTorch's
     * [B·heads, T, S], or [B, heads, T, S], where B and heads may be 1; may be NULL */
    tn_tensor  *attn_mask;
    tn_tensor  *key_padding_mask; /* padding mask, bool [B, S]: true is padding; may be NULL */
    bool        causal;           /* causal mask: query t sees keys 0 … t */
    tn_tensor **weights; /* output, may be NULL: attention weights after dropout, mean of the heads [B, T, S] */
    bool        weights_per_head; /* weights are [B, heads, T, S] instead of the mean */
    /* With a cache, keys and values are those stored in layer `layer` followed by those of this call. S counts both,
     * also in the masks, and the causal mask starts after the stored positions. */
    tn_kv_cache     *cache;
    int64_t          layer;
    bool             memory; /* keys and values are a memory: the first call stores it; later calls may pass NULL */
    const tn_placed *placed; /* .made of the module's positions, for all layers; NULL: computed here */
    /* an unpadded batch: query is [1, N, dim]; keys_unpadded: of key and value; NULL: unpadded. No masks, no cache. */
    const tn_unpadded *unpadded, *keys_unpadded;
    int                end_;
} TN_KEYWORDS_ONLY tn_mha_args;
TN_API tn_tensor  *tn_mha_run(tn_mha *m, tn_mha_args a); /* [B, T, dim] */

/* ---- attention of a query to a memory, for decoders of recurrent networks ---------------------------------------- */

/* score(q, h) = q · h; .general: q W h; .scaled: divided by √memory */
typedef struct tn_dot_attention_config {
    int      zero_;
    int64_t  query, memory; /* width of a query and of a memory vector; query 0: memory */
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
    int64_t  query, memory, hidden; /* hidden 0: query */
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
    tn_tensor  *query, *memory;   /* [B, T, query], or [B, query]; [B, S, memory] */
    tn_tensor  *key_padding_mask; /* bool [B, S]: true is padding */
    tn_tensor  *keys;    /* keys to score instead of memory: [B, S, memory]; additive: tn_additive_attention_keys */
    tn_tensor **weights; /* output, may be NULL: [B, T, S], or [B, S] */
    int         end_;
} TN_KEYWORDS_ONLY tn_memory_args;
/* Returns Σ weight · memory: [B, T, memory], or [B, memory]. */
TN_API tn_tensor *tn_dot_attention_run(tn_dot_attention *m, tn_memory_args a);
TN_API tn_tensor *tn_additive_attention_run(tn_additive_attention *m, tn_memory_args a);
/* Returns W_h h + b, [B, S, hidden]. Pass it as .keys to all queries, so that it is computed once. */
TN_API tn_tensor *tn_additive_attention_keys(tn_additive_attention *m, tn_tensor *memory);

/* ---- positions: added to x [B, T, dim] (.time_first: [T, B, dim]), followed by dropout ------------------------- */

/* The elements of a sinusoidal position: sine and cosine of each frequency in turn (the paper); first all sines, then
 * all cosines (Marian); so, with frequencies from 1 down to 1/10000, computed in f32 (tensor2tensor, fairseq). */
typedef enum { TN_SINUSOIDS_IN_TURN = 0, TN_SINUSOIDS_HALVES, TN_SINUSOIDS_TENSOR2TENSOR } tn_sinusoids;
typedef struct tn_positions_config {
    int     zero_;
    int64_t dim, length; /* length: maximum number of positions; 0: 5000 for sinusoids, an error for learned ones */
    tn_sinusoids order;  /* sinusoids only, also first: the position of the first row of x */
    int64_t      first;
    double       dropout;
    bool         time_first;
    tn_dtype     dtype;
    int          end_;
} TN_KEYWORDS_ONLY tn_positions_config;
typedef struct {
    tn_module  base;
    int64_t    dim, length;
    double     dropout;
    bool       time_first;
    tn_tensor *weight; /* [length, dim]: the parameter "weight", or for sinusoids "pe", which is not saved */
} tn_positions;
/* pe[t, 2i] = sin(t / 10000^(2i/dim)), pe[t, 2i+1] = cos(t / 10000^(2i/dim)); see tn_sinusoids for other orders */
TN_API tn_positions *tn_sinusoidal_positions_create(tn_positions_config c);
TN_API tn_positions *tn_learned_positions_create(tn_positions_config c);              /* initialised from N(0, 1) */
TN_API tn_tensor *tn_positions_forward(tn_positions *m, tn_tensor *x, int64_t start); /* x[:, 0] has position start */

TN_C_END_
#define tn_rotary_new(...) TN_NEW_(tn_rotary_create, tn_rope_config, TN_ROPE_DEFAULTS, __VA_ARGS__)
#define tn_relative_positions_new(...) \
    TN_NEW_(tn_relative_positions_create, tn_relative_positions_config, TN_RELATIVE_POSITIONS_DEFAULTS, __VA_ARGS__)
#define tn_sinusoidal_positions_new(...) \
    TN_NEW_(tn_sinusoidal_positions_create, tn_positions_config, TN_NO_DEFAULTS_, __VA_ARGS__)
#define tn_learned_positions_new(...) \
    TN_NEW_(tn_learned_positions_create, tn_positions_config, TN_NO_DEFAULTS_, __VA_ARGS__)
#define tn_kv_cache_new(...) TN_NEW_(tn_kv_cache_create, tn_kv_cache_config, TN_KV_CACHE_DEFAULTS, __VA_ARGS__)
#define tn_mha_new(...) TN_NEW_(tn_mha_create, tn_mha_config, TN_NO_DEFAULTS_, __VA_ARGS__)
#define tn_mha_forward(m, ...) \
    TN_CALL_(tn_mha_run(m, TN_ARGS3_(tn_mha_args, TN_NO_DEFAULTS_, query, key, value, __VA_ARGS__, TN_END_)))
#define tn_dot_attention_new(...) \
    TN_NEW_(tn_dot_attention_create, tn_dot_attention_config, TN_NO_DEFAULTS_, __VA_ARGS__)
#define tn_dot_attention_forward(m, ...) \
    TN_CALL_(tn_dot_attention_run(m, TN_ARGS2_(tn_memory_args, TN_NO_DEFAULTS_, query, memory, __VA_ARGS__, TN_END_)))
#define tn_additive_attention_new(...) \
    TN_NEW_(tn_additive_attention_create, tn_additive_attention_config, TN_NO_DEFAULTS_, __VA_ARGS__)
#define tn_additive_attention_forward(m, ...) \
    TN_CALL_(                                 \
        tn_additive_attention_run(m, TN_ARGS2_(tn_memory_args, TN_NO_DEFAULTS_, query, memory, __VA_ARGS__, TN_END_)))
#endif
