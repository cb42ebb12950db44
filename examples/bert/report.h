/* report.h — what bert shows in HTML. */
#ifndef TENON_EXAMPLES_BERT_REPORT_H
#define TENON_EXAMPLES_BERT_REPORT_H

#include "bert.h"

/* A sentence with [MASK], what the model puts there, and what else it thinks of. */
bool report_fill(tn_report *r, const model *m, const char *text);
/* Every head of every layer. */
bool report_looks(tn_report *r, const model *m, const char *text, int64_t layer, int64_t head);

#endif
