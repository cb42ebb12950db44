/* llama_private.h — shared by the files of models/llama. */
#ifndef TENON_MODELS_LLAMA_LLAMA_PRIVATE_H
#define TENON_MODELS_LLAMA_LLAMA_PRIVATE_H

#include "models/files/hf_config.h"
#include "models/llama.h"

extern const tn_class tn__llama_class;

/* Options of a config in which families differ, one bit each. */
enum {
    TN__ATTENTION_BIAS = 1 << 0, /* qkv_bias and out_bias */
    TN__QKV_BIAS = 1 << 1,       /* qkv_bias alone */
    TN__FF_BIAS = 1 << 2,
    TN__HEAD_BIAS = 1 << 3,
    TN__WINDOW = 1 << 4,
    TN__PATTERN = 1 << 5,   /* global and local layers */
    TN__UNROTATED = 1 << 6, /* layers without rotary positions */
    TN__LOCAL_THETA = 1 << 7,
    TN__QK_NORM_HEAD = 1 << 8,
    TN__QK_NORM_ALL = 1 << 9,
    TN__NORM_RESULT = 1 << 10, /* orders of norms other than TN_NORM_FIRST */
    TN__SANDWICH = 1 << 11,
    TN__PARALLEL = 1 << 12,
    TN__PARALLEL_ONE = 1 << 13,
    TN__OTHER_ORDER = 1 << 14, /* of no family */
    TN__NORM_ADD_ONE = 1 << 15,
    TN__LAYER_NORM = 1 << 16,
    TN__PLAIN_FF = 1 << 28,
    TN__PARTIAL = 1 << 17, /* rotary positions of a part of each head */
    TN__INTERLEAVED = 1 << 18,
    TN__SCALE = 1 << 19,
    TN__CAPS = 1 << 20,            /* scores.cap, logit_cap */
    TN__EMBEDDING_SCALE = 1 << 21, /* √dim */
    TN__HEAD_DIM = 1 << 22,        /* heads · head_dim is not dim */
    TN__GROUPED = 1 << 23,         /* fewer key heads than query heads */
    TN__ROPE_SCALING = 1 << 24,
    TN__EXPERTS = 1 << 25,
    TN__EXPERT_PROBABILITIES = 1 << 26, /* as weights of the experts, instead of shares */
    TN__ROUTER_JITTER = 1 << 27,
};

/* A family: a model_type, and how its files differ from LLaMA's (families.c). */
typedef struct {
    const char      *type, *architecture;
    unsigned         must, may; /* options that all its models have, that they can have */
    const tn_hf_row *rows;      /* of config.json, in addition to LLaMA's or instead of those with the same key */
    const tn_rename *rules;     /* of the weights, also; a rule with groups -1 gets one group per head */
    int              count, renames;
    bool             own_rows, own_rules; /* without LLaMA's */
    bool             no_padding;          /* the embedding ignores pad_token_id */
} tn__llama_family;
extern const tn__llama_family tn__llama_families[];                      /* ends with a NULL type */
extern const char *const tn__llama_types[], *const tn__llama_scalings[]; /* of all families; as tn_rope_scaling */
const tn__llama_family *tn__llama_family_of(const char *type);           /* NULL: unknown */

/* The config as stored in config.json. */
typedef struct {
    tn_llama_config         c;
    const tn__llama_family *family;
    const char             *architecture, *scaling;
    bool                    attention_bias, mlp_bias, use_sliding_window, shares, parallel;
    int64_t                 window, max_window_layers, trained, period, interval, rotary_dim, query_scale;
    double                  low, high, partial, residual_dropout;
    tn_hf_layers            layers, rotated; /* g, l; g, n */
    int64_t                 padding;         /* pad_token_id as in the file: below 0 it counts from the end */
    int64_t                 head;            /* GPT-NeoX's head_dim; 0: absent */
    tn_token_ids            begin, end, decoder_begin;
} tn__llama_stored;

/* The tables of a family, for a config. */
void tn__llama_files_of(const tn__llama_family *family, const tn_llama_config *c, tn__hf_tables *to);

/* The padding token that pad_token_id, as in the file, is for the model; -1: none. */
int64_t tn__llama_padding(const tn__llama_family *family, const tn_llama_config *c, int64_t id);

enum { TN__LLAMA_ABSENT = -2, TN__LLAMA_NO_PADDING = -20000000 };
#define TN__LLAMA_NO_FACTOR 1e-300 /* rope_scaling.factor is absent */

/* Fills in defaults; raises for invalid values. */
bool tn__llama_complete(const char *who, tn_llama_config *c);
/* Reads config.json into *s, whose .c is complete and valid as long as *s; fills *s for writing one. False: raised. */
bool tn__llama_config_read(const tn_hf_source *source, tn__llama_stored *s);
bool tn__llama_config_write(const tn_llama_config *c, const char *dir, tn__llama_stored *s);

void *tn__llama_load(const tn_hf_source *s);

/* m is not NULL. Saves to a directory, or if gguf is not NULL to a GGUF file. */
tn_status tn__llama_save_as(tn_llama *m, const char *to, const tn__gguf_options *gguf);

#endif
