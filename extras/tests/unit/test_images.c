/* test_images.c — images: read and written in every format, rejected if damaged, resized, cropped and normalised with
 * the numbers of Pillow and Hugging Face's processors (tests/golden/images.py). */
#include "tests/common/answers.h"

#include "extras.h"
#include "tests/common/faults.h"
#include <unistd.h>

static tn_tensor *read_text(const char *text, int64_t channels, tn_dtype dt)
{
    return tn_image_read(text, strlen(text), channels, dt);
}
static tn_tensor *bytes_of(int64_t c, int64_t h, int64_t w, const unsigned char *data)
{
    return tn_from_data(TN_U8, TN_SHAPE(c, h, w), data);
}
static bool has_png(void)
{
    static const unsigned char nothing[] = "\x89PNG\r\n\x1a\n";
    tn_image_read(nothing, 8, 0, TN_U8);
    const bool has = tn_error() == TN_EFORMAT;
    tn_clear_error();
    return has;
}

/* ---- PGM and PPM ------------------------------------------------------------------------------------------------- */

TEST(plain_and_binary)
{
    static const unsigned char grey[] = {0, 128, 255, 7, 8, 9}, colour[] = {1, 4, 2, 5, 3, 6};
    tn_tensor                 *g = bytes_of(1, 2, 3, grey), *c = bytes_of(3, 1, 2, colour);
    ck_assert(tn_same_bits(read_text("P2 3 2 255 0 128 255 7 8 9", 0, TN_U8), g));
    ck_assert(tn_same_bits(read_text("P2\n# a comment\n3#another\n 2\r255\n0 128 255\n7 8 #x\n 9\n\n", 0, TN_U8), g));
    ck_assert(tn_same_bits(tn_image_read("P5 3 2 255\n\0\x80\xff\a\b\t", 17, 0, TN_U8), g));
    ck_assert(tn_same_bits(tn_image_read("P5 3 2 255\n\0\x80\xff\a\b\t\n \n", 20, 0, TN_U8), g));
    ck_assert(tn_same_bits(read_text("P3 2 1 255 1 2 3 4 5 6", 0, TN_U8), c));
    ck_assert(tn_same_bits(tn_image_read("P6 2 1 255\n\1\2\3\4\5\6", 17, 0, TN_U8), c));
}

/* Any maximum sample, any dtype. */
TEST(samples_of_any_size)
{
    tn_tensor *t = read_text("P2 4 1 5 0 1 2 5", 0, TN_U8);
    ck_assert(tn_get(t, 0) == 0 && tn_get(t, 1) == 51 && tn_get(t, 2) == 102 && tn_get(t, 3) == 255);
    t = tn_image_read("P5 2 1 65535\n\x12\x34\xff\xff", 17, 0, TN_I32);
    ck_assert(tn_get(t, 0) == 0x1234 && tn_get(t, 1) == 65535);
    t = tn_image_read("P5 2 1 65535\n\x12\x34\xff\xff", 17, 0, TN_U8); /* 0x1234 / 257 is 18.13 */
    ck_assert(tn_get(t, 0) == 18 && tn_get(t, 1) == 255);
    t = tn_image_read("P6 1 1 1000\n\x03\xe8\0\0\x01\xf4", 18, 0, TN_F32);
    ck_assert(tn_get(t, 0) == 1 && tn_get(t, 1) == 0 && tn_get(t, 2) == 0.5);
    t = read_text("P2 1 1 1 1", 0, TN_I32);
    ck_assert(tn_get(t, 0) == 65535);
}

TEST(channels)
{
    const char *rgb = "P3 1 2 255 200 100 50 0 0 255";
    tn_tensor  *t = read_text(rgb, 1, TN_U8);
    ck_assert(tn_size(t, 0) == 1 && tn_get(t, 0) == 124 && tn_get(t, 1) == 29); /* equal to Image.convert("L") */
    t = read_text(rgb, 4, TN_U8);
    ck_assert(tn_size(t, 0) == 4 && tn_get(t, 0) == 200 && tn_get(t, 1) == 0 && tn_get(t, 6) == 255);
    t = read_text("P2 2 1 255 7 9", 3, TN_U8);
    ck_assert(tn_size(t, 0) == 3 && tn_get(t, 0) == 7 && tn_get(t, 4) == 7 && tn_get(t, 5) == 9);
    t = read_text("P2 1 1 255 7", 2, TN_F32);
    ck_assert(tn_size(t, 0) == 2 && tn_get(t, 1) == 1);
    fine();
    read_text(rgb, 5, TN_U8);
    ck_error(TN_EINVAL, "tn_image_read: channels is 5, expected 0 to 4");
    read_text(rgb, 0, TN_F64);
    ck_error(TN_EINVAL, "tn_image_read: the dtype is f64, expected u8, i32 or f32");
}

