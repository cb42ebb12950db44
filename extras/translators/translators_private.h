/* translators_private.h — shared by the files of extras/translators. */
#ifndef TENON_EXTRAS_TRANSLATORS_TRANSLATORS_PRIVATE_H
#define TENON_EXTRAS_TRANSLATORS_TRANSLATORS_PRIVATE_H

#include "models/seq2seq_kinds.h"

extern const tn_seq2seq_functions tn__convs2s, tn__bytenet, tn__gnmt;

/* The inputs of a stack of causal convolutions that later tokens read. Every convolution takes its rows in turn. */
typedef struct {
    tn_tensor  *past; /* [B, rows, width]; NULL: zeros */
    tn_tensor **kept; /* those that the next call needs, a tensor for each layer; NULL: not needed */
    int64_t     at, n, layers;
} tn__conv_past;
bool tn__conv_past_open(tn__conv_past *p, const tn_seq2seq_state *r, int64_t layers); /* false: raised */
void tn__conv_past_close(tn__conv_past *p, tn_seq2seq_state *r);                      /* sets r->h */
/* The windows of `size` rows of x [B, T, C], `dilation` apart: [B, T, size · C]. They end with the row, after the rows
 * of p; p NULL: the row is in their middle. Rows outside are 0. */
tn_tensor *tn__conv_windows(tn__conv_past *p, tn_tensor *x, int64_t size, int64_t dilation);

#endif
