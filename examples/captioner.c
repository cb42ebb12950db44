/* captioner.c — describes images in words: a convolution makes patches, a decoder attends to them (cross-attention),
 * and tn_generate writes the captions by beam search. The program makes the images: a shape in a corner, and noise.
 * Build: cc -O2 captioner.c -o captioner $(pkg-config --cflags --libs tenon) */
#include <stdio.h>
#include <tenon/tenon.h>

enum { SIDE = 16, PATCH = 4, PATCHES = (SIDE / PATCH) * (SIDE / PATCH), DIM = 32, LENGTH = 6, BEAMS = 3 };
enum { END, A, BIG, SMALL, SHAPES, PLACES = SHAPES + 3, WORDS = PLACES + 4 }; /* END is also the first token */
static const char *const word[WORDS] = {".",     "a",        "big",       "small",       "square",      "cross",
                                        "frame", "top left", "top right", "bottom left", "bottom right"};

typedef struct {
    tn_tensor *image;   /* f32 [N, 1, SIDE, SIDE] */
    tn_tensor *caption; /* i64 [N, LENGTH]: END "a" size shape place END */
} examples;

enum { MOST = 200 };
static examples draw(int64_t n)
{
    float   pixel[MOST][SIDE][SIDE] = {0};
    int64_t caption[MOST][LENGTH] = {{0}};
    for (int64_t i = 0; i < n; i++) {
        const int64_t small = tn_random_below(NULL, 2), shape = tn_random_below(NULL, 3),
                      place = tn_random_below(NULL, 4);
        const int64_t side = small ? 5 : 8, top = place / 2 * 8, left = place % 2 * 8;
        for (int64_t y = 0; y < side; y++)
            for (int64_t x = 0; x < side; x++) {
                const bool cross = x == side / 2 || y == side / 2, frame = !x || !y || x == side - 1 || y == side - 1;
                pixel[i][top + y][left + x] = shape == 0 || (shape == 1 ? cross : frame);
            }
        const int64_t text[LENGTH] = {END, A, small ? SMALL : BIG, SHAPES + shape, PLACES + place, END};
        for (int t = 0; t < LENGTH; t++) caption[i][t] = text[t];
    }
    tn_tensor *x = tn_from_data(TN_F32, TN_SHAPE(n, 1, SIDE, SIDE), pixel);
    return (examples){tn_add(x, tn_normal(TN_SHAPE(n, 1, SIDE, SIDE), 0, 0.3)),
                      tn_from_data(TN_I64, TN_SHAPE(n, LENGTH), caption)};
}

/* ---- the model --------------------------------------------------------------------------------------------------- */

typedef struct {
    tn_module     base;
    tn_conv2d    *patches;
    tn_embedding *words, *positions;
    tn_tensor    *places; /* [PATCHES, DIM] */
    tn_blocks    *decoder;
    tn_linear    *out;
    tn_tensor    *memory; /* of the images to describe, for `step` */
} captioner;

/* Images to vectors of their patches, [N, PATCHES, DIM]: the memory of the decoder. */
static tn_tensor *captioner_forward(captioner *m, tn_tensor *image)
{
    tn_tensor *x = tn_flatten(tn_call(m->patches, image), 2, 3); /* [N, DIM, PATCHES] */
    return tn_add(tn_transpose(x, 1, 2), m->places);
}
TN_FORWARD(captioner);

static captioner *captioner_new(void)
{
    captioner *m = tn_module_new(captioner);
    if (!m) return NULL;
    m->patches = tn_child(m, "patches", tn_conv2d_new(.in = 1, .out = DIM, .size = PATCH, .stride = PATCH));
    m->places = tn_param(m, "places", tn_normal(TN_SHAPE(PATCHES, DIM), 0, 0.1));
    m->words = tn_child(m, "words", tn_embedding_new(.count = WORDS, .dim = DIM));
    m->positions = tn_child(m, "positions", tn_embedding_new(.count = LENGTH, .dim = DIM));
    m->decoder = tn_child(m, "decoder",
                          tn_transformer_decoder_new(.layers = 2, .dim = DIM, .heads = 4, .ff = 2 * DIM, .dropout = 0,
                                                     .order = TN_NORM_FIRST, .final_norm = true));
    m->out = tn_child(m, "out", tn_linear_new(.in = DIM, .out = WORDS));
    return tn_built(m);
}

