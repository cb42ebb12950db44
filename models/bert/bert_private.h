/* bert_private.h — what the files of models/bert share: the config as it stands in a file, and what the files of each
 * kind look like. */
#ifndef TENON_MODELS_BERT_BERT_PRIVATE_H
#define TENON_MODELS_BERT_BERT_PRIVATE_H

#include "models/bert.h"
#include "models/files/hf_config.h"

/* Which row of the table of positions is the first. Of RoBERTa, and where the norms come first, as Hugging Face opens
 * that as RobertaPreLayerNorm, it is the row behind the padding's number: the rows up to that one are for padding. */
static inline int64_t tn__first_place(const tn_bert_config *c)
{
    const bool behind = c->kind == TN_ROBERTA || c->kind == TN_XLM_ROBERTA || (c->kind == TN_BERT && c->norm_first);
    return behind && c->padding >= 0 ? c->padding + 1 : 0;
}

/* As it stands in the file. */
typedef struct {
    tn_bert_config c;
    const char    *type, *architecture;
    int64_t        places; /* rows of the table of positions */
    bool           norm_first;
} tn__bert_stored;
enum { TN__BERT_ABSENT = -2 }; /* padding */

/* What is called a model_type: its files. */
typedef struct {
    const char  *type;
    tn_bert_kind kind;
    tn_hf_files  files;
    const char  *model, *masked, *pretraining;     /* architectures; NULL: there is none */
    const char  *following;                        /* with the head for the next sentence alone */
    const char  *prefix;                           /* of the encoder's names */
    const char  *pooler, *words, *next, *replaced; /* a weight of each head; NULL: none */
    int64_t      padding;                          /* its id where the file does not say */
} tn__bert_form;
extern const char *const tn__bert_types[]; /* all of them; NULL ends */
const tn__bert_form     *tn__bert_form_named(const char *type);
const tn__bert_form     *tn__bert_form_of(const tn_bert_config *c);

tn__bert_stored tn__bert_to_store(const tn_bert_config *c);

/* tn_bert_save, with what a tuned model has besides. */
tn_status tn__bert_save_with(tn_bert *m, const char *dir, const tn__hf_more *more);

/* Puts the defaults in; raises what is wrong. */
bool tn__bert_complete(const char *who, tn_bert_config *c);

#endif
