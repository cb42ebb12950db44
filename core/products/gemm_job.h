/* gemm_job.h — a product on its way: what core/products/gemm_plan.c decides and core/products/gemm.c carries out. */
#ifndef TENON_CORE_GEMM_JOB_H
#define TENON_CORE_GEMM_JOB_H

#include "core/products/gemm.h"

enum { TN_GEMM_PAD = 16 }; /* units between packed rows of a, so that they do not fall into the same set of a cache */

/* Something cut into so many parts, as even as whole numbers allow, the longer ones spread among the others: half of
 * the parts are half of it all. */
typedef struct {
    int64_t parts, each, rest;
} tn_cut;
/* Where part i begins. */
static inline int64_t tn__cut_at(const tn_cut *c, int64_t i)
{
    return i * c->each + (c->rest ? i * c->rest / c->parts : 0);
}
static inline int64_t tn__ceil_div(int64_t a, int64_t b) { return a / b + (a % b != 0); }

/* A kernel takes k in steps: of one term, or of a pair where the instruction set adds products of bf16 two at a time.
 * What it reads for a step is a unit: a number, or such a pair. */
typedef struct {
    const tn__gemm_kernels *kn;
    tn__gemm_call           g;
    int64_t                 size, in, out;            /* bytes of a sum and of a unit, of an element of a and b, of c */
    int64_t                 pair, steps;              /* terms in a step, steps in k */
    int64_t                 matrices;                 /* in the batch */
    int64_t                 vectors;                  /* of columns, the last one perhaps in part */
    tn_cut                  strip, panel;             /* rows into strips, vectors into panels */
    tn_cut                  strip_tasks, panel_tasks; /* strips and panels into tasks */
    int64_t                 kc;                       /* steps in a block of k */
    bool                    plain;                    /* the sums are the result */
    bool                    narrows;                  /* they are once rounded to bf16, and the kernel does that */
    bool                    row;                      /* a matrix-vector product: see row_task */
    bool                    pack_a, pack_b;           /* whether, in a task */
    bool                    a_columns;                /* a is packed by columns */
    int64_t                 a_strips;                 /* strips of a that are packed at a time */
    bool                    share_a, share_b;         /* packed before the tasks */
    bool                    keeps;                    /* b may be kept packed */
    bool                    kept;                     /* b is packed and lies in `shared` */
    bool                    spread;                   /* over threads */
    int64_t                 tasks, grain;
    size_t                  b_bytes, a_bytes, sum_bytes, slot_bytes;
    char                   *slots, *shared, *shared_a;
} tn__gemm_job;

/* Chooses the kernels, the way and the cuts: all of it speed, never bits. */
void tn__gemm_plan(tn__gemm_job *q, const tn__gemm_call *call);
/* How many bytes b takes where it is kept packed; and the plan for a b that is. */
size_t tn__gemm_kept_bytes(const tn__gemm_job *q);
void   tn__gemm_plan_kept(tn__gemm_job *q);

static inline int64_t tn__strip_at(const tn__gemm_job *q, int64_t s) { return tn__cut_at(&q->strip, s); } /* in rows */
static inline int64_t tn__panel_at(const tn__gemm_job *q, int64_t p) /* in columns */
{
    return tn__cut_at(&q->panel, p) * q->kn->lanes;
}
static inline size_t tn__lines(int64_t numbers, int64_t size) { return ((size_t)(numbers * size) + 63) / 64 * 64; }

#endif
