/* reformer.h — Reformer (Kitaev, Kaiser, Levskaya 2020), a decoder for long texts: attention among few, and residual
 * blocks that keep nothing for the backward (autograd/long_texts.h). Part of models.h: include that.
 *
 *     tn_reformer *m = tn_reformer_new(.vocab = 320, .positions = 8192, .axial = {64, 128});
 *     tn_tensor   *loss = tn_reformer_loss(m, ids, NULL);   // ids [B, 8192]: memory grows as the text does
 *
 *     tn_reformer *m = tn_reformer_load("reformer-enwik8"); // lm.h treats it like the others */
#ifndef TENON_MODELS_REFORMER_H
#define TENON_MODELS_REFORMER_H

#include "../nn/nn.h"
#include "generate.h"

#ifdef __cplusplus
extern "C" {
#endif

enum { TN_REFORMER_LAYERS = 64 };
typedef struct tn_reformer_config {
    int               zero_;
    int64_t           vocab;
    int64_t dim       TN_IS(256), layers TN_IS(6), heads TN_IS(4), head_dim TN_IS(64), ff TN_IS(512);
    const char       *kinds; /* of the layers in turn, l: local, h: by hashing; repeated if shorter; NULL: "lh" */
    int64_t chunk     TN_IS(64), local_chunk TN_IS(64), before TN_IS(1), local_before TN_IS(1); /* tn_lsh_attention's */
    int64_t rounds    TN_IS(1), seed TN_IS(-1); /* of hashing; PyTorch's; below 0: drawn anew, 0 in eval mode */
    int64_t           buckets[2];  /* even; both given: their product; 0: 2 · length / chunk, to a power of 2 */
    int64_t positions TN_IS(4096); /* the longest text */
    int64_t           axial[2], axial_dim[2]; /* rows, columns; numbers of a vector for each, 0: a quarter, the rest */
    int64_t           ff_chunk;               /* positions that go through a feed-forward at once; 0: all */
    double dropout    TN_IS(0.05), attention_dropout, local_dropout TN_IS(0.05);
    double init       TN_IS(0.02), axial_init TN_IS(1), eps TN_IS(1e-12);
    const char       *activation; /* by Hugging Face's name; NULL: "relu" */
    int               end_;
} TN_KEYWORDS_ONLY tn_reformer_config;
#define TN_REFORMER_DEFAULTS                                                                                     \
    .dim = 256, .layers = 6, .heads = 4, .head_dim = 64, .ff = 512, .chunk = 64, .local_chunk = 64, .before = 1, \
    .local_before = 1, .rounds = 1, .seed = -1, .positions = 4096, .dropout = 0.05, .local_dropout = 0.05,       \
    .init = 0.02, .axial_init = 1, .eps = 1e-12

typedef struct {
    tn_module          base;
    tn_reformer_config config; /* all of it, with the defaults put in */
    char               kinds[TN_REFORMER_LAYERS + 1];
    tn_embedding      *words, *table; /* table: of positions that are not axial */
    tn_tensor         *axial[2];      /* [rows, 1, dim], [1, columns, dim]; NULL: there is a table */
    tn_module_list    *layers;
    tn_layer_norm     *norm;
    tn_tensor         *out, *bias; /* [vocab, 2 dim], [vocab] */
} tn_reformer;
TN_API tn_reformer *tn_reformer_create(tn_reformer_config c);
TN_API tn_tensor   *tn_reformer_run(tn_reformer *m, tn_decoder_args a); /* [B, T, vocab]; .cache is refused */
TN_API tn_tensor   *tn_reformer_loss(tn_reformer *m, tn_tensor *ids, tn_tensor *targets);
TN_API tn_decoding *tn_reformer_decoding(tn_reformer *m, int64_t rows, int64_t length); /* reads all for each word */
TN_API tn_reformer *tn_reformer_load(const char *dir);                                  /* of ReformerModelWithLMHead */
TN_API tn_status    tn_reformer_save(tn_reformer *m, const char *dir) TN_CHECKED;

#ifdef __cplusplus
}
#else
#define tn_reformer_new(...) TN_NEW_(tn_reformer_create, tn_reformer_config, TN_REFORMER_DEFAULTS, __VA_ARGS__)
#define tn_reformer_forward(m, ...) \
    TN_CALL_(tn_reformer_run(m, TN_ARGS1_(tn_decoder_args, TN_NO_DEFAULTS_, ids, __VA_ARGS__, .zero_ = 0)))
#endif
#endif
