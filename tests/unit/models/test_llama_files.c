/* test_llama_files.c — invalid directories of LLaMA: each member of config.json with each kind of wrong value,
 * unsupported options, alternative keys, missing, additional or mismatched weights, missing shards. */
#include "models/models.h"
#include "tests/common/check_main.h"

#include <unistd.h>

static char       dir[1024], config[1100], weights[1100];
static tn_json   *was;
static tn_tensor *ids;
static void       a_directory(void)
{
    snprintf(dir, sizeof dir, "%s", tn_test_file("llama"));
    snprintf(config, sizeof config, "%s/config.json", dir),
        snprintf(weights, sizeof weights, "%s/model.safetensors", dir);
    mkdir(dir, 0777);
    tn_llama *m = tn_llama_new(.vocab = 11, .dim = 12, .layers = 2, .heads = 6, .kv_heads = 2, .ff = 10,
                               .positions = 16, .rope.scaling = TN_ROPE_LLAMA3, .rope.factor = 4, .rope.trained = 8);
    ck_assert_int_eq(tn_llama_save(m, dir), TN_OK);
    tn_free(m), tn_test_unsummed(dir);
    was = tn_json_load(config);
    ids = tn_keep(tn_full_of(TN_I64, TN_SHAPE(1, 3), 4));
    fine();
}
static void no_directory(void) { tn_json_free(was), tn_drop(ids), unlink(config), unlink(weights); }
AROUND_TESTS(a_directory, no_directory);

static void written(const char *path, const char *text)
{
    FILE *f = fopen(path, "w");
    ck_assert(f && fputs(text, f) >= 0 && !fclose(f));
}

/* config.json with a member replaced or added; value NULL: removed. */
static void replaced(const tn_json *object, const char *key, const char *value)
{
    tn_json        *v = value ? tn_json_parse(value, strlen(value)) : NULL;
    tn_json_writer *w = tn_json_writer_new(0);
    tn_json_open_object(w, NULL);
    for (const tn_json *x = tn_json_first(object); x; x = tn_json_next(x))
        if (strcmp(tn_json_key(x), key) != 0) tn_json_put(w, tn_json_key(x), x);
    if (v) tn_json_put(w, key, v);
    tn_json_close(w);
    const char *text = tn_json_text(w, NULL);
    ck_assert_msg(text != NULL, "%s: %s", value, tn_error_message());
    written(config, text);
    tn_json_writer_free(w), tn_json_free(v);
}

/* Any directory gives an error or a model that runs. */
static int survived(void)
{
    tn_llama *m = tn_llama_load(dir);
    if (m) tn_llama_forward(m, ids);
    const int refused = tn_error() != TN_OK;
    ck_assert_int_ne(tn_error(), TN_ENOMEM);
    tn_free(m);
    tn_clear_error();
    return refused;
}

TEST(any_value_of_any_member)
{
    static const char *const values[] = {NULL,
                                         "null",
                                         "true",
                                         "-1",
                                         "0",
                                         "1",
                                         "3",
                                         "1e308",
                                         "-1e-300",
                                         "1.5",
                                         "\"x\"",
                                         "[]",
                                         "[[1]]",
                                         "{}",
                                         "\"\"",
                                         "{\"factor\":[]}",
                                         "9223372036854775807",
                                         "65536",
                                         "1000000"};
    int                      refused = 0, count = 0;
    for (const tn_json *x = tn_json_first(was); x; x = tn_json_next(x))
        for (size_t i = 0; i < sizeof values / sizeof *values; i++, count++)
            replaced(was, tn_json_key(x), values[i]), refused += survived();
    ck_assert_int_gt(count, 300);
    ck_assert_int_gt(refused, count / 2);
}

