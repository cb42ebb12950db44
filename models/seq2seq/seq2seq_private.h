/* seq2seq_private.h — what the files of seq2seq share. Private to models/. */
#ifndef TENON_MODELS_SEQ2SEQ_SEQ2SEQ_PRIVATE_H
#define TENON_MODELS_SEQ2SEQ_SEQ2SEQ_PRIVATE_H

#include "models/files/hf_config.h"

/* What the encoder made of the sources, and how far the decoder is. */
typedef struct {
    tn_tensor   *memory;  /* [B, S, width]                                                  */
    tn_tensor   *blocked; /* bool [B, S]: true is padding                                   */
    tn_kv_cache *cache;   /* Transformer: or NULL                                           */
    tn_tensor   *h, *c;   /* recurrent: the decoder's states [layers, B, dim]; Bahdanau [B, dim] */
    tn_tensor   *keys;    /* Bahdanau: of the memory                                        */
    int64_t      at;      /* words that the decoder has read                                */
} tn__reading;

/* As it stands in the file. */
typedef struct {
    tn_seq2seq_config c;
    const char       *kind;
} tn__seq2seq_stored;

const tn_hf_files *tn__seq2seq_files(void);

/* Puts the defaults in; raises what is wrong. */
bool tn__seq2seq_complete(const char *who, tn_seq2seq_config *c);

bool tn__transformer_parts(tn_seq2seq *m); /* a constructor's middle */
bool tn__recurrent_parts(tn_seq2seq *m);

/* Reads the sources: fills memory, blocked, and the first states. */
void tn__transformer_read(tn_seq2seq *m, tn_tensor *source, tn__reading *r);
void tn__recurrent_read(tn_seq2seq *m, tn_tensor *source, tn__reading *r);

/* Goes on by the words of target: the vectors that the output is made from, [B, T, dim]. */
tn_tensor *tn__transformer_go(tn_seq2seq *m, tn__reading *r, tn_tensor *target, tn_tensor **alignment);
tn_tensor *tn__recurrent_go(tn_seq2seq *m, tn__reading *r, tn_tensor *target, tn_tensor **alignment);

#endif
