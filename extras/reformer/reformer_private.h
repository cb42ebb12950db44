/* reformer_private.h — shared by the files of extras/reformer. */
#ifndef TENON_EXTRAS_REFORMER_REFORMER_PRIVATE_H
#define TENON_EXTRAS_REFORMER_REFORMER_PRIVATE_H

#include "models/files/hf_config.h"
#include "extras/lsh_attention.h"
#include "extras/reformer.h"

/* One layer: x1 + attention(norm(x2)), x2 + ff(norm(x1)). */
typedef struct {
    tn_module      base;
    bool           hashed;
    tn_layer_norm *norm1, *norm2;
    tn_linear     *query, *key, *value, *out; /* key: NULL with LSH attention, whose keys are the normalised queries */
    tn_linear     *dense, *dense_out;
} tn__reformer_layer;
tn__reformer_layer *tn__reformer_layer_new(const tn_reformer_config *c, bool hashed);

/* The state of a call: positions from `length` on are padding. */
typedef struct {
    tn_reformer *m;
    int64_t      length;
} tn__reformer_call;
/* A tn_reversible_fn. */
tn_tensor *tn__reformer_half(int64_t block, int half, tn_tensor *x, tn_tensor **memo, const void *call);

/* Buckets of x [B, heads, T, head_dim]: i32 [B, heads, rounds, T]; positions from `length` on share an extra bucket. */
tn_tensor *tn__reformer_buckets(const tn_reformer *m, tn_tensor *x, int64_t length);

/* The config as stored in config.json; the tables of rows and rules. */
typedef struct {
    tn_reformer_config c;
    char               kinds[TN_HF_LETTERS_MOST];
    bool               axial;
    tn_token_ids       begin, end, padding, decoder_begin;
} tn__reformer_stored;
const tn_hf_files *tn__reformer_table(void);                       /* for writing, and for config.json */
const tn_hf_files *tn__reformer_table_of(const tn_safetensors *f); /* for reading the weights of f */

/* Fills in defaults; raises for invalid values. kinds: out, one letter per layer, NUL-terminated. */
bool  tn__reformer_complete(tn_reformer_config *c, char kinds[TN_REFORMER_LAYERS + 1]);
void *tn__reformer_load(const tn_hf_source *s);

#endif
