/* fuzz_idx.c — any bytes as an IDX file, compressed or not. An array that is read and can be written is the same when
 * it is read again. Nothing stays allocated. */
#define _GNU_SOURCE
#include "extras.h"
#include <stdlib.h>

#include "tests/fuzz/memory_file.h"

#define CHECK(x) ((x) ? (void)0 : abort())

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    memory_files(data, size);
    const size_t   before = tn_memory_now().live;
    const tn_scope s = tn_scope_begin();
    tn_tensor     *t = tn_idx_load("in");
    CHECK((t != NULL) == (tn_error() == TN_OK));
    CHECK(t || tn_error() == TN_EFORMAT || tn_error() == TN_EUNSUPPORTED || tn_error() == TN_ESHAPE);
    tn_clear_error();
    if (t && tn_numel(t) < MEMORY_MOST / 16) {
        CHECK(tn_idx_save("out", t) == TN_OK);
        memory.in = memory.out, memory.in_bytes = memory.out_bytes;
        tn_tensor *u = tn_idx_load("in");
        CHECK(u && tn_dtype_of(u) == tn_dtype_of(t) && tn_shape_equal(tn_shape_of(u), tn_shape_of(t)));
        for (int64_t i = 0; i < tn_numel(t); i++) {
            const double a = tn_get(t, i), b = tn_get(u, i);
            CHECK(a == b || (a != a && b != b));
        }
    }
    tn_set_io(NULL);
    tn_scope_end(s);
    CHECK(tn_error() == TN_OK && tn_memory_now().tensors == 0 && tn_memory_now().live == before);
    return 0;
}
