/* reformer.h — Reformer (Kitaev, Kaiser, Levskaya 2020), a decoder for long sequences: local and LSH attention, and
 * reversible residual blocks that save nothing for the backward pass (autograd/long_texts.h). Part of extras.h.
 *
 *     tn_reformer *m = tn_reformer_new(.vocab = 320, .positions = 8192, .axial = {64, 128});
 *     tn_tensor   *loss = tn_reformer_loss(m, ids, NULL);   // ids [B, 8192]: memory is linear in the length
 *
 *     tn_reformer *m = tn_reformer_load("reformer-enwik8"); // it is also a tn_lm: lm.h */
#ifndef TENON_EXTRAS_REFORMER_H
#define TENON_EXTRAS_REFORMER_H

#include "../nn/nn.h"
#include "../models/generate.h"

TN_C_BEGIN_

enum { TN_REFORMER_LAYERS = 64 };
typedef struct tn_reformer_config {
    int               zero_;
    int64_t           vocab;
    int64_t dim       TN_IS(256), layers TN_IS(6), heads TN_IS(4), head_dim TN_IS(64), ff TN_IS(512);
    const char       *kinds; /* attention of the layers, l: local, h: LSH; repeated if shorter; NULL: "lh" */
    int64_t chunk     TN_IS(64), local_chunk TN_IS(64), before TN_IS(1), local_before TN_IS(1); /* tn_lsh_attention's */
    int64_t rounds    TN_IS(1), seed TN_IS(-1); /* of hashing; seed as in PyTorch; below 0: random, 0 in eval mode */
    int64_t           buckets[2];  /* even; if both are set, their product; 0: 2 · length / chunk, to a power of 2 */
    int64_t positions TN_IS(4096); /* maximum tokens in a sequence */
    int64_t           axial[2], axial_dim[2]; /* rows, columns; their embedding widths, 0: a quarter of dim, the rest */
    int64_t           ff_chunk;               /* positions per feed-forward pass; 0: all */
    double dropout    TN_IS(0.05), attention_dropout, local_dropout TN_IS(0.05);
    double init       TN_IS(0.02), axial_init TN_IS(1), eps TN_IS(1e-12);
    const char       *activation; /* Hugging Face's name; NULL: "relu" */
    int               end_;
} TN_KEYWORDS_ONLY tn_reformer_config;
#define TN_REFORMER_DEFAULTS                                                                                     \
    .dim = 256, .layers = 6, .heads = 4, .head_dim = 64, .ff = 512, .chunk = 64, .local_chunk = 64, .before = 1, \
    .local_before = 1, .rounds = 1, .seed = -1, .positions = 4096, .dropout = 0.05, .local_dropout = 0.05,       \
    .init = 0.02, .axial_init = 1, .eps = 1e-12

typedef struct {
    tn_module          base;
    tn_reformer_config config; /* with defaults filled in */
    char               kinds[TN_REFORMER_LAYERS + 1];
    tn_embedding      *words, *table; /* table: position embedding if not axial, else NULL */
    tn_tensor         *axial[2];      /* [rows, 1, axial_dim[0]], [1, columns, axial_dim[1]]; NULL: not axial */
    tn_module_list    *layers;
    tn_layer_norm     *norm;
    tn_tensor         *out, *bias; /* [vocab, 2 dim], [vocab] */
    tn_token_ids       begin, end, padding, decoder_begin;
} tn_reformer;
TN_API tn_reformer *tn_reformer_create(tn_reformer_config c);
TN_API tn_tensor   *tn_reformer_run(tn_reformer *m, tn_decoder_args a); /* [B, T, vocab]; .cache is an error */
TN_API tn_tensor   *tn_reformer_loss(tn_reformer *m, tn_tensor *ids, tn_tensor *targets);
TN_API tn_decoding *tn_reformer_decoding(tn_reformer *m, int64_t rows, int64_t length); /* rereads all per token */
TN_API tn_reformer *tn_reformer_load(const char *dir);                                  /* ReformerModelWithLMHead */
TN_API tn_status    tn_reformer_save(tn_reformer *m, const char *dir) TN_CHECKED;

TN_C_END_
#define tn_reformer_new(...) TN_NEW_(tn_reformer_create, tn_reformer_config, TN_REFORMER_DEFAULTS, __VA_ARGS__)
#define tn_reformer_forward(m, ...) \
    TN_CALL_(tn_reformer_run(m, TN_ARGS1_(tn_decoder_args, TN_NO_DEFAULTS_, ids, __VA_ARGS__, TN_END_)))
#endif
