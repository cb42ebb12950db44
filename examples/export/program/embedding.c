/* embedding.c — part of an exported program: the embeddings of tokens. */

/* Element i of a token's embedding. */
#if TIED
#if OUTPUT_INT
static float embedded(int token, int i) /* a column of the output layer's matrix */
{
    const signed char *part = (const signed char *)(output + VOCAB_WIDE) + token / 16 * 16 * DIM;
    return (float)part[16 * i + token % 16] * output[token];
}
#else
static float embedded(int token, int i) { return output[i * VOCAB_WIDE + token]; } /* the output layer's matrix */
#endif
#else
static float embedded(int token, int i) { return embedding[token * DIM + i]; }
#endif