static const struct {
    const char *text;
    tn_status   code;
    const char *says;
} damaged[] = {
    {"P2", TN_EFORMAT, "not an image: the first bytes are neither those of PGM or PPM (P2, P3, P5, P6) nor of PNG"},
    {"P2 ", TN_EFORMAT, "the file ends at byte 3, expected the width"},
    {"P2 x", TN_EFORMAT, "byte 3: the width is not a number"},
    {"P2 -3 1 1 1", TN_EFORMAT, "byte 3: the width is not a number"},
    {"P2 2", TN_EFORMAT, "the file ends at byte 4, expected the height"},
    {"P2 0 4 255 ", TN_EFORMAT, "an image of 0 x 4 pixels is empty"},
    {"P2 99999999999999999999 1 255 ", TN_EFORMAT, "byte 13: the width is larger than 2147483647"},
    {"P5 70000 1 255 ", TN_EUNSUPPORTED,
     "70000 x 1 pixels are too many: at most 65535 per side and 134217728 in total"},
    {"P5 20000 20000 255 ", TN_EUNSUPPORTED,
     "20000 x 20000 pixels are too many: at most 65535 per side and 134217728 in total"},
    {"P5 10000 10000 255 abc", TN_EFORMAT, "the file has 3 bytes of samples, expected at least 100000000 for its size"},
    {"P6 10000 10000 65535 ", TN_EFORMAT, "the file has 0 bytes of samples, expected at least 600000000 for its size"},
    {"P3 2 2 255 1 2 3", TN_EFORMAT, "the file has 5 bytes of samples, expected at least 23 for its size"},
    {"P2 1 1 0 0", TN_EFORMAT, "the maximum sample is 0"},
    {"P2 1 1 65536 0", TN_EFORMAT, "byte 12: the maximum sample is larger than 65535"},
    {"P5 1 1 255x", TN_EFORMAT, "byte 10: white space is missing after the maximum sample"},
    {"P2 2 1 9 10 1", TN_EFORMAT, "byte 11: a sample is larger than 9"},
    {"P2 2 1 9 1      ", TN_EFORMAT, "the file ends at byte 16, expected a sample"},
    {"P2 2 1 9 1 a    ", TN_EFORMAT, "byte 11: a sample is not a number"},
    {"P5 1 1 9 z", TN_EFORMAT, "byte 9: a sample is 122, above the maximum 9"},
    {"P5 1 1 255 aP5 1 1 255 a", TN_EUNSUPPORTED,
     "data after the image, at byte 12; only files with one image are supported"},
    {"P1 1 1 0", TN_EUNSUPPORTED, "the file is PBM; convert it to PGM, PPM or PNG, for example with ImageMagick"},
    {"P7\nWIDTH 1", TN_EUNSUPPORTED, "the file is PAM; convert it to PGM, PPM or PNG, for example with ImageMagick"},
    {"GIF89a", TN_EUNSUPPORTED, "the file is GIF; convert it to PGM, PPM or PNG, for example with ImageMagick"},
    {"\xff\xd8\xff\xe0", TN_EUNSUPPORTED,
     "the file is JPEG; convert it to PGM, PPM or PNG, for example with ImageMagick"},
    {"RIFFabcdWEBPVP8", TN_EUNSUPPORTED,
     "the file is WebP; convert it to PGM, PPM or PNG, for example with ImageMagick"},
    {"", TN_EFORMAT, "not an image: the first bytes are neither those of PGM or PPM (P2, P3, P5, P6) nor of PNG"},
};
enum { DAMAGED = sizeof damaged / sizeof *damaged };

