/* seq2seq_kinds.h — what a kind of sequence-to-sequence model consists of, for kinds outside of the library. Part of
 * models.h: include that. A kind is three functions, which tn_seq2seq_register sets; training, beam search and files
 * are then those of every tn_seq2seq. extras/translators has three such kinds. */
#ifndef TENON_MODELS_SEQ2SEQ_KINDS_H
#define TENON_MODELS_SEQ2SEQ_KINDS_H

#include "seq2seq.h"

TN_C_BEGIN_

/* The encoder's results for a batch of sources, and the decoder's state. */
typedef struct {
    tn_tensor   *memory;  /* [B, S, width]                                                  */
    tn_tensor   *padding; /* bool [B, S]: true is padding                                   */
    tn_tensor   *unread;  /* bool [B, T]: true where the decoder's result is not used; NULL: all of it is used */
    tn_kv_cache *cache;   /* Transformer: or NULL                                           */
    tn_tensor   *h, *c;   /* recurrent: the decoder's states [layers, B, dim]; Bahdanau [B, dim]; convolutions: h */
    tn_tensor   *keys;    /* Bahdanau, GNMT, ConvS2S: attention keys of the memory          */
    int64_t      at;      /* tokens that the decoder has read                               */
    bool         keeps;   /* convolutions: the decoder sets h for the tokens that follow    */
} tn_seq2seq_state;

/* The functions of a kind. build adds the submodules, for the constructor; false: raised. encode runs the encoder: sets
 * memory and the decoder's first states from source and padding. decode runs the decoder on the next tokens, target,
 * and returns the input of the output layer, [B, T, dim]. batch_dim: of the decoder's states; blind: without attention
 * to the source; positions: before build, those of .position_kind are added (ConvS2S: learned ones). */
typedef struct {
    bool (*build)(tn_seq2seq *m);
    void (*encode)(tn_seq2seq *m, tn_tensor *source, tn_seq2seq_state *r);
    tn_tensor *(*decode)(tn_seq2seq *m, tn_seq2seq_state *r, tn_tensor *target, tn_tensor **alignment);
    int  batch_dim;
    bool blind, positions;
} tn_seq2seq_functions;
/* Sets the functions of convs2s, bytenet or gnmt, which must remain valid; NULL: none. No model of the kind may be in
 * use. The library's own kinds cannot be replaced. */
TN_API tn_status tn_seq2seq_register(tn_seq2seq_kind kind, const tn_seq2seq_functions *f);

enum { TN_SEQ2SEQ_KERNEL_MAX = 64 }; /* maximum .kernel */
/* Embeddings of tokens of the source or the target with positions from `at`, after norm and dropout. padding: where the
 * tokens are padding; NULL: unknown. */
TN_API tn_tensor *tn_seq2seq_embedded(tn_seq2seq *m, bool target, tn_tensor *ids, int64_t at, tn_tensor *padding);

TN_C_END_
#endif
