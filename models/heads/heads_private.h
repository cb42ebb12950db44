/* heads_private.h — what the files of models/heads share. Private. */
#ifndef TENON_MODELS_HEADS_HEADS_PRIVATE_H
#define TENON_MODELS_HEADS_HEADS_PRIVATE_H

#include "models/files/hf_config.h"
#include "models/heads.h"

/* What Hugging Face has for a task behind an encoder of a kind: dropout where it says so, a matrix and an activation
 * where there is one, dropout, and the matrix that gives the scores. */
typedef struct {
    bool        pooled; /* reads the pooled first piece, or ... */
    bool        first;  /* ... the first one, or else each */
    bool        drop;   /* dropout comes first */
    const char *dense;  /* NULL: there is none */
    tn_tensor *(*active)(tn_tensor *x);
    bool        drop_out; /* dropout in front of the last matrix */
    const char *out;
} tn__head;
tn__head tn__head_of(const tn_bert_config *encoder, tn_task task);

/* Puts the sums of weights and adapters in the weights' places; and takes them out. */
enum { TN__ADAPTED = 2 };
void tn__lora_on(tn_tuned *m);
void tn__lora_off(tn_tuned *m);

/* Is what an encoder's directory holds such a model? False also where an error stands. */
bool tn__tuned_in(const char *dir);

/* Behind the encoder's name: "ForTokenClassification". */
const char *tn__task_name(tn_task task);

#endif
