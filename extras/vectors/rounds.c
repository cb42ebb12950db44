/* rounds.c — shared by both kinds of training: reading the texts in rounds, and the final vectors. */
#include "core/base/toolbox.h"
#include "extras/vectors/train_private.h"

#include <math.h>

void tn__notify(const tn__trainer *t, const tn__run *r, double done)
{
    const tn_vectors_event e = {.done = done,
                                .rate = (double)t->rate,
                                .words = r->words,
                                .counting = r->began - r->asked,
                                .seconds = tn__seconds() - r->began,
                                .different = t->words.words.n};
    if (t->a.on) t->a.on(&e, t->a.on_user);
}

enum { PROGRESS_EVERY = 64 };

/* Next position of a shard that has read `read` bytes of its part. Steps of the golden ratio soon visit all regions of
 * the part, repeatedly; the remainder smaller than a chunk comes last. */
static int64_t place_of(const tn__shard *s, int64_t read)
{
    const int64_t piece = read / TN__SHARD_BYTES, pieces = s->bytes / TN__SHARD_BYTES;
    const int64_t at = piece < pieces ? (s->first_piece + piece * s->step) % pieces : piece;
    return s->part + at * TN__SHARD_BYTES + read % TN__SHARD_BYTES;
}

enum { PREFETCHED = 64 }; /* chunks: read-ahead distance */

/* Tells the system what will be read: it cannot predict this order, and a text larger than the memory would take 1.5
 * times as long. */
static void prefetch(const tn__shard *s, const tn__run *r)
{
    const int64_t read = s->read + (int64_t)PREFETCHED * TN__SHARD_BYTES;
    const int64_t at = read < s->bytes ? place_of(s, read) - r->start[s->file] : -1;
    if (at >= 0 && at < s->file_end)
        tn__source_prefetch(&s->source, tn__max_i64(0, at - TN__CONTEXT), TN__SHARD_BYTES + 2 * TN__CONTEXT);
}

/* The step through `pieces` chunks; coprime to their number, so that it visits each once. */
static int64_t golden_step(int64_t pieces)
{
    if (pieces > INT32_MAX) return 1; /* avoids overflow of a product */
    for (int64_t step = (int64_t)((double)pieces * 0.6180339887498949);; step++) {
        int64_t divisor = step, other = pieces;
        while (other) {
            const int64_t rest = divisor % other;
            divisor = other, other = rest;
        }
        if (divisor <= 1) return step;
    }
}

/* Reads the next chunk of a shard, or the rest of it after a file's end. False: raised. */
static bool next_piece(tn__shard *s, const tn__run *r, int64_t epoch)
{
    int file = 0;
    s->from = s->to = 0;
    if (s->read >= s->bytes) return true;
    const int64_t place = place_of(s, s->read), left = TN__SHARD_BYTES - s->read % TN__SHARD_BYTES;
    while (r->start[file + 1] <= place) file++;
    if (file != s->file) {
        if (s->file >= 0) tn__source_close(&s->source);
        s->file = -1;
        if (!tn__source_open(&s->source, tn__label(s->label, TN__TRAIN, r->path[file]), r->path[file])) return false;
        s->file = file;
        s->key = tn__splitmix(s->t->a.seed + tn__splitmix((uint64_t)epoch * 0x10001 + (uint64_t)file + 1));
    }
    s->file_end = r->start[file + 1] - r->start[file], s->from = place - r->start[file];
    s->to = tn__min_i64(s->from + tn__min_i64(left, s->bytes - s->read), s->file_end);
    s->read += s->to - s->from;
    prefetch(s, r);
    s->text_at = tn__max_i64(0, s->from - TN__CONTEXT), s->text_end = tn__min_i64(s->to + TN__CONTEXT, s->file_end);
    return tn__source_read(&s->source, s->text, s->text_at, (size_t)(s->text_end - s->text_at));
}

