/* q8.c — packed weights as a tensor: converted from floating weights and from the blocks of GGUF files, and back.
 *
 * The format of 8 bits is llama.cpp's Q8_0: 32 weights of a row share the scale d = max |w| / 127, stored in f16, and
 * are round(w / d), halves away from zero, with the f32 value of d. Weights of f16 are rounded from f32. Of int8, a row
 * has one scale in f32, its columns are mixed (core/kernels/kernels.h), and halves are rounded to even. */
#include "core/products/q8.h"
#include "core/base/f16.h"
#include "core/products/q8_fits.h"
#include "core/tensor/convert.h"

#include <float.h>
#include <math.h>
#include <string.h>

enum { HEAD = 64, FILE_BLOCK = 2 + TN__Q8_GROUP, FILE_Q4_0 = 2 + TN__Q8_GROUP / 2 };
/* magic, 8 bytes, is followed by out and in as i64, little-endian, and the dtype as a byte. */
static const struct {
    char magic[8], name[12];
    int  rows, group, head, block;
} kinds[TN__PACKINGS] = {
#define BITS(kind, name) [kind] = {"TN " name, name, TN__Q4_ROWS, TN__Q4_WIDTH(kind), 0, TN__Q4_BLOCK(kind)}
    BITS(TN__Q4_0, "Q4_0"),
    BITS(TN__Q4_K, "Q4_K"),
    BITS(TN__Q5_K, "Q5_K"),
    BITS(TN__Q6_K, "Q6_K"),
    [TN__Q8_0] = {"TN Q8_0", "8 bits", TN__Q8_PANEL, TN__Q8_GROUP, 0, TN__Q8_BLOCK},
    [TN__F16] = {"TN F16", "f16", TN__Q8_PANEL, 1, 0, 2 * TN__Q8_PANEL},
    [TN__INT8] = {
        {'T', 'N', ' ', 'I', 'N', 'T', '8', 2}, "int8", TN__INT8_ROWS, TN__INT8_GROUP, TN__INT8_HEAD, TN__INT8_BLOCK}};

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
    q->rows = kinds[q->kind].rows, q->group = kinds[q->kind].group;
    q->head = kinds[q->kind].head, q->block = kinds[q->kind].block;
    q->panels = q->out / q->rows + (q->out % q->rows != 0), q->groups = q->in / q->group + (q->in % q->group != 0);
    return tn__mul_i64(q->groups, q->block, &q->panel) && tn__add_i64(q->panel, q->head, &q->panel) &&
           tn__mul_i64(q->panels, q->panel, bytes) && tn__add_i64(*bytes, HEAD, bytes);
}

/* True if the kind has weights of this width. */
static bool width_fits(tn__packing kind, int64_t in)
{
    if (kind == TN__INT8) return in <= TN__INT8_MOST;
    return in % kinds[kind].group == 0;
}

bool tn__q8_of(const tn_tensor *t, tn__q8 *q)
{
    int64_t bytes;
    int     kind = 0;
    if (!t || tn__object_freed(&t->object) || t->dtype != TN_U8 || t->l.shape.n != 1 || t->l.shape.d[0] < HEAD ||
        t->l.stride[0] != 1)
        return false;
    const uint8_t *p = tn__ptr(t);
    while (kind < TN__PACKINGS && memcmp(p, kinds[kind].magic, sizeof kinds[kind].magic) != 0) kind++;
    if (kind == TN__PACKINGS) return false;
    *q = (tn__q8){.kind = (tn__packing)kind, .out = read_i64(p + 8), .in = read_i64(p + 16), .dtype = (tn_dtype)p[24]};
    q->panels_at = p + HEAD;
    return q->out > 0 && q->in > 0 && p[24] <= TN_BF16 && measure(q, &bytes) && width_fits(q->kind, q->in) &&
           bytes == t->l.shape.d[0];
}

