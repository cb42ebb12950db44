/* checkpoint.c — training checkpoints of word vectors: all state that changes, saved between two rounds.
 *
 * A file is a header, the tables one after the other, and a checksum of both, in this machine's byte order. The header
 * holds the arguments and identifies the texts, so that a training resumes only with the same. Words, their frequencies
 * and GloVe's pairs are not stored: counting them again gives the same result. */
#include "core/base/toolbox.h"
#include "extras/vectors/train_private.h"

enum { ARGUMENTS = 14, TEXTS = 5 };

static const struct {
    const char *name;
    bool        real;
} arguments[ARGUMENTS] = {{"kind", false},      {"loss", false},  {"dim", false},    {"window", false},
                          {"negatives", false}, {"sample", true}, {"epochs", false}, {"min_count", false},
                          {"lr", true},         {"min_n", false}, {"max_n", false},  {"buckets", false},
                          {"x_max", true},      {"seed", false}};

typedef struct {
    uint64_t magic;
    int64_t  arguments[ARGUMENTS]; /* for real numbers their bits */
    int64_t  texts[TEXTS];
    /* the position */
    int64_t  epoch, words, place[TN__SHARDS];
    double   seconds;
    uint64_t sum; /* checksum of the members before it */
} head;

#define MAGIC UINT64_C(0x32706b6374636576) /* "vectckp2", little-endian; version 1 read texts in order */

static uint64_t sum_of(const head *h) { return tn__fnv1a(TN__FNV1A, h, offsetof(head, sum)); }

static int64_t bits_of(double x)
{
    int64_t bits;
    memcpy(&bits, &x, sizeof bits);
    return bits;
}

static double real_of(int64_t bits)
{
    double x;
    memcpy(&x, &bits, sizeof x);
    return x;
}

static void arguments_of(const tn_vectors_train_args *a, int64_t to[ARGUMENTS])
{
    const int64_t all[ARGUMENTS] = {
        (int64_t)a->kind, (int64_t)a->loss, a->dim,   a->window, a->negatives, bits_of(a->sample), a->epochs,
        a->min_count,     bits_of(a->lr),   a->min_n, a->max_n,  a->buckets,   bits_of(a->x_max),  (int64_t)a->seed};
    memcpy(to, all, sizeof all);
}

/* ---- reading ----------------------------------------------------------------------------------------------------- */

static bool same_arguments(const char *label, const head *h, const tn_vectors_train_args *a)
{
    int64_t now[ARGUMENTS];
    arguments_of(a, now);
    for (int i = 0; i < ARGUMENTS; i++) {
        if (h->arguments[i] == now[i]) continue;
        if (arguments[i].real)
            tn_raise(TN_EINVAL, "%s: the training started with .%s %g, not %g; resume with the same", label,
                     arguments[i].name, real_of(h->arguments[i]), real_of(now[i]));
        else
            tn_raise(TN_EINVAL, "%s: the training started with .%s %lld, not %lld; resume with the same", label,
                     arguments[i].name, (long long)h->arguments[i], (long long)now[i]);
        return false;
    }
    return true;
}

static bool damaged(const char *label)
{
    return tn_raise_false(TN_EFORMAT, "%s: damaged, or not a checkpoint of vectors; unset .resume to start again",
                          label);
}

static bool read_head(const tn__source *s, const tn__trainer *t, head *h)
{
    if (s->size < (int64_t)sizeof *h || !tn__source_read(s, h, 0, sizeof *h) || h->magic != MAGIC ||
        h->sum != sum_of(h))
        return tn__self.error == TN_OK && damaged(s->label);
    return same_arguments(s->label, h, &t->a);
}

static bool open_checkpoint(tn__source *s, char label[TN__LABEL], const tn__trainer *t)
{
    return tn__source_open(s, tn__label(label, TN__TRAIN, t->a.checkpoint), t->a.checkpoint);
}

