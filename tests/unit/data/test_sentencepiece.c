/* test_sentencepiece.c — SentencePiece's tokenizers: byte-pair encoding by scores, Unigram, bytes for unknown text;
 * created from their parts, and decoded one token at a time. */
#include "tests/common/check_main.h"

#include "data/data.h"
#include "tests/common/faults.h"

#define S "\xe2\x96\x81"

/* ---- tokenizers from parts --------------------------------------------------------------------------------------- */

/* llama2.c's layout: <unk>, <s>, </s>, 256 bytes, then pieces of two or more characters, then single ones, by falling
 * scores. */
static const char *const words[] = {S "t",      "he", S "the", "an", S "c", "at", S S, S "cat",
                                    "\xc3\xa9", "t",  "h",     "e",  "a",   "n",  "c", S};
enum { WORDS = sizeof words / sizeof *words, ALL = 259 + WORDS };

static tn_tokenizer *small(tn_from_vocab_args how)
{
    static char        bytes[256][8];
    static const char *pieces[ALL] = {"<unk>", "\n<s>\n", "\n</s>\n"};
    static float       scores[ALL];
    for (int b = 0; b < 256; b++) snprintf(bytes[b], sizeof *bytes, "<0x%02X>", b), pieces[3 + b] = bytes[b];
    for (int i = 0; i < (int)WORDS; i++) pieces[259 + i] = words[i], scores[259 + i] = -(float)i;
    how.scores = scores;
    return tn_tokenizer_from_vocab_run(ALL, pieces, how);
}

static void gives(const tn_tokenizer *t, const char *text, const char *expected, bool bare)
{
    tn_encoding *e = tn_encoding_new();
    tn_string    said = {0};
    ck_assert_int_eq(tn_tokenizer_encode(t, e, text, strlen(text), .bare = bare), TN_OK);
    for (int64_t i = 0; i < e->n; i++) {
        if (i) ck_assert_int_eq(tn_string_add(&said, tn_text_of(" ")), TN_OK);
        ck_assert_int_eq(tn_string_add(&said, tn_text_of(tn_tokenizer_token(t, e->id[i]))), TN_OK);
        ck_assert(e->start[i] >= 0 && e->start[i] <= e->end[i] && e->end[i] <= (int32_t)strlen(text));
    }
    ck_assert_str_eq(said.at ? said.at : "", expected);
    tn_string_free(&said);
    tn_encoding_free(e);
}

TEST(merges_by_scores)
{
    tn_tokenizer *t = small((tn_from_vocab_args){TN_FROM_VOCAB_ARGS_DEFAULTS});
    ck_assert_msg(t != NULL, "%s", tn_error_message());
    ck_assert_int_eq(tn_tokenizer_special(t).first, 1);
    ck_assert_int_eq(tn_tokenizer_special(t).last, 2);
    gives(t, "the cat", "<s> " S "the " S "cat", false);
    gives(t, "the cat", S "the " S "cat", true);
    gives(t, "caf\xc3\xa9", S "c a <0x66> \xc3\xa9", true);
    gives(t, "\xe7\x8b\x90", S " <0xE7> <0x8B> <0x90>", true);
    gives(t, "", "", true);
    gives(t, "the<s>the", S "the <s> " S "the", true);
    gives(t, "a  b", S " a " S S " <0x62>", true);
    tn_tokenizer_free(t);
    tn_from_vocab_args plain = {TN_FROM_VOCAB_ARGS_DEFAULTS};
    plain.no_space = plain.ends = true;
    t = small(plain);
    gives(t, "the cat", "<s> t he " S "cat </s>", false);
    tn_tokenizer_free(t);
}

TEST(unigram_of_pieces)
{
    tn_from_vocab_args how = {TN_FROM_VOCAB_ARGS_DEFAULTS};
    how.kind = TN_UNIGRAM;
    tn_tokenizer *t = small(how);
    gives(t, "the cat", S "t he " S "cat", true); /* 0 and -1, not -2 */
    gives(t, "ttt caf\xc3\xa9", S "t t t " S "c a <0x66> \xc3\xa9", true);
    tn_tokenizer_free(t);
}