static const struct {
    const char *key, *value;
    tn_status   status;
    const char *says;
} bad[] = {
    {"model_type", "\"gemma\"", TN_EUNSUPPORTED,
     "model_type is 'gemma'; supported: 'llama', 'mistral', 'qwen2', 'qwen3', 'gemma2', 'gemma3_text', 'olmo2', "
     "'smollm3', 'phi3', 'gpt_neox', 'gptj', 'mixtral' and 'qwen3_moe'"},
    {"rope_scaling", "{\"rope_type\":\"yarn\",\"factor\":4}", TN_EUNSUPPORTED,
     "rope_scaling.rope_type is 'yarn'; only 'default', 'linear', 'dynamic' and 'llama3' is supported"},
    {"rope_scaling", "{\"type\":\"su\"}", TN_EUNSUPPORTED,
     "rope_scaling.type is 'su'; only 'default', 'linear', 'dynamic' and 'llama3' is supported"},
    {"rope_parameters", "{\"rope_type\":\"longrope\"}", TN_EUNSUPPORTED,
     "rope_parameters.rope_type is 'longrope'; only 'default', 'linear', 'dynamic' and 'llama3' is supported"},
    {"rope_parameters", "{\"rope_theta\":0}", TN_EFORMAT,
     "rope_parameters.rope_theta is 0, but must be from 1 to 1000000000000"},
    {"rope_parameters", "{\"full_attention\":{\"rope_theta\":5}}", TN_EUNSUPPORTED,
     "rope_parameters.full_attention is not empty, which is not supported"},
    {"rope_scaling", "{\"rope_type\":\"llama3\",\"factor\":4,\"low_freq_factor\":4,\"high_freq_factor\":4}", TN_EFORMAT,
     "with rope_scaling llama3 low_freq_factor must be above 0 and high_freq_factor above that, got 4 and 4"},
    {"rope_scaling", "{\"rope_type\":\"linear\"}", TN_EFORMAT,
     "rope_scaling.factor is missing; 'linear' positions need it"},
    {"rope_scaling", "{\"rope_type\":\"llama3\",\"factor\":null}", TN_EFORMAT,
     "rope_scaling.factor is missing; 'llama3' positions need it"},
    {"pad_token_id", "11", TN_EFORMAT, "pad_token_id is 11, but must be less than vocab_size 11"},
    {"pad_token_id", "-12", TN_EFORMAT, "pad_token_id is -12, but must be less than vocab_size 11"},
    {"eos_token_id", "\"</s>\"", TN_EFORMAT, NULL},
    {"partial_rotary_factor", "0.5", TN_EUNSUPPORTED, "partial_rotary_factor is 0.5; only 1 is supported"},
    {"quantization_config", "{\"bits\":4}", TN_EUNSUPPORTED,
     "quantization_config is not empty, which is not supported"},
    {"per_layer_config", "{\"0\":{}}", TN_EUNSUPPORTED, "per_layer_config is not empty, which is not supported"},
    {"is_encoder_decoder", "true", TN_EUNSUPPORTED, "is_encoder_decoder is true, which is not supported"},
    {"head_dim", "3", TN_EFORMAT, "head_dim is 3, but must be even for rotary positions"},
    {"num_key_value_heads", "4", TN_EFORMAT, "num_key_value_heads 4 does not divide num_attention_heads 6"},
    {"attention_dropout", "1", TN_EFORMAT, "attention_dropout is 1, but must be from 0 to less than 1"},
    {"hidden_act", "\"relu2\"", TN_EUNSUPPORTED,
     "hidden_act is 'relu2'; expected gelu, gelu_new, gelu_fast, gelu_python, gelu_pytorch_tanh, relu, silu, swish or "
     "tanh"},
};
/* Two keys of one member with different values are an error; null counts as absent. */
TEST(spellings_that_disagree)
{
    static const struct {
        const char *scaling, *parameters, *says; /* says NULL: they agree */
    } at[] = {
        {"{\"type\":\"linear\",\"rope_type\":\"dynamic\",\"factor\":4}", NULL,
         "rope_scaling.type and rope_scaling.rope_type have different values; remove the wrong one"},
        {NULL, "{\"type\":\"linear\",\"rope_type\":\"default\",\"factor\":4}",
         "rope_parameters.rope_type and rope_parameters.type have different values; remove the wrong one"},
        {"{\"type\":\"linear\",\"factor\":4}", "{\"rope_type\":\"default\",\"rope_theta\":10000}",
         "rope_parameters.rope_type and rope_scaling.type have different values; remove the wrong one"},
        {"{\"rope_type\":\"linear\",\"factor\":4}", "{\"rope_type\":\"linear\",\"factor\":2}",
         "rope_parameters.factor and rope_scaling.factor have different values; remove the wrong one"},
        {"{\"rope_type\":\"linear\",\"factor\":4,\"rope_theta\":5}", "{\"factor\":4,\"rope_theta\":6}",
         "rope_parameters.rope_theta and rope_scaling.rope_theta have different values; remove the wrong one"},
        {"{\"rope_type\":\"linear\",\"factor\":4}", "{\"type\":\"linear\",\"factor\":4.0}", NULL},
        {"{\"rope_type\":\"linear\",\"type\":\"linear\",\"factor\":4}", "null", NULL},
        {"{\"rope_type\":\"linear\",\"type\":null,\"factor\":4}", "{\"rope_type\":null,\"factor\":null}", NULL},
    };
    char says[1200];
    for (size_t i = 0; i < sizeof at / sizeof *at; i++) {
        replaced(was, "rope_scaling", at[i].scaling);
        tn_json *more = tn_json_load(config);
        replaced(more, "rope_parameters", at[i].parameters);
        tn_llama *m = tn_llama_load(dir);
        ck_assert_msg(!m == (at[i].says != NULL), "%d: %s", (int)i, tn_error_message());
        if (m) ck_assert(m->config.rope.scaling == TN_ROPE_LINEAR && m->config.rope.factor == 4);
        snprintf(says, sizeof says, "'%s': %s", config, at[i].says);
        if (!m) ck_error(TN_EFORMAT, says);
        tn_json_free(more), tn_free(m);
    }
}

