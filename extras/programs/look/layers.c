/* layers.c — the vectors of words, or of their tokens, in each layer of a model. */
#include "programs/common/checksum.h"
#include "probe.h"

#include <stdlib.h>
#include <string.h>

uint64_t spelling_hash(tn_text word, int64_t seed)
{
    const uint64_t h = checksum(CHECKSUM ^ (uint64_t)seed, word.at, word.bytes);
    return h ^ h >> 29;
}

/* Returns true if the module's output is the input of the first layer. */
static bool is_first(const model *m, const char *path)
{
    const char *words = strstr(path, "bert.embeddings.dropout");
    if (m->encoder) return words && !words[strlen("bert.embeddings.dropout")];
    return !strcmp(path, "transformer.drop") || !strcmp(path, "dropout"); /* GPT-2, LLaMA */
}

/* Collects the paths of the modules whose output is the input of the first layer or the output of a layer. */
static void layers_of(const model *m, layer_vectors *to)
{
    for (tn_each e = tn_modules(m->net); m->kind != TRANSLATOR && tn_next(&e) && to->layers < MAX_LAYERS;) {
        const char *last = strrchr(e.name, '.');
        const bool  layer =
            last && strstr(e.name, ".layers.") == last - strlen(".layers") && last[1] >= '0' && last[1] <= '9';
        if (layer || is_first(m, e.name)) snprintf(to->path[to->layers++], TN_PATH_BYTES, "%s", e.name);
    }
    if (to->layers < 2) tn_raise(TN_EUNSUPPORTED, "probe supports models like BERT, GPT-2 and LLaMA only");
}

/* A matrix [tokens of words, tokens] that selects the tokens that belong to words. */
static tn_tensor *word_tokens(const encoded_sentence *x, int64_t n)
{
    tn_tensor *a = tn_zeros(TN_SHAPE(n, x->p.n));
    for (int64_t p = 0, k = 0; p < x->p.n; p++)
        if (x->word_of[p] >= 0) tn_set(a, k++ * x->p.n + p, 1);
    return a;
}

/* Adds the words of a sentence, and the first token of each. */
static void add_words(layer_vectors *to, const trees *t, int64_t i, const encoded_sentence *x)
{
    int64_t p = 0, tokens = to->token[to->words];
    to->which[to->sentences++] = i;
    for (int64_t k = 0; k < t->sentence[i].n; k++) {
        to->token[to->words++] = tokens;
        while (p < x->p.n && x->word_of[p] < k) p++;
        for (; p < x->p.n && x->word_of[p] == k; p++) tokens++;
    }
    to->row[to->sentences] = to->words;
    to->token[to->words] = tokens;
}

/* Runs the model on sentence i, and writes a tensor of each layer to row[layer * stride]. */
static bool add_sentence(const model *m, const trees *t, int64_t i, bool tokens, tn_look *look, layer_vectors *to,
                         tn_tensor **row, int64_t stride)
{
    encoded_sentence x;
    const int64_t    n = t->sentence[i].n, before = to->token[to->words];
    if (!sentence_encode(m, t, i, &x)) return sentence_free(&x), false; /* does not fit into the model */
    tn_look_clear(look);
    const tn_scope in = tn_look_begin(look);
    run_model(m, x.p.ids, NULL);
    tn_scope_end(in);
    add_words(to, t, i, &x);
    tn_tensor *pool = tokens ? word_tokens(&x, to->token[to->words] - before) : word_means(&x, n);
    for (int64_t l = 0; l < to->layers && tn_error() == TN_OK && runs_once(look, to->path[l]); l++)
        row[l * stride] = tn_matmul(pool, tn_select(tn_look_at(look, to->path[l]), 0, 0));
    sentence_free(&x);
    return true;
}

bool layer_vectors_open(const model *m, const trees *t, bool tokens, layer_vectors *to)
{
    const tn_scope outer = tn_no_grad_begin();
    const size_t   n = (size_t)t->sentences;
    tn_look       *look = tn_look_new();
    tn_tensor    **row = calloc(n * MAX_LAYERS, sizeof *row), *out[MAX_LAYERS];
    int64_t       *index = calloc(2 * n + (size_t)t->nodes + 2, sizeof *index), rows = 0;
    *to = (layer_vectors){.which = index, .row = index ? index + n : NULL, .token = index ? index + 2 * n + 1 : NULL};
    if (!row || !index) tn_raise(TN_ENOMEM, "no memory for the vectors of %zu sentences", n);
    layers_of(m, to);
    for (int64_t l = 0; l < to->layers; l++) tn_look_request(look, to->path[l]);
    for (int64_t i = 0; i < t->sentences && tn_error() == TN_OK; i++) {
        const tn_scope s = tn_scope_begin();
        tn_tensor     *each[MAX_LAYERS] = {NULL};
        const bool     added = add_sentence(m, t, i, tokens, look, to, each, 1);
        tn_scope_return_list(s, added && tn_error() == TN_OK ? (int)to->layers : 0, each);
        for (int64_t l = 0; row && added && l < to->layers; l++) row[l * t->sentences + rows] = each[l];
        rows += added;
    }
    if (!rows && tn_error() == TN_OK) tn_raise(TN_EINVAL, "no sentence fits into the model");
    for (int64_t l = 0; l < to->layers && tn_error() == TN_OK; l++)
        out[l] = to->x[l] = tn_cat_list(0, (int)rows, row + l * t->sentences);
    tn_scope_return_list(outer, tn_error() == TN_OK ? (int)to->layers : 0, out);
    for (int64_t l = 0; l < to->layers && tn_error() == TN_OK; l++)
        numbers_finite(tn_item(tn_sum(to->x[l])), "the output of a layer");
    free(row);
    tn_look_free(look);
    return tn_error() == TN_OK;
}

void layer_vectors_close(layer_vectors *v)
{
    free(v->which);
    *v = (layer_vectors){.layers = 0};
}
