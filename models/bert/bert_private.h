/* bert_private.h — which row of a BERT's table of places is the first. Private to models/.
 *
 * With the norms first it is the row behind the padding's number, as RoBERTa has it, so that Hugging Face can open the
 * model: there the rows up to that one are for padding. */
#ifndef TENON_MODELS_BERT_BERT_PRIVATE_H
#define TENON_MODELS_BERT_BERT_PRIVATE_H

#include "models/bert.h"

static inline int64_t tn__first_place(const tn_bert_config *c)
{
    return c->norm_first && c->padding >= 0 ? c->padding + 1 : 0;
}

#endif
