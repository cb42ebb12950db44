/* test_source.c — batches by name, and shards: for any number of ranks, all together read the epoch that one rank
 * reads, each example once and in its batch, also when a run resumes with another number of ranks; a user's source
 * behaves the same. */
#include "tests/common/check_main.h"

#include "autograd/ops.h"
#include "extras.h"

/* ---- batches ----------------------------------------------------------------------------------------------------- */

TEST(names)
{
    tn_batch   b = {.x = tn_ones(TN_SHAPE(2))};
    tn_tensor *t = tn_zeros(TN_SHAPE(2)), *u = tn_zeros(TN_SHAPE(3));
    ck_assert_int_eq(tn_batch_put(&b, "mask", t), TN_OK);
    ck_assert_int_eq(tn_batch_put(&b, "types", NULL), TN_OK);
    ck_assert(tn_batch_get(&b, "mask") == t && tn_batch_get(&b, "x") == b.x && !tn_batch_find(&b, "types"));
    ck_assert_int_eq(tn_batch_put(&b, "mask", u), TN_OK); /* replaced */
    ck_assert_int_eq(tn_batch_put(&b, "y", t), TN_OK);
    ck_assert(tn_batch_get(&b, "mask") == u && b.y == t && !b.fields[1].name);
    ck_refused(tn_batch_get(&b, "labels"), TN_EINDEX, "tn_batch_get: the batch has no 'labels'; it has x, y, mask");
    tn_batch none = {0};
    ck_refused(tn_batch_get(&none, "x"), TN_EINDEX, "tn_batch_get: the batch has no 'x'; it has nothing");
    static const char *const many[] = {"a", "b", "c", "d", "e", "f", "g"};
    for (int i = 0; i < 7; i++) ck_assert_int_eq(tn_batch_put(&b, many[i], t), TN_OK);
    tn_batch_put(&b, "h", t);
    ck_error(TN_EUNSUPPORTED, "tn_batch_put: no room for 'h'; a batch has at most 8 fields");
    tn_batch_put(NULL, "h", t);
    ck_error(TN_EINVAL, "tn_batch_put: b is NULL");
    ck_refused(tn_batch_get(&b, NULL), TN_EINVAL, "tn_batch_get: name is NULL");
}

TEST(cuts)
{
    for (int64_t n = 0; n < 30; n++)
        for (int of = 1; of <= 7; of++) {
            int64_t at = 0;
            for (int rank = 0; rank < of; rank++) {
                tn_batch b = {0};
                tn_batch_cut(&b, (tn_shard){.rank = rank, .of = of}, n);
                ck_assert(b.first == at && b.whole == n && b.rows >= n / of && b.rows <= n / of + (n % of > 0));
                at += b.rows;
            }
            ck_assert_int_eq(at, n);
        }
    tn_batch b = {0};
    tn_batch_cut(&b, (tn_shard){.rank = 0, .of = 0}, 5);
    ck_assert(b.first == 0 && b.rows == 5);
    tn_batch_cut(&b, (tn_shard){.rank = 999, .of = 1000}, INT64_MAX);
    ck_assert(b.first + b.rows == INT64_MAX && b.rows >= INT64_MAX / 1000);
}

/* ---- sources to test --------------------------------------------------------------------------------------------- */

/* A user's source: 11 batches of numbers, the last of 3 rows, the others of 7. */
typedef struct {
    int64_t  batch;
    tn_shard shard;
} numbers;
static bool numbers_next(void *user, tn_batch *b)
{
    numbers *s = user;
    if (s->batch == 11) return s->batch = 0, false;
    tn_batch_cut(b, s->shard, s->batch == 10 ? 3 : 7);
    b->x = tn_arange_of(TN_I64, (double)(7 * s->batch + b->first), (double)(7 * s->batch + b->first + b->rows), 1);
    s->batch += tn_shard_next(&s->shard);
    return tn_batch_put(b, "double", tn_arange_of(TN_I64, 0, (double)b->rows, 1)) == TN_OK;
}
static void numbers_begin(void *user, const tn_json *at)
{
    numbers *s = user;
    s->batch = at ? tn_json_i64(tn_json_need(at, "batch")) : 0, tn_shard_rewind(&s->shard);
}
static void numbers_save(void *user, tn_json_writer *w) { tn_json_put_i64(w, "batch", ((numbers *)user)->batch); }
static void numbers_shard(void *user, tn_shard s) { ((numbers *)user)->shard = s; }

