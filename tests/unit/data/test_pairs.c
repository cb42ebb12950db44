/* test_pairs.c — parallel corpora: reading and filtering, batches by token budget, positions that resume exactly. */
#include "tests/common/check_main.h"

#include "data/data.h"
#include "tests/common/faults.h"
#include "tests/common/positions.h"

/* One token per byte: its value. "!" is rejected. */
static tn_status bytes_of(void *user, tn_text line, tn_ids *to)
{
    (void)user;
    for (size_t i = 0; i < line.bytes; i++) {
        if (line.at[i] == '!') return tn_raise(TN_EFORMAT, "no shouting");
        if (tn_ids_add(to, (unsigned char)line.at[i]) != TN_OK) return tn_error();
    }
    return TN_OK;
}

static const tn_pairs_config plain = {
    .source = {bytes_of, NULL}, .target = {bytes_of, NULL}, .pad = 0, .begin = 1, .end = 2, .min_tokens = 1};

static const char *file(const char *name, const char *text)
{
    const char *path = tn_test_file(name);
    ck_assert_int_eq(tn_file_write(path, text, strlen(text)), TN_OK);
    return path;
}

static tn_pairs *pairs_of(const char *source, const char *target, tn_pairs_config c)
{
    return tn_pairs_load_run(file("a", source), file("b", target), c);
}

/* ---- reading ----------------------------------------------------------------------------------------------------- */

TEST(reads_two_files_or_one)
{
    tn_pairs *two = pairs_of("ab\nc\r\n\nlong line", "x\nyz\nw\nv\n", plain);
    tn_pairs *one = tn_pairs_tsv_load_run(file("t", "ab\tx\nc\tyz\r\n\tw\nlong line\tv"), plain);
    ck_assert_msg(two && one, "%s", tn_error_message());
    ck_assert(tn_pairs_count(two) == 3 && tn_pairs_dropped(two) == 1);
    ck_assert(tn_pairs_line(two, 0) == 0 && tn_pairs_line(two, 2) == 3 && tn_pairs_line(two, 3) == -1);
    ck_assert(tn_pairs_tokens(two, false) == 12 && tn_pairs_tokens(two, true) == 4);
    ck_assert(tn_pairs_checksum(two) == tn_pairs_checksum(one));
    tn_pairs_free(one);
    tn_pairs_config c = plain;
    c.max_tokens = 4, c.max_ratio = 1.5;
    one = tn_pairs_load_run(tn_test_file("a"), tn_test_file("b"), c);
    ck_assert(tn_pairs_count(one) == 0 && tn_pairs_dropped(one) == 4);
    ck_refused(tn_pairs_batches_new(one), TN_EINVAL, "tn_pairs_batches_new: no pairs are left");
    tn_pairs_free(one);
    tn_pairs_free(two);
    two = pairs_of("", "", plain);
    ck_assert(two && tn_pairs_count(two) == 0);
    tn_pairs_free(two);
}

/* A byte order mark at the start is not part of the first line. */
#define MARK "\xef\xbb\xbf"
TEST(byte_order_marks)
{
    static const char *const texts[] = {MARK "x\r\n" MARK "y", MARK, "\xef\xbb", "\n"};
    tn_pairs                *p = pairs_of(MARK "xy\nz\n", MARK "z\nxy\n", plain);
    ck_assert_msg(p && tn_pairs_tokens(p, false) == 3 && tn_pairs_tokens(p, true) == 3, "%s", tn_error_message());
    tn_pairs_free(p);
    p = tn_pairs_tsv_load_run(file("t", MARK "xy\tz\nz\txy\n"), plain);
    ck_assert(p && tn_pairs_tokens(p, false) == 3);
    tn_pairs_free(p);
    static const struct {
        int64_t n;
        size_t  bytes; /* of line 0 */
    } lines[] = {{2, 1}, {0, 0}, {1, 2}, {1, 0}};
    for (int i = 0; i < 4; i++) {
        tn_lines *l = tn_lines_load(file("l", texts[i]));
        ck_assert_int_eq(tn_lines_count(l), lines[i].n);
        ck_assert_uint_eq(tn_lines_at(l, 0).bytes, lines[i].bytes);
        if (!i) ck_assert_uint_eq(tn_lines_at(l, 1).bytes, 4); /* elsewhere it is text */
        tn_lines_free(l);
    }
}

static void refused(tn_pairs *p, tn_status code, const char *part) { ck_refused_has(p, code, part); }

