/* q8.c — weights of 8 bits or of f16 as a tensor: converted from floating weights and from the blocks of GGUF files,
 * and back.
 *
 * The format is llama.cpp's Q8_0: 32 weights of a row share the scale d = max |w| / 127, stored in f16, and are round(w
 * / d), halves away from zero, with the f32 value of d. Weights of f16 are rounded from f32. */
#include "core/products/q8.h"
#include "core/base/f16.h"
#include "core/products/q8_fits.h"
#include "core/tensor/convert.h"

#include <float.h>
#include <math.h>
#include <string.h>

enum { HEAD = 64, FILE_BLOCK = 2 + TN__Q8_GROUP };
/* With its final NUL; followed by out and in as i64, little-endian, and the dtype as a byte. 8 bits; f16. */
static const char magic[2][8] = {"TN Q8_0", "TN F16"};

/* ---- the header -------------------------------------------------------------------------------------------------- */

static int64_t read_i64(const uint8_t *p)
{
    uint64_t v = 0;
    for (int i = 7; i >= 0; i--) v = v << 8 | p[i];
    return (int64_t)v;
}
static void write_i64(uint8_t *p, int64_t v)
{
    for (int i = 0; i < 8; i++) p[i] = (uint8_t)((uint64_t)v >> 8 * i);
}

/* The size of the whole tensor in bytes; false if it overflows. Sets the sizes and the number of blocks. */
static bool measure(tn__q8 *q, int64_t *bytes)
{
    q->group = q->f16 ? 1 : TN__Q8_GROUP, q->block = q->f16 ? 2 * TN__Q8_PANEL : TN__Q8_BLOCK;
    q->panels = q->out / TN__Q8_PANEL + (q->out % TN__Q8_PANEL != 0), q->groups = q->in / q->group;
    return tn__mul_i64(q->panels, q->groups, bytes) && tn__mul_i64(*bytes, q->block, bytes) &&
           tn__add_i64(*bytes, HEAD, bytes);
}

bool tn__q8_of(const tn_tensor *t, tn__q8 *q)
{
    int64_t bytes;
    if (!t || tn__object_freed(&t->object) || t->dtype != TN_U8 || t->l.shape.n != 1 || t->l.shape.d[0] < HEAD ||
        t->l.stride[0] != 1)
        return false;
    const uint8_t *p = tn__ptr(t);
    const bool     f16 = !memcmp(p, magic[1], sizeof magic[1]);
    if (!f16 && memcmp(p, magic[0], sizeof magic[0]) != 0) return false;
    *q = (tn__q8){.f16 = f16, .out = read_i64(p + 8), .in = read_i64(p + 16), .dtype = (tn_dtype)p[24]};
    q->blocks = p + HEAD;
    return q->out > 0 && q->in > 0 && p[24] <= TN_BF16 && measure(q, &bytes) && q->in % q->group == 0 &&
           bytes == t->l.shape.d[0];
}

/* A new weight in the open scope, its blocks uninitialised; q: its description. NULL: raised. */
static tn_tensor *make(const char *who, bool f16, tn_dtype dt, tn_shape s, tn__q8 *q)
{
    int64_t bytes;
    char    text[192];
    tn_shape_text(s, text, sizeof text);
    if (!tn__is_float(dt))
        return tn_raise_null(TN_EDTYPE, "%s: weights are f32, f64 or bf16, not %s", who, tn_dtype_name(dt));
    if (s.n != 2 || s.d[0] < 1 || s.d[1] < 1)
        return tn_raise_null(TN_ESHAPE, "%s: weights must be [out, in], got %s", who, text);
    if (!f16 && s.d[1] % TN__Q8_GROUP)
        return tn_raise_null(TN_ESHAPE, "%s: the width of the weights %s must be a multiple of 32, which share a scale",
                             who, text);
    *q = (tn__q8){.f16 = f16, .out = s.d[0], .in = s.d[1], .dtype = dt};
    if (!measure(q, &bytes)) return tn_raise_null(TN_ESHAPE, "%s: weights %s are too large", who, text);
    tn_tensor *t = tn__make(who, TN_U8, TN_SHAPE(bytes));
    if (!t) return NULL;
    uint8_t *p = tn__ptr(t);
    memset(p, 0, HEAD);
    memcpy(p, magic[f16], sizeof magic[f16]);
    write_i64(p + 8, q->out), write_i64(p + 16, q->in), p[24] = (uint8_t)dt;
    q->blocks = p + HEAD;
    return t;
}