/* A new weight in the open scope, its blocks uninitialised; q: its description. NULL: raised. */
static tn_tensor *make(const char *who, tn__packing kind, tn_dtype dt, tn_shape s, tn__q8 *q)
{
    int64_t bytes;
    char    text[192];
    tn_shape_text(s, text, sizeof text);
    if (!tn__is_float(dt))
        return tn_raise_null(TN_EDTYPE, "%s: weights are f32, f64 or bf16, not %s", who, tn_dtype_name(dt));
    if (s.n != 2 || s.d[0] < 1 || s.d[1] < 1)
        return tn_raise_null(TN_ESHAPE, "%s: weights must be [out, in], got %s", who, text);
    if (kind == TN__INT8 && !width_fits(kind, s.d[1]))
        return tn_raise_null(TN_ESHAPE,
                             "%s: the width of the weights %s must be at most 131072, so that sums fit in 32 bits", who,
                             text);
    if (!width_fits(kind, s.d[1]))
        return tn_raise_null(TN_ESHAPE, "%s: the width of the weights %s must be a multiple of %d, which share a scale",
                             who, text, kinds[kind].group);
    *q = (tn__q8){.kind = kind, .out = s.d[0], .in = s.d[1], .dtype = dt};
    if (!measure(q, &bytes)) return tn_raise_null(TN_ESHAPE, "%s: weights %s are too large", who, text);
    tn_tensor *t = tn__make(who, TN_U8, TN_SHAPE(bytes));
    if (!t) return NULL;
    uint8_t *p = tn__ptr(t);
    memset(p, 0, HEAD);
    memcpy(p, kinds[kind].magic, sizeof kinds[kind].magic);
    write_i64(p + 8, q->out), write_i64(p + 16, q->in), p[24] = (uint8_t)dt;
    q->panels_at = p + HEAD;
    return t;
}

/* ---- packing ----------------------------------------------------------------------------------------------------- */

