/* test_tokenizer_users.c — SentencePiece's user-defined pieces: how a tokenizer.json expresses them, and their scores;
 * spaces at the ends of a text, the only white space that is stripped; the decoded text of the unknown piece. */
#include "tests/common/check_main.h"

#include "data/data.h"

#define S "\xe2\x96\x81"
#define NL "\xc2\x85" /* white space, but not a space */

/* The tokens of both, with "|" between them. */
static void gives(const tn_tokenizer *t, const char *text, const char *expected)
{
    tn_encoding *e = tn_encoding_new();
    char         said[200] = "";
    ck_assert_int_eq(tn_tokenizer_encode(t, e, text, strlen(text), .bare = true), TN_OK);
    for (int64_t i = 0; i < e->n; i++) {
        if (i) strcat(said, "|");
        strcat(said, tn_tokenizer_token(t, e->id[i]));
    }
    ck_assert_str_eq(said, expected);
    tn_encoding_free(e);
}

static const char *const pieces[] = {"<unk>", "<s>", "</s>", S,     "a",   "b",   "<",  "u",    ">", S "b", ".",
                                     "<u",    NL,    "#",    S "#", "<u>", "a.b", "|u", "<u>>", S S, "\\",  "ab"};
enum { N = sizeof pieces / sizeof *pieces, FIRST_USER = 15, LAST_USER = 19 };

/* Written as a .model, with other fields appended, and read again: the last value of a field applies. */
static tn_tokenizer *as_model(tn_tokenizer *t, const char *more, size_t bytes)
{
    const char *folder = tn_test_folder("users"), *path = tn_test_in(folder, "tokenizer.model");
    ck_assert_msg(t && tn_tokenizer_save(t, folder) == TN_OK, "%s", tn_error_message());
    tn_tokenizer_free(t);
    FILE *f = fopen(path, "ab");
    ck_assert(f && fwrite(more, 1, bytes, f) == bytes && !fclose(f));
    tn_test_unsummed(folder);
    return tn_tokenizer_load(path);
}

static tn_tokenizer *with(tn_tokenizer_kind kind, const char *more, size_t bytes)
{
    int32_t types[N] = {TN_TYPE_UNKNOWN, TN_TYPE_CONTROL, TN_TYPE_CONTROL};
    float   scores[N] = {0};
    for (int i = 3; i < N; i++) {
        types[i] = i >= FIRST_USER && i <= LAST_USER ? TN_TYPE_USER : TN_TYPE_NORMAL;
        scores[i] = types[i] == TN_TYPE_USER ? 0 : (float)(i - N) / 8;
    }
    return as_model(tn_tokenizer_from_vocab(N, pieces, .kind = kind, .types = types, .scores = scores), more, bytes);
}

/* Texts lose spaces at their ends if squeezed: normalizer_spec's remove_extra_whitespaces. */
static tn_tokenizer *of(tn_tokenizer_kind kind, bool squeezed)
{
    tn_tokenizer *t = with(kind, "\x1a\x02\x20\x01", squeezed ? 4 : 0);
    ck_assert_msg(t != NULL, "%s", tn_error_message());
    return t;
}

/* The same from its tokenizer.json. */
static tn_tokenizer *again(tn_tokenizer *t)
{
    const char *folder = tn_test_file("users_json");
    mkdir(folder, 0700);
    ck_assert_msg(tn_tokenizer_save(t, folder) == TN_OK, "%s", tn_error_message());
    tn_tokenizer_free(t);
    t = tn_tokenizer_load(folder);
    ck_assert_msg(t != NULL, "%s", tn_error_message());
    return t;
}

/* As in sentencepiece: from the .model, from the tokenizer.json, and from what Tenon writes of that. */
TEST_EACH(users_in_json, 2)
{
    tn_tokenizer *t = of(_i ? TN_UNIGRAM : TN_SENTENCE_BPE, false);
    for (int round = 0; round < 3; round++) {
        gives(t, "<u>b", S "|<u>|b");
        gives(t, "b<u>b <u> b", S "b|<u>|b|" S "|<u>|" S "b");
        gives(t, "<u>>", S "|<u>>");
        gives(t, "a.bab<u", _i ? S "|a.b|ab|<u" : S "|a.b|ab|<u");
        gives(t, "aub|u", S "|a|u|b||u");
        t = again(t);
    }
    tn_tokenizer_free(t);
}

