/* pack.k.c — a block of a matrix copied to dense rows, as the micro-tiles of a product like to read it: from dense
 * rows, from dense columns (transposed in squares, in registers), or from any strides. Instantiated by including itself
 * for f32, f64 and bf16, which is widened to f32. */
#ifdef FROM

void TN__FOR_ISA(PACK)(const tn__pack_step *s);
void TN__FOR_ISA(PACK)(const tn__pack_step *s)
{
    const int64_t rows = s->rows, cols = s->cols, width = s->width, row = s->from_row, col = s->from_col;
    const FROM   *x = s->from;
    TO           *y = s->to;
    const size_t  gap = (size_t)(width - cols) * sizeof *y;
    for (int64_t r = 0; gap && r < rows; r++) memset(y + r * width + cols, 0, gap);
    if (col == 1) {
        for (int64_t r = 0; r < rows; r++, x += row, y += width) {
            int64_t c = 0;
            for (; c + LANES <= cols; c += LANES) {
                v_prefetch(x + c, TN__PACK_AHEAD * row);
                STORE(y + c, LOAD(x + c));
            }
            for (; c + 8 <= cols; c += 8) EIGHT(y + c, x + c);
            for (; c < cols; c++) y[c] = ONE(x[c]);
        }
    } else if (row == 1) {
        int64_t c = 0;
        for (; c + LANES <= cols; c += LANES) {
            const FROM *from = x + c * col;
            TO         *to = y + c;
            int64_t     r = 0;
            for (; r + LANES <= rows; r += LANES) {
                VECTOR v[LANES];
                TN__UNROLL for (int i = 0; i < LANES; i++) v[i] = LOAD(from + r + i * col);
                TRANSPOSE(v);
                TN__UNROLL for (int i = 0; i < LANES; i++) STORE(to + (r + i) * width, v[i]);
            }
            for (; r < rows; r++)
                for (int i = 0; i < LANES; i++) to[r * width + i] = ONE(from[r + i * col]);
        }
        for (; c < cols; c++)
            for (int64_t r = 0; r < rows; r++) y[r * width + c] = ONE(x[r + c * col]);
    } else {
        for (int64_t r = 0; r < rows; r++)
            for (int64_t c = 0; c < cols; c++) y[r * width + c] = ONE(x[r * row + c * col]);
    }
}

#undef PACK
#undef FROM
#undef TO
#undef LANES
#undef VECTOR
#undef LOAD
#undef TRANSPOSE
#undef STORE
#undef ONE
#undef EIGHT

#else
#include "core/base/bf16.h"
#include "core/kernels/kernels.h"
#include "core/kernels/simd.h"

#define PACK tn__pack_f32
#define FROM float
#define TO float
#define LANES v_n_f32
#define VECTOR v_f32
#define LOAD v_load_f32
#define TRANSPOSE v_transpose_f32
#define STORE v_store_f32
#define ONE(x) (x)
#define EIGHT(y, x) memcpy(y, x, 8 * sizeof *(x))
#include "core/kernels/pack.k.c"

#define PACK tn__pack_f64
#define FROM double
#define TO double
#define LANES v_n_f64
#define VECTOR v_f64
#define LOAD v_load_f64
#define TRANSPOSE v_transpose_f64
#define STORE v_store_f64
#define ONE(x) (x)
#define EIGHT(y, x) memcpy(y, x, 8 * sizeof *(x))
#include "core/kernels/pack.k.c"

#define PACK tn__pack_bf16
#define FROM uint16_t
#define TO float
#define LANES v_n_f32
#define VECTOR v_f32
#define LOAD v_load_bf16
#define TRANSPOSE v_transpose_f32
#define STORE v_store_f32
#define ONE(x) tn__bf16_to_f32(x)
#define EIGHT(y, x) \
    for (int i = 0; i < 8; i++) (y)[i] = ONE((x)[i])
#include "core/kernels/pack.k.c"
#endif
