/* seq2seq_private.h — shared by the files of models/seq2seq. */
#ifndef TENON_MODELS_SEQ2SEQ_SEQ2SEQ_PRIVATE_H
#define TENON_MODELS_SEQ2SEQ_SEQ2SEQ_PRIVATE_H

#include "models/files/hf_config.h"

/* The encoder's results for a batch of sources, and the decoder's state. */
typedef struct {
    tn_tensor   *memory;  /* [B, S, width]                                                  */
    tn_tensor   *padding; /* bool [B, S]: true is padding                                   */
    tn_tensor   *unread;  /* bool [B, T]: true where the decoder's result is not used; NULL: all of it is used */
    tn_kv_cache *cache;   /* Transformer: or NULL                                           */
    tn_tensor   *h, *c;   /* recurrent: the decoder's states [layers, B, dim]; Bahdanau [B, dim] */
    tn_tensor   *keys;    /* Bahdanau: attention keys of the memory                         */
    int64_t      at;      /* tokens that the decoder has read                               */
} tn__seq2seq_state;

/* The config as stored in config.json. */
typedef struct {
    tn_seq2seq_config c;
    const char       *kind;
} tn__seq2seq_stored;

const tn_hf_files *tn__seq2seq_files(void);
void              *tn__seq2seq_load(const tn__hf_source *s);

/* Fills in defaults; raises for invalid values. */
bool tn__seq2seq_complete(const char *who, tn_seq2seq_config *c);

/* Add the submodules of a kind, for the constructor. False: raised. */
bool tn__transformer_build(tn_seq2seq *m);
bool tn__recurrent_build(tn_seq2seq *m);

/* Run the encoder: set memory and the decoder's first states from source and padding. */
void tn__transformer_encode(tn_seq2seq *m, tn_tensor *source, tn__seq2seq_state *r);
void tn__recurrent_encode(tn_seq2seq *m, tn_tensor *source, tn__seq2seq_state *r);

/* Run the decoder on the next tokens, target: the input of the output layer, [B, T, dim]. */
tn_tensor *tn__transformer_decode(tn_seq2seq *m, tn__seq2seq_state *r, tn_tensor *target, tn_tensor **alignment);
tn_tensor *tn__recurrent_decode(tn_seq2seq *m, tn__seq2seq_state *r, tn_tensor *target, tn_tensor **alignment);

#endif
