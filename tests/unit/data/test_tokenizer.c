/* test_tokenizer.c — tokenizers compared with Hugging Face's (golden/pieces.json): token ids, their byte ranges,
 * decoding, training; and the parts of an encoding: pairs, cutting, padding, special tokens, batches. */
#include "tests/common/check_main.h"

#include "data/data.h"

static tn_json *golden;
static void     open_golden(void)
{
    golden = tn_json_load(tn_test_data("golden/pieces.json"));
    ck_assert_msg(golden != NULL, "%s", tn_error_message());
}
static void close_golden(void) { tn_json_free(golden); }
AROUND_TESTS(open_golden, close_golden);

static const tn_json *entry(const char *name)
{
    for (const tn_json *t = tn_json_first(tn_json_get(golden, "tokenizers")); t; t = tn_json_next(t))
        if (!strcmp(tn_json_string(tn_json_get(t, "name")), name)) return t;
    return NULL;
}

static tn_tokenizer *make(const char *name)
{
    const tn_json *json = tn_json_get(entry(name), "json");
    const size_t   bytes = (size_t)tn_json_string_bytes(json);
    tn_tokenizer  *t;
    if (!strcmp(name, "slow")) { /* no tokenizer.json specifies it */
        const char *path = tn_test_file("slow.json");
        ck_assert_int_eq(tn_file_write(path, tn_json_string(json), bytes), TN_OK);
        t = tn_tokenizer_load(path, .slow = true);
    } else {
        t = tn_tokenizer_parse(tn_json_string(json), bytes);
    }
    ck_assert_msg(t != NULL, "%s: %s", name, tn_error_message());
    return t;
}

static const char *const names[] = {"uncased", "cased", "bpe", "bytes", "spaced", "slow"};

/* Hugging Face counts characters: a token with some of a character's bytes has all of it. */
static void round_out(const char *text, int64_t bytes, int32_t *start, int32_t *end)
{
    while (*start > 0 && *start < bytes && ((unsigned char)text[*start] & 0xc0) == 0x80) --*start;
    while (*end<bytes && * end> 0 && ((unsigned char)text[*end] & 0xc0) == 0x80) ++*end;
}

static void check_case(const tn_tokenizer *t, tn_encoding *e, const tn_json *c)
{
    const tn_json *text = tn_json_get(c, "text"), *pair = tn_json_get(c, "pair"), *ids = tn_json_get(c, "ids");
    const char    *s = tn_json_string(text);
    const int64_t  bytes = tn_json_string_bytes(text);
    ck_assert_int_eq(tn_tokenizer_encode(t, e, s, (size_t)bytes, .bare = !pair, .pair = pair ? tn_json_string(pair) : 0,
                                         .pair_bytes = (size_t)tn_json_string_bytes(pair)),
                     TN_OK);
    ck_assert_msg(e->n == tn_json_count(ids), "'%s': %lld pieces, expected %lld", s, (long long)e->n,
                  (long long)tn_json_count(ids));
    for (int64_t i = 0; i < e->n; i++) {
        ck_assert_msg(e->id[i] == tn_json_i64(tn_json_at(ids, i)), "'%s': piece %lld is %d '%s', expected %lld", s,
                      (long long)i, e->id[i], tn_tokenizer_token(t, e->id[i]),
                      (long long)tn_json_i64(tn_json_at(ids, i)));
        if (pair) {
            ck_assert_int_eq(e->segment[i], tn_json_i64(tn_json_at(tn_json_get(c, "types"), i)));
            continue;
        }
        if (!tn_json_get(c, "spans")) continue;
        const tn_json *span = tn_json_at(tn_json_get(c, "spans"), i);
        int32_t        start = e->start[i], end = e->end[i];
        round_out(s, bytes, &start, &end);
        ck_assert_msg(start == tn_json_i64(tn_json_at(span, 0)) && end == tn_json_i64(tn_json_at(span, 1)),
                      "'%s': piece %lld is of bytes %d to %d, expected %lld to %lld", s, (long long)i, start, end,
                      (long long)tn_json_i64(tn_json_at(span, 0)), (long long)tn_json_i64(tn_json_at(span, 1)));
    }
    const tn_json *decoded = tn_json_get(c, "decoded");
    if (!decoded) return;
    tn_string back = {0};
    ck_assert_int_eq(tn_tokenizer_decode(t, e->id, e->n, &back), TN_OK);
    ck_assert_int_eq((int64_t)back.bytes, tn_json_string_bytes(decoded));
    ck_assert_msg(!memcmp(back.at, tn_json_string(decoded), back.bytes), "'%s' is decoded as '%s', expected '%s'", s,
                  back.at, tn_json_string(decoded));
    tn_string_free(&back);
}

