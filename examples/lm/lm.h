/* lm.h — the commands of lm, and what they share. */
#ifndef TENON_EXAMPLES_LM_LM_H
#define TENON_EXAMPLES_LM_LM_H

#include "../common/train.h"
#include "../common/writer.h"

extern const command train_command, write_command, eval_command, info_command;

/* A path's model, if it is a recurrent one. False: an error stands. */
bool recurrent_open(const char *path, model *m, tn_rnn_lm **lm);

/* A text as the model's numbers: one of words has <eos> at the end of each line. Added to `to`. */
bool numbers_of(const tn_tokenizer *t, tn_text text, tn_ids *to);

#endif
