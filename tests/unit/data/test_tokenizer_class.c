/* test_tokenizer_class.c — folders without a tokenizer.json: the same vocabulary is read by the rules of the class that
 * tokenizer_config.json or config.json names; options that are not supported are rejected, with which error. And the
 * same files next to a tokenizer.json. */
#define _GNU_SOURCE
#include "tests/common/check_main.h"

#include "data/data.h"
#include <unistd.h>

static void write_or_not(const char *path, const char *what)
{
    unlink(path);
    if (what) ck_assert_int_eq(tn_file_write(path, what, strlen(what)), TN_OK);
}

#define BYTES_MORE "\"T\":6,\"h\":7,\"\u0120\":8,\"a\":9,\"b\":10,\"ab\":11,\"\u0120ab\":12,\"1\":13,\"2\":14,\"12\":15"
static const char bytes_vocab[] =
    "{\"<s>\":0,\"<pad>\":1,\"</s>\":2,\"<unk>\":3,\"<mask>\":4,\"<|endoftext|>\":5," BYTES_MORE "}";
#define MASK "{\"content\":\"<mask>\",\"lstrip\":true,\"normalized\":true,\"rstrip\":false,\"single_word\":false"
#define RIGHT "{\"content\":\"<mask>\",\"rstrip\":true,\"normalized\":false,\"special\":true}"
#define CLASS(name) "{\"tokenizer_class\":\"" name "\""
static const struct {
    const char *file, *config, *map, *added, *model, *ids; /* of "ab<mask> 12", and "ab"; or the error */
} folders[] = {
    {"vocab.json", NULL, NULL, NULL, NULL, "11 9 8 15 / 11 11"},
    {"vocab.json", NULL, NULL, NULL, "gpt2", "11 9 8 15 / 11 11"},
    {"vocab.json", NULL, NULL, NULL, "roberta", "0 11 4 8 15 2 / 0 11 2 2 11 2"},
    {"vocab.json", CLASS("RobertaTokenizer") "}", NULL, NULL, "gpt2", "0 11 4 8 15 2 / 0 11 2 2 11 2"},
    {"vocab.json", CLASS("RobertaTokenizerFast") ",\"add_prefix_space\":true}", NULL, NULL, NULL,
     "0 12 4 8 15 2 / 0 12 2 2 12 2"},
    {"vocab.json", CLASS("RobertaTokenizer") ",\"cls_token\":\"<pad>\"}", NULL, NULL, NULL,
     "1 11 4 8 15 2 / 1 11 2 2 11 2"},
    {"vocab.json", CLASS("GPT2Tokenizer") ",\"add_prefix_space\":true}", NULL, NULL, NULL, "12 9 8 15 / 12 12"},
    {"vocab.json", CLASS("GPT2Tokenizer") ",\"add_bos_token\":true,\"mask_token\":\"<mask>\"}", NULL, NULL, NULL,
     "5 11 4 8 15 / 5 11 5 11"},
    {"vocab.json", CLASS("Qwen2Tokenizer") ",\"additional_special_tokens\":[\"<mask>\"]}", NULL, NULL, NULL,
     "11 4 8 13 14 / 11 11"},
    {"vocab.json", CLASS("GPT2Tokenizer") ",\"mask_token\":" RIGHT "}", NULL, NULL, NULL, "11 4 15 / 11 11"},
    {"vocab.json", CLASS("Qwen2Tokenizer") ",\"mask_token\":" RIGHT "}", NULL, NULL, NULL, "11 4 8 13 14 / 11 11"},
    {"vocab.json", CLASS("Qwen2Tokenizer") ",\"extra_special_tokens\":[" RIGHT "]}", NULL, NULL, NULL,
     "11 4 8 13 14 / 11 11"},
    {"vocab.json", CLASS("Qwen2Tokenizer") ",\"extra_special_tokens\":{\"x\":" RIGHT "}}", NULL, NULL, NULL,
     "11 4 8 13 14 / 11 11"},
    {"vocab.json", CLASS("Qwen2Tokenizer") ",\"mask_token\":\"<mask>\",\"added_tokens_decoder\":{\"4\":" RIGHT "}}",
     NULL, NULL, NULL, "11 4 8 13 14 / 11 11"},
    {"vocab.json", CLASS("GPT2Tokenizer") "}", NULL, "{\"<new>\":16}", NULL, "11 9 8 15 / 11 11"},
    {"vocab.json", CLASS("GPT2Tokenizer") ",\"added_tokens_decoder\":{\"4\":" MASK "}}}", NULL, NULL, NULL,
     "11 4 8 15 / 11 11"},
    {"vocab.json", CLASS("XLNetTokenizer") "}", NULL, NULL, NULL,
     "tokenizer_class is 'XLNetTokenizer', which Tenon supports only in a tokenizer.json; create one with "
     "transformers' AutoTokenizer.from_pretrained(folder).save_pretrained(folder)"},
    {"vocab.json", CLASS("BertTokenizer") "}", NULL, NULL, NULL, "tokenizer_class is 'BertTokenizer', which"},
    {"vocab.json", CLASS("PreTrainedTokenizerFast") "}", NULL, NULL, NULL, "is 'PreTrainedTokenizerFast', which"},
    {"vocab.json", CLASS("Qwen2Tokenizer") ",\"add_bos_token\":true}", NULL, NULL, NULL,
     "add_bos_token is 'true, without a token', which"},
    {"vocab.json", CLASS("Qwen2Tokenizer") ",\"add_prefix_space\":true}", NULL, NULL, NULL,
     "add_prefix_space is 'not false', which"},
    {"vocab.json", CLASS("RobertaTokenizer") ",\"add_eos_token\":true}", NULL, NULL, NULL,
     "add_eos_token is 'not false', which"},
    {"vocab.json", CLASS("RobertaTokenizer") ",\"cls_token\":null}", NULL, NULL, NULL,
     "<s>, which RoBERTa adds around each text, is not in the vocabulary"},
    {"vocab.json", CLASS("GPT2Tokenizer") "}", NULL, "{\"<new>\":17}", NULL, "an added token is '<new>', which"},
    {"vocab.json", CLASS("GPT2Tokenizer") ",\"added_tokens_decoder\":{\"x\":" MASK "}}}", NULL, NULL, NULL,
     "a token id of added_tokens_decoder is 'x', which"},
    {"vocab.json", CLASS("GPT2Tokenizer") ",\"additional_special_tokens\":[\"<new>\"]}", NULL, NULL, NULL,
     "one of additional_special_tokens is '<new>', which"},
    {"vocab.json", NULL, "{\"pad_token\":\"<none>\"}", NULL, NULL, "pad_token is '<none>', which"},
    {"vocab.txt", CLASS("DistilBertTokenizer") "}", NULL, NULL, NULL, "2 5 8 1 9 7 3 / 2 5 3 5 3"},
    {"vocab.txt", CLASS("BertTokenizer") ",\"cls_token\":\"<mask>\",\"sep_token\":\"[PAD]\"}", NULL, NULL, NULL,
     "6 5 6 7 0 / 6 5 0 5 0"},
    {"vocab.txt", CLASS("BertTokenizer") ",\"mask_token\":" MASK "}}", NULL, NULL, NULL,
     "an added token that the normalizer may change (normalized true) is '<mask>', which"},
    {"vocab.txt", NULL, NULL, "{\"[ENT]\":10}", NULL,
     "an added token that the normalizer may change (normalized true) is '[ENT]'"},
    {"vocab.txt", CLASS("BertTokenizer") ",\"never_split\":[\"x\"]}", NULL, NULL, NULL, "never_split is 'not empty'"},
    {"vocab.txt", CLASS("MPNetTokenizer") "}", NULL, NULL, NULL, "tokenizer_class is 'MPNetTokenizer', which"},
};