TEST_EACH(equals_golden, 6)
{
    tn_tokenizer *t = make(names[_i]);
    tn_encoding  *e = tn_encoding_new();
    for (int round = 0; round < 20; round++) /* the later ones with cached words */
        for (const tn_json *c = tn_json_first(tn_json_get(entry(names[_i]), "cases")); c; c = tn_json_next(c))
            check_case(t, e, c);
    tn_encoding_free(e);
    tn_tokenizer_free(t);
}

/* ---- training ---------------------------------------------------------------------------------------------------- */

static tn_tokenizer *trained(const char *name, int threads)
{
    const tn_json *text = tn_json_get(golden, "text");
    tn_set_threads(threads);
    tn_tokenizer *t =
        tn_tokenizer_train_text(tn_json_string(text), (size_t)tn_json_string_bytes(text), .cased = *name == 'c',
                                .vocab_size = *name == 'u' || *name == 'c' ? 500 : 400,
                                .kind = !strcmp(name, "bpe") ? TN_BPE
                                        : *name == 'b'       ? TN_BYTE_BPE
                                                             : TN_WORDPIECE);
    tn_set_threads(0);
    ck_assert_msg(t != NULL, "%s: %s", name, tn_error_message());
    return t;
}

TEST_EACH(trains_the_same, 4)
{
    tn_tokenizer *t = trained(names[_i], 1), *same = trained(names[_i], 3), *theirs = make(names[_i]);
    ck_assert_int_eq(tn_tokenizer_size(t), tn_tokenizer_size(theirs));
    ck_assert_int_eq(tn_tokenizer_size(t), tn_tokenizer_size(same));
    for (int64_t i = 0; i < tn_tokenizer_size(t); i++) {
        const char *piece = tn_tokenizer_token(t, i);
        ck_assert_str_eq(piece, tn_tokenizer_token(same, i));
        if (t && strcmp(names[_i], "bpe") != 0) ck_assert_str_eq(piece, tn_tokenizer_token(theirs, i));
        else ck_assert_msg(tn_tokenizer_id(theirs, piece) >= 0, "'%s' is not in the reference's", piece);
    }
    tn_tokenizer_free(t), tn_tokenizer_free(same), tn_tokenizer_free(theirs);
}

TEST(trains_the_lectures_words)
{
    const char *text = "low low low low low lower lower newest newest newest newest newest newest widest widest widest";
    tn_tokenizer *t = tn_tokenizer_train_text(text, strlen(text), .kind = TN_BPE);
    const char   *merges[] = {"es", "est</w>", "lo", "ew", "new", "newest</w>", "low</w>"};
    int64_t       before = 0;
    for (int i = 0; i < 7; i++) {
        const int64_t id = tn_tokenizer_id(t, merges[i]);
        ck_assert_msg(id > before, "%s is %lld", merges[i], (long long)id);
        before = id;
    }
    tn_tokenizer_free(t);
}

TEST(training_refuses)
{
    const char *const no_unknown[] = {"[PAD]", NULL}, *const empty[] = {"", NULL};
    ck_refused(tn_tokenizer_train_text("a", 1, .vocab_size = 5), TN_EINVAL,
               "tn_tokenizer_train: .vocab_size is 5, but there are 5 special tokens");
    ck_refused(tn_tokenizer_train_text("abcdef", 6, .vocab_size = 10), TN_EINVAL,
               "tn_tokenizer_train: .vocab_size is 10, but the special tokens (5) and the characters (11) alone are "
               "more; raise it, or lower .alphabet");
    ck_refused(tn_tokenizer_train_text(" \n", 2), TN_EFORMAT, "tn_tokenizer_train: no words found in the text");
    ck_refused(tn_tokenizer_train_text("a\0b", 3), TN_EFORMAT,
               "tn_tokenizer_train: byte 1 is NUL; expected a text in UTF-8");
    ck_refused(tn_tokenizer_train_text(NULL, 0), TN_EFORMAT, "tn_tokenizer_train: no words found in the text");
    ck_refused(tn_tokenizer_train_text("a", 1, .special = no_unknown), TN_EINVAL,
               "tn_tokenizer_train: [UNK] is not among the special tokens; words that cannot be encoded need "
               "it");
    ck_refused(tn_tokenizer_train_text("a", 1, .special = empty), TN_EINVAL,
               "tn_tokenizer_train: special token 1 is empty");
    ck_refused(tn_tokenizer_train_text("a", 1, .min_count = -1), TN_EINVAL,
               "tn_tokenizer_train: .min_count is negative or too large");
}

