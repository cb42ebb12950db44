/* fuzz_index.c — any bytes as model.safetensors.index.json and the files that it names. An index that opens is
 * complete: each tensor is in one file, is found by its name, and loads with the shape that was returned. Nothing stays
 * allocated. */
#define _GNU_SOURCE
#include "tests/fuzz/memory_folder.h"

#define CHECK(x) ((x) ? (void)0 : abort())

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    folder_begin();
    folder_cut(data, size);
    const size_t    before = tn_memory_now().live;
    tn_safetensors *f = tn_safetensors_open("folder/model.safetensors.index.json");
    CHECK((f != NULL) == (tn_error() == TN_OK));
    CHECK(f || tn_error() == TN_EFORMAT || tn_error() == TN_EUNSUPPORTED || tn_error() == TN_EIO);
    tn_clear_error();
    for (int64_t i = 0; i < tn_safetensors_count(f) && i < 64; i++) {
        const tn_safetensors_entry e = tn_safetensors_at(f, i);
        const tn_scope             s = tn_scope_begin();
        CHECK(e.bytes >= 0 && (size_t)e.bytes <= size && tn_safetensors_find(f, e.name) == i);
        tn_tensor *t = tn_safetensors_get_at(f, i);
        CHECK(!t || (tn_dtype_of(t) == e.dtype && tn_shape_equal(tn_shape_of(t), e.shape)));
        CHECK(t || tn_error() == TN_EFORMAT || tn_error() == TN_EUNSUPPORTED || tn_error() == TN_ESHAPE);
        tn_clear_error();
        tn_scope_end(s);
    }
    tn_safetensors_close(f);
    folder_end();
    CHECK(tn_error() == TN_OK && tn_memory_now().tensors == 0 && tn_memory_now().live == before);
    return 0;
}