/* ---- packing ----------------------------------------------------------------------------------------------------- */

/* A conversion in progress: its source, weights or a file's blocks; and its destination. */
typedef struct {
    tn__q8           q;
    const tn_tensor *from;
    const uint8_t   *file;
    atomic_bool      bad;
} job;

/* Writes n weights, one of each column, to row `row` of the f16 blocks at `block`. False: one is not finite in f16. */
static bool halve(int64_t n, const float *w, uint8_t *block, int64_t row)
{
    bool finite = true;
    block += 2 * row;
    for (int64_t i = 0; i < n; i++, block += 2 * TN__Q8_PANEL) {
        const uint16_t h = tn__f32_to_f16(w[i]);
        finite = finite && (h & 0x7c00) != 0x7c00;
        block[0] = (uint8_t)h, block[1] = (uint8_t)(h >> 8);
    }
    return finite;
}

/* Writes 32 weights to row `row` of a block. False if they do not fit: NaN, infinite, or too large for the scale. */
static bool quantize(const float *w, uint8_t *block, int row)
{
    float max = 0;
    bool  finite = true;
    for (int i = 0; i < TN__Q8_GROUP; i++) {
        const float v = fabsf(w[i]);
        finite = finite && isfinite(v);
        max = v > max ? v : max;
    }
    const float    d = max / 127, inverse = d > FLT_MIN ? 1 / d : 0; /* a denormal d would give an infinity */
    const uint16_t scale = tn__f32_to_f16(d);
    if (!finite || scale >= 0x7c00) return false;
    block[2 * row] = (uint8_t)scale, block[2 * row + 1] = (uint8_t)(scale >> 8);
    uint8_t *to = block + TN__Q8_SCALES + TN__Q8_BYTE(row);
    for (int i = 0; i < TN__Q8_GROUP; i++, to += TN__Q8_PANEL) *to = (uint8_t)(128 + (int)roundf(w[i] * inverse));
    return true;
}

static void place(const uint8_t *file, uint8_t *block, int row)
{
    block[2 * row] = file[0], block[2 * row + 1] = file[1];
    for (int i = 0; i < TN__Q8_GROUP; i++) /* two's complement and 128 more differ in the first bit */
        block[TN__Q8_SCALES + i * TN__Q8_PANEL + TN__Q8_BYTE(row)] = file[2 + i] ^ 0x80;
}

/* Fills row r of a panel with row `row` of the weights. */
static void fill_row(job *j, uint8_t *panel, int64_t row, int64_t r)
{
    const tn__q8    *q = &j->q;
    const tn_tensor *t = j->from;
    float            w[TN__Q8_GROUP];
    for (int64_t col = 0; col < q->in; col += TN__Q8_GROUP) {
        const int64_t n = tn__min_i64(TN__Q8_GROUP, q->in - col);
        uint8_t      *block = panel + col / q->group * q->block;
        if (j->file) {
            place(j->file + (row * q->groups + col / q->group) * FILE_BLOCK, block, (int)r);
            continue;
        }
        const int64_t at = row * t->l.stride[0] + col * t->l.stride[1];
        tn__convert(n, w, TN_F32, 1, (const char *)tn__ptr(t) + at * (int64_t)tn__dtype_bytes(t->dtype), t->dtype,
                    t->l.stride[1]);
        if (!(q->f16 ? halve(n, w, block, r) : quantize(w, block, (int)r))) atomic_store(&j->bad, true);
    }
}

static void fill_panels(int64_t from, int64_t to, void *user)
{
    job          *j = user;
    const tn__q8 *q = &j->q;
    for (int64_t p = from; p < to; p++) {
        uint8_t *panel = (uint8_t *)(uintptr_t)tn__q8_panel(q, p);
        memset(panel, 0, (size_t)(q->groups * q->block));
        for (int64_t r = 0; r < TN__Q8_PANEL && p * TN__Q8_PANEL + r < q->out; r++)
            fill_row(j, panel, p * TN__Q8_PANEL + r, r);
    }
}