/* ---- parts of an encoding ---------------------------------------------------------------------------------------- */

static const char vocab_json[] =
    "{\"model\":{\"type\":\"WordPiece\",\"unk_token\":\"[UNK]\",\"vocab\":{\"[PAD]\":0,\"[UNK]\":1,\"[CLS]\":2,"
    "\"[SEP]\":3,\"[MASK]\":4,\"a\":5,\"b\":6,\"c\":7,\"##d\":8,\".\":9,\"##\xc3\xa9\":10}},\"added_tokens\":["
    "{\"id\":3,\"content\":\"[SEP]\",\"special\":true},{\"id\":4,\"content\":\"[MASK]\",\"lstrip\":true,"
    "\"special\":true},{\"id\":2,\"content\":\"[CLS]\",\"special\":true}],\"normalizer\":{\"type\":\"BertNormalizer\","
    "\"strip_accents\":false},\"pre_tokenizer\":{\"type\":\"BertPreTokenizer\"},"
    "\"post_processor\":{\"type\":\"BertProcessing\",\"sep\":[\"[SEP]\",3],\"cls\":[\"[CLS]\",2]},"
    "\"decoder\":{\"type\":\"WordPiece\",\"prefix\":\"##\",\"cleanup\":true}}";

static tn_tokenizer *t;
static tn_encoding  *e;
static void          setup(void)
{
    open_golden();
    t = tn_tokenizer_parse(vocab_json, sizeof vocab_json - 1), e = tn_encoding_new();
}
static void teardown(void)
{
    tn_tokenizer_free(t), tn_encoding_free(e);
    close_golden();
}
AROUND_TESTS(setup, teardown);

static const char *shown(const int32_t *x)
{
    static char text[400];
    size_t      n = 0;
    text[0] = 0;
    for (int64_t i = 0; i < e->n; i++) n += (size_t)snprintf(text + n, sizeof text - n, i ? " %d" : "%d", x[i]);
    return text;
}

static const char *encoded(const char *text, tn_encode_args o)
{
    if (o.pair) o.pair_bytes = strlen(o.pair);
    if (tn_tokenizer_encode_run(t, e, text, strlen(text), o) != TN_OK) return NULL;
    return shown(e->id);
}
#define ENCODED(...) ENCODED_(__VA_ARGS__, )
#define ENCODED_(text, ...) encoded(text, (tn_encode_args){.zero_ = 0, __VA_ARGS__})

TEST(frames_cuts_and_pads)
{
    ck_assert_str_eq(ENCODED("a bd.", .bare = true), "5 6 8 9");
    ck_assert_str_eq(shown(e->start), "0 2 3 4");
    ck_assert_str_eq(shown(e->end), "1 3 4 5");
    ck_assert_str_eq(shown(e->word), "0 1 1 2");
    ck_assert_str_eq(ENCODED("a bd."), "2 5 6 8 9 3");
    ck_assert_str_eq(shown(e->word), "-1 0 1 1 2 -1");
    ck_assert_str_eq(ENCODED("a b", .pair = "c"), "2 5 6 3 7 3");
    ck_assert_int_eq(e->segment[3] * 10 + e->segment[4], 1);
    ck_assert_str_eq(ENCODED("a", .pair = "", .bare = true), "5");
    ck_assert_str_eq(ENCODED("a b c a b", .max_length = 4), "2 5 6 3");
    ck_assert_int_eq(e->cut, 3);
    ck_assert_str_eq(ENCODED("a b c a b", .max_length = 4, .cut_left = true), "2 5 6 3");
    ck_assert_str_eq(ENCODED("a b c", .max_length = 3, .cut_left = true), "2 7 3");
    ck_assert_str_eq(ENCODED("a", .pad_to = 5), "2 5 3 0 0");
    ck_assert_str_eq(ENCODED("a", .pad_to = 5, .pad_left = true), "0 0 2 5 3");
    ck_assert_int_eq(e->special[0] * 100 + e->special[2] * 10 + e->special[3], 210);
    ck_assert_str_eq(ENCODED("", .max_length = 2), "2 3");
}

