/* test_vectors.c — word vectors: training gives the same bits for any number of threads, interrupted or not, and learns
 * a small world; n-grams are FastText's; queries and scores compared with values computed by hand. */
#include "tests/common/check_main.h"

#include "extras.h"
#include "extras/vectors/vectors_private.h"

/* A text where a letter and its neighbour in the alphabet go together: in "a0 a1 a3 b2 …", two words of one topic
 * follow each other far more often than words of two topics. */
static const char *world(int64_t words, int64_t kinds)
{
    tn_string text = {0};
    uint64_t  state = 1;
    for (int64_t i = 0, topic = 0; i < words; i++) {
        const uint64_t r = tn__splitmix(state++);
        if (r % 16 == 0) topic = (int64_t)(r >> 8) % 12;
        char          word[16];
        const int64_t n = snprintf(word, sizeof word, "%c%cx%d%s", 'a' + (int)topic, 'a' + (int)topic,
                                   (int)((r >> 32) % (uint64_t)kinds), (r >> 48) % 40 ? " " : "\n");
        tn_string_add(&text, (tn_text){word, (size_t)n});
    }
    const char *path = tn_test_file("world.txt");
    ck_assert_int_eq(tn_file_write(path, text.at, text.bytes), TN_OK);
    tn_string_free(&text);
    return path;
}

static const struct {
    tn_vectors_kind kind;
    tn_vectors_loss loss;
} ways[] = {{TN_VECTORS_SKIPGRAM, TN_VECTORS_NEGATIVE},
            {TN_VECTORS_CBOW, TN_VECTORS_NEGATIVE},
            {TN_VECTORS_FASTTEXT, TN_VECTORS_NEGATIVE},
            {TN_VECTORS_SKIPGRAM, TN_VECTORS_HIERARCHICAL},
            {TN_VECTORS_CBOW, TN_VECTORS_HIERARCHICAL},
            {TN_VECTORS_SKIPGRAM, TN_VECTORS_NCE},
            {TN_VECTORS_GLOVE, 0},
            /* test_vectors_softmax.c tests what takes too long here */
            {TN_VECTORS_SKIPGRAM, TN_VECTORS_SOFTMAX},
            {TN_VECTORS_CBOW, TN_VECTORS_SOFTMAX},
            {TN_VECTORS_FASTTEXT, TN_VECTORS_SOFTMAX}};
enum { ALL = sizeof ways / sizeof *ways, WAYS = ALL - 3 };

static tn_vectors *trained(const char *path, int way, int threads, int64_t epochs)
{
    tn_set_threads(threads);
    tn_vectors *v = tn_vectors_train(1, &path, .kind = ways[way].kind, .loss = ways[way].loss, .dim = 20,
                                     .epochs = epochs, .sample = 0, .min_count = 2, .buckets = 1000, .lr = 0.1);
    tn_set_threads(0);
    ck_assert_msg(v, "%s", tn_error_message());
    return v;
}

TEST_EACH(the_same_bits_for_any_number_of_threads, WAYS)
{
    const char   *path = world(tn_test_slow() ? 15000 : 30000, 600); /* enough different words for several shards */
    tn_vectors   *one = trained(path, _i, 1, 1);
    const int64_t n = tn_vectors_size(one);
    ck_assert_int_gt(n, 2 * TN__WORDS_PER_SHARD);
    const float *a = tn_data(tn_vectors_tensor(one));
    for (int threads = 2; threads <= (tn_test_slow() ? 2 : 7); threads += threads == 3 ? 4 : 1) {
        tn_vectors *many = trained(path, _i, threads, 1);
        ck_assert_mem_eq(a, tn_data(tn_vectors_tensor(many)), (size_t)(n * 20) * sizeof *a);
        tn_vectors_free(many);
    }
    tn_vectors_free(one);
}

/* ---- interrupted and resumed ------------------------------------------------------------------------------------- */

