/* examples.h — names that the examples in comments of public headers use without declaring them: examples.sh inserts
 * this before each example. A declaration in an example hides the one in this file. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <tenon/tenon.h> /* examples.sh includes <tenon/extras.h> before this for headers of extras */

tn_tensor *model_loss(void *model, tn_tensor *batch);
void       train_step(void *model, tn_tensor *first, ...);
tn_tensor *loss_of(void *model, void *user);

extern tn_sequential     *net, *model;
extern tn_optimizer      *opt;
extern tn_gpt            *gpt;
extern tn_kv_cache *const caches[];
extern tn_tensor         *x, *y, *vx, *vy, *h, *weight, *bias, *batch, *lengths;
extern tn_tensor         *ids, *padding, *where, *what, *source, *target, *src, *tgt, *prompt, *begin;

extern tn_tensor    *words, *first, *second, *scores, *tags, *types, *classes, *vectors, *others, *their_tags;
extern tn_bert      *bert;
extern tn_tokenizer *tokenizer;
extern tn_batch      parts[8];

extern tn_encoder     encoder;
extern tn_source      data;
extern tn_string      chat_template;
extern tn_closure     compute_loss, loss_of_next_batch;
extern tn_fit_loss    bert_loss, gpt_loss, pairs_loss;
extern const uint8_t *kinds;
extern const char *path, *text, *const *outputs;
extern const tn_text       *references, *lines;
extern const int32_t       *numbers;
extern int64_t             *best;
extern const int64_t *const rows[], row_lengths[];
extern int64_t              step, n;
extern const double        *steps, *losses;
extern double               mean_loss, rate;
