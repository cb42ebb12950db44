/* lm.h — the commands of lm, and the declarations they share. */
#ifndef TENON_EXTRAS_PROGRAMS_LM_LM_H
#define TENON_EXTRAS_PROGRAMS_LM_LM_H

#include "programs/common/train.h"
#include "programs/common/writer.h"

extern const command train_command, verify_command, debug_command, write_command, eval_command, info_command,
    export_command;

/* Opens the model at path, which must be a recurrent one. m owns *lm. False: an error is set. */
bool recurrent_open(const char *path, model *m, tn_rnn_lm **lm);

/* Appends a text's token ids to `to`. A tokenizer of words adds <eos> at the end of each line. False: an error is
 * set. */
bool numbers_of(const tn_tokenizer *t, tn_text text, tn_ids *to);

#endif