static tn_status letters_of(void *user, tn_text line, tn_ids *to)
{
    (void)user;
    for (size_t i = 0; i < line.bytes; i++)
        if (tn_ids_add(to, line.at[i] - 'a' + 5) != TN_OK) return tn_error();
    return TN_OK;
}

static const tn_encoder letters = {letters_of, NULL};

/* Random documents of two to six lines of 1 to 20 letters; for pairs, lines "a<tab>b". */
static const char *text_file(const char *name, uint64_t seed, bool pairs)
{
    const char  *path = tn_test_file(name);
    tn_generator g = {.seed = seed};
    tn_string    s = {0};
    for (int d = 0; d < 30; d++) {
        for (int64_t l = 2 + tn_random_below(&g, 5); l > 0; l--)
            for (int side = 0; side < 1 + pairs; side++) {
                char    line[24];
                int64_t n = 1 + tn_random_below(&g, 20);
                for (int64_t i = 0; i < n; i++) line[i] = (char)('a' + tn_random_below(&g, 26));
                line[n] = pairs && !side ? '\t' : '\n';
                tn_string_add(&s, (tn_text){line, (size_t)n + 1});
            }
        if (!pairs) tn_string_add(&s, tn_text_of("\n"));
    }
    ck_assert_int_eq(tn_file_write(path, s.at, s.bytes), TN_OK);
    tn_string_free(&s);
    return path;
}

enum {
    NUMBERS,
    ROWS,
    ROWS_IN_ORDER,
    IMAGES,
    PAIRS,
    LABELLED,
    WINDOWS,
    SPANS,
    SENTENCES,
    TABLE,
    MLM,
    MLM_PAIRS,
    MLM_PERMUTED,
    MLM_NO_THREAD,
    KINDS
};

typedef struct {
    numbers           numbers;
    tn_dataset       *rows;
    tn_images        *images;
    tn_pairs         *pairs;
    tn_pairs_batches *pairs_batches;
    tn_windows       *windows;
    tn_spans         *spans;
    tn_sentences     *sentences;
    tn_table         *table;
    tn_tokenizer     *tokenizer;
    tn_labelled      *labelled;
    tn_labels        *labels;
    tn_features      *features;
    tn_corpus        *corpus;
    tn_mlm           *mlm;
    tn_source         source;
} corpus;