static volatile sig_atomic_t halt;
static double                halt_at;
static void                  halt_on(const tn_vectors_event *e, void *user)
{
    (void)user;
    halt = e->done >= halt_at;
}

static tn_vectors *with_checkpoint(const char *path, int way, bool resume, double stop_at)
{
    halt = 0, halt_at = stop_at;
    return tn_vectors_train(1, &path, .kind = ways[way].kind, .loss = ways[way].loss, .dim = 20, .epochs = 3,
                            .sample = 1e-2, .min_count = 1, .buckets = 1000, .lr = 0.1, .on = halt_on, .stop = &halt,
                            .checkpoint = tn_test_file("checkpoint"), .resume = resume);
}

/* Stopped in the first epoch (when GloVe has learned nothing), in the second, and in the third. Returns the number of
 * words learned. */
static int64_t stop_and_go_on(const char *path, int way)
{
    const bool    glove = ways[way].kind == TN_VECTORS_GLOVE;
    tn_vectors   *whole = with_checkpoint(path, way, false, 2);
    const int64_t n = tn_vectors_size(whole);
    ck_assert_int_eq(remove(tn_test_file("checkpoint")), 0);
    ck_assert_ptr_null(with_checkpoint(path, way, false, 0));
    ck_assert_msg(tn_error() == TN_OK && tn__file_exists(tn_test_file("checkpoint")) == !glove, "%s",
                  tn_error_message());
    tn_set_threads(3);
    ck_assert_ptr_null(with_checkpoint(path, way, !glove, 0.3));
    tn_set_threads(1);
    ck_assert_ptr_null(with_checkpoint(path, way, true, 0.6));
    ck_assert_msg(tn_error() == TN_OK, "%s", tn_error_message());
    tn_set_threads(2);
    for (int again = 0; again < 2; again++) { /* from the interruption; and from the end */
        tn_vectors *v = with_checkpoint(path, way, true, 2);
        ck_assert_msg(v, "%s", tn_error_message());
        ck_assert_mem_eq(tn_data(tn_vectors_tensor(whole)), tn_data(tn_vectors_tensor(v)), (size_t)(n * 20) * 4);
        tn_vectors_free(v);
    }
    tn_set_threads(0);
    tn_vectors_free(whole);
    return n;
}

TEST_EACH(goes_on_to_the_same_bits, WAYS)
{
    ck_assert_int_gt(stop_and_go_on(world(tn_test_slow() ? 7000 : 9000, 500), _i),
                     2 * TN__WORDS_PER_SHARD); /* several shards */
}

/* A text of which one shard reads many chunks. */
TEST(goes_on_in_the_same_order)
{
    const char *path = world(40000, 9);
    tn_tensor  *text = tn_file_read(path, 1 << 24);
    ck_assert_int_gt(tn_numel(text), 40 * TN__SHARD_BYTES);
    stop_and_go_on(path, 0);
}

/* A word among a's in the first half of a text and among b's in the second half is equally near to both; read in order,
 * it would be nearer to the b's by 0.8. */
TEST(what_was_read_last_is_not_all_it_knows)
{
    enum { WORDS = 80000, KINDS = 36 };
    tn_string text = {0};
    for (uint64_t i = 0; i < WORDS; i++) {
        const int which = (int)(tn__splitmix(i + 1) % (KINDS + 4));
        char      word[16] = "word ";
        if (which < KINDS) snprintf(word, sizeof word, "%cx%d ", i < WORDS / 2 ? 'a' : 'b', which);
        tn_string_add(&text, tn_text_of(word));
    }
    const char *path = tn_test_file("halves.txt");
    ck_assert_int_eq(tn_file_write(path, text.at, text.bytes), TN_OK);
    tn_string_free(&text);
    tn_vectors     *v = trained(path, 1, 1, 1); /* CBOW */
    tn_vectors_near all[2 * KINDS + 1];
    float           x[20], near[2] = {0};
    ck_assert(tn_vectors_of(v, tn_text_of("word"), x));
    ck_assert_int_eq(tn_vectors_nearest(v, x, NULL, 0, 2 * KINDS + 1, all), 2 * KINDS + 1);
    for (int i = 0; i <= 2 * KINDS; i++) {
        const char first = tn_vectors_word(v, all[i].word).at[0];
        if (first != 'w') near[first == 'b'] += all[i].score / KINDS;
    }
    ck_assert_msg(fabsf(near[0] - near[1]) < 0.3f, "%g, %g", (double)near[0], (double)near[1]);
    tn_vectors_free(v);
}