TEST_EACH(damaged_texts, DAMAGED)
{
    char         text[300];
    const size_t before = tn_memory_now().live;
    ck_assert_ptr_null(read_text(damaged[_i].text, 0, TN_U8));
    snprintf(text, sizeof text, "tn_image_read: %s", damaged[_i].says);
    ck_error(damaged[_i].code, text);
    ck_assert(tn_memory_now().peak < before + (1 << 22) || tn_test_slow());
}

/* ---- files ------------------------------------------------------------------------------------------------------- */

TEST(there_and_back)
{
    static const char *const ends[] = {"pgm", "ppm", "png"};
    tn_seed(1);
    for (int64_t c = 1; c <= 4; c++)
        for (int e = 0; e < 3; e++)
            for (int deep = 0; deep < 2; deep++) {
                char path[1000];
                snprintf(path, sizeof path, "%s.%s", tn_test_file("picture"), ends[e]);
                tn_tensor *t = tn_empty_of(deep ? TN_I32 : TN_U8, TN_SHAPE(c, 5, 7));
                tn_copy_from(t, tn_randint(TN_SHAPE(c, 5, 7), 0, deep ? 65536 : 256));
                const tn_status s = tn_image_save(path, t);
                const bool      takes = e == 2 || c == (e ? 3 : 1);
                if (e == 2 && !has_png()) {
                    ck_assert_int_eq(s, TN_EUNSUPPORTED);
                    tn_clear_error();
                    continue;
                }
                if (takes) ck_assert(tn_same_bits(tn_image_load(path, 0, deep ? TN_I32 : TN_U8), t));
                else ck_assert_int_eq(s, TN_EINVAL);
                if (!takes) tn_clear_error();
                fine();
            }
    tn_tensor *grey = tn_full_of(TN_U8, TN_SHAPE(1, 1), 9);
    char       path[1000];
    snprintf(path, sizeof path, "%s.pgm", tn_test_file("one"));
    ck_assert_int_eq(tn_image_save(path, grey), TN_OK);
    ck_assert(tn_get(tn_image_load(path, 0, TN_U8), 0) == 9);
}

/* 16-bit colours lose the low eight bits, as in Pillow; grey is rounded: Pillow has no u8 of it. */
TEST(deep_png)
{
    static const int32_t       deep[] = {0x00ff, 0x0180, 0x7f80, 0xff7f};
    static const unsigned char high[] = {0x00, 0x01, 0x7f, 0xff};
    char                       path[1000];
    if (!has_png()) {
        printf("SKIPPED: deep_png: built without libpng\n");
        return;
    }
    snprintf(path, sizeof path, "%s.png", tn_test_file("deep"));
    for (int64_t c = 1; c <= 4; c++) {
        tn_tensor *t = tn_from_data(TN_I32, TN_SHAPE(c, 1, 1), deep);
        ck_assert_int_eq(tn_image_save(path, t), TN_OK);
        ck_assert(tn_same_bits(tn_image_load(path, 0, TN_I32), t));
        tn_tensor *u = tn_image_load(path, 0, TN_U8);
        ck_assert(c == 1 ? tn_get(u, 0) == 1 : tn_same_bits(u, bytes_of(c, 1, 1, high)));
    }
    ck_assert(tn_get(tn_image_load(path, 1, TN_U8), 0) == 15); /* of 0, 1 and 127 */
}

TEST(saving_refuses)
{
    tn_tensor *t = tn_zeros_of(TN_U8, TN_SHAPE(3, 1, 1));
    ck_fails(tn_image_save("x.jpg", t), TN_EINVAL,
             "tn_image_save: 'x.jpg': the file name must end in .pgm, .ppm or .png");
    ck_fails(tn_image_save("x.pgm", t), TN_EINVAL,
             "tn_image_save: 'x.pgm': .pgm has 1 channels, this image 3; .png takes any number");
    ck_fails(tn_image_save("x.png", tn_zeros(TN_SHAPE(3, 1, 1))), TN_ESHAPE,
             "tn_image_save: 'x.png': expected an image in u8 or i32, [H, W] or [1 to 4, H, W], not f32 [3, 1, 1]");
    ck_fails(tn_image_save("x.pgm", tn_full_of(TN_I32, TN_SHAPE(1, 1), 65536)), TN_EINVAL,
             "tn_image_save: 'x.pgm': a sample is 65536, expected 0 to 65535");
    ck_fails(tn_image_save(NULL, t), TN_EINVAL, "tn_image_save: the path is NULL");
    ck_fails(tn_image_save("x.pgm", NULL), TN_EINVAL, "tn_image_save: the image is NULL");
    ck_assert_int_eq(tn_image_save("x.pgm", tn_zeros_of(TN_U8, TN_SHAPE(0, 3))), TN_EFORMAT);
    tn_clear_error();
    ck_refused_code(tn_image_load("/nowhere/x.png", 0, TN_U8), TN_EIO);
}

