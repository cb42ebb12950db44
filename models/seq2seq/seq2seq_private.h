/* seq2seq_private.h — shared by the files of models/seq2seq. */
#ifndef TENON_MODELS_SEQ2SEQ_SEQ2SEQ_PRIVATE_H
#define TENON_MODELS_SEQ2SEQ_SEQ2SEQ_PRIVATE_H

#include "models/files/hf_config.h"
#include "models/seq2seq_kinds.h"

/* Options of a config in which families differ, one bit each. */
enum {
    TN__S2S_LEARNED = 1 << 0, /* kinds of positions */
    TN__S2S_HALVES = 1 << 1,
    TN__S2S_TENSOR2TENSOR = 1 << 2,
    TN__S2S_RELATIVE = 1 << 3,
    TN__S2S_SINUSOIDS = 1 << 4,
    TN__S2S_NORM_EMBEDDING = 1 << 5,
    TN__S2S_NORM_FIRST = 1 << 6,
    TN__S2S_NO_FINAL_NORM = 1 << 7,
    TN__S2S_RMS_NORM = 1 << 8,
    TN__S2S_GATED = 1 << 9,
    TN__S2S_NO_BIAS = 1 << 10,
    TN__S2S_NO_OUT_BIAS = 1 << 11,
    TN__S2S_FIXED_OUT_BIAS = 1 << 12,
    TN__S2S_OUT_BIAS = 1 << 13, /* a trained one */
    TN__S2S_PLAIN_EMBEDDING = 1 << 14,
    TN__S2S_FREE_PADDING = 1 << 15,
    TN__S2S_END_DROPOUT = 1 << 16,
    TN__S2S_HEAD_DIM = 1 << 17,
    TN__S2S_SCALE = 1 << 18,
    TN__S2S_OUT_SCALE = 1 << 19,
    TN__S2S_EPS = 1 << 20,      /* not 1e-5 */
    TN__S2S_DROPOUTS = 1 << 21, /* of attention or activation, not .dropout */
    TN__S2S_DECODER = 1 << 22,  /* other heads or ff than the encoder's */
    TN__S2S_UNTIED = 1 << 23,
    TN__S2S_UNSHARED = 1 << 24,
    TN__S2S_TWO_SIZES = 1 << 25, /* source_words and target_words differ */
};

/* The config as stored in config.json, and generation_config.json. */
typedef struct tn__seq2seq_family tn__seq2seq_family;
typedef struct {
    tn_seq2seq_config         c;
    const tn__seq2seq_family *family;
    const char               *kind, *positions; /* of Tenon's own format */
    const char               *architecture;
    bool                      share, tie;           /* share_encoder_decoder_embeddings, tie_word_embeddings */
    const char               *feed_forward, *dense; /* T5's feed_forward_proj, dense_act_fn */
    tn_seq2seq_kept           kept;
    tn_seq2seq_search         search;
} tn__seq2seq_stored;

/* A family: a model_type of transformers, and how its files differ from those of fairseq's models, which BART, Marian
 * and M2M-100 are (families.c). */
struct tn__seq2seq_family {
    const char      *type, *architecture;
    unsigned         must, may; /* options that all its models have, that they can have */
    const tn_hf_row *rows;  /* of config.json, in addition to the common ones or instead of those with the same key */
    const tn_rename *rules; /* of the weights, after the common ones */
    int              count, renames;
    bool             own_rows, own_rules;                         /* without the common ones */
    bool (*read)(tn__seq2seq_stored *s, const tn_hf_source *f);   /* after the rows are read; false: raised */
    void (*look)(tn__seq2seq_stored *s, const tn_safetensors *f); /* for options that the weights' names tell */
    void (*write)(tn__seq2seq_stored *s);                         /* before the rows are written */
    bool (*fits)(const tn_seq2seq_config *c);                     /* beyond must and may; all four may be NULL */
};
extern const char *const  tn__seq2seq_position_kinds[]; /* of Tenon's own format, by tn_seq2seq_positions */
extern const char *const  tn__seq2seq_types[];          /* Tenon's own, and those of all families; ends with NULL */
const tn__seq2seq_family *tn__seq2seq_family_of(const char *type); /* NULL: unknown, or Tenon's own */

/* The tables of a family, for a config. */
void tn__seq2seq_tables_of(const tn__seq2seq_family *family, const tn_seq2seq_config *c, tn__hf_tables *to);
const tn_hf_files *tn__seq2seq_files(void);                                   /* Tenon's own */
int                tn__seq2seq_names(const void *m, tn_rename *to, int room); /* tn_class.names */

void *tn__seq2seq_load(const tn_hf_source *s);

/* Fills in defaults; raises for invalid values. */
bool tn__seq2seq_complete(const char *who, tn_seq2seq_config *c);
/* Sets the options; the reverse is checked by complete. */
void tn__seq2seq_set_options(tn_seq2seq_config *c, unsigned options);

/* Read and write generation_config.json, or read its members from config.json; begin and end tokens go to s->c. */
bool tn__seq2seq_search_read(const tn_hf_source *source, tn__seq2seq_stored *s);
bool tn__seq2seq_search_write(const tn_seq2seq *m, const char *dir);

extern const tn_seq2seq_functions tn__seq2seq_transformer, tn__seq2seq_bahdanau, tn__seq2seq_luong, tn__seq2seq_rnn;
void                              tn__seq2seq_add_positions(tn_seq2seq *m);
const tn_seq2seq_functions       *tn__seq2seq_functions_of(tn_seq2seq_kind kind); /* NULL: not registered */

#endif
