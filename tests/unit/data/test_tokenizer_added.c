/* test_tokenizer_added.c — added tokens: first those of the original text, then in the rest those of the normalized
 * text; and which of the latter are rejected. Tokens at the ends of words in byte-level and Metaspace BPE. The expected
 * tokens and texts are those of tokenizers 0.23.3. */
#include "tests/common/check_main.h"

#include "data/data.h"

static void gives(const tn_tokenizer *t, const char *text, const char *expected)
{
    tn_encoding *e = tn_encoding_new();
    char         said[200] = "";
    ck_assert_int_eq(tn_tokenizer_encode(t, e, text, strlen(text), .bare = true), TN_OK);
    for (int64_t i = 0; i < e->n; i++) {
        if (i) strcat(said, " ");
        strcat(said, tn_tokenizer_token(t, e->id[i]));
    }
    ck_assert_str_eq(said, expected);
    tn_encoding_free(e);
}

/* Tokens of the original text precede those of the normalized text, wherever these start; then the longest. */
TEST(added_tokens_in_two_passes)
{
#define ADDED(content, normalized, id) \
    "{\"id\":" id ",\"content\":\"" content "\",\"normalized\":" normalized ",\"special\":false}"
#define TWO(form, added)                                                                               \
    "{\"added_tokens\":[" added "],\"normalizer\":" form ",\"pre_tokenizer\":{\"type\":\"ByteLevel\"," \
    "\"add_prefix_space\":false},\"model\":{\"type\":\"BPE\",\"vocab\":{\"a\":0,\"b\":1,\"c\":2},\"merges\":[]}}"
#define NFC "{\"type\":\"NFC\"}"
    static const char *const refused[] = {TWO(NFC, ADDED("cafe", "true", "3")), TWO(NFC, ADDED("K1", "true", "3")),
                                          TWO(NFC, ADDED("\xc3\xa9", "true", "3")),
                                          TWO("{\"type\":\"NFKC\"}", ADDED("<x>", "true", "3")),
                                          TWO("{\"type\":\"Lowercase\"}", ADDED("<x>", "true", "3"))};
    const char *json = TWO("null", ADDED("ab", "true", "3") "," ADDED("bc", "false", "4") "," ADDED("ca", "true", "5"));
    tn_tokenizer *t = tn_tokenizer_parse(json, strlen(json));
    ck_assert_msg(t != NULL, "%s", tn_error_message());
    gives(t, "abc", "a bc");
    gives(t, "abcab", "a bc ab");
    gives(t, "aabca", "a a bc a");
    gives(t, "cab", "ca b");
    const char *dir = tn_test_file("passes");
    mkdir(dir, 0700);
    ck_assert_int_eq(tn_tokenizer_save(t, dir), TN_OK);
    tn_tokenizer_free(t);
    t = tn_tokenizer_load(dir);
    gives(t, "abcab", "a bc ab");
    tn_tokenizer_free(t);
    for (size_t i = 0; i < sizeof refused / sizeof *refused; i++) {
        ck_assert_ptr_null(tn_tokenizer_parse(refused[i], strlen(refused[i])));
        ck_assert_msg(strstr(tn_error_message(), "an added token that the normalizer may change (normalized true) is"),
                      "%s", tn_error_message());
        tn_clear_error();
    }
    json = TWO(NFC, ADDED("<x>", "true", "3") "," ADDED("cafe", "false", "4"));
    t = tn_tokenizer_parse(json, strlen(json));
    ck_assert_msg(t != NULL, "%s", tn_error_message());
    gives(t, "a<x>cafe", "a <x> cafe");
    tn_tokenizer_free(t);
}

#define JSON(parts, added, model) "{" parts ",\"added_tokens\":[" added "],\"model\":{" model "}}"
#define TOKEN(id, content, more) "{\"id\":" id ",\"content\":\"" content "\",\"normalized\":false" more "}"
#define LEVEL                                                                \
    "\"pre_tokenizer\":{\"type\":\"ByteLevel\",\"add_prefix_space\":false}," \
    "\"decoder\":{\"type\":\"ByteLevel\"}"
#define META "{\"type\":\"Metaspace\",\"replacement\":\"\xe2\x96\x81\",\"split\":false}"
#define SPACES "\"pre_tokenizer\":" META ",\"decoder\":" META
#define UNCASED                                                                                       \
    "\"pre_tokenizer\":{\"type\":\"BertPreTokenizer\"},\"normalizer\":{\"type\":\"BertNormalizer\"}," \
    "\"decoder\":{\"type\":\"WordPiece\",\"prefix\":\"##\",\"cleanup\":true}"
