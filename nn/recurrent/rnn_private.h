/* rnn_private.h — functions shared by recurrent layers and cells, and the packing of sequences. Private to nn/. */
#ifndef TENON_NN_RECURRENT_RNN_PRIVATE_H
#define TENON_NN_RECURRENT_RNN_PRIVATE_H

#include "nn/base/nn_private.h"
#include "nn/rnn.h"

/* The parameters of one layer in one direction. */
typedef struct {
    tn_tensor *weight_ih, *weight_hh, *bias_ih, *bias_hh, *weight_hr;
} tn__layer_weights;

/* Creates the parameters, uniform in ±1/√hidden, and registers them in m with `suffix` ("_l0_reverse") after their
 * names. proj: width of the projected h; 0: no projection. */
tn__layer_weights tn__recurrent_weights(void *m, const char *suffix, int64_t gates, int64_t in, int64_t hidden,
                                        int64_t proj, bool no_bias, tn_dtype dt);
/* Runs one layer over packed steps; s contains all arguments except x, weight, proj and bias. */
tn_tensor *tn__recurrent_layer(int64_t gates, const tn__layer_weights *w, tn_tensor *packed, tn_steps_args s);

/* False (raised) if the state h is not floating. */
static inline bool tn__state_floating(const tn_module *m, const char *name, const tn_tensor *h)
{
    const tn_dtype dt = tn_dtype_of(h);
    if (tn_dtype_is_float(dt)) return true;
    return tn_raise(TN_EDTYPE, "%s: %s must be floating, got %s", tn__kind_name(m), name, tn_dtype_name(dt)), false;
}

/* The layout of packed sequences. If all sequences have the full length, sizes and the three tensors are NULL. */
typedef struct {
    int64_t    batch, length, steps, packed;
    int64_t   *sizes;         /* [steps]: number of sequences in each step */
    size_t     bytes;         /* allocated for sizes */
    bool       ragged;        /* at least one sequence is shorter than length */
    tn_tensor *from;          /* i64 [packed]: index of each packed row in x, whose first two dims are joined */
    tn_tensor *order, *place; /* i64 [batch]: the sequence at each sorted place; the sorted place of each sequence */
} tn__by_steps;

/* Computes the layout of sequences [batch, length] with these lengths (NULL: all full). False: raised. The caller calls
 * tn__packing_end in both cases. `who` names the caller in messages. */
bool tn__packing_begin(tn__by_steps *p, const char *who, int64_t batch, int64_t length, const tn_tensor *lengths,
                       bool time_first);
void tn__packing_end(tn__by_steps *p);

tn_tensor *tn__pack(const tn__by_steps *p, tn_tensor *x, bool time_first); /* [B, T, n] -> [packed, n] */
tn_tensor *tn__unpack(const tn__by_steps *p, tn_tensor *y,
                      bool time_first); /* [packed, n] -> [B, T, n], 0 for padding */
/* Reorder states [.., B, hidden] to the sorted order of the packed sequences, and back. */
tn_tensor *tn__pack_states(const tn__by_steps *p, tn_tensor *h);
tn_tensor *tn__unpack_states(const tn__by_steps *p, tn_tensor *h);
/* Dropout of packed rows with one mask for all steps of a sequence. */
tn_tensor *tn__pack_locked(const tn__by_steps *p, tn_tensor *x, double chance);

#endif
