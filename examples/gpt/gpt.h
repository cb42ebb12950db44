/* gpt.h — the commands of gpt, and the declarations they share. */
#ifndef TENON_EXAMPLES_GPT_GPT_H
#define TENON_EXAMPLES_GPT_GPT_H

#include "../common/train.h"
#include "../common/writer.h"

extern const command train_command, write_command, eval_command, info_command, convert_command, demo_command;

/* ---- training (train.c) ------------------------------------------------------------------------------------------ */

typedef struct {
    training    base;
    option_list text, valid;
    const char *pieces, *shape;
    int64_t     batch, length;
    double      valid_part, weight_decay;
    tn_string   all;   /* the training text, followed by the validation text */
    size_t      bytes; /* of the training text */
    tn_ids      ids, held;
    tn_windows *windows, *held_windows;
} gpt_training;
extern const train_kind gpt_kind;
#define GPT_TRAINING                                                                                               \
    {                                                                                                              \
        .base = {.kind = &gpt_kind, .asked = {TRAIN_DEFAULTS_CHOSEN, .lr = NAN, .dropout = 0.1}}, .pieces = "bpe", \
        .shape = "gpt2", .valid_part = NAN, .weight_decay = 0.1                                                    \
    }

/* ---- measuring (eval.c) ------------------------------------------------------------------------------------------ */

typedef struct {
    double  loss, perplexity, bits; /* nats per token; exp of the loss; bits per byte */
    int64_t tokens, bytes;
} measured;
/* Measures the model on overlapping windows of `length` tokens, each `stride` tokens after the one before it. A window
 * counts only the tokens that no earlier window counted. length 0: the model's maximum; stride 0: half of length. */
bool measure(const model *m, tn_text text, int64_t length, int64_t stride, measured *to);

#endif