TEST(cuts_the_longest_first)
{
    static const struct {
        int a, b, most, left_a, left_b;
    } rows[] = {{0, 2, 7, 0, 2}, {0, 9, 7, 0, 7}, {2, 4, 7, 2, 4}, {2, 9, 7, 2, 5}, {4, 2, 7, 4, 2}, {4, 4, 7, 3, 4},
                {4, 9, 7, 3, 4}, {9, 2, 7, 5, 2}, {9, 4, 7, 4, 3}, {9, 9, 7, 3, 4}, {9, 9, 8, 4, 4}, {9, 9, 0, 9, 9}};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        char a[40] = "", b[40] = "";
        for (int k = 0; k < rows[i].a; k++) strcat(a, "a ");
        for (int k = 0; k < rows[i].b; k++) strcat(b, "b ");
        ck_assert_ptr_nonnull(ENCODED(a, .pair = b, .bare = true, .max_length = rows[i].most));
        int64_t n[2] = {0, 0};
        for (int64_t k = 0; k < e->n; k++) n[e->segment[k]]++;
        ck_assert_msg(n[0] == rows[i].left_a && n[1] == rows[i].left_b, "row %zu: %lld and %lld", i, (long long)n[0],
                      (long long)n[1]);
    }
    ck_assert_str_eq(ENCODED("a a a", .pair = "b b b", .bare = true, .max_length = 4, .cut = TN_CUT_FIRST), "5 6 6 6");
    ck_assert_str_eq(ENCODED("a a a", .pair = "b b b", .bare = true, .max_length = 4, .cut = TN_CUT_SECOND), "5 5 5 6");
    ck_refused(ENCODED("a a a", .pair = "b", .bare = true, .max_length = 2, .cut = TN_CUT_SECOND), TN_EINVAL,
               "tn_tokenizer_encode: the second text has 1 tokens, but 2 must be removed to fit .max_length, which is "
               "2; cut the other text, too");
    ck_refused(ENCODED("a", .max_length = 1), TN_EINVAL,
               "tn_tokenizer_encode: .max_length is 1, but the template alone adds 2 tokens");
    ck_assert_int_eq(e->n, 0);
    const char *const text = "a";
    tn_token_batch    many;
    tn_tokenizer_encode(t, e, "a", 1, .pairs = &text);
    ck_error(TN_EINVAL, "tn_tokenizer_encode: .pairs is for tn_tokenizer_batch; use .pair");
    tn_tokenizer_encode(t, e, "a", 1, .pair_bytes = 1);
    ck_error(TN_EINVAL, "tn_tokenizer_encode: .pair_bytes is set, but .pair is NULL");
    tn_tokenizer_encode(t, e, "a", 1, .cut = (tn_cut)7);
    ck_error(TN_EINVAL, "tn_tokenizer_encode: .cut is not a tn_cut");
    tn_tokenizer_batch(t, &many, 1, &text, .pair = "b", .pair_bytes = 1);
    ck_error(TN_EINVAL, "tn_tokenizer_batch: .pair is for tn_tokenizer_encode; use .pairs");
}

TEST(special_tokens_in_the_text)
{
    ck_assert_str_eq(ENCODED("a[SEP]b", .bare = true), "5 3 6");
    ck_assert_str_eq(ENCODED("a  [MASK] b", .bare = true), "5 4 6");
    ck_assert_str_eq(shown(e->start), "0 1 10");
    ck_assert_str_eq(ENCODED("a [mask", .bare = true), "5 1 1");
    ck_assert_str_eq(ENCODED("[SEP]", .bare = true, .literal = true), "1 1 1");
    ck_assert_str_eq(ENCODED("[PAD]", .bare = true), "1 1 1"); /* no added token names it */
}

