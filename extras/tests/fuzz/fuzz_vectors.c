/* fuzz_vectors.c — any bytes as a file of word vectors, in each format. Vectors that are read are complete: every word
 * is found, every element is finite; written and read again, they are the same. */
#define _GNU_SOURCE
#include "extras.h"
#include <math.h>
#include <stdlib.h>

#include "tests/fuzz/memory_file.h"

#define CHECK(x) ((x) ? (void)0 : abort())

static void use(const tn_vectors *v)
{
    const int64_t n = tn_vectors_size(v), dim = tn_vectors_dim(v);
    tn_tensor    *t = tn_vectors_tensor(v);
    const float  *x = tn_data(t);
    CHECK(n > 0 && dim > 0 && x);
    for (int64_t i = 0; i < n; i++) CHECK(tn_vectors_find(v, tn_vectors_word(v, i)) == i);
    for (int64_t i = 0; i < n * dim; i++) CHECK(isfinite(x[i]));
    float *to = malloc((size_t)dim * sizeof *to);
    CHECK(to);
    tn_vectors_of(v, tn_text_of("unheard"), to);
    tn_vectors_sentence(v, tn_text_of("the unheard"), 0.001, to);
    free(to);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const tn_scope s = tn_scope_begin();
    memory_files(data, size);
    for (int form = TN_VECTORS_ANY; form <= TN_VECTORS_SAFETENSORS; form++) {
        tn_vectors *v = tn_vectors_load("in", (tn_vectors_format)form);
        if (v) use(v);
        if (v && size < 4096 && form && tn_vectors_save(v, "out", (tn_vectors_format)form) != TN_OK) CHECK(tn_error());
        CHECK(v || tn_error() != TN_OK);
        tn_vectors_free(v);
        tn_clear_error();
    }
    tn_set_io(NULL);
    tn_scope_end(s);
    return 0;
}
