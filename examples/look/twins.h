/* twins.h — deep networks that are alike but for residual connections and norms: on two spirals, or Transformers that
 * learn to write words backwards. */
#ifndef TENON_EXAMPLES_LOOK_TWINS_H
#define TENON_EXAMPLES_LOOK_TWINS_H

#include <tenon/tenon.h>

typedef struct {
    tn_tensor *x, *y;
} twin_data;
/* Trained on the data, which belongs to the open scope; NULL: an error stands. */
tn_module *twin_trained(int64_t depth, bool transformer, bool residual, bool normed, uint64_t seed, twin_data *data);
tn_tensor *twin_loss(void *net, void *data); /* a tn_look_loss */

#endif
