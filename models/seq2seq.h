/* seq2seq.h — sequence-to-sequence models: the Transformer, and the recurrent and convolutional ones before it. Part of
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
 * Models of transformers, which config.json names by its model_type: bart, marian (OPUS-MT), m2m_100 (also NLLB), t5.
 *
 *     tn_model t = tn_model_open("opus-mt-en-de");
 *     const char *texts[] = {"A dog.", "Two cats run."};
 *     tn_token_batch b;
 *     tn_tokenizer_batch(t.tokenizer, &b, 2, texts);
 *     tn_generated g = tn_seq2seq_generate(t.seq2seq, b.ids, .beams = 5, .most = 100);
 *
 * Sequences are i64 [B, T], padded on the right. The result of a sequence does not depend on the batch. */
#ifndef TENON_MODELS_SEQ2SEQ_H
#define TENON_MODELS_SEQ2SEQ_H

#include "../data/source.h"
#include "../nn/nn.h"
#include "generate.h"

TN_C_BEGIN_

typedef enum {
    TN_SEQ2SEQ_TRANSFORMER = 0, /* Vaswani et al. 2017 */
    TN_SEQ2SEQ_BAHDANAU,        /* Bahdanau et al. 2015: attention before the decoder's cell */
    TN_SEQ2SEQ_LUONG,           /* Luong et al. 2015: attention after the decoder */
    TN_SEQ2SEQ_RNN,             /* Sutskever et al. 2014: no attention, the decoder gets the encoder's last state */
    TN_SEQ2SEQ_CONVS2S,         /* Gehring et al. 2017: convolutions, attention in each layer. It and the next two: */
    TN_SEQ2SEQ_BYTENET, /* after tn_extras_register. Kalchbrenner et al. 2016: dilated convolutions, no attention */
    TN_SEQ2SEQ_GNMT     /* Wu et al. 2016: stacks of LSTMs with residual connections */
} tn_seq2seq_kind;
TN_API const char     *tn_seq2seq_kind_name(tn_seq2seq_kind kind); /* "transformer", "bahdanau" … "gnmt" */
TN_API tn_seq2seq_kind tn_seq2seq_kind_of(const char *name);       /* raises for another name */

/* Kinds of positions: the paper's sinusoids; sines, then cosines (Marian); those of tensor2tensor, of which the first
 * token has number .padding + 1 and padding none (M2M-100); a learned table for each side, after two unused rows
 * (BART). */
typedef enum {
    TN_SEQ2SEQ_SINUSOIDS = 0,
    TN_SEQ2SEQ_HALVES,
    TN_SEQ2SEQ_TENSOR2TENSOR,
    TN_SEQ2SEQ_LEARNED
} tn_seq2seq_positions;

typedef struct tn_seq2seq_config {
    int             zero_;
    tn_seq2seq_kind kind;
    int64_t         source_words, target_words; /* vocabulary sizes; target 0: as the source */
    bool            shared;                     /* one embedding for source, target and, if not untied, output */
    bool            untied;                     /* separate output weights, not those of the target embedding */
    int64_t         dim;                        /* 0: 512; recurrent, ConvS2S: 256 */
    int64_t         layers, decoder_layers;     /* 0: 6; recurrent: 1, GNMT, ConvS2S: 4, ByteNet: 15; decoder 0: as the
                                                   encoder. GNMT: equal */
    double dropout  TN_IS(0.1);
    int64_t padding, begin TN_IS(2), end TN_IS(3);     /* token ids */
    int64_t heads TN_IS(8), ff, positions TN_IS(1024); /* Transformer: ff 0: 4 dim; positions: maximum tokens */
    int64_t       kernel, decoder_kernel; /* ConvS2S, ByteNet: tokens of a window; 0: 3, ByteNet's encoder: 5 */
    bool          lstm, one_way;          /* recurrent: LSTM, not GRU; unidirectional encoder. GNMT: ignored */
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
    const char *type; /* model_type of transformers, in whose format the model is saved; NULL: Tenon's own */
    tn_seq2seq_positions position_kind;
    bool                 norm_embedding; /* norm of the sum of embedding and position */
    bool                 no_final_norm;
    bool    no_out_bias, fixed_out_bias; /* output layer: no bias; a bias that is not trained, [1, words] */
    int64_t decoder_heads, decoder_ff;   /* 0: as in the encoder */
    double attention_dropout TN_IS(-1), activation_dropout TN_IS(-1); /* below 0: dropout */
    int                      end_;
} TN_KEYWORDS_ONLY tn_seq2seq_config;
#define TN_SEQ2SEQ_DEFAULTS                                                                       \
    .dropout = 0.1, .begin = 2, .end = 3, .heads = 8, .positions = 1024, .attention_dropout = -1, \
    .activation_dropout = -1

/* The parts of the recurrent kinds; NULL where a kind has none. */
typedef struct {
    tn_rnn                *encoder, *decoder;
    tn_rnn_cell           *cell;                /* Bahdanau: instead of the decoder; GNMT: its first layer */
    tn_rnn               **upper[2];            /* GNMT: layers 1 … of the encoder and of the decoder */
    tn_linear             *bridge_h, *bridge_c; /* from the encoder's last states to the decoder's first; c: LSTM */
    tn_additive_attention *additive;            /* Bahdanau, GNMT */
    tn_dot_attention      *dot;                 /* Luong */
    tn_linear             *combine;             /* Bahdanau, Luong: of state and context */
} tn_seq2seq_recurrent;

/* What a model of transformers says about generation (generation_config.json). tn_seq2seq_generate applies the rules;
 * the rest are preferences, which a program may follow. */