TEST(any_bytes)
{
    ck_assert_str_eq(ENCODED("a\xff\xfe b", .bare = true), "5 6"); /* U+FFFD is removed */
    ck_assert_int_eq(e->invalid, 2);
    ck_assert_str_eq(shown(e->start), "0 4");
    ck_assert_str_eq(ENCODED("\xe2\x82 \xed\xa0\x80 b\xf0\x9f", .bare = true), "6"); /* 1 + 3 + 1 */
    ck_assert_int_eq(e->invalid, 5);
    ck_assert_str_eq(shown(e->start), "7");
    ck_assert_str_eq(shown(e->end), "8");
    ck_refused(ENCODED("abc\xc3(", .strict = true), TN_EFORMAT,
               "tn_tokenizer_encode: byte 3 of the text is not UTF-8 (0xc3)");
    ck_assert_int_eq(tn_tokenizer_encode(t, e, "a\0b", 3, .bare = true), TN_OK);
    ck_assert_str_eq(shown(e->id), "1"); /* the NUL is removed: "ab" */
    ck_assert_int_eq(tn_tokenizer_encode(t, e, NULL, 0), TN_OK);
    ck_fails(tn_tokenizer_encode(t, e, NULL, 1), TN_EINVAL, "tn_tokenizer_encode: the text is NULL");
}

TEST(batches)
{
    const char *const texts[] = {"a b c", "", "bd"}, *const pairs[] = {"a", NULL, "c"};
    tn_token_batch b;
    ck_assert_int_eq(tn_tokenizer_batch(t, &b, 3, texts, .pairs = pairs), TN_OK);
    const int64_t ids[] = {2, 5, 6, 7, 3, 5, 3, 2, 3, 0, 0, 0, 0, 0, 2, 6, 8, 3, 7, 3, 0};
    ck_assert_int_eq(tn_size(b.ids, 0) * 100 + tn_size(b.ids, 1), 307);
    for (int64_t i = 0; i < 21; i++) {
        ck_assert_int_eq(tn_get_i64(b.ids, i), ids[i]);
        ck_assert_int_eq(tn_get_i64(b.key_padding_mask, i), (i >= 9 && i < 14) || i == 20);
        ck_assert_int_eq(tn_get_i64(b.segments, i), i == 5 || i == 6 || i == 18 || i == 19);
    }
    ck_assert_int_eq(tn_tokenizer_batch(t, &b, 1, texts, .max_length = 3, .pad_to = 4), TN_OK);
    ck_assert_int_eq(tn_size(b.ids, 1), 4);
    ck_assert_int_eq(b.cut, 2);
    ck_assert_int_eq(tn_tokenizer_batch(t, &b, 0, NULL), TN_OK);
    ck_assert_int_eq(tn_numel(b.ids), 0);
}

TEST(questions_and_answers)
{
    ck_assert_int_eq(tn_tokenizer_size(t), 11);
    ck_assert_str_eq(tn_tokenizer_token(t, 8), "##d");
    ck_assert_str_eq(tn_tokenizer_token(t, 99), "");
    ck_assert_int_eq(tn_tokenizer_id(t, "##d"), 8);
    ck_assert_int_eq(tn_tokenizer_id(t, "x"), -1);
    ck_assert(tn_tokenizer_is_inner(t, 8) && !tn_tokenizer_is_inner(t, 7) && !tn_tokenizer_is_special(t, 7));
    const tn_tokenizer_roles r = tn_tokenizer_special(t);
    ck_assert(r.pad == 0 && r.unknown == 1 && r.first == 2 && r.separator == 3 && r.mask == 4);
    tn_string     back = {0};
    const int32_t ids[] = {2, 5, 8, 9, 3}, wrong = 11;
    ck_assert_int_eq(tn_tokenizer_decode(t, ids, 5, &back), TN_OK);
    ck_assert_str_eq(back.at, "ad.");
    ck_assert_int_eq(tn_tokenizer_decode(t, ids, 5, &back, .keep_special = true, .keep_spaces = true), TN_OK);
    ck_assert_str_eq(back.at, "ad.[CLS] ad . [SEP]");
    ck_fails(tn_tokenizer_decode(t, &wrong, 1, &back), TN_EINDEX,
             "tn_tokenizer_decode: ids[0] is 11, expected a token id from 0 to 10");
    tn_ids     to = {0};
    tn_encoder as = tn_tokenizer_encoder(t, e);
    ck_assert_int_eq(as.encode(as.user, tn_text_of("a b"), &to), TN_OK);
    ck_assert_int_eq(as.encode(as.user, tn_text_of("c"), &to), TN_OK);
    ck_assert(to.n == 3 && to.at[2] == 7);
    tn_ids_free(&to);
    tn_string_free(&back);
}

