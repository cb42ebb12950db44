/* gemm_plan.h — the plan of a product, written by gemm_plan.c, read by gemm.c; and the blocks of gemm_pack.c. */
#ifndef TENON_CORE_PRODUCTS_GEMM_PLAN_H
#define TENON_CORE_PRODUCTS_GEMM_PLAN_H

#include "core/products/gemm.h"

enum { TN__SET_BYTES = 4096 }; /* rows at a multiple of this distance map to the same L1 set */
enum { TN__GEMM_PAD = 16 };    /* units between packed rows of a, so that they do not all map to the same cache sets */

enum { TN__GEMM_GROUP = 32 }; /* strips in a group, at most */
enum { TN__GEMM_BIAS = 512 }; /* bytes of a vector of bias for each row of a strip */

/* A range split into `parts` nearly equal pieces; longer ones are interleaved, so any prefix of pieces is balanced. */
typedef struct {
    int64_t parts, each, rest;
} tn__cut;
/* Start of piece i. */
static inline int64_t tn__cut_at(const tn__cut *c, int64_t i)
{
    return i * c->each + (c->rest ? i * c->rest / c->parts : 0);
}

/* A kernel takes k in steps: of one term, or of a pair if the instruction set multiplies bf16 two at a time. The data
 * it reads for a step is a unit: an element, or such a pair. */
typedef struct {
    tn__gemm_call           call;
    const tn__gemm_kernels *kernels;

    /* sizes */
    int64_t unit_bytes, in_bytes, out_bytes; /* of a unit and of a sum, of an element of a and b, of c */
    int64_t pair, steps;                     /* terms in a step, steps in k */
    int64_t matrices;                        /* in the batch */
    int64_t vectors;                         /* of columns, the last one perhaps partial */

    /* cuts */
    tn__cut strip, panel;             /* rows into strips, vectors into panels */
    tn__cut strip_tasks, panel_tasks; /* strips and panels into tasks */
    int64_t kc;                       /* steps in a block of k */
    bool    parallel;                 /* tasks are distributed over threads, `grain` of them at a time */
    int64_t tasks, grain;

    /* method */
    bool    gemv;               /* a matrix-vector product: see row_task */
    bool    sums_are_c;         /* no epilogue, except for a bias that the tile kernel adds */
    bool    rounds_in_tile;     /* the epilogue is rounding to bf16, and the tile kernel does that */
    bool    packs_a, packs_b;   /* each task packs its part */
    bool    a_columns;          /* a is packed by columns */
    int64_t a_strips;           /* strips of a that are packed at a time */
    int64_t group;              /* strips that a task computes panel by panel; 1: strip by strip */
    bool    shares_a, shares_b; /* packed before the tasks, for all of them */
    bool    may_keep_b;         /* b is worth keeping packed (packed.h) */
    bool    keeps_b;            /* and it is kept, for tiles */
    bool    keeps_rows;         /* or for the kernel of one row: see kept_rows_task */
    int64_t next_a, next_b;     /* bytes of the next matrix of a batch that each task prefetches; 0: none */

    struct {
        size_t b, a, sums, total; /* bytes of a task: b packed, a packed, sums between blocks of k; total */
    } ws;
} tn__gemm_plan;

/* Chooses the kernels, the method and the cuts: these affect speed, never bits. */
void tn__gemm_make_plan(tn__gemm_plan *plan, const tn__gemm_call *call);
/* True if so few rows that they can read a b kept for the kernel of one row. */
bool tn__gemm_few(const tn__gemm_plan *plan);
/* Number of bytes of a b that is kept for the kernel of one row, or for tiles; and the plan for such a b. */
size_t tn__gemm_kept_bytes(const tn__gemm_plan *plan, bool one_row);
void   tn__gemm_plan_kept(tn__gemm_plan *plan, bool one_row);

static inline int64_t tn__strip_at(const tn__gemm_plan *plan, int64_t s)
{
    return tn__cut_at(&plan->strip, s);
} /* in rows */
static inline int64_t tn__panel_at(const tn__gemm_plan *plan, int64_t p) /* in columns */
{
    return tn__cut_at(&plan->panel, p) * plan->kernels->lanes;
}
/* Number of terms in kc steps; the last step may have half a pair. */
static inline int64_t tn__gemm_terms(const tn__gemm_plan *plan, int64_t k0, int64_t kc)
{
    return tn__min_i64(kc * plan->pair, plan->call.k - k0 * plan->pair);
}
/* Copies a block of a or b to dense rows of width units, zero-filled. */
void tn__gemm_pack(const tn__gemm_plan *plan, bool terms_in_rows, int64_t rows, int64_t cols, int64_t width,
                   const char *from, int64_t row, int64_t col, char *to);
/* Pack steps [k0, k0 + kc) of panels [p0, p1) of b, and of strips [s0, s1) of a (gemm_pack.c). */
void tn__gemm_pack_b(const tn__gemm_plan *plan, const char *b, int64_t k0, int64_t kc, int64_t p0, int64_t p1,
                     char *to);
void tn__gemm_pack_a(const tn__gemm_plan *plan, const char *a, int64_t k0, int64_t kc, int64_t s0, int64_t s1,
                     char *to);
/* Prefetches strip s of an a read in place: rows, or columns too far apart for the hardware. */
void tn__gemm_prefetch_a(const tn__gemm_plan *plan, const char *a, int64_t k0, int64_t kc, int64_t s);

/* Prefetches a block of dense rows: before it is packed, because the hardware does not follow short pieces of rows; or
 * before it is written, because a cache miss takes as long as computing a tile. */
static inline void tn__prefetch_rows(const char *from, int64_t rows, int64_t row_bytes, int64_t bytes, bool write)
{
    if (write && bytes <= 64)
        for (; rows > 0; rows--, from += row_bytes) __builtin_prefetch(from, 1);
    for (int64_t r = 0; r < rows; r++, from += row_bytes)
        for (int64_t i = 0; i < bytes; i += 64)
            if (write) __builtin_prefetch(from + i, 1);
            else __builtin_prefetch(from + i);
}
static inline size_t tn__lines(int64_t numbers, int64_t size) { return ((size_t)(numbers * size) + 63) / 64 * 64; }

#endif