static void refused(const char *path, tn_status status, const char *why)
{
    ck_refused_has(with_checkpoint(path, 0, true, 2), status, why);
}

static void put(const char *path, const void *bytes, int64_t n) /* without waiting for the disk */
{
    FILE *f = fopen(path, "wb");
    ck_assert(f && fwrite(bytes, 1, (size_t)n, f) == (size_t)n);
    ck_assert_int_eq(fclose(f), 0);
}

/* Intact files without an argument or a position, with a position beyond the end, or with a shorter table. */
static void refuses_other_contents(const char *path, const char *saved)
{
    static const struct {
        const char *without, *data, *why;
        int64_t     step;
    } kinds[] = {{"kind", NULL, "not a checkpoint of vectors; unset .resume to start again", 0},
                 {"", NULL, "its position does not exist; unset .resume to start again", 4},
                 {"", NULL, "'in' has another size; unset .resume to start again", 0},
                 {"", "{\"words\": 1}", "has no 'place'", 0}};
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++) {
        const tn_scope      s = tn_scope_begin();
        tn_checkpoint_file *f = tn_checkpoint_open(saved);
        tn_json_writer     *config = tn_json_writer_new(0), *data = tn_json_writer_new(0);
        tn_json_open_object(config, NULL);
        for (const tn_json *v = tn_json_first(tn_checkpoint_config(f)); v; v = tn_json_next(v))
            if (strcmp(tn_json_key(v), kinds[i].without) != 0) tn_json_put(config, tn_json_key(v), v);
        tn_json_close(config), tn_json_put(data, NULL, tn_checkpoint_data(f));
        const tn_named tables[] = {{"in", tn_zeros(TN_SHAPE(3, 32))}, {"out", tn_checkpoint_tensor(f, "out")}};
        ck_assert_int_eq(tn_checkpoint_save(tn_test_file("other"), .tensors = tables, .tensor_count = 2,
                                            .step = kinds[i].step, .config = tn_json_text(config, NULL),
                                            .data = kinds[i].data ? kinds[i].data : tn_json_text(data, NULL)),
                         TN_OK);
        tn_json_writer_free(config), tn_json_writer_free(data);
        tn_checkpoint_close(f);
        tn_scope_end(s);
        ck_assert_ptr_null(tn_vectors_train(1, &path, .dim = 20, .epochs = 3, .sample = 1e-2, .min_count = 1,
                                            .buckets = 1000, .lr = 0.1, .checkpoint = tn_test_file("other"),
                                            .resume = true));
        ck_assert_msg(strstr(tn_error_message(), kinds[i].why), "%s", tn_error_message());
        tn_clear_error();
    }
}

