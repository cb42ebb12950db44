/* vit_private.h — what the files of models/vit share: the config as it stands in a file. */
#ifndef TENON_MODELS_VIT_VIT_PRIVATE_H
#define TENON_MODELS_VIT_VIT_PRIVATE_H

#include "models/files/hf_config.h"
#include "models/vit.h"

extern const char        tn__vit_type[], tn__deit_type[];
extern const char *const tn__vit_types[]; /* both; NULL ends */

/* As it stands in the file. */
typedef struct {
    tn_vit_config c;
    const char   *type, *architecture;
    int64_t       pooled; /* pooler_output_size: it is there without a pooler, too */
} tn__vit_stored;
const tn_hf_files *tn__vit_table(void); /* without the rules for the weights */

/* Puts the defaults in; raises what is wrong. */
bool tn__vit_complete(const char *who, tn_vit_config *c);

static inline int64_t tn__vit_tokens(const tn_vit_config *c) { return 1 + c->distilled; }
/* Patches along a side. */
static inline int64_t tn__vit_grid(const tn_vit_config *c) { return c->image / c->patch; }

#endif
