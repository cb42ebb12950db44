/* embedding.c — part of an exported program: the embeddings of tokens. */

/* Element i of a token's embedding. */
#if TIED
#if OUTPUT_INT
static float embedded(int token, int i) /* a column of the output layer's matrix */
{
    static float row[WIDEST]; /* the embedding of `of` */
    static int   of = -1;
    /* by index: for a pointer to bytes, gcc 12 for arm omits what the caller stores */
    const int panel = 4 * (int)(output - weights.x + VOCAB_WIDE) + token / 16 * 16 * ((DIM + 1) / 2 * 2);
    for (int k = 0; token != of && k < DIM; k++) {
        const int at = panel + k / 2 * 32 + token % 16 * 2 + k % 2;
        row[k] = (float)(signed char)weights.bytes[at / 4092][at % 4092] * output[token];
    }
    if (token != of) mix(DIM, row);
    of = token;
    return row[i];
}
#else
static float embedded(int token, int i) { return output[(token / 16 * DIM + i) * 16 + token % 16]; }
#endif
#else
static float embedded(int token, int i) { return embedding[token * DIM + i]; }
#endif
