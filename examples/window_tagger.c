/* window_tagger.c — a tagger without attention: a feed-forward network reads a window of words and the tags that it
 * gave to the words before, from left to right. The task is to mark the words between two equal quotation marks;
 * inside a long quotation only the earlier tags tell.
 * Build: cc -O2 window_tagger.c -o window_tagger $(pkg-config --cflags --libs tenon) */
#include <stdio.h>
#include <tenon/tenon.h>

/* Words: 0 is padding, outside of the sentence; 1 is a quotation mark; 2 ... are others. Tags: 0 is padding. */
enum {
    LENGTH = 24,
    SIDE = 2,
    WINDOW = 2 * SIDE + 1,
    BEFORE = 2,
    WORDS = 10,
    OUTSIDE = 1,
    INSIDE = 2,
    TAGS = 3,
    DIM = 8
};

typedef struct {
    tn_module     base;
    tn_embedding *word, *tag; /* tag: NULL if the network does not read tags */
    tn_linear    *hidden, *out;
} tagger;
TN_MODULE(tagger);

static tagger *tagger_new(bool tags)
{
    tagger *m = tn_module_new(tagger);
    if (!m) return NULL;
    m->word = tn_child(m, "word", tn_embedding_new(.count = WORDS, .dim = DIM));
    m->tag = tags ? tn_child(m, "tag", tn_embedding_new(.count = TAGS, .dim = DIM)) : NULL;
    m->hidden = tn_child(m, "hidden", tn_linear_new(.in = DIM * (WINDOW + (tags ? BEFORE : 0)), .out = 32));
    m->out = tn_child(m, "out", tn_linear_new(.in = 32, .out = TAGS));
    return tn_built(m);
}

/* words: [N, WINDOW]; tags: [N, BEFORE]. Returns logits [N, TAGS]. */
static tn_tensor *predict(tagger *m, tn_tensor *words, tn_tensor *tags)
{
    if (!tn_ready(m)) return NULL;
    const tn_frame f = tn_enter(m);
    tn_tensor     *x = tn_reshape(tn_call(m->word, words), TN_SHAPE(-1, WINDOW * DIM));
    if (m->tag) x = tn_cat(1, x, tn_reshape(tn_call(m->tag, tags), TN_SHAPE(-1, BEFORE * DIM)));
    return tn_leave(f, tn_call(m->out, tn_relu(tn_call(m->hidden, x))));
}

static void draw(tn_generator *g, int64_t word[LENGTH], int64_t tag[LENGTH])
{
    const int64_t open = 1 + tn_random_below(g, 6), close = open + 8 + tn_random_below(g, 6);
    for (int64_t i = 0; i < LENGTH; i++) {
        word[i] = i == open || i == close ? 1 : 2 + tn_random_below(g, WORDS - 2);
        tag[i] = i > open && i < close ? INSIDE : OUTSIDE;
    }
}

/* The window around word i, and the tags before it. */
static void features(int64_t i, const int64_t *word, const int64_t *tag, int64_t *to, int64_t *before)
{
    for (int64_t k = 0; k < WINDOW; k++) {
        const int64_t at = i + k - SIDE;
        to[k] = at >= 0 && at < LENGTH ? word[at] : 0;
    }
    for (int64_t k = 0; k < BEFORE; k++) before[k] = i > k ? tag[i - 1 - k] : 0;
}

static void train(tagger *m, tn_generator *g)
{
    tn_optimizer *opt = tn_adam_new(m, .lr = 0.01);
    for (int step = 0; step < 300 && !tn_error(); step++) {
        int64_t word[LENGTH], tag[LENGTH], window[LENGTH][WINDOW], before[LENGTH][BEFORE];
        draw(g, word, tag);
        for (int64_t i = 0; i < LENGTH; i++) features(i, word, tag, window[i], before[i]); /* the true tags */
        const tn_scope s = tn_scope_begin();
        tn_tensor     *y = predict(m, tn_from_data(TN_I64, TN_SHAPE(LENGTH, WINDOW), window),
                                   tn_from_data(TN_I64, TN_SHAPE(LENGTH, BEFORE), before));
        tn_backward(tn_cross_entropy(y, tn_from_data(TN_I64, TN_SHAPE(LENGTH), tag)));
        tn_step(opt);
        tn_scope_end(s);
    }
    tn_optimizer_free(opt);
}

/* The accuracy on new sentences in percent. The tags before a word are the network's own. */
static double measure(tagger *m, tn_generator *g)
{
    enum { SENTENCES = 50 };
    int right = 0;
    for (int n = 0; n < SENTENCES && !tn_error(); n++) {
        int64_t word[LENGTH], tag[LENGTH], given[LENGTH], window[WINDOW], before[BEFORE];
        draw(g, word, tag);
        for (int64_t i = 0; i < LENGTH; i++) {
            const tn_scope s = tn_no_grad_begin();
            features(i, word, given, window, before);
            tn_tensor *y = predict(m, tn_from_data(TN_I64, TN_SHAPE(1, WINDOW), window),
                                   tn_from_data(TN_I64, TN_SHAPE(1, BEFORE), before));
            given[i] = tn_get_i64(tn_argmax(y, 1, false), 0);
            right += given[i] == tag[i];
            tn_scope_end(s);
        }
    }
    return 100.0 * right / (SENTENCES * LENGTH);
}

int main(void)
{
    for (int tags = 0; tags <= 1; tags++) {
        tn_seed(1);
        tn_generator g = {.seed = 1};
        tagger      *m = tagger_new(tags);
        train(m, &g);
        printf("%s  accuracy %.1f %%\n", tags ? "words and earlier tags" : "words only            ", measure(m, &g));
        tn_free(m);
    }
    if (tn_error()) fprintf(stderr, "%s\n", tn_error_message());
    return tn_error() != TN_OK;
}
