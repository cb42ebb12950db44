/* fuzz_gguf.c — any bytes as a GGUF file. Every entry is requested; the tensors that load are written to another file
 * and read again: the same names, shapes and bits. Packed weights have the same values. Nothing stays allocated. */
#include "core/core.h"
#include <stdlib.h>
#include <string.h>

#define CHECK(x) ((x) ? (void)0 : abort())

static void refused(void)
{
    const tn_status e = tn_error();
    CHECK(e == TN_OK || e == TN_EFORMAT || e == TN_EUNSUPPORTED || e == TN_ESHAPE || e == TN_EINDEX);
    tn_clear_error();
}

static void values(const tn_gguf *g)
{
    for (int64_t i = 0; i < tn_gguf_count(g); i++) {
        const tn_scope      s = tn_scope_begin();
        const tn_gguf_value v = tn_gguf_at(g, i);
        CHECK(tn_gguf_find(g, v.key).count == v.count);
        tn_gguf_i64_or(g, v.key, 0), refused();
        tn_gguf_double_or(g, v.key, 0), refused();
        tn_gguf_bool_or(g, v.key, false), refused();
        CHECK(tn_gguf_string_or(g, v.key, "")), refused();
        tn_tensor *numbers = tn_gguf_numbers(g, v.key);
        CHECK(!numbers || tn_numel(numbers) == v.count);
        refused();
        size_t bytes = 0;
        for (tn_gguf_strings t = tn_gguf_strings_of(g, v.key); tn_gguf_next(&t);)
            for (size_t k = 0; k < t.bytes; k++) bytes += (unsigned char)t.text[k];
        CHECK(bytes < SIZE_MAX);
        refused();
        tn_scope_end(s);
    }
}

/* Returns the bytes of a file with the tensors that load; it must read as the same tensors. */
static void again(const tn_safetensors *f)
{
    tn_gguf_writer *w = tn_gguf_writer_new();
    for (int64_t i = 0; i < tn_safetensors_count(f); i++) {
        const tn_safetensors_entry e = tn_safetensors_at(f, i);
        tn_tensor                 *t = tn_safetensors_get_at(f, i);
        CHECK(!t || (e.loadable && tn_dtype_of(t) == e.dtype && tn_shape_equal(tn_shape_of(t), e.shape)));
        refused();
        if (t) CHECK(tn_safetensors_put(tn_gguf_writer_tensors(w), e.name, t) == TN_OK);
    }
    tn_tensor *bytes = tn_gguf_write(w, NULL);
    CHECK(bytes);
    tn_gguf *g = tn_gguf_read(tn_data(bytes), (size_t)tn_numel(bytes));
    CHECK(g);
    for (int64_t i = 0; i < tn_safetensors_count(tn_gguf_tensors(g)); i++) {
        const tn_safetensors_entry e = tn_safetensors_at(tn_gguf_tensors(g), i);
        tn_tensor                 *a = tn_safetensors_get_at(tn_gguf_tensors(g), i), *b = tn_safetensors_get(f, e.name);
        CHECK(a && b && tn_shape_equal(tn_shape_of(a), tn_shape_of(b)));
        if (tn_dtype_of(a) == tn_dtype_of(b))
            CHECK(!memcmp(tn_data(a), tn_data(b), (size_t)tn_numel(a) * tn_dtype_size(e.dtype)));
    }
    tn_gguf_close(g);
    tn_gguf_writer_free(w);
}

/* Matrices that stay packed have the values that reading them gives. */
static void packed(const tn_gguf *g)
{
    const tn_safetensors *f = tn_gguf_tensors(g);
    for (int64_t i = 0; i < tn_safetensors_count(f); i++) {
        const tn_scope             s = tn_scope_begin();
        const tn_safetensors_entry e = tn_safetensors_at(f, i);
        if (e.loadable && e.shape.n == 2 && (*e.stored == 'Q' || !strcmp(e.stored, "F16"))) {
            const tn_tensor *bytes = tn_gguf_get_packed(g, e.name), *want = tn_safetensors_get(f, e.name);
            const tn_tensor *w =
                bytes && want ? tn_blocks_pack(e.stored, TN_F32, e.shape, tn_data(bytes), (size_t)tn_numel(bytes))
                              : NULL;
            if (w) CHECK(!memcmp(tn_data(tn_unpack(w)), tn_data(want), (size_t)tn_numel(want) * sizeof(float)));
            if (tn_error() == TN_EINVAL) tn_clear_error(); /* an infinity in F16 */
            refused();
        }
        tn_scope_end(s);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    tn_scope s = tn_scope_begin();
    tn_scalar(0); /* the scope stack, once allocated, stays */
    tn_scope_end(s);
    const size_t before = tn_memory_now().live;
    s = tn_scope_begin();
    tn_gguf *g = tn_gguf_read(data, size);
    CHECK((g != NULL) == (tn_error() == TN_OK));
    if (!g) refused();
    else values(g), again(tn_gguf_tensors(g)), packed(g);
    tn_gguf_close(g);
    tn_scope_end(s);
    CHECK(tn_error() == TN_OK && tn_memory_now().tensors == 0 && tn_memory_now().live == before);
    return 0;
}
