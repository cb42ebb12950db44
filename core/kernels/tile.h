/* tile.h — the micro-tile of a product, for the elements of TN__(v): plain values, or pairs of bf16
 * (bf16.avx512bf16.k.c). Include with TN__REAL and TN_ defined, after tile_size.h; it defines only TN__(any_tile). */
/* clang-format off: it takes TN__UNROLL for a function */

/* Row i of a is i % 3 strides from the pointer i / 3: few pointers to advance, and addresses that x86 can encode. */
TN__INLINE void TN__(tile)(const int mr, const int nv, const bool rows, const tn__gemm_step *s)
{
    enum { N = TN__(v_n) };
    const int64_t   a_row = s->a_row, a_col = s->a_col, b_row = s->b_row;
    const TN__REAL *b = s->b, *a[(MR + 2) / 3];
    const int64_t  *b_at = s->b_at;
    /* without other data to prefetch: the panel of b after the next, read in place */
    const char   *ahead = s->prefetch ? s->prefetch : (const char *)(b + 2 * nv * N);
    const int64_t line = s->prefetch ? s->per_step : b_row * (int64_t)sizeof *b;
    TN__(v) acc[MR][NV];
    int64_t twice = 2 * a_row;
    v_hide(twice);
    TN__UNROLL for (int g = 0; g < (mr + 2) / 3; g++)
    {
        a[g] = (const TN__REAL *)s->a + 3 * g * a_row;
        v_hide(a[g]);
    }
    if (s->from) {
        const TN__REAL *from = s->from;
        TN__UNROLL for (int i = 0; i < mr; i++) TN__UNROLL for (int j = 0; j < nv; j++) acc[i][j] =
            TN__(v_load)(from + i * s->from_row + j * N);
    } else {
        TN__UNROLL for (int i = 0; i < mr; i++) TN__UNROLL for (int j = 0; j < nv; j++) acc[i][j] = TN__(v_zero)();
    }
    for (int64_t p = s->k; p > 0; p--) {
        TN__(v) row[NV];
        if (rows) b = (const TN__REAL *)s->b + *b_at++;
        TN__UNROLL for (int j = 0; j < nv; j++) row[j] = TN__(v_load)(b + j * N);
        TN__UNROLL for (int i = 0; i < mr; i++)
        {
            TN__(v_one) x = TN__(v_load_one)(a[i / 3] + (i % 3 == 2 ? twice : i % 3 * a_row));
            TN__UNROLL for (int j = 0; j < nv; j++) acc[i][j] = TN__(v_fma_one)(x, row[j], acc[i][j]);
        }
        TN__UNROLL for (int g = 0; g < (mr + 2) / 3; g++) a[g] += a_col;
        if (rows) continue;
        b += b_row;
        __builtin_prefetch(ahead, 0, 2);
        ahead += line;
    }
    const int64_t to_row = s->to_row;
#ifdef v_narrow
    if (mr == MR && s->to_bf16) {
        uint16_t *half = s->to;
        TN__UNROLL for (int i = 0; i < mr; i++) TN__UNROLL for (int j = 0; j < nv; j++)
            v_narrow(half + i * to_row + j * N, acc[i][j]);
        return;
    }
#else
    if (s->bias) {
        const TN__REAL *bias = s->bias;
        const int64_t   bias_row = s->bias_row, bias_col = s->bias_col;
        TN__UNROLL for (int i = 0; i < mr; i++) TN__UNROLL for (int j = 0; j < nv; j++) acc[i][j] +=
            TN__(v_load)(bias + i * bias_row + j * bias_col);
    }
#endif
    TN__REAL *to = s->to;
    TN__UNROLL for (int i = 0; i < mr; i++) TN__UNROLL for (int j = 0; j < nv; j++)
        TN__(v_store)(to + i * to_row + j * N, acc[i][j]);
}

#define TILE_NAME(mr, nv) TN__(tile_##mr##_##nv)
#define TILE(mr, nv) \
    static void TILE_NAME(mr, nv)(const tn__gemm_step *s) { TN__(tile)(mr, nv, false, s); }
#define TILE_POINTER(mr, nv) TILE_NAME(mr, nv),
EACH_TILE(TILE)
static void TN__(any_tile)(const tn__gemm_step *s)
{
    static void (*const tiles[])(const tn__gemm_step *) = {EACH_TILE(TILE_POINTER)};
    tiles[(s->nv - 1) * MR + s->mr - 1](s);
}
#ifdef TN__TILES_OF_ROWS
#define TILE_OF_ROWS_NAME(mr, nv) TN__(tile_of_rows_##mr##_##nv)
#define TILE_OF_ROWS(mr, nv) \
    static void TILE_OF_ROWS_NAME(mr, nv)(const tn__gemm_step *s) { TN__(tile)(mr, nv, true, s); }
#define TILE_OF_ROWS_POINTER(mr, nv) TILE_OF_ROWS_NAME(mr, nv),
EACH_WIDE_TILE(TILE_OF_ROWS)
static void TN__(any_tile_of_rows)(const tn__gemm_step *s)
{
    static void (*const tiles[])(const tn__gemm_step *) = {EACH_WIDE_TILE(TILE_OF_ROWS_POINTER)};
    tiles[s->mr - 1](s);
}
#undef TILE_OF_ROWS_NAME
#undef TILE_OF_ROWS
#undef TILE_OF_ROWS_POINTER
#endif
#undef TILE_NAME
#undef TILE
#undef TILE_POINTER
/* clang-format on */