/* A PNG that is truncated or changed at any byte gives an image or an error, and leaks nothing. */
TEST(damaged_png)
{
    if (!has_png()) {
        printf("SKIPPED: damaged_png: built without libpng\n");
        return;
    }
    char path[1000];
    snprintf(path, sizeof path, "%s.png", tn_test_file("whole"));
    tn_seed(2);
    tn_tensor *t = tn_empty_of(TN_U8, TN_SHAPE(3, 9, 8));
    tn_copy_from(t, tn_randint(TN_SHAPE(3, 9, 8), 0, 256));
    ck_assert_int_eq(tn_image_save(path, t), TN_OK);
    tn_tensor      *file = tn_file_read(path, 1 << 20);
    const int64_t   n = tn_numel(file);
    unsigned char  *all = tn_data_mut(file);
    const tn_memory before = tn_memory_now();
    for (int64_t i = 0; i < n; i++) {
        ck_assert_ptr_null(tn_image_read(all, (size_t)i, 0, TN_U8));
        ck_assert(tn_error() == TN_EFORMAT);
        tn_clear_error();
        for (int bit = 0; bit < 8; bit++) {
            const tn_scope s = tn_scope_begin();
            all[i] ^= (unsigned char)(1 << bit);
            tn_tensor *x = tn_image_read(all, (size_t)n, 0, TN_U8);
            ck_assert((x != NULL) == (tn_error() == TN_OK));
            all[i] ^= (unsigned char)(1 << bit);
            tn_clear_error();
            tn_scope_end(s);
        }
    }
    ck_assert(tn_memory_now().live == before.live);
    /* the headers claim a chunk of 1.4 GB, and 10,000 x 10,000 pixels */
    memcpy(all + 33, "\x54\0\0\x17zTXt", 8);
    tn_reset_peak();
    ck_assert_ptr_null(tn_image_read(all, 60, 0, TN_U8));
    ck_assert(tn_error() == TN_EFORMAT && tn_memory_now().peak < before.live + (1 << 20));
    tn_clear_error();
    memcpy(all + 16, "\0\0\x27\x10\0\0\x27\x10", 8);
    memcpy(all + 29, "\x35\x2c\xf5\x70", 4);
    tn_image_read(all, (size_t)n, 0, TN_U8);
    ck_assert(tn_error() == TN_EFORMAT);
    tn_clear_error();
}

/* ---- IDX --------------------------------------------------------------------------------------------------------- */

static tn_tensor *idx_of(const void *data, size_t bytes)
{
    const char *path = tn_test_file("some.idx");
    ck_assert_int_eq(tn_file_write(path, data, bytes), TN_OK);
    return tn_idx_load(path);
}

TEST(idx)
{
    const char *path = tn_test_file("t.idx");
    tn_seed(3);
    static const tn_dtype types[] = {TN_U8, TN_I32, TN_F32, TN_F64};
    for (size_t i = 0; i < 4; i++)
        for (int dims = 0; dims <= 4; dims++) {
            tn_shape   s = {.n = dims, .d = {3, 1, 4, 2}};
            tn_tensor *t = tn_empty_of(types[i], s);
            tn_copy_from(t, tn_uniform(s, 0, 200));
            ck_assert_int_eq(tn_idx_save(path, t), TN_OK);
            ck_assert(tn_same_bits(tn_idx_load(path), t));
        }
    tn_tensor *t = idx_of("\0\0\x09\1\0\0\0\2\xff\x05", 10);
    ck_assert(tn_dtype_of(t) == TN_I32 && tn_get(t, 0) == -1 && tn_get(t, 1) == 5);
    t = idx_of("\0\0\x0b\1\0\0\0\1\xff\xfe", 10);
    ck_assert(tn_dtype_of(t) == TN_I32 && tn_get(t, 0) == -2);
    fine();
    ck_assert_int_eq(tn_idx_save(path, tn_arange(3)), TN_EDTYPE);
    tn_clear_error();
    ck_fails(tn_idx_save(path, NULL), TN_EINVAL, "tn_idx_save: the tensor is NULL");
}