static void ids_of(const tn_tokenizer *t, const char *text_a, const char *text_b, char to[200])
{
    tn_encoding *e = tn_encoding_new();
    size_t       at = strlen(to);
    tn_tokenizer_encode(t, e, text_a, strlen(text_a), .pair = text_b, .pair_bytes = text_b ? strlen(text_b) : 0);
    for (int64_t i = 0; i < e->n; i++) at += (size_t)snprintf(to + at, 200 - at, i ? " %d" : "%d", e->id[i]);
    tn_encoding_free(e);
}

TEST_ROWS(heeds_the_class, folders)
{
    const char *dir = tn_test_folder("class"), *says = folders[_i].ids;
    const bool  bert = !strcmp(folders[_i].file, "vocab.txt");
    char        model[60], got[200] = "";
    snprintf(model, sizeof model, "{\"model_type\":\"%s\"}", folders[_i].model ? folders[_i].model : "");
    unlink(tn_test_in(dir, "SHA256SUMS")), unlink(tn_test_in(dir, "tokenizer.json"));
    write_or_not(tn_test_in(dir, "vocab.json"), bert ? NULL : bytes_vocab);
    write_or_not(tn_test_in(dir, "merges.txt"), bert ? NULL : "#version: 0.2\na b\n\xc4\xa0 ab\n1 2\n");
    write_or_not(tn_test_in(dir, "vocab.txt"),
                 bert ? "[PAD]\n[UNK]\n[CLS]\n[SEP]\n[MASK]\nab\n<mask>\n12\n<\n>\n" : NULL);
    write_or_not(tn_test_in(dir, "tokenizer_config.json"), folders[_i].config);
    write_or_not(tn_test_in(dir, "special_tokens_map.json"), folders[_i].map);
    write_or_not(tn_test_in(dir, "added_tokens.json"), folders[_i].added);
    write_or_not(tn_test_in(dir, "config.json"), folders[_i].model ? model : NULL);
    tn_tokenizer *t = tn_tokenizer_load(dir);
    if (says[0] < '0' || says[0] > '9') {
        ck_assert_msg(!t && strstr(tn_error_message(), says), "%s: says %s, not %s", folders[_i].config,
                      tn_error_message(), says);
        tn_clear_error();
        return;
    }
    ck_assert_msg(t != NULL, "%s: %s", folders[_i].config, tn_error_message());
    ids_of(t, bert ? "ab <mask> 12" : "ab<mask> 12", NULL, got);
    strcat(got, " / ");
    ids_of(t, "ab", "ab", got);
    ck_assert_msg(!strcmp(got, says), "%s: %s, not %s", folders[_i].config, got, says);
    ck_assert_int_eq(tn_tokenizer_save(t, dir), TN_OK); /* names the class again, with and without its tokenizer.json */
    for (int i = 0; i < 2; i++) {
        tn_tokenizer *again = tn_tokenizer_load(dir);
        ck_assert_msg(again != NULL, "%s", tn_error_message());
        got[0] = 0;
        ids_of(again, "ab", "ab", got);
        ck_assert_msg(!strcmp(got, strstr(says, "/ ") + 2), "%s: %s again", folders[_i].config, got);
        tn_tokenizer_free(again);
        unlink(tn_test_in(dir, "tokenizer.json"));
        if (strstr(folders[_i].config ? folders[_i].config : "", "add_bos")) break; /* no class decides its rules */
    }
    tn_tokenizer_free(t);
}

