/* embedding.c — part of an exported program: the embeddings of tokens. */

/* Element i of a token's embedding. */
#if TIED
#if OUTPUT_INT
static float embedded(int token, int i) /* a column of the output layer's matrix */
{
    /* by index: for a pointer to bytes, gcc 12 for arm omits what the caller stores */
    const int at = 4 * (int)(output - weights.x + VOCAB_WIDE) + (token / 16 * DIM + i) * 16 + token % 16;
    return (float)(signed char)weights.bytes[at / 4092][at % 4092] * output[token];
}
#else
static float embedded(int token, int i) /* a row of a panel of the output layer's matrix, see linear_float */
{
    const int panel = token / PANEL * PANEL, width = VOCAB_WIDE - panel < PANEL ? VOCAB_WIDE - panel : PANEL;
    return output[panel * DIM + i * width + token % PANEL];
}
#endif
#else
static float embedded(int token, int i) { return embedding[token * DIM + i]; }
#endif
