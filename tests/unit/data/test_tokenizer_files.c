/* test_tokenizer_files.c — tokenizer files: a saved tokenizer is the same when it is loaded; which files are rejected,
 * and with which error; failing files and memory leave nothing allocated. */
#define _GNU_SOURCE
#include "tests/common/check_main.h"

#include "data/data.h"
#include "tests/common/faults.h"
#include <unistd.h>

static const char text[] =
    "the keys to the cabinet are on the table; the caf\xc3\xa9 isn't there. The keys, the keys!\n"
    "a second line, a second table \xe4\xb8\xad\xe6\x96\x87 and nothing else\n";

static tn_tokenizer *train(tn_tokenizer_kind kind)
{
    return tn_tokenizer_train_text(text, sizeof text - 1, .kind = kind, .vocab_size = kind == TN_BYTE_BPE ? 300 : 100);
}

static void write_file(const char *path, const char *what)
{
    ck_assert_int_eq(tn_file_write(path, what, strlen(what)), TN_OK);
}

/* Both encode the text in the same way. */
static void same(const tn_tokenizer *a, const tn_tokenizer *b)
{
    tn_encoding *x = tn_encoding_new(), *y = tn_encoding_new();
    ck_assert_msg(a && b, "%s", tn_error_message());
    ck_assert_int_eq(tn_tokenizer_size(a), tn_tokenizer_size(b));
    ck_assert_int_eq(
        tn_tokenizer_encode(a, x, text, sizeof text - 1, .pair = "the <|endoftext|>[MASK]", .pair_bytes = 23), TN_OK);
    ck_assert_int_eq(
        tn_tokenizer_encode(b, y, text, sizeof text - 1, .pair = "the <|endoftext|>[MASK]", .pair_bytes = 23), TN_OK);
    ck_assert_int_eq(x->n, y->n);
    ck_assert_int_gt(x->n, 20);
    ck_assert(!memcmp(x->id, y->id, (size_t)x->n * 4) && !memcmp(x->start, y->start, (size_t)x->n * 4));
    ck_assert(!memcmp(x->segment, y->segment, (size_t)x->n));
    tn_encoding_free(x), tn_encoding_free(y);
}

TEST_EACH(opens_what_it_saved, 3)
{
    const char   *dir = tn_test_folder(_i == 0 ? "wordpiece" : _i == 1 ? "bpe" : "bytes");
    tn_tokenizer *t = train((tn_tokenizer_kind)_i);
    ck_assert_int_eq(tn_tokenizer_save(t, dir), TN_OK);
    tn_tokenizer *again = tn_tokenizer_load(dir), *json = tn_tokenizer_load(tn_test_in(dir, "tokenizer.json"));
    same(t, again);
    same(t, json);
    ck_assert_int_eq(tn_tokenizer_save(again, dir), TN_OK);
    tn_tokenizer_free(again), tn_tokenizer_free(json);
    if (_i != 1) { /* the older files hold as much */
        unlink(tn_test_in(dir, "tokenizer.json"));
        again = tn_tokenizer_load(dir);
        same(t, again);
        tn_tokenizer_free(again);
    }
    tn_tokenizer_free(t);
}

/* An end token follows texts instead of the template's tokens, and is saved. */
TEST_EACH(saves_the_end, 3)
{
    const char   *dir = tn_test_folder("end");
    tn_tokenizer *t = train(_i == 0 ? TN_BPE : _i == 1 ? TN_BYTE_BPE : TN_UNIGRAM);
    tn_encoding  *e = tn_encoding_new();
    const int64_t n = tn_tokenizer_size(t), end = tn_tokenizer_special(t).last;
    ck_assert_int_ge(end, 0);
    ck_assert_int_eq(tn_tokenizer_encode(t, e, "the keys", 8, .bare = true), TN_OK);
    const int64_t own = e->n;
    ck_assert_int_eq(tn_tokenizer_set_end(t, end), TN_OK);
    ck_assert_int_eq(tn_tokenizer_save(t, dir), TN_OK);
    tn_tokenizer *again = tn_tokenizer_load(dir);
    same(t, again);
    ck_assert_int_eq(tn_tokenizer_encode(again, e, "the keys", 8), TN_OK);
    ck_assert_int_eq(e->n, own + 1);
    ck_assert_int_eq(e->id[own], end);
    ck_assert_int_eq(e->special[own], TN_TOKEN_FROM_TEMPLATE);
    ck_assert_int_eq(tn_tokenizer_encode(again, e, "the keys", 8, .bare = true), TN_OK);
    ck_assert_int_eq(e->n, own);
    ck_fails_has(tn_tokenizer_set_end(t, n), TN_EINDEX, "tn_tokenizer_set_end: id is ");
    ck_fails_has(tn_tokenizer_set_end(t, -1), TN_EINDEX,
                 "tn_tokenizer_set_end: id is -1, expected a token id from 0 to ");
    ck_fails(tn_tokenizer_set_end(NULL, 0), TN_EINVAL, "tn_tokenizer_set_end: the tokenizer is NULL");
    tn_encoding_free(e);
    tn_tokenizer_free(t), tn_tokenizer_free(again);
}