#define STRIPS                                                                                           \
    "\"normalizer\":{\"type\":\"Replace\",\"pattern\":{\"String\":\" \"},\"content\":\"\xe2\x96\x81\"}," \
    "\"decoder\":{\"type\":\"Sequence\",\"decoders\":[{\"type\":\"Replace\",\"pattern\":{\"String\":"    \
    "\"\xe2\x96\x81\"},\"content\":\" \"},{\"type\":\"ByteFallback\"},{\"type\":\"Fuse\"},"              \
    "{\"type\":\"Strip\",\"content\":\" \",\"start\":1,\"stop\":0}]}"
#define G "\xc4\xa0"     /* a space in GPT-2's alphabet */
#define A "\xc3\x83"     /* the first byte of "é" */
#define C "\xc2\xa9"     /* the second */
#define U "\xe2\x96\x81" /* SentencePiece's space */
static const char suffixed[] =
    JSON(LEVEL, "",
         "\"type\":\"BPE\",\"end_of_word_suffix\":\"</w>\",\"vocab\":{\"a\":0,\"b\":1,\"" G "\":2,\"a</w>\":3,"
         "\"b</w>\":4,\"ab</w>\":5,\"" A "\":6,\"" C "</w>\":7,\"" A C "</w>\":8,\"" G "a\":9},\"merges\":"
         "[[\"a\",\"b</w>\"],[\"" A "\",\"" C "</w>\"],[\"" G "\",\"a\"]]");
static const char prefixed[] =
    JSON(LEVEL, "",
         "\"type\":\"BPE\",\"continuing_subword_prefix\":\"##\",\"vocab\":{\"a\":0,\"b\":1,\"" G "\":2,\"##a\":3,"
         "\"##b\":4,\"ab\":5,\"##ba\":6,\"aba\":7},\"merges\":[[\"a\",\"##b\"],[\"##b\",\"##a\"],"
         "[\"ab\",\"##a\"]]");
static const char spaces_suffixed[] =
    JSON(SPACES, "",
         "\"type\":\"BPE\",\"end_of_word_suffix\":\"</w>\",\"vocab\":{\"" U "\":0,\"a\":1,\"b\":2,\"a</w>\":3,"
         "\"b</w>\":4,\"" U "a\":5,\"ab</w>\":6},\"merges\":[[\"" U "\",\"a\"],[\"a\",\"b</w>\"]]");
static const char covid[] = JSON(UNCASED, TOKEN("4", "covid", "") "," TOKEN("5", "x", ",\"single_word\":true"),
                                 "\"type\":\"WordPiece\",\"unk_token\":\"[UNK]\",\"vocab\":{\"[UNK]\":0,\"co\":1,"
                                 "\"##vid\":2,\"##x\":3}");
static const char whole[] = JSON(LEVEL, TOKEN("2", "ab", ",\"single_word\":true") "," TOKEN("3", "\xc3\xa9", ""),
                                 "\"type\":\"BPE\",\"ignore_merges\":true,\"vocab\":{\"a\":0,\"b\":1},\"merges\":[]");
static const char strips[] = JSON(STRIPS, TOKEN("4", U "x", ",\"special\":true") "," TOKEN("5", " y", ""),
                                  "\"type\":\"BPE\",\"vocab\":{\"" U "\":0,\"a\":1,\"<0xE2>\":2,\"<0x20>\":3},"
                                  "\"merges\":[]");
static const char metaspace[] =
    JSON(SPACES, "", "\"type\":\"BPE\",\"vocab\":{\"" U "\":0,\"a\":1,\"" U U "a" U "\":2},\"merges\":[]");

static const struct {
    const char *json, *text, *tokens;
} encoded[] = {
    {suffixed, "ab a", "ab</w> " G " a</w>"},
    {suffixed, "aab b", "a ab</w> " G " b</w>"},
    {suffixed, "a\xc3\xa9 \xc3\xa9", "a " A C "</w> " G " " A C "</w>"},
    {prefixed, "ab a", "ab " G " ##a"},
    {prefixed, "aba bba", "aba " G " ##b ##ba"},
    {prefixed, " ab", G " ##a ##b"},
    {spaces_suffixed, "ab a", U "a b " U " a</w>"},
    {spaces_suffixed, "a b ab", U "a " U " b " U "a b</w>"},
    {covid, "COVID covid Covid", "co ##vid covid co ##vid"},
    {covid, "X x xx cox", "[UNK] x [UNK] co ##x"},
    {whole, "ab", "ab"},
    {whole, "abb bab", "a b b b a b"},
};

