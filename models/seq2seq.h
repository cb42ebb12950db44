/* seq2seq.h — sequence-to-sequence models: the Transformer, and recurrent networks with and without attention. Part of
 * models.h: include that.
 *
 *     tn_seq2seq_config c = tn_seq2seq_size("small");
 *     c.source_words = 10000, c.shared = true;
 *     tn_seq2seq *m = tn_seq2seq_create(c);
 *     tn_tensor  *loss = tn_seq2seq_loss(m, source, target, .label_smoothing = 0.1);
 *     tn_decoding *d = tn_seq2seq_decoding(m, source, 5, 80);                     // 5 beams of at most 80 tokens
 *     tn_generated g = tn_generate(d, begin, .beams = 5, .end = c.end);           // begin: [B, 1]
 *     tn_decoding_free(d);
 *
 * Sequences are i64 [B, T], padded on the right. The result of a sequence does not depend on the batch. */
#ifndef TENON_MODELS_SEQ2SEQ_H
#define TENON_MODELS_SEQ2SEQ_H

#include "../nn/nn.h"
#include "generate.h"

TN_C_BEGIN_

typedef enum {
    TN_SEQ2SEQ_TRANSFORMER = 0, /* Vaswani et al. 2017 */
    TN_SEQ2SEQ_BAHDANAU,        /* Bahdanau et al. 2015: attention before the decoder's cell */
    TN_SEQ2SEQ_LUONG,           /* Luong et al. 2015: attention after the decoder */
    TN_SEQ2SEQ_RNN              /* Sutskever et al. 2014: no attention, the decoder gets the encoder's last state */
} tn_seq2seq_kind;
TN_API const char     *tn_seq2seq_kind_name(tn_seq2seq_kind kind); /* "transformer", "bahdanau", "luong", "rnn" */
TN_API tn_seq2seq_kind tn_seq2seq_kind_of(const char *name);       /* raises for another name */

typedef struct tn_seq2seq_config {
    int             zero_;
    tn_seq2seq_kind kind;
    int64_t         source_words, target_words; /* vocabulary sizes; target 0: as the source */
    bool            shared;                     /* one embedding for source, target and, if not untied, output */
    bool            untied;                     /* separate output weights, not those of the target embedding */
    int64_t         dim;                        /* 0: 512; recurrent: 256 */
    int64_t         layers, decoder_layers;     /* 0: 6; recurrent: 1; decoder 0: as the encoder */
    double dropout  TN_IS(0.1);
    int64_t padding, begin TN_IS(2), end TN_IS(3);     /* token ids */
    int64_t heads TN_IS(8), ff, positions TN_IS(1024); /* Transformer: ff 0: 4 dim; positions: maximum tokens */
    bool          lstm, one_way;                       /* recurrent: LSTM, not GRU; unidirectional encoder */
    /* Transformer only, this member and all below. The first lines are those of tn_transformer_config; T5 sets all. */
    bool        norm_first, rms_norm, gated, no_bias; /* no_bias: also in the output layer */
    int64_t     head_dim;                             /* 0: dim / heads */
    double      scale, eps;                           /* eps 0: 1e-5 */
    int64_t     relative, relative_distance; /* buckets of relative positions, which replace the sinusoids and have no
                                                maximum; 0: none. relative_distance 0: 128 */
    const char *activation;                  /* Hugging Face's name; NULL: "relu" */
    bool        plain_embedding;             /* embeddings are not multiplied by √dim */
    bool        free_padding;                /* padding has an embedding like other tokens: .begin may be .padding */
    bool        end_dropout;                 /* dropout after the encoder's and the decoder's final norm, too */
    double      out_scale;                   /* factor of the decoder's result before the output layer; 0: 1 */
    int         end_;
} TN_KEYWORDS_ONLY tn_seq2seq_config;
#define TN_SEQ2SEQ_DEFAULTS .dropout = 0.1, .begin = 2, .end = 3, .heads = 8, .positions = 1024