static const struct {
    const char *data;
    size_t      bytes;
    tn_status   code;
} idx_damaged[] = {
    {"", 0, TN_EFORMAT},
    {"\0\0\x08", 3, TN_EFORMAT},
    {"\0\1\x08\1\0\0\0\1a", 9, TN_EFORMAT},
    {"\0\0\x07\1\0\0\0\1a", 9, TN_EFORMAT},
    {"\0\0\x08\1\0\0\0\2a", 9, TN_EFORMAT},
    {"\0\0\x08\1\0\0\0\1ab", 10, TN_EFORMAT},
    {"\0\0\x08\3\0\0\0\1", 8, TN_EFORMAT},
    {"\0\0\x08\x09\0\0\0\1", 8, TN_EUNSUPPORTED},
    {"\0\0\x0e\3\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff", 16, TN_EUNSUPPORTED},
    {"\0\0\x08\1\x7f\xff\xff\xff", 8, TN_EFORMAT},
    {"\x1f\x8b", 2, TN_EFORMAT},
    {"\x1f\x8b\x08\0\0\0\0\0\0\3garbage!", 18, TN_EFORMAT},
};
enum { IDX_DAMAGED = sizeof idx_damaged / sizeof *idx_damaged };

TEST_EACH(damaged_idx, IDX_DAMAGED)
{
    const bool png = has_png(), packed = idx_damaged[_i].data[0] == '\x1f';
    ck_assert_ptr_null(idx_of(idx_damaged[_i].data, idx_damaged[_i].bytes));
    ck_assert_msg(tn_error() == (packed && !png ? TN_EUNSUPPORTED : idx_damaged[_i].code), "%s", tn_error_message());
    tn_clear_error();
}

/* 6 bytes [2, 3] in gzip; damaged at any byte, it is rejected or unchanged. */
TEST(packed_idx)
{
    static const unsigned char packed[] = {0x1f, 0x8b, 0x08, 0x00, 0x00, 0x00, 0x00, 0x00, 0x02, 0x03, 0x63, 0x60,
                                           0xe0, 0x60, 0x62, 0x60, 0x60, 0x00, 0x61, 0x66, 0x46, 0x26, 0x66, 0x16,
                                           0x56, 0x36, 0x00, 0x48, 0x94, 0x3e, 0xe5, 0x12, 0x00, 0x00, 0x00};
    const bool                 png = has_png();
    tn_tensor                 *t = idx_of(packed, sizeof packed);
    if (!png) {
        ck_error_code(TN_EUNSUPPORTED);
        printf("SKIPPED: packed_idx: built without libpng's zlib\n");
        return;
    }
    fine();
    ck_assert(tn_size(t, 0) == 2 && tn_size(t, 1) == 3 && tn_get(t, 0) == 1 && tn_get(t, 5) == 6);
    for (size_t i = 0; i < sizeof packed; i++) {
        unsigned char  changed[sizeof packed];
        const tn_scope s = tn_scope_begin();
        ck_assert_ptr_null(idx_of(packed, i));
        tn_clear_error();
        memcpy(changed, packed, sizeof packed);
        changed[i] ^= 0x10;
        tn_tensor *u = idx_of(changed, sizeof packed);
        ck_assert(u ? tn_same_bits(u, t) : tn_error() != TN_OK);
        tn_clear_error();
        tn_scope_end(s);
    }
}

/* ---- sizes and numbers ------------------------------------------------------------------------------------------- */

static void open_answers(void) { tn_answers_open("golden/images.safetensors"); }
AROUND_TESTS(open_answers, close_answers);

static const char *const pictures[] = {"noise", "smooth", "edges"};