TEST(refused_by_name)
{
    char says[2000];
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        replaced(was, bad[i].key, bad[i].value);
        ck_assert_ptr_null(tn_llama_load(dir));
        snprintf(says, sizeof says, "'%s': %s", config, bad[i].says);
        if (bad[i].says) ck_error(bad[i].status, says);
        else ck_assert_int_eq(tn_error(), bad[i].status);
        tn_clear_error();
    }
    tn_json *mistral = tn_json_load(tn_test_data("golden/llama/mistral/config.json"));
    tn_json *qwen2 = tn_json_load(tn_test_data("golden/llama/qwen2/config.json"));
    replaced(mistral, "sliding_window", "0");
    ck_assert_ptr_null(tn_llama_load(dir));
    snprintf(says, sizeof says, "'%s': sliding_window is 0, but must be null or at least 1", config);
    ck_error(TN_EFORMAT, says);
    replaced(qwen2, "layer_types", "[\"sliding_attention\",\"chunked_attention\"]");
    ck_assert_ptr_null(tn_llama_load(dir));
    snprintf(says, sizeof says,
             "'%s': layer_types[1] is 'chunked_attention'; only 'full_attention' and 'sliding_attention' are supported",
             config);
    ck_error(TN_EUNSUPPORTED, says);
    replaced(qwen2, "layer_types", "[\"full_attention\"]");
    ck_assert_ptr_null(tn_llama_load(dir));
    snprintf(says, sizeof says, "'%s': layer_types names 1 layers, but num_hidden_layers is 2", config);
    ck_error(TN_EFORMAT, says);
    tn_json_free(mistral), tn_json_free(qwen2);
}

/* transformers' AutoConfig also uses the layer_types of "mistral". */
TEST(windows_of_mistral)
{
    static const struct {
        const char *layers, *says; /* says: the error */
        int64_t     window;
        const char *pattern;
    } at[] = {
        {NULL, NULL, 4096, NULL},
        {"null", NULL, 4096, NULL},
        {"[\"sliding_attention\",\"sliding_attention\"]", NULL, 4096, NULL},
        {"[\"full_attention\",\"full_attention\"]", NULL, 0, NULL},
        {"[\"full_attention\",\"sliding_attention\"]", NULL, 4096, "gl"},
        {"[\"sliding_attention\",\"full_attention\"]", NULL, 4096, "lg"},
        {"[\"full_attention\"]", "layer_types names 1 layers, but num_hidden_layers is 2", 0, NULL},
    };
    char says[1400];
    replaced(was, "model_type", "\"mistral\"");
    tn_json *mistral = tn_json_load(config);
    for (size_t i = 0; i < sizeof at / sizeof *at; i++) {
        replaced(mistral, "layer_types", at[i].layers);
        tn_llama *m = tn_llama_load(dir);
        ck_assert_msg(!m == (at[i].says != NULL), "%d: %s", (int)i, tn_error_message());
        if (!m) {
            snprintf(says, sizeof says, "'%s': %s", config, at[i].says);
            ck_error(strstr(says, "supported") ? TN_EUNSUPPORTED : TN_EFORMAT, says);
            continue;
        }
        ck_assert_int_eq(m->config.scores.window, at[i].window);
        ck_assert(!m->config.pattern == !at[i].pattern);
        if (at[i].pattern) {
            ck_assert_str_eq(m->config.pattern, at[i].pattern);
            ck_assert_str_eq(m->config.type, "smollm3"); /* whose class has mixed layers */
        }
        tn_free(m), fine();
    }
    tn_json_free(mistral);
}