/* Next to a .model the class and its options are applied, or rejected. */
static const struct {
    const char *config, *ids; /* of "the"; or the error */
} models[] = {
    {"{\"tokenizer_class\": \"LlamaTokenizer\"}", "1 3 4 5 6"},
    {"{\"tokenizer_class\": \"PreTrainedTokenizerFast\", \"add_bos_token\": null}", "1 3 4 5 6"},
    {"{\"add_bos_token\": false, \"pad_token\": \"</s>\"}", "3 4 5 6"},
    {"{\"tokenizer_class\": \"LlamaTokenizerFast\", \"add_eos_token\": true}", "1 3 4 5 6 2"},
    {"{\"add_bos_token\": false, \"add_eos_token\": true, \"added_tokens_decoder\": {\"2\": {\"content\": "
     "\"</s>\"}}}",
     "3 4 5 6 2"},
    {"{\"tokenizer_class\": \"AlbertTokenizer\"}", "tokenizer_class is 'AlbertTokenizer', which"},
    {"{\"tokenizer_class\": \"RobertaTokenizer\"}", "tokenizer_class is 'RobertaTokenizer', which"},
    {"{\"add_prefix_space\": false}", "add_prefix_space is 'not true', which"},
    {"{\"sp_model_kwargs\": {\"alpha\": 0.1}}", "sp_model_kwargs is 'not empty', which"},
    {"{\"pad_token\": \"[PAD]\"}", "pad_token is '[PAD]', which"},
    {"{\"mask_token\": \"the\"}", "mask_token is 'the', which"},
    {"{\"added_tokens_decoder\": {\"8\": {\"content\": \"<e>\"}}}", "an added token is '<e>', which"},
    {NULL, "model_type is 'albert', which"},
};