/* The parts of the recurrent kinds; NULL where a kind has none. */
typedef struct {
    tn_rnn                *encoder, *decoder;
    tn_rnn_cell           *cell;                /* Bahdanau: instead of the decoder */
    tn_linear             *bridge_h, *bridge_c; /* from the encoder's last states to the decoder's first; c: LSTM */
    tn_additive_attention *additive;            /* Bahdanau */
    tn_dot_attention      *dot;                 /* Luong */
    tn_linear             *combine;             /* Bahdanau, Luong: of state and context */
} tn_seq2seq_recurrent;

typedef struct {
    tn_module             base;
    tn_seq2seq_config     config; /* with defaults filled in */
    tn_embedding         *source, *target;
    tn_tensor            *out, *out_bias; /* [target_words, dim]; [target_words], NULL with .no_bias */
    tn_dropout           *dropout;
    tn_positions         *positions;   /* Transformer without .relative; else NULL */
    tn_transformer       *transformer; /* Transformer; else NULL */
    tn_seq2seq_recurrent *recurrent;   /* recurrent kinds; else NULL */
} tn_seq2seq;

/* "tiny" (4 + 4 layers, dim 128), "small" (3 + 3, dim 256), "base" and "big" of the paper. Raises for other names. */
TN_RETURNS_CONFIG_(TN_API tn_seq2seq_config tn_seq2seq_size(const char *name);)
/* c as T5 v1.1 with tied weights (Raffel et al. 2020): sets the options of the Transformer, .head_dim if it is 0. */
TN_RETURNS_CONFIG_(TN_API tn_seq2seq_config tn_seq2seq_t5(tn_seq2seq_config c);)
TN_API tn_seq2seq *tn_seq2seq_create(tn_seq2seq_config c);

typedef struct tn_seq2seq_args {
    int         zero_;
    tn_tensor  *source, *target; /* [B, S]; [B, T], starts with .begin */
    tn_tensor **alignment; /* out, may be NULL: attention weights [B, T, S], mean of the last layer's heads; not RNN */
    int         end_;
} TN_KEYWORDS_ONLY tn_seq2seq_args;
TN_API tn_tensor *tn_seq2seq_run(tn_seq2seq *m, tn_seq2seq_args a); /* logits of the next token: [B, T, target_words] */

typedef struct tn_seq2seq_loss_args {
    int        zero_;
    tn_tensor *source, *target; /* target with .begin and .end */
    double     label_smoothing;
    bool       each; /* return the sum per sequence, [B], its negative log-likelihood, instead of the mean */
    int        end_;
} TN_KEYWORDS_ONLY tn_seq2seq_loss_args;
TN_API tn_tensor  *tn_seq2seq_loss_run(tn_seq2seq *m, tn_seq2seq_loss_args a);

/* State for tn_generate: `beams` rows of at most `length` tokens, including .begin, for each row of source. */
TN_API tn_decoding *tn_seq2seq_decoding(tn_seq2seq *m, tn_tensor *source, int64_t beams, int64_t length);

/* config.json and model.safetensors. Loaded models are in eval mode; to save, the directory must exist. */
TN_API tn_seq2seq *tn_seq2seq_load(const char *dir);
TN_API tn_status   tn_seq2seq_save(tn_seq2seq *m, const char *dir) TN_CHECKED;

TN_C_END_
#define tn_seq2seq_new(...) TN_NEW_(tn_seq2seq_create, tn_seq2seq_config, TN_SEQ2SEQ_DEFAULTS, __VA_ARGS__)
#define tn_seq2seq_forward(m, ...) \
    TN_CALL_(tn_seq2seq_run(m, TN_ARGS2_(tn_seq2seq_args, TN_NO_DEFAULTS_, source, target, __VA_ARGS__, TN_END_)))
#define tn_seq2seq_loss(m, ...)   \
    TN_CALL_(tn_seq2seq_loss_run( \
        m, TN_ARGS2_(tn_seq2seq_loss_args, TN_NO_DEFAULTS_, source, target, __VA_ARGS__, TN_END_)))
#endif
