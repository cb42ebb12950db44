/* safetensors_rows.h — the rows of a matrix as a file has them (safetensors.c), for packed weights. Private. */
#ifndef TENON_CORE_FILES_SAFETENSORS_ROWS_H
#define TENON_CORE_FILES_SAFETENSORS_ROWS_H

#include "core/files.h"

typedef struct {
    const char *type;       /* "Q4_K", "F16" */
    int64_t     out, in;    /* rows, and elements of each */
    size_t      row;        /* bytes of a row */
    bool        transposed; /* reading the tensor gives [in, out] */
} tn__st_matrix;

/* False: the i-th tensor is not a matrix, or its elements need a conversion or a check that only reading makes. */
bool tn__st_matrix_of(const tn_safetensors *f, int64_t i, tn__st_matrix *m);
/* Reads rows [from, from + n), in the order in which reading the tensor gives them. False: raised. */
bool tn__st_matrix_rows(const tn_safetensors *f, int64_t i, int64_t from, int64_t n, void *to);

#endif
