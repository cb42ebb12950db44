/* test_corpus.c — batches for a masked language model: the cache, sentences, examples, masks, positions; damaged files,
 * files that are not text, failing memory and disk. */
#include "tests/common/check_main.h"

#include "data/data.h"
#include "tests/common/faults.h"
#include "tests/common/positions.h"
#include <errno.h>

enum { PAD, CLS, SEP, MASK, WORDS = 10, VOCABULARY = 300 };

/* "w17" is token 27; "+" before a word makes it an inner one (odd tokens are inner, when kinds say so); "!" fails. */
static tn_status words_of(void *user, tn_text line, tn_ids *to)
{
    (void)user;
    for (size_t i = 0; i < line.bytes; i++) {
        if (line.at[i] == '!') return tn_raise(TN_EFORMAT, "no shouting");
        if (line.at[i] != 'w') continue;
        int32_t id = WORDS;
        int     v = 0;
        while (i + 1 < line.bytes && line.at[i + 1] >= '0' && line.at[i + 1] <= '9') v = 10 * v + line.at[++i] - '0';
        if (tn_ids_add(to, id + v) != TN_OK) return tn_error();
    }
    return TN_OK;
}

static const char *file(const char *name, const char *text)
{
    const char *path = tn_test_file(name);
    ck_assert_int_eq(tn_file_write(path, text, strlen(text)), TN_OK);
    return path;
}

static tn_corpus *open_corpus(int n, const char *const *files, uint64_t sum, bool by_rule)
{
    return tn_corpus_open(.files = files, .n = n, .cache = tn_test_file("cache"), .encoder = {words_of, NULL},
                          .encoder_sum = sum, .vocabulary = VOCABULARY, .by_rule = by_rule);
}

/* Documents whose words give their position: word 0 … 249 repeated through the whole text. */
static const char *story(const char *name, int documents)
{
    char *text = calloc(1, (size_t)documents * 6000), *p = text;
    for (int d = 0, w = 0; d < documents; d++) {
        for (int s = 0; s < 3 + d * 5 % 11; s++) {
            for (int k = 0; k < 2 + (d * 7 + s * 3) % 13; k++) p += sprintf(p, "w%d ", w++ % 250);
            *p++ = '\n';
        }
        *p++ = '\n';
    }
    const char *path = file(name, text);
    free(text);
    return path;
}

/* ---- the cache --------------------------------------------------------------------------------------------------- */

static uint64_t ids_of(const tn_corpus *c)
{
    uint64_t h = 1;
    tn_ids   ids = {0};
    for (int64_t i = 0; i < tn_corpus_sentences(c); i++) {
        ids.n = 0;
        ck_assert_int_eq(tn_corpus_sentence(c, i, &ids), TN_OK);
        for (int64_t k = 0; k < ids.n; k++) h = h * 31 + (uint64_t)ids.at[k];
        h = h * 31 + 1000;
    }
    tn_ids_free(&ids);
    return h;
}

TEST(made_once_and_found_again)
{
    const char *files[] = {file("a", "\xef\xbb\xbfw1 w2\nw3\n\n\nw4 w5 w6\n \nw7"),
                           file("b", "w8\r\n\t\r\nw9 w10\n???\n")};
    tn_corpus  *c = open_corpus(2, files, 1, false);
    ck_assert_msg(c, "%s", tn_error_message());
    ck_assert(tn_corpus_made(c) && tn_corpus_documents(c) == 5 && tn_corpus_sentences(c) == 6 &&
              tn_corpus_tokens(c) == 10);
    tn_ids ids = {0};
    tn_corpus_sentence(c, 2, &ids);
    tn_corpus_sentence(c, 0, &ids);
    ck_assert(ids.n == 5 && ids.at[0] == 14 && ids.at[2] == 16 && ids.at[3] == 11 && ids.at[4] == 12);
    tn_ids_free(&ids);
    tn_corpus_sentence(c, 6, &ids);
    ck_error(TN_EINDEX, "tn_corpus_sentence: no sentence 6; the corpus has 6, counted from 0");
    uint64_t before = ids_of(c), sum = tn_corpus_checksum(c);
    tn_corpus_close(c);
    c = open_corpus(2, files, 1, false);
    ck_assert(c && !tn_corpus_made(c) && ids_of(c) == before && tn_corpus_checksum(c) == sum);
    tn_corpus_close(c);
    c = open_corpus(2, files, 2, false); /* another encoder */
    ck_assert(c && tn_corpus_made(c) && tn_corpus_checksum(c) != sum);
    tn_corpus_close(c);
    file("b", "w8\r\n\t\r\nw9 w11\n???\n"); /* another text of the same length */
    c = open_corpus(2, files, 2, false);
    ck_assert(c && tn_corpus_made(c) && ids_of(c) != before);
    tn_corpus_close(c);
}

