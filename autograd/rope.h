/* rope.h — rotary position embeddings, an op between a projection and attention. Part of autograd.h: include that. */
#ifndef TENON_AUTOGRAD_ROPE_H
#define TENON_AUTOGRAD_ROPE_H

#include "../core/core.h"

TN_C_BEGIN_

/* Rotary positions: the elements of each row of x [..., D] are rotated pair by pair, by angles [..., R] that broadcast
 * to the rows, R even and at most D; elements from R on stay as they are. Pairs are elements i and i + R/2, as in
 * GPT-NeoX and Hugging Face's LLaMA; interleaved: 2i and 2i + 1, as in GPT-J and llama2.c. */
TN_API tn_tensor *tn_rope(tn_tensor *x, tn_tensor *angles, bool interleaved);

/* How the angles are scaled for texts longer than those trained on; the names are Hugging Face's rope_type. */
typedef enum { TN_ROPE_PLAIN = 0, TN_ROPE_LINEAR, TN_ROPE_DYNAMIC, TN_ROPE_LLAMA3 } tn_rope_scaling;
typedef struct tn_rope_config {
    int             zero_;
    int64_t         dim; /* R: number of elements of a row that are rotated */
    double theta    TN_IS(10000);
    bool            interleaved;
    tn_rope_scaling scaling;
    double factor   TN_IS(1);
    double low      TN_IS(1); /* llama3: low_freq_factor, high_freq_factor */
    double high     TN_IS(4);
    int64_t         trained; /* dynamic, llama3: original_max_position_embeddings */
    tn_dtype        dtype;   /* of the angles: f64, or else f32 */
    int             end_;
} TN_KEYWORDS_ONLY tn_rope_config;
#define TN_ROPE_DEFAULTS .theta = 10000, .factor = 1, .low = 1, .high = 4
#define TN_ROPE(...) TN_CALL_(TN_FILLED_(tn_rope_config, TN_ROPE_DEFAULTS, __VA_ARGS__)) /* TN_ROPE(.dim = 64) */
/* Cosines and sines of `length` positions from `offset` on, [length, R]; or of given ones, i64 or i32 [...]: [..., R].
 * Computed in f64, each from its position alone. With TN_ROPE_DYNAMIC they also depend on the largest position: keys in
 * a cache are not rotated again when a sequence grows beyond .trained, and keep the angles of the shorter sequence, as
 * in Hugging Face. */
TN_API tn_tensor *tn_rope_angles(tn_rope_config c, int64_t offset, int64_t length);
TN_API tn_tensor *tn_rope_angles_at(tn_rope_config c, tn_tensor *positions);

TN_C_END_
#endif
