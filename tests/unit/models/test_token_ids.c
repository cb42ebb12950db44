/* test_token_ids.c — config.json's bos_token_id, eos_token_id, pad_token_id and decoder_start_token_id, which other
 * programs read, are the same after loading and saving a model of any family. */
#include "extras.h"
#include "tests/common/check_main.h"

#define SMALL .vocab = 11, .dim = 8, .layers = 1, .heads = 2, .ff = 8, .positions = 12
static int save(void *module, tn_status (*write)(void *m))
{
    tn_module      *m = module;
    const tn_status status = m ? write(m) : tn_error();
    tn_module_free(m);
    return (int)status;
}
static const char *dir;
static tn_status   write_bert(void *m) { return tn_bert_save(m, dir); }
static tn_status   write_gpt(void *m) { return tn_gpt_save(m, dir); }
static tn_status   write_llama(void *m) { return tn_llama_save(m, dir); }
static tn_status   write_reformer(void *m) { return tn_reformer_save(m, dir); }
static tn_status   write_tuned(void *m) { return tn_tuned_save(m, dir); }

static int bert(tn_bert_kind kind) { return save(tn_bert_new(SMALL, .kind = kind, .padding = 1), write_bert); }
static int a_bert(void) { return bert(TN_BERT); }
static int a_roberta(void) { return bert(TN_ROBERTA); }
static int an_xlm_roberta(void) { return bert(TN_XLM_ROBERTA); }
static int a_camembert(void) { return bert(TN_CAMEMBERT); }
static int a_distilbert(void) { return bert(TN_DISTILBERT); }
static int an_albert(void) { return bert(TN_ALBERT); }
static int an_electra(void) { return bert(TN_ELECTRA); }
static int a_deberta(void) { return bert(TN_DEBERTA); }
static int an_xlnet(void) { return bert(TN_XLNET); }
static int a_modernbert(void)
{
    return save(tn_bert_new(.vocab = 50300, .dim = 8, .layers = 1, .heads = 2, .ff = 8, .positions = 12,
                            .kind = TN_MODERNBERT, .padding = 1),
                write_bert); /* the default padding token is 50283 */
}
static int a_norm_first(void) { return save(tn_bert_new(SMALL, .norm_first = true, .padding = 1), write_bert); }
static int another_norm_first(void)
{
    return save(tn_bert_new(SMALL, .norm_first = true, .padding = 1, .activation = "relu"), write_bert);
}
static int a_gpt(void)
{
    return save(tn_gpt_new(.vocab = 11, .dim = 8, .layers = 1, .heads = 2, .positions = 12), write_gpt);
}
static int llama(const char *type, bool bias)
{
    return save(tn_llama_new(.vocab = 11, .dim = 8, .layers = 1, .heads = 2, .ff = 8, .type = type, .qkv_bias = bias),
                write_llama);
}
static int       a_llama(void) { return llama("llama", false); }
static int       a_mistral(void) { return llama("mistral", false); }
static int       a_qwen2(void) { return llama("qwen2", true); }
static tn_status write_vit(void *m) { return tn_vit_save(m, dir); }
static int       a_vit(void)
{
    return save(tn_vit_new(.image = 8, .patch = 4, .dim = 8, .layers = 1, .heads = 2), write_vit);
}
static int a_reformer(void)
{
    return save(tn_reformer_new(.vocab = 8, .dim = 4, .layers = 2, .heads = 1, .ff = 4), write_reformer);
}

static const struct {
    const char *name;
    int (*make)(void); /* writes a model into dir */
    const char *pad;   /* a missing pad_token_id is written as this; NULL: not written */
    bool        needs_pad;
} families[] = {
    {"bert", a_bert, "0", false},
    {"roberta", a_roberta, "1", true},
    {"xlm-roberta", an_xlm_roberta, "1", true},
    {"camembert", a_camembert, "1", true},
    {"distilbert", a_distilbert, "0", false},
    {"albert", an_albert, "0", false},
    {"electra", an_electra, "0", false},
    {"modernbert", a_modernbert, "50283", false},
    {"deberta-v2", a_deberta, "0", false},
    {"xlnet", an_xlnet, "5", false},
    {"roberta-prelayernorm", a_norm_first, "1", true},
    {"tenon-bert", another_norm_first, "0", false},
    {"gpt2", a_gpt, NULL, false},
    {"llama", a_llama, NULL, false},
    {"mistral", a_mistral, NULL, false},
    {"qwen2", a_qwen2, NULL, false},
    {"reformer", a_reformer, NULL, false},
    {"vit", a_vit, NULL, false},
};
static const char *const keys[] = {"bos_token_id", "eos_token_id", "pad_token_id", "decoder_start_token_id"};
static const char *const values[] = {"0", "5", "7", "[2,5]", "[6]", "null", NULL};
enum { PAD = 2, VALUES = sizeof values / sizeof *values };

/* config.json with one member set to a value; NULL: without it. */
static void set(const char *key, const char *value)
{
    tn_json        *was = tn_json_load(tn_test_in(dir, "config.json")), *v = NULL;
    tn_json_writer *w = tn_json_writer_new(0);
    tn_json_open_object(w, NULL);
    for (const tn_json *x = tn_json_first(was); x; x = tn_json_next(x))
        if (strcmp(tn_json_key(x), key) != 0) tn_json_put(w, tn_json_key(x), x);
    if (value) v = tn_json_parse(value, strlen(value)), tn_json_put(w, key, v);
    tn_json_close(w);
    ck_assert_msg(tn_json_save(w, tn_test_in(dir, "config.json")) == TN_OK, "%s", tn_error_message());
    tn_json_writer_free(w), tn_json_free(v), tn_json_free(was), tn_test_unsummed(dir);
}

