/* parameter.h — the parameters of a model by their names in PEFT's files. Private to extras/peft. */
#ifndef TENON_EXTRAS_PEFT_PARAMETER_H
#define TENON_EXTRAS_PEFT_PARAMETER_H

#include "models/models.h"

#define TN__PEFT_PREFIX "base_model.model."
enum { TN__PEFT_NAME = TN_PATH_BYTES + 64 };

/* A walk over the parameters that are no adapters: for (p = tn__peft_parameters(m); tn__peft_next(&p);). One that files
 * divide is visited part by part. */
typedef struct {
    tn_lora_layer names;
    tn_each       each;
    tn_tensor    *tensor; /* the part, as in the file; owned by the open scope */
    int           part, parts, pieces;
    char          name[TN__PEFT_NAME];
} tn__peft_parameter;

tn__peft_parameter tn__peft_parameters(void *m);
bool               tn__peft_next(tn__peft_parameter *p);
/* False: raised, because PEFT cannot train p completely with the same results. */
bool tn__peft_trains(void *m, const tn__peft_parameter *p);

#endif
