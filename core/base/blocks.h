/* blocks.h — kinds of packed weights, and ggml's blocks of less than 8 bits, as GGUF files have them (blocks.c). */
#ifndef TENON_CORE_BASE_BLOCKS_H
#define TENON_CORE_BASE_BLOCKS_H

#include <stdint.h>

/* The kinds of packed weights (core/products/q8.h). The first ones are such blocks. */
typedef enum {
    TN__Q4_0,
    TN__Q4_K,
    TN__Q5_K,
    TN__Q6_K,
    TN__Q4_KINDS,
    TN__Q8_0 = TN__Q4_KINDS,
    TN__F16,
    TN__INT8,
    TN__PACKINGS
} tn__packing;

enum { TN__BLOCK_MOST = 256 };
typedef struct {
    const char *name;        /* "Q4_K" */
    int         width, sub;  /* elements of a block, and of a group, which shares s and m */
    int         bytes, less; /* bytes of a block; less is subtracted from each q */
} tn__block_form;
extern const tn__block_form tn__block_forms[TN__Q4_KINDS];

/* The content of a block: element i is d s q - e m with the s and m of its group, q less `less`. */
typedef struct {
    uint16_t d, e; /* f16 */
    int8_t   s[16], m[16];
    uint8_t  q[TN__BLOCK_MOST];
} tn__block;
void tn__block_read(tn__packing kind, const uint8_t *from, tn__block *to);
/* Elements of one group: n q's. The multiplications are in ggml's order, so that the results have the same bits. */
void tn__block_widen(tn__packing kind, uint16_t d, uint16_t e, int s, int m, int n, const uint8_t *q, float *to);

#endif