TEST(goes_on_with_the_same_alone)
{
    const char *path = world(1000, 20), *saved = tn_test_file("checkpoint");
    ck_assert_ptr_null(with_checkpoint(path, 0, false, 0.5));
    refuses_other_contents(path, saved);
    tn_tensor     *file = tn_file_read(saved, 1 << 24), *text = tn_file_read(path, 1 << 24);
    const int64_t  bytes = tn_numel(file);
    unsigned char *b = tn_data_mut(file);
    b[bytes - 1] ^= 0x10;
    put(saved, b, bytes);
    refused(path, TN_EFORMAT, "is damaged");
    put(saved, b, bytes / 2);
    refused(path, TN_EFORMAT, "");
    b[bytes - 1] ^= 0x10;
    put(saved, b, bytes);
    ck_assert_ptr_null(
        tn_vectors_train(1, &path, .checkpoint = saved, .resume = true, .dim = 20, .epochs = 3, .sample = 1e-3));
    ck_assert(strstr(tn_error_message(), "the training started with .sample 0.01, not 0.001; resume with the same"));
    tn_clear_error();
    ck_assert_ptr_null(tn_vectors_train(1, &path, .checkpoint = saved, .resume = true, .dim = 24));
    ck_assert(strstr(tn_error_message(), "the training started with .dim 20, not 24; resume with the same"));
    tn_clear_error();
    char *t = tn_data_mut(text), *x = strstr(t, "0 ");
    *x = '1';
    put(path, t, tn_numel(text));
    refused(path, TN_EINVAL, "the training started with other texts; resume with the same");
    *x = '0';
    put(path, t, tn_numel(text));
    tn_vectors *v = with_checkpoint(path, 0, true, 2);
    ck_assert_msg(v, "%s", tn_error_message());
    tn_vectors_free(v);
    ck_assert_int_eq(remove(saved), 0);
    refused(path, TN_EIO, "no such file");
    ck_refused(tn_vectors_train(1, &path, .resume = true), TN_EINVAL,
               "tn_vectors_train: .resume needs .checkpoint; set it");
}

/* The nearest words of each are those of its topic. */
TEST_EACH(finds_what_goes_together, ALL)
{
    const bool      slow = tn_test_slow(); /* then only that it runs */
    const int       epochs = ways[_i].kind == TN_VECTORS_GLOVE ? 25 : _i < WAYS ? 6 : 2;
    tn_vectors     *v = trained(world(slow ? 5000 : 15000, 9), _i, 1, slow ? 1 : epochs);
    tn_vectors_near near[5];
    int64_t         right = 0;
    float           x[20];
    for (int64_t i = 0; i < tn_vectors_size(v); i++) {
        const tn_text word = tn_vectors_word(v, i);
        ck_assert(tn_vectors_of(v, word, x));
        ck_assert_int_eq(tn_vectors_nearest(v, x, &i, 1, 5, near), 5);
        for (int k = 0; k < 5; k++) right += tn_vectors_word(v, near[k].word).at[0] == word.at[0];
    }
    ck_assert_msg(slow || right > 108 * 5 * 9 / 10, "only %lld of %d neighbours are right", (long long)right, 108 * 5);
    tn_vectors_free(v);
}

/* Words of skewed frequency: two files, line ends, words too long, no word at the end of a block. */
TEST(reads_words_as_they_stand)
{
    tn_string text = {0};
    for (int i = 0; i < 3000; i++) tn_string_add(&text, tn_text_of("one two\tthree\r\n four  \n\n"));
    for (int i = 0; i < 300; i++) tn_string_add(&text, tn_text_of("looooooooooooooooooooong"));
    tn_string_add(&text, tn_text_of(" five five"));
    const char *paths[] = {tn_test_file("a.txt"), tn_test_file("b.txt")};
    ck_assert_int_eq(tn_file_write(paths[0], text.at, text.bytes), TN_OK);
    ck_assert_int_eq(tn_file_write(paths[1], "five four", 9), TN_OK);
    tn_string_free(&text);
    tn__lexicon x = {0};
    ck_assert(tn__lexicon_read(&x, "test", paths[0], 1000) && tn__lexicon_read(&x, "test", paths[1], 1000));
    ck_assert_int_eq(x.total, 4 * 3000 + 4);
    ck_assert_int_eq(x.lines, 3 * 3000);
    ck_assert(tn__lexicon_trim(&x, 3));
    ck_assert_uint_eq(x.words.n, 5);
    ck_assert_int_eq(tn__lexicon_find(&x, "four", 4), 0); /* 3001 times */
    ck_assert_int_eq(tn__lexicon_find(&x, "one", 3), 1);
    ck_assert_int_eq(tn__lexicon_find(&x, "five", 4), 4);
    ck_assert_int_eq(x.count[4], 3);
    ck_assert_int_eq(tn__lexicon_find(&x, "fiv", 3), -1);
    tn__lexicon_free(&x);
    ck_assert(tn__lexicon_read(&x, "test", paths[0], 2)); /* removes rare words while counting */
    ck_assert_uint_le(x.words.n, 2);
    tn__lexicon_free(&x);
}