static tn_tensor *pack(const char *who, bool f16, const tn_tensor *weight)
{
    char name[192];
    job  j = {.from = weight};
    if (tn__blocked() || !tn__given(who, "the weight", weight)) return NULL;
    tn_tensor *t = make(who, f16, weight->dtype, weight->l.shape, &j.q);
    if (!t) return NULL;
    tn_parallel_for(j.q.panels, 1, fill_panels, &j);
    if (!atomic_load(&j.bad)) return t;
    return tn_raise_null(TN_EINVAL, "%s: the weights %s hold NaN, an infinity, or more than %s", who,
                         tn_shape_text(weight->l.shape, name, sizeof name),
                         f16 ? "65504, the largest f16" : "8.3e6, which has no scale in f16");
}
tn_tensor *tn_q8_pack(const tn_tensor *weight) { return pack("tn_q8_pack", false, weight); }
tn_tensor *tn_f16_pack(const tn_tensor *weight) { return pack("tn_f16_pack", true, weight); }

tn_tensor *tn_q8_from_blocks(tn_dtype dt, tn_shape s, const void *blocks, size_t bytes)
{
    static const char who[] = "tn_q8_from_blocks";
    job               j = {.file = blocks};
    if (tn__blocked()) return NULL;
    if (!blocks) return tn_raise_null(TN_EINVAL, "%s: blocks is NULL", who);
    tn_tensor *t = make(who, false, dt, s, &j.q);
    if (!t) return NULL;
    if (bytes != (size_t)(j.q.out * j.q.groups) * FILE_BLOCK)
        return tn_raise_null(TN_EINVAL, "%s: bytes is %zu, but weights [%lld, %lld] need %zu", who, bytes,
                             (long long)j.q.out, (long long)j.q.in, (size_t)(j.q.out * j.q.groups) * FILE_BLOCK);
    tn_parallel_for(j.q.panels, 1, fill_panels, &j);
    return t;
}

/* ---- unpacking --------------------------------------------------------------------------------------------------- */

/* Reads columns [col, col + n) of a row as f32: a group of 8 bits, or any n of f16. */
static void read_some(const tn__q8 *q, int64_t row, int64_t col, int64_t n, float *to)
{
    const uint8_t *block = tn__q8_panel(q, row / TN__Q8_PANEL) + col / q->group * q->block;
    const int64_t  r = row % TN__Q8_PANEL;
    const uint8_t *w = block + (q->f16 ? 2 * r : TN__Q8_SCALES + TN__Q8_BYTE(r));
    const float    d = tn__f16_to_f32((uint16_t)(block[2 * r] | block[2 * r + 1] << 8)); /* of 8 bits: the scale */
    for (int64_t i = 0; i < n; i++, w += q->f16 ? 2 * TN__Q8_PANEL : TN__Q8_PANEL)
        to[i] = q->f16 ? tn__f16_to_f32((uint16_t)(w[0] | w[1] << 8)) : (float)(w[0] - 128) * d;
}

bool tn_is_packed(const tn_tensor *t)
{
    tn__q8 q;
    return tn__q8_of(t, &q);
}
tn_dtype tn_weight_dtype(const tn_tensor *t)
{
    tn__q8 q;
    return tn__q8_of(t, &q) ? q.dtype : tn_dtype_of(t);
}
tn_shape tn_weight_shape(const tn_tensor *t)
{
    tn__q8 q;
    return tn__q8_of(t, &q) ? TN_SHAPE(q.out, q.in) : tn_shape_of(t);
}

static void describe(const tn_tensor *t, char text[TN__Q8_TEXT])
{
    tn__q8     q;
    char       shape[192];
    const bool packed = tn__q8_of(t, &q);
    tn_shape_text(tn_weight_shape(t), shape, sizeof shape);
    snprintf(text, TN__Q8_TEXT, "%s of %s%s", shape, tn_dtype_name(tn_weight_dtype(t)),
             !packed ? ""
             : q.f16 ? " in f16"
                     : " in 8 bits");
}

