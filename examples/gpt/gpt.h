/* gpt.h — the commands of gpt, and what they share. */
#ifndef TENON_EXAMPLES_GPT_GPT_H
#define TENON_EXAMPLES_GPT_GPT_H

#include "../common/train.h"
#include "../common/writer.h"

extern const command train_command, write_command, eval_command, info_command, convert_command, demo_command;

/* ---- training (train.c) ------------------------------------------------------------------------------------------ */

/* Windows of a text: drawn by chance, or one after the other. */
typedef struct {
    tn_ids   ids;
    int64_t  length, batch, at; /* at: the next window, in order */
    bool     in_order;
    tn_shard shard;
} windows;

typedef struct {
    training    base;
    option_list text, valid;
    const char *pieces, *shape;
    int64_t     batch, length;
    double      valid_part, weight_decay;
    tn_string   all;   /* what is learned, then what is measured on ... */
    size_t      bytes; /* ... from here on */
    windows     train, held;
} gpt_training;
extern const train_kind gpt_kind;
#define GPT_TRAINING                                                                                             \
    {                                                                                                            \
        .base = {.kind = &gpt_kind, .asked = {TRAIN_DEFAULTS, .size = "mini", .dropout = 0.1}}, .pieces = "bpe", \
        .shape = "gpt2", .batch = 16, .length = 256, .valid_part = NAN, .weight_decay = 0.1                      \
    }

/* ---- measuring (eval.c) ------------------------------------------------------------------------------------------ */

typedef struct {
    double  loss, perplexity, bits; /* nats a token; exp of it; bits a byte */
    int64_t tokens, bytes;
} measured;
/* Windows of `length` that go on by `stride`: only what the window before did not have counts. 0: as the model is long,
 * and half of that. */
bool measure(const model *m, tn_text text, int64_t length, int64_t stride, measured *to);

#endif
