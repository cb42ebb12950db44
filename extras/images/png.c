/* png.c — PNG through the system's libpng, if Tenon was built with it (TN__PNG). libpng leaves its calls by longjmp on
 * errors: state that must survive is in a struct, and all memory comes from Tenon's allocator. */
#include "extras/images/images_private.h"
#include "data/lines.h"

#ifdef TN__PNG

#include <png.h>

/* FIRST: bytes before a block that store its size. CHUNK_MOST: maximum bytes of a non-pixel chunk. BLOCK_MOST: maximum
 * bytes of a block, because libpng 1.6.39 allocates the length that a chunk claims before it checks that the file is
 * long enough. */
enum { FIRST = 64, CHUNK_MAX = 4 << 20, BLOCK_MAX = 16 << 20 };

/* ---- callbacks of libpng ----------------------------------------------------------------------------------------- */

typedef struct {
    const char          *label;
    const unsigned char *from; /* reading */
    size_t               left;
    tn_string            file; /* writing */
    png_structp          png;
    png_infop            info;
    tn__raster           raster;
    unsigned char       *rows; /* one row, or all rows of an interlaced image */
    size_t               rows_bytes;
    uint16_t            *samples;
    size_t               samples_bytes;
    char                 text[200];
} job;

static void on_error(png_structp png, png_const_charp text)
{
    job *j = png_get_error_ptr(png);
    snprintf(j->text, sizeof j->text, "%s", text);
    png_longjmp(png, 1);
}
static void on_warning(png_structp png, png_const_charp text) { (void)png, (void)text; }

static png_voidp get_memory(png_structp png, png_alloc_size_t bytes)
{
    (void)png;
    unsigned char *p = bytes <= BLOCK_MAX ? tn_mem_get(bytes + FIRST) : NULL;
    if (!p) return NULL;
    memcpy(p, &bytes, sizeof bytes);
    return p + FIRST;
}
static void put_memory(png_structp png, png_voidp p)
{
    png_alloc_size_t bytes;
    (void)png;
    if (!p) return;
    memcpy(&bytes, (unsigned char *)p - FIRST, sizeof bytes);
    tn_mem_put((unsigned char *)p - FIRST, bytes + FIRST);
}

static void feed(png_structp png, png_bytep to, size_t bytes)
{
    job *j = png_get_io_ptr(png);
    if (bytes > j->left) png_error(png, "the file is too short");
    memcpy(to, j->from, bytes);
    j->from += bytes, j->left -= bytes;
}
static void take(png_structp png, png_bytep from, size_t bytes)
{
    job *j = png_get_io_ptr(png);
    if (tn_string_add(&j->file, (tn_text){(const char *)from, bytes}) != TN_OK) png_error(png, "out of memory");
}
static void no_flush(png_structp png) { (void)png; }

/* ---- reading ----------------------------------------------------------------------------------------------------- */

/* Reads up to the first row: checks the size against the file's length. False: raised. */
static bool begin(job *j, int64_t channels, tn_dtype dt, size_t file)
{
    png_structp png = j->png;
    png_set_read_fn(png, j, feed);
    png_set_user_limits(png, TN__IMAGE_SIDE, TN__IMAGE_SIDE);
    png_set_chunk_malloc_max(png, CHUNK_MAX);
    png_set_chunk_cache_max(png, 128);
    png_read_info(png, j->info);
    const int64_t width = png_get_image_width(png, j->info), height = png_get_image_height(png, j->info);
    const int64_t need = height * (int64_t)(png_get_rowbytes(png, j->info) + 1);
    if (!tn__image_sides(j->label, width, height)) return false;
    if (need / TN__INFLATION > (int64_t)file)
        return tn_raise_false(TN_EFORMAT, "%s: an image of %lld x %lld pixels cannot be stored in %zu bytes", j->label,
                              (long long)width, (long long)height, file);
    png_set_expand(png); /* palette to colours, 1 … 4 bits to 8, transparent colour to opacity */
    const bool grey = png_get_color_type(png, j->info) == PNG_COLOR_TYPE_GRAY;
    if (dt == TN_U8 && !grey) png_set_strip_16(png); /* keeps the high byte, as Pillow does */
    const bool interlaced = png_set_interlace_handling(png) > 1;
    png_read_update_info(png, j->info);
    const int stored = png_get_channels(png, j->info), depth = png_get_bit_depth(png, j->info);
    j->rows_bytes = png_get_rowbytes(png, j->info) * (size_t)(interlaced ? height : 1);
    j->samples_bytes = (size_t)(width * stored) * sizeof *j->samples;
    j->rows = tn_mem_get(j->rows_bytes), j->samples = tn_mem_get(j->samples_bytes);
    return j->rows && j->samples &&
           tn__raster_begin(&j->raster, j->label, width, height, stored, depth == 16 ? 65535 : 255, channels, dt);
}

