/* sentences.c — lines of a text as a source of batches: sentences of different lengths, in order, or in an order that
 * depends on the seed and the epoch. */
#include "core/base/toolbox.h"
#include "data/sequences.h"
#include "data/text/data_private.h"

struct tn_sentences {
    tn_ids   ids;           /* of all sentences */
    int64_t *start, *index; /* first token of sentence i, start[count] = ids.n; its line */
    int64_t *order;         /* of this epoch; NULL: in order */
    int64_t  count, room, at, epoch;
    tn_shard shard;

    tn_sentences_config c;
};

/* ---- creating ---------------------------------------------------------------------------------------------------- */

static bool encode(tn_sentences *s, int64_t n, const tn_text *lines, tn_encoder encoder)
{
    for (int64_t i = 0; i < n; i++) {
        const int64_t   before = s->ids.n;
        const tn_status done = encoder.encode(encoder.user, lines[i], &s->ids);
        if (tn_error() == TN_OK && done != TN_OK)
            tn_raise(done, "tn_sentences_new: line %lld: the encoder returned an error", (long long)i + 1);
        if (tn_error() != TN_OK) return false;
        if (s->ids.n == before) continue;
        s->start[s->count] = before, s->index[s->count++] = i;
    }
    s->start[s->count] = s->ids.n;
    return true;
}

static void shuffle(tn_sentences *s)
{
    tn_generator g = {.seed = s->c.seed * 1000003u + (uint64_t)s->epoch};
    for (int64_t i = 0; s->order && i < s->count; i++) s->order[i] = i;
    for (int64_t i = s->count; s->order && i > 1;) {
        const int64_t k = tn_random_below(&g, i--), o = s->order[i];
        s->order[i] = s->order[k], s->order[k] = o;
    }
}

tn_sentences *tn_sentences_create(int64_t n, const tn_text *lines, tn_encoder encoder, tn_sentences_config c)
{
    static const char who[] = "tn_sentences_new";
    if (tn__blocked()) return NULL;
    if (n < 0 || (n && !lines) || !encoder.encode)
        return tn_raise_null(TN_EINVAL, "%s: %s", who,
                             encoder.encode ? "the lines are NULL" : "the encoder is missing");
    if (!tn__within(who, "batch", c.batch, 1, INT32_MAX)) return NULL;
    tn_sentences *s = tn__mem_zeroed(sizeof *s);
    if (!s) return NULL;
    s->c = c, s->room = n + 1;
    const size_t bytes = (size_t)s->room * sizeof *s->start;
    s->start = tn__mem_get(bytes), s->index = tn__mem_get(bytes);
    if (!c.in_order) s->order = tn__mem_get(bytes);
    if (tn_error() == TN_OK && encode(s, n, lines, encoder) && !s->count)
        tn_raise(TN_EINVAL, "%s: none of %lld lines has a token", who, (long long)n);
    if (tn_error() == TN_OK) return shuffle(s), s;
    tn_sentences_free(s);
    return NULL;
}

void tn_sentences_free(tn_sentences *s)
{
    if (!s) return;
    const size_t bytes = (size_t)s->room * sizeof *s->start;
    tn_ids_free(&s->ids);
    tn__mem_put(s->start, bytes), tn__mem_put(s->index, bytes), tn__mem_put(s->order, bytes);
    tn__mem_put(s, sizeof *s);
}

/* ---- batches ----------------------------------------------------------------------------------------------------- */

/* Number of tokens of sentence i; 0 if it does not exist. */
static int64_t length_of(const tn_sentences *s, int64_t i)
{
    return i >= 0 && i < s->count ? s->start[i + 1] - s->start[i] : 0;
}