TEST(damage_is_seen)
{
    const char *files[] = {story("a", 5)}, *cache = tn_test_file("cache");
    tn_corpus  *c = open_corpus(1, files, 1, false);
    uint64_t    expected = ids_of(c);
    tn_corpus_close(c);
    tn_tensor     *whole = tn_file_read(cache, 1 << 20);
    int64_t        n = tn_numel(whole);
    unsigned char *bytes = malloc((size_t)n);
    memcpy(bytes, tn_data(whole), (size_t)n);
    for (int64_t at = 0; at < n; at += at < 20 || at > n - 80 ? 1 : 37) {
        bytes[at] ^= 0x10;
        ck_assert_int_eq(tn_file_write(cache, bytes, (size_t)n), TN_OK);
        c = open_corpus(1, files, 1, false);
        if (at < 8) { /* not a cache: perhaps a user's file */
            ck_assert(!c && tn_error() == TN_EINVAL && strstr(tn_error_message(), "not a corpus cache"));
            tn_clear_error();
            bytes[at] ^= 0x10;
            continue;
        }
        ck_assert_msg(c && tn_corpus_made(c) && ids_of(c) == expected, "byte %lld: %s", (long long)at,
                      tn_error_message());
        tn_corpus_close(c);
        bytes[at] ^= 0x10;
    }
    for (int64_t cut = 0; cut < n; cut += 1 + n / 40) {
        ck_assert_int_eq(tn_file_write(cache, bytes, (size_t)cut), TN_OK);
        c = open_corpus(1, files, 1, false);
        ck_assert(c && tn_corpus_made(c) && ids_of(c) == expected);
        tn_corpus_close(c);
    }
    free(bytes);
}

TEST(sentences_by_rule)
{
    const char *files[] = {file("a",
                                "w1 w2. w3 Mr. W. A. w4 met Dr. w5? \"W6 w6?\" Now w7 e.g. w8 is 3.5 w9\nw10 goes\non. "
                                "Yes.\n\nw11 ... W12 w12.) «Été» w13\n")};
    /* no end before lower case or after abbreviations; "Now" has a w, which is token 0; "Yes." has no token: no
     * sentence */
    static const char wanted[] = "1 2 3 4 5 . 6 . 0 7 8 9 10 . 11 . 12 . 13 . ";
    tn_corpus        *c = open_corpus(1, files, 1, true);
    ck_assert_msg(c && tn_corpus_documents(c) == 2, "%s", tn_error_message());
    tn_ids ids = {0};
    char   text[200] = "";
    for (int64_t i = 0; i < tn_corpus_sentences(c); i++) {
        ids.n = 0;
        tn_corpus_sentence(c, i, &ids);
        for (int64_t k = 0; k < ids.n; k++) sprintf(text + strlen(text), "%d ", (int)ids.at[k] - WORDS);
        strcat(text, ". ");
    }
    ck_assert_str_eq(text, wanted);
    tn_ids_free(&ids);
    tn_corpus_close(c);
    /* an endless text is cut, not read into memory */
    char *endless = malloc(400001);
    for (int i = 0; i < 400000; i++) endless[i] = "w7 "[i % 3];
    endless[400000] = 0;
    files[0] = file("a", endless);
    c = open_corpus(1, files, 1, true);
    ck_assert(c && tn_corpus_sentences(c) == 7 && tn_corpus_tokens(c) >= 133333);
    tn_corpus_close(c);
    free(endless);
}