TEST(refuses)
{
    refused(pairs_of("a\nb\nc\n", "x\ny\n", plain), TN_EFORMAT, "/b' ends after line 2; line i of one must");
    refused(pairs_of("a\n", "x\ny\nz\n", plain), TN_EFORMAT, "/b': the file has 3 lines, but its counterpart '");
    refused(pairs_of("a\nb!\n", "x\ny\n", plain), TN_EFORMAT, "no shouting");
    refused(tn_pairs_tsv_load_run(file("t", "a\tb\nc\n"), plain), TN_EFORMAT, "line 2 has no tab");
    refused(tn_pairs_tsv_load_run(file("t", "a\tb\tc\n"), plain), TN_EFORMAT, "line 1 has more than one tab");
    refused(tn_pairs_load_run(tn_test_file("a"), tn_test_file("nowhere"), plain), TN_EIO, "no such file");
    tn_pairs_config c = plain;
    c.refuse_empty = true;
    refused(pairs_of("a\nb\n", "x\n\n", c), TN_EFORMAT, "/b': line 2 is empty");
    c.min_tokens = 5, c.max_tokens = 3;
    refused(pairs_of("a\nb\n", "x\ny\n", c), TN_EINVAL, ".max_tokens is less than .min_tokens");
    refused(pairs_of("a\n", "x\n", (tn_pairs_config){.zero_ = 0}), TN_EINVAL,
            ".source and .target need an encoder each");
}

/* ---- batches ----------------------------------------------------------------------------------------------------- */

enum { MANY = 500 };

static tn_pairs *many(void)
{
    char  *source = calloc(1, 40 * MANY), *target = calloc(1, 40 * MANY);
    size_t a = 0, b = 0;
    for (int i = 0; i < MANY; i++) {
        for (int k = 0; k < 1 + i * 7 % 31; k++) source[a++] = (char)('a' + i % 26);
        for (int k = 0; k < 1 + i * 11 % 29; k++) target[b++] = (char)('A' + i % 26);
        source[a++] = target[b++] = '\n';
    }
    tn_pairs *p = pairs_of(source, target, plain);
    free(source);
    free(target);
    ck_assert(tn_pairs_count(p) == MANY);
    return p;
}

static void check_row(const tn_batch *b, int64_t row)
{
    const tn_tensor *target_in = tn_batch_get(b, "target_in"), *target_out = tn_batch_get(b, "target_out");
    const tn_tensor *source_padding = tn_batch_get(b, "source_padding"),
                    *target_padding = tn_batch_get(b, "target_padding");
    int64_t pair = tn_get_i64(tn_batch_get(b, "pair"), row), S = tn_size(b->x, 1), T = tn_size(target_in, 1);
    int64_t s = 1 + pair * 7 % 31, t = 1 + pair * 11 % 29;
    for (int64_t i = 0; i < S; i++) {
        int64_t id = tn_get_i64(b->x, row * S + i);
        ck_assert_int_eq(id, i < s ? 'a' + pair % 26 : i == s ? 2 : 0);
        ck_assert_int_eq(tn_get_i64(source_padding, row * S + i), i > s);
    }
    for (int64_t i = 0; i < T; i++) {
        ck_assert_int_eq(tn_get_i64(target_in, row * T + i), i == 0 ? 1 : i <= t ? 'A' + pair % 26 : 0);
        ck_assert_int_eq(tn_get_i64(target_out, row * T + i), i < t ? 'A' + pair % 26 : i == t ? 2 : 0);
        ck_assert_int_eq(tn_get_i64(target_padding, row * T + i), i > t);
    }
}

TEST(batches_hold_every_pair_once)
{
    tn_pairs         *p = many();
    tn_pairs_batches *b = tn_pairs_batches_new(p, .tokens = 200, .examples = 12, .seed = 5);
    const tn_source   from = tn_pairs_source(b);
    int64_t           first[2] = {-1, -1}, filled = 0, all = 0, batches = 0;
    for (int epoch = 0; epoch < 2; epoch++) {
        int seen[MANY] = {0};
        for (tn_batch x;;) {
            tn_scope s = tn_scope_begin();
            if (!tn_source_next(&from, &x)) {
                tn_scope_end(s);
                break;
            }
            tn_tensor *pair = tn_batch_get(&x, "pair");
            int64_t    rows = tn_size(x.x, 0), tokens = 0, width = tn_size(x.y, 1) - 1;
            ck_assert(rows * tn_size(x.x, 1) <= 200 && rows * width <= 200 && rows <= 12);
            for (int64_t i = 0; i < rows; i++) {
                check_row(&x, i);
                seen[tn_get_i64(pair, i)]++;
                tokens += 2 + tn_get_i64(pair, i) * 11 % 29;
            }
            ck_assert_int_eq(x.items, tokens);
            if (first[epoch] < 0) first[epoch] = tn_get_i64(pair, 0);
            filled += tokens, all += rows * width, batches++;
            tn_scope_end(s);
        }
        ck_assert_int_eq(tn_error(), TN_OK);
        for (int i = 0; i < MANY; i++) ck_assert_int_eq(seen[i], 1);
        ck_assert(position(&from, "epoch") == epoch + 1 && position(&from, "batch") == 0);
    }
    ck_assert(first[0] != first[1]);                                                 /* another order */
    ck_assert_msg(filled > all * 9 / 10, "%.3f full", (double)filled / (double)all); /* similar lengths together */
    ck_assert_int_lt(batches, 2 * 90);
    tn_pairs_batches_free(b);
    tn_pairs_free(p);
}

