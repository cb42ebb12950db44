/* families.h — the families of models of the extras, for tn_model_open and tn_lm_load. Part of extras.h: include that.
 *
 *     tn_extras_register();
 *     tn_model m = tn_model_open("dir");   // also of a Reformer, a recurrent language model, a ViT */
#ifndef TENON_EXTRAS_FAMILIES_H
#define TENON_EXTRAS_FAMILIES_H

#include "../models/model.h"

TN_C_BEGIN_

/* Registers all of them with tn_family_register; further calls change nothing. */
TN_API tn_status tn_extras_register(void);

TN_C_END_
#endif