static void refused(tn_corpus *c, tn_status code, const char *part) { ck_refused_has(c, code, part); }

TEST(refuses)
{
    const char *files[] = {file("a", "")}, *cache = tn_test_file("cache");
    remove(cache);
    refused(open_corpus(1, files, 1, false), TN_EFORMAT, "no text found in ");
    file("a", "w1\nw2 !\n");
    refused(open_corpus(1, files, 1, false), TN_EFORMAT, "no shouting");
    file("a", "w1\nw2\nw290\n");
    refused(open_corpus(1, files, 1, false), TN_EINDEX, "line 3: the encoder returned token 300, outside 0 … 299");
    ck_assert_int_eq(tn_file_write(files[0], "w1\nw\0002\n", 7), TN_OK);
    refused(open_corpus(1, files, 1, false), TN_EFORMAT, "line 2 has a NUL byte");
    char *line = malloc(17 << 20);
    memset(line, 'x', 17 << 20);
    ck_assert_int_eq(tn_file_write(files[0], line, 17 << 20), TN_OK);
    free(line);
    refused(open_corpus(1, files, 1, false), TN_EFORMAT,
            "line 1 has more than 16777216 bytes; expected a text with line ends");
    ck_assert_int_eq(tn_file_write(cache, "my only text\n", 13), TN_OK);
    file("a", "w1\n");
    refused(open_corpus(1, files, 1, false), TN_EINVAL,
            "cache': the file exists and is not a corpus cache; choose "
            "another name or remove it");
    remove(cache);
    files[0] = tn_test_file("nowhere");
    refused(open_corpus(1, files, 1, false), TN_EIO, "nowhere': cannot open: no such file");
    refused(open_corpus(0, files, 1, false), TN_EINVAL, ".files is empty; name at least one text file");
    FILE *f = fopen(cache, "rb");
    ck_assert_ptr_null(f); /* no partial file is left */
}

/* ---- batches ----------------------------------------------------------------------------------------------------- */

static uint8_t kinds[VOCABULARY];

static tn_mlm_config plain(void)
{
    memset(kinds, 0, sizeof kinds);
    memset(kinds, TN_TOKEN_SPECIAL, WORDS);
    return (tn_mlm_config){.max_tokens = 32,
                           .pad = PAD,
                           .cls = CLS,
                           .sep = SEP,
                           .mask = MASK,
                           .kinds = kinds,
                           .rate = 0.15,
                           .tokens = 256,
                           .seed = 3,
                           .ahead = 2};
}

typedef struct {
    int64_t masked, changed[3], tokens, ordinary; /* replaced by mask, by another token, unchanged */
    int64_t seen[250], rows, random_next, by_chance;
} counts;

