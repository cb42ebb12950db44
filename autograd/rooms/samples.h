/* samples.h — the type of the test data in each op's file. The library does not refer to the data, so the linker
 * removes it from users' programs; the tests refer to it by name. */
#ifndef TENON_AUTOGRAD_ROOMS_SAMPLES_H
#define TENON_AUTOGRAD_ROOMS_SAMPLES_H

#include "autograd/op.h"

/* A row of test data, from which the registry's tests make gradient, error and layout checks. */
enum { TN__SAMPLE_INPUTS = 7 };
typedef enum {
    TN__ARG_REAL = 0, /* a differentiable input, uniform in [low, high)    */
    TN__ARG_INDEX,    /* i64, uniform in [low, high)                       */
    TN__ARG_MASK,     /* bool, true with probability 1/2                   */
    TN__ARG_CONST,    /* real, but without a gradient                      */
    TN__ARG_DISTINCT, /* real, values at least 0.05 apart: for max, sort … */
    TN__ARG_ROWSUM1,  /* real, positive, the last dim sums to 1            */
    TN__ARG_ABSENT,   /* an optional input, NULL                           */
    TN__ARG_INT       /* i64 as data, uniform in [low, high): errors and integer kernels */
} tn__sample_kind;
typedef struct {
    int8_t  n;
    int16_t d[TN_MAX_DIMS];
} tn__sample_shape; /* a small tn_shape: there are more than a thousand rows */
typedef struct {
    int8_t           nin, nout;               /* for ops with inputs, outputs = TN_ANY; nin 0: the op's number */
    bool             flat_kink;               /* second derivatives cannot be compared numerically here */
    uint8_t          kind[TN__SAMPLE_INPUTS]; /* tn__sample_kind */
    tn__sample_shape in[TN__SAMPLE_INPUTS];
    double           low[TN__SAMPLE_INPUTS], high[TN__SAMPLE_INPUTS]; /* both 0: [-2, 2) */
    double           f32_tol;                                         /* 0: the default */
    const void      *args;
    const char      *fails;  /* the exact message, if the row is an error; NULL: a good row */
    tn_status        status; /* the error's code                                            */
} tn__sample;
#define TN__FAILS(code, message) .status = (code), .fails = (message) /* of a row that is an error */

/* The rows of an op: after tn__op_softmax comes TN__SAMPLES(softmax, samples). clang-format gives each member of a long
 * row a line; switch it off for the rows. */
typedef struct {
    const tn__sample *rows;
    int               n;
} tn__samples;
#define TN__SAMPLES(op, a) const tn__samples tn__samples_##op = {(a), (int)(sizeof(a) / sizeof *(a))}

#endif
