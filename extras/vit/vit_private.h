/* vit_private.h — shared by the files of extras/vit: the config as stored in a file. */
#ifndef TENON_EXTRAS_VIT_VIT_PRIVATE_H
#define TENON_EXTRAS_VIT_VIT_PRIVATE_H

#include "extras/vit.h"
#include "models/models.h"

extern const char        tn__vit_type[], tn__deit_type[];
extern const char *const tn__vit_types[]; /* both; NULL-terminated */

/* The config as stored in config.json. */
typedef struct {
    tn_vit_config c;
    const char   *type, *architecture;
    int64_t       pooler; /* pooler_output_size, which exists also without a pooler */
    tn_token_ids  begin, end, padding, decoder_begin;
    const tn_vit *model; /* whose labels are written */
} tn__vit_stored;
void              *tn__vit_load(const tn_hf_source *s);
const tn_hf_files *tn__vit_table(void); /* without the rules for the weights */

/* Fills in defaults; raises for invalid values. */
bool tn__vit_complete(const char *who, tn_vit_config *c);

static inline int64_t tn__vit_tokens(const tn_vit_config *c) { return 1 + c->distilled; }
/* Number of patches along a side. */
static inline int64_t tn__vit_grid(const tn_vit_config *c) { return c->image / c->patch; }

tn_hf_files tn__vit_files(bool distilled);                         /* with the rules for the weights */
int         tn__vit_names(const void *m, tn_rename *to, int room); /* tn_class.names */

#endif