TEST(heeds_the_config)
{
    const char *dir = tn_test_folder("config");
    write_file(tn_test_in(dir, "vocab.txt"), "[UNK]\nA\na\n\xc3\xa9\ne\n\xe4\xb8\xad\n");
    tn_tokenizer *t = tn_tokenizer_load(dir);
    tn_encoding  *e = tn_encoding_new();
    tn_tokenizer_encode(t, e, "A \xc3\xa9", 4);
    ck_assert(e->n == 2 && e->id[0] == 2 && e->id[1] == 4);
    tn_tokenizer_free(t);
    t = tn_tokenizer_load(tn_test_in(dir, "vocab.txt"), .lowercase = TN_NO);
    tn_tokenizer_encode(t, e, "A \xc3\xa9", 4);
    ck_assert(e->n == 2 && e->id[0] == 1 && e->id[1] == 3);
    tn_tokenizer_free(t);
    write_file(tn_test_in(dir, "tokenizer_config.json"),
               "{\"do_lower_case\": true, \"strip_accents\": false, \"tokenize_chinese_chars\": false}");
    t = tn_tokenizer_load(dir);
    tn_tokenizer_encode(t, e, "A \xc3\xa9 \xe4\xb8\xad\xe4\xb8\xad", 11);
    ck_assert(e->n == 3 && e->id[0] == 2 && e->id[1] == 3 && e->id[2] == 0);
    tn_tokenizer_free(t);
    tn_encoding_free(e);
}

/* ---- rejected files ---------------------------------------------------------------------------------------------- */

#define MODEL(more) "\"model\":{\"type\":\"WordPiece\",\"unk_token\":\"[UNK]\",\"vocab\":{\"[UNK]\":0,\"a\":1}}" more
#define BPE(more) \
    "\"pre_tokenizer\":{\"type\":\"ByteLevel\"},\"model\":{\"type\":\"BPE\",\"vocab\":{\"a\":0,\"b\":1}," more "}"
