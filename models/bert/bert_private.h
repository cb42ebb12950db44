/* bert_private.h — what the files of models/bert share: the config as it stands in a file, and which row of the table
 * of places is the first.
 *
 * With the norms first it is the row behind the padding's number, as RoBERTa has it, so that Hugging Face can open the
 * model: there the rows up to that one are for padding. */
#ifndef TENON_MODELS_BERT_BERT_PRIVATE_H
#define TENON_MODELS_BERT_BERT_PRIVATE_H

#include "models/bert.h"
#include "models/files/hf_config.h"

static inline int64_t tn__first_place(const tn_bert_config *c)
{
    return c->norm_first && c->padding >= 0 ? c->padding + 1 : 0;
}

/* As it stands in the file. */
typedef struct {
    tn_bert_config c;
    const char    *type, *architecture;
    int64_t        places; /* rows of the table of positions */
    bool           norm_first;
} tn__bert_stored;
const tn_hf_files *tn__bert_table(void); /* without the rules for the weights */
tn__bert_stored    tn__bert_to_store(const tn_bert_config *c);
bool               tn__bert_is_roberta(const tn_bert_config *c); /* by its file: a RobertaPreLayerNorm */

/* Puts the defaults in; raises what is wrong. */
bool tn__bert_complete(const char *who, tn_bert_config *c);

#endif