/* "▁tat": t (-9), a (-12), at (-5), ▁t (0), ▁ (-15), ... */
TEST(other_ways)
{
    tn_from_vocab_args how = {TN_FROM_VOCAB_ARGS_DEFAULTS};
    how.kind = TN_UNIGRAM;
    tn_tokenizer *t = small(how);
    tn_encoding  *e = tn_encoding_new();
    const int64_t expected[4][5] = {{0, 5}, {0, 12, 9}, {15, 9, 5}, {15, 9, 12, 9}}; /* pieces, from 259 on */
    const int     pieces[4] = {2, 3, 3, 4};
    for (int nth = 0; nth < 4; nth++) {
        ck_assert_int_eq(tn_tokenizer_encode(t, e, "tat", 3, .bare = true, .nth = nth), TN_OK);
        ck_assert_int_eq(e->n, pieces[nth]);
        for (int i = 0; i < pieces[nth]; i++) ck_assert_int_eq(e->id[i] - 259, expected[nth][i]);
    }
    ck_assert_int_eq(tn_tokenizer_encode(t, e, "tat", 3, .bare = true, .nth = 4), TN_EINDEX);
    tn_clear_error();
    int best = 0, first = 0;
    for (uint64_t seed = 0; seed < 4000; seed++) {
        ck_assert_int_eq(tn_tokenizer_encode(t, e, "tat", 3, .bare = true, .sample = 0.05, .seed = seed), TN_OK);
        best += e->n == 2, first += e->id[0] == 259;
        tn_string back = {0};
        ck_assert_int_eq(tn_tokenizer_decode(t, e->id, e->n, &back), TN_OK);
        ck_assert_str_eq(back.at, "tat");
        tn_string_free(&back);
    }
    /* exp(-0.05 (5, 21, 29, 45)): 0.7788, 0.3499, 0.2346, 0.1054, of 1.4687 */
    ck_assert_double_eq_tol(best / 4000.0, 0.7788 / 1.4687, 0.025);
    ck_assert_double_eq_tol(first / 4000.0, (0.7788 + 0.3499) / 1.4687, 0.025);
    tn_encoding_free(e), tn_tokenizer_free(t);
}

TEST(decodes_number_by_number)
{
    tn_tokenizer *t = small((tn_from_vocab_args){TN_FROM_VOCAB_ARGS_DEFAULTS});
    tn_encoding  *e = tn_encoding_new();
    const char   *text = " the caf\xc3\xa9 \xe7\x8b\x90\xe7\x8b\xb8 \xf0\x9f\x99\x82";
    ck_assert_int_eq(tn_tokenizer_encode(t, e, text, strlen(text)), TN_OK);
    tn_string      all = {0}, one = {0};
    tn_text_stream d = {{0}, 0, false};
    ck_assert_int_eq(tn_tokenizer_decode(t, e->id, e->n, &all), TN_OK);
    ck_assert_str_eq(all.at, text);
    for (int64_t i = 0; i < e->n; i++) {
        ck_assert_int_eq(tn_tokenizer_decode_next(t, &d, e->id[i], &one), TN_OK);
        ck_assert_msg(tn_utf8_valid(one.at, one.bytes) == one.bytes && !memcmp(one.at, text, one.bytes), "'%s'",
                      one.at);
    }
    ck_assert_int_eq(tn_tokenizer_decode_end(&d, &one), TN_OK);
    ck_assert_str_eq(one.at, text);
    one.bytes = 0; /* half a character, then another */
    ck_assert_int_eq(tn_tokenizer_decode_next(t, &d, 3 + 0xe7, &one), TN_OK);
    ck_assert_int_eq(tn_tokenizer_decode_next(t, &d, 3 + 0x8b, &one), TN_OK);
    ck_assert_uint_eq(one.bytes, 0);
    ck_assert_int_eq(tn_tokenizer_decode_next(t, &d, 3 + 'x', &one), TN_OK);
    ck_assert_str_eq(one.at, "\xef\xbf\xbdx");
    ck_assert_int_eq(tn_tokenizer_decode_next(t, &d, 3 + 0xc3, &one), TN_OK);
    ck_assert_int_eq(tn_tokenizer_decode_end(&d, &one), TN_OK);
    ck_assert_str_eq(one.at, "\xef\xbf\xbdx\xef\xbf\xbd");
    ck_assert_int_eq(tn_tokenizer_decode_next(t, &d, ALL, &one), TN_EINDEX);
    tn_clear_error();
    tn_string_free(&all), tn_string_free(&one);
    tn_encoding_free(e), tn_tokenizer_free(t);
}

