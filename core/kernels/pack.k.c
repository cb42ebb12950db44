/* pack.k.c — copies a block of a matrix to dense rows, the form that the micro-tiles of a product read: from dense
 * rows, from dense columns (transposed in squares, in registers), or from any strides. Instantiated by including itself
 * for f32, f64 and bf16, which is widened to f32. */
#ifdef FROM

/* FROM and TO are types, and parts of the names of functions: LOAD is v_load_bf16. */
#define NAMED_(name, type) name##_##type
#define NAMED(name, type) NAMED_(name, type)
#define VECTOR NAMED(v, TO)
#define LANES NAMED(v_n, TO)
#define LOAD NAMED(v_load, FROM)
#define STORE NAMED(v_store, TO)
#define NUMBER NAMED(number, FROM)

/* Rows of a strip: all elements of a row are read before one is written, so that they are vectorised. */
#define NARROW(n)                                              \
    for (int64_t r = 0; r < rows; r++, x += row, y += width) { \
        TO some[n];                                            \
        for (int i = 0; i < (n); i++) some[i] = NUMBER(x[i]);  \
        memcpy(y, some, sizeof some);                          \
    }

#ifndef SOME
/* n elements, fewer than a vector, then zeros. */
#define SOME NAMED(some, FROM)
TN__INLINE VECTOR NAMED(some, FROM)(const FROM *x, int64_t n)
{
    TO whole[LANES] = {0};
    for (int64_t i = 0; i < n; i++) whole[i] = NUMBER(x[i]);
    return NAMED(v_load, TO)(whole);
}
#endif

/* True if the zeros at the end of a row are the end of a vector, which is written whole. */
static bool NAMED(fills, FROM)(const tn__pack_step *s)
{
    const int64_t rest = s->cols % LANES;
    return (s->from_col == 1 || s->from_row == 1) && rest && s->width == s->cols - rest + LANES;
}

static void NAMED(pack_rows, FROM)(const tn__pack_step *s)
{
    const int64_t rows = s->rows, cols = s->cols, width = s->width, row = s->from_row;
    const bool    fills = NAMED(fills, FROM)(s);
    const FROM   *x = s->from;
    TO           *y = s->to;
    if (cols == 6 && width == 6) {
        NARROW(6);
        return;
    }
    if (cols == 5 && width == 5) {
        NARROW(5);
        return;
    }
    for (int64_t r = 0; r < rows; r++, x += row, y += width) {
        int64_t c = 0;
        for (; c + LANES <= cols; c += LANES) {
            v_prefetch(x + c, TN__PACK_AHEAD * row);
            STORE(y + c, LOAD(x + c));
        }
        if (fills) {
            STORE(y + c, SOME(x + c, cols - c));
            continue;
        }
        for (; c + 8 <= cols; c += 8) {
            TO eight[8]; /* all are read before one is written, so that these are vectorised, too */
            for (int i = 0; i < 8; i++) eight[i] = NUMBER(x[c + i]);
            memcpy(y + c, eight, sizeof eight);
        }
        for (; c + 2 <= cols; c += 2) {
            const TO first = NUMBER(x[c]), second = NUMBER(x[c + 1]);
            y[c] = first, y[c + 1] = second;
        }
        if (c < cols) y[c] = NUMBER(x[c]);
    }
}

/* LANES columns, or the last ones and zeros, become vectors of rows. */
static void NAMED(turn, FROM)(const FROM *from, int64_t col, int64_t some, int64_t rows, TO *to, int64_t width)
{
    int64_t r = 0;
    for (; r < rows && rows >= LANES; r += LANES) {
        VECTOR v[LANES];
        r = r + LANES <= rows ? r : rows - LANES; /* the last square may overlap the one before */
        if (some == LANES) {
            TN__UNROLL for (int i = 0; i < LANES; i++) v[i] = LOAD(from + r + i * col);
        } else TN__UNROLL for (int i = 0; i < LANES; i++) v[i] = i < some ? LOAD(from + r + i * col) : (VECTOR){0};
        NAMED(v_transpose, TO)(v);
        TN__UNROLL for (int i = 0; i < LANES; i++) STORE(to + (r + i) * width, v[i]);
    }
    for (; r < rows; r++)
        for (int i = 0; i < LANES; i++) to[r * width + i] = i < some ? NUMBER(from[r + i * col]) : 0;
}

void TN__FOR_ISA(NAMED(tn__pack, FROM))(const tn__pack_step *s);
void TN__FOR_ISA(NAMED(tn__pack, FROM))(const tn__pack_step *s)
{
    const int64_t rows = s->rows, cols = s->cols, width = s->width, row = s->from_row, col = s->from_col;
    const bool    fills = NAMED(fills, FROM)(s);
    const FROM   *x = s->from;
    TO           *y = s->to;
    const size_t  gap = fills ? 0 : (size_t)(width - cols) * sizeof *y;
    for (int64_t r = 0; gap && r < rows; r++) memset(y + r * width + cols, 0, gap);
    if (col == 1) {
        NAMED(pack_rows, FROM)(s);
        return;
    }
    int64_t c = 0;
    for (; row == 1 && (c + LANES <= cols || (fills && c < cols)); c += LANES)
        NAMED(turn, FROM)(x + c * col, col, cols - c < LANES ? cols - c : LANES, rows, y + c, width);
    if (row == 1)
        for (; c < cols; c++)
            for (int64_t r = 0; r < rows; r++) y[r * width + c] = NUMBER(x[r + c * col]);
    else
        for (int64_t r = 0; r < rows; r++)
            for (c = 0; c < cols; c++) y[r * width + c] = NUMBER(x[r * row + c * col]);
}

#undef NARROW
#undef NAMED_
#undef NAMED
#undef VECTOR
#undef LANES
#undef LOAD
#undef STORE
#undef NUMBER
#undef SOME
#undef FROM
#undef TO

#else
#include "core/base/bf16.h"
#include "core/kernels/kernels.h"
#include "core/kernels/vector.h"

typedef float     f32;
typedef double    f64;
typedef uint16_t  bf16;
static inline f32 number_f32(f32 x) { return x; }
static inline f64 number_f64(f64 x) { return x; }
static inline f32 number_bf16(bf16 x) { return tn__bf16_to_f32(x); }

#define FROM f32
#define TO f32
#define SOME v_load_some
#include "core/kernels/pack.k.c"

#define FROM f64
#define TO f64
#include "core/kernels/pack.k.c"

#define FROM bf16
#define TO f32
#include "core/kernels/pack.k.c"
#endif