TEST_ROWS(heeds_a_models_class, models)
{
    static const char *const pieces[] = {"<unk>",           "<s>", "</s>", "\xe2\x96\x81", "t", "h", "e",
                                         "\xe2\x96\x81the", "the"};
    const char              *dir = tn_test_folder("model"), *says = models[_i].ids;
    tn_tokenizer            *t = tn_tokenizer_from_vocab(9, pieces, .kind = TN_SENTENCE_BPE);
    ck_assert_msg(t && tn_tokenizer_save(t, dir) == TN_OK, "%s", tn_error_message());
    tn_tokenizer_free(t);
    unlink(tn_test_in(dir, "SHA256SUMS")), unlink(tn_test_in(dir, "tokenizer.json")),
        unlink(tn_test_in(dir, "special_tokens_map.json"));
    write_or_not(tn_test_in(dir, "tokenizer_config.json"), models[_i].config);
    write_or_not(tn_test_in(dir, "config.json"), models[_i].config ? NULL : "{\"model_type\": \"albert\"}");
    t = tn_tokenizer_load(dir);
    if (!t || says[0] > '9') {
        ck_assert_msg(!t && strstr(tn_error_message(), says), "%s: %s", models[_i].config, tn_error_message());
        tn_clear_error();
        return;
    }
    char got[200] = "";
    ids_of(t, "the", NULL, got);
    ck_assert_str_eq(got, says);
    tn_tokenizer_free(t);
}

/* T5Tokenizer's rules for a Unigram .model, compared with transformers (tests/golden/t5.py): its own splits, sentinels
 * and end token; once saved, the same from the tokenizer.json. */
