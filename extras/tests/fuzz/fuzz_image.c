/* fuzz_image.c — any bytes as an image, PGM, PPM or PNG. An image that is read has the requested samples and size, is
 * resized and normalized, and is the same when written and read again. Nothing stays allocated. */
#define _GNU_SOURCE
#include "extras.h"
#include <stdlib.h>

#include "tests/fuzz/memory_file.h"

#define CHECK(x) ((x) ? (void)0 : abort())

static void use(const tn_tensor *t, const char *path, int64_t pixels)
{
    static const tn_image_processor p = {.channels = 3, .height = 4, .width = 3, .crop_height = 5, .crop_width = 2};
    const unsigned char            *x = tn_data(t);
    tn_tensor                      *y = tn_image_ready(t, &p);
    CHECK(y && tn_numel(y) == 3 * 5 * 2);
    for (int64_t i = 0; i < 30; i++) CHECK(tn_get(y, i) >= 0 && tn_get(y, i) <= 1);
    if (pixels > 20000) return; /* more than the memory file has room for */
    const tn_status s = tn_image_save(path, t);
    CHECK(s == TN_OK || s == TN_EINVAL || s == TN_EUNSUPPORTED);
    tn_clear_error();
    if (s != TN_OK) return;
    memory.in = memory.out, memory.in_bytes = memory.out_bytes;
    tn_tensor *again = tn_image_load("in", 0, TN_U8);
    CHECK(again && tn_shape_equal(tn_shape_of(again), tn_shape_of(t)) &&
          !memcmp(tn_data(again), x, (size_t)tn_numel(t)));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const tn_dtype types[] = {TN_U8, TN_I32, TN_F32};
    memory_files(data, size);
    const size_t   before = tn_memory_now().live;
    const tn_scope s = tn_scope_begin();
    for (int i = 0; i < 6; i++) {
        const int64_t channels = i < 2 ? 0 : i - 1;
        memory.in = data, memory.in_bytes = size;
        tn_tensor *t = tn_image_load("in", channels, types[i % 3]);
        CHECK((t != NULL) == (tn_error() == TN_OK));
        CHECK(t || tn_error() == TN_EFORMAT || tn_error() == TN_EUNSUPPORTED);
        tn_clear_error();
        if (!t) break;
        const tn_shape shape = tn_shape_of(t);
        CHECK(shape.n == 3 && (!channels || shape.d[0] == channels));
        if (i % 3 == 0)
            use(t, shape.d[0] == 1 ? "out.pgm" : shape.d[0] == 3 ? "out.ppm" : "out.png", shape.d[1] * shape.d[2]);
    }
    tn_set_io(NULL);
    tn_scope_end(s);
    CHECK(tn_error() == TN_OK && tn_memory_now().tensors == 0 && tn_memory_now().live == before);
    return 0;
}