#define UNIGRAM "\"model\":{\"type\":\"Unigram\",\"vocab\":[[\"<unk>\",0],[\"a\",-1.5]],"
#define BERT "\"pre_tokenizer\":{\"type\":\"BertPreTokenizer\"},"
static const struct {
    const char *json;
    tn_status   code;
    const char *says;
} refused[] = {
    {"{}", TN_EINDEX, "has no 'model'"},
    {"{\"model\":{\"type\":\"WordLevel\"}}", TN_EUNSUPPORTED, "the model is 'WordLevel', which Tenon does not support"},
    {"{\"model\":{\"type\":\"Unigram\",\"vocab\":{}}}", TN_EFORMAT, "model.vocab must be an array"},
    {"{" UNIGRAM "\"unk_id\":2}}", TN_EFORMAT, "unk_id is 2, but token ids are 0 to 1"},
    {"{\"normalizer\":{\"type\":\"Nmt\"}," UNIGRAM "\"unk_id\":0}}", TN_EUNSUPPORTED, "the normalizer is 'Nmt'"},
    {"{\"normalizer\":{\"type\":\"Precompiled\",\"precompiled_charsmap\":\"AAA\"}," UNIGRAM "\"unk_id\":0}}",
     TN_EFORMAT, "precompiled_charsmap is not base64"},
    {"{\"normalizer\":{\"type\":\"Precompiled\",\"precompiled_charsmap\":\"////////\"}," UNIGRAM "\"unk_id\":0}}",
     TN_EFORMAT, "it is truncated or damaged"},
    {"{\"normalizer\":{\"type\":\"Replace\",\"pattern\":{\"Regex\":\"a+\"},\"content\":\"\"}," UNIGRAM "\"unk_id\":0}}",
     TN_EUNSUPPORTED, "the normalizer's regex is 'a+'"},
    {"{\"pre_tokenizer\":{\"type\":\"Digits\"}," UNIGRAM "\"unk_id\":0}}", TN_EUNSUPPORTED,
     "the pre_tokenizer is 'Digits'"},
    {"{\"pre_tokenizer\":{\"type\":\"Metaspace\",\"replacement\":\"_\"}," UNIGRAM "\"unk_id\":0}}", TN_EUNSUPPORTED,
     "Metaspace's replacement is '_'"},
    {"{\"normalizer\":{\"type\":\"Replace\",\"pattern\":{\"String\":\"the\"},\"content\":\"K\"},\"pre_tokenizer\":{"
     "\"type\":\"Metaspace\",\"prepend_scheme\":\"first\"}," UNIGRAM "\"unk_id\":0}}",
     TN_EUNSUPPORTED, "prepend_scheme first after the normalizer's Replace is 'the'"},
    {"{\"decoder\":{\"type\":\"CTC\"}," UNIGRAM "\"unk_id\":0}}", TN_EUNSUPPORTED, "the decoder is 'CTC'"},
    {"{" MODEL("") "}", TN_EUNSUPPORTED, "the pre_tokenizer is 'null', which"},
    {"{\"pre_tokenizer\":{\"type\":\"Metaspace\"}," MODEL("") "}", TN_EUNSUPPORTED, "the pre_tokenizer is 'Metaspace'"},
    {"{\"pre_tokenizer\":{\"type\":\"ByteLevel\"}," MODEL("") "}", TN_EUNSUPPORTED, "the pre_tokenizer is 'ByteLevel'"},
    {"{" BERT MODEL(",\"normalizer\":{\"type\":\"NFKC\"}") "}", TN_EUNSUPPORTED, "the normalizer is 'NFKC'"},
    {"{" BERT MODEL(",\"post_processor\":{\"type\":\"Reverse\"}") "}", TN_EUNSUPPORTED,
     "the post_processor is 'Reverse'"},
    {"{" BERT MODEL(",\"decoder\":{\"type\":\"CTC\"}") "}", TN_EUNSUPPORTED, "the decoder is 'CTC'"},
    {"{" BERT MODEL(",\"added_tokens\":[{\"id\":1,\"content\":\"b\"}]") "}", TN_EFORMAT,
     "'b' has the id 1, which another token has"},
    {"{" BERT MODEL(",\"added_tokens\":[{\"id\":2,\"content\":\"a\"}]") "}", TN_EFORMAT, "'a' has two ids, 1 and 2"},
    {"{" BERT MODEL(",\"added_tokens\":[{\"id\":2,\"content\":\"\"}]") "}", TN_EFORMAT, "an added token is empty"},
    {"{" BERT MODEL(",\"normalizer\":{\"type\":\"BertNormalizer\"},"
                    "\"added_tokens\":[{\"id\":2,\"content\":\"b\",\"normalized\":true}]") "}",
     TN_EUNSUPPORTED, "an added token that the normalizer may change (normalized true) is 'b'"},
    {"{\"pre_tokenizer\":{\"type\":\"Sequence\",\"pretokenizers\":[{\"type\":\"Split\",\"pattern\":{\"Regex\":\"x+\"},"
     "\"behavior\":\"Isolated\"},{\"type\":\"ByteLevel\",\"use_regex\":false}]},\"model\":{\"type\":\"BPE\"}}",
     TN_EUNSUPPORTED, "the pre_tokenizer's Split is 'x+', which Tenon does not support"},
    {"{" BERT MODEL(",\"added_tokens\":[{\"id\":99999999,\"content\":\"b\"}]") "}", TN_EFORMAT,
     "a token has the id 99999999, expected 0 to 1005"},
    {"{" BERT MODEL(",\"post_processor\":{\"type\":\"BertProcessing\",\"sep\":[\"x\",7],\"cls\":[\"x\",0]}") "}",
     TN_EFORMAT, "the post_processor's token id 7 is not in the vocabulary"},
    {"{" BERT MODEL(",\"post_processor\":{\"type\":\"TemplateProcessing\",\"single\":[{\"Sequence\":{\"id\":\"B\"}}],"
                    "\"pair\":[]}") "}",
     TN_EUNSUPPORTED, "the post_processor's template is 'single, without A once'"},
    {"{" BERT MODEL(",\"post_processor\":{\"type\":\"TemplateProcessing\",\"single\":[{\"Sequence\":{\"id\":\"C\"}}],"
                    "\"pair\":[]}") "}",
     TN_EFORMAT, "SpecialToken, Sequence or type_id of 'C' is not a token, A or B, 0 to 2"},
    {"{" BERT MODEL(",\"post_processor\":{\"type\":\"RobertaProcessing\",\"sep\":[\"a\",1],\"cls\":[\"a\",1]}") "}",
     TN_EUNSUPPORTED, "the post_processor with the members of another is 'RobertaProcessing'"},
    {"{" BERT MODEL(",\"post_processor\":{\"type\":\"TemplateProcessing\"}") "}", TN_EINDEX, "has no 'single'"},
    {"{" BERT MODEL(
         ",\"post_processor\":{\"type\":\"TemplateProcessing\",\"single\":[{\"Sequence\":{\"id\":\"A\"}}]}") "}",
     TN_EINDEX, "has no 'pair'"},
    {"{" BERT MODEL(",\"post_processor\":{\"type\":\"TemplateProcessing\",\"single\":[]}") "}", TN_EUNSUPPORTED,
     "the post_processor's template is 'single, without A once'"},
    {"{" BERT MODEL(",\"post_processor\":{\"type\":\"Sequence\"}") "}", TN_EINDEX, "has no 'processors'"},
    {"{\"normalizer\":{\"type\":\"Sequence\"}," UNIGRAM "\"unk_id\":0}}", TN_EINDEX, "has no 'normalizers'"},
    {"{\"pre_tokenizer\":{\"type\":\"Sequence\"}," UNIGRAM "\"unk_id\":0}}", TN_EINDEX, "has no 'pretokenizers'"},
    {"{\"decoder\":{\"type\":\"Sequence\"}," UNIGRAM "\"unk_id\":0}}", TN_EINDEX, "has no 'decoders'"},
    {"{" BERT "\"model\":{\"type\":\"WordPiece\",\"vocab\":{\"a\":0}}}", TN_EFORMAT,
     "the unknown token, [UNK], is not"},
    {"{" BERT "\"model\":{\"type\":\"WordPiece\",\"vocab\":{\"a\":-1}}}", TN_EFORMAT, "a token has the id -1"},
    {"{" BERT "\"model\":{\"type\":\"WordPiece\",\"vocab\":{\"a\":\"x\"}}}", TN_EFORMAT, "expected an integer"},
    {"{" BERT "\"model\":{\"type\":\"WordPiece\",\"vocab\":{\"a\":0,\"b\":0}}}", TN_EFORMAT, "'b' has the id 0, which"},
    {"{" BERT
     "\"model\":{\"type\":\"WordPiece\",\"unk_token\":\"a\",\"vocab\":{\"a\":0},\"max_input_chars_per_word\":0}}",
     TN_EUNSUPPORTED, "max_input_chars_per_word is 0"},
    {"{" BPE("\"merges\":[\"a b\"]") "}", TN_EFORMAT,
     "merge 1 of 'a' and 'b': the two together is not in the vocabulary"},
    {"{" BPE("\"merges\":[\"a\"]") "}", TN_EFORMAT, "merge 1 is not two tokens"},
    {"{" BPE("\"merges\":[[\"a\",\"c\"]]") "}", TN_EFORMAT, "the second is not in the vocabulary"},
    {"{" BPE("\"dropout\":0.1,\"merges\":[]") "}", TN_EUNSUPPORTED, "'dropout', which"},
    {"{" BPE("\"byte_fallback\":true,\"merges\":[]") "}", TN_EUNSUPPORTED, "'byte_fallback', which"},
    {"{" BPE("\"unk_token\":\"u\",\"merges\":[]") "}", TN_EFORMAT,
     "the unknown token (unk_token), 'u', is not in model.vocab"},
};