/* Divides the texts into equal parts, one per shard; returns the bytes already read before a resume. */
static int64_t divide_texts(tn__trainer *t, tn__run *r)
{
    const int64_t part = tn__max_i64(TN__SHARD_BYTES, (r->bytes + t->shards - 1) / t->shards);
    int64_t       before = 0;
    for (int64_t i = 0; i < t->shards; i++) {
        tn__shard *s = &t->shard[i];
        s->part = tn__min_i64(i * part, r->bytes), s->bytes = tn__min_i64(part, r->bytes - s->part);
        const int64_t pieces = s->bytes / TN__SHARD_BYTES;
        s->step = golden_step(pieces);
        s->first_piece = pieces ? (int64_t)(tn__splitmix(t->a.seed + (uint64_t)i) % (uint64_t)pieces) : 0;
        s->read = t->pairs ? 0 : tn__max_i64(0, tn__min_i64(r->place[i], s->bytes));
        before += s->read;
    }
    return before;
}

/* Saves a checkpoint between two rounds of an epoch. */
static bool save(tn__trainer *t, tn__run *r)
{
    for (int64_t i = 0; i < t->shards; i++) r->place[i] = t->shard[i].read;
    return tn__checkpoint_save(t, r, 2, (tn__saved[]){{"in", &t->in}, {"out", &t->out}});
}

enum { SAVED_EVERY = 600 }; /* seconds */

/* False: stopped, after saving, or raised. */
static bool may_continue(tn__trainer *t, tn__run *r)
{
    const bool stop = t->a.stop && *t->a.stop;
    const bool due = stop || (t->a.checkpoint && tn__seconds() - r->saved > SAVED_EVERY);
    return (!due || t->pairs || save(t, r)) && !stop; /* GloVe counts again after a resume */
}

bool tn__read_through(tn__trainer *t, tn__run *r)
{
    bool on = true;
    for (int64_t at = divide_texts(t, r), round = 0; on && at < r->bytes && tn__self.error == TN_OK; round++) {
        /* GloVe reads the texts once to count and reports its epochs later */
        const double done = (double)(r->before + at) / ((double)r->bytes * (double)t->a.epochs);
        if (!(on = may_continue(t, r))) break;
        t->rate = (float)(t->a.lr * fmax(1e-4, 1 - done));
        for (int64_t i = 0; on && i < t->shards; i++) on = next_piece(&t->shard[i], r, r->epoch);
        if (!on) break;
        tn_parallel_for(t->shards, 1, t->work, t);
        tn_parallel_for(t->after ? t->shards : 0, 1, t->after, t);
        for (int64_t i = 0; i < t->shards; i++) r->words += t->shard[i].words, at += t->shard[i].to - t->shard[i].from;
        if (round % PROGRESS_EVERY == 0) tn__notify(t, r, done);
    }
    r->before += r->bytes;
    for (int64_t i = 0; i < t->shards; i++) {
        if (t->shard[i].file >= 0) tn__source_close(&t->shard[i].source);
        t->shard[i].file = -1;
    }
    return on && tn__self.error == TN_OK;
}

static void run_shards(int64_t from, int64_t to, void *user)
{
    tn__trainer *t = user;
    for (int64_t i = from; i < to; i++) tn__shard_run(&t->shard[i]);
}
static void merge_shards(int64_t from, int64_t to, void *user)
{
    tn__trainer *t = user;
    for (int64_t i = from; i < to; i++) tn__shard_merge(t, i);
}

bool tn__rounds(tn__trainer *t, tn__run *r)
{
    const tn__saved tables[] = {{"in", &t->in}, {"out", &t->out}};
    bool            on = tn__checkpoint_load(t, r, 2, tables);
    t->work = run_shards, t->after = merge_shards;
    for (r->before = r->epoch * r->bytes; on && r->epoch < t->a.epochs;) {
        on = tn__read_through(t, r);
        if (!on) break;
        r->epoch++;
        memset(r->place, 0, sizeof r->place);
        on = tn__checkpoint_save(t, r, 2, tables);
        if (on) tn__notify(t, r, (double)r->epoch / (double)t->a.epochs);
    }
    on = on && !(t->a.stop && *t->a.stop);
    if (on) tn__notify(t, r, 1);
    return on;
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
                              .loss = tn__is_softmax(t) ? 3
                                      : t->tree.node    ? 1
                                                        : 2,
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
    if (done && tn__vectors_finish(v)) return v;
    tn_vectors_free(v);
    return NULL;
}
