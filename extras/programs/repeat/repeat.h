/* repeat.h — the commands verify and debug of the programs that train. They belong in the file of the command train. */
#ifndef TENON_EXTRAS_PROGRAMS_REPEAT_REPEAT_H
#define TENON_EXTRAS_PROGRAMS_REPEAT_REPEAT_H

#include "programs/common/train.h"

/* PROGRAM verify DIR (verify.c): repeats segments of the run in the folder, made by train_command. */
int                 verify_main(int count, char **operands);
extern const option verify_options[];
#define VERIFY_COMMAND(name_)                                                                                         \
    {                                                                                                                 \
        .name = "verify", .summary = "repeat parts of a training and compare the bits", .options = verify_options,    \
        .run = verify_main, .operands = "DIR", .least = 1, .most = 1, .repeats = &train_command,                      \
        .text =                                                                                                       \
            "Repeats segments of the training in DIR, each from one training checkpoint to the next, and compares "   \
            "the batches, losses, learning rates, weights and the model with those of the run. The last line is "     \
            "\"identical K segments\", or \"differs at step N: \" and the input that differs: data, configuration, "  \
            "learning rate or weights. Texts, images and a tokenizer of --vocab must be where they were. Files that " \
            "are not compared are listed: logs, pages, caches, the lock, the best weights in checkpoints.\n\n"        \
            "  " name_ " verify book\n"                                                                               \
            "  " name_ " verify book --segments 5 --threads 2"                                                        \
    }

/* PROGRAM debug DIR (debug.c): shows steps of the run in the folder, made by train_command. */
int                 debug_main(int count, char **operands);
extern const option debug_options[];
#define DEBUG_COMMAND(name_)                                                                                           \
    {                                                                                                                  \
        .name = "debug", .summary = "show what a step of a training did", .options = debug_options, .run = debug_main, \
        .operands = "DIR", .least = 1, .most = 1, .repeats = &train_command,                                           \
        .text = "Restores any step of the training in DIR: from the newest training checkpoint before it, or from "    \
                "the beginning, repeats the steps up to it with the same bits, and shows the batch with the loss of "  \
                "each row, the gradients, and the results of all modules. --when finds the first step where a "        \
                "condition holds: on the loss, the largest loss of a row, the norm of all gradients, the learning "    \
                "rate, the number of rows that are copies of others, or the leak, the change of a result with "        \
                "tokens that a mask must hide.\n\n"                                                                    \
                "  " name_ " debug book --step 1200\n"                                                                 \
                "  " name_ " debug book --when \"loss > 4\" --from 100"                                                \
    }

#endif
