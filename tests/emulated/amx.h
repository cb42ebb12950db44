/* amx.h — AMX in plain C: the eight tiles of a thread, and each instruction as in Intel's manual. `gcc -include` puts
 * it, after bf16.h, before bf16.amx.k.c and int8.amx.k.c. An exception of a CPU ends the program: a tile that is not
 * configured, shapes that do not fit each other, a wrong configuration. */
#ifndef TENON_TESTS_EMULATED_AMX_H
#define TENON_TESTS_EMULATED_AMX_H

#include "bf16.h"

#include <stdio.h>
#include <stdlib.h>

enum { EMULATED_ROWS = 16, EMULATED_BYTES = 64 };
static _Thread_local struct {
    int rows, bytes; /* 0: not configured */
    union {
        char     byte[EMULATED_ROWS][EMULATED_BYTES];
        uint8_t  u8[EMULATED_ROWS][EMULATED_BYTES];
        int8_t   i8[EMULATED_ROWS][EMULATED_BYTES];
        uint16_t bf[EMULATED_ROWS][EMULATED_BYTES / 2];
        uint32_t u32[EMULATED_ROWS][EMULATED_BYTES / 4];
        float    f32[EMULATED_ROWS][EMULATED_BYTES / 4];
    } at;
} emulated_tile[8];

static inline void emulated_must(int truth, const char *what)
{
    if (truth) return;
    fprintf(stderr, "AMX: %s\n", what);
    abort();
}

static inline void emulated_loadconfig(const void *config)
{
    const uint8_t *c = config;
    emulated_must(c[0] == 1, "the palette must be 1");
    for (int i = 1; i < 64; i++)
        emulated_must((i >= 16 && i < 32) || (i >= 48 && i < 56) || c[i] == 0, "reserved bytes must be 0");
    memset(emulated_tile, 0, sizeof emulated_tile);
    for (int i = 0; i < 8; i++) {
        const int bytes = c[16 + 2 * i] + 256 * c[17 + 2 * i], rows = c[48 + i];
        emulated_must(rows <= EMULATED_ROWS && bytes <= EMULATED_BYTES, "a tile has at most 16 rows of 64 bytes");
        emulated_must((rows == 0) == (bytes == 0), "a tile without rows must be without bytes");
        emulated_tile[i].rows = rows, emulated_tile[i].bytes = bytes;
    }
}
static inline void emulated_release(void) { memset(emulated_tile, 0, sizeof emulated_tile); }

static inline void emulated_zero(int t)
{
    emulated_must(emulated_tile[t].rows > 0, "zeroes a tile that is not configured");
    memset(&emulated_tile[t].at, 0, sizeof emulated_tile[t].at);
}
static inline void emulated_load(int t, const void *from, int64_t row)
{
    emulated_zero(t);
    for (int r = 0; r < emulated_tile[t].rows; r++)
        memcpy(emulated_tile[t].at.byte[r], (const char *)from + r * row, (size_t)emulated_tile[t].bytes);
}
static inline void emulated_store(int t, void *to, int64_t row)
{
    emulated_must(emulated_tile[t].rows > 0, "stores a tile that is not configured");
    for (int r = 0; r < emulated_tile[t].rows; r++)
        memcpy((char *)to + r * row, emulated_tile[t].at.byte[r], (size_t)emulated_tile[t].bytes);
}

/* c += a b, of units of 4 bytes. */
static inline void emulated_fit(int c, int a, int b)
{
    emulated_must(c != a && c != b && a != b, "a product of the same tile");
    emulated_must(emulated_tile[a].rows > 0 && emulated_tile[a].rows == emulated_tile[c].rows,
                  "rows of c and a differ");
    emulated_must(emulated_tile[b].rows > 0 && emulated_tile[b].bytes == emulated_tile[c].bytes,
                  "columns of c and b differ");
    emulated_must(emulated_tile[a].bytes == 4 * emulated_tile[b].rows, "columns of a and rows of b differ");
}
static inline void emulated_dpbf16ps(int c, int a, int b)
{
    emulated_fit(c, a, b);
    for (int m = 0; m < emulated_tile[c].rows; m++)
        for (int n = 0; n < emulated_tile[c].bytes / 4; n++) {
            float part[2] = {0, 0}, *sum = &emulated_tile[c].at.f32[m][n];
            for (int k = 0; k < emulated_tile[a].bytes / 2; k++)
                part[k % 2] = emulated_add_product(part[k % 2], emulated_tile[a].at.bf[m][k],
                                                   emulated_tile[b].at.bf[k / 2][2 * n + k % 2]);
            *sum = emulated_flushed(emulated_flushed(*sum) + emulated_flushed(part[0] + part[1]));
        }
}
static inline void emulated_tile_dpbusd(int c, int a, int b)
{
    emulated_fit(c, a, b);
    for (int m = 0; m < emulated_tile[c].rows; m++)
        for (int n = 0; n < emulated_tile[c].bytes / 4; n++)
            for (int k = 0; k < emulated_tile[a].bytes; k++)
                emulated_tile[c].at.u32[m][n] +=
                    (uint32_t)((int32_t)emulated_tile[a].at.u8[m][k] * emulated_tile[b].at.i8[k / 4][4 * n + k % 4]);
}

#undef _tile_loadd
#undef _tile_stored
#undef _tile_zero
#undef _tile_dpbf16ps
#undef _tile_dpbusd
#define _tile_loadconfig emulated_loadconfig
#define _tile_release emulated_release
#define _tile_zero emulated_zero
#define _tile_loadd emulated_load
#define _tile_stored emulated_store
#define _tile_dpbf16ps emulated_dpbf16ps
#define _tile_dpbusd emulated_tile_dpbusd

#endif