TEST_ROWS(models_split_words_into_their_own_tokens, encoded)
{
    const char   *dir = tn_test_file("own");
    tn_tokenizer *t = tn_tokenizer_parse(encoded[_i].json, strlen(encoded[_i].json));
    ck_assert_msg(t != NULL, "%s", tn_error_message());
    gives(t, encoded[_i].text, encoded[_i].tokens);
    mkdir(dir, 0700);
    ck_assert_int_eq(tn_tokenizer_save(t, dir), TN_OK);
    tn_tokenizer_free(t);
    t = tn_tokenizer_load(dir);
    gives(t, encoded[_i].text, encoded[_i].tokens);
    tn_tokenizer_free(t);
}

#define NONE "\xef\xbf\xbd"
static const struct {
    const char *json;
    int32_t     n, id[3];
    const char *text;
} decoded[] = {
    {suffixed, 3, {5, 2, 3}, "ab</w> a</w>"},
    {prefixed, 3, {5, 2, 3}, "ab ##a"},
    {spaces_suffixed, 3, {5, 6, 3}, "aab</w>a</w>"},
    {whole, 2, {3, 0}, NONE "a"},
    {whole, 2, {0, 3}, "a" NONE},
    {strips, 2, {4, 1}, "xa"},
    {strips, 2, {5, 1}, "ya"},
    {strips, 3, {0, 0, 1}, " a"},
    {strips, 3, {2, 2, 1}, NONE NONE "a"},
    {strips, 2, {3, 1}, "a"},
    {strips, 3, {1, 3, 2}, "a" NONE NONE},
    {metaspace, 2, {2, 2}, "a  a "},
};

TEST_ROWS(decoders_decode_added_tokens, decoded)
{
    tn_string     back = {0};
    tn_tokenizer *t = tn_tokenizer_parse(decoded[_i].json, strlen(decoded[_i].json));
    ck_assert_msg(t != NULL, "%s", tn_error_message());
    ck_assert_int_eq(tn_tokenizer_decode(t, decoded[_i].id, decoded[_i].n, &back, .keep_special = true), TN_OK);
    ck_assert_str_eq(back.at, decoded[_i].text);
    tn_string_free(&back);
    tn_tokenizer_free(t);
}

#define ONE(added) JSON(LEVEL, added, "\"type\":\"BPE\",\"vocab\":{\"a\":0,\"b\":1},\"merges\":[]")
static const struct {
    const char *json, *says;
} rejected[] = {
    {ONE(TOKEN("3", "x", "")), "added_tokens: 'x' has the id 3, but Hugging Face's library numbers it 2"},
    {ONE(TOKEN("3", "y", "") "," TOKEN("2", "x", "")), "'y' has the id 3, but Hugging Face's library numbers it 2"},
    {ONE(TOKEN("2", "x", "") "," TOKEN("2", "x", ",\"lstrip\":true")),
     "a token that added_tokens defines twice is 'x'"},
    {JSON(LEVEL, TOKEN("2", "c", ""), "\"type\":\"BPE\",\"unk_token\":\"c\",\"vocab\":{\"a\":0,\"b\":1},\"merges\":[]"),
     "the unknown token (unk_token), 'c', is not in model.vocab"},
    {JSON(LEVEL, "",
          "\"type\":\"BPE\",\"continuing_subword_prefix\":\"##\",\"vocab\":{\"a\":0,\"b\":1,\"ab\":2},"
          "\"merges\":[[\"a\",\"b\"]]"),
     "merge 1 of 'a' and 'b': the second starts without the prefix (continuing_subword_prefix)"},
};

TEST_ROWS(rejects_what_the_reference_reads_differently, rejected)
{
    ck_assert_ptr_null(tn_tokenizer_parse(rejected[_i].json, strlen(rejected[_i].json)));
    ck_assert_msg(strstr(tn_error_message(), rejected[_i].says), "%s", tn_error_message());
    tn_clear_error();
}

/* ---- normalization ----------------------------------------------------------------------------------------------- */

#define MODEL(rest) \
    "{\"type\":\"BPE\",\"vocab\":{\"a\":0,\"\u1ea1\":1,\"\u0323\":2,\"\u0301\":3," rest "},\"merges\":[]}"
#define FORM(form, rest) "{\"normalizer\":{\"type\":\"" form "\"},\"model\":" MODEL(rest) "}"

static tn_tokenizer *parsed(const char *json)
{
    tn_tokenizer *t = tn_tokenizer_parse(json, strlen(json));
    ck_assert_msg(t != NULL, "%s", tn_error_message());
    return t;
}