/* A conversion in progress: its source, weights or rows of a file from `first` on; and its destination. */
typedef struct {
    tn__q8           q;
    const tn_tensor *from;
    const uint8_t   *file;
    int64_t          first, row; /* row: bytes of a row of the file */
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

/* Reads n weights of row `row` from column `col` as f32. */
static void read_weights(const tn_tensor *t, int64_t row, int64_t col, int64_t n, float *w)
{
    const int64_t at = row * t->l.stride[0] + col * t->l.stride[1];
    tn__convert(n, w, TN_F32, 1, (const char *)tn__ptr(t) + at * (int64_t)tn__dtype_bytes(t->dtype), t->dtype,
                t->l.stride[1]);
}

/* Position of the byte of row r and column `col` in a panel of int8. */
static int64_t int8_at(int64_t r, int64_t col)
{
    return TN__INT8_HEAD + col / 4 * (TN__INT8_BLOCK / 2) + r * 4 + col % 4;
}
/* Reads at most TN__INT8_MIX weights of row `row` from column `col` and mixes them; returns their number. */
static int64_t read_mixed(const job *j, int64_t row, int64_t col, float *w)
{
    float         from[TN__INT8_MIX];
    const int64_t n = tn__min_i64(TN__INT8_MIX, j->q.in - col);
    read_weights(j->from, row, col, n, from);
    tn__int8_mix(n, from, w, true);
    return n;
}
/* fill_row for int8. False: NaN or an infinity. */
static bool fill_int8(const job *j, uint8_t *panel, int64_t row, int64_t r)
{
    const int64_t in = j->q.in;
    float         w[TN__INT8_MIX], scale, inverse, max = 0;
    int32_t       sum = 0;
    for (int64_t col = 0, n; col < in; col += n) {
        n = read_mixed(j, row, col, w);
        const float some = tn__int8_extent(n, w);
        if (!(some <= FLT_MAX)) return false;
        max = some > max ? some : max;
    }
    tn__int8_scale(max, 127, &scale, &inverse);
    for (int64_t col = 0, n; col < in; col += n) {
        n = read_mixed(j, row, col, w);
        for (int64_t i = 0; i < n; i++) {
            const int32_t q = tn__int8_round(w[i] * inverse);
            panel[int8_at(r, col + i)] = (uint8_t)q, sum += q;
        }
    }
    memcpy(panel + r * (int64_t)sizeof scale, &scale, sizeof scale);
    memcpy(panel + TN__INT8_HEAD / 2 + r * (int64_t)sizeof sum, &sum, sizeof sum);
    return true;
}

/* Fills row r of a panel with row `row` of the weights. */
static void fill_row(job *j, uint8_t *panel, int64_t row, int64_t r)
{
    const tn__q8 *q = &j->q;
    float         w[TN__Q8_GROUP];
    if (q->kind == TN__INT8) {
        if (!fill_int8(j, panel, row, r)) atomic_store(&j->bad, true);
        return;
    }
    for (int64_t col = 0; col < q->in; col += TN__Q8_GROUP) {
        const int64_t n = tn__min_i64(TN__Q8_GROUP, q->in - col);
        uint8_t      *block = panel + col / q->group * q->block;
        read_weights(j->from, row, col, n, w);
        if (q->kind == TN__Q4_0) {
            uint8_t file[FILE_Q4_0];
            if (!tn__q4_0_round(w, file)) atomic_store(&j->bad, true);
            tn__q4_put(q->kind, 1, file, block, r);
        } else if (!(q->kind == TN__F16 ? halve(n, w, block, r) : quantize(w, block, (int)r)))
            atomic_store(&j->bad, true);
    }
}

static void fill_panels(int64_t from, int64_t to, void *user)
{
    job          *j = user;
    const tn__q8 *q = &j->q;
    for (int64_t p = from; p < to; p++) {
        uint8_t *panel = (uint8_t *)(uintptr_t)tn__q8_panel(q, p);
        memset(panel, 0, (size_t)q->panel);
        for (int64_t r = 0; r < q->rows && p * q->rows + r < q->out; r++) fill_row(j, panel, p * q->rows + r, r);
    }
}

static tn_tensor *pack(const char *who, tn__packing kind, const tn_tensor *weight)
{
    char name[192];
    job  j = {.from = weight};
    if (tn__blocked() || !tn__given(who, "the weight", weight)) return NULL;
    tn_tensor *t = make(who, kind, weight->dtype, weight->l.shape, &j.q);
    if (!t) return NULL;
    tn_parallel_for(j.q.panels, 1, fill_panels, &j);
    if (!atomic_load(&j.bad)) return t;
    return tn_raise_null(TN_EINVAL, "%s: the weights %s hold %s", who,
                         tn_shape_text(weight->l.shape, name, sizeof name),
                         kind == TN__INT8   ? "NaN or an infinity"
                         : kind == TN__F16  ? "NaN, an infinity, or more than 65504, the largest f16"
                         : kind == TN__Q4_0 ? "NaN, an infinity, or more than 5.2e5, which has no scale in f16"
                                            : "NaN, an infinity, or more than 8.3e6, which has no scale in f16");
}
tn_tensor *tn_q8_pack(const tn_tensor *weight) { return pack("tn_q8_pack", TN__Q8_0, weight); }
tn_tensor *tn_f16_pack(const tn_tensor *weight) { return pack("tn_f16_pack", TN__F16, weight); }
tn_tensor *tn_q4_pack(const tn_tensor *weight) { return pack("tn_q4_pack", TN__Q4_0, weight); }
tn_tensor *tn_int8_pack(const tn_tensor *weight) { return pack("tn_int8_pack", TN__INT8, weight); }

/* ---- rows of files ----------------------------------------------------------------------------------------------- */

/* Bytes of a row in a file. */
static int64_t file_row(const tn__q8 *q)
{
    return q->kind == TN__F16 ? 2 * q->in
                              : q->groups * (q->kind == TN__Q8_0 ? FILE_BLOCK : tn__block_forms[q->kind].bytes);
}

/* f16 values to row r of a panel. False: one is not finite. */
static bool place_f16(int64_t n, const uint8_t *from, uint8_t *panel, int64_t r)
{
    bool finite = true;
    panel += 2 * r;
    for (int64_t i = 0; i < n; i++, from += 2, panel += 2 * TN__Q8_PANEL) {
        finite = finite && (from[1] & 0x7c) != 0x7c;
        panel[0] = from[0], panel[1] = from[1];
    }
    return finite;
}

static void put_rows(int64_t from, int64_t to, void *user)
{
    job          *j = user;
    const tn__q8 *q = &j->q;
    for (int64_t i = from; i < to; i++) {
        const int64_t  row = j->first + i, r = row % q->rows;
        const uint8_t *at = j->file + i * j->row;
        uint8_t       *panel = (uint8_t *)(uintptr_t)tn__q8_panel(q, row / q->rows);
        if (q->kind < TN__Q4_KINDS) tn__q4_put(q->kind, q->groups, at, panel, r);
        else if (q->kind == TN__Q8_0)
            for (int64_t g = 0; g < q->groups; g++) place(at + g * FILE_BLOCK, panel + g * q->block, (int)r);
        else if (!place_f16(q->in, at, panel, r)) atomic_store(&j->bad, true);
    }
}

/* The kind with the name of a file's type; TN__PACKINGS: none. */
static tn__packing kind_of_type(const char *type)
{
    if (!strcmp(type, "Q8_0")) return TN__Q8_0;
    if (!strcmp(type, "F16")) return TN__F16;
    for (int kind = 0; kind < TN__Q4_KINDS; kind++)
        if (!strcmp(type, tn__block_forms[kind].name)) return (tn__packing)kind;
    return TN__PACKINGS;
}

/* A weight whose last panel, which may have no rows of the matrix, is zeros. */
static tn_tensor *make_for_rows(const char *who, tn__packing kind, tn_dtype dt, tn_shape s, tn__q8 *q)
{
    tn_tensor *t = make(who, kind, dt, s, q);
    if (t) memset((uint8_t *)(uintptr_t)tn__q8_panel(q, q->panels - 1), 0, (size_t)q->panel);
    return t;
}

tn_tensor *tn__packed_new(const char *who, const char *type, tn_dtype dt, tn_shape s, size_t *row)
{
    tn__q8            q;
    const tn__packing kind = kind_of_type(type);
    if (kind == TN__PACKINGS || s.n != 2 || s.d[0] < 1 || s.d[1] < 1 || !width_fits(kind, s.d[1])) return NULL;
    tn_tensor *t = make_for_rows(who, kind, dt, s, &q);
    if (t) *row = (size_t)file_row(&q);
    return t;
}

bool tn__packed_put(const char *who, tn_tensor *t, int64_t first, int64_t n, const void *from)
{
    job j = {.file = from, .first = first};
    if (!tn__q8_of(t, &j.q)) return false;
    j.row = file_row(&j.q);
    tn_parallel_for(n, 8, put_rows, &j);
    if (!atomic_load(&j.bad)) return true;
    return tn_raise_false(TN_EINVAL, "%s: the weights [%lld, %lld] of F16 hold NaN or an infinity", who,
                          (long long)j.q.out, (long long)j.q.in);
}

static tn_tensor *from_blocks(const char *who, tn__packing kind, tn_dtype dt, tn_shape s, const void *blocks,
                              size_t bytes)
{
    tn__q8 q;
    if (tn__blocked()) return NULL;
    if (!blocks) return tn_raise_null(TN_EINVAL, "%s: blocks is NULL", who);
    tn_tensor *t = make_for_rows(who, kind, dt, s, &q);
    if (!t) return NULL;
    const size_t all = (size_t)(q.out * file_row(&q));
    if (bytes != all)
        return tn_raise_null(TN_EINVAL, "%s: bytes is %zu, but weights [%lld, %lld] need %zu", who, bytes,
                             (long long)q.out, (long long)q.in, all);
    return tn__packed_put(who, t, 0, q.out, blocks) ? t : NULL;
}
tn_tensor *tn_q8_from_blocks(tn_dtype dt, tn_shape s, const void *blocks, size_t bytes)
{
    return from_blocks("tn_q8_from_blocks", TN__Q8_0, dt, s, blocks, bytes);
}
tn_tensor *tn_blocks_pack(const char *type, tn_dtype dt, tn_shape s, const void *blocks, size_t bytes)
{
    static const char who[] = "tn_blocks_pack";
    const tn__packing kind = type ? kind_of_type(type) : TN__PACKINGS;
    if (tn__blocked()) return NULL;
    if (kind == TN__PACKINGS)
        return tn_raise_null(TN_EINVAL, "%s: the type is %.20s, but must be Q4_0, Q4_K, Q5_K, Q6_K, Q8_0 or F16", who,
                             type ? type : "NULL");
    return from_blocks(who, kind, dt, s, blocks, bytes);
}

/* ---- unpacking --------------------------------------------------------------------------------------------------- */

/* Columns that read_some reads at a time, except for the last ones. */
static int64_t readable(const tn__q8 *q) { return q->kind == TN__INT8 ? TN__INT8_MIX : TN__Q8_GROUP; }

/* Reads columns [col, col + n) of a row as f32. */
static void read_some(const tn__q8 *q, int64_t row, int64_t col, int64_t n, float *to)
{
    const bool     f16 = q->kind == TN__F16;
    const int64_t  r = row % q->rows;
    const uint8_t *panel = tn__q8_panel(q, row / q->rows), *block = panel + col / q->group * q->block;
    if (q->kind < TN__Q4_KINDS) {
        tn__q4_get(q->kind, panel, r, col, to);
        return;
    }
    if (q->kind == TN__INT8) {
        float d, mixed[TN__INT8_MIX];
        memcpy(&d, panel + r * (int64_t)sizeof d, sizeof d);
        for (int64_t i = 0; i < n; i++) mixed[i] = (float)(int8_t)panel[int8_at(r, col + i)] * d;
        tn__int8_mix(n, mixed, to, false);
        return;
    }
    const uint8_t *w = block + (f16 ? 2 * r : TN__Q8_SCALES + TN__Q8_BYTE(r));
    const float    d = tn__f16_to_f32((uint16_t)(block[2 * r] | block[2 * r + 1] << 8)); /* of 8 bits: the scale */
    for (int64_t i = 0; i < n; i++, w += f16 ? 2 * TN__Q8_PANEL : TN__Q8_PANEL)
        to[i] = f16 ? tn__f16_to_f32((uint16_t)(w[0] | w[1] << 8)) : (float)(w[0] - 128) * d;
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
    snprintf(text, TN__Q8_TEXT, "%s of %s%s%s", shape, tn_dtype_name(tn_weight_dtype(t)), packed ? " in " : "",
             packed ? kinds[q.kind].name : "");
}

bool tn__q8_fits(const tn_tensor *t, const tn_tensor *now, char is[TN__Q8_TEXT], char other[TN__Q8_TEXT])
{
    tn__q8 a, b;
    if (!tn__q8_of(t, &a)) return true;
    if (tn__q8_of(now, &b) && a.kind == b.kind && a.out == b.out && a.in == b.in && a.dtype == b.dtype) return true;
    describe(t, is), describe(now, other);
    return false;
}

static bool given(const char *who, const tn_tensor *t, tn__q8 *q)
{
    if (!tn__given(who, "the weight", t)) return false;
    if (tn__q8_of(t, q)) return true;
    return tn_raise_false(TN_EINVAL, "%s: not a packed weight; tn_q8_pack creates one", who);
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
    float           w[TN__INT8_MIX];
    for (int64_t i = from; i < to; i++) {
        const int64_t row = j->index ? tn_get_i64(j->index, i) : i;
        char         *y = (char *)tn__ptr(j->y) + i * q->in * size;
        for (int64_t col = 0, n; col < q->in; col += n) {
            n = tn__min_i64(readable(q), q->in - col);
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
    if (q.kind != TN__Q8_0)
        return tn_raise(TN_EINVAL, "tn_q8_to_blocks: the weight is in %s; tn_q8_pack creates one in 8 bits",
                        kinds[q.kind].name);
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