TEST_EACH(t5_as_transformers, 2)
{
    enum { MOST = 100, SENTINELS = 100 };
    const char    *dir = tn_test_folder("t5"), *pieces[MOST];
    float          scores[MOST];
    int32_t        types[MOST];
    char           path[1200];
    tn_json       *golden = tn_json_load(tn_test_data("golden/t5/tokens.json"));
    const tn_json *list = tn_json_get(golden, "pieces"), *all = tn_json_get(golden, "scores");
    const int64_t  n = tn_json_count(list);
    ck_assert(n > 50 && n <= MOST);
    for (int64_t i = 0; i < n; i++) {
        pieces[i] = tn_json_string(tn_json_at(list, i)), scores[i] = (float)tn_json_double(tn_json_at(all, i));
        types[i] = i < 2 ? TN_TYPE_CONTROL : i == 2 ? TN_TYPE_UNKNOWN : TN_TYPE_NORMAL;
    }
    tn_tokenizer *t = tn_tokenizer_from_vocab(n, pieces, .kind = TN_UNIGRAM, .scores = scores, .types = types);
    ck_assert_msg(t && tn_tokenizer_save(t, dir) == TN_OK, "%s", tn_error_message());
    tn_tokenizer_free(t);
    snprintf(path, sizeof path, "%s/spiece.model", dir);
    ck_assert_int_eq(rename(tn_test_in(dir, "tokenizer.model"), path), 0);
    unlink(tn_test_in(dir, "SHA256SUMS")), unlink(tn_test_in(dir, "tokenizer.json"));
    unlink(tn_test_in(dir, "special_tokens_map.json"));
    write_or_not(tn_test_in(dir, "tokenizer_config.json"), _i ? NULL : "{\"tokenizer_class\": \"T5Tokenizer\"}");
    write_or_not(tn_test_in(dir, "config.json"), _i ? "{\"model_type\": \"t5\"}" : NULL);
    for (int saved = 0; saved < 2; saved++) {
        t = tn_tokenizer_load(dir);
        ck_assert_msg(t != NULL, "%s", tn_error_message());
        ck_assert(tn_tokenizer_size(t) == n + SENTINELS && tn_tokenizer_id(t, "<extra_id_0>") == n + SENTINELS - 1 &&
                  tn_tokenizer_id(t, "<extra_id_99>") == n && tn_tokenizer_is_special(t, n));
        ck_assert(tn_tokenizer_special(t).pad == 0 && tn_tokenizer_special(t).last == 1);
        tn_encoding *e = tn_encoding_new();
        for (const tn_json *c = tn_json_first(tn_json_get(golden, "cases")); c; c = tn_json_next(c)) {
            const char    *text = tn_json_string(tn_json_get(c, "text"));
            const tn_json *ids[] = {tn_json_get(c, "ids"), tn_json_get(c, "bare")};
            for (int bare = 0; bare < 2; bare++) {
                tn_tokenizer_encode(t, e, text, strlen(text), .bare = bare);
                ck_assert_msg(e->n == tn_json_count(ids[bare]), "'%s': %d ids", text, (int)e->n);
                for (int64_t i = 0; i < e->n; i++)
                    ck_assert_msg(e->id[i] == tn_json_i64(tn_json_at(ids[bare], i)), "'%s': id %d is %d", text, (int)i,
                                  e->id[i]);
            }
            tn_tokenizer_encode(t, e, text, strlen(text));
            tn_string to = {0};
            ck_assert_int_eq(tn_string_add(&to, (tn_text){"", 0}), TN_OK);
            tn_tokenizer_decode(t, e->id, e->n, &to);
            tn_string_add(&to, (tn_text){"", 1});
            ck_assert_str_eq(to.at, tn_json_string(tn_json_get(c, "decoded")));
            tn_string_free(&to);
        }
        tn_encoding_free(e);
        ck_assert_msg(tn_tokenizer_save(t, dir) == TN_OK, "%s", tn_error_message());
        tn_tokenizer_free(t);
    }
    tn_json_free(golden);
}

/* Models that T5Tokenizer does not accept as they are. */
TEST(not_of_t5)
{
    static const struct {
        int         unknown;
        const char *config, *says;
    } wrong[] = {
        {0, "{\"tokenizer_class\": \"T5Tokenizer\"}", "<unk> is 'not token 2, as in T5'"},
        {2, "{\"tokenizer_class\": \"T5Tokenizer\", \"extra_ids\": -1}", "extra_ids is 'not a number from 0 to 1000'"},
    };
    const char *pieces[2][4] = {{"<unk>", "<pad>", "</s>", "a"}, {"<pad>", "</s>", "<unk>", "a"}};
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        const char   *dir = tn_test_folder("not_t5");
        const int32_t types[2][4] = {{TN_TYPE_UNKNOWN, TN_TYPE_CONTROL, TN_TYPE_CONTROL, TN_TYPE_NORMAL},
                                     {TN_TYPE_CONTROL, TN_TYPE_CONTROL, TN_TYPE_UNKNOWN, TN_TYPE_NORMAL}};
        const int     k = wrong[i].unknown == 2;
        tn_tokenizer *t = tn_tokenizer_from_vocab(4, pieces[k], .kind = TN_UNIGRAM, .types = types[k],
                                                  .scores = (const float[]){0, 0, 0, -1});
        ck_assert_msg(t && tn_tokenizer_save(t, dir) == TN_OK, "%s", tn_error_message());
        tn_tokenizer_free(t);
        unlink(tn_test_in(dir, "SHA256SUMS")), unlink(tn_test_in(dir, "tokenizer.json"));
        write_or_not(tn_test_in(dir, "tokenizer_config.json"), wrong[i].config);
        ck_assert_ptr_null(tn_tokenizer_load(dir));
        ck_assert_msg(strstr(tn_error_message(), wrong[i].says) != NULL, "%s", tn_error_message());
        tn_clear_error();
    }
    ck_refused(tn_tokenizer_train_text("a b", 3, .kind = TN_BYTE_BPE, .t5 = 3), TN_EINVAL,
               "tn_tokenizer_train: .t5 is for TN_UNIGRAM");
}

