/* peft_config.h — adapter_config.json of PEFT. Private to extras/peft. */
#ifndef TENON_EXTRAS_PEFT_PEFT_CONFIG_H
#define TENON_EXTRAS_PEFT_PEFT_CONFIG_H

#include "nn/nn.h"

#define TN__PEFT_CONFIG "adapter_config.json"

bool tn__peft_path(const char *dir, const char *name, char path[1024]); /* dir/name; false: raised */

typedef struct {
    char     path[1024];
    tn_json *doc; /* owned */
    int64_t  rank;
    double   alpha;  /* of use_rslora: times √rank */
    bool     random; /* PEFT fills layers that are not in the file with random values */
} tn__peft_config;
/* Reads dir's adapter_config.json. Raises for an unknown member, a wrong type, and for an option that changes results
 * and is not supported. False: raised; free c->doc all the same. */
bool tn__peft_config_read(const char *dir, tn__peft_config *c);
/* The member because of which the adapters of a layer are not loaded by PEFT: "target_modules", "exclude_modules",
 * "modules_to_save" or "layers_to_transform"; NULL: they are loaded, or an error is set. layer: its name in PEFT. */
const char *tn__peft_excluded_by(const tn__peft_config *c, const char *layer);
/* The layer's value in rank_pattern or alpha_pattern. */
double tn__peft_pattern(const tn__peft_config *c, const char *pattern, const char *layer, double otherwise);

#endif
