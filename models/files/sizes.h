/* sizes.h — model sizes by name: the table of a function such as tn_gpt_size. Private to models/. */
#ifndef TENON_MODELS_FILES_SIZES_H
#define TENON_MODELS_FILES_SIZES_H

#include "../../core/core.h"

/* A row; a model without a member has 0 there. A table ends with a NULL name. */
typedef struct {
    const char *name;
    int64_t     dim, layers, heads, hidden;
    double      dropout;
} tn__model_size;

/* The row of `name`. NULL: raised, with the caller's name and those of all rows. */
const tn__model_size *tn__model_size_find(const char *caller, const tn__model_size *rows, const char *name);
#endif
