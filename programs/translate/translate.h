/* translate.h — the commands of the program translate, and the functions that they share. */
#ifndef TENON_PROGRAMS_TRANSLATE_TRANSLATE_H
#define TENON_PROGRAMS_TRANSLATE_TRANSLATE_H

#include "../common/train.h"
#include "../common/translator.h"

extern const command info_command, train_command, tune_command, verify_command, debug_command, run_command,
    score_command, average_command, lexicon_command, compare_command, sample_command, export_command, demo_command;

/* ---- a model and its tokenizer (model.c) ------------------------------------------------------------------------- */

typedef translator model;
bool               model_open(const char *dir, model *m); /* returns false if an error is set */
/* from, to: languages of a model of several; NULL: the model's own. */
bool model_open_languages(const char *dir, const char *from, const char *to, model *m);
void model_close(model *m);

/* ---- pairs of lines as batches (pairs.c) ------------------------------------------------------------------------- */

/* Checks two parallel files before training: the same number of lines, all of them UTF-8, at least one pair without an
 * empty line. Returns false if an error is set. */
typedef struct {
    int64_t empty, first_empty; /* number of pairs with an empty line; number of the first such line, from 1 */
    size_t  bytes;              /* sum over the lines of both files */
} pairs_state;
bool pairs_check(const char *source, const char *target, pairs_state *s);

typedef struct {
    tn_encoding      *encoding[2];
    tn_pairs         *pairs;
    tn_pairs_batches *batches;
} pairs;
typedef struct {
    int32_t pad, begin, end;
    bool    framed; /* lines get the tokens that the tokenizer's template adds, as models of transformers expect */
} pair_ids;
/* tokens: maximum per batch; longest: maximum tokens per line without end; pairs with a longer line are skipped. */
bool pairs_open(pairs *p, const tn_tokenizer *t, pair_ids ids, const char *source, const char *target, int64_t tokens,
                int64_t longest, uint64_t seed, bool in_order);
void pairs_close(pairs *p);
tn_tensor *pairs_loss(void *net, const tn_batch *b, void *user); /* with label smoothing 0.1, as in the paper */

/* ---- alignments (align.c) ---------------------------------------------------------------------------------------- */

/* Translates `text` greedily into `said`, which the caller frees, and adds a heatmap of the alignment to the report.
 * Returns false if an error is set. */
bool align_picture(const model *m, const char *text, tn_report *r, tn_string *translation);

/* ---- means of weights (average.c) -------------------------------------------------------------------------------- */

/* The weights to average. weights_add adds those of a model's folder, of a file, or of the newest `last` checkpoints of
 * a folder (0: all of them). Both functions return false if an error is set. */
enum { MOST_WEIGHTS = 100 };
typedef struct {
    int          n;
    tn_load_args from[MOST_WEIGHTS];
    char         path[MOST_WEIGHTS][1024];
} weights;
bool weights_add(weights *w, const char *from, int64_t last);
bool weights_average(const weights *w, tn_seq2seq *net); /* also verifies the checksums of the checkpoints */

/* ---- short lists (lexicon.c) ------------------------------------------------------------------------------------- */

/* Reads the short list of `translate lexicon` from a model's folder. Returns false if an error is set. */
bool shortlist_open(const char *dir, const model *m, shortlist *s);
void shortlist_close(shortlist *s);

/* ---- training (train.c; t5.c) ------------------------------------------------------------------------------------ */

typedef struct {
    training    base;
    const char *objective; /* "translation" or "t5" */
    const char *source, *target, *valid_source, *valid_target, *model, *stop_on;
    int64_t     pieces, longest, patience, valid_every, average; /* pieces: maximum tokens per batch */
    bool        norm_first, lstm;
    pairs       pairs, held;
    pairs_state state, held_state;
    bleu_set    bleu;
    /* for --objective t5 */
    train_texts texts;
    int64_t     length; /* tokens of an input */
    tn_spans   *spans, *held_spans;
} translate_training;
extern const train_kind translate_kind, t5_kind;
#define TRANSLATE_TRAINING                                                                                             \
    {                                                                                                                  \
        .base = {.kind = &translate_kind, .asked = {TRAIN_DEFAULTS_CHOSEN, .lr = NAN, .dropout = NAN}},                \
        .objective = "translation", .model = "transformer", .stop_on = "loss", .longest = 100, .texts.valid_part = NAN \
    }

#endif