#define WORDS(decoder)                                       \
    "{\"pre_tokenizer\":{\"type\":\"BertPreTokenizer\"},"    \
    "\"model\":{\"type\":\"WordPiece\",\"unk_token\":\"u\"," \
    "\"vocab\":{\"a\":0,\"##b\":1,\",\":2,\"u\":3}}" decoder "}"
#define SUFFIX ",\"end_of_word_suffix\":\"</w>\""
#define ENDS(suffix) ",\"decoder\":{\"type\":\"BPEDecoder\",\"suffix\":\"" suffix "\"}"
#define PAIRS(suffix, piece, decoder)                                                                    \
    "{\"pre_tokenizer\":{\"type\":\"WhitespaceSplit\"},\"model\":{\"type\":\"BPE\"" suffix ",\"vocab\":" \
    "{\"a\":0,\"" piece "\":1,\",\":2},\"merges\":[]}" decoder "}"
#define SUMS(byte, decoder)                                                    \
    "{\"model\":{\"type\":\"Unigram\",\"unk_id\":2,\"vocab\":[[\"\xe2\x96\x81" \
    "a\",-1],[\"\xe2\x96\x81"                                                  \
    "b\",-1],[\"" byte "\",-1]]}" decoder "}"
#define REPLACE "{\"type\":\"Replace\",\"pattern\":{\"String\":\"\xe2\x96\x81\"},\"content\":\" \"}"
#define STRIP(content) "{\"type\":\"Strip\",\"content\":\"" content "\",\"start\":1,\"stop\":0}"
#define LIST(decoders) ",\"decoder\":{\"type\":\"Sequence\",\"decoders\":[" decoders "]}"
/* The decoded text of tokens 0 1 2, as in tokenizers 0.23; or the error. */
static const struct {
    const char *json, *back;
} decoders[] = {
    {WORDS(""), "a ##b ,"},
    {WORDS(",\"decoder\":{\"type\":\"WordPiece\",\"prefix\":\"##\",\"cleanup\":true}"), "ab,"},
    {WORDS(",\"decoder\":{\"type\":\"WordPiece\",\"prefix\":\"##\",\"cleanup\":false}"), "ab ,"},
    {WORDS(",\"decoder\":null"), "a ##b ,"},
    {WORDS(",\"decoder\":{\"type\":\"WordPiece\",\"prefix\":\"@@\",\"cleanup\":true}"), "a ##b,"},
    {PAIRS(SUFFIX, "b</w>", ENDS("</w>")), "ab ,"},
    {PAIRS(SUFFIX, "b</w>", ",\"decoder\":null"), "a b</w> ,"},
    {PAIRS("", "b", ENDS("@@")), "ab,"},
    {PAIRS("", "b</w>", ENDS("</w>")), "ab ,"},
    {PAIRS(SUFFIX, "b</w>", ENDS("b")), "a </w>,"},
    {PAIRS(SUFFIX, "b</w>b</w>", ENDS("</w>")), "ab b ,"},
    {PAIRS(SUFFIX, "b</w>", ENDS("")), "the decoder's suffix is ''"},
    {SUMS("c", ",\"decoder\":null"), "\xe2\x96\x81"
                                     "a \xe2\x96\x81"
                                     "b c"},
    {SUMS("c", ",\"decoder\":{\"type\":\"Metaspace\"}"), "a bc"},
    {SUMS("c", LIST(REPLACE)), " a bc"},
    {SUMS("c", LIST(REPLACE ",{\"type\":\"Fuse\"}," STRIP(" "))), "a bc"},
    {SUMS("<0x41>", LIST("{\"type\":\"ByteFallback\"},{\"type\":\"Metaspace\"}")),
     "the decoder's order: after others is 'Metaspace'"},
    {SUMS("<0x41>", LIST("{\"type\":\"Metaspace\"},{\"type\":\"ByteFallback\"}")), "a bA"},
    {SUMS("<0x41>", ",\"decoder\":{\"type\":\"Metaspace\"}"), "a b<0x41>"},
    {SUMS("c", LIST(REPLACE "," STRIP(" "))), "Strip of each token, without Fuse before it"},
    {SUMS("c", LIST(REPLACE ",{\"type\":\"Fuse\"}," STRIP("a"))), "the content of the decoder's Strip is 'a'"},
    {SUMS("c", LIST("{\"type\":\"Metaspace\"},{\"type\":\"Fuse\"}," STRIP(" "))), "Strip after Metaspace"},
    {SUMS("c", LIST("{\"type\":\"Fuse\"}," REPLACE)), "the decoder's order: after others is 'Fuse'"},
    {SUMS("c", ",\"decoder\":{\"type\":\"Fuse\"}"), "the decoder's order: after others is 'Fuse'"},
    {SUMS("c", ",\"decoder\":{\"type\":\"ByteFallback\"}"), "one that keeps"},
};

