/* quant_blocks.h — GGUF's types: plain ones, and blocks of elements that share a scale (quant_blocks.c). Private. */
#ifndef TENON_CORE_FILES_QUANT_BLOCKS_H
#define TENON_CORE_FILES_QUANT_BLOCKS_H

#include "core/files/io.h"

typedef struct {
    const char *name;                                     /* "Q8_0"; NULL: no type has this number */
    uint16_t    values;                                   /* in a block ... */
    uint16_t    bytes;                                    /* ... and its bytes */
    int8_t      element;                                  /* in tn__elements, if blocks are plain elements; or -1 */
    void (*widen)(const unsigned char *block, float *to); /* NULL: known, but not supported */
} tn__quant_block;
enum { TN__QUANT_BLOCKS = 42, TN__GGUF_Q8_0 = 8 };
extern const tn__quant_block tn__quant_blocks[TN__QUANT_BLOCKS]; /* by GGUF's number */

int tn__quant_block_of_element(int element); /* the plain type; -1: none */

/* A new tensor, f32 or bf16, from blocks at `at`; rows consist of whole blocks. what: for messages. Raises. */
tn_tensor *tn__quant_block_read(const tn__source *s, int64_t at, int block, tn_dtype as, tn_shape shape,
                                const char *what);
/* Converts n elements, a multiple of 32, to blocks of Q8_0 of 34 bytes: the largest becomes ±127, the others are
 * rounded to the nearest, halves away from zero, as in ggml. */
void tn__quant_block_q8_0(const float *from, int64_t n, unsigned char *to);

#endif