/* A form sorts marks by class: short runs in place, long ones in linear time; 40,000 marks took seconds. Where nothing
 * changes, tokens keep their places in the text. */
TEST(forms_part_by_part)
{
    tn_tokenizer *t = parsed(FORM("NFC", "\"z\":4"));
    tn_encoding  *e = tn_encoding_new();
    static char   text[80002];
    for (int n = 1; n <= 20000; n = n < 12 ? n + 1 : n * 5) {
        text[0] = 'a';
        for (int i = 0; i < n; i++) memcpy(text + 1 + 4 * i, "\u0301\u0323", 4);
        ck_assert_int_eq(tn_tokenizer_encode(t, e, text, (size_t)(4 * n + 1), .bare = true), TN_OK);
        ck_assert_int_eq(e->n, 2 * n); /* one is a part of the letter */
        for (int i = 0; i < 2 * n; i++) ck_assert_int_eq(e->id[i], i == 0 ? 1 : i < n ? 2 : 3);
    }
    tn_tokenizer_free(t);
    t = parsed(FORM("NFKC", "\"\u5feb\":4,\"\u901f\":5,\",\":6"));
    ck_assert_int_eq(tn_tokenizer_encode(t, e, "\u5feb\u901f\uff0c\u5feb", 12, .bare = true), TN_OK);
    for (int i = 0; i < 4; i++) ck_assert(e->start[i] == 3 * i && e->end[i] == 3 * i + 3);
    tn_encoding_free(e), tn_tokenizer_free(t);
}

/* A Split at spaces has no effect only if no later step writes spaces. */
TEST(spaces_after_a_replacement)
{
#define SPLIT(steps)                                                                                                \
    "{\"normalizer\":{\"type\":\"Sequence\",\"normalizers\":[{\"type\":\"Replace\",\"pattern\":{\"String\":\" \"}," \
    "\"content\":\"\u2581\"}" steps "]},\"pre_tokenizer\":{\"type\":\"Split\",\"pattern\":{\"String\":\" \"},"      \
    "\"behavior\":\"MergedWithPrevious\",\"invert\":false},\"model\":" MODEL("\"\u2581\":4") "}"
    static const char *const refused[] = {SPLIT(",{\"type\":\"NFKC\"}"),
                                          SPLIT(",{\"type\":\"Prepend\",\"prepend\":\" \"}")};
    tn_tokenizer            *t = parsed(SPLIT(""));
    gives(t, "a a", "a \u2581 a");
    tn_tokenizer_free(t);
    for (size_t i = 0; i < 2; i++) {
        ck_refused_has(tn_tokenizer_parse(refused[i], strlen(refused[i])), TN_EUNSUPPORTED,
                       "the pre_tokenizer is 'Split'");
    }
}

/* Qwen2's class gives its special tokens no options, so tokens with options are saved as another class. */
TEST(options_survive_saving)
{
    static const char json[] =
        "{\"added_tokens\":[{\"id\":4,\"content\":\"<|endoftext|>\",\"special\":true,\"lstrip\":true}],"
        "\"normalizer\":{\"type\":\"NFC\"},"
        "\"pre_tokenizer\":{\"type\":\"Sequence\",\"pretokenizers\":[{\"type\":\"Split\","
        "\"pattern\":{\"Regex\":\"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\\\\r\\\\n\\\\p{L}\\\\p{N}]?\\\\p{L}+|\\\\p{N}| "
        "?[^\\\\s\\\\p{L}\\\\p{N}]+[\\\\r\\\\n]*|\\\\s*[\\\\r\\\\n]+|\\\\s+(?!\\\\S)|\\\\s+\"},"
        "\"behavior\":\"Isolated\","
        "\"invert\":false},{\"type\":\"ByteLevel\",\"add_prefix_space\":false,\"trim_offsets\":false,"
        "\"use_regex\":false}]},"
        "\"decoder\":{\"type\":\"ByteLevel\"},"
        "\"model\":{\"type\":\"BPE\",\"vocab\":{\"a\":0,\"b\":1,\"\u0120\":2,\"c\":3},"
        "\"merges\":[]}}";
    const char *dir = tn_test_file("options");
    mkdir(dir, 0700);
    tn_tokenizer *t = parsed(json);
    for (int again = 0; again < 2; again++) {
        gives(t, "a <|endoftext|> b", "a <|endoftext|> \u0120 b");
        ck_assert_int_eq(tn_tokenizer_save(t, dir), TN_OK);
        tn_tokenizer_free(t);
        t = tn_tokenizer_load(dir);
        ck_assert_msg(t != NULL, "%s", tn_error_message());
    }
    tn_tokenizer_free(t);
}