static void corpus_open(corpus *c, int kind, uint64_t seed)
{
    static const char *files[1];
    *c = (corpus){.rows = NULL};
    if (kind == NUMBERS)
        c->source = (tn_source){.next = numbers_next,
                                .begin = numbers_begin,
                                .save = numbers_save,
                                .shard = numbers_shard,
                                .user = &c->numbers,
                                .batches = 11};
    if (kind == ROWS || kind == ROWS_IN_ORDER) {
        int64_t x[53][3];
        for (int64_t i = 0; i < 53; i++)
            for (int64_t k = 0; k < 3; k++) x[i][k] = 100 * i + k + 1;
        c->rows = tn_dataset_new(.x = tn_from_data(TN_I64, TN_SHAPE(53, 3), x), .y = tn_arange(53),
                                 .fields = {{"twice", tn_arange_of(TN_I64, 0, 106, 2)}}, .batch = 8,
                                 .shuffle = kind == ROWS, .seed = seed);
        c->source = tn_dataset_source(c->rows);
    }
    if (kind == IMAGES) { /* shifted at random; without scaling, so that the numbers are whole */
        const tn_image_processor as_they_are = {.channels = 2, .scale = 1};
        tn_generator             g = {.seed = seed};
        unsigned char            x[29][2 * 3 * 4];
        for (int64_t i = 0; i < 29 * 24; i++) x[i / 24][i % 24] = (unsigned char)(1 + tn_random_below(&g, 255));
        c->images = tn_images_new(.x = tn_from_data(TN_U8, TN_SHAPE(29, 2, 3, 4), x), .y = tn_arange(29), .batch = 7,
                                  .processor = &as_they_are, .shuffle = true, .padding = 1, .flip = true, .seed = seed);
        c->source = tn_images_source(c->images);
    }
    if (kind == PAIRS) {
        c->pairs = tn_pairs_tsv_load(text_file("pairs", seed, true), .source = {letters_of, NULL},
                                     .target = {letters_of, NULL}, .begin = 1, .end = 2);
        c->pairs_batches = tn_pairs_batches_new(c->pairs, .tokens = 100, .examples = 9, .seed = seed);
        c->source = tn_pairs_source(c->pairs_batches);
    }
    if (kind == LABELLED) {
        static const char alphabet[] = "a b c d e f g h i j k l m n o p q r s t u v w x y z";
        const char       *path = text_file("labelled", seed, true);
        c->tokenizer = tn_tokenizer_train_text(alphabet, strlen(alphabet), .vocab_size = 40, .min_count = 1);
        c->labelled = tn_labelled_load(path);
        c->labels = tn_labels_of(c->labelled);
        c->features = tn_features_new(c->labelled, c->tokenizer, c->labels, .batch = 9, .length = 12, .seed = seed);
        c->source = tn_features_source(c->features);
    }
    if (kind == WINDOWS || kind == SPANS) {
        static int32_t text[301];
        for (int32_t i = 0; i < 301; i++) text[i] = 1 + i;
        if (kind == WINDOWS) c->windows = tn_windows_new(text, 301, .batch = 7, .length = 6, .in_order = true);
        else
            c->spans = tn_spans_new(text, 301, .batch = 7, .length = 9, .noise = 0.4, .span = 2, .begin = 600,
                                    .end = 601, .sentinel = 800, .in_order = true, .seed = seed);
        c->source = kind == WINDOWS ? tn_windows_source(c->windows) : tn_spans_source(c->spans);
    }
    if (kind == SENTENCES) {
        tn_lines *l = tn_lines_load(text_file("sentences", seed, false));
        tn_text   line[300];
        int64_t   n = 0;
        for (; n < tn_lines_count(l); n++) line[n] = tn_lines_at(l, n);
        c->sentences = tn_sentences_new(n, line, letters, .batch = 9, .seed = seed);
        c->source = tn_sentences_source(c->sentences);
        tn_lines_free(l);
    }
    if (kind == TABLE) { /* lines "a<tab>b", as texts */
        c->table = tn_table_open(text_file("table", seed, true), .form = "tsv", .no_header = true, .batch = 7,
                                 .fields = {{.name = "x", .columns = "1", .encoder = &letters},
                                            {.name = "y", .columns = "2", .encoder = &letters}});
        c->source = tn_table_source(c->table);
        c->source.batches = 14; /* about as many: unknown */
    }
    if (kind >= MLM) {
        files[0] = text_file("text", seed, false);
        c->corpus = tn_corpus_open(.files = files, .n = 1, .cache = tn_test_file("cache"),
                                   .encoder = {letters_of, NULL}, .vocabulary = 40);
        c->mlm = tn_mlm_new(c->corpus, .pairs = kind == MLM_PAIRS, .permuted = kind == MLM_PERMUTED, .max_tokens = 40,
                            .cls = 1, .sep = 2, .mask = 3, .tokens = 160, .seed = seed,
                            .ahead = kind == MLM_NO_THREAD ? 0 : 2);
        c->source = tn_mlm_source(c->mlm);
    }
    ck_assert_msg(tn_error() == TN_OK && c->source.next && c->source.batches > 3, "%s", tn_error_message());
}

static void corpus_close(corpus *c)
{
    tn_dataset_free(c->rows);
    tn_images_free(c->images);
    tn_pairs_batches_free(c->pairs_batches);
    tn_pairs_free(c->pairs);
    tn_windows_free(c->windows);
    tn_spans_free(c->spans);
    tn_sentences_free(c->sentences);
    tn_table_free(c->table);
    tn_features_free(c->features);
    tn_labels_free(c->labels);
    tn_labelled_free(c->labelled);
    tn_tokenizer_free(c->tokenizer);
    tn_mlm_free(c->mlm);
    tn_corpus_close(c->corpus);
}

/* ---- the content of a batch -------------------------------------------------------------------------------------- */

static void put_number(tn_string *to, int64_t v)
{
    char text[24];
    snprintf(text, sizeof text, " %lld", (long long)v);
    ck_assert_int_eq(tn_string_add(to, tn_text_of(text)), TN_OK);
}