/* The known words of an epoch, for any division into chunks: word2vec counts line ends too. */
static int64_t words_seen;
static void    on(const tn_vectors_event *e, void *user)
{
    (void)user;
    words_seen = e->words;
}

TEST(every_word_is_seen_once_an_epoch)
{
    /* several rounds; the second text, with more different words, has several shards, whose parts start anywhere */
    for (int kinds = 9; kinds <= 900; kinds += 891) {
        const char *paths[] = {world(30000, kinds), tn_test_file("end.txt"), tn_test_file("nothing.txt")};
        ck_assert_int_eq(tn_file_write(paths[1], "aax1 aax2\naax3", 14), TN_OK);
        ck_assert_int_eq(tn_file_write(paths[2], "", 0), TN_OK);
        const char *order[] = {paths[2], paths[1], paths[0], paths[2], paths[1]};
        tn__lexicon x = {0};
        for (int i = 0; i < 5; i++) ck_assert(tn__lexicon_read(&x, "test", order[i], 100000));
        tn_vectors *v = tn_vectors_train(5, order, .dim = 4, .epochs = 3, .min_count = 1, .on = on);
        ck_assert(kinds == 9 || tn_vectors_size(v) > 2 * TN__WORDS_PER_SHARD);
        ck_assert_int_eq(words_seen, 3 * (x.total + x.lines));
        tn_vectors_free(v);
        tn__lexicon_free(&x);
    }
}

TEST(draws_in_proportion)
{
    const double weight[] = {5, 0, 3, 1, 1};
    tn__noise    a = {0};
    int          n[5] = {0};
    ck_assert(tn__noise_make(&a, weight, 5));
    for (uint64_t i = 0; i < 100000; i++) n[tn__noise_draw(&a, tn__splitmix(i))]++;
    for (int i = 0; i < 5; i++) ck_assert_int_le(abs(n[i] - (int)(weight[i] * 10000)), 600);
    ck_assert_int_eq(n[1], 0);
}

/* Huffman: the path lengths are those of the optimal code. */
TEST(a_tree_of_the_shortest_ways)
{
    const int64_t count[] = {40, 30, 15, 10, 5}, length[] = {1, 2, 3, 4, 4};
    tn__tree      t = {0};
    ck_assert(tn__tree_make(&t, count, 5));
    for (int i = 0; i < 5; i++) ck_assert_int_eq(t.start[i + 1] - t.start[i], length[i]);
    for (int i = 0; i < 5; i++) ck_assert_int_eq(t.node[t.start[i + 1] - 1], 3); /* the root, made last */
}

/* "<été>" has continuation bytes. The hashes are those of FastText's Dictionary::hash. */
TEST(ngrams)
{
    const tn__subwords g = {.min_n = 3, .max_n = 4, .buckets = UINT32_MAX};
    int64_t            row[16];
    ck_assert_int_eq(tn__ngrams(tn_text_of("\xc3\xa9t\xc3\xa9"), &g, row, 16), 5);
    ck_assert_int_eq(tn__ngrams(tn_text_of("ab"), &g, row, 16), 3); /* <ab ab> <ab> */
    uint32_t h = 2166136261u;
    for (const char *p = "<ab>"; *p; p++) h = (h ^ (unsigned char)*p) * 16777619u;
    ck_assert_int_eq(row[1], (int64_t)h); /* ordered by their start */
    ck_assert_int_eq(tn__ngrams((tn_text){"</s>", 4}, &g, row, 2), 0);
}