TEST(in_order_and_alone)
{
    tn_pairs            *p = pairs_of("aaaa\nbbbbbbbbbbbbbbbb\nc\nd\n", "w\nx\ny\nz\n", plain);
    tn_pairs_batches    *b = tn_pairs_batches_new(p, .tokens = 8, .in_order = true);
    static const int64_t rows[] = {1, 1, 2};
    const tn_source      from = tn_pairs_source(b);
    tn_batch             x;
    ck_assert_int_eq(from.batches, 3);
    for (int64_t i = 0, at = 0; i < 3; at += rows[i++]) {
        ck_assert(tn_source_next(&from, &x) && tn_size(x.x, 0) == rows[i]);
        for (int64_t k = 0; k < rows[i]; k++) ck_assert_int_eq(tn_get_i64(tn_batch_get(&x, "pair"), k), at + k);
    }
    ck_assert(!tn_source_next(&from, &x) && !x.x);
    ck_assert(tn_source_next(&from, &x) && tn_get_i64(tn_batch_get(&x, "pair"), 0) == 0);
    tn_pairs_batches_free(b);
    tn_pairs_free(p);
}

/* The content of the next `n` batches as one number. */
static uint64_t digest(const tn_source *from, int n)
{
    uint64_t h = 7;
    for (int i = 0; i < n; i++) {
        tn_scope s = tn_scope_begin();
        tn_batch x;
        if (tn_source_next(from, &x))
            for (int64_t k = 0; k < tn_numel(x.x); k++) h = h * 31 + (uint64_t)tn_get_i64(x.x, k);
        else h = h * 31 + 1;
        tn_scope_end(s);
    }
    return h;
}

TEST(positions_resume_exactly)
{
    tn_pairs               *p = many();
    tn_pairs_batches_config how = {.tokens = 300, .seed = 9};
    tn_pairs_batches       *b = tn_pairs_batches_create(p, how);
    const tn_source         from = tn_pairs_source(b);
    int                     per_epoch = (int)from.batches;
    for (int at = 0; at < 2 * per_epoch + 3; at += 7) {
        seek(&from, 0, 0);
        digest(&from, at);
        const int64_t  epoch = position(&from, "epoch"), batch = position(&from, "batch");
        const uint64_t expected = digest(&from, 10);
        tn_set_threads(1 + at % 3);
        tn_pairs_batches *other = tn_pairs_batches_create(p, how);
        const tn_source   resumed = tn_pairs_source(other);
        ck_assert_int_eq(seek(&resumed, epoch, batch), TN_OK);
        ck_assert(digest(&resumed, 10) == expected);
        tn_pairs_batches_free(other);
    }
    tn_set_threads(0);
    const int64_t epoch = position(&from, "epoch"), batch = position(&from, "batch");
    seek(&from, 0, 100000);
    ck_error_has(TN_EINDEX, "tn_pairs_source: the checkpoint is at batch 100000, but epoch 0 has ");
    seek(&from, -1, 0);
    ck_error(TN_EINVAL, "tn_pairs_source: epoch and batch must be at least 0");
    ck_assert(position(&from, "epoch") == epoch && position(&from, "batch") == batch);
    how.seed = 10;
    tn_pairs_batches *other = tn_pairs_batches_create(p, how);
    const tn_source   reseeded = tn_pairs_source(other);
    seek(&from, 0, 0);
    ck_assert(digest(&from, 5) != digest(&reseeded, 5));
    tn_pairs_batches_free(other);
    tn_pairs_batches_free(b);
    tn_pairs_free(p);
}

TEST(no_memory)
{
    const char *a = file("a", "ab\nc\nlong line\n"), *t = file("b", "x\nyz\nw\n");
    int         failures = 0;
    tn_trim();
    tn_faulty_memory_begin();
    for (int64_t at = 0;; at++, failures++) {
        tn_fail_memory(at, false);
        tn_scope          s = tn_scope_begin();
        tn_pairs         *p = tn_pairs_load_run(a, t, plain);
        tn_pairs_batches *b = p ? tn_pairs_batches_new(p, .tokens = 10) : NULL;
        const tn_source   from = tn_pairs_source(b);
        tn_batch          x;
        bool              more = b && tn_source_next(&from, &x);
        if (b && !more) { /* the same batch is returned once memory is available */
            tn_fail_memory(-1, false);
            tn_error_state aside;
            tn_error_push(&aside);
            ck_assert(position(&from, "batch") == 0);
            ck_assert(tn_source_next(&from, &x) && position(&from, "batch") == 1);
            tn_error_pop(&aside);
        }
        tn_pairs_batches_free(b);
        tn_pairs_free(p);
        tn_scope_end(s);
        tn_fail_memory(-1, false);
        if (more) break;
        ck_error_code(TN_ENOMEM);
    }
    tn_faulty_memory_end();
    ck_assert_int_ge(failures, 15);
}