static void put_row(job *j, int64_t y, const unsigned char *row)
{
    const int64_t n = j->raster.width * j->raster.stored;
    const bool    deep = j->raster.largest > 255;
    for (int64_t i = 0; i < n; i++) j->samples[i] = (uint16_t)(deep ? row[2 * i] << 8 | row[2 * i + 1] : row[i]);
    tn__raster_row(&j->raster, y, j->samples);
}

static void read_all(job *j, int64_t channels, tn_dtype dt, size_t file)
{
    if (setjmp(png_jmpbuf(j->png))) {
        if (tn_error() == TN_OK) tn_raise(TN_EFORMAT, "%s: the PNG is damaged: %s", j->label, j->text);
        return;
    }
    if (!begin(j, channels, dt, file)) return;
    const int     passes = png_get_interlace_type(j->png, j->info) == PNG_INTERLACE_ADAM7 ? 7 : 1;
    const size_t  bytes = png_get_rowbytes(j->png, j->info);
    const int64_t height = j->raster.height;
    for (int pass = 0; pass < passes; pass++)
        for (int64_t y = 0; y < height; y++) {
            unsigned char *row = j->rows + (passes > 1 ? (size_t)y * bytes : 0);
            png_read_row(j->png, row, NULL);
            if (pass == passes - 1) put_row(j, y, row);
        }
    png_read_end(j->png, NULL);
}

tn_tensor *tn__png_read(const char *label, const unsigned char *data, size_t bytes, int64_t channels, tn_dtype dt)
{
    job j = {.label = label, .from = data, .left = bytes};
    j.png = png_create_read_struct_2(PNG_LIBPNG_VER_STRING, &j, on_error, on_warning, NULL, get_memory, put_memory);
    if (j.png) j.info = png_create_info_struct(j.png);
    if (j.info) read_all(&j, channels, dt, bytes);
    else tn_raise(TN_ENOMEM, "%s: libpng could not be initialised", label);
    if (j.png) png_destroy_read_struct(&j.png, &j.info, NULL);
    if (j.rows) tn_mem_put(j.rows, j.rows_bytes);
    if (j.samples) tn_mem_put(j.samples, j.samples_bytes);
    return tn__raster_end(&j.raster);
}

/* ---- writing ----------------------------------------------------------------------------------------------------- */

static bool write_all(job *j, const tn__pixels *p)
{
    static const int colours[] = {0, PNG_COLOR_TYPE_GRAY, PNG_COLOR_TYPE_GRAY_ALPHA, PNG_COLOR_TYPE_RGB,
                                  PNG_COLOR_TYPE_RGB_ALPHA};
    const size_t     row = p->bytes / (size_t)p->height;
    if (setjmp(png_jmpbuf(j->png))) {
        if (tn_error() == TN_OK) tn_raise(TN_EIO, "%s: %s", j->label, j->text);
        return false;
    }
    png_set_write_fn(j->png, j, take, no_flush);
    png_set_IHDR(j->png, j->info, (png_uint_32)p->width, (png_uint_32)p->height, p->depth, colours[p->channels],
                 PNG_INTERLACE_NONE, PNG_COMPRESSION_TYPE_DEFAULT, PNG_FILTER_TYPE_DEFAULT);
    png_write_info(j->png, j->info);
    for (int64_t y = 0; y < p->height; y++) png_write_row(j->png, p->data + (size_t)y * row);
    png_write_end(j->png, j->info);
    return true;
}

tn_status tn__png_write(const char *label, const char *path, const tn__pixels *p)
{
    job  j = {.label = label};
    bool fine = false;
    j.png = png_create_write_struct_2(PNG_LIBPNG_VER_STRING, &j, on_error, on_warning, NULL, get_memory, put_memory);
    if (j.png) j.info = png_create_info_struct(j.png);
    if (j.info) fine = write_all(&j, p);
    else tn_raise(TN_ENOMEM, "%s: libpng could not be initialised", label);
    if (j.png) png_destroy_write_struct(&j.png, &j.info);
    const tn_status status = fine ? tn_file_write(path, j.file.at, j.file.bytes) : tn_error();
    tn_string_free(&j.file);
    return status;
}

#else

static void missing(const char *label)
{
    tn_raise(TN_EUNSUPPORTED,
             "%s: the format is PNG, but Tenon was built without libpng; install it (Debian: libpng-dev) and "
             "configure again, or use PPM",
             label);
}
tn_tensor *tn__png_read(const char *label, const unsigned char *data, size_t bytes, int64_t channels, tn_dtype dt)
{
    (void)data, (void)bytes, (void)channels, (void)dt;
    missing(label);
    return NULL;
}
tn_status tn__png_write(const char *label, const char *path, const tn__pixels *p)
{
    (void)path, (void)p;
    missing(label);
    return tn_error();
}

#endif
