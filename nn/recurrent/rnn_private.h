/* rnn_private.h — what recurrent layers and cells share, and how sequences are packed. Private to nn/. */
#ifndef TENON_NN_RECURRENT_RNN_PRIVATE_H
#define TENON_NN_RECURRENT_RNN_PRIVATE_H

#include "nn/base/nn_private.h"
#include "nn/rnn.h"

/* The parameters of one layer in one direction. */
typedef struct {
    tn_tensor *weight_ih, *weight_hh, *bias_ih, *bias_hh, *weight_hr;
} tn__layer_weights;

/* Makes and registers them under their names with `suffix` ("_l0_reverse"), each ±1/√hidden. proj: 0, or h's size. */
tn__layer_weights tn__recurrent_weights(void *m, const char *suffix, int64_t gates, int64_t in, int64_t hidden,
                                        int64_t proj, bool no_bias, tn_dtype dt);
/* Runs one layer over packed steps; s holds all arguments but x, weight and bias. */
tn_tensor *tn__recurrent_layer(int64_t gates, const tn__layer_weights *w, tn_tensor *packed, tn_steps_args s);

/* False and raised for a state of integers. */
static inline bool tn__state_floating(const tn_module *m, const char *name, const tn_tensor *h)
{
    const tn_dtype dt = tn_dtype_of(h);
    if (tn_dtype_is_float(dt)) return true;
    return tn_raise(TN_EDTYPE, "%s: %s must be floating, got %s", tn__kind_name(m), name, tn_dtype_name(dt)), false;
}

/* How sequences lie in what is packed. Where none is shorter than the others there is nothing to sort: sizes is NULL,
 * and so are the three tensors. */
typedef struct {
    int64_t    batch, length, steps, packed;
    int64_t   *sizes;         /* of the steps */
    size_t     bytes;         /* of sizes */
    bool       ragged;        /* some sequence is shorter */
    tn_tensor *from;          /* i64 [packed]: where each row stands in x, its first two dims joined */
    tn_tensor *order, *place; /* i64 [batch]: the sequence at each sorted place; the sorted place of each sequence */
} tn__packing;

/* Of sequences [batch, length] with these lengths, or NULL. False: raised, as who. tn__packing_end is to be called in
 * any case. */
bool tn__packing_begin(tn__packing *p, const char *who, int64_t batch, int64_t length, const tn_tensor *lengths,
                       bool time_first);
void tn__packing_end(tn__packing *p);

tn_tensor *tn__pack(const tn__packing *p, tn_tensor *x, bool time_first);   /* [B, T, n] -> [packed, n] */
tn_tensor *tn__unpack(const tn__packing *p, tn_tensor *y, bool time_first); /* and back, 0 where there was padding */
/* States [.., B, hidden], sorted as the packed sequences are; and back. */
tn_tensor *tn__pack_states(const tn__packing *p, tn_tensor *h);
tn_tensor *tn__unpack_states(const tn__packing *p, tn_tensor *h);
/* Dropout of packed rows that is the same in all steps of a sequence. */
tn_tensor *tn__pack_locked(const tn__packing *p, tn_tensor *x, double chance);

#endif