TEST(pieces_refused)
{
    const char *const twice[] = {"a", "b", "a"}, *const broken[] = {"a", "\xff"};
    const float   infinite[] = {0, (float)(1e300 * 1e300)};
    const int32_t types[] = {1, 7};
    ck_refused(tn_tokenizer_from_vocab(3, twice), TN_EFORMAT,
               "tn_tokenizer_from_vocab: the token 'a' has two ids, 0 and 2");
    ck_refused(tn_tokenizer_from_vocab(2, broken), TN_EFORMAT,
               "tn_tokenizer_from_vocab: token 1, '\\xff', is not UTF-8");
    ck_refused(tn_tokenizer_from_vocab(2, twice, .scores = infinite), TN_EFORMAT,
               "tn_tokenizer_from_vocab: the score of token 1 is not a finite number");
    ck_refused(tn_tokenizer_from_vocab(2, twice, .types = types), TN_EFORMAT,
               "tn_tokenizer_from_vocab: token 1 has the type 7, expected 1 to 6");
    static const char *const merges[] = {"a b"};
    ck_refused(tn_tokenizer_from_vocab(2, twice, .kind = TN_BYTE_BPE, .merges = merges), TN_EINVAL,
               "tn_tokenizer_from_vocab: .n_merges is 0, but .merges is set");
    ck_refused(tn_tokenizer_from_vocab(2, twice, .kind = TN_SENTENCE_BPE, .merges = merges, .n_merges = 1), TN_EINVAL,
               "tn_tokenizer_from_vocab: .merges, .splitter and .whole_words are for TN_BYTE_BPE");
    ck_refused(tn_tokenizer_from_vocab(2, twice, .kind = TN_BYTE_BPE, .scores = infinite), TN_EINVAL,
               "tn_tokenizer_from_vocab: .scores are for TN_SENTENCE_BPE and TN_UNIGRAM; set .merges for TN_BYTE_BPE");
    ck_refused(tn_tokenizer_from_vocab(2, twice, .first = 2), TN_EINVAL,
               "tn_tokenizer_from_vocab: the first token is 2, the last -1, but there are 2 tokens");
}

/* ---- byte-level kinds by name ------------------------------------------------------------------------------------ */

/* The words of a text, with "|" between them. */
static void splits(const char *splitter, const char *text, const char *expected)
{
    static char        letters[256][5];
    static const char *pieces[256];
    for (int b = 0; b < 256; b++) {
        const int c = (b >= 33 && b <= 126) || (b >= 161 && b <= 172) || b >= 174 ? b
                      : b <= 32                                                   ? 256 + b
                      : b == 173                                                  ? 256 + 67
                                                                                  : 256 + b - 127 + 33;
        letters[b][tn_utf8_put((uint32_t)c, letters[b])] = 0, pieces[b] = letters[b];
    }
    tn_tokenizer *t = tn_tokenizer_from_vocab(256, pieces, .kind = TN_BYTE_BPE, .splitter = splitter);
    tn_encoding  *e = tn_encoding_new();
    tn_string     said = {0};
    ck_assert_msg(t != NULL, "%s", tn_error_message());
    ck_assert_int_eq(tn_tokenizer_encode(t, e, text, strlen(text)), TN_OK);
    for (int64_t i = 0; i < e->n; i++) {
        if (i && e->word[i] != e->word[i - 1]) ck_assert_int_eq(tn_string_add(&said, tn_text_of("|")), TN_OK);
        ck_assert_int_eq(tn_string_add(&said, (tn_text){text + e->start[i], (size_t)(e->end[i] - e->start[i])}), TN_OK);
    }
    ck_assert_str_eq(said.at, expected);
    tn_string_free(&said);
    tn_encoding_free(e), tn_tokenizer_free(t);
}