/* Row r without its padding at the end; the width is that of its part of the batch. */
static void put_row_padded(tn_string *to, const tn_tensor *t, int64_t r, int64_t padding)
{
    const int64_t width = tn_numel(t) / tn_size(t, 0); /* with any number of dims */
    int64_t       n = width;
    while (n > 0 && tn_get_i64(t, r * width + n - 1) == padding) n--;
    for (int64_t i = 0; i < n; i++) put_number(to, tn_get_i64(t, r * width + i));
    tn_string_add(to, tn_text_of("|"));
}

static void put_row(tn_string *to, const tn_tensor *t, int64_t r)
{
    put_row_padded(to, t, r, tn_dtype_of(t) == TN_BOOL);
}

static void put_batch(tn_string *to, const tn_batch *b)
{
    const tn_tensor *at = tn_batch_find(b, "masked_at");
    const int64_t    rows = tn_size(b->x, 0), width = tn_ndim(b->x) == 2 ? tn_size(b->x, 1) : 1;
    ck_assert(rows == b->rows && b->first >= 0 && b->first + b->rows <= b->whole);
    for (int64_t r = 0; r < rows; r++) {
        put_row(to, b->x, r);
        if (b->y && !at) put_row(to, b->y, r);
        for (int64_t i = 0; at && i < tn_numel(at); i++)
            if (tn_get_i64(at, i) / width == r)
                put_number(to, tn_get_i64(at, i) % width), put_number(to, tn_get_i64(b->y, i));
        for (int i = 0; i < TN_BATCH_FIELDS && b->fields[i].name; i++)
            if (!strcmp(b->fields[i].name, "order")) put_row_padded(to, b->fields[i].tensor, r, -1);
            else if (b->fields[i].tensor != at && strcmp(b->fields[i].name, "double") != 0)
                put_row(to, b->fields[i].tensor, r);
        tn_string_add(to, tn_text_of("\n"));
    }
}

/* ---- several ranks ----------------------------------------------------------------------------------------------- */

enum { MOST = 6 };
typedef struct {
    corpus c[MOST];
    int    of, n, parts; /* per rank, in order */
} ranks;

static ranks *ranks_open(int kind, uint64_t seed, int of, int parts)
{
    ranks *r = calloc(1, sizeof *r);
    r->of = of, r->n = of ? of : 1, r->parts = parts;
    for (int i = 0; i < r->n; i++) {
        corpus_open(&r->c[i], kind, seed);
        const tn_shard mine = {.rank = i * parts, .of = of * parts, .count = parts > 1 ? parts : i % 2};
        if (of) ck_assert_int_eq(tn_source_shard(&r->c[i].source, mine), TN_OK);
    }
    return r;
}
static void ranks_close(ranks *r)
{
    for (int i = 0; i < r->n; i++) corpus_close(&r->c[i]);
    free(r);
}

/* The next batch of each rank, in order; false: end of the epoch for all. */
static bool ranks_next(ranks *r, tn_string *to)
{
    const tn_scope s = tn_scope_begin();
    bool           more = false;
    int64_t        at = 0, whole = 0;
    for (int i = 0; i < r->n * r->parts; i++) {
        tn_batch b;
        if (i % r->parts && !more) continue;
        const bool got = tn_source_next(&r->c[i / r->parts].source, &b);
        ck_assert_msg(tn_error() == TN_OK, "%s", tn_error_message());
        ck_assert(i == 0 || got == more);
        if (!(more = got)) continue;
        ck_assert(b.first == at && (i == 0 || b.whole == whole));
        at += b.rows, whole = b.whole;
        put_batch(to, &b);
    }
    ck_assert_int_eq(at, whole);
    tn_string_add(to, tn_text_of(more ? "--\n" : "==\n"));
    tn_scope_end(s);
    return more;
}

static void epochs(ranks *r, int n, tn_string *to)
{
    while (n > 0) n -= !ranks_next(r, to);
}

static void save(ranks *r, int i, tn_string *to)
{
    tn_json_writer *w = tn_json_writer_new(0);
    tn_json_open_object(w, NULL);
    r->c[i].source.save(r->c[i].source.user, w);
    tn_json_close(w);
    to->bytes = 0;
    tn_string_add(to, tn_text_of(tn_json_text(w, NULL)));
    tn_json_writer_free(w);
}