/* transformers' embedding has padding_idx: the row's gradient is 0, and an initial row is 0. Below 0 it counts from the
 * end. */
TEST(padding)
{
    static const struct {
        const char *value;
        int64_t     padding;
    } at[] = {{NULL, -1}, {"null", -1}, {"4", 4}, {"-1", 10}, {"-11", 0}};
    for (size_t i = 0; i < sizeof at / sizeof *at; i++) {
        replaced(was, "pad_token_id", at[i].value);
        tn_llama *m = tn_llama_load(dir);
        fine();
        ck_assert_int_eq(m->config.padding, at[i].padding);
        tn_tensor *all = tn_reshape(tn_arange_of(TN_I64, 0, 11, 1), TN_SHAPE(1, 11));
        tn_backward(tn_llama_loss(m, all, NULL));
        fine();
        for (int64_t row = 0; row < 10; row++) { /* the last token predicts nothing */
            const double g = tn_item(tn_amax(tn_abs(tn_select(tn_grad(m->words->weight), 0, row))));
            ck_assert_msg((g == 0) == (row == at[i].padding), "padding %d: the gradient of row %d is up to %g",
                          (int)at[i].padding, (int)row, g);
        }
        tn_free(m);
    }
    tn_llama *m = tn_llama_new(.vocab = 11, .dim = 12, .layers = 1, .heads = 2, .padding = 2);
    ck_assert_double_eq(tn_item(tn_amax(tn_abs(tn_select(m->words->weight, 0, 2)))), 0);
    tn_free(m);
    ck_refused(tn_llama_new(.vocab = 11, .dim = 12, .layers = 1, .heads = 2, .padding = 11), TN_EINVAL,
               "tn_llama_new: .padding is 11, but must be from 0 to 10, or -1 for none");
}

/* Token ids do not change results, but the saved config.json keeps them: a model without eos would not stop. */
TEST(token_ids_are_kept)
{
    static const char *const values[] = {"1", "[2,5]", "null", NULL}, *const keys[] = {"bos_token_id", "eos_token_id",
                                                                                       "pad_token_id"};
    for (int k = 0; k < 3; k++)
        for (int i = 0; i < 4; i++) {
            if (k == 2 && (i == 1 || i == 2)) continue; /* one token; null is the default */
            replaced(was, keys[k], values[i]);
            tn_llama *m = tn_llama_load(dir);
            ck_assert_int_eq(tn_llama_save(m, dir), TN_OK);
            tn_test_unsummed(dir);
            tn_json *doc = tn_json_load(config), *want = values[i] ? tn_json_parse(values[i], strlen(values[i])) : NULL;
            const tn_json *got = tn_json_get(doc, keys[k]);
            fine();
            ck_assert_int_eq(tn_json_type_of(got), tn_json_type_of(want));
            if (i == 0) ck_assert_int_eq(tn_json_i64(got), 1);
            if (i == 1) ck_assert(tn_json_count(got) == 2 && tn_json_i64(tn_json_next(tn_json_first(got))) == 5);
            tn_json_free(doc), tn_json_free(want), tn_free(m);
        }
}

/* The same positions with the keys of transformers 5, 4 and earlier. */
TEST(spellings)
{
    static const struct {
        const char *scaling, *parameters;
    } same[] = {
        {"{\"rope_type\":\"linear\",\"factor\":3.0}", NULL},
        {"{\"type\":\"linear\",\"factor\":3}", NULL},
        {NULL, "{\"rope_type\":\"linear\",\"factor\":3.0,\"rope_theta\":500.0}"},
        {NULL, "{\"type\":\"linear\",\"factor\":3.0}"},
    };
    for (int i = 0; i < 4; i++) {
        replaced(was, "rope_scaling", same[i].scaling);
        tn_json *more = tn_json_load(config);
        replaced(more, "rope_parameters", same[i].parameters);
        tn_json *all = tn_json_load(config);
        if (i != 2) replaced(all, "rope_theta", "500");
        tn_llama *m = tn_llama_load(dir);
        fine();
        ck_assert(m->config.rope.scaling == TN_ROPE_LINEAR && m->config.rope.factor == 3 &&
                  m->config.rope.theta == 500);
        tn_json_free(more), tn_json_free(all), tn_free(m);
    }
}