TEST(splits_by_name)
{
    const char *text = "I'LL  see 12345\t#x \n\n it's\r\n!!\n\n end  ";
    splits("gpt2", text, "I|'|LL| | see| 12345|\t|#|x| \n\n| it|'s|\r|\n|!!|\n\n| end|  ");
    splits("gpt4", text, "I|'LL| | see| |123|45|\t|#x| \n\n| it|'s|\r\n|!!\n\n| end|  ");
    splits("qwen2", text, "I|'LL| | see| |1|2|3|4|5|\t|#x| \n\n| it|'s|\r\n|!!\n\n| end|  ");
    splits("llama-bpe", "\xc2\xa0x 'T\xc5\xbf'\xc5\xbf", "\xc2\xa0x| '|T\xc5\xbf|'\xc5\xbf");
    ck_refused(tn_tokenizer_from_vocab(1, (const char *[]){"a"}, .kind = TN_BYTE_BPE, .splitter = "x"), TN_EUNSUPPORTED,
               "tn_tokenizer_from_vocab: .splitter is 'x', expected \"gpt2\", \"gpt4\", \"qwen2\" or \"smollm\"");
}

/* A form before the split, and the effect of a token's flags on the text around it. */
TEST(added_tokens_and_a_form)
{
    const char *json =
        "{\"added_tokens\":[{\"id\":7,\"content\":\"<m>\",\"lstrip\":true,\"rstrip\":true},"
        "{\"id\":8,\"content\":\"ab\",\"single_word\":true}],\"normalizer\":{\"type\":\"NFC\"},"
        "\"pre_tokenizer\":{\"type\":\"ByteLevel\",\"add_prefix_space\":false},\"decoder\":{\"type\":\"ByteLevel\"},"
        "\"model\":{\"type\":\"BPE\",\"vocab\":{\"a\":0,\"b\":1,"
        "\"\xc3\x83\":2,\"\xc2\xa9\":3,\"\xc4\xa0\":4,\"\xc3\x8c\":5,"
        "\"\xc4\xa3\":6},\"merges\":[]}}";
    tn_tokenizer *t = tn_tokenizer_parse(json, strlen(json));
    ck_assert_msg(t != NULL, "%s", tn_error_message());
    gives(t, "ab aab ab\xc3\xa9 ab", "ab \xc4\xa0 a a b \xc4\xa0 a b \xc3\x83 \xc2\xa9 \xc4\xa0 ab", true);
    gives(t, "a \xc2\xa0<m>\xe3\x80\x80 b", "a <m> b", true);
    gives(t, "e\xcc\x81 a", "\xc3\x83 \xc2\xa9 \xc4\xa0 a", true); /* becomes one letter */
    tn_tokenizer_free(t);
}

/* A charsmap that deletes U+0001: the text starts at the first character that remains, as in tokenizers 0.23.3. */
TEST(deleted_at_the_start)
{
    static const char *const scheme[] = {"first", "always"};
    static const struct {
        const char *text, *gives[2];
    } rows[] = {{"\1\1a a", {S " a " S " a", S " a " S " a"}},
                {"a\1a", {S " a a", S " a a"}},
                {"<m>\1a", {"<m> a", "<m> " S " a"}},
                {"\1<m>a", {"<m> a", "<m> " S " a"}},
                {"\1 a", {S " a", S " a"}},
                {"\1a<m>\1a", {S " a <m> a", S " a <m> " S " a"}}};
    char zeros[1345] = "", json[2048]; /* of the table of 256 units, all but the first four */
    memset(zeros, 'A', sizeof zeros - 1);
    for (int k = 0; k < 2; k++) {
        snprintf(json, sizeof json,
                 "{\"added_tokens\":[{\"id\":3,\"content\":\"<m>\",\"normalized\":false}],\"normalizer\":{\"type\":"
                 "\"Precompiled\",\"precompiled_charsmap\":\"AAQAAAAIAAAAAAAAAAAAgAEFAAAA%s\"},\"pre_tokenizer\":{"
                 "\"type\":\"Metaspace\",\"replacement\":\"" S
                 "\",\"prepend_scheme\":\"%s\",\"split\":true},\"model\":{"
                 "\"type\":\"Unigram\",\"unk_id\":0,\"vocab\":[[\"<unk>\",0],[\"a\",-1.5],[\"" S "\",-2]]}}",
                 zeros, scheme[k]);
        tn_tokenizer *t = tn_tokenizer_parse(json, strlen(json));
        ck_assert_msg(t != NULL, "%s", tn_error_message());
        for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) gives(t, rows[i].text, rows[i].gives[k], true);
        tn_tokenizer_free(t);
    }
}

