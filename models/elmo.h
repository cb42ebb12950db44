/* elmo.h — a language model in both directions over words that are made of characters (Peters and others 2018): its
 * layers are vectors of words in their sentences. Part of models.h: include that.
 *
 *     tn_elmo  *m = tn_elmo_new(.vocab = 10000, .dim = 128, .hidden = 512);
 *     tn_elmo_batch b = tn_elmo_sentences(m, 3, lines);            // words between blanks
 *     tn_tensor *layer[TN_ELMO_LAYERS];
 *     tn_elmo_vectors(m, &b, layer);                               // [B, T, 2 dim] each, from words to meaning
 *     tn_scalar_mix *mix = tn_scalar_mix_new(.count = 3);          // of a task's own, which learns which it needs
 *     tn_tensor     *x = tn_scalar_mix_forward(mix, 3, layer); */
#ifndef TENON_MODELS_ELMO_H
#define TENON_MODELS_ELMO_H

#include "../data/lines.h"
#include "../nn/nn.h"

#ifdef __cplusplus
extern "C" {
#endif

enum { TN_ELMO_LAYERS = 3, TN_ELMO_WIDTHS = 7 };
typedef struct tn_elmo_config {
    int             zero_;
    int64_t         vocab;                      /* words that are told apart where the next one is guessed */
    int64_t letters TN_IS(16);                  /* numbers of a character's vector */
    int64_t filters TN_IS(32), widths TN_IS(5); /* convolutions over 1 to widths characters: filters · width of each */
    int64_t highways TN_IS(2);
    int64_t dim      TN_IS(128), hidden TN_IS(512); /* of the projected states; of the LSTMs' cells */
    int64_t longest  TN_IS(24);                     /* bytes of a word that are read */
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
    tn_lstm       *forward[2], *backward[2]; /* with proj_size; the second is added to what it reads */
    tn_tensor     *out, *bias;               /* of the guesses: [vocab, dim], [vocab] */
} tn_elmo;
TN_API tn_elmo *tn_elmo_create(tn_elmo_config c);

/* Sentences as the model reads them: words are what stands between white space, as tn_vocab_read has it. Each different
 * word is spelt once; each row has a beginning and an end. */
typedef struct {
    tn_tensor *words;   /* i64 [U, longest + 2]: the characters of each different word */
    tn_tensor *rows;    /* i64 [B, T + 2]: which of them; 0 is the beginning, 1 the end, behind which there are more */
    tn_tensor *lengths; /* i64 [B]: words of a row, without beginning and end */
} tn_elmo_batch;
TN_API tn_elmo_batch tn_elmo_sentences(const tn_elmo *m, int64_t n, const tn_text *lines);

/* The layers of each word [B, T, 2 dim]: of its characters alone (twice), and of the two LSTMs. False: raised. */
TN_API bool tn_elmo_vectors(tn_elmo *m, const tn_elmo_batch *b, tn_tensor *layer[TN_ELMO_LAYERS]);
/* The mean over both directions of the cross-entropies of the next word and that before. targets: i64 [B, T + 2], the
 * words' numbers with those of beginning and end; what is behind a row's end does not count. */
TN_API tn_tensor *tn_elmo_loss(tn_elmo *m, const tn_elmo_batch *b, tn_tensor *targets);

TN_API tn_elmo  *tn_elmo_load(const char *dir);
TN_API tn_status tn_elmo_save(tn_elmo *m, const char *dir) TN_CHECKED;

#ifdef __cplusplus
}
#else
#define tn_elmo_new(...) TN_NEW_(tn_elmo_create, tn_elmo_config, TN_ELMO_DEFAULTS, __VA_ARGS__)
#endif
#endif
