/* gpt.h — the commands of gpt, and the declarations they share. */
#ifndef TENON_PROGRAMS_GPT_GPT_H
#define TENON_PROGRAMS_GPT_GPT_H

#include "../common/train.h"
#include "../common/writer.h"

extern const command train_command, verify_command, debug_command, tune_command, write_command, eval_command,
    info_command, convert_command, export_command, experts_command, demo_command;

/* ---- training (train.c) ------------------------------------------------------------------------------------------ */

/* A text as windows of tokens; for train and tune. */
typedef struct {
    train_texts of;
    int64_t     batch, length;
    tn_windows *train, *held;
} text_windows;
/* Encodes the texts, and sets t's sources, loss, and numbers of batches; most: about this number of tokens in a
 * validation. False: raised. */
bool text_windows_open(text_windows *w, training *t, int64_t most);
void text_windows_free(text_windows *w);

typedef struct {
    training     base;
    text_windows texts;
    const char  *pieces, *shape;
    int64_t      experts, experts_per_token;
    double       weight_decay;
} gpt_training;
extern const train_kind gpt_kind;
#define GPT_TRAINING                                                                                                   \
    {                                                                                                                  \
        .base = {.kind = &gpt_kind, .asked = {TRAIN_DEFAULTS_ALL_CHOSEN, .lr = NAN, .dropout = NAN}}, .pieces = "bpe", \
        .shape = "llama", .experts_per_token = 2, .texts.of.valid_part = NAN, .weight_decay = 0.1                      \
    }

/* ---- answers to learn (talks.c) ---------------------------------------------------------------------------------- */

typedef struct {
    tn_ids  ids, answer, end;             /* tokens of all examples; 1 for those of answers; where each ends */
    int64_t longest, answers, cut, empty; /* tokens: of the longest example, of all answers; examples that were cut,
                                                and skipped because they have no answer left */
} talks;
/* Reads a file of lines of JSON, "prompt" and "answer" or "messages", in the form that the model reads. Examples are
 * cut to `length` tokens and their next one. False: raised; the message names file and line. */
bool talks_read(model *m, const char *path, int64_t length, talks *to);
/* Examples from … to - 1: x the tokens, y the next token where it is of an answer, else -100; padded to the longest. */
tn_dataset *talks_dataset(const talks *t, int64_t from, int64_t to, int64_t batch, bool shuffle, uint64_t seed);
void        talks_free(talks *t);

/* ---- rules for what is written (rules.c) ------------------------------------------------------------------------- */

/* Sets how->rule: the text is a line of the file `choices`, or JSON by the schema in a file. rules_close frees
 * how->rules, also after an error. */
void rules_open(const char *choices, const char *schema, const model *m, writer_options *how);
void rules_close(writer_options *how);

/* ---- measuring (eval.c) ------------------------------------------------------------------------------------------ */

typedef struct {
    double  loss, perplexity, bits; /* nats per token; exp of the loss; bits per byte */
    double  unigram;                /* the loss of a guess by the tokens' frequencies in the text */
    int64_t tokens, bytes;
} measured;
/* Measures the model on overlapping windows of `length` tokens, each `stride` tokens after the one before it. A window
 * counts only the tokens that no earlier window counted. length 0: the model's maximum; stride 0: half of length. */
bool measure(const model *m, tn_text text, int64_t length, int64_t stride, measured *to);

#endif