/* A Split that isolates only tokens; ignore_merges keeps them whole. */
TEST(splits_refused)
{
    static const struct {
        const char *regex, *merges, *says;
    } at[] = {
        {"aa|\\\\.", "true", NULL},
        {"aa|\\\\.", "false", "the pre_tokenizer's Split, without ignore_merges, is 'aa|\\.'"},
        {"aa|.", "true", "the pre_tokenizer's Split is 'aa|.'"},
        {"aa|\\\\d", "true", "the pre_tokenizer's Split is 'aa|\\d'"},
        {"a|aa", "true", "the pre_tokenizer's Split is 'a|aa'"},
        {"b|a", "true", "the pre_tokenizer's Split is 'b|a'"},
        {"a|", "true", "the pre_tokenizer's Split is 'a|'"},
        {"a\\\\", "true", "the pre_tokenizer's Split is 'a\\'"},
        {"", "true", "the pre_tokenizer's Split is ''"},
    };
    char json[600];
    for (size_t i = 0; i < sizeof at / sizeof *at; i++) {
        snprintf(json, sizeof json,
                 "{\"pre_tokenizer\":{\"type\":\"Split\",\"pattern\":{\"Regex\":\"%s\"},\"behavior\":\"Isolated\"},"
                 "\"model\":{\"type\":\"BPE\",\"vocab\":{\"a\":0,\"aa\":1,\".\":2},\"merges\":[],"
                 "\"ignore_merges\":%s}}",
                 at[i].regex, at[i].merges);
        tn_tokenizer *t = tn_tokenizer_parse(json, strlen(json));
        ck_assert_msg(!t == (at[i].says != NULL), "%s: %s", at[i].regex, tn_error_message());
        if (t) gives(t, "a.aaa", "a|.|aa|a");
        else ck_assert_msg(strstr(tn_error_message(), at[i].says) != NULL, "%s", tn_error_message());
        tn_tokenizer_free(t), tn_clear_error();
    }
}

/* 0.1 for each byte but the first, whatever scores the others have: measured in sentencepiece by bisection. */
TEST(scores)
{
    static const struct {
        const char *user, *letter, *text;
        float       score;
    } at[] = {{"hi", "h", "xhi", 0.1f},
              {"hint", "h", "xhint", 0.3f},
              {"h\xc3\xbc", "h", "xh\xc3\xbc", 0.2f},
              {"\xe4\xbd\xa0\xe5\xa5\xbd", "\xe4\xbd\xa0", "x\xe4\xbd\xa0\xe5\xa5\xbd", 0.5f}};
    const int32_t types[] = {TN_TYPE_UNKNOWN, 1, 1, 1, 1, 1, 1, 1, 1, TN_TYPE_USER, 1};
    for (int i = 0; i < 8; i++) {
        const char   *user = at[i / 2].user, *letter = at[i / 2].letter;
        const char   *names[] = {"<unk>", S, "x", "i", "n", "t", "\xc3\xbc", "\xe5\xa5\xbd", letter, user, "best"};
        const float   off = i % 2 ? 0.01f : -0.01f; /* the letter alone scores that much more, or less */
        const float   score[] = {0, 0, 0, 0, 0, 0, 0, 0, at[i / 2].score + off, 0, 3};
        tn_tokenizer *t = tn_tokenizer_from_vocab(11, names, .kind = TN_UNIGRAM, .types = types, .scores = score);
        t = as_model(t, "", 0); /* finds such a piece by its score */
        ck_assert_msg(t != NULL, "%s", tn_error_message());
        tn_encoding *e = tn_encoding_new();
        ck_assert_int_eq(tn_tokenizer_encode(t, e, at[i / 2].text, strlen(at[i / 2].text), .bare = true), TN_OK);
        ck_assert_msg(e->n > 2 && e->id[2] == (i % 2 ? 8 : 9), "%s: piece %d", user, e->id[2]);
        tn_encoding_free(e), tn_tokenizer_free(t);
    }
}

TEST_EACH(only_spaces_go, 2)
{
    tn_tokenizer *t = of(_i ? TN_UNIGRAM : TN_SENTENCE_BPE, true);
    for (int round = 0; round < 2; round++) {
        gives(t, "  b  a" NL, S "b|" S "|a|" NL);
        gives(t, NL " b ", S "|" NL "|" S "b");
        gives(t, S "b " S " ", S S "|b");
        gives(t, "  ", "");
        t = again(t);
    }
    tn_tokenizer_free(t);
}

/* trainer_spec's unk_surface: the decoded text of the unknown piece; also in the .model that is written. */
TEST(unknown_surface)
{
    static const struct {
        const char *more;
        size_t      bytes;
        const char *back;
    } at[] = {{"", 0, "a \xe2\x81\x87 b"},
              {"\x12\x08\xe2\x02\x05 UNK ", 10, "a UNK b"},
              {"\x12\x03\xe2\x02", 5, "ab"},
              {"\x12\x44\xe2\x02\x41" /* 65 bytes */
               "0123456789012345678901234567890123456789012345678901234567890123x",
               70, NULL}};
    const int32_t ids[] = {4, 0, 5};
    for (size_t i = 0; i < sizeof at / sizeof *at; i++) {
        tn_tokenizer *t = with(TN_UNIGRAM, at[i].more, at[i].bytes), *back;
        ck_assert_msg(!t == !at[i].back, "%s", tn_error_message());
        if (!t)
            ck_assert(tn_error() == TN_EUNSUPPORTED && strstr(tn_error_message(), "an unk_surface of more than 64"));
        tn_clear_error();
        if (!t) continue;
        const char *folder = tn_test_file("surface");
        char        path[512];
        mkdir(folder, 0700);
        ck_assert_int_eq(tn_tokenizer_save(t, folder), TN_OK);
        snprintf(path, sizeof path, "%s/tokenizer.model", folder);
        ck_assert_ptr_nonnull(back = tn_tokenizer_load(path));
        for (int k = 0; k < 2; k++) {
            tn_string said = {0};
            ck_assert_int_eq(tn_tokenizer_decode(k ? back : t, ids, 3, &said), TN_OK);
            ck_assert_str_eq(said.at, at[i].back);
            tn_string_free(&said);
        }
        tn_tokenizer_free(t), tn_tokenizer_free(back);
    }
}