static tn_vectors *square(void) /* four directions of the plane */
{
    const float x[] = {2, 0, 0, 3, -1, 0, 0, -4, 1, 1, 0, 0};
    return tn_vectors_from(tn_text_of("east north west south between none"), tn_from_data(TN_F32, TN_SHAPE(6, 2), x));
}

TEST(nearest_and_analogies)
{
    tn_vectors     *v = square();
    const float     x[] = {1, 0.1f};
    tn_vectors_near near[6];
    ck_assert_int_eq(tn_vectors_nearest(v, x, NULL, 0, 6, near), 6);
    const int64_t order[] = {0, 4, 1, 5, 3, 2};
    for (int i = 0; i < 6; i++) ck_assert_int_eq(near[i].word, order[i]);
    const int64_t abc[] = {0, 1, 2}; /* north - east + west = (-2, 1) */
    for (int product = 0; product < 2; product++) {
        ck_assert_int_eq(tn_vectors_analogous(v, abc, product, 2, near), 2);
        ck_assert_int_eq(near[0].word, 5);
    }
    const int64_t bad[] = {0, 1, 6};
    ck_assert_int_eq(tn_vectors_analogous(v, bad, false, 2, near), 0);
    ck_error(TN_EINDEX, "tn_vectors_analogous: no word 6");
    ck_assert_int_eq(tn_vectors_find(v, tn_text_of("up")), -1);
    tn_vectors_free(v);
}

static const char *file_of(const char *name, const char *text)
{
    const char *path = tn_test_file(name);
    ck_assert_int_eq(tn_file_write(path, text, strlen(text)), TN_OK);
    return path;
}

TEST(scores)
{
    tn_vectors      *v = square();
    tn_vectors_score s = tn_vectors_similarity(
        v, file_of("pairs",
                   "a b score\nEast\tbetween\t9\neast north 5\neast none 5\neast south 5\neast west 1\nup down 3\n"));
    ck_assert_int_eq(s.asked, 5);
    ck_assert_int_eq(s.missing, 1);
    ck_assert_double_eq_tol(s.value, 1, 1e-12);
    s = tn_vectors_similarity(v, file_of("pairs", "east west 9\neast between 1\nwest south 4\n"));
    ck_assert_double_eq_tol(s.value, -1, 1e-12);
    s = tn_vectors_analogies(v, file_of("questions", ": s\nEAST north west none\neast north west south\na b c d\n"),
                             false);
    ck_assert_int_eq(s.asked, 2);
    ck_assert_int_eq(s.missing, 1);
    ck_assert_double_eq_tol(s.value, 0.5, 1e-12);
    tn_vectors_similarity(v, file_of("pairs", "east west 9\neast between\n"));
    ck_assert(strstr(tn_error_message(), "line 2: expected two words and a number"));
    tn_clear_error();
    tn_vectors_analogies(v, file_of("questions", "a b c d\na b c\n"), false);
    ck_assert(strstr(tn_error_message(), "line 2: expected four words"));
    tn_clear_error();
    tn_vectors_free(v);
}

TEST(sentences)
{
    tn_vectors *v = square();
    float       x[2];
    ck_assert(tn_vectors_sentence(v, tn_text_of("East is  east, north east"), 0, x));
    ck_assert_float_eq_tol(x[0], 4.0f / 3, 1e-6f);
    ck_assert_float_eq_tol(x[1], 1, 1e-6f);
    ck_assert(tn_vectors_sentence(v, tn_text_of("north south"), 0.001, x)); /* the rarer word counts more */
    ck_assert_float_lt(x[1], 0);
    ck_assert(!tn_vectors_sentence(v, tn_text_of("of nothing"), 0, x));
    ck_assert_float_eq(x[0], 0);
    tn_vectors_free(v);
}

