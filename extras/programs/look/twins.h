/* twins.h — deep networks that differ only in residual connections and norms, trained on two spirals or on digits; or
 * Transformers trained to reverse words. */
#ifndef TENON_EXTRAS_PROGRAMS_LOOK_TWINS_H
#define TENON_EXTRAS_PROGRAMS_LOOK_TWINS_H

#include <tenon/extras.h>

typedef struct {
    tn_tensor *x, *y;
} twin_data;
typedef struct {
    int64_t     depth;
    bool        transformer;
    const char *images, *labels; /* IDX files of digits; NULL: two spirals */
    uint64_t    seed;
} twin_kind;
/* Returns a trained network, which the caller frees with tn_free; the open scope owns *data. NULL: an error is set. */
tn_module *twin_trained(const twin_kind *k, bool residual, bool normed, twin_data *data);
tn_tensor *twin_loss(void *net, void *data); /* a tn_look_loss */

#endif
