/* test_vectors_softmax.c — word vectors trained by softmax over all words: gradients and a whole training compared with
 * the formulas in f64; the same bits for any number of threads, interrupted or not; and rejected arguments. */
#include "tests/common/check_main.h"

#include "extras.h"
#include "extras/vectors/vectors_private.h"

enum { WIDTH = 32, WORDS = 150 /* three blocks of the kernel, the last not full */ };

static float even(uint64_t *state) { return (float)((double)(tn__splitmix((*state)++) >> 40) * 0x1p-24 - 0.5); }

/* Σ over the rows of -log p(word | row) */
static double loss_of(int ins, const double (*x)[WIDTH], const double (*o)[WIDTH], int word)
{
    double loss = 0;
    for (int i = 0; i < ins; i++) {
        double sum = 0, of_word = 0;
        for (int j = 0; j < WORDS; j++) {
            double f = 0;
            for (int k = 0; k < WIDTH; k++) f += x[i][k] * o[j][k];
            sum += exp(f);
            if (j == word) of_word = f;
        }
        loss += log(sum) - of_word;
    }
    return loss;
}

static double slope_of(double *at, int ins, const double (*x)[WIDTH], const double (*o)[WIDTH], int word)
{
    const double keep = *at, step = 1e-5;
    *at = keep + step;
    const double up = loss_of(ins, x, o, word);
    *at = keep - step;
    const double down = loss_of(ins, x, o, word);
    *at = keep;
    return (up - down) / (2 * step);
}

TEST_EACH(a_step_goes_down_the_gradient, 3)
{
    static const int ins[] = {1, 3, TN__WORD_PAIRS_IN}, word[] = {0, WORDS - 1, 70};
    static double    x[TN__WORD_PAIRS_IN][WIDTH], o[WORDS][WIDTH];
    uint64_t         state = 1;
    tn__trainer      t = {.kernels = tn__kernels()->word_pairs, .width = WIDTH, .rate = 0.25f, .out.rows = WORDS};
    static float     in[TN__WORD_PAIRS_IN][WIDTH], out[WORDS][WIDTH], room[TN__WORD_PAIRS_IN * (WORDS + WIDTH)];
    tn__shard        s = {.t = &t, .out.x = *out, .logit = room};
    float           *rows[TN__WORD_PAIRS_IN];
    for (int i = 0; i < TN__WORD_PAIRS_IN; i++) rows[i] = in[i];
    for (int k = 0; k < WIDTH; k++) {
        for (int i = 0; i < TN__WORD_PAIRS_IN; i++) x[i][k] = (double)(in[i][k] = 2 * even(&state));
        for (int j = 0; j < WORDS; j++) o[j][k] = (double)(out[j][k] = 2 * even(&state));
    }
    tn__learn_softmax(&s, word[_i], ins[_i], rows);
    for (int k = 0; k < WIDTH; k += 5) {
        for (int i = 0; i < TN__WORD_PAIRS_IN; i++) {
            const double g =
                slope_of(&x[i][k], ins[_i], (const double(*)[WIDTH])x, (const double(*)[WIDTH])o, word[_i]);
            ck_assert_double_eq_tol((double)in[i][k] - x[i][k], -0.25 * g, 1e-6);
        }
        for (int j = 0; j < WORDS; j += j < word[_i] && j + 8 > word[_i] ? word[_i] - j : 8) { /* the target too */
            const double g =
                slope_of(&o[j][k], ins[_i], (const double(*)[WIDTH])x, (const double(*)[WIDTH])o, word[_i]);
            ck_assert_double_eq_tol((double)out[j][k] - o[j][k], -0.25 * g, 1e-6);
        }
    }
}

/* ---- a whole training -------------------------------------------------------------------------------------------- */

enum { DIM = 6, SAID = 9 };

/* Skip-gram with one word on each side, word after word, from the initial rows of the training. */
static void by_hand(const int *said, int words, double rate, uint64_t seed, double (*x)[DIM])
{
    static double o[SAID][DIM];
    memset(o, 0, sizeof o);
    for (int i = 0; i < words * DIM; i++)
        x[i / DIM][i % DIM] = ((double)(tn__splitmix(tn__splitmix(seed) + (uint64_t)i) >> 40) * 0x1p-24 - 0.5) / DIM;
    for (int at = 0; at < SAID; at++) {
        double        dx[2][DIM] = {{0}}, p[SAID];
        static double no[SAID][DIM];
        memcpy(no, o, sizeof o);
        for (int side = 0; side < 2 && said[at] >= 0; side++) {
            const int near = at + 2 * side - 1, row = near < 0 || near >= SAID ? -1 : said[near];
            double    sum = 0;
            for (int j = 0; j < words && row >= 0; j++) {
                double f = 0;
                for (int k = 0; k < DIM; k++) f += x[row][k] * o[j][k];
                sum += p[j] = exp(f);
            }
            for (int j = 0; j < words && row >= 0; j++)
                for (int k = 0; k < DIM; k++) {
                    const double g = rate * ((j == said[at]) - p[j] / sum);
                    dx[side][k] += g * o[j][k], no[j][k] += g * x[row][k];
                }
        }
        for (int side = 0; side < 2 && said[at] >= 0; side++) {
            const int near = at + 2 * side - 1, row = near < 0 || near >= SAID ? -1 : said[near];
            for (int k = 0; k < DIM && row >= 0; k++) x[row][k] += dx[side][k];
        }
        memcpy(o, no, sizeof o);
    }
}