/* Restores the masked tokens of a row; checks the invariants of every batch. */
static void check_batch(const tn_mlm_batch *b, const tn_mlm_config *config, counts *k)
{
    int64_t  R = tn_size(b->ids, 0), T = tn_size(b->ids, 1), M = tn_size(b->masked_at, 0), tokens = 0;
    int64_t *ids = malloc((size_t)(R * T) * sizeof *ids), last = -1;
    ck_assert(R * T <= 256 || R == 1);
    for (int64_t i = 0; i < R * T; i++) {
        ids[i] = tn_get_i64(b->ids, i);
        ck_assert_int_eq(tn_get_i64(b->padding, i), ids[i] == PAD);
        tokens += ids[i] != PAD;
    }
    ck_assert_int_eq(tokens, b->tokens);
    for (int64_t i = 0; i < M; i++) {
        int64_t at = tn_get_i64(b->masked_at, i), was = tn_get_i64(b->masked_ids, i);
        ck_assert(at > last && at < R * T && was >= WORDS && was < WORDS + 250);
        ck_assert(ids[at] == MASK || ids[at] >= WORDS); /* never replaced by a special token */
        k->changed[ids[at] == MASK ? 0 : ids[at] != was ? 1 : 2]++;
        ids[at] = was, last = at;
    }
    k->masked += M, k->tokens += tokens, k->rows += R;
    for (int64_t r = 0; r < R; r++) {
        const int64_t *row = ids + r * T;
        int64_t        n = T, seps = 0, ordinary = 0;
        while (row[n - 1] == PAD) n--;
        ck_assert(row[0] == CLS && row[n - 1] == SEP && n <= config->max_tokens);
        for (int64_t i = 1; i < n; i++) {
            ck_assert_int_eq(tn_get_i64(b->segments, r * T + i), config->pairs && seps > 0);
            seps += row[i] == SEP;
            if (row[i] == SEP) continue;
            ordinary++;
            k->seen[row[i] - WORDS]++;
            if (row[i - 1] >= WORDS) ck_assert_int_eq((row[i] - row[i - 1] + 250) % 250, 1); /* the text continues */
        }
        ck_assert_int_eq(seps, config->pairs ? 2 : 1);
        int64_t here = 0;
        for (int64_t i = 0; i < M; i++) here += tn_get_i64(b->masked_at, i) / T == r;
        if (config->pairs) {
            int64_t sep = 1;
            while (row[sep] != SEP) sep++;
            bool other = tn_get_i64(b->next, r);
            bool follows = (row[sep + 1] - row[sep - 1] + 250) % 250 == 1;
            ck_assert(other || follows);
            k->random_next += other;
            k->by_chance += other && follows; /* once in 250 */
        } else if (!config->whole_words) {
            int64_t wanted = (int64_t)((double)ordinary * 0.15 + 0.5);
            ck_assert_int_eq(here, wanted < 1 ? 1 : wanted);
        }
        k->ordinary += ordinary;
    }
    free(ids);
}

static counts epoch_of(tn_mlm *b, const tn_mlm_config *config)
{
    counts k = {0};
    for (tn_mlm_batch x;;) {
        tn_scope s = tn_scope_begin();
        bool     more = tn_mlm_next(b, &x);
        if (more) check_batch(&x, config, &k);
        tn_scope_end(s);
        if (!more) break;
    }
    ck_assert_msg(tn_error() == TN_OK, "%s", tn_error_message());
    return k;
}

TEST(full_sentences)
{
    const char   *files[] = {story("a", 80)};
    tn_corpus    *c = open_corpus(1, files, 1, false);
    tn_mlm_config config = plain();
    tn_mlm       *b = tn_mlm_create(c, config);
    counts        all = {0};
    int64_t       rows = 0;
    ck_assert_msg(b, "%s", tn_error_message());
    for (int epoch = 0; epoch < 10; epoch++) {
        counts k = epoch_of(b, &config);
        ck_assert_int_eq(k.ordinary, tn_corpus_tokens(c)); /* every token once */
        if (!epoch) rows = k.rows;
        ck_assert_int_eq(k.rows, rows);
        int64_t least = INT64_MAX, most = 0;
        for (int i = 0; i < 250; i++)
            least = k.seen[i] < least ? k.seen[i] : least, most = k.seen[i] > most ? k.seen[i] : most;
        ck_assert_int_le(most - least, 1);
        all.masked += k.masked;
        for (int i = 0; i < 3; i++) all.changed[i] += k.changed[i];
    }
    const tn_source source = tn_mlm_source(b);
    ck_assert(position(&source, "epoch") == 10);
    /* 80/10/10 within four standard deviations; a random token is the original one time in 250 */
    double n = (double)all.masked, sd = 4 * 0.3 * __builtin_sqrt(n);
    ck_assert_msg(n > 5000 && __builtin_fabs((double)all.changed[0] - 0.8 * n) < 4 * 0.4 * __builtin_sqrt(n) &&
                      __builtin_fabs((double)all.changed[1] - 0.1 * n) < sd &&
                      __builtin_fabs((double)all.changed[2] - 0.1 * n) < sd,
                  "of %.0f: %lld %lld %lld", n, (long long)all.changed[0], (long long)all.changed[1],
                  (long long)all.changed[2]);
    tn_mlm_free(b);
    tn_corpus_close(c);
}