bool tn__q8_fits(const tn_tensor *t, const tn_tensor *now, char is[TN__Q8_TEXT], char other[TN__Q8_TEXT])
{
    tn__q8 a, b;
    if (!tn__q8_of(t, &a)) return true;
    if (tn__q8_of(now, &b) && a.f16 == b.f16 && a.out == b.out && a.in == b.in && a.dtype == b.dtype) return true;
    describe(t, is), describe(now, other);
    return false;
}

static bool given(const char *who, const tn_tensor *t, tn__q8 *q)
{
    if (!tn__given(who, "the weight", t)) return false;
    if (tn__q8_of(t, q)) return true;
    return tn_raise_false(TN_EINVAL, "%s: not a weight of 8 bits or f16; tn_q8_pack creates one", who);
}

typedef struct {
    const tn__q8    *q;
    const tn_tensor *index; /* the rows; NULL: all */
    tn_tensor       *y;
} rows_job;

static void some_rows(int64_t from, int64_t to, void *user)
{
    const rows_job *j = user;
    const tn__q8   *q = j->q;
    const int64_t   size = (int64_t)tn__dtype_bytes(j->y->dtype);
    float           w[TN__Q8_GROUP];
    for (int64_t i = from; i < to; i++) {
        const int64_t row = j->index ? tn_get_i64(j->index, i) : i;
        char         *y = (char *)tn__ptr(j->y) + i * q->in * size;
        for (int64_t col = 0; col < q->in; col += TN__Q8_GROUP) {
            const int64_t n = tn__min_i64(TN__Q8_GROUP, q->in - col);
            read_some(q, row, col, n, w);
            tn__convert(n, y + col * size, j->y->dtype, 1, w, TN_F32, 1);
        }
    }
}

void tn__q8_rows(const tn__q8 *w, const tn_tensor *index, tn_tensor *y)
{
    rows_job j = {w, index, y};
    tn_parallel_for(tn_shape_numel(index->l.shape), 8, some_rows, &j);
}

tn_tensor *tn__q8_unpacked(const tn_tensor *weight, tn_dtype dt)
{
    tn__q8 q;
    if (tn__blocked() || !given("tn_unpack", weight, &q)) return NULL;
    rows_job j = {&q, NULL, tn__make("tn_unpack", dt, TN_SHAPE(q.out, q.in))};
    if (j.y) tn_parallel_for(q.out, 8, some_rows, &j);
    return j.y;
}
tn_tensor *tn_unpack(const tn_tensor *weight) { return tn__q8_unpacked(weight, tn_weight_dtype(weight)); }

tn_status tn_q8_to_blocks(const tn_tensor *weight, void *blocks, size_t bytes)
{
    tn__q8 q;
    if (tn__blocked() || !given("tn_q8_to_blocks", weight, &q)) return tn_error();
    if (q.f16) return tn_raise(TN_EINVAL, "tn_q8_to_blocks: the weight is in f16; tn_q8_pack creates one in 8 bits");
    const size_t all = (size_t)(q.out * q.groups) * FILE_BLOCK;
    if (!blocks || bytes != all)
        return tn_raise(TN_EINVAL, "tn_q8_to_blocks: expected %zu bytes for weights [%lld, %lld], got %zu", all,
                        (long long)q.out, (long long)q.in, blocks ? bytes : 0);
    uint8_t *to = blocks;
    for (int64_t row = 0; row < q.out; row++) {
        const uint8_t *block = tn__q8_panel(&q, row / TN__Q8_PANEL);
        const int64_t  r = row % TN__Q8_PANEL;
        for (int64_t g = 0; g < q.groups; g++, block += TN__Q8_BLOCK, to += FILE_BLOCK) {
            to[0] = block[2 * r], to[1] = block[2 * r + 1];
            for (int i = 0; i < TN__Q8_GROUP; i++)
                to[2 + i] = block[TN__Q8_SCALES + i * TN__Q8_PANEL + TN__Q8_BYTE(r)] ^ 0x80;
        }
    }
    return TN_OK;
}