TEST(a_training_by_hand)
{
    static double x[SAID][DIM];
    const char   *path = tn_test_file("text"), *text = "a b a c\nd b a d\n";
    const int     said[SAID] = {0, 1, 0, 3, -1, 2, 1, 0, 2}; /* a 3 times, b and d twice, c */
    ck_assert_int_eq(tn_file_write(path, text, strlen(text)), TN_OK);
    tn_vectors *v = tn_vectors_train(1, &path, .loss = TN_VECTORS_SOFTMAX, .dim = DIM, .window = 1, .epochs = 1,
                                     .sample = 0, .min_count = 1, .lr = 2, .seed = 7);
    ck_assert_msg(v, "%s", tn_error_message());
    ck_assert(tn_vectors_word(v, 1).at[0] == 'b' && tn_vectors_word(v, 2).at[0] == 'd');
    by_hand(said, 4, 2, 7, x);
    const float *rows = tn_data(tn_vectors_tensor(v));
    double       moved = 0;
    for (int i = 0; i < 4 * DIM; i++) {
        ck_assert_double_eq_tol((double)rows[i], x[i / DIM][i % DIM], 1e-6);
        moved = fmax(moved, fabs(x[i / DIM][i % DIM]));
    }
    ck_assert_double_gt(moved, 0.1); /* initialised between -1/12 and 1/12 */
    tn_vectors_free(v);
}

/* ---- threads, and interruption ----------------------------------------------------------------------------------- */

/* Enough words for several shards, most of them alone on a line, as each window costs a softmax over all of them. */
static const char *many_words(int words, int lines)
{
    tn_string   text = {0};
    uint64_t    state = 1;
    const char *path = tn_test_file("many");
    char        line[64];
    for (int i = 0; i < words; i++) {
        const uint64_t r = tn__splitmix(state++);
        snprintf(line, sizeof line, i % (words / lines) ? "w%d\n" : "w%d w%d w%d w%d\n", i, (int)(r % 40),
                 (int)(r >> 8) & 31, (int)(r >> 16) & 31);
        tn_string_add(&text, tn_text_of(line));
    }
    ck_assert_int_eq(tn_file_write(path, text.at, text.bytes), TN_OK);
    tn_string_free(&text);
    return path;
}

static volatile sig_atomic_t halt;
static void                  halt_on(const tn_vectors_event *e, void *user) { halt = e->done >= *(const double *)user; }

static tn_vectors *train(const char *path, tn_vectors_kind kind, int threads, double stop_at, bool resume)
{
    tn_set_threads(threads);
    halt = 0;
    tn_vectors *v = tn_vectors_train(1, &path, .kind = kind, .loss = TN_VECTORS_SOFTMAX, .dim = 8, .window = 2,
                                     .epochs = 2, .sample = 0, .min_count = 1, .buckets = 100, .lr = 0.1, .on = halt_on,
                                     .on_user = &stop_at, .stop = &halt, .resume = resume,
                                     .checkpoint = stop_at < 1 || resume ? tn_test_file("checkpoint") : NULL);
    tn_set_threads(0);
    ck_assert_msg(tn_error() == TN_OK, "%s", tn_error_message());
    return v;
}

TEST_EACH(the_same_bits, 3)
{
    const tn_vectors_kind kind = (tn_vectors_kind)(_i < 2 ? _i : 3); /* 3: FastText */
    const int             words = (tn_test_slow() ? 1 : 3) * TN__WORDS_PER_SHARD;
    const char           *path = many_words(words + 100, 60);
    tn_vectors           *one = train(path, kind, 1, 2, false);
    const size_t          bytes = (size_t)tn_vectors_size(one) * 8 * sizeof(float);
    ck_assert_int_gt(tn_vectors_size(one), words);
    ck_assert_ptr_null(train(path, kind, 2, 0.4, false));
    for (int threads = 2; threads <= 4; threads += tn_test_slow() ? 2 : 1) { /* 4: resumed, on one thread */
        tn_vectors *v = train(path, kind, threads < 4 ? threads : 1, 2, threads == 4);
        ck_assert_ptr_nonnull(v);
        ck_assert_mem_eq(tn_data(tn_vectors_tensor(one)), tn_data(tn_vectors_tensor(v)), bytes);
        tn_vectors_free(v);
    }
    tn_vectors_free(one);
}

TEST(what_it_refuses)
{
    const char *path = many_words(TN__SOFTMAX_MAX + 1, 2);
    ck_refused(tn_vectors_train(1, &path, .loss = TN_VECTORS_SOFTMAX, .min_count = 1), TN_EUNSUPPORTED,
               "tn_vectors_train: softmax over 32769 words is too slow, at most 32768; raise "
               ".min_count, or use TN_VECTORS_HIERARCHICAL or TN_VECTORS_NEGATIVE");
    ck_refused(tn_vectors_train(1, &path, .kind = TN_VECTORS_GLOVE, .loss = TN_VECTORS_SOFTMAX), TN_EINVAL,
               "tn_vectors_train: GloVe learns from counts of pairs and takes no other .loss; leave it at "
               "TN_VECTORS_NEGATIVE");
}