TEST_EACH(sizes_as_pillow, 3)
{
    static const int64_t sizes[][2] = {{13, 17}, {1, 1}, {7, 40}, {31, 3}, {13, 5}, {26, 34}, {64, 64}};
    const char          *name = pictures[_i];
    tn_tensor           *t = answer(name), *real = tn_empty(TN_SHAPE(13, 17));
    float               *to = tn_data_mut(real);
    char                 key[80];
    for (int64_t i = 0; i < 13 * 17; i++) to[i] = (float)tn_get(t, i) / 255 - 0.25F;
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++)
        for (int cubic = 0; cubic < 2; cubic++) {
            const int64_t     h = sizes[i][0], w = sizes[i][1];
            const tn_resample how = cubic ? TN_BICUBIC : TN_BILINEAR;
            const char       *kind = cubic ? "cubic" : "linear";
            snprintf(key, sizeof key, "%s.%s.%dx%d", name, kind, (int)h, (int)w);
            ck_assert_msg(tn_same_bits(tn_image_resize(t, h, w, how), answer(key)), "%s", key);
            snprintf(key, sizeof key, "%s.%s.real.%dx%d", name, kind, (int)h, (int)w);
            ck_assert_msg(tn_same_bits(tn_image_resize(real, h, w, how), answer(key)), "%s", key);
        }
    char file[1000]; /* a colour image as a grey one */
    snprintf(file, sizeof file, "%s.ppm", tn_test_file("grey"));
    snprintf(key, sizeof key, "%s.grey", name);
    ck_assert_int_eq(tn_image_save(file, t), TN_OK);
    ck_assert(tn_same_bits(tn_image_load(file, 1, TN_U8), answer(key)));
}

static const char *const processors[] = {"vit", "deit", "shortest", "plain"};

/* As read from the file, and from the file that is then written. */
TEST_EACH(ready_as_hugging_face, 4)
{
    const char *kind = processors[_i], *text = tn_safetensors_metadata(answers, kind),
               *dir = tn_test_folder("processor");
    char path[1000], key[80];
    tn_test_unsummed(dir);
    snprintf(path, sizeof path, "%s/preprocessor_config.json", dir);
    ck_assert_int_eq(tn_file_write(path, text, strlen(text)), TN_OK);
    tn_image_processor p = {0}, again = {0};
    for (int round = 0; round < 2; round++) {
        ck_assert_msg(tn_image_processor_load(dir, &p) == TN_OK, "%s", tn_error_message());
        for (int k = 0; k < 3; k++) {
            snprintf(key, sizeof key, "%s.%s", pictures[k], kind);
            ck_assert_msg(tn_same_bits(tn_image_ready(answer(pictures[k]), &p), answer(key)), "%s", key);
        }
        ck_assert(!round || !memcmp(&p.channels, &again.channels, offsetof(tn_image_processor, resample)));
        again = p;
        ck_assert_int_eq(tn_image_processor_save(&p, dir), TN_OK);
    }
    /* grey to red, green and blue */
    tn_tensor *one = tn_full_of(TN_U8, TN_SHAPE(1, 30, 20), 77);
    ck_assert(tn_size(tn_image_ready(one, &p), 0) == 3);
}

