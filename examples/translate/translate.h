/* translate.h — the commands of translate, and what they share. */
#ifndef TENON_EXAMPLES_TRANSLATE_TRANSLATE_H
#define TENON_EXAMPLES_TRANSLATE_TRANSLATE_H

#include "../common/train.h"
#include "../common/translator.h"

extern const command train_command, run_command, score_command, align_command, average_command, compare_command,
    sample_command, demo_command;

/* ---- a model and its tokenizer (model.c) ------------------------------------------------------------------------- */

typedef translator model;
bool               model_open(const char *dir, model *m); /* false: an error stands */
void               model_close(model *m);

/* ---- pairs of lines as batches (pairs.c) ------------------------------------------------------------------------- */

/* Before anything is made of two files: have they as many lines, all of them UTF-8? How many pairs have an empty line,
 * and which is the first, from 1? False: an error stands. */
typedef struct {
    int64_t empty, first_empty;
} pairs_state;
bool pairs_check(const char *source, const char *target, pairs_state *s);

typedef struct {
    tn_encoding      *encoding[2];
    tn_pairs         *pairs;
    tn_pairs_batches *batches;
} pairs;
/* longest: pieces that a line may have, its end not counted; pairs with a longer one are left out. */
bool       pairs_open(pairs *p, const tn_tokenizer *t, const char *source, const char *target, int64_t tokens,
                      int64_t longest, uint64_t seed, bool in_order);
void       pairs_close(pairs *p);
tn_tensor *pairs_loss(void *net, const tn_batch *b, void *user);       /* with label smoothing, as in the paper */
tn_tensor *pairs_plain_loss(void *net, const tn_batch *b, void *user); /* without: for validation */

/* ---- where it looks (align.c) ------------------------------------------------------------------------------------ */

/* A picture of where the model looked for each piece of its translation, which goes into `said`, to be freed. */
bool align_picture(const model *m, const char *text, tn_report *r, tn_string *said);

/* ---- means of weights (average.c) -------------------------------------------------------------------------------- */

/* Weights to be averaged. Each call adds those of a model's folder, of a file, or of the newest checkpoints of a folder
 * (last 0: all of them). False: an error stands. */
enum { MOST_WEIGHTS = 100 };
typedef struct {
    int          n;
    tn_load_args from[MOST_WEIGHTS];
    char         path[MOST_WEIGHTS][1024];
} weights;
bool weights_add(weights *w, const char *from, int64_t last);
bool weights_average(const weights *w, tn_seq2seq *net); /* checks checkpoints' sums, too */

/* ---- training (train.c) ------------------------------------------------------------------------------------------ */

typedef struct {
    training    base;
    const char *source, *target, *valid_source, *valid_target, *model, *stop_on;
    int64_t     pieces, longest, patience, valid_every, average; /* pieces of a batch */
    bool        norm_first, lstm;
    pairs       pairs, held;
    pairs_state state, held_state;
    judge       judge;
} translate_training;
extern const train_kind translate_kind;
#define TRANSLATE_TRAINING                                                                             \
    {                                                                                                  \
        .base = {.kind = &translate_kind, .asked = {TRAIN_DEFAULTS, .size = "small", .dropout = NAN}}, \
        .model = "transformer", .stop_on = "loss", .pieces = 4096, .longest = 100                      \
    }

#endif