typedef struct {
    int64_t      first, last; /* rules: tokens that must come first, and as the last of .most; -1: none */
    tn_token_ids forbidden;   /* tokens that are not generated */
    bool         renormalize; /* probabilities are those among the tokens that the rules allow */
    int64_t      beams, most, least, no_repeat; /* as in tn_generate, but most counts the end token; 0: not said */
    double       length_penalty, repetition_penalty;
    bool         early_stopping;
    tn_token_ids begin, padding; /* not used, written back: bos_token_id and pad_token_id */
} tn_seq2seq_search;

/* Members of config.json that do not change results here. They are written back. */
typedef struct {
    tn_token_ids begin;      /* bos_token_id */
    tn_token_ids start, end; /* decoder_start_token_id and eos_token_id, if generation_config.json has another one */
    tn_token_ids last;       /* forced_eos_token_id in the same way; -1: null */
    double       init, layerdrop, decoder_layerdrop;
} tn_seq2seq_kept;

typedef struct {
    tn_module             base;
    tn_seq2seq_config     config; /* with defaults filled in */
    tn_embedding         *source, *target;
    tn_tensor            *out, *out_bias; /* [target_words, dim]; [target_words], NULL with .no_bias or .no_out_bias */
    tn_dropout           *dropout;
    tn_positions         *positions;                 /* Transformer without .relative, ConvS2S; else NULL */
    tn_positions         *target_positions;          /* learned positions; else NULL */
    tn_layer_norm        *source_norm, *target_norm; /* .norm_embedding; else NULL */
    tn_transformer       *transformer;               /* Transformer; else NULL */
    tn_seq2seq_recurrent *recurrent;                 /* recurrent kinds; else NULL */
    void                 *own;                       /* parts of a registered kind; else NULL */
    tn_seq2seq_search     search;
    tn_seq2seq_kept       kept;
} tn_seq2seq;

/* "tiny" (4 + 4 layers, dim 128), "small" (3 + 3, dim 256), "base" and "big" of the paper. Raises for other names. */
TN_RETURNS_CONFIG_(TN_API tn_seq2seq_config tn_seq2seq_size(const char *name);)
/* c as T5 v1.1 with tied weights (Raffel et al. 2020): sets the options of the Transformer, .head_dim if it is 0. */
TN_RETURNS_CONFIG_(TN_API tn_seq2seq_config tn_seq2seq_t5(tn_seq2seq_config c);)
TN_API tn_seq2seq *tn_seq2seq_create(tn_seq2seq_config c);

typedef struct tn_seq2seq_args {
    int         zero_;
    tn_tensor  *source, *target; /* [B, S]; [B, T], starts with .begin */
    tn_tensor **alignment; /* out, may be NULL: attention weights [B, T, S], mean of the last layer's heads; ConvS2S: of
                              the layers; not RNN, ByteNet */
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
/* The loss of a batch of tn_pairs_source or tn_spans_source, without smoothing: a tn_fit_loss. user is not used. */
TN_API tn_tensor *tn_seq2seq_fit_loss(void *seq2seq, const tn_batch *b, void *user);

/* State for tn_generate: `beams` rows of at most `length` tokens, including .begin, for each row of source. */
TN_API tn_decoding *tn_seq2seq_decoding(tn_seq2seq *m, tn_tensor *source, int64_t beams, int64_t length);
/* Restricts a new decoding to a short list of target tokens, i64 [n], which makes the output layer that much smaller.
 * The decoding then reads and scores indices in the list, 0 … n - 1: prompt, .end and results are such indices. */
TN_API tn_status tn_seq2seq_shortlist(tn_decoding *d, tn_tensor *words);

/* tn_generate for the rows of source, with the model's begin and end tokens and rules. Sets .from, .prompt and .end;
 * .most 0: as many tokens as the model says, or as it has positions, at most 1024. */
TN_API tn_generated tn_seq2seq_generate_run(tn_seq2seq *m, tn_tensor *source, tn_generate_args a);

/* config.json, model.safetensors and, of a .type, generation_config.json. Loaded models are in eval mode; to save, the
 * directory must exist. A member of a file that changes results and is not supported is an error that names it;
 * layerdrops, which change training only, are not applied. */
TN_API tn_seq2seq *tn_seq2seq_load(const char *dir);
TN_API tn_status   tn_seq2seq_save(tn_seq2seq *m, const char *dir) TN_CHECKED;

TN_C_END_
#define tn_seq2seq_new(...) TN_NEW_(tn_seq2seq_create, tn_seq2seq_config, TN_SEQ2SEQ_DEFAULTS, __VA_ARGS__)
#define tn_seq2seq_generate(m, ...) TN_CALL_(tn_seq2seq_generate_run(m, TN_SEQ2SEQ_GENERATE_(__VA_ARGS__, TN_END_)))
#define TN_SEQ2SEQ_GENERATE_(source, ...) source, TN_FILLED_(tn_generate_args, TN_GENERATE_ARGS_DEFAULTS, __VA_ARGS__)
#define tn_seq2seq_forward(m, ...) \
    TN_CALL_(tn_seq2seq_run(m, TN_ARGS2_(tn_seq2seq_args, TN_NO_DEFAULTS_, source, target, __VA_ARGS__, TN_END_)))
#define tn_seq2seq_loss(m, ...)   \
    TN_CALL_(tn_seq2seq_loss_run( \
        m, TN_ARGS2_(tn_seq2seq_loss_args, TN_NO_DEFAULTS_, source, target, __VA_ARGS__, TN_END_)))
#endif