/* ---- next to a tokenizer.json ------------------------------------------------------------------------------------ */

#define PIECE(id, text) "{\"id\":" id ",\"content\":\"" text "\",\"special\":true,\"normalized\":false},"
static const char bert_json[] = "{\"added_tokens\":[" PIECE("0", "[PAD]") PIECE(
    "1",
    "[UNK]") "{\"id\":4,\"content\":\"[MASK]\",\"special\":true}],"
             "\"normalizer\":{\"type\":\"BertNormalizer\",\"clean_text\":true,\"handle_chinese_chars\":true,"
             "\"strip_accents\":null,\"lowercase\":true},\"pre_tokenizer\":{\"type\":\"BertPreTokenizer\"},"
             "\"model\":{\"type\":\"WordPiece\",\"unk_token\":\"[UNK]\",\"vocab\":{\"[PAD]\":0,\"[UNK]\":1,\"[CLS]\":2,"
             "\"[SEP]\":3,\"[MASK]\":4,\"ab\":5,\"AB\":6,\"e\":7,\"\u00e9\":8,\"new\":9,\"\u4f60\":10,"
             "\"\u4f60\u597d\":11}}}";
static const char gpt2_json[] =
    "{\"pre_tokenizer\":{\"type\":\"ByteLevel\",\"add_prefix_space\":false},\"decoder\":{\"type\":\"ByteLevel\"},"
    "\"model\":{\"type\":\"BPE\",\"vocab\":{\"A\":0,\"B\":1,\"\u0120\":2,\"AB\":3,\"\u0120AB\":4},"
    "\"merges\":[\"A B\",\"\u0120 AB\"]}}";
static const char llama_json[] =
    "{\"normalizer\":{\"type\":\"Prepend\",\"prepend\":\"\u2581\"},\"model\":{\"type\":\"BPE\",\"unk_token\":\"u\","
    "\"vocab\":{\"A\":0,\"B\":1,\"\u2581\":2,\"u\":3},\"merges\":[]}}";
static const char qwen2_json[] = /* its <|endoftext|> is not matched inside a word */
    "{\"added_tokens\":[{\"id\":0,\"content\":\"<|endoftext|>\",\"single_word\":true,\"normalized\":false}],"
    "\"pre_tokenizer\":{\"type\":\"ByteLevel\",\"add_prefix_space\":false},\"decoder\":{\"type\":\"ByteLevel\"},"
    "\"model\":{\"type\":\"BPE\",\"vocab\":{\"<|endoftext|>\":0,\"A\":1,\"B\":2},\"merges\":[]}}";