/* ---- weights ----------------------------------------------------------------------------------------------------- */

/* model.safetensors without a tensor, with an additional one, or with a changed shape. */
static void rewritten(const char *without, const char *more, const char *changed, const char *path)
{
    tn_safetensors        *f = tn_safetensors_open(weights);
    tn_safetensors_writer *w = tn_safetensors_writer_new();
    for (int64_t i = 0; i < tn_safetensors_count(f); i++) {
        const char *name = tn_safetensors_at(f, i).name;
        tn_tensor  *t = tn_safetensors_get_at(f, i);
        if (without && !strcmp(name, without)) continue;
        tn_safetensors_put(w, name, changed && !strcmp(name, changed) ? tn_cat(0, t, t) : t);
    }
    if (more) tn_safetensors_put(w, more, tn_zeros(TN_SHAPE(200, 20)));
    tn_safetensors_close(f);
    ck_assert_int_eq(tn_safetensors_save(w, path), TN_OK);
    tn_safetensors_writer_free(w);
}

TEST(weights_by_name)
{
    static const char norm[] = "model.layers.1.input_layernorm.weight";
    static const struct {
        const char *without, *more, *changed, *says;
    } kinds[] = {
        {norm, "model.layers.0.x", NULL,
         "1 name missing (model.layers.1.norm1.weight), 1 unexpected (model.layers.0.x)"},
        {NULL, "score.weight", NULL, "1 unexpected (score.weight)"},
        {norm, "y", NULL, "1 name missing (model.layers.1.norm1.weight), 1 unexpected (y)"},
        {NULL, NULL, norm, "1 of another shape: model.layers.1.norm1.weight is [12], the file has [24]"},
    };
    char path[1200];
    snprintf(path, sizeof path, "%s.new", weights);
    for (int i = 0; i < 4; i++) {
        rewritten(kinds[i].without, kinds[i].more, kinds[i].changed, path);
        ck_assert(!rename(path, weights));
        ck_assert_ptr_null(tn_llama_load(dir));
        ck_assert_int_eq(tn_error(), TN_EFORMAT);
        ck_assert_msg(strstr(tn_error_message(), kinds[i].says) != NULL, "%s", tn_error_message());
        tn_clear_error();
        no_directory(), a_directory();
    }
}

/* An index with missing or empty files, and an invalid index. */
TEST(shards)
{
    static const char *const indexes[] = {"",
                                          "[]",
                                          "{}",
                                          "{\"weight_map\":{}}",
                                          "{\"weight_map\":[]}",
                                          "{\"weight_map\":{\"lm_head.weight\":3}}",
                                          "{\"weight_map\":{\"lm_head.weight\":\"model-00001-of-00002.safetensors\"}}",
                                          "{\"weight_map\":{\"lm_head.weight\":\"../model.safetensors\"}}",
                                          "{\"weight_map\":{\"lm_head.weight\":\"model.safetensors.index.json\"}}"};
    char                     path[1200];
    snprintf(path, sizeof path, "%s.index.json", weights);
    unlink(weights);
    for (size_t i = 0; i < sizeof indexes / sizeof *indexes; i++) {
        written(path, indexes[i]);
        ck_assert_ptr_null(tn_llama_load(dir));
        ck_assert_int_ne(tn_error(), TN_OK);
        tn_clear_error();
    }
    unlink(path);
}

/* The file truncated at any position. */
TEST(cut)
{
    FILE *f = fopen(weights, "r+b");
    fseek(f, 0, SEEK_END);
    for (long n = ftell(f) - 1; n >= 0; n -= n > 400 ? 211 : 7) {
        ck_assert_int_eq(ftruncate(fileno(f), n), 0);
        ck_assert_ptr_null(tn_llama_load(dir));
        ck_assert_int_ne(tn_error(), TN_OK);
        tn_clear_error();
    }
    fclose(f);
}
