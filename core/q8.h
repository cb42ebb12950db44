/* q8.h — packed weights, in 4 to 8 bits or f16, for inference or under adapters (nn/lora.h): no gradients of the
 * weights. Part of core.h: include that. tn_quantize (nn/module.h) and tn_halve (nn/state.h) convert all such weights
 * of a module. */
#ifndef TENON_CORE_Q8_H
#define TENON_CORE_Q8_H

#include "core.h"

TN_C_BEGIN_

/* Packs a matrix [out, in] as llama.cpp's Q8_0, a quarter of f32: each 32 elements of a row share an f16 scale. The
 * result is a u8 tensor of one dim, laid out for products: only tn_linear, tn_embedding and tn_linear_cross_entropy
 * accept it, in place of a floating weight. `in` must be a multiple of 32. */
TN_API tn_tensor *tn_q8_pack(const tn_tensor *weight);
/* Packs a matrix in f16, half of f32: any width, and exact where the weights were f16 in a file. Apart from the
 * elements, it is used as an 8-bit weight is. */
TN_API tn_tensor *tn_f16_pack(const tn_tensor *weight);
/* Packs a matrix as llama.cpp's Q4_0, an eighth of f32: each 32 elements of a row share an f16 scale. `in` must be a
 * multiple of 32. Products also round their input: see tn_blocks_pack. */
TN_API tn_tensor *tn_q4_pack(const tn_tensor *weight);
/* Packs a matrix in int8 with one f32 scale per row: any width up to 131072. Products also round each row of
 * activations to 7 bits (docs/quantisation.md): they are fast, and the same bits on every CPU. */
TN_API tn_tensor *tn_int8_pack(const tn_tensor *weight);
TN_API tn_tensor *tn_unpack(const tn_tensor *q8);      /* [out, in], in the dtype it was packed from */
TN_API bool       tn_is_packed(const tn_tensor *t);    /* any of these */
TN_API tn_dtype   tn_weight_dtype(const tn_tensor *t); /* of any tensor: the dtype that tn_unpack would return */
TN_API tn_shape   tn_weight_shape(const tn_tensor *t);
/* A weight from the rows of a tensor of a GGUF file, without any loss: type "Q4_0", "Q4_K", "Q5_K", "Q6_K", "Q8_0" or
 * "F16"; dt: the dtype that the weights represent. The width must be a multiple of the block, 32 or 256 elements. With
 * the types of less than 8 bits, products also round each block of activations to 8 bits, and have the same bits on
 * every CPU. Memory: that of the file, for Q4_K and Q5_K 3 % more. */
TN_API tn_tensor *tn_blocks_pack(const char *type, tn_dtype dt, tn_shape s, const void *blocks, size_t bytes);
/* From and to the blocks of GGUF's Q8_0, 34 bytes for 32 elements, row by row; dt: the dtype they represent. */
TN_API tn_tensor *tn_q8_from_blocks(tn_dtype dt, tn_shape s, const void *blocks, size_t bytes);
TN_API tn_status  tn_q8_to_blocks(const tn_tensor *q8, void *blocks, size_t bytes) TN_CHECKED;

TN_C_END_
#endif