#define NAMED(name, more) "{\"tokenizer_class\":\"" name "\"," more "}"
#define FAST(more) NAMED("PreTrainedTokenizerFast", more)
#define BERT(more) NAMED("BertTokenizer", more)
#define WHOLE "{\"content\":\"B\",\"single_word\":true,\"normalized\":false}"
#define LOWER "\"do_lower_case\":false"
static const struct {
    const char *json, *config, *map, *added, *model, *ids; /* of "AB é 你好 new news"; or the error */
} beside[] = {
    {bert_json, NULL, NULL, NULL, NULL, "5 7 10 1 9 1"},
    {bert_json, BERT(LOWER), NULL, NULL, NULL, "6 8 10 1 9 1"},
    {bert_json, NAMED("DistilBertTokenizerFast", LOWER), NULL, NULL, NULL, "6 8 10 1 9 1"},
    {bert_json, "{" LOWER "}", NULL, NULL, "bert", "6 8 10 1 9 1"},
    {bert_json, "{" LOWER "}", NULL, NULL, NULL, "5 7 10 1 9 1"}, /* no file names the class of this option */
    {bert_json, FAST(LOWER), NULL, NULL, "bert", "5 7 10 1 9 1"},
    {bert_json, BERT("\"strip_accents\":false"), NULL, NULL, NULL, "5 8 10 1 9 1"},
    {bert_json, BERT(LOWER ",\"strip_accents\":true"), NULL, NULL, NULL, "6 7 10 1 9 1"},
    {bert_json, BERT("\"tokenize_chinese_chars\":false"), NULL, NULL, NULL, "5 7 11 9 1"},
    {bert_json, BERT("\"do_lower_case\":true,\"strip_accents\":null,\"pad_token\":\"[PAD]\""), NULL, NULL, NULL,
     "5 7 10 1 9 1"},
    {bert_json, FAST("\"pad_token\":\"new\""), NULL, NULL, NULL, "5 7 10 1 9 9 1"},
    {bert_json, FAST("\"extra_special_tokens\":[\"new\"]"), NULL, NULL, NULL, "5 7 10 1 9 9 1"},
    {bert_json, FAST("\"added_tokens_decoder\":{\"9\":{\"content\":\"new\",\"normalized\":false}}"), NULL, NULL, NULL,
     "5 7 10 1 9 9 1"},
    {bert_json, NULL, "{\"pad_token\":\"new\"}", NULL, NULL, "5 7 10 1 9 9 1"},
    {bert_json, FAST("\"image_token\":\"new\""), NULL, NULL, NULL, "5 7 10 1 9 9 1"},
    {bert_json, FAST("\"pad_token\":\"[PAD]\""), "{\"pad_token\":\"new\"}", NULL, NULL, "5 7 10 1 9 9 1"},
    {bert_json, FAST("\"added_tokens_decoder\":{}"), "{\"pad_token\":\"new\"}", NULL, NULL, "5 7 10 1 9 1"},
    {bert_json, FAST("\"split_special_tokens\":true,\"pad_token\":\"new\""), NULL, NULL, NULL, "5 7 10 1 9 1"},
    {bert_json, BERT("\"unk_token\":\"[PAD]\""), NULL, NULL, NULL, "5 7 10 0 9 0"},
    {bert_json, BERT("\"cls_token\":null"), NULL, NULL, NULL, "cls_token is 'null', which"},
    {bert_json, NULL, NULL, "{\"[MASK]\":4}", NULL, "5 7 10 1 9 1"},
    {bert_json, BERT("\"pad_token\":\"<pad>\""), NULL, NULL, NULL,
     "pad_token is '<pad>', which Tenon supports only in a tokenizer.json; create one with "
     "transformers' AutoTokenizer.from_pretrained(folder).save_pretrained(folder)"},
    {bert_json, NULL, "{\"pad_token\":\"<pad>\"}", NULL, NULL, "pad_token is '<pad>', which"},
    {bert_json, NULL, NULL, "{\"<n>\":12}", NULL, "an added token is '<n>', which"},
    {bert_json, FAST("\"added_tokens_decoder\":{\"12\":{\"content\":\"<n>\"}}"), NULL, NULL, NULL,
     "an added token is '<n>', which"},
    {bert_json, FAST("\"additional_special_tokens\":[\"<n>\"]"), NULL, NULL, NULL,
     "one of additional_special_tokens is '<n>', which"},
    {bert_json, FAST("\"extra_special_tokens\":{\"x\":\"<n>\"}"), NULL, NULL, NULL,
     "one of extra_special_tokens is '<n>', which"},
    {gpt2_json, NAMED("GPT2Tokenizer", "\"add_prefix_space\":false"), NULL, NULL, NULL, "3"},
    {gpt2_json, NAMED("GPT2Tokenizer", "\"add_prefix_space\":true"), NULL, NULL, NULL, "4"},
    {gpt2_json, FAST("\"add_prefix_space\":true"), NULL, NULL, "gpt2", "3"},
    {gpt2_json, NAMED("GPT2Tokenizer", "\"pad_token\":" WHOLE), NULL, NULL, NULL, "3"},
    {gpt2_json, NAMED("Qwen2Tokenizer", "\"pad_token\":" WHOLE), NULL, NULL, NULL, "0 1"},
    {qwen2_json, NAMED("GPT2Tokenizer", "\"legacy\":true"), NULL, NULL, NULL, "1 2"},
    {qwen2_json, NAMED("Qwen2Tokenizer", "\"legacy\":true"), NULL, NULL, NULL, "1 0 2"},
    {gpt2_json, BERT(LOWER), NULL, NULL, NULL, "tokenizer_config.json has options of BERT's normalizer, which"},
    {llama_json, NAMED("LlamaTokenizer", "\"add_prefix_space\":true"), NULL, NULL, NULL, "2 0 1"},
    {llama_json, NAMED("LlamaTokenizer", "\"add_prefix_space\":false"), NULL, NULL, NULL,
     "add_prefix_space is 'false', which"},
    {llama_json, FAST("\"add_prefix_space\":false"), NULL, NULL, NULL, "2 0 1"},
};