TEST(processors_refused)
{
    static const struct {
        const char *text;
        tn_status   code;
    } wrong[] = {
        {"[]", TN_EFORMAT},
        {"{\"image_processor_type\": \"ConvNextImageProcessor\"}", TN_EUNSUPPORTED},
        {"{\"image_processor_type\": \"ViTHybridImageProcessor\"}", TN_EUNSUPPORTED},
        {"{\"size\": 0}", TN_EFORMAT},
        {"{\"size\": {\"height\": 3}}", TN_EINDEX},
        {"{\"size\": {\"shortest_edge\": 3, \"longest_edge\": 4}}", TN_EUNSUPPORTED},
        {"{\"crop_size\": {\"shortest_edge\": 3}}", TN_EUNSUPPORTED},
        {"{\"resample\": 1}", TN_EUNSUPPORTED},
        {"{\"image_std\": [1, 0, 1]}", TN_EFORMAT},
        {"{\"image_mean\": [1, 0, 1, 2, 3]}", TN_EFORMAT},
        {"{\"do_pad\": true}", TN_EUNSUPPORTED},
        {"{\"do_resize\": 3}", TN_EFORMAT},
    };
    const char        *dir = tn_test_folder("refused");
    char               path[1000];
    tn_image_processor p = {.channels = 9};
    snprintf(path, sizeof path, "%s/preprocessor_config.json", dir);
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        ck_assert_int_eq(tn_file_write(path, wrong[i].text, strlen(wrong[i].text)), TN_OK);
        ck_assert_msg(tn_image_processor_load(dir, &p) == wrong[i].code, "%s: %s", wrong[i].text, tn_error_message());
        tn_clear_error();
        ck_assert_int_eq(p.channels, 9);
    }
    ck_fails(tn_image_processor_load(NULL, &p), TN_EINVAL, "tn_image_processor_load: the directory is NULL");
    p = (tn_image_processor){.channels = 3, .height = 4};
    tn_image_ready(tn_zeros_of(TN_U8, TN_SHAPE(3, 2, 2)), &p);
    ck_error(TN_EINVAL,
             "tn_image_ready: set .height and .width together, and .crop_height and .crop_width; or .shortest instead "
             "of the first two");
    p = (tn_image_processor){.channels = 3};
    tn_image_ready(tn_zeros(TN_SHAPE(3, 2, 2)), &p);
    ck_error(TN_ESHAPE, "tn_image_ready: expected an image in u8 [1 to 4, H, W], not f32 [3, 2, 2]");
    tn_image_resize(tn_zeros_of(TN_U8, TN_SHAPE(3, 2, 2)), 0, 3, TN_BILINEAR);
    ck_error(TN_EINVAL, "tn_image_resize: .height is 0, but must be from 1 to 65535");
    tn_image_resize(tn_zeros_of(TN_U8, TN_SHAPE(3, 2, 2)), 3, 3, (tn_resample)0);
    ck_error(TN_EINVAL, "tn_image_resize: how is 0, expected TN_BILINEAR or TN_BICUBIC");
    tn_image_resize(tn_zeros_of(TN_I32, TN_SHAPE(2, 2)), 3, 3, TN_BILINEAR);
    ck_error(TN_ESHAPE, "tn_image_resize: expected an image in u8 or f32 [..., H, W], not i32 [2, 2]");
}

TEST(crops)
{
    static const unsigned char six[] = {1, 2, 3, 4, 5, 6};
    tn_tensor                 *t = bytes_of(1, 2, 3, six), *y = tn_image_center_crop(t, 1, 1);
    ck_assert(tn_get(y, 0) == 2);
    y = tn_image_center_crop(t, 5, 2); /* 2 rows in 5: the larger half is above */
    ck_assert(tn_size(y, 1) == 5 && tn_get(y, 3) == 0 && tn_get(y, 4) == 1 && tn_get(y, 7) == 5 && tn_get(y, 8) == 0);
}

/* A side of one pixel, and one of 10,000. */
TEST(small_and_large)
{
    tn_tensor *one = tn_full_of(TN_U8, TN_SHAPE(1, 1, 1), 200), *y = tn_image_resize(one, 224, 3, TN_BICUBIC);
    for (int64_t i = 0; i < 224 * 3; i++) ck_assert(tn_get(y, i) == 200);
    tn_tensor *wide = tn_full_of(TN_U8, TN_SHAPE(1, 3, 10000), 9), *tall = tn_full_of(TN_U8, TN_SHAPE(1, 10000, 2), 9);
    y = tn_image_resize(wide, 2, 2, TN_BILINEAR);
    ck_assert(tn_size(y, 2) == 2 && tn_get(y, 3) == 9);
    y = tn_image_resize(tall, 1, 1, TN_BICUBIC);
    ck_assert(tn_get(y, 0) == 9);
}

/* ---- batches ----------------------------------------------------------------------------------------------------- */

static tn_images *some_images(uint64_t seed, int64_t padding, bool flip)
{
    static const tn_image_processor p = {.channels = 2, .mean = {0.5, 0.25}, .std = {0.5, 1}};
    tn_tensor                      *x = tn_empty_of(TN_U8, TN_SHAPE(23, 2, 4, 5)), *y = tn_arange_of(TN_U8, 0, 23, 1);
    unsigned char                  *to = tn_data_mut(x);
    for (int i = 0; i < 23 * 40; i++) to[i] = (unsigned char)(1 + i % 40 + 5 * (i / 40));
    tn_images *s = tn_images_new(.x = x, .y = y, .processor = &p, .batch = 6, .shuffle = true, .padding = padding,
                                 .flip = flip, .seed = seed);
    fine();
    return s;
}

