/* train.c — training of vectors: checks the arguments, counts the words and sets up the trainer. */
#include "extras/vectors/train_private.h"
#include "core/base/toolbox.h"

#include <math.h>

/* ---- arguments --------------------------------------------------------------------------------------------------- */

enum { MAX_WORDS = 21000000 }; /* while counting, as in word2vec; beyond it the rarest are removed */

static bool in_range(const char *name, double value, double least, double most)
{
    if (value >= least && value <= most) return true;
    return tn_raise_false(TN_EINVAL, TN__TRAIN ": .%s is %g, expected %g to %g", name, value, least, most);
}

static bool check(int n, const char *const *paths, const tn_vectors_train_args *a)
{
    if (n < 1 || !paths) return tn_raise_false(TN_EINVAL, TN__TRAIN ": no texts given");
    if ((int)a->kind < 0 || a->kind > TN_VECTORS_FASTTEXT || (int)a->loss < 0 || a->loss > TN_VECTORS_SOFTMAX)
        return tn_raise_false(TN_EINVAL, TN__TRAIN ": .kind %d with .loss %d does not exist", (int)a->kind,
                              (int)a->loss);
    if (a->kind == TN_VECTORS_GLOVE && a->loss != TN_VECTORS_NEGATIVE)
        return tn_raise_false(TN_EINVAL,
                              TN__TRAIN ": GloVe learns from counts of pairs and takes no other .loss; leave it "
                                        "at TN_VECTORS_NEGATIVE");
    if (a->kind == TN_VECTORS_FASTTEXT && (a->min_n < 1 || a->max_n < a->min_n || a->max_n - a->min_n > 15))
        return tn_raise_false(TN_EINVAL,
                              TN__TRAIN
                              ": .min_n is %lld and .max_n %lld; expected at least 1 character, and at most 16 lengths",
                              (long long)a->min_n, (long long)a->max_n);
    return in_range("dim", (double)a->dim, 1, 16384) && in_range("window", (double)a->window, 1, 255) &&
           in_range("negatives", (double)a->negatives, 1, TN__WORD_PAIRS_OUT - 1) &&
           in_range("sample", a->sample, 0, 1) && in_range("epochs", (double)a->epochs, 1, 1e6) &&
           in_range("min_count", (double)a->min_count, 1, 1e15) && in_range("lr", a->lr, 0, 10) &&
           in_range("buckets", (double)a->buckets, 1, 1e9) && in_range("x_max", a->x_max, 1e-6, 1e15) &&
           (a->checkpoint || !a->resume ||
            tn_raise(TN_EINVAL, TN__TRAIN ": .resume needs .checkpoint; set it") == TN_OK);
}

/* ---- set-up ------------------------------------------------------------------------------------------------------ */

static bool count_words(tn__trainer *t, int n, const char *const *paths)
{
    for (int i = 0; i < n; i++)
        if (!tn__lexicon_read(&t->words, TN__TRAIN, paths[i], MAX_WORDS)) return false;
    if (!tn__lexicon_trim(&t->words, t->a.min_count)) return false;
    if (tn__is_softmax(t) && t->words.words.n > TN__SOFTMAX_MAX)
        return tn_raise_false(TN_EUNSUPPORTED,
                              TN__TRAIN ": softmax over %u words is too slow, at most %d; raise .min_count, or use "
                                        "TN_VECTORS_HIERARCHICAL or TN_VECTORS_NEGATIVE",
                              t->words.words.n, TN__SOFTMAX_MAX);
    if (t->words.words.n >= 2) return true;
    return tn_raise_false(
        TN_EINVAL,
        TN__TRAIN ": %u words occur at least %lld times, expected at least 2 such words; check the text or lower "
                  ".min_count",
        t->words.words.n, (long long)t->a.min_count);
}

static bool sizes(tn__run *r)
{
    if (!(r->start = tn__scope_room(r->files + 1, sizeof *r->start))) return false;
    r->start[0] = 0;
    for (int i = 0; i < r->files; i++) {
        tn__source s;
        char       label[TN__LABEL];
        if (!tn__source_open(&s, tn__label(label, TN__TRAIN, r->path[i]), r->path[i])) return false;
        r->start[i + 1] = r->bytes += s.size;
        tn__source_close(&s);
    }
    return true;
}