/* SmolLM's: each number is a word, and white space before it is not cut. */
TEST(digits_apart)
{
    static const char json[] =
        "{\"pre_tokenizer\":{\"type\":\"Sequence\",\"pretokenizers\":[{\"type\":\"Digits\",\"individual_digits\":true},"
        "{\"type\":\"ByteLevel\",\"add_prefix_space\":false,\"trim_offsets\":true,\"use_regex\":true}]},"
        "\"decoder\":{\"type\":\"ByteLevel\"},\"model\":{\"type\":\"BPE\",\"vocab\":{\"a\":0,\"1\":1,\"\xc4\xa0\":2,"
        "\"\xc4\xa0\xc4\xa0\":3,\"\xc4\xa0"
        "1\":4,\"11\":5,\"\xc4\xa0"
        "a\":6},\"merges\":[\"\xc4\xa0 \xc4\xa0\","
        "\"\xc4\xa0 1\",\"1 1\",\"\xc4\xa0 a\"]}}";
    const char   *dir = tn_test_folder("digits");
    tn_tokenizer *t = tn_tokenizer_parse(json, strlen(json));
    for (int again = 0; again < 2; again++) {
        ck_assert_msg(t != NULL, "%s", tn_error_message());
        gives(t, "a  11 a  a",
              "a \xc4\xa0\xc4\xa0 1 1 \xc4\xa0"
              "a \xc4\xa0 \xc4\xa0"
              "a",
              true);
        ck_assert_str_eq(tn_tokenizer_traits_of(t).splitter, "smollm");
        ck_assert_int_eq(tn_tokenizer_save(t, dir), TN_OK);
        tn_tokenizer_free(t);
        t = tn_tokenizer_load(dir);
    }
    tn_tokenizer_free(t);
}

#define XY "-15.515828132629395"
/* The nearest f64 of the scores give "xy", whose score is the sum of the others, and with it a tie, which the first one
 * wins. tokenizers 0.23 reads -15.515828132629395 as its neighbour, and gives "x y". The file is written as it was. */
TEST(scores_as_tokenizers_reads_them)
{
    static const char json[] =
        "{\"pre_tokenizer\":null,\"model\":{\"type\":\"Unigram\",\"unk_id\":0,\"vocab\":[[\"<unk>\",0.0],"
        "[\"x\",-7.703980445861816],[\"y\",-7.811847686767578],[\"xy\"," XY "],[\"z\",-1.5e-07],[\"yz\",-3]]}}";
    tn_tokenizer *t = tn_tokenizer_parse(json, strlen(json));
    ck_assert_msg(t != NULL, "%s", tn_error_message());
    gives(t, "xy", "x y", true);
    gives(t, "zyz", "z yz", true);
    const char *dir = tn_test_folder("scores");
    ck_assert_int_eq(tn_tokenizer_save(t, dir), TN_OK);
    const tn_tensor *file = tn_file_read(tn_test_in(dir, "tokenizer.json"), 1 << 16);
    ck_assert(file && strstr(tn_data(file), XY) && strstr(tn_data(file), "-1.5e-07"));
    tn_tokenizer_free(t);
}

/* ---- .model ------------------------------------------------------------------------------------------------------ */

static const char *saved(const tn_tokenizer *t, const char *name)
{
    static char path[512];
    const char *folder = tn_test_file(name);
    mkdir(folder, 0700);
    ck_assert_msg(tn_tokenizer_save(t, folder) == TN_OK, "%s", tn_error_message());
    snprintf(path, sizeof path, "%s/tokenizer.model", folder);
    return path;
}

/* The same tokens and ids, whichever file they come from. */
static void same(const tn_tokenizer *a, const tn_tokenizer *b)
{
    static const char *const texts[] = {"the cat", " the  cat ", "ttt caf\xc3\xa9 \xe7\x8b\x90", "a\xe2\x96\x81the",
                                        ""};
    ck_assert_msg(b != NULL, "%s", tn_error_message());
    ck_assert_int_eq(tn_tokenizer_size(a), tn_tokenizer_size(b));
    tn_encoding *e = tn_encoding_new(), *f = tn_encoding_new();
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        ck_assert_int_eq(tn_tokenizer_encode(a, e, texts[i], strlen(texts[i]), .bare = true), TN_OK);
        ck_assert_int_eq(tn_tokenizer_encode(b, f, texts[i], strlen(texts[i]), .bare = true), TN_OK);
        ck_assert_int_eq(e->n, f->n);
        if (e->n) ck_assert_mem_eq(e->id, f->id, (size_t)e->n * sizeof *e->id);
        tn_string x = {0}, y = {0};
        ck_assert_int_eq(tn_tokenizer_decode(a, e->id, e->n, &x), TN_OK);
        ck_assert_int_eq(tn_tokenizer_decode(b, e->id, e->n, &y), TN_OK);
        ck_assert_str_eq(x.at, y.at);
        tn_string_free(&x), tn_string_free(&y);
    }
    tn_encoding_free(e), tn_encoding_free(f);
}