/* [n, T]: the sentences sentence[…] + by, padded with `pad`; neighbours (by not 0) are ended by .end. */
static tn_tensor *rows(const tn_sentences *s, int64_t n, const int64_t *sentence, int64_t by, int64_t pad)
{
    int64_t width = 1;
    for (int64_t r = 0; sentence && r < n; r++) width = tn__max_i64(width, length_of(s, sentence[r] + by) + (by != 0));
    tn_tensor *t = tn_full_of(TN_I64, TN_SHAPE(n, width), (double)pad);
    int64_t   *to = t ? tn_data_mut(t) : NULL;
    for (int64_t r = 0; to && sentence && r < n; r++, to += width) {
        const int64_t i = sentence[r] + by, length = length_of(s, i);
        for (int64_t k = 0; k < length; k++) to[k] = s->ids.at[s->start[i] + k];
        if (length && by) to[length] = s->c.end;
    }
    return t;
}

/* sentence may be NULL if n is 0. */
static bool fill(const tn_sentences *s, tn_batch *b, int64_t n, const int64_t *sentence)
{
    tn_tensor *lengths = tn_empty_of(TN_I64, TN_SHAPE(n)), *index = tn_empty_of(TN_I64, TN_SHAPE(n));
    int64_t   *length = tn_data_mut(lengths), *line = tn_data_mut(index);
    for (int64_t r = 0; length && line && sentence && r < n; r++) {
        length[r] = length_of(s, sentence[r]), line[r] = s->index[sentence[r]];
        b->items += length[r];
    }
    b->x = rows(s, n, sentence, 0, s->c.pad);
    if (s->c.neighbours) {
        b->y = rows(s, n, sentence, 1, -100);
        tn_batch_put(b, "before", rows(s, n, sentence, -1, -100));
    }
    tn_batch_put(b, "lengths", lengths);
    return tn_batch_put(b, "index", index) == TN_OK;
}

static bool next(void *user, tn_batch *b)
{
    tn_sentences *s = user;
    const int64_t left = s->count - s->at;
    if (left < 1) return s->at = 0, s->epoch++, shuffle(s), false;
    tn_batch_cut(b, s->shard, tn__min_i64(left, s->c.batch));
    const int64_t  from = s->at + b->first;
    const size_t   bytes = (size_t)b->rows * sizeof(int64_t);
    int64_t *const sentence = tn__mem_get(bytes);
    for (int64_t r = 0; sentence && r < b->rows; r++) sentence[r] = s->order ? s->order[from + r] : from + r;
    const bool done = (sentence || !bytes) && fill(s, b, b->rows, sentence);
    tn__mem_put(sentence, bytes);
    if (done && tn_shard_next(&s->shard)) s->at += b->whole;
    return done;
}

static void begin(void *user, const tn_json *at)
{
    tn_sentences *s = user;
    const int64_t from = at ? tn_json_i64(tn_json_need(at, "at")) : 0,
                  epoch = at ? tn_json_i64(tn_json_need(at, "epoch")) : 0;
    if (tn_error() == TN_OK && (from < 0 || from > s->count || epoch < 0))
        tn_raise(TN_EINDEX, "tn_sentences_source: the checkpoint is at sentence %lld of epoch %lld, but there are %lld",
                 (long long)from, (long long)epoch, (long long)s->count);
    if (tn_error() != TN_OK) return;
    s->at = from, s->epoch = epoch, tn_shard_rewind(&s->shard);
    shuffle(s);
}
static void save(void *user, tn_json_writer *w)
{
    tn_json_put_i64(w, "at", ((tn_sentences *)user)->at);
    tn_json_put_i64(w, "epoch", ((tn_sentences *)user)->epoch);
}
static void shard(void *user, tn_shard to) { ((tn_sentences *)user)->shard = to; }

tn_source tn_sentences_source(tn_sentences *s)
{
    return (tn_source){.next = s ? next : NULL,
                       .begin = begin,
                       .save = save,
                       .shard = shard,
                       .user = s,
                       .batches = s ? (s->count - 1) / s->c.batch + 1 : 0};
}