TEST_ROWS(refuses, refused)
{
    const char *json = refused[_i].json;
    ck_assert_ptr_null(tn_tokenizer_parse(json, strlen(json)));
    ck_assert_msg(tn_error() == refused[_i].code && strstr(tn_error_message(), refused[_i].says),
                  "%s\n  says %s: %s\n  not  %s", json, tn_status_name(tn_error()), tn_error_message(),
                  refused[_i].says);
    tn_clear_error();
}

static void refuses_file(const char *name, const char *what, tn_status code, const char *says)
{
    const char *path = tn_test_file(name);
    write_file(path, what);
    ck_refused_has(tn_tokenizer_load(path), code, says);
}

TEST(refuses_files)
{
    refuses_file("v.txt", "a\nb\n", TN_EFORMAT, "the unknown token, [UNK], is not in the vocabulary");
    refuses_file("v.txt", "[UNK]\na\nb\na\n", TN_EFORMAT, "line 4: 'a' is a duplicate of line 2");
    refuses_file("v.txt", "[UNK]\n\xff\n", TN_EFORMAT, "line 2 is not UTF-8");
    refuses_file("v.json", "{\"a\":", TN_EFORMAT, "line 1");
    char long_line[9000];
    memset(long_line, 'a', sizeof long_line);
    long_line[8999] = 0;
    refuses_file("v.txt", long_line, TN_EFORMAT, "line 1 has more than 8192 bytes");
    const char *dir = tn_test_folder("gpt2");
    write_file(tn_test_in(dir, "vocab.json"), "{\"a\":0,\"b\":1,\"ab\":2}");
    write_file(tn_test_in(dir, "merges.txt"), "#version: 0.2\na b\na b\n");
    ck_assert_ptr_null(tn_tokenizer_load(dir));
    ck_assert(strstr(tn_error_message(), "duplicate merge of 'a' and 'b'"));
    tn_clear_error();
    write_file(tn_test_in(dir, "merges.txt"), "a  b\n");
    ck_assert_ptr_null(tn_tokenizer_load(dir));
    ck_assert(strstr(tn_error_message(), "line 1 is not two tokens separated by a space"));
    tn_clear_error();
    write_file(tn_test_in(dir, "vocab.json"), "{\"a\":0,\"b\":2}");
    ck_assert_ptr_null(tn_tokenizer_load(dir));
    ck_assert(strstr(tn_error_message(), "'b' has the id 2, expected each id from 0 to 1 once"));
    tn_clear_error();
    ck_assert_ptr_null(tn_tokenizer_load(tn_test_folder("empty")));
    ck_assert(tn_error() == TN_EIO &&
              strstr(tn_error_message(), "is neither a file nor a folder with a tokenizer.json"));
    tn_clear_error();
    write_file(tn_test_in(dir, "vocab.json"), "{\"a\":0,\"b\":1,\"ab\":2}");
    write_file(tn_test_in(dir, "merges.txt"), "a b");
    ck_assert_ptr_null(tn_tokenizer_load(dir, .lowercase = TN_YES));
    ck_assert(strstr(tn_error_message(), "are for tokenizers with BERT's normalizer"));
    tn_clear_error();
}

