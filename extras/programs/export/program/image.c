/* image.c — part of an exported program: an encoder of images, and its classifier. */

/* ---- images ------------------------------------------------------------------------------------------------------ */

/* The scores of an image, [CLASSES]. pixels: CHANNELS planes of SIDE rows of SIDE values from 0 to 255. */
const float *model_classify(const unsigned char *pixels)
{
    float *x = state.x + TOKENS * DIM_WIDE;
    for (int p = 0; p < PATCHES; p++) { /* the numbers of a patch: by channel, row, column */
        const unsigned char *corner = pixels + p / GRID * PATCH * SIDE + p % GRID * PATCH;
        float               *to = state.patches + p * PATCH_WIDE;
        for (int c = 0; c < CHANNELS; c++)
            for (int i = 0; i < PATCH; i++)
                for (int j = 0; j < PATCH; j++) *to++ = pixel_value[256 * c + corner[(c * SIDE + i) * SIDE + j]];
    }
    linear_float(PATCHES, CHANNELS * PATCH * PATCH, DIM_WIDE, patch, patch_bias, state.patches, x);
    for (int t = 0; t < TOKENS; t++)
        for (int i = 0; i < DIM; i++) state.x[t * DIM_WIDE + i] = start[t * DIM + i];
    for (int t = 0; t < LENGTH; t++)
        for (int i = 0; i < DIM; i++) state.x[t * DIM_WIDE + i] = state.x[t * DIM_WIDE + i] + position[t * DIM + i];
    encode_rows(LENGTH);
    linear(1, DIM, CLASSES_WIDE, classifier, classifier_bias, state.x, state.scores);
#if TEACHER
    linear(1, DIM, CLASSES_WIDE, taught, taught_bias, state.x + DIM_WIDE, state.change);
    for (int i = 0; i < CLASSES; i++) state.scores[i] = (state.scores[i] + state.change[i]) * 0.5f;
#endif
    return state.scores;
}

/* The probabilities of the classes of that image, [CLASSES]; the scores are lost. */
const float *model_probabilities(void)
{
    softmax(CLASSES, state.scores);
    return state.scores;
}
