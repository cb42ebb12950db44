/* fuzz_safetensors.c — any bytes as a safetensors file. All tensors of a file that is read are written and read again:
 * the same names, dtypes, shapes and bits, and the same file from a second writing. Nothing stays allocated. */
#include "core/core.h"
#include <stdlib.h>
#include <string.h>

#define CHECK(x) ((x) ? (void)0 : abort())

/* The tensors that load, and the metadata. */
static tn_tensor *rewritten(const tn_safetensors *f)
{
    tn_safetensors_writer *w = tn_safetensors_writer_new();
    for (int64_t i = 0; i < tn_safetensors_count(f); i++) {
        tn_scope             s = tn_scope_begin();
        tn_safetensors_entry e = tn_safetensors_at(f, i);
        CHECK(tn_safetensors_find(f, e.name) == i);
        tn_tensor *t = tn_safetensors_get_at(f, i);
        if (!t) {
            CHECK(tn_error() == TN_EUNSUPPORTED || tn_error() == TN_EFORMAT || tn_error() == TN_ESHAPE);
            tn_clear_error();
        } else {
            CHECK(e.loadable && tn_dtype_of(t) == e.dtype && tn_shape_equal(tn_shape_of(t), e.shape));
            CHECK(tn_safetensors_put(w, e.name, t) == TN_OK);
        }
        tn_scope_end(s);
    }
    for (int64_t i = 0; i < tn_safetensors_metadata_count(f); i++) {
        const char *value, *key = tn_safetensors_metadata_at(f, i, &value);
        CHECK(tn_safetensors_metadata(f, key) == value);
        if (i < 9999) CHECK(tn_safetensors_note(w, key, value) == TN_OK);
    }
    tn_tensor *bytes = tn_safetensors_write(w);
    CHECK(bytes);
    tn_safetensors_writer_free(w);
    return bytes;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    tn_scope s = tn_scope_begin();
    tn_scalar(0); /* the scope stack, once allocated, stays */
    tn_scope_end(s);
    size_t          before = tn_memory_now().live;
    tn_safetensors *f = tn_safetensors_read(data, size);
    CHECK((f != NULL) == (tn_error() == TN_OK));
    CHECK(f || tn_error() == TN_EFORMAT || tn_error() == TN_EUNSUPPORTED || (tn_error() == TN_EINVAL && !size));
    tn_clear_error();
    if (f) {
        tn_safetensors_get(f, "weight");
        tn_clear_error();
        tn_tensor      *a = rewritten(f);
        tn_safetensors *g = tn_safetensors_read(tn_data(a), (size_t)tn_numel(a));
        CHECK(g);
        tn_tensor *b = rewritten(g);
        CHECK(tn_numel(a) == tn_numel(b) && !memcmp(tn_data(a), tn_data(b), (size_t)tn_numel(a)));
        tn_safetensors_close(f);
        tn_safetensors_close(g);
    }
    tn_scope_end(s);
    CHECK(tn_error() == TN_OK && tn_memory_now().tensors == 0 && tn_memory_now().live == before);
    return 0;
}