TEST(sentence_pairs)
{
    const char   *files[] = {story("a", 80)};
    tn_corpus    *c = open_corpus(1, files, 1, false);
    tn_mlm_config config = plain();
    config.pairs = true;
    tn_mlm *b = tn_mlm_create(c, config);
    double  rows = 0, other = 0, by_chance = 0;
    for (int epoch = 0; epoch < 10; epoch++) {
        counts k = epoch_of(b, &config);
        rows += (double)k.rows, other += (double)k.random_next, by_chance += (double)k.by_chance;
    }
    ck_assert_msg(rows > 1000 && __builtin_fabs(other - rows / 2) < 2 * __builtin_sqrt(rows), "%.0f of %.0f", other,
                  rows);
    ck_assert_msg(by_chance < 0.02 * other, "%.0f of %.0f", by_chance, other);
    tn_mlm_free(b);
    tn_corpus_close(c);
    files[0] = file("a", "w1\nw2\n");
    c = open_corpus(1, files, 1, false);
    ck_refused(tn_mlm_create(c, config), TN_EINVAL,
               "tn_mlm_new: .pairs takes sentences from other documents and needs at least two, separated by "
               "empty lines");
    tn_corpus_close(c);
}

TEST_EACH(whole_words, 2)
{
    const char   *files[] = {story("a", 40)};
    tn_corpus    *c = open_corpus(1, files, 1, false);
    tn_mlm_config config = plain();
    config.whole_words = true, config.spans = _i ? 3 : 0;
    for (int i = WORDS; i < VOCABULARY; i++) kinds[i] = i % 3 ? TN_TOKEN_INNER : 0; /* words of three tokens */
    tn_mlm      *b = tn_mlm_create(c, config);
    tn_mlm_batch x;
    int64_t      checked = 0;
    for (; tn_mlm_next(b, &x); checked++) {
        int64_t M = tn_size(x.masked_at, 0), T = tn_size(x.ids, 1);
        for (int64_t i = 0; i < M; i++) {
            int64_t at = tn_get_i64(x.masked_at, i), id = tn_get_i64(x.masked_ids, i);
            if (id % 3 && at % T > 1) { /* inner: the token before it is masked too, or starts the row */
                bool before = i && tn_get_i64(x.masked_at, i - 1) == at - 1;
                ck_assert(before || tn_get_i64(x.ids, at - 1) == CLS);
            }
            int64_t next = at % T + 1 < T ? tn_get_i64(x.ids, at + 1) : SEP;
            bool    next_masked = i + 1 < M && tn_get_i64(x.masked_at, i + 1) == at + 1;
            if (!next_masked && next >= WORDS) ck_assert_int_eq(next % 3, 0);
        }
    }
    ck_assert_int_gt(checked, 5);
    tn_mlm_free(b);
    tn_corpus_close(c);
}