/* ---- failures ---------------------------------------------------------------------------------------------------- */

static bool all_of_it(const char *dir, tn_tokenizer_kind kind)
{
    tn_tokenizer *t = train(kind), *again = NULL;
    tn_encoding  *e = tn_encoding_new();
    tn_string     back = {0};
    if (t && e && tn_tokenizer_save(t, dir) == TN_OK && (again = tn_tokenizer_load(dir)) &&
        tn_tokenizer_encode(again, e,
                            "the k\xff"
                            "eys and more",
                            16, .pair = "there", .pair_bytes = 5) == TN_OK)
        tn_tokenizer_decode(again, e->id, e->n, &back);
    const char *const texts[] = {"the", "the"};
    tn_token_batch    batch;
    const tn_scope    scope = tn_scope_begin();
    if (again) tn_tokenizer_batch(again, &batch, 2, texts, .pad_to = kind == TN_BYTE_BPE ? 0 : 9);
    tn_scope_end(scope);
    tn_string_free(&back);
    tn_encoding_free(e);
    tn_tokenizer_free(t), tn_tokenizer_free(again);
    return tn_error() == TN_OK;
}

static int no_sync(void *user, int fd) { return (void)user, (void)fd, 0; } /* slow, and not tested here */

TEST(memory_fails)
{
    tn_io io = *tn_system_io();
    io.fsync = no_sync;
    tn_set_io(&io);
    const char *dir = tn_test_folder("faults");
    tn_set_threads(1);
    tn_faulty_memory_begin();
    for (int kind = 0; kind < 3; kind++) {
        tn_fail_memory(-1, false);
        ck_assert(all_of_it(dir, (tn_tokenizer_kind)kind));
        const size_t  live = tn_memory_now().live; /* the stack of the scopes */
        const int64_t calls = tn_memory_calls(), step = calls / (tn_test_slow() ? 20 : 150) + 1;
        for (int64_t i = 0; i < calls; i += step) {
            tn_trim();
            tn_fail_memory(i, true);
            const bool fine = all_of_it(dir, (tn_tokenizer_kind)kind);
            tn_fail_memory(-1, false);
            ck_assert_msg(fine || tn_error() == TN_ENOMEM, "call %lld: %s", (long long)i, tn_error_message());
            tn_clear_error();
            ck_assert_uint_eq(tn_memory_now().live, live);
        }
    }
    tn_faulty_memory_end();
    tn_set_threads(0);
    tn_set_io(NULL);
}