/* Logits of the next words. With a cache, ids follow its positions, and only the first call needs the memory. */
static tn_tensor *run(captioner *m, tn_tensor *ids, tn_tensor *memory, tn_kv_cache *cache)
{
    tn_tensor *place = tn_embedding_rows(m->positions, cache ? tn_kv_cache_length(cache) : 0, tn_size(ids, 1));
    tn_tensor *x = tn_add(tn_call(m->words, ids), place);
    return tn_call(m->out, tn_blocks_forward(m->decoder, x, .memory = memory, .causal = true, .cache = cache));
}

/* What tn_generate needs: the logits of the word after ids, [rows, 1, WORDS]. */
static tn_tensor *step(void *model, tn_tensor *ids, tn_kv_cache *cache)
{
    captioner *m = model;
    tn_tensor *y = run(m, ids, tn_kv_cache_length(cache) ? NULL : m->memory, cache);
    return tn_narrow(y, 1, tn_size(ids, 1) - 1, 1);
}

/* ---- training and use -------------------------------------------------------------------------------------------- */

int main(void)
{
    enum { TRAIN = 64, TEST = MOST };
    tn_seed(1);
    captioner    *m = captioner_new();
    tn_optimizer *opt = tn_adamw_new(m, .lr = 3e-3);
    for (int i = 0; i <= 400 && !tn_error(); i++) {
        const tn_scope s = tn_scope_begin();
        const examples e = draw(TRAIN);
        tn_tensor     *y = run(m, tn_narrow(e.caption, 1, 0, LENGTH - 1), tn_call(m, e.image), NULL);
        tn_tensor     *loss =
            tn_cross_entropy(tn_flatten(y, 0, 1), tn_flatten(tn_narrow(e.caption, 1, 1, LENGTH - 1), 0, 1));
        if (i % 100 == 0) printf("step %3d  loss %.3f\n", i, tn_item(loss));
        tn_backward(loss), tn_step(opt);
        tn_scope_end(s);
    }

    tn_eval(m);
    const tn_scope s = tn_no_grad_begin();
    const examples e = draw(TEST);
    m->memory = tn_call(m, e.image);
    tn_kv_cache *cache = tn_blocks_cache(m->decoder, TEST * BEAMS, LENGTH, PATCHES);
    tn_decoding *d = tn_cached_decoding(m, step, cache, TEST * BEAMS, LENGTH);
    tn_generated g = tn_generate(d, tn_narrow(e.caption, 1, 0, 1), .end = END, .beams = BEAMS, .most = LENGTH - 1);
    int          right = 0;
    for (int64_t i = 0; i < TEST && !tn_error(); i++) {
        bool          same = tn_get_i64(g.lengths, i) == LENGTH - 2;
        const int64_t width = tn_size(g.tokens, 2);
        for (int t = 0; t < LENGTH - 2; t++)
            same = same && tn_get_i64(g.tokens, i * width + t) == tn_get_i64(e.caption, i * LENGTH + 1 + t);
        right += same;
        for (int64_t t = 0; i < 3 && t < tn_get_i64(g.lengths, i); t++)
            printf("%s ", word[tn_get_i64(g.tokens, i * width + t)]);
        if (i < 3) printf("%s\n", same ? "" : "(wrong)");
    }
    printf("%d of %d captions are right\n", right, TEST);
    if (tn_error()) fprintf(stderr, "%s\n", tn_error_message());
    tn_decoding_free(d), tn_scope_end(s), tn_optimizer_free(opt), tn_free(m);
    return tn_error() != TN_OK;
}