/* Two segments of one document, in order or not: `next` gives the order. */
TEST(order_of_pairs)
{
    const char   *files[] = {story("a", 1)};
    tn_corpus    *c = open_corpus(1, files, 1, false);
    tn_mlm_config config = plain();
    config.pairs = config.order = true, config.rate = 1e-9; /* one word of each row */
    tn_mlm      *b = tn_mlm_create(c, config);
    tn_mlm_batch x;
    int64_t      rows = 0, swapped = 0;
    ck_assert_msg(b, "%s", tn_error_message());
    for (int epoch = 0; epoch < 200; epoch++)
        while (tn_mlm_next(b, &x)) {
            const int64_t T = tn_size(x.ids, 1);
            for (int64_t i = 0; i < tn_numel(x.masked_at); i++)
                tn_set_i64(x.ids, tn_get_i64(x.masked_at, i), tn_get_i64(x.masked_ids, i));
            for (int64_t r = 0; r < tn_size(x.ids, 0); r++, rows++) {
                int64_t sep = 1, end = T - 1;
                while (tn_get_i64(x.ids, r * T + sep) != SEP) sep++;
                while (tn_get_i64(x.ids, r * T + end) != SEP) end--;
                const bool    turned = tn_get_i64(x.next, r);
                const int64_t before = tn_get_i64(x.ids, r * T + (turned ? end - 1 : sep - 1)),
                              behind = tn_get_i64(x.ids, r * T + (turned ? 1 : sep + 1));
                ck_assert_int_eq((behind - before + 250) % 250, 1);
                swapped += turned;
            }
        }
    ck_assert_msg(rows >= 200 && llabs(2 * swapped - rows) < 6 * (int64_t)__builtin_sqrt((double)rows), "%lld of %lld",
                  (long long)swapped, (long long)rows);
    tn_mlm_free(b);
    config.pairs = false;
    ck_refused(tn_mlm_create(c, config), TN_EINVAL, "tn_mlm_new: .order needs .pairs");
    tn_corpus_close(c);
}

/* As many masked tokens as without spans, but more of them adjacent: with spans of 1, 2 and 3 of probabilities 6/11,
 * 3/11 and 2/11, one token in 18/11 is the last of its span, and the next one may be masked at random too. */
TEST(spans)
{
    const char   *files[] = {story("a", 80)};
    tn_corpus    *c = open_corpus(1, files, 1, false);
    tn_mlm_config config = plain();
    double        beside[2] = {0, 0};
    for (int i = 0; i < 2; i++) {
        int64_t      masked = 0, together = 0;
        tn_mlm_batch x;
        config.spans = i ? 3 : 0;
        tn_mlm *b = tn_mlm_create(c, config);
        epoch_of(b, &config); /* 15 % of each row */
        for (int epoch = 0; epoch < 5; epoch++)
            while (tn_mlm_next(b, &x))
                for (int64_t k = 0; k < tn_numel(x.masked_at); k++, masked++)
                    together += k && tn_get_i64(x.masked_at, k) == tn_get_i64(x.masked_at, k - 1) + 1;
        beside[i] = (double)together / (double)masked;
        tn_mlm_free(b);
    }
    ck_assert_msg(beside[0] > 0.05 && beside[0] < 0.2, "%g", beside[0]);
    ck_assert_msg(beside[1] > 0.3 && beside[1] < 0.6, "%g", beside[1]);
    config.spans = 65;
    ck_refused(tn_mlm_create(c, config), TN_EINVAL, "tn_mlm_new: .spans is 65, expected 0 to 64");
    tn_corpus_close(c);
}

/* For XLNet: rows end in sep cls, cls has a segment of its own, no token is replaced; the tokens to predict, sep and
 * cls have the ranks 0, 1, … of their row, in a random order, and all others -1. */
