/* test_spm_classes.c — the tokenizers that transformers makes of a SentencePiece model: token ids compared with its own
 * (tests/golden/spm_classes.py), saving and loading them, and what is rejected. */
#include "data/data.h"
#include "tests/common/check_main.h"

#include <stdarg.h>

/* One of four texts in turn. */
static const char *named(const char *format, ...)
{
    static char text[4][1200];
    static int  n;
    va_list     list;
    va_start(list, format);
    vsnprintf(text[n = (n + 1) % 4], sizeof *text, format, list);
    va_end(list);
    return text[n];
}

static tn_json *answers;
static void     open_answers(void) { answers = tn_json_load(tn_test_data("golden/spm_classes/answers.json")), fine(); }
static void     close_answers(void) { tn_json_free(answers); }
AROUND_TESTS(open_answers, close_answers);
static const char *const names[] = {"deberta", "lower", "camembert", "xlm-roberta", "wangchan"};
enum { NAMES = sizeof names / sizeof *names };

static tn_tokenizer *opened(int i)
{
    tn_tokenizer *t = tn_tokenizer_load(tn_test_data(named("golden/spm_classes/%s", names[i])));
    fine();
    return t;
}

static void same_ids(const char *name, const char *text, const tn_encoding *e, const tn_json *want)
{
    ck_assert_msg(e->n == tn_json_count(want), "%s: '%s': %lld tokens, not %lld", name, text, (long long)e->n,
                  (long long)tn_json_count(want));
    for (int64_t k = 0; k < e->n; k++)
        ck_assert_msg(e->id[k] == tn_json_i64(tn_json_at(want, k)), "%s: '%s': token %lld is %d", name, text,
                      (long long)k, e->id[k]);
}

static void check(const tn_tokenizer *t, const char *name)
{
    const tn_json *of = tn_json_get(answers, name), *texts = tn_json_get(answers, "texts");
    tn_encoding   *e = tn_encoding_new();
    ck_assert_int_eq(tn_tokenizer_size(t), tn_json_i64(tn_json_get(of, "size")));
    for (int64_t i = 0; i < tn_json_count(texts); i++) {
        const char *text = tn_json_string(tn_json_at(texts, i));
        ck_assert_int_eq(tn_tokenizer_encode(t, e, text, strlen(text)), TN_OK);
        same_ids(name, text, e, tn_json_at(tn_json_get(of, "ids"), i));
    }
    const char *first = tn_json_string(tn_json_at(texts, 0)), *second = tn_json_string(tn_json_at(texts, 1));
    ck_assert_int_eq(tn_tokenizer_encode(t, e, first, strlen(first), .pair = second, .pair_bytes = strlen(second)),
                     TN_OK);
    same_ids(name, "a pair", e, tn_json_get(of, "pair"));
    tn_encoding_free(e);
}

TEST_EACH(ids_as_transformers, NAMES)
{
    tn_tokenizer            *t = opened(_i);
    const tn_tokenizer_roles r = tn_tokenizer_special(t);
    check(t, names[_i]);
    ck_assert(r.mask == tn_tokenizer_size(t) - 1 && r.pad == (_i > 1) && r.unknown == 3);
    ck_assert_str_eq(tn_tokenizer_token(t, r.first), _i > 1 ? "<s>" : "[CLS]");
    tn_tokenizer_free(t);
}

TEST_EACH(saved_as_json, NAMES)
{
    char          dir[1024];
    tn_tokenizer *t = opened(_i);
    snprintf(dir, sizeof dir, "%s", tn_test_folder(names[_i]));
    ck_assert_msg(tn_tokenizer_save(t, dir) == TN_OK, "%s", tn_error_message());
    tn_tokenizer_free(t);
    t = tn_tokenizer_load(dir);
    fine();
    check(t, names[_i]);
    tn_tokenizer_free(t);
}

/* Copies the model of a folder, with another tokenizer_config.json. */
static const char *with_config(const char *from, const char *file, const char *config)
{
    static char    dir[1024];
    const tn_scope s = tn_scope_begin();
    snprintf(dir, sizeof dir, "%s", tn_test_folder("other"));
    tn_tensor *model = tn_file_read(tn_test_data(named("golden/spm_classes/%s/%s", from, file)), 1 << 20);
    fine();
    remove(named("%s/spm.model", dir)), remove(named("%s/sentencepiece.bpe.model", dir));
    ck_assert_int_eq(tn_file_write(named("%s/%s", dir, file), tn_data(model), (size_t)tn_numel(model)), TN_OK);
    ck_assert_int_eq(tn_file_write(named("%s/tokenizer_config.json", dir), config, strlen(config)), TN_OK);
    tn_scope_end(s);
    return dir;
}

TEST_EACH(rejected, 4)
{
    static const struct {
        const char *from, *file, *config, *says;
    } wrong[] = {
        {"deberta", "spm.model", "{\"split_by_punct\": true}",
         "split_by_punct is 'not false', which Tenon supports only in a tokenizer.json"},
        {"camembert", "sentencepiece.bpe.model", "{\"add_prefix_space\": false}",
         "add_prefix_space is 'not true', which Tenon supports only in a tokenizer.json"},
        {"camembert", "sentencepiece.bpe.model", "{\"tokenizer_class\": \"BarthezTokenizer\"}",
         "tokenizer_class is 'BarthezTokenizer'"},
        {"camembert", "sentencepiece.bpe.model", "{\"tokenizer_class\": \"DebertaV2Tokenizer\"}",
         "the pieces lack [CLS]"},
    };
    ck_assert_ptr_null(tn_tokenizer_load(with_config(wrong[_i].from, wrong[_i].file, wrong[_i].config)));
    ck_assert(tn_error() == TN_EUNSUPPORTED || tn_error() == TN_EFORMAT);
    ck_error_has(tn_error(), wrong[_i].says);
}