static void restore(ranks *r, const tn_string *from)
{
    tn_json *at = tn_json_parse(from->at, from->bytes);
    for (int i = 0; i < r->n; i++) r->c[i].source.begin(r->c[i].source.user, at);
    ck_assert_msg(tn_error() == TN_OK, "%s", tn_error_message());
    tn_json_free(at);
}

static const int counts[] = {1, 2, 3, 4, 6};
enum { COUNTS = sizeof counts / sizeof *counts, SEEDS = 2 };

TEST_EACH(together_they_see_what_one_sees, KINDS)
{
    for (uint64_t seed = 1; seed <= SEEDS; seed++) {
        tn_string one = {0}, all = {0};
        ranks    *r = ranks_open(_i, seed, 0, 1);
        epochs(r, 2, &one);
        ranks_close(r);
        for (int k = 0; k < COUNTS; k++) {
            all.bytes = 0;
            r = ranks_open(_i, seed, counts[k], 1 + (k + (int)seed) % 2 * 2);
            epochs(r, 2, &all);
            ranks_close(r);
            ck_assert_msg(all.bytes == one.bytes && !memcmp(all.at, one.at, one.bytes), "kind %d, seed %d, %d ranks",
                          _i, (int)seed, counts[k]);
        }
        tn_string_free(&one), tn_string_free(&all);
    }
}

TEST_EACH(resumed_with_another_number, KINDS)
{
    tn_generator chance = {.seed = 5};
    tn_string    one = {0}, all = {0}, at = {0}, other = {0};
    ranks       *r = ranks_open(_i, 4, 0, 1);
    epochs(r, 3, &one);
    ranks_close(r);
    for (int k = 0; k < 2 * COUNTS; k++) {
        const int from = counts[k % COUNTS], to = counts[tn_random_below(&chance, COUNTS)];
        int       over = 0;
        all.bytes = 0;
        r = ranks_open(_i, 4, from, 1 + k % 3);
        for (int64_t steps = tn_random_below(&chance, 2 * r->c[0].source.batches); steps >= 0; steps--)
            over += !ranks_next(r, &all);
        save(r, 0, &at);
        for (int i = 1; i < from; i++) { /* every rank's checkpoint is equal */
            save(r, i, &other);
            ck_assert(at.bytes == other.bytes && !memcmp(at.at, other.at, at.bytes));
        }
        ranks_close(r);
        r = ranks_open(_i, 4, to, 1 + k % 2);
        restore(r, &at);
        epochs(r, 3 - over, &all);
        ranks_close(r);
        ck_assert_msg(all.bytes == one.bytes && !memcmp(all.at, one.at, one.bytes), "kind %d, from %d to %d", _i, from,
                      to);
    }
    tn_string_free(&one), tn_string_free(&all), tn_string_free(&at), tn_string_free(&other);
}

/* From one batch to the next, with batches prepared in advance. */
TEST_EACH(another_shard_on_the_way, KINDS)
{
    corpus   c, whole;
    tn_batch b, w;
    corpus_open(&c, _i, 1), corpus_open(&whole, _i, 1);
    for (int i = 0; i < 4; i++) {
        tn_string part = {0}, all = {0};
        ck_assert_int_eq(tn_source_shard(&c.source, (tn_shard){.rank = i % 2, .of = 1 + i % 2}), TN_OK);
        ck_assert(tn_source_next(&c.source, &b) && tn_source_next(&whole.source, &w));
        ck_assert(b.whole == w.rows && b.first == (i % 2 ? w.rows / 2 : 0) && b.first + b.rows == w.rows);
        put_batch(&part, &b), put_batch(&all, &w);
        ck_assert(part.bytes <= all.bytes && !memcmp(all.at + all.bytes - part.bytes, part.at, part.bytes));
        tn_string_free(&part), tn_string_free(&all);
    }
    corpus_close(&c), corpus_close(&whole);
}

/* A batch is half read when the source starts again: it returns all parts of its first batch. */
TEST_EACH(rewound_within_a_batch, KINDS)
{
    corpus    c;
    tn_batch  b;
    tn_string first = {0}, again = {0};
    corpus_open(&c, _i, 3);
    ck_assert_int_eq(tn_source_shard(&c.source, (tn_shard){.of = 3, .count = 3}), TN_OK);
    for (int i = 0; i < 2; i++) ck_assert(tn_source_next(&c.source, &b)), put_batch(&first, &b);
    c.source.begin(c.source.user, NULL);
    for (int i = 0; i < 2; i++) ck_assert(tn_source_next(&c.source, &b)), put_batch(&again, &b);
    ck_assert(first.bytes == again.bytes && !memcmp(first.at, again.at, first.bytes));
    tn_string_free(&first), tn_string_free(&again);
    corpus_close(&c);
}