TEST(permuted)
{
    const char   *files[] = {story("a", 40)};
    tn_corpus    *c = open_corpus(1, files, 1, false);
    tn_mlm_config config = plain();
    config.permuted = true, config.spans = 5;
    tn_mlm      *b = tn_mlm_create(c, config);
    tn_mlm_batch x;
    int64_t      rows = 0, after = 0; /* rows in which cls comes after sep */
    ck_assert_msg(b, "%s", tn_error_message());
    for (int epoch = 0; epoch < 3; epoch++)
        while (tn_mlm_next(b, &x)) {
            const int64_t T = tn_size(x.ids, 1);
            int64_t       k = 0;
            for (int64_t r = 0; r < tn_size(x.ids, 0); r++, rows++) {
                int64_t n = T, ranked = 0, sum = 0;
                while (tn_get_i64(x.padding, r * T + n - 1)) n--;
                ck_assert(tn_get_i64(x.ids, r * T + n - 1) == CLS && tn_get_i64(x.ids, r * T + n - 2) == SEP);
                for (int64_t i = 0; i < T; i++) {
                    const int64_t at = r * T + i, rank = tn_get_i64(x.order, at);
                    const bool    target = k < tn_numel(x.masked_at) && tn_get_i64(x.masked_at, k) == at;
                    ck_assert_int_eq(tn_get_i64(x.segments, at), i == n - 1 ? 2 : 0);
                    ck_assert((rank >= 0) == (target || i == n - 2 || i == n - 1));
                    if (target) ck_assert_int_eq(tn_get_i64(x.ids, at), tn_get_i64(x.masked_ids, k++));
                    ck_assert(i < n - 2 ? i == 0 || (tn_get_i64(x.ids, at) + 250 - tn_get_i64(x.ids, at - 1)) % 250 == 1
                                        : true);
                    if (rank >= 0) ranked++, sum += rank;
                }
                ck_assert_int_eq(sum, ranked * (ranked - 1) / 2);
                after += tn_get_i64(x.order, r * T + n - 1) > tn_get_i64(x.order, r * T + n - 2);
            }
            ck_assert_int_eq(k, tn_numel(x.masked_at));
        }
    ck_assert_msg(rows > 100 && llabs(2 * after - rows) < 4 * (int64_t)__builtin_sqrt((double)rows), "%lld of %lld",
                  (long long)after, (long long)rows);
    tn_mlm_free(b);
    config.pairs = true;
    ck_refused(tn_mlm_create(c, config), TN_EINVAL, "tn_mlm_new: .permuted excludes .pairs");
    tn_corpus_close(c);
}

static uint64_t digest(tn_mlm *b, int n)
{
    uint64_t h = 7;
    for (int i = 0; i < n; i++) {
        tn_scope     s = tn_scope_begin();
        tn_mlm_batch x;
        if (tn_mlm_next(b, &x)) {
            for (int64_t k = 0; k < tn_numel(x.ids); k++) h = h * 31 + (uint64_t)tn_get_i64(x.ids, k);
            for (int64_t k = 0; k < tn_numel(x.masked_at); k++) h = h * 31 + (uint64_t)tn_get_i64(x.masked_at, k);
        } else {
            h = h * 31 + 1;
        }
        tn_scope_end(s);
    }
    return h;
}

TEST(positions_resume_exactly)
{
    const char   *files[] = {story("a", 40)};
    tn_corpus    *c = open_corpus(1, files, 1, false);
    tn_mlm_config config = plain();
    for (int pairs = 0; pairs < 2; pairs++) {
        config.pairs = pairs;
        config.ahead = 3;
        tn_mlm *b = tn_mlm_create(c, config);
        config.ahead = 0;
        tn_mlm         *plainly = tn_mlm_create(c, config);
        const tn_source source = tn_mlm_source(b), plain_source = tn_mlm_source(plainly);
        const int       per_epoch = (int)source.batches;
        for (int at = 0; at < 2 * per_epoch; at += 5) {
            ck_assert_int_eq(seek(&source, 0, 0), TN_OK);
            digest(b, at);
            const int64_t  epoch = position(&source, "epoch"), batch = position(&source, "batch");
            const uint64_t expected = digest(b, 6);
            ck_assert_int_eq(seek(&plain_source, epoch, batch), TN_OK);
            tn_set_threads(1 + at % 3);
            ck_assert(digest(plainly, 6) == expected);
        }
        tn_set_threads(0);
        /* masks are redrawn, or fixed */
        seek(&source, 0, 0);
        uint64_t first = digest(b, per_epoch + 1), second = digest(b, per_epoch + 1);
        ck_assert(first != second);
        tn_mlm_config still = config;
        still.fixed = still.in_order = true;
        tn_mlm *fixed = tn_mlm_create(c, still);
        first = digest(fixed, (int)tn_mlm_source(fixed).batches + 1),
        second = digest(fixed, (int)tn_mlm_source(fixed).batches + 1);
        ck_assert(first == second);
        tn_mlm_free(fixed);
        tn_mlm_free(b);
        tn_mlm_free(plainly);
    }
    tn_corpus_close(c);
}