/* A word with the fraction f of the text is kept with probability √(s/f) + s/f. */
static bool make_keep(tn__trainer *t)
{
    const int64_t n = t->words.words.n;
    if (!(t->keep = tn__scope_room(n, sizeof *t->keep))) return false;
    for (int64_t i = 0; i < n; i++) {
        const double s = t->a.sample * (double)t->words.total / (double)t->words.count[i], p = sqrt(s) + s;
        t->keep[i] = p >= 1 || t->a.sample == 0 || t->a.kind == TN_VECTORS_GLOVE ? UINT32_MAX : (uint32_t)(p * 0x1p32);
    }
    return true;
}

/* Negatives are drawn in proportion to frequency^¾, for FastText frequency^½. */
static bool make_noise(tn__trainer *t)
{
    if (tn__is_softmax(t)) return true; /* softmax uses all words */
    if (t->a.loss == TN_VECTORS_HIERARCHICAL) return tn__tree_make(&t->tree, t->words.count, t->words.words.n);
    const int64_t n = t->words.words.n;
    const size_t  bytes = (size_t)n * sizeof(double);
    double       *weight = tn__mem_get(bytes), total = 0;
    if (!weight) return false;
    for (int64_t i = 0; i < n; i++)
        total += weight[i] = tn__libm_pow((double)t->words.count[i], t->a.kind == TN_VECTORS_FASTTEXT ? 0.5 : 0.75);
    bool done = tn__noise_make(&t->noise, weight, n);
    if (done && t->a.loss == TN_VECTORS_NCE) {
        done = (t->shift = tn__scope_room(n, sizeof *t->shift)) != NULL;
        for (int64_t i = 0; done && i < n; i++)
            t->shift[i] = (float)tn__libm_log((double)t->a.negatives * weight[i] / total);
    }
    tn__mem_put(weight, bytes);
    return done;
}

/* The rows of each word: its own, and those of its n-grams, stored after the words' rows. */
static bool make_grams(tn__trainer *t)
{
    const int64_t      n = t->words.words.n;
    const tn__subwords g = {.min_n = (int32_t)t->a.min_n, .max_n = (int32_t)t->a.max_n, .buckets = t->a.buckets};
    int64_t            row[4096];
    if (!(t->gram_start = tn__scope_room(n + 1, sizeof *t->gram_start))) return false;
    t->gram_start[0] = 0;
    for (int64_t i = 0; i < n; i++)
        t->gram_start[i + 1] = t->gram_start[i] + 1 + tn__ngrams(tn__strings_at(&t->words.words, i), &g, row, 4095);
    if (!(t->gram = tn__scope_room(t->gram_start[n], sizeof *t->gram))) return false;
    for (int64_t i = 0; i < n; i++) {
        int32_t      *to = t->gram + t->gram_start[i];
        const int64_t rows = tn__ngrams(tn__strings_at(&t->words.words, i), &g, row, 4095);
        *to++ = (int32_t)i;
        for (int64_t k = 0; k < rows; k++) *to++ = (int32_t)(n + row[k]);
    }
    return true;
}

/* Uniform numbers around 0 with a range of 1 / dim, for FastText 2 / dim; 0 beyond the dimension. */
static void fill_rows(int64_t from, int64_t to, void *user)
{
    const tn__trainer *t = user;
    const double       wide = (t->a.kind == TN_VECTORS_FASTTEXT ? 2.0 : 1.0) / (double)t->a.dim;
    for (int64_t i = from; i < to; i++) {
        float *x = t->in.x + i * t->width;
        for (int64_t k = 0; k < t->width; k++) {
            const uint64_t r = tn__splitmix(tn__splitmix(t->a.seed) + (uint64_t)(i * t->a.dim + k));
            x[k] = k < t->a.dim ? (float)(((double)(r >> 40) * 0x1p-24 - 0.5) * wide) : 0.0f;
        }
    }
}

