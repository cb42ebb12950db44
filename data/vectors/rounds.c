/* rounds.c — what both ways of training go through: a file in rounds; and at the end the vectors. */
#include "core/base/toolbox.h"
#include "data/vectors/train_private.h"

#include <math.h>

void tn__tell(const tn__trainer *t, const tn__run *r, double done)
{
    const tn_vectors_event e = {done, (double)t->rate, r->words, tn__seconds() - r->began, t->words.words.n};
    if (t->a.on) t->a.on(&e, t->a.on_user);
}

enum { TOLD_EVERY = 64 };

/* The rounds of one file in one epoch. False: stopped, or raised. */
bool tn__read_through(tn__trainer *t, tn__run *r, const char *path)
{
    char       label[TN__LABEL];
    tn__source s;
    if (!tn__source_open(&s, tn__label(label, TN__TRAIN, path), path)) return false;
    t->file_end = s.size;
    for (int64_t at = 0, round = 0; at < s.size && tn__self.error == TN_OK; at = t->round_end, round++) {
        /* what GloVe counts it reads once, and tells of its epochs later */
        const double all = (double)r->bytes * (double)t->a.epochs, done = (double)(r->before + at) / all;
        if (t->a.stop && *t->a.stop) break;
        t->rate = (float)(t->a.lr * fmax(1e-4, 1 - done));
        t->round_at = at, t->round_end = tn__min_i64(at + t->shards * TN__SHARD_BYTES, s.size);
        t->text_at = tn__max_i64(0, at - TN__AROUND), t->text_end = tn__min_i64(t->round_end + TN__AROUND, s.size);
        t->text = r->buffer;
        if (!tn__source_read(&s, r->buffer, t->text_at, (size_t)(t->text_end - t->text_at))) break;
        tn_parallel_for(t->shards, 1, t->work, t);
        tn_parallel_for(t->after ? t->shards : 0, 1, t->after, t);
        for (int64_t i = 0; i < t->shards; i++) r->words += t->shard[i].words;
        if (round % TOLD_EVERY == 0) tn__tell(t, r, done);
    }
    r->before += s.size;
    tn__source_close(&s);
    return tn__self.error == TN_OK && !(t->a.stop && *t->a.stop);
}

/* ---- vectors ----------------------------------------------------------------------------------------------------- */

static void copy_rows(float *to, const tn__table *from, int64_t rows, const tn__trainer *t)
{
    for (int64_t i = 0; i < rows; i++) memcpy(to + i * t->a.dim, from->x + i * t->width, (size_t)t->a.dim * sizeof *to);
}

static bool keep_grams(tn_vectors *v, const tn__trainer *t)
{
    v->grams = (tn__subwords){.min_n = (int32_t)t->a.min_n,
                              .max_n = (int32_t)t->a.max_n,
                              .buckets = t->a.buckets,
                              .window = (int32_t)t->a.window,
                              .epochs = (int32_t)tn__min_i64(t->a.epochs, INT32_MAX),
                              .min_count = (int32_t)tn__min_i64(t->a.min_count, INT32_MAX),
                              .negatives = (int32_t)t->a.negatives,
                              .loss = t->tree.node ? 1 : 2,
                              .model = 2,
                              .rate_every = 100,
                              .sample = t->a.sample,
                              .tokens = t->words.total};
    v->grams.in = tn__mem_get((size_t)(t->in.rows * t->a.dim) * sizeof(float));
    v->grams.out = tn__mem_get((size_t)(t->out.rows * t->a.dim) * sizeof(float));
    if (!v->grams.in || !v->grams.out) return false;
    copy_rows(v->grams.in, &t->in, t->in.rows, t), copy_rows(v->grams.out, &t->out, t->out.rows, t);
    tn__vectors_compose(v);
    return true;
}

tn_vectors *tn__trainer_vectors(const tn__trainer *t)
{
    const int64_t n = t->words.words.n;
    tn_vectors   *v = tn__vectors_new(n, t->a.dim);
    for (int64_t i = 0; v && i < n; i++) {
        size_t      bytes;
        const char *word = tn__strings_text(&t->words.words, (uint32_t)i, &bytes);
        if (tn__strings_add(&v->words, word, bytes) < 0) break;
        v->count[i] = t->words.count[i];
    }
    bool done = v && tn__self.error == TN_OK;
    if (done && t->gram) done = keep_grams(v, t);
    else if (done) copy_rows(v->row, &t->in, n, t);
    if (done && tn__vectors_done(v)) return v;
    tn_vectors_free(v);
    return NULL;
}

void tn__trainer_free(tn__trainer *t)
{
    const int64_t n = t->words.words.n;
    for (int64_t i = 0; t->shard && i < t->shards; i++) tn__shard_free(&t->shard[i]);
    tn__mem_put(t->shard, TN__SHARDS * sizeof *t->shard);
    tn__mem_put(t->in.x, (size_t)(t->in.rows * t->width) * sizeof *t->in.x);
    tn__mem_put(t->out.x, (size_t)(t->out.rows * t->width) * sizeof *t->out.x);
    tn__mem_put(t->keep, (size_t)n * sizeof *t->keep), tn__mem_put(t->shift, (size_t)n * sizeof *t->shift);
    tn__mem_put(t->gram, t->gram_start ? (size_t)t->gram_start[n] * sizeof *t->gram : 0);
    tn__mem_put(t->gram_start, (size_t)(n + 1) * sizeof *t->gram_start);
    tn__noise_free(&t->noise), tn__tree_free(&t->tree, n);
    tn__lexicon_free(&t->words);
}
