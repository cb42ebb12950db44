/* tile_size.h — the size of the micro-tile, for each kind of register file. */
#ifndef TENON_CORE_KERNELS_TILE_SIZE_H
#define TENON_CORE_KERNELS_TILE_SIZE_H

/* The micro-tile: as many sums as the registers hold in addition to one row's vectors of b and an element of a. WIDE:
 * in addition to an element of a only. KEPT: vectors in a panel of a b that is kept packed for one row: enough chains
 * of multiply-adds to hide their latency, and panels that can be distributed evenly over threads. K_BLOCK: steps of k
 * for which a strip of a is a quarter of L1. */
/* clang-format off */
#define TO_4(X, nv) X(1, nv) X(2, nv) X(3, nv) X(4, nv)
#define TO_6(X, nv) TO_4(X, nv) X(5, nv) X(6, nv)
#define TO_8(X, nv) TO_6(X, nv) X(7, nv) X(8, nv)
#if defined(__AVX512F__) || defined(__aarch64__) /* 32 registers */
enum { MR = 8, NV = 3, WIDE = 16 };
#define EACH_TILE(X) TO_8(X, 1) TO_8(X, 2) TO_8(X, 3)
#define EACH_WIDE_TILE(X) TO_8(X, 3)
#elif defined(__AVX2__)
enum { MR = 6, NV = 2, WIDE = 8 };
#define EACH_TILE(X) TO_6(X, 1) TO_6(X, 2)
#define EACH_WIDE_TILE(X) TO_6(X, 2)
#else
enum { MR = 4, NV = 2, WIDE = 8 };
#define EACH_TILE(X) TO_4(X, 1) TO_4(X, 2)
#endif
enum { KEPT = 8, K_BLOCK = 400 };

#endif