TEST(misuse)
{
    const char   *files[] = {story("a", 4)};
    tn_corpus    *c = open_corpus(1, files, 1, false);
    tn_mlm_config config = plain();
    config.mask = 300;
    ck_refused(tn_mlm_create(c, config), TN_EINDEX, "tn_mlm_new: .mask is token 300, outside 0 … 299");
    config = plain(), config.max_tokens = 3;
    ck_refused(tn_mlm_create(c, config), TN_EINVAL, "tn_mlm_new: .max_tokens is 3, expected 4 to 16384");
    config = plain();
    tn_mlm         *b = tn_mlm_create(c, config);
    const tn_source source = tn_mlm_source(b);
    seek(&source, 0, 1000);
    ck_error_has(TN_EINDEX, "tn_mlm_source: the checkpoint is at batch 1000, but an epoch has ");
    seek(&source, -1, 0);
    ck_error(TN_EINVAL, "tn_mlm_source: epoch and batch must be at least 0");
    ck_refused(tn_mlm_create(NULL, config), TN_EINVAL, "tn_mlm_new: c is NULL");
    tn_mlm_free(b);
    tn_corpus_close(c);
}

/* ---- faults ------------------------------------------------------------------------------------------------------ */

static void no_memory_with(int ahead, bool pairs)
{
    const char   *files[] = {story("a", 6)};
    tn_mlm_config config = plain();
    config.ahead = ahead, config.pairs = pairs;
    int      failures = 0;
    uint64_t expected = 0;
    tn_trim();
    for (int round = 0; round < 2; round++) {
        if (round) tn_faulty_memory_begin();
        for (int64_t at = 0;; at++, failures++) {
            remove(tn_test_file("cache"));
            if (round) tn_fail_memory(at, false);
            tn_scope   s = tn_scope_begin();
            tn_corpus *c = open_corpus(1, files, 1, false);
            tn_mlm    *b = c ? tn_mlm_create(c, config) : NULL;
            uint64_t   got = 0;
            for (int k = 0; b && k < 3; k++) {
                tn_mlm_batch x;
                while (!tn_mlm_next(b, &x) && tn_error() == TN_ENOMEM)
                    tn_clear_error(), failures++; /* again, with the same result */
                for (int64_t i = 0; x.ids && i < tn_numel(x.ids); i++) got = got * 31 + (uint64_t)tn_get_i64(x.ids, i);
            }
            tn_mlm_free(b);
            tn_corpus_close(c);
            tn_scope_end(s);
            if (b) {
                if (!round) expected = got;
                ck_assert(got == expected);
                if (!round || tn_memory_calls() <= at) break;
                continue;
            }
            ck_error_code(TN_ENOMEM);
        }
        if (round) tn_faulty_memory_end();
        else tn_trim();
    }
    ck_assert_int_ge(failures, 20);
}

TEST(no_memory)
{
    no_memory_with(0, false);
    no_memory_with(0, true);
    no_memory_with(2, true);
}

TEST(no_disk)
{
    const char *files[] = {story("a", 6)}, *cache = tn_test_file("cache");
    remove(cache);
    int beside = tn_names_beside(cache), failures = 0;
    for (int64_t at = 0;; at++, failures++) {
        remove(cache);
        tn_faulty_files_begin();
        tn_fail_file(at, ENOSPC, false);
        tn_corpus *c = open_corpus(1, files, 1, false);
        tn_corpus_close(c);
        tn_fail_file(-1, 0, false);
        tn_faulty_files_end();
        if (c && tn_error() == TN_OK && at > 40) break;
        if (!c) {
            ck_error_code(TN_EIO);
            /* the cache exists only if it is complete */
            tn_corpus *whole = open_corpus(1, files, 1, false);
            ck_assert(whole && tn_corpus_sentences(whole) > 20);
            tn_corpus_close(whole);
            ck_assert_int_eq(tn_names_beside(cache), beside + 1);
        }
    }
    ck_assert_int_ge(failures, 15);
}
