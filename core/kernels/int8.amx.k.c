/* int8.amx.k.c — products of 8 bits by AMX: a tile of 16 rows of 64 activations, times a tile of 64 columns of 16 rows
 * of weights, is added to 16 x 16 sums of 32 bits. A panel of packed weights (kernels.h) consists of such tiles: 8
 * groups are one, 16 lines of 4 columns of 16 rows. The sums are integers, so that the bits are those of int8.k.c. */
#include "core/kernels/kernels.h"
#include "core/kernels/dot8.h"

enum {
    SIDE = 16,                     /* rows of a tile */
    LINE = 64,                     /* bytes of one of its rows */
    STRIPS = 3,                    /* tiles of activations that are multiplied with a tile of weights */
    WHOLE = LINE / TN__INT8_GROUP, /* groups of a tile */
    FEW = 4                        /* rows for which VNNI is used: a tile takes as long for one row as for 16 */
};

extern const tn__int8_kernels tn__int8_avx512vnni, tn__int8_amx;

/* Rows are divided into as few strips as possible, of the same length. The last one ends at the last row: some of its
 * rows may be in the strip before, too, and are then computed twice. */
TN__INLINE int64_t strips_of(int64_t rows) { return (rows + SIDE - 1) / SIDE; }
TN__INLINE int64_t strip_rows(int64_t rows) { return (rows + strips_of(rows) - 1) / strips_of(rows); }

/* Registers: 0 to 2 are the sums of the strips, 3 and 4 hold activations, 5 weights; 6 and 7 hold activations and
 * weights of the columns after the last whole tile. */
static void begin(int64_t rows, int64_t groups)
{
    struct {
        uint8_t  palette, start, reserved[14];
        uint16_t bytes[SIDE]; /* of a row, of each register */
        uint8_t  rows[SIDE];
    } shapes = {.palette = 1};
    const int64_t rest = groups % WHOLE;
    if (rows <= FEW) return;
    for (int i = 0; i < (rest ? 8 : 6); i++) {
        shapes.bytes[i] = (uint16_t)(i == 6 ? rest * TN__INT8_GROUP : LINE);
        shapes.rows[i] = (uint8_t)(i == 5 ? SIDE : i == 7 ? 2 * rest : strip_rows(rows));
    }
    __asm__ volatile("" : : "r"(&shapes) : "memory"); /* gcc does not know that all of it is read */
    _tile_loadconfig(&shapes);
}
static void end(void) { _tile_release(); }

TN__INLINE void multiply(const int strips, const tn__int8_step *s)
{
    const int64_t  u = strip_rows(s->rows), last = s->rows - u, x_row = s->x_row, y_row = 4 * s->y_row;
    const uint8_t *x0 = s->x, *x1 = x0 + (strips > 2 ? u : last) * x_row, *x2 = x0 + last * x_row;
    const uint8_t *w = s->panel + TN__INT8_HEAD, *sums = s->panel + TN__INT8_HEAD / 2;
    int64_t        g = s->groups;
    _tile_zero(0);
    if (strips > 1) _tile_zero(1);
    if (strips > 2) _tile_zero(2);
    for (; g >= WHOLE; g -= WHOLE, x0 += LINE, x1 += LINE, x2 += LINE, w += SIDE * LINE) {
        _tile_loadd(5, w, LINE);
        _tile_loadd(3, x0, x_row);
        _tile_dpbusd(0, 3, 5);
        if (strips > 1) _tile_loadd(4, x1, x_row);
        if (strips > 1) _tile_dpbusd(1, 4, 5);
        if (strips > 2) _tile_loadd(3, x2, x_row);
        if (strips > 2) _tile_dpbusd(2, 3, 5);
    }
    if (g) {
        _tile_loadd(7, w, LINE);
        _tile_loadd(6, x0, x_row);
        _tile_dpbusd(0, 6, 7);
        if (strips > 1) _tile_loadd(6, x1, x_row);
        if (strips > 1) _tile_dpbusd(1, 6, 7);
        if (strips > 2) _tile_loadd(6, x2, x_row);
        if (strips > 2) _tile_dpbusd(2, 6, 7);
    }
    _tile_stored(0, s->y, y_row);
    if (strips > 1) _tile_stored(1, s->y + (strips > 2 ? u : last) * s->y_row, y_row);
    if (strips > 2) _tile_stored(2, s->y + last * s->y_row, y_row);
    const v_f32 scale = v_load_f32((const float *)(const void *)s->panel);
    for (int64_t i = 0; i < s->rows; i++) {
        float *y = s->y + i * s->y_row;
        v_store_f32(y, v_less8(v_weights8((const uint8_t *)y), sums) * (v_broadcast_f32(s->scale + i) * scale));
    }
}

static void product(const tn__int8_step *s)
{
    if (s->rows <= FEW) tn__int8_avx512vnni.product(s);
    else if (s->rows <= SIDE) multiply(1, s);
    else if (s->rows <= 2 * SIDE) multiply(2, s);
    else multiply(3, s);
}

static float quantize(int64_t n, const float *x, uint8_t *to) { return tn__int8_avx512vnni.quantize(n, x, to); }

const tn__int8_kernels tn__int8_amx = {.rows = STRIPS * SIDE,
                                       .bytes = TN__INT8_GROUP,
                                       .by = "AMX",
                                       .begin = begin,
                                       .end = end,
                                       .quantize = quantize,
                                       .product = product};
