/* export_replay.c — replays the inputs of export_records.c in an exported model, and compares the hashes of the
 * results. For gcc, linked with the model as any compiler has made it.
 *
 *     export_replay RECORDS */
#include "export_record.h"

#include <stdio.h>

/* Those that a model lacks are NULL. Two have another type in some models, and a second name here. */
#define WEAK __attribute__((weak))
WEAK int          model_encode(const char *text, int bytes, int *id);
WEAK int          model_decode(const int *id, int n, char *to);
WEAK void         model_forget(void);
WEAK void         model_read(int token);
WEAK const float *model_logits(void);
WEAK const float *model_run(const int *id, int n);
WEAK void         translator_run(const int *id, int n) __asm__("model_run");
WEAK const float *model_fill(int t);
WEAK const float *model_tag(int n);
WEAK const float *model_classify(void);
WEAK const float *image_classify(const unsigned char *pixels) __asm__("model_classify");
WEAK const float *model_probabilities(void);

static int           item[ITEMS], id[16 * ITEMS];
static char          text[16 * ITEMS];
static unsigned char pixel[ITEMS];

static uint64_t encode(const struct record *r)
{
    for (int i = 0; i < r->n; i++) text[i] = (char)item[i];
    const int n = model_encode(text, r->n, id);
    uint64_t  h = hash_word(HASH_START, (uint32_t)n);
    for (int i = 0; i < n; i++) h = hash_word(h, (uint32_t)id[i]);
    return h;
}

static uint64_t read_tokens(const struct record *r)
{
    uint64_t h = HASH_START;
    if (model_forget) model_forget();
    for (int i = 0; i < r->n; i++) model_read(item[i]), h = hash_rows(h, model_logits(), 1, r->width, r->width);
    return h;
}

static const float *see(const struct record *r)
{
    for (int i = 0; i < r->n; i++) pixel[i] = (unsigned char)item[i];
    return image_classify(pixel);
}

/* The hash of a call's results. */
static uint64_t replay(const struct record *r)
{
    const int wide = (r->width + 15) / 16 * 16;
    switch (r->call) {
    case ENCODE: return encode(r);
    case DECODE: return hash_bytes(HASH_START, text, model_decode(item, r->n, text));
    case READ: return read_tokens(r);
    case LISTEN: return translator_run(item, r->n), HASH_START;
    case RUN: return hash_rows(HASH_START, model_run(item, r->n), r->n, r->width, wide);
    case FILL: return hash_rows(HASH_START, model_fill(r->last), 1, r->width, wide);
    case TAG: return hash_rows(HASH_START, model_tag(r->last), r->last, r->width, wide);
    case CLASSIFY: return hash_rows(HASH_START, model_classify(), 1, r->width, wide);
    case SEE: return hash_rows(HASH_START, see(r), 1, r->width, wide);
    case LIKELY: return hash_rows(HASH_START, model_probabilities(), 1, r->width, wide);
    default: return 0;
    }
}

int main(int argc, char **argv)
{
    static const char *const what[] = {"token ids",     "texts",  "logits", "",       "hidden states",
                                       "probabilities", "scores", "scores", "scores", "probabilities"};
    FILE                    *f = argc == 2 ? fopen(argv[1], "rb") : NULL;
    struct record            r = {.input = -1};
    if (!f) return fprintf(stderr, "usage: export_replay RECORDS\n"), 2;
    while (fread(&r, sizeof r, 1, f) == 1) {
        if (r.n > ITEMS || fread(item, sizeof *item, (size_t)r.n, f) != (size_t)r.n) return 2;
        if (replay(&r) != r.hash) return printf("input %d: other %s\n", (int)r.input, what[r.call]), 1;
    }
    printf("%d inputs have equal bits\n", (int)r.input + 1);
    return 0;
}