/* The parts that other files are written from: a tokenizer.json expresses them differently, and they must be the
 * same. */
static void same_parts(const tn_tokenizer *a, const tn_tokenizer *b)
{
    enum { MOST = 1000 };
    static int32_t types[2][MOST];
    const int64_t  n = tn_tokenizer_size(a);
    ck_assert(n <= MOST);
    tn_tokenizer_parts(a, NULL, types[0], NULL), tn_tokenizer_parts(b, NULL, types[1], NULL);
    for (int64_t i = 0; i < n; i++)
        ck_assert_msg(types[0][i] == types[1][i], "'%s' is of type %d, not %d", tn_tokenizer_token(a, i), types[1][i],
                      types[0][i]);
    const tn_tokenizer_traits m = tn_tokenizer_traits_of(a), w = tn_tokenizer_traits_of(b);
    ck_assert(m.first == w.first && m.last == w.last && m.space == w.space);
}

TEST_EACH(model_there_and_back, 2)
{
    tn_from_vocab_args how = {TN_FROM_VOCAB_ARGS_DEFAULTS};
    how.kind = _i ? TN_UNIGRAM : TN_SENTENCE_BPE;
    tn_tokenizer *t = small(how);
    const char   *path = saved(t, _i ? "unigram" : "bpe");
    tn_tokenizer *model = tn_tokenizer_load(path);
    same(t, model);
    ck_assert_int_eq(tn_tokenizer_special(model).first, 1);
    gives(model, "the<s>", _i ? S "t he <0x3C> <0x73> <0x3E>" : S "the <0x3C> <0x73> <0x3E>", true);
    tn_tokenizer_free(model);
    model = tn_tokenizer_load(path, .control_in_text = TN_YES);
    ck_assert_msg(model != NULL, "%s", tn_error_message());
    gives(model, "the<s>", _i ? S "t he <s>" : S "the <s>", true);
    tn_tokenizer_free(model);
    *strrchr(path, '/') = 0;
    model = tn_tokenizer_load(path); /* tokenizer.json */
    same(t, model);
    same_parts(t, model);
    tn_tokenizer_free(model);
    tn_tokenizer_free(t);
}

static tn_string the_model;

static void loads_or_says(const char *bytes, size_t n, bool must_fail)
{
    const char *path = tn_test_file("broken.model");
    FILE       *f = fopen(path, "wb"); /* does not wait for the disk */
    ck_assert(f && fwrite(bytes, 1, n, f) == n && fclose(f) == 0);
    const size_t  before = tn_memory_now().live;
    tn_tokenizer *t = tn_tokenizer_load(path);
    ck_assert((t != NULL) == (tn_error() == TN_OK) && !(t && must_fail));
    ck_assert(t || tn_error() == TN_EFORMAT || tn_error() == TN_EUNSUPPORTED);
    tn_clear_error();
    tn_tokenizer_free(t);
    ck_assert_uint_eq(tn_memory_now().live, before);
}

TEST(broken_models)
{
    tn_tokenizer *t = small((tn_from_vocab_args){TN_FROM_VOCAB_ARGS_DEFAULTS});
    const char   *path = saved(t, "whole");
    tn_tensor    *file = tn_file_read(path, 1 << 20);
    const size_t  n = (size_t)tn_numel(file);
    ck_assert_int_eq(tn_string_add(&the_model, (tn_text){tn_data(file), n}), TN_OK);
    for (size_t i = 0; i < n; i += i < 300 ? 7 : 97) loads_or_says(the_model.at, i, i == 0);
    for (size_t i = 0; i < n; i += i < 100 ? 3 : 61) /* a bit each */
        for (int bit = 0; bit < 8; bit += 3) {
            the_model.at[i] = (char)(the_model.at[i] ^ 1 << bit);
            loads_or_says(the_model.at, n, false);
            the_model.at[i] = (char)(the_model.at[i] ^ 1 << bit);
        }
    tn_drop(file);
    tn_string_free(&the_model);
    tn_tokenizer_free(t);
}