/* Each image of a batch is one of the images, shifted by at most `padding`, possibly mirrored, and 0 elsewhere. */
TEST(images_are_moved)
{
    tn_images *s = some_images(1, 2, true);
    tn_source  source = tn_images_source(s);
    tn_batch   b;
    int        mirrored = 0, moved = 0, seen = 0;
    for (int epoch = 0; epoch < 4; epoch++)
        while (tn_source_next(&source, &b)) {
            ck_assert(tn_dtype_of(b.x) == TN_F32 && tn_dtype_of(b.y) == TN_I64);
            for (int64_t i = 0; i < tn_size(b.x, 0); i++, seen++) {
                const int64_t index = tn_get_i64(tn_batch_get(&b, "index"), i);
                bool          found = false;
                ck_assert_int_eq(tn_get_i64(b.y, i), index);
                for (int64_t m = 0; m < 50 && !found; m++) {
                    const int64_t down = m / 2 / 5 - 2, right = m / 2 % 5 - 2, flip = m % 2;
                    bool          same = true;
                    for (int64_t k = 0; k < 40 && same; k++) {
                        const int64_t c = k / 20, y = k / 5 % 4 - down, at = k % 5 - right, x = flip ? 4 - at : at;
                        const bool    in = y >= 0 && y < 4 && at >= 0 && at < 5;
                        const double  v = in ? (double)(1 + c * 20 + y * 5 + x + 5 * index) : 0;
                        const float   want = ((float)(v / 255) - (c ? 0.25F : 0.5F)) / (c ? 1 : 0.5F);
                        same = (float)tn_get(b.x, i * 40 + k) == want;
                    }
                    if (same) found = true, mirrored += flip != 0, moved += down != 0 || right != 0;
                }
                ck_assert(found);
            }
        }
    fine();
    ck_assert(seen == 92 && mirrored > 25 && mirrored < 70 && moved > 75);
    tn_images_free(s);
}

TEST(images_refused)
{
    tn_tensor *x = tn_zeros_of(TN_U8, TN_SHAPE(3, 2, 2));
    ck_refused(tn_images_new(.x = NULL), TN_EINVAL, "tn_images_new: .x is NULL");
    ck_refused(tn_images_new(.x = tn_zeros(TN_SHAPE(3, 2, 2))), TN_ESHAPE,
               "tn_images_new: .x must be u8 [N, H, W] or [N, 1 to 4, H, W], not f32 [3, 2, 2]");
    ck_refused(tn_images_new(.x = x, .y = tn_zeros(TN_SHAPE(3))), TN_ESHAPE,
               "tn_images_new: .y must be integers [N], not f32 [3]");
    ck_refused(tn_images_new(.x = x, .padding = -1), TN_EINVAL,
               "tn_images_new: .padding is -1, but must be from 0 to 65535");
    ck_refused(tn_images_new(.x = x, .y = tn_arange(2)), TN_ESHAPE, "tn_dataset_new: .x has 3 rows, but .y [2] has 2");
    const tn_image_processor p = {.channels = 3};
    ck_refused(tn_images_new(.x = x, .processor = &p), TN_EINVAL,
               "tn_images_new: .processor is for 3 channels, but the images have 1");
    ck_assert(!tn_images_source(NULL).next);
    tn_images_free(NULL);
}

/* Any failing allocation gives an error and leaks nothing. */
static double everything(int which)
{
    static const char  pgm[] = "P2 5 4 9 1 2 3 4 5 6 7 8 9 0 1 2 3 4 5 6 7 8 9 0";
    const tn_scope     s = tn_scope_begin();
    tn_image_processor p = {.channels = 3, .height = 3, .width = 7, .crop_height = 5, .crop_width = 4};
    double             sum = 0;
    tn_tensor         *x = tn_image_read(pgm, sizeof pgm - 1, 0, TN_U8), *y = tn_image_ready(x, &p);
    for (int64_t i = 0; i < tn_numel(y); i++) sum += tn_get(y, i);
    tn_images *images = which ? tn_images_new(.x = x, .padding = 1, .batch = 1) : NULL;
    tn_source  source = tn_images_source(images);
    tn_batch   b;
    if (images && tn_source_next(&source, &b)) sum += tn_get(b.x, 7);
    tn_images_free(images);
    tn_scope_end(s);
    return sum;
}
BARE_TEST_EACH(memory_that_fails, 2) { tn_each_allocation_fails(everything, _i, 1, 3, 5); }