/* The member of config.json as text; "": missing. */
static void get(const char *key, char to[80])
{
    tn_json        *doc = tn_json_load(tn_test_in(dir, "config.json"));
    tn_json_writer *w = tn_json_writer_new(0);
    const tn_json  *v = tn_json_get(doc, key);
    if (v) tn_json_put(w, NULL, v);
    snprintf(to, 80, "%s", v ? tn_json_text(w, NULL) : "");
    ck_assert_msg(tn_error() == TN_OK, "%s", tn_error_message());
    tn_json_writer_free(w), tn_json_free(doc);
}

static void kept(int f, const char *key, const char *value, const char *want)
{
    char got[80];
    set(key, value);
    tn_extras_register();
    tn_model m = tn_model_open(dir, .no_tokenizer = true);
    ck_assert_msg(m.family != TN_MODEL_NONE, "%s, %s %s: %s", families[f].name, key, value, tn_error_message());
    ck_assert_msg(tn_model_save(&m, dir) == TN_OK, "%s", tn_error_message());
    tn_model_close(&m);
    get(key, got);
    ck_assert_msg(!strcmp(got, want), "%s: %s is %s, expected %s", families[f].name, key, got, want);
}

TEST_ROWS(ids_are_kept, families)
{
    dir = tn_test_folder("ids");
    ck_assert_msg(families[_i].make() == TN_OK, "%s", tn_error_message());
    for (int k = 0; k <= PAD + 1; k++)
        for (int i = 0; i < VALUES; i++) {
            const char *value = values[i], *want = value ? value : k == PAD ? families[_i].pad : NULL;
            const bool  null = value && !strcmp(value, "null"), list = value && *value == '[';
            if (tn_test_slow() && (k + i + _i) % 3) continue;
            if (k == PAD && (list || (null && families[_i].needs_pad))) continue;
            if (k == PAD && null && !families[_i].pad && strcmp(families[_i].name, "gpt2") != 0 &&
                strcmp(families[_i].name, "reformer") != 0 && strcmp(families[_i].name, "vit") != 0)
                continue; /* the default of LLaMA and its family, which is not written */
            kept(_i, keys[k], value, !strcmp(want ? want : "", "[6]") ? "6" : want ? want : "");
        }
}

/* A tuned model keeps its encoder's. */
TEST(of_a_tuned_model)
{
    dir = tn_test_folder("ids");
    tn_bert *encoder = tn_bert_new(SMALL, .kind = TN_ROBERTA, .padding = 1);
    ck_assert_msg(save(tn_tuned_new(encoder, .n = 2), write_tuned) == TN_OK, "%s", tn_error_message());
    kept(1, "eos_token_id", "7", "7"), kept(1, "pad_token_id", "3", "3");
}

/* A model without padding token has none after loading, either; RoBERTa needs one. */
TEST(no_padding)
{
    dir = tn_test_folder("ids");
    ck_assert_int_eq(save(tn_bert_new(SMALL, .padding = -1), write_bert), TN_OK);
    tn_bert *m = tn_bert_load(dir);
    ck_assert_msg(m && m->config.padding == -1, "%s", tn_error_message());
    tn_free(m);
    ck_assert_int_eq(a_roberta(), TN_OK);
    set("pad_token_id", "null");
    ck_refused_has(tn_bert_load(dir), TN_EFORMAT,
                   "pad_token_id is null, but the positions of 'roberta' start after it");
    set("pad_token_id", "-1");
    ck_refused_has(tn_bert_load(dir), TN_EFORMAT, "pad_token_id is -1, but must be from 0 to 10000000, or null");
}

/* Ids are whole numbers; -1 stands for null inside a config struct, and null would be written for it. */
TEST(ids_that_are_none)
{
    dir = tn_test_folder("ids");
    ck_assert_int_eq(a_bert(), TN_OK);
    set("eos_token_id", "0.5");
    ck_refused_has(tn_bert_load(dir), TN_EFORMAT, "expected an integer");
    tn_seq2seq *m = tn_seq2seq_load(tn_test_data("golden/encoder_decoders/marian"));
    ck_assert_ptr_nonnull(m);
    ck_assert_int_eq(tn_seq2seq_save(m, dir), TN_OK);
    tn_free(m);
    set("eos_token_id", "-1");
    ck_refused_has(tn_seq2seq_load(dir), TN_EFORMAT, "eos_token_id is -1, but must be from 0 to 10000000, or null");
}

/* ModernBERT's class has defaults of two more ids. */
TEST(ids_of_modernbert)
{
    enum { MODERN = 7 };
    dir = tn_test_folder("ids");
    ck_assert_int_eq(a_modernbert(), TN_OK);
    kept(MODERN, "cls_token_id", "7", "7"), kept(MODERN, "cls_token_id", NULL, "");
    kept(MODERN, "sep_token_id", "null", "null"), kept(MODERN, "sep_token_id", "0", "0");
}

/* ModernBERT's sliding_window replaces local_attention, of which it is half. */
TEST(window_of_modernbert)
{
    dir = tn_test_folder("ids");
    ck_assert_int_eq(a_modernbert(), TN_OK);
    set("local_attention", "8"), set("sliding_window", "3");
    const tn_bert_config c = tn_bert_config_load(dir);
    ck_assert_msg(tn_error() == TN_OK, "%s", tn_error_message());
    ck_assert_int_eq(c.window, 4); /* the token itself and 3 on each side */
}