static const struct {
    const char *bytes;
    size_t      n;
    const char *says;
} refused[] = {
#define FILE_OF(bytes) bytes, sizeof bytes - 1
    {FILE_OF(""), "no pieces found; not a SentencePiece model"},
    {FILE_OF("\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01"), "a number is truncated or has more than 64 bits"},
    {FILE_OF("\x0a\x7f"
             "a"),
     "field 1 has 127 bytes, but only 1 are left"},
    {FILE_OF("\x2a\x03\x12\x01x"), "the model requires a denormalizer_spec with rules, which Tenon does not support"},
    {FILE_OF("\x0b"), "field 1 has wire type 3, expected 0, 1, 2 or 5"},
    {FILE_OF("\x08\x01"), "field 1 has wire type 0, expected 2"},
    {FILE_OF("\x00\x01"), "invalid field number 0"},
    {FILE_OF("\x0a\x02\x0a\x00"), "piece 0 is empty"},
    {FILE_OF("\x0a\x03\x0a\x01\xff"), "piece 0 is not UTF-8"},
    {FILE_OF("\x0a\x05\x0a\x03"
             "a\0b"),
     "piece 0 contains a NUL"},
    {FILE_OF("\x0a\x05\x0a\x01"
             "a\x18\x07"),
     "piece 0 has the type 7, expected 1 to 6"},
    {FILE_OF("\x0a\x03\x0a\x01"
             "a\x0a\x03\x0a\x01"
             "a"),
     "the piece 'a' has two ids, 0 and 1"},
    {FILE_OF("\x0a\x08\x0a\x01"
             "a\x15\0\0\xc0\x7f"),
     "the score of token 0 is not a finite number"},
    {FILE_OF("\x0a\x03\x0a\x01"
             "a"),
     "no piece has the type UNKNOWN"},
    {FILE_OF("\x12\x02\x18\x03"), "a model of words or characters (model_type), which Tenon does not support"},
    {FILE_OF("\x12\x03\xc0\x01\x01"), "treat_whitespace_as_suffix, which Tenon does not support"},
    {FILE_OF("\x1a\x02\x28\x00"), "escape_whitespaces: false, which Tenon does not support"},
    {FILE_OF("\x0a\x05\x0a\x01"
             "a\x18\x02\x1a\x0a\x12\x08\xff\xff\xff\xff"
             "abcd"),
     "precompiled_charsmap has 8 bytes"},
};

TEST_ROWS(models_refused, refused)
{
    const char *path = tn_test_file("refused.model");
    ck_assert_int_eq(tn_file_write(path, refused[_i].bytes, refused[_i].n), TN_OK);
    ck_assert_ptr_null(tn_tokenizer_load(path));
    ck_assert_msg(tn_error() != TN_OK && strstr(tn_error_message(), refused[_i].says), "says %s\n  not  %s",
                  tn_error_message(), refused[_i].says);
    tn_clear_error();
}

/* ---- training Unigram -------------------------------------------------------------------------------------------- */

static tn_tokenizer *trained(int threads, int64_t size)
{
    tn_json       *golden = tn_json_load(tn_test_data("golden/pieces.json"));
    const tn_json *text = tn_json_get(golden, "text");
    tn_set_threads(threads);
    tn_tokenizer *t = tn_tokenizer_train_text(tn_json_string(text), (size_t)tn_json_string_bytes(text),
                                              .kind = TN_UNIGRAM, .vocab_size = size);
    tn_set_threads(0);
    tn_json_free(golden);
    return t;
}

