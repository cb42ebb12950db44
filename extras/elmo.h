/* elmo.h — ELMo, a bidirectional language model over words encoded from characters (Peters et al. 2018): its layers are
 * contextual word vectors. Part of extras.h: include that.
 *
 *     tn_elmo  *m = tn_elmo_new(.vocab = 10000, .dim = 128, .hidden = 512);
 *     tn_elmo_batch b = tn_elmo_sentences(m, 3, lines);            // words separated by white space
 *     tn_tensor *layer[TN_ELMO_LAYERS];
 *     tn_elmo_vectors(m, &b, layer);                               // [B, T, 2 dim] each
 *     tn_scalar_mix *mix = tn_scalar_mix_new(.count = 3);          // trained with the task: weights of the layers
 *     tn_tensor     *x = tn_scalar_mix_forward(mix, 3, layer); */
#ifndef TENON_EXTRAS_ELMO_H
#define TENON_EXTRAS_ELMO_H

#include "../data/lines.h"
#include "../nn/nn.h"

TN_C_BEGIN_

enum { TN_ELMO_LAYERS = 3, TN_ELMO_WIDTHS = 7 };
typedef struct tn_elmo_config {
    int              zero_;
    int64_t          vocab;                      /* words in the output vocabulary */
    int64_t letters  TN_IS(16);                  /* width of a character embedding */
    int64_t filters  TN_IS(32), widths TN_IS(5); /* convolutions over 1 to widths characters, filters · width each */
    int64_t highways TN_IS(2);                   /* highway layers */
    int64_t dim      TN_IS(128), hidden TN_IS(512); /* width of the projected states, of the LSTM cells */
    int64_t longest  TN_IS(24);                     /* bytes read of a word; the rest is ignored */
    double dropout   TN_IS(0.1);
    int              end_;
} TN_KEYWORDS_ONLY tn_elmo_config;
#define TN_ELMO_DEFAULTS \
    .letters = 16, .filters = 32, .widths = 5, .highways = 2, .dim = 128, .hidden = 512, .longest = 24, .dropout = 0.1
typedef struct {
    tn_module      base;
    tn_elmo_config config;
    tn_embedding  *letters;              /* "char_embedding" */
    tn_conv1d     *conv[TN_ELMO_WIDTHS]; /* "char_conv_0", ... */
    tn_highway    *highway;
    tn_linear     *projection;
    tn_lstm       *forward[2], *backward[2]; /* with proj_size; the second has a residual connection */
    tn_tensor     *out, *bias;               /* output layer: [vocab, dim], [vocab] */
} tn_elmo;
/* The defaults, with .dim and .hidden of "tiny", "small", "medium" or "large" (as published). Another name raises. */
TN_RETURNS_CONFIG_(TN_API tn_elmo_config tn_elmo_size(const char *name);)
TN_API tn_elmo *tn_elmo_create(tn_elmo_config c);

/* A batch of sentences. Words are separated by white space, as in tn_vocab_read. Each distinct word is encoded once;
 * each row has a begin and an end marker. */
typedef struct {
    tn_tensor *words;   /* i64 [U, longest + 2]: the characters of each distinct word */
    tn_tensor *rows;    /* i64 [B, T + 2]: indices into words; 0 is the begin, 1 the end and the padding after it */
    tn_tensor *lengths; /* i64 [B]: words per row, without begin and end */
} tn_elmo_batch;
TN_API tn_elmo_batch tn_elmo_sentences(const tn_elmo *m, int64_t n, const tn_text *lines);

/* The layers, [B, T, 2 dim] each: the character encoding (repeated twice), then the two LSTM layers. False: raised. */
TN_API bool tn_elmo_vectors(tn_elmo *m, const tn_elmo_batch *b, tn_tensor *layer[TN_ELMO_LAYERS]);
/* The mean of the cross-entropies of the next word (forward) and the previous word (backward). targets: i64 [B, T + 2],
 * word ids including begin and end; positions after a row's end are ignored. */
TN_API tn_tensor *tn_elmo_loss(tn_elmo *m, const tn_elmo_batch *b, tn_tensor *targets);

TN_API tn_elmo  *tn_elmo_load(const char *dir);
TN_API tn_status tn_elmo_save(tn_elmo *m, const char *dir) TN_CHECKED;

TN_C_END_
#define tn_elmo_new(...) TN_NEW_(tn_elmo_create, tn_elmo_config, TN_ELMO_DEFAULTS, __VA_ARGS__)
#endif