bool tn__checkpoint_check(const tn__trainer *t)
{
    char       label[TN__LABEL];
    tn__source s;
    head       h;
    if (!t->a.resume) return true;
    if (!open_checkpoint(&s, label, t)) return false;
    const bool fine = read_head(&s, t, &h);
    tn__source_close(&s);
    return fine;
}

static void texts_of(const tn__trainer *t, const tn__run *r, int64_t to[TEXTS])
{
    const int64_t all[TEXTS] = {r->files, r->bytes, (int64_t)t->words.sum, t->words.total, t->words.words.n};
    memcpy(to, all, sizeof all);
}

static bool read_tables(const tn__source *s, const head *h, const tn__saved table[TN__SAVED])
{
    uint64_t sum = h->sum, written;
    int64_t  at = sizeof *h, size = at + (int64_t)sizeof sum;
    for (int i = 0; i < TN__SAVED; i++) size += table[i].n * (int64_t)sizeof(float);
    if (s->size != size) return damaged(s->label);
    for (int i = 0; i < TN__SAVED; i++) {
        const size_t bytes = (size_t)table[i].n * sizeof(float);
        if (bytes && !tn__source_read(s, table[i].x, at, bytes)) return false;
        sum = tn__fnv1a_words(sum, table[i].x, bytes), at += (int64_t)bytes;
    }
    if (!tn__source_read(s, &written, at, sizeof written)) return false;
    return written == sum || damaged(s->label);
}

bool tn__checkpoint_load(const tn__trainer *t, tn__run *r, const tn__saved table[TN__SAVED])
{
    char       label[TN__LABEL];
    tn__source s;
    head       h;
    int64_t    texts[TEXTS];
    r->saved = tn__seconds();
    if (!t->a.resume) return true;
    if (!open_checkpoint(&s, label, t)) return false;
    texts_of(t, r, texts);
    bool fine = read_head(&s, t, &h);
    if (fine && memcmp(texts, h.texts, sizeof texts) != 0)
        fine = false, tn_raise(TN_EINVAL, "%s: the training started with other texts; resume with the same", label);
    fine = fine && read_tables(&s, &h, table);
    tn__source_close(&s);
    if (!fine) return false;
    r->epoch = h.epoch, r->words = h.words, r->began = tn__seconds() - h.seconds;
    memcpy(r->place, h.place, sizeof h.place);
    return true;
}

/* ---- writing ----------------------------------------------------------------------------------------------------- */

bool tn__checkpoint_save(const tn__trainer *t, tn__run *r, const tn__saved table[TN__SAVED])
{
    if (!t->a.checkpoint || tn__self.error != TN_OK) return tn__self.error == TN_OK;
    char     label[TN__LABEL];
    tn__sink s;
    head     h = {.magic = MAGIC, .epoch = r->epoch, .words = r->words, .seconds = tn__seconds() - r->began};
    arguments_of(&t->a, h.arguments);
    texts_of(t, r, h.texts);
    memcpy(h.place, r->place, sizeof h.place);
    uint64_t sum;
    int64_t  size = (int64_t)(sizeof h + sizeof sum);
    for (int i = 0; i < TN__SAVED; i++) size += table[i].n * (int64_t)sizeof(float);
    sum = h.sum = sum_of(&h);
    if (!tn__sink_open(&s, tn__label(label, TN__TRAIN, t->a.checkpoint), t->a.checkpoint, size)) return false;
    bool done = tn__sink_write(&s, &h, sizeof h);
    for (int i = 0; done && i < TN__SAVED; i++) {
        const size_t bytes = (size_t)table[i].n * sizeof(float);
        sum = tn__fnv1a_words(sum, table[i].x, bytes);
        done = !bytes || tn__sink_write(&s, table[i].x, bytes);
    }
    done = done && tn__sink_write(&s, &sum, sizeof sum);
    r->saved = tn__seconds();
    return tn__sink_end(&s, done) == TN_OK;
}