TEST(trains_unigram)
{
    tn_tokenizer *t = trained(1, 330), *again = trained(3, 330);
    ck_assert_msg(t && again, "%s", tn_error_message());
    ck_assert_int_eq(tn_tokenizer_size(t), 330);
    for (int64_t i = 0; i < 330; i++) ck_assert_str_eq(tn_tokenizer_token(t, i), tn_tokenizer_token(again, i));
    ck_assert_str_eq(tn_tokenizer_token(t, 0), "<unk>");
    ck_assert_str_eq(tn_tokenizer_token(t, 2), "</s>");
    ck_assert_int_ge(tn_tokenizer_id(t, S "the"), 0);
    for (int64_t i = 3; i < 330; i++) { /* a space only at the start; letters and signs not mixed */
        const char *piece = tn_tokenizer_token(t, i);
        ck_assert_msg(!strstr(piece + 1, S) && strcmp(piece, "isn't"), "%s", piece);
    }
    tn_encoding *e = tn_encoding_new();
    tn_string    back = {0};
    const char  *text = "The keys to the cabinet";
    ck_assert_int_eq(tn_tokenizer_encode(t, e, text, strlen(text)), TN_OK);
    ck_assert_int_lt(e->n, 14);
    ck_assert_int_eq(tn_tokenizer_decode(t, e->id, e->n, &back), TN_OK);
    ck_assert_str_eq(back.at, text);
    tn_tokenizer *model = tn_tokenizer_load(saved(t, "trained"));
    same(t, model);
    tn_string_free(&back);
    tn_encoding_free(e), tn_tokenizer_free(t), tn_tokenizer_free(again), tn_tokenizer_free(model);
    ck_assert_ptr_null(trained(1, 100));
    ck_assert_msg(tn_error() == TN_EINVAL && strstr(tn_error_message(), "characters and 3 special tokens"), "%s",
                  tn_error_message());
    tn_clear_error();
}

/* ---- without memory ---------------------------------------------------------------------------------------------- */

static bool uses(const tn_tokenizer *t)
{
    tn_encoding   *e = tn_encoding_new();
    tn_string      back = {0};
    tn_text_stream d = {{0}, 0, false};
    const bool     unigram = tn_tokenizer_kind_of(t) == TN_UNIGRAM;
    if (e &&
        tn_tokenizer_encode(t, e,
                            "the c\xff"
                            "at \xe7\x8b\x90",
                            11, .nth = unigram) == TN_OK &&
        tn_tokenizer_decode(t, e->id, e->n, &back) == TN_OK && e->n)
        tn_tokenizer_decode_next(t, &d, e->id[0], &back);
    tn_string_free(&back);
    tn_encoding_free(e);
    return tn_error() == TN_OK;
}

static bool all_of_it(const char *dir)
{
    static const char text[] = "the cat and the hat\nthat cat on the mat at the back\nthe rat ate the cat's hat\n";
    char              path[512];
    snprintf(path, sizeof path, "%s/tokenizer.model", dir);
    tn_tokenizer *t[4] = {tn_tokenizer_train_text(text, sizeof text - 1, .kind = TN_UNIGRAM, .vocab_size = 40)};
    if (t[0] && tn_tokenizer_save(t[0], dir) == TN_OK) t[1] = tn_tokenizer_load(dir);
    if (t[1]) t[2] = tn_tokenizer_load(path);
    if (t[2]) t[3] = small((tn_from_vocab_args){TN_FROM_VOCAB_ARGS_DEFAULTS});
    for (int i = 0; i < 4; i++) {
        if (t[i]) uses(t[i]);
        tn_tokenizer_free(t[i]);
    }
    return tn_error() == TN_OK;
}

static int no_sync(void *user, int fd) { return (void)user, (void)fd, 0; } /* slow, and not tested here */

TEST(memory_fails)
{
    tn_io io = *tn_system_io();
    io.fsync = no_sync;
    tn_set_io(&io);
    const char *dir = tn_test_file("faults");
    mkdir(dir, 0700);
    tn_set_threads(1);
    tn_faulty_memory_begin();
    tn_trim();
    ck_assert_msg(all_of_it(dir), "%s", tn_error_message());
    const size_t  live = tn_memory_now().live;
    const int64_t calls = tn_memory_calls(), step = calls / (tn_test_slow() ? 20 : 150) + 1;
    for (int64_t i = 0; i < calls; i += step) {
        tn_trim();
        tn_fail_memory(i, true);
        const bool fine = all_of_it(dir);
        tn_fail_memory(-1, false);
        ck_assert_msg(fine || tn_error() == TN_ENOMEM, "call %lld: %s", (long long)i, tn_error_message());
        tn_clear_error();
        ck_assert_uint_eq(tn_memory_now().live, live);
    }
    tn_faulty_memory_end();
    tn_set_threads(0);
    tn_set_io(NULL);
}
