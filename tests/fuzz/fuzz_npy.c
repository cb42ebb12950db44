/* fuzz_npy.c — any bytes as an npy file. An array that is read is written and read again: a second writing gives the
 * same bytes. Nothing stays allocated. */
#include "core/core.h"
#include <stdlib.h>
#include <string.h>

#define CHECK(x) ((x) ? (void)0 : abort())

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    tn_scope s = tn_scope_begin();
    tn_scalar(0); /* the scope stack, once allocated, stays */
    tn_scope_end(s);
    size_t     before = tn_memory_now().live;
    tn_tensor *t = tn_npy_read(data, size);
    CHECK((t != NULL) == (tn_error() == TN_OK));
    CHECK(t || tn_error() == TN_EFORMAT || tn_error() == TN_EUNSUPPORTED || tn_error() == TN_ESHAPE || !size);
    tn_clear_error();
    if (t) {
        CHECK(tn_numel(t) <= (int64_t)size);
        tn_tensor *a = tn_npy_write(t);
        tn_tensor *u = tn_npy_read(tn_data(a), (size_t)tn_numel(a));
        CHECK(u && tn_dtype_of(u) == tn_dtype_of(t) && tn_shape_equal(tn_shape_of(u), tn_shape_of(t)));
        tn_tensor *b = tn_npy_write(u);
        CHECK(b && tn_numel(a) == tn_numel(b) && !memcmp(tn_data(a), tn_data(b), (size_t)tn_numel(a)));
    }
    tn_scope_end(s);
    CHECK(tn_error() == TN_OK && tn_memory_now().tensors == 0 && tn_memory_now().live == before);
    return 0;
}
