/* fuzz_torch.c — any bytes as a file of torch.save, in both forms. All tensors are requested: they have the shapes that
 * were returned, and the same bits when requested again. Nothing stays allocated. */
#include "extras.h"
#include <stdlib.h>
#include <string.h>

#define CHECK(x) ((x) ? (void)0 : abort())

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    tn_scope s = tn_scope_begin();
    tn_scalar(0); /* the scope stack, once allocated, stays */
    tn_scope_end(s);
    const size_t    before = tn_memory_now().live;
    tn_safetensors *f = tn_torch_read(data, size);
    CHECK((f != NULL) == (tn_error() == TN_OK));
    CHECK(f || tn_error() == TN_EFORMAT || tn_error() == TN_EUNSUPPORTED || (tn_error() == TN_EINVAL && !size));
    tn_clear_error();
    for (int64_t i = 0; i < tn_safetensors_count(f) && i < 64; i++) {
        const tn_safetensors_entry e = tn_safetensors_at(f, i);
        s = tn_scope_begin();
        CHECK(e.bytes >= 0 && (size_t)e.bytes <= size && tn_safetensors_find(f, e.name) == i);
        tn_tensor *a = tn_safetensors_get_at(f, i), *b = a ? tn_safetensors_get(f, e.name) : NULL;
        CHECK(a || tn_error() == TN_EFORMAT || tn_error() == TN_EUNSUPPORTED || tn_error() == TN_ESHAPE);
        CHECK(!a || (b && tn_dtype_of(a) == e.dtype && tn_shape_equal(tn_shape_of(a), e.shape)));
        CHECK(!a || !memcmp(tn_data(a), tn_data(b), (size_t)tn_numel(a) * tn_dtype_size(e.dtype)));
        tn_clear_error();
        tn_scope_end(s);
    }
    tn_safetensors_close(f);
    CHECK(tn_error() == TN_OK && tn_memory_now().tensors == 0 && tn_memory_now().live == before);
    return 0;
}
