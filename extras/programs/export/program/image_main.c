/* image_main.c — part of an exported program: main of a classifier of images. */

#ifdef MODEL_MAIN
/* ---- the program: classifies the images on standard input, an IDX file of bytes or the bytes of images ----------- */
#include <stdio.h>

enum { PIXELS = CHANNELS * SIDE * SIDE, TOP = CLASSES < 3 ? CLASSES : 3 };
static unsigned char image[PIXELS];
static long long     announced = -1; /* images of the IDX file; -1: there is no such file */

/* Prints the most likely classes of the image. */
static void print_best(void)
{
    static int   best[TOP];
    const float *p;
    model_classify(image);
    p = model_probabilities();
    for (int i = 0, n = 0; i < CLASSES; i++) {
        if (n == TOP && !(p[i] > p[best[n - 1]])) continue;
        int at = n < TOP ? n++ : n - 1;
        for (; at > 0 && p[i] > p[best[at - 1]]; at--) best[at] = best[at - 1];
        best[at] = i;
    }
    for (int k = 0; k < TOP; k++) printf("%s%s %.3f", k ? "\t" : "", label[best[k]], (double)p[best[k]]);
    putchar('\n');
}

/* Reads the head of an IDX file, if there is one; else those bytes are the first of an image. Returns their number; -1:
 * images of another size. */
static int read_head(void)
{
    const int    planes = CHANNELS > 1, bytes = 4 + 4 * (3 + planes);
    const size_t got = fread(image, 1, 4, stdin);
    if (got < 4 || image[0] || image[1] || image[2] != 8) return (int)got;
    if (image[3] != 3 + planes) return (int)got;
    if (fread(image + 4, 1, (size_t)bytes - 4, stdin) != (size_t)bytes - 4) return -1;
    announced = (long long)image[4] << 24 | image[5] << 16 | image[6] << 8 | image[7];
    const int rows = image[bytes - 6] << 8 | image[bytes - 5], columns = image[bytes - 2] << 8 | image[bytes - 1];
    return rows == SIDE && columns == SIDE && (!planes || image[11] == CHANNELS) ? 0 : -1;
}

int main(void)
{
    int have = read_head();
    for (; have >= 0 && announced != 0; have = 0, announced -= announced > 0) {
        const size_t more = fread(image + have, 1, (size_t)(PIXELS - have), stdin);
        if (have == 0 && more == 0 && announced < 0) return 0;
        if (more != (size_t)(PIXELS - have)) break;
        print_best();
    }
    if (announced == 0) return 0;
    return fprintf(stderr, "expected images of %d bytes: %d of %d by %d pixels\n", PIXELS, CHANNELS, SIDE, SIDE), 1;
}
#endif