TEST(files_fail)
{
    const char *dir = tn_test_folder("full");
    tn_faulty_files_begin();
    ck_assert(all_of_it(dir, TN_WORDPIECE));
    const int64_t calls = tn_file_calls();
    for (int64_t i = 0; i < calls; i += 7) {
        tn_fail_file(i, 28, true); /* ENOSPC */
        all_of_it(dir, TN_WORDPIECE);
        tn_clear_error();
        tn_fail_file(-1, 0, false);
        tn_tokenizer *t = tn_tokenizer_load(dir); /* the old files, the new ones, or a mixture: all are the same
                                                     tokenizer */
        ck_assert_msg(t != NULL, "call %lld: %s", (long long)i, tn_error_message());
        tn_tokenizer_free(t);
    }
    tn_faulty_files_end();
}

/* With .slow a sigma at the end of a word is final, as in Python: after a cased letter, squared ones too, skipping
 * case-ignorable characters. */
TEST(final_sigmas)
{
    static const char *const words[] = {"a\xce\xa3", "a'\xce\xa3", "\xf0\x9f\x84\xb0\xce\xa3",
                                        "\xf0\x9f\x85\xb9\xce\xa3", "\xe2\x85\xa0\xce\xa3"};
    static const char *const others[] = {"\xce\xa3", "a\xce\xa3\x62", "\xf0\x9f\x85\x8a\xce\xa3", "1\xce\xa3"};
    const char              *dir = tn_test_folder("sigma");
    write_file(tn_test_in(dir, "vocab.txt"), "[UNK]\na\n##\xcf\x82\n##\xcf\x83\n\xcf\x82\n\xcf\x83\n1\n##b\n'\n"
                                             "\xf0\x9f\x84\xb0\n\xf0\x9f\x85\xb9\n\xe2\x85\xb0\n\xf0\x9f\x85\x8a\n");
    tn_tokenizer *t = tn_tokenizer_load(dir, .slow = true);
    tn_encoding  *e = tn_encoding_new();
    ck_assert_msg(t != NULL, "%s", tn_error_message());
    for (size_t i = 0; i < 5 + 4; i++) {
        const char *word = i < 5 ? words[i] : others[i - 5];
        tn_string   back = {0};
        ck_assert_int_eq(tn_tokenizer_encode(t, e, word, strlen(word), .bare = true), TN_OK);
        ck_assert_int_eq(tn_tokenizer_decode(t, e->id, e->n, &back), TN_OK);
        ck_assert_msg(!strstr(back.at, "UNK") && !strstr(back.at, "\xcf\x82") == (i >= 5), "%s: %s", word, back.at);
        tn_string_free(&back);
    }
    tn_encoding_free(e);
    tn_tokenizer_free(t);
}
