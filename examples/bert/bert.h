/* bert.h — the commands of bert, and what they share. */
#ifndef TENON_EXAMPLES_BERT_BERT_H
#define TENON_EXAMPLES_BERT_BERT_H

#include "../common/options.h"

/* ---- sample-corpus (sample.c) ------------------------------------------------------------------------------------ */
extern const option sample_options[];
int                 sample_run(int count, char **operands);
#define SAMPLE_CORPUS                                                                                                \
    {                                                                                                                \
        .name = "sample-corpus", .summary = "write the text of a small world of English", .options = sample_options, \
        .run = sample_run                                                                                            \
    }

#endif