/* Number of shards of a round. All shards change the rows of frequent words independently, and the changes are added:
 * with too many words in a round the sum overshoots the minimum that each change approaches, and training diverges. The
 * relevant quantity is the pull of the others on one row: the pairs in their chunks, times the most frequent word's
 * share of the text and of the negatives, times the learning rate. Training on 4.7 million words of English (pull 33
 * with default arguments) is as good with twice that pull, and diverges with four times. In addition there must be many
 * more different words than a chunk has. A power of two, as most thread counts are: with five shards, the second of two
 * threads would wait for a sixth of its time. */
static int64_t shards_for(const tn__trainer *t, int64_t bytes)
{
    const double  most_pull = 45;
    const int64_t n = t->words.words.n;
    double        kept = 0, top = 0, noise = 0;
    for (int64_t i = 0; i < n; i++) {
        const double is = (double)t->words.count[i] * (double)t->keep[i] / (double)UINT32_MAX;
        kept += is, top = fmax(top, is), noise += tn__libm_pow((double)t->words.count[i], 0.75);
    }
    const double  negative = tn__is_softmax(t)
                                 ? top / kept /* in the long run pushed away as often as it occurs */
                                 : tn__libm_pow((double)t->words.count[0], 0.75) / noise * (double)t->a.negatives;
    const double  pairs = t->a.kind == TN_VECTORS_CBOW ? 1 : (double)t->a.window + 1;
    const double  pull = kept / (double)bytes * TN__SHARD_BYTES * pairs * (top / kept + negative) * t->a.lr;
    const int64_t most = tn__min_i64(n / TN__WORDS_PER_SHARD, 1 + (int64_t)fmin(100, most_pull / pull));

    int64_t shards = TN__SHARDS;
    while (shards > 1 && shards > most) shards /= 2;
    return shards;
}

static bool set_up(tn__trainer *t, int64_t bytes)
{
    const int64_t n = t->words.words.n;
    const bool    grams = t->a.kind == TN_VECTORS_FASTTEXT;
    t->width = (t->a.dim + TN__WORD_PAIRS_WIDTH - 1) / TN__WORD_PAIRS_WIDTH * TN__WORD_PAIRS_WIDTH;
    t->pool = grams ? TN__POOL_FASTTEXT : t->a.kind == TN_VECTORS_CBOW ? TN__POOL_CBOW : TN__POOL;
    t->learn = grams ? tn__learn_fasttext : t->a.kind == TN_VECTORS_CBOW ? tn__learn_cbow : tn__learn_skipgram;
    if (!make_keep(t) || !make_noise(t) || (grams && !make_grams(t)) ||
        !tn__table_make(&t->in, n + (grams ? t->a.buckets : 0), t->width, false) ||
        !tn__table_make(&t->out, n, t->width, true))
        return false;
    tn_parallel_for(t->in.rows, 1 << 12, fill_rows, t);
    t->shards = t->a.kind == TN_VECTORS_GLOVE ? TN__SHARDS : shards_for(t, bytes);
    for (int64_t i = 0; i < t->shards; i++)
        if (!tn__shard_begin(&t->shard[i], t)) return false;
    return tn__self.error == TN_OK;
}

tn_vectors *tn_vectors_train_run(int n, const char *const *paths, tn_vectors_train_args args)
{
    if (tn__blocked() || !check(n, paths, &args)) return NULL;
    if (args.lr == 0) args.lr = args.kind == TN_VECTORS_SKIPGRAM ? 0.025 : 0.05;
    tn__shard      shard[TN__SHARDS] = {{0}};
    tn__trainer    t = {.a = args, .kernels = tn__kernels()->word_pairs, .shard = shard};
    tn__run        r = {.files = n, .path = paths, .asked = tn__seconds()};
    tn_vectors    *v = NULL;
    const tn_scope s = tn_scope_begin();
    if (tn__checkpoint_open(&t, &r) && count_words(&t, n, paths) && sizes(&r) && set_up(&t, r.bytes)) {
        r.began = tn__seconds();
        if (args.kind == TN_VECTORS_GLOVE) v = tn__glove_train(&t, &r);
        else if (tn__rounds(&t, &r)) v = tn__trainer_vectors(&t);
    }
    tn_checkpoint_close(r.file);
    tn_drop(t.in.t), tn_drop(t.out.t);
    tn__lexicon_free(&t.words);
    tn_scope_end(s);
    return v;
}