TEST_ROWS(heeded_beside_json, beside)
{
    const char *dir = tn_test_folder("beside"), *says = beside[_i].ids;
    char        model[60], got[200] = "";
    snprintf(model, sizeof model, "{\"model_type\":\"%s\"}", beside[_i].model ? beside[_i].model : "");
    write_or_not(tn_test_in(dir, "tokenizer.json"), beside[_i].json);
    write_or_not(tn_test_in(dir, "tokenizer_config.json"), beside[_i].config);
    write_or_not(tn_test_in(dir, "special_tokens_map.json"), beside[_i].map);
    write_or_not(tn_test_in(dir, "added_tokens.json"), beside[_i].added);
    write_or_not(tn_test_in(dir, "config.json"), beside[_i].model ? model : NULL);
    tn_tokenizer *t = tn_tokenizer_load(dir);
    if (!t || says[0] > '9') {
        ck_assert_msg(!t && strstr(tn_error_message(), says), "%s: %s", beside[_i].config, tn_error_message());
        tn_clear_error();
        return;
    }
    ids_of(t,
           beside[_i].json == bert_json    ? "AB \u00e9 \u4f60\u597d new news"
           : beside[_i].json == qwen2_json ? "A<|endoftext|>B"
                                           : "AB",
           NULL, got);
    ck_assert_msg(!strcmp(got, says), "%s: %s, not %s", beside[_i].config, got, says);
    tn_tokenizer_free(t);
    if (beside[_i].json != bert_json) return;
    t = tn_tokenizer_load(dir, .lowercase = TN_NO, .strip_accents = TN_NO); /* used if requested */
    ck_assert_msg(t != NULL, "%s", tn_error_message());
    got[0] = 0, ids_of(t, "AB \u00e9", NULL, got);
    ck_assert_str_eq(got, "6 8");
    tn_tokenizer_free(t);
}

/* A special token of tokenizer.json stays special if tokenizer_config.json denies it, except for LlamaTokenizer, which
 * transformers recreates from the config. */
TEST_EACH(special_beside_json, 2)
{
    static const char json[] =
        "{\"added_tokens\":[{\"id\":0,\"content\":\"A\",\"special\":true,\"normalized\":false},"
        "{\"id\":4,\"content\":\"</s>\",\"special\":true,\"normalized\":false}],"
        "\"normalizer\":{\"type\":\"Prepend\",\"prepend\":\"\u2581\"},\"model\":{\"type\":\"BPE\",\"unk_token\":\"u\","
        "\"vocab\":{\"A\":0,\"B\":1,\"\u2581\":2,\"u\":3,\"</s>\":4},\"merges\":[]}}";
#define NOT_SPECIAL                                                          \
    "\"added_tokens_decoder\":{\"0\":{\"content\":\"A\",\"special\":false}," \
    "\"4\":{\"content\":\"</s>\",\"special\":false}}"
    static const char *const config[] = {NAMED("LlamaTokenizer", NOT_SPECIAL), FAST(NOT_SPECIAL)};
    const char              *dir = tn_test_folder("special");
    write_or_not(tn_test_in(dir, "tokenizer.json"), json);
    write_or_not(tn_test_in(dir, "tokenizer_config.json"), config[_i]);
    tn_tokenizer *t = tn_tokenizer_load(dir);
    ck_assert_msg(t != NULL, "%s", tn_error_message());
    ck_assert_int_eq(tn_tokenizer_is_special(t, 0), _i == 1);
    ck_assert_int_eq(tn_tokenizer_is_special(t, 4), 1); /* LlamaTokenizer has it by default */
    tn_tokenizer_free(t);
}
