/* translate.h — the commands of translate, and what they share. */
#ifndef TENON_EXAMPLES_TRANSLATE_TRANSLATE_H
#define TENON_EXAMPLES_TRANSLATE_TRANSLATE_H

#include "../common/record.h"
#include "../common/stop.h"

extern const command train_command, run_command, score_command, align_command, demo_command;

/* ---- a model and its tokenizer (model.c) ------------------------------------------------------------------------- */

/* Pieces of bytes, so that a text comes back as it was; and these four in front. */
enum { PADDING = 0, UNKNOWN = 1, BEGIN = 2, END = 3 };

typedef struct {
    tn_seq2seq   *net;
    tn_tokenizer *tokens;
} model;
bool model_open(const char *dir, model *m); /* false: an error stands */
void model_close(model *m);

/* Translates n lines, near lengths together; line i has best texts from to[i · best] on, best first (empty strings to
 * begin with), and their scores if scores is not NULL. */
typedef struct {
    int64_t beams, best, batch, most; /* batch: lines at once; most: pieces of a translation */
    double  length_penalty;
} manner;
bool translate_lines(const model *m, const manner *how, int64_t n, const tn_span *lines, tn_string *to, double *scores);

/* ---- pairs of lines as batches (pairs.c) ------------------------------------------------------------------------- */

typedef struct {
    tn_encoding         *encoding[2];
    tn_parallel         *pairs;
    tn_parallel_batches *batches;
} pairs;
bool       pairs_open(pairs *p, const tn_tokenizer *t, const char *source, const char *target, int64_t tokens,
                      int64_t longest, uint64_t seed, bool in_order);
void       pairs_close(pairs *p);
tn_source  pairs_source(pairs *p);                                     /* for tn_fit: x the sources, y the targets */
tn_tensor *pairs_loss(void *net, const tn_batch *b, void *user);       /* with label smoothing, as in the paper */
tn_tensor *pairs_plain_loss(void *net, const tn_batch *b, void *user); /* without: for validation */

/* ---- training (train.c) ------------------------------------------------------------------------------------------ */

typedef struct {
    const char *source, *target, *valid_source, *valid_target, *out, *model, *size, *dtype;
    int64_t     vocab_size, steps, epochs, tokens, longest, seed, layers, dim, patience;
    double      minutes, lr, dropout, warmup;
    bool        resume, norm_first, lstm;
} train_config;
#define TRAIN_DEFAULTS                                                                                               \
    {                                                                                                                \
        .model = "transformer", .size = "small", .dtype = "f32", .vocab_size = 8000, .tokens = 4096, .longest = 100, \
        .lr = 1e-3, .warmup = 0.1, .seed = 1                                                                         \
    }
tn_fit_result train_model(const train_config *c, model *m); /* leaves the model in c->out */

#endif