/* ---- mistakes ---------------------------------------------------------------------------------------------------- */

TEST(refuses)
{
    corpus c;
    corpus_open(&c, ROWS, 1);
    static const tn_shard wrong[] = {
        {.rank = 1, .of = 1}, {.rank = -1, .of = 2}, {.of = -3}, {.rank = 2, .of = 2}, {.rank = 1}};
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        char text[80];
        tn_source_shard(&c.source, wrong[i]);
        snprintf(text, sizeof text, "tn_source_shard: .rank is %d of %d shards; ranks start at 0", wrong[i].rank,
                 wrong[i].of);
        ck_error(TN_EINVAL, text);
    }
    tn_source_shard(&c.source, (tn_shard){.rank = 1, .of = 3, .count = 3});
    ck_error(TN_EINVAL, "tn_source_shard: .count is 3 and .rank 1, of 3 shards; ranks start at 0");
    tn_source plain = {.next = c.source.next, .user = c.source.user};
    ck_assert_int_eq(tn_source_shard(&plain, (tn_shard){.rank = 0, .of = 1}), TN_OK);
    tn_source_shard(&plain, (tn_shard){.rank = 0, .of = 2});
    ck_error(TN_EUNSUPPORTED, "tn_source_shard: the source has no .shard function");
    tn_source_shard(&(tn_source){.next = NULL}, (tn_shard){.rank = 0, .of = 2});
    ck_error(TN_EINVAL, "tn_source_shard: the source is NULL");
    tn_batch b;
    ck_refused(tn_source_next(&(tn_source){.next = NULL}, &b), TN_EINVAL, "tn_source_next: the source is NULL");
    tn_tensor *x = tn_ones(TN_SHAPE(3));
    ck_refused(tn_dataset_new(.x = x, .batch = 1, .fields = {{"x", x}}), TN_EINVAL,
               "tn_dataset_new: the field 'x' is given twice");
    ck_refused(tn_dataset_new(.x = x, .batch = 1, .fields = {{"a", x}, {"a", x}}), TN_EINVAL,
               "tn_dataset_new: the field 'a' is given twice");
    ck_refused(tn_dataset_new(.x = x, .batch = 0), TN_EINVAL, "tn_dataset_new: .batch is 0, expected at least 1");
    ck_refused(tn_dataset_new(.x = x, .fields = {{"mask", NULL}}), TN_EINVAL,
               "tn_dataset_new: the field 'mask' is NULL");
    ck_refused(tn_dataset_new(.x = x, .fields = {{NULL, x}}), TN_EINVAL,
               "tn_dataset_new: a tensor of .fields has no name");
    ck_refused(tn_dataset_new(.x = x, .fields = {{"mask", tn_ones(TN_SHAPE(2))}}), TN_ESHAPE,
               "tn_dataset_new: .x has 3 rows, but .mask [2] has 2");
    ck_assert(!tn_mlm_source(NULL).next && !tn_pairs_source(NULL).next);
    corpus_close(&c);
}

/* Rows that are not contiguous, of any dtype. */
TEST(rows_of_any_layout)
{
    static const tn_dtype types[] = {TN_F32, TN_F64, TN_BF16, TN_I64, TN_I32, TN_U8, TN_BOOL};
    for (size_t i = 0; i < sizeof types / sizeof *types; i++) {
        tn_tensor  *all = tn_to(tn_randint(TN_SHAPE(2, 12), 0, 100), types[i]), *x = tn_transpose(all, 0, 1);
        tn_dataset *d = tn_dataset_new(.x = x, .batch = 5);
        tn_source   s = tn_dataset_source(d);
        tn_batch    b;
        for (int64_t from = 0; tn_source_next(&s, &b); from += 5)
            ck_assert(tn_same_bits(b.x, tn_narrow(x, 0, from, from == 10 ? 2 : 5)));
        tn_dataset_free(d);
    }
}