/* Two clusters far apart in many dimensions are two clusters in the plane; and a line keeps its order. */
TEST(points_in_the_plane)
{
    float rows[40][8];
    for (int i = 0; i < 40; i++)
        for (int k = 0; k < 8; k++)
            rows[i][k] =
                (float)(tn__splitmix((uint64_t)(i * 8 + k)) >> 40) * 0x1p-24f + (i < 20 ? 0.0f : 4.0f * (float)(k % 3));
    tn_tensor *x = tn_from_data(TN_F32, TN_SHAPE(40, 8), rows);
    tn_set_threads(1); /* a thousand small loops: too slow with threads that wait for a busy processor */
    for (int way = 0; way < 2; way++) {
        tn_tensor   *points = way ? tn_plane_tsne(x, 8, 1) : tn_plane_pca(x);
        const float *y = tn_data(points);
        ck_assert_msg(y, "%s", tn_error_message());
        int right = 0;
        for (int i = 0; i < 40; i++) {
            double nearest = INFINITY;
            int    which = -1;
            for (int j = 0; j < 40; j++) {
                const double a = (double)(y[2 * i] - y[2 * j]), b = (double)(y[2 * i + 1] - y[2 * j + 1]);
                if (j != i && a * a + b * b < nearest) nearest = a * a + b * b, which = j;
            }
            right += (which < 20) == (i < 20);
        }
        ck_assert_int_eq(right, 40);
    }
    tn_set_threads(0);
    const float *y = tn_data(tn_plane_pca(tn_from_data(TN_F32, TN_SHAPE(3, 2), (float[]){0, 0, 3, 4, 6, 8})));
    ck_assert_float_eq_tol(fabsf(y[4] - y[0]), 10, 1e-4f);
    ck_assert_float_eq_tol(y[2], 0, 1e-4f);
    ck_refused(tn_plane_tsne(x, 40, 1), TN_EINVAL,
               "tn_plane_tsne: 40 rows with perplexity 40; expected at most 5000 rows, and perplexity 1 to "
               "rows - 1");
    ck_refused(tn_plane_pca(tn_zeros(TN_SHAPE(3))), TN_EINVAL,
               "tn_plane_pca: rows must be [n, dim] of a floating dtype, with at least two rows");
}

TEST(wrong_calls)
{
    const char *path = file_of("short", "only once");
    ck_refused(tn_vectors_train(0, NULL), TN_EINVAL, "tn_vectors_train: no texts given");
    ck_refused(tn_vectors_train(1, &path, .window = 0), TN_EINVAL, "tn_vectors_train: .window is 0, expected 1 to 255");
    ck_refused(tn_vectors_train(1, &path), TN_EINVAL,
               "tn_vectors_train: 0 words occur at least 5 times, expected at least 2 such words; check the text or "
               "lower .min_count");
    ck_refused(tn_vectors_train(1, &path, .kind = TN_VECTORS_FASTTEXT, .min_n = 4, .max_n = 3), TN_EINVAL,
               "tn_vectors_train: .min_n is 4 and .max_n 3; expected at least 1 character, and at most 16 lengths");
    ck_refused(tn_vectors_from(tn_text_of("one two three"), tn_zeros(TN_SHAPE(2, 3))), TN_EINVAL,
               "tn_vectors_from: 2 rows, but 3 words (2 different)");
    tn_vectors *v = square();
    ck_assert_int_ne(tn_vectors_save(v, tn_test_file("x"), TN_VECTORS_FASTTEXT_BIN), TN_OK);
    ck_error(TN_EINVAL, "tn_vectors_save: the vectors have no n-grams, which a FastText model needs");
    tn_vectors_free(v);
}
