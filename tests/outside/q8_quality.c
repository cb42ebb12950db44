/* q8_quality.c — the effect of 8-bit weights on a trained model: the loss and the logits of a text before and after
 * tn_quantize.
 *
 *     q8_quality MODEL TEXT [MOST]
 *
 * Prints both losses over at most MOST tokens, the increase of the loss, the minimum and mean cosine of the logits at a
 * position, and the number of positions where it is below 0.9999. Exits with 1 if the loss increases by more than
 * 0.1 %, or the mean cosine is below 0.9999.
 *
 *     cc -I BUILD/include -o q8_quality tests/outside/q8_quality.c BUILD/libtenon.a -lutf8proc -lpng -lz -lm -pthread
 *     build/bin/gpt demo --out demo && ./q8_quality demo/model demo/held-out.txt */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <tenon/tenon.h>

enum { ROWS = 4 };

static char *read_file(const char *path)
{
    FILE *f = fopen(path, "rb");
    char *text = f ? calloc(1, 1 << 22) : NULL;
    if (text && !fread(text, 1, (1 << 22) - 1, f)) text[0] = 0;
    if (f) fclose(f);
    return text;
}

/* The cosine of two rows of logits. */
static double cosine(const float *a, const float *b, int64_t n)
{
    double ab = 0, aa = 0, bb = 0;
    for (int64_t i = 0; i < n; i++)
        ab += (double)a[i] * (double)b[i], aa += (double)a[i] * (double)a[i], bb += (double)b[i] * (double)b[i];
    return ab / sqrt(aa * bb);
}

int main(int n, char **arg)
{
    if (n < 3) return fprintf(stderr, "usage: q8_quality MODEL TEXT [MOST]\n"), 2;
    const int64_t  most = n > 3 ? strtoll(arg[3], NULL, 10) : 20000;
    tn_model       d = tn_model_open(arg[1]), q = tn_model_open(arg[1], .no_tokenizer = true);
    char          *text = read_file(arg[2]);
    tn_token_batch b = {.ids = NULL};
    if (!text) return fprintf(stderr, "%s cannot be read\n", arg[2]), 2;
    tn_tokenizer_batch(d.tokenizer, &b, 1, (const char *[]){text}, .bare = true);
    tn_module_quantize(q.lm);
    const tn_lm_info info = tn_lm_info_of(d.lm);
    const int64_t    width = info.positions < 256 ? info.positions : 256, all = b.ids ? tn_numel(b.ids) : 0;
    double           loss[2] = {0, 0}, least = 1, sum = 0;
    int64_t          windows = 0, places = 0, below = 0;
    for (int64_t at = 0; at + ROWS * width < all && at < most && !tn_error(); at += ROWS * width, windows++) {
        const tn_scope s = tn_no_grad_begin();
        tn_tensor     *ids = tn_reshape(tn_narrow(b.ids, 1, at, ROWS * width), TN_SHAPE(ROWS, width));
        tn_tensor     *y[2] = {tn_lm_forward(d.lm, ids), tn_lm_forward(q.lm, ids)};
        loss[0] += tn_item(tn_lm_loss(d.lm, ids, NULL)), loss[1] += tn_item(tn_lm_loss(q.lm, ids, NULL));
        for (int64_t i = 0; i < ROWS * width && !tn_error(); i++, places++) {
            const double c = cosine((const float *)tn_data(y[0]) + i * info.vocab,
                                    (const float *)tn_data(y[1]) + i * info.vocab, info.vocab);
            least = c < least ? c : least, sum += c, below += c < 0.9999;
        }
        tn_scope_end(s);
    }
    if (tn_error() || !windows) return fprintf(stderr, "%s\n", tn_error() ? tn_error_message() : "too short a text"), 2;
    const double worse = loss[1] / loss[0] - 1, mean = sum / (double)places;
    printf("loss %.6f, in 8 bits %.6f: %+.4f %%; cosine of scores at %lld places: least %.6f, mean %.6f, less than "
           "0.9999 at %lld\n",
           loss[0] / (double)windows, loss[1] / (double)windows, 100 * worse, (long long)places, least, mean,
           (long long)below);
    tn_model_close(&d), tn_model_close(&q);
    free(text);
    return worse > 1e-3 || mean < 0.9999;
}