TEST_ROWS(decodes_as_the_file_says, decoders)
{
    static const int32_t ids[] = {0, 1, 2};
    const char          *json = decoders[_i].json, *expected = decoders[_i].back;
    const char          *dir = tn_test_folder("decoders");
    tn_tokenizer        *x = tn_tokenizer_parse(json, strlen(json)), *again = NULL;
    tn_text_stream       stream = {0};
    tn_string            back = {0};
    if (!x) {
        ck_assert_msg(strstr(tn_error_message(), expected), "%s: %s", json, tn_error_message());
        tn_clear_error();
        return;
    }
    ck_assert(tn_tokenizer_save(x, dir) == TN_OK && (again = tn_tokenizer_load(dir)));
    for (int i = 0; i < 2; i++) {
        ck_assert_int_eq(tn_tokenizer_decode(i ? again : x, ids, 3, &back), TN_OK);
        ck_assert_msg(!strcmp(back.at, expected), "%s: '%s', not '%s'", json, back.at, expected);
        tn_string_free(&back);
    }
    for (int i = 0; i < 3; i++) ck_assert_int_eq(tn_tokenizer_decode_next(x, &stream, ids[i], &back), TN_OK);
    ck_assert_int_eq(tn_tokenizer_decode_end(&stream, &back), TN_OK);
    ck_assert_str_eq(back.at, expected);
    tn_string_free(&back);
    tn_tokenizer_free(x), tn_tokenizer_free(again);
}

/* A word of a million letters: n log n steps, not n². */
TEST(long_words)
{
    tn_tokenizer *bytes = make("bytes");
    const size_t  n = tn_test_slow() ? 20000 : 1000000;
    char         *text = malloc(n);
    for (size_t i = 0; i < n; i++) text[i] = "thelownrsdi"[i * i % 11];
    ck_assert_int_eq(tn_tokenizer_encode(bytes, e, text, n), TN_OK);
    ck_assert_int_gt(e->n, (int64_t)n / 5);
    ck_assert_int_eq(e->end[e->n - 1], (int32_t)n);
    ck_assert_int_eq(tn_tokenizer_encode(t, e, text, n, .bare = true), TN_OK);
    ck_assert(e->n == 1 && e->id[0] == 1 && e->end[0] == (int32_t)n);
    free(text);
    tn_tokenizer_free(bytes);
}

/* A word that is too long is unknown, even if it starts like a frequent word. */
TEST(too_long_words)
{
    static const char json[] =
        "{\"model\":{\"type\":\"WordPiece\",\"unk_token\":\"[UNK]\",\"max_input_chars_per_word\":3,"
        "\"vocab\":{\"[UNK]\":0,\"a\":1,\"##b\":2}},\"pre_tokenizer\":{\"type\":\"BertPreTokenizer\"}}";
    tn_tokenizer *most3 = tn_tokenizer_parse(json, sizeof json - 1);
    for (int i = 0; i < 2000; i++) {
        ck_assert_int_eq(tn_tokenizer_encode(most3, e, "abb abbb", 8), TN_OK);
        ck_assert_msg(!strcmp(shown(e->id), "1 2 2 0"), "text %d: %s", i, shown(e->id));
    }
    ck_assert_str_eq(shown(e->end), "1 2 3 8");
    tn_tokenizer_free(most3);
}
