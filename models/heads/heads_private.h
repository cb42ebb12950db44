/* heads_private.h — shared by the files of models/heads. */
#ifndef TENON_MODELS_HEADS_HEADS_PRIVATE_H
#define TENON_MODELS_HEADS_HEADS_PRIVATE_H

#include "models/files/hf_config.h"
#include "models/heads.h"

/* A task head of an encoder kind, as in Hugging Face's classes: optional dropout, an optional linear layer with an
 * activation and an optional norm, optional dropout, and the output layer. */
typedef struct {
    bool        pooled; /* input: the pooled first token; */
    bool        first;  /* or the first token; */
    bool        mean;   /* or the mean of all tokens; */
    bool        last;   /* or the last token that is not padding; if none, each token */
    bool        drop;   /* dropout on the input */
    const char *dense;  /* name of the inner layer; NULL: none */
    const char *norm;   /* name of the norm after its activation, then neither has a bias; NULL: none */
    tn_tensor *(*active)(tn_tensor *x);
    bool        drop_out; /* dropout before the output layer */
    const char *out;
} tn__head;
tn__head tn__head_for(const tn_bert_config *encoder, tn_task task);

/* tn_tuned_logits; skip_padding: the scores of padding tokens are not meaningful. (task_heads.c) */
tn_tensor *tn__tuned_logits(tn_tuned *m, const tn_batch *b, bool skip_padding);

bool  tn__is_tuned(const tn_hf_source *s); /* true if an encoder's directory contains a tuned model */
void *tn__tuned_load(const tn_hf_source *s);

/* The suffix of the architecture's name: "ForTokenClassification". */
const char *tn__task_name(tn_task task);
const char *tn__task_class(const tn_bert_config *encoder, tn_task task); /* of the encoder's kind */

#endif
