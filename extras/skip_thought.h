/* skip_thought.h — skip-thought sentence vectors (Kiros et al. 2015): an encoder reads a sentence, and two decoders
 * predict the previous and the next sentence. Part of extras.h: include that.
 *
 *     tn_skip_thought *m = tn_skip_thought_load("dir");
 *     tn_tensor       *v = tn_skip_thought_encode(m, tn_call(m->words, ids), lengths);     // [B, hidden] */
#ifndef TENON_EXTRAS_SKIP_THOUGHT_H
#define TENON_EXTRAS_SKIP_THOUGHT_H

#include "../nn/nn.h"

TN_C_BEGIN_

typedef struct tn_skip_thought_config {
    int         zero_;
    int64_t     vocab;
    int64_t dim TN_IS(128), hidden TN_IS(256); /* width of word embeddings; of sentence vectors */
    int         end_;
} TN_KEYWORDS_ONLY tn_skip_thought_config;
#define TN_SKIP_THOUGHT_DEFAULTS .dim = 128, .hidden = 256
typedef struct {
    tn_module              base;
    tn_skip_thought_config config;
    tn_embedding          *words;
    tn_gru                *encoder, *before, *after; /* the decoders read the sentence vector with each word */
    tn_tensor             *out, *bias;               /* [vocab, hidden], [vocab] */
} tn_skip_thought;
TN_API tn_skip_thought *tn_skip_thought_create(tn_skip_thought_config c);
/* Sentence vectors [B, hidden]. x: word embeddings [B, T, dim], from m->words or mapped into its space; lengths: i64
 * [B]. */
TN_API tn_tensor *tn_skip_thought_encode(tn_skip_thought *m, tn_tensor *x, tn_tensor *lengths);
/* The mean of both decoders' cross-entropies. Word ids of the sentences and of their neighbours, -100 after the end. */
TN_API tn_tensor       *tn_skip_thought_loss(tn_skip_thought *m, tn_tensor *ids, tn_tensor *lengths, tn_tensor *before,
                                             tn_tensor *after);
TN_API tn_skip_thought *tn_skip_thought_load(const char *dir);
TN_API tn_status        tn_skip_thought_save(tn_skip_thought *m, const char *dir) TN_CHECKED;

TN_C_END_
#define tn_skip_thought_new(...) \
    TN_NEW_(tn_skip_thought_create, tn_skip_thought_config, TN_SKIP_THOUGHT_DEFAULTS, __VA_ARGS__)
#endif
