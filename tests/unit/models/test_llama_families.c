/* test_llama_families.c — LLaMA's relatives compared with Hugging Face's (tests/golden/families.py): logits, loss, the
 * gradient of every parameter, generated tokens; the same bits with a cache; weights written as they were read. */
#include "models/models.h"
#include "tests/common/answers.h"

static const char *const names[] = {"qwen3", "gemma2",       "gemma3", "olmo2",   "smollm3",  "phi3",
                                    "neox",  "neox_in_turn", "gptj",   "mixtral", "qwen3_moe"};
static const char *const types[] = {"qwen3",    "gemma2",   "gemma3_text", "olmo2",   "smollm3",  "phi3",
                                    "gpt_neox", "gpt_neox", "gptj",        "mixtral", "qwen3_moe"};
enum { MODELS = sizeof names / sizeof *names };

static void open_answers(void) { tn_answers_open("golden/families/answers.safetensors"); }
AROUND_TESTS(open_answers, close_answers);
static tn_tensor *answer_of(int model, const char *what)
{
    return tn_safetensors_get(answers, model < 0 ? what : tn_name("%s.%s", names[model], what));
}
static tn_llama *golden(int i, const char *more)
{
    tn_llama *m = tn_llama_load(tn_test_data(tn_name("golden/families/%s%s", names[i], more)));
    fine();
    ck_assert_str_eq(m->config.type, types[i]);
    return m;
}

TEST_EACH(numbers_as_hugging_face, MODELS)
{
    tn_llama  *m = golden(_i, ""), *want = golden(_i, ".grad");
    tn_tensor *ids = answer_of(-1, "ids"), *y = tn_llama_forward(m, ids);
    ck_assert_double_le(furthest(y, answer_of(_i, "scores")), 2e-5);
    tn_tensor *loss = tn_llama_loss(m, ids, NULL);
    ck_assert_double_eq_tol(tn_item(loss), tn_item(answer_of(_i, "loss")), 1e-5);
    tn_backward(loss);
    fine();
    same_gradients(&m->base, &want->base);
    tn_free(m), tn_free(want);
}

TEST_EACH(the_same_bits_with_and_without_a_cache, MODELS)
{
    tn_llama      *m = golden(_i, "");
    tn_tensor     *ids = answer_of(-1, "ids"), *want = answer_of(_i, "greedy"), *text = tn_cat(1, ids, want);
    tn_decoding   *d = tn_llama_decoding(m, 2, 19);
    tn_generated   g = tn_generate(d, ids, .most = 8);
    const tn_scope s = tn_no_grad_begin();
    fine();
    ck_assert(tn_same_bits(tn_contiguous(tn_select(g.tokens, 1, 0)), want));
    tn_tensor   *all = tn_llama_forward(m, text);
    tn_kv_cache *cache = tn_blocks_cache(m->blocks, 2, 19, 0);
    for (int64_t t = 0; t < 19; t += t ? 1 : 7)
        ck_assert(tn_same_bits(tn_llama_forward(m, tn_narrow(text, 1, t, t ? 1 : 7), .cache = cache),
                               tn_narrow(all, 1, t, t ? 1 : 7)));
    ck_assert(tn_same_bits(tn_llama_forward(m, tn_narrow(text, 0, 1, 1)), tn_narrow(all, 0, 1, 1)));
    tn_scope_end(s);
    tn_kv_cache_free(cache), tn_decoding_free(d), tn_free(m);
}

/* The written file has the tensors of the one that was read, bit for bit, and gives the same logits. */
TEST_EACH(writes_what_it_read, MODELS)
{
    const char *to = tn_test_folder("written");
    tn_llama   *m = golden(_i, ""), *b;
    tn_tensor  *ids = answer_of(-1, "ids");
    ck_assert_msg(tn_llama_save(m, to) == TN_OK, "%s", tn_error_message());
    ck_assert_ptr_nonnull(b = tn_llama_load(to));
    ck_assert_str_eq(b->config.type, types[_i]);
    ck_assert(tn_same_bits(tn_llama_forward(m, ids), tn_llama_forward(b, ids)));
    same_weights(to, tn_name("golden/families/%s/model.safetensors", names[_i]), NULL);
    tn_free(m), tn_free(b);
}

/* In training the losses of the router are added if the config says so, and tn_llama_forward gives its logits. */
TEST(losses_of_the_router)
{
    enum { MIXTRAL = 9 };
    tn_llama  *m = golden(MIXTRAL, "");
    tn_tensor *ids = answer_of(-1, "ids"), *router[3], *y = tn_llama_forward(m, ids, .router = router), *targets;
    ck_assert(tn_same_bits(y, tn_llama_forward(m, ids)));
    ck_assert(tn_shape_equal(tn_shape_of(router[2]), TN_SHAPE(22, 5)));
    const double balance = tn_item(tn_router_loss(router, 3, .balance = 1)),
                 plain = tn_item(tn_llama_loss(m, ids, NULL));
    ck_assert_double_eq_tol(balance, tn_item(answer_of(MIXTRAL, "balance")), 1e-5);
    ck_assert(m->config.balance == 0.5 && !m->config.balanced);
    for (int i = 0; i < 4; i++) {
        tn_train(m, i & 1), m->config.balanced = i & 2;
        ck_assert_double_eq_tol(tn_item(tn_llama_loss(m, ids, NULL)), plain + (i == 3 ? 0.5 * balance : 0), 1e-5);
    }
    /* of the tokens before the last target alone */
    targets = tn_full_of(TN_I64, TN_SHAPE(2, 11), -100);
    tn_set_at(targets, TN_SHAPE(0, 4), 3);
    const double padded = tn_item(tn_llama_loss(m, ids, targets));
    ck_assert_double_eq_tol(padded,
                            tn_item(tn_llama_loss(m, tn_narrow(tn_narrow(ids, 0, 0, 1), 1, 0, 5),
                                                  tn_narrow(tn_narrow(targets, 0, 0, 1), 1, 0, 5))),
                            1e-5);
    fine();
    ck_assert_ptr_null(tn_llama_forward(m, tn_zeros(TN_SHAPE(1, 2)), .router = router));
    ck_assert(tn_error() != TN_OK && !router[0] && !router[2]);
    tn_clear_error();
    tn_free(m);
}

/* ---- config.json ------------------------------------------------------------------------------------------------- */

/* A folder with the weights of a golden model, and its config.json without the members `without` (NULL-terminated),
 * with the members of the object `with`. */
static const char *changed(const char *name, const char *const *without, const char *with)
{
    char            path[1200];
    const char     *to = tn_test_folder("changed");
    tn_json        *was = tn_json_load(tn_test_data(tn_name("golden/families/%s/config.json", name)));
    tn_json        *more = tn_json_parse(with, strlen(with));
    tn_json_writer *w = tn_json_writer_new(0);
    fine();
    tn_json_open_object(w, NULL);
    for (const tn_json *x = tn_json_first(was); x; x = tn_json_next(x)) {
        bool kept = !tn_json_get(more, tn_json_key(x));
        for (int i = 0; without[i]; i++) kept = kept && strcmp(tn_json_key(x), without[i]) != 0;
        if (kept) tn_json_put(w, tn_json_key(x), x);
    }
    for (const tn_json *x = tn_json_first(more); x; x = tn_json_next(x)) tn_json_put(w, tn_json_key(x), x);
    tn_json_close(w);
    snprintf(path, sizeof path, "%s/config.json", to);
    ck_assert_int_eq(tn_json_save(w, path), TN_OK);
    snprintf(path, sizeof path, "%s/model.safetensors", to);
    tn_safetensors        *f = tn_safetensors_open(tn_test_data(tn_name("golden/families/%s/model.safetensors", name)));
    tn_safetensors_writer *weights = tn_safetensors_writer_new();
    for (int64_t i = 0; i < tn_safetensors_count(f); i++)
        tn_safetensors_put(weights, tn_safetensors_at(f, i).name, tn_safetensors_get_at(f, i));
    ck_assert_int_eq(tn_safetensors_save(weights, path), TN_OK);
    tn_safetensors_writer_free(weights), tn_safetensors_close(f);
    tn_json_writer_free(w), tn_json_free(was), tn_json_free(more);
    return to;
}

/* The same model with the members that transformers 4 wrote. */
TEST(older_spellings)
{
    static const struct {
        int         model;
        const char *with;
    } at[] = {
        {2, "{\"rope_theta\":100.0,\"rope_local_base_freq\":30.0,"
            "\"rope_scaling\":{\"rope_type\":\"linear\",\"factor\":4.0}}"},
        {5, "{\"rope_theta\":50.0,\"partial_rotary_factor\":0.5}"},
        {6, "{\"rotary_pct\":0.25,\"rotary_emb_base\":10000}"},
        {4, "{\"rope_theta\":2000000.0,\"no_rope_layers\":[true,false,true]}"},
        {1, "{\"hidden_act\":\"relu\",\"rope_theta\":10000.0}"},
    };
    static const char *const without[] = {"rope_parameters", NULL};
    for (size_t i = 0; i < sizeof at / sizeof *at; i++) {
        tn_llama *m = tn_llama_load(changed(names[at[i].model], without, at[i].with));
        fine();
        ck_assert_double_le(furthest(tn_llama_forward(m, answer_of(-1, "ids")), answer_of(at[i].model, "scores")),
                            2e-5);
        tn_free(m);
    }
}

/* SmolLM3's windows follow layer_types; without these, use_sliding_window must be true. */
TEST(windows_of_smollm3)
{
    static const char *const without[] = {"layer_types", NULL};
    static const char *const with[] = {
        "{\"sliding_window\":3,\"use_sliding_window\":false}",
        "{\"sliding_window\":3,\"use_sliding_window\":false,"
        "\"layer_types\":[\"sliding_attention\",\"full_attention\",\"sliding_attention\"]}"};
    for (int i = 0; i < 2; i++) {
        tn_llama *m = tn_llama_load(changed("smollm3", without, with[i]));
        fine();
        ck_assert_int_eq(m->config.scores.window, i ? 3 : 0);
        tn_free(m);
    }
}

TEST(refused_by_name)
{
    static const struct {
        const char *name, *with;
        tn_status   status;
        const char *says;
    } at[] = {
        {"gemma2", "{\"use_bidirectional_attention\":true}", TN_EUNSUPPORTED, "use_bidirectional_attention is true"},
        {"gemma3", "{\"attn_logit_softcapping\":50.0}", TN_EUNSUPPORTED, "attn_logit_softcapping is not empty"},
        {"gemma3",
         "{\"rope_parameters\":{\"sliding_attention\":{\"rope_type\":\"linear\",\"factor\":2,\"rope_theta\":9}}}",
         TN_EUNSUPPORTED, "rope_parameters.sliding_attention.rope_type is 'linear'; only 'default' is supported"},
        {"phi3", "{\"resid_pdrop\":0.1}", TN_EUNSUPPORTED, "resid_pdrop is 0.1; only 0 is supported"},
        {"phi3", "{\"rope_parameters\":null,\"rope_scaling\":{\"type\":\"longrope\"}}", TN_EUNSUPPORTED,
         "rope_scaling.type is 'longrope'"},
        {"gptj", "{\"rotary_dim\":64}", TN_EFORMAT,
         "rotary_dim is 64, but must be even and at most n_embd / n_head, 6"},
        {"gptj", "{\"n_head\":5}", TN_EFORMAT, "n_head 5 does not divide n_embd"},
        {"gptj", "{\"resid_pdrop\":0.1}", TN_EUNSUPPORTED, "embd_pdrop is 0 and resid_pdrop 0.1; only equal ones"},
        {"smollm3", "{\"no_rope_layers\":[1]}", TN_EFORMAT,
         "no_rope_layers names 1 layers, but num_hidden_layers is 3"},
        {"smollm3",
         "{\"layer_types\":[\"sliding_attention\",\"sliding_attention\",\"sliding_attention\"],"
         "\"sliding_window\":2,\"use_sliding_window\":true}",
         TN_EUNSUPPORTED, "layer 1 has a window and no rotary positions, which is not supported"},
        {"qwen3", "{\"layer_types\":[\"chunked_attention\"]}", TN_EUNSUPPORTED,
         "layer_types[0] is 'chunked_attention'"},
        {"mixtral", "{\"num_experts_per_tok\":6}", TN_EFORMAT,
         "num_experts_per_tok is 6, but there are only 5 experts"},
        {"qwen3_moe", "{\"mlp_only_layers\":[1]}", TN_EUNSUPPORTED, "mlp_only_layers is not empty"},
        {"qwen3_moe", "{\"decoder_sparse_step\":2}", TN_EUNSUPPORTED, "decoder_sparse_step is 2; only 1 is supported"},
        {"phi3", "{\"rope_scaling\":{\"full_attention\":{\"rope_theta\":5}}}", TN_EUNSUPPORTED,
         "rope_scaling.full_attention is not empty"},
        {"neox", "{\"head_dim\":4}", TN_EUNSUPPORTED, "head_dim is 4; only hidden_size / num_attention_heads, 8, is"},
        {"gemma3", "{\"rope_parameters\":{\"rope_theta\":5}}", TN_EUNSUPPORTED,
         "rope_parameters.rope_theta is not empty, which is not supported; expected in rope_parameters.full_attention"},
        {"neox", "{\"rotary_pct\":0.4,\"rope_parameters\":null}", TN_EFORMAT,
         "rotary positions of 3 elements of each head; the number must be even"},
    };
    static const char *const without[] = {NULL};
    for (size_t i = 0; i < sizeof at / sizeof *at; i++) {
        ck_assert_ptr_null(tn_llama_load(changed(at[i].name, without, at[i].with)));
        ck_assert_msg(tn_error() == at[i].status && strstr(tn_error_message(), at[i].says), "%s", tn_error_message());
        tn_clear_error();
    }
}

/* pad_token_id: the class's default if it is missing, none if it is null, and kept as it was written. */
TEST(padding_tokens)
{
    static const struct {
        const char *name, *with; /* NULL: without pad_token_id */
        int64_t     padding;     /* of the model; -2: refused */
        const char *says;        /* pad_token_id of the saved config, "": missing; or the message */
    } at[] = {
        {"gemma2", NULL, 0, "0"},
        {"gemma2", "null", -1, "null"},
        {"gemma3", NULL, 0, "0"},
        {"gemma3", "-2", 17, "-2"},
        {"olmo2", NULL, 1, "1"},
        {"olmo2", "null", -1, "null"},
        {"phi3", NULL, -2, "pad_token_id is 32000, but must be less than vocab_size 19"},
        {"phi3", "null", -1, "null"},
        {"smollm3", NULL, -2, "pad_token_id is 128004, but must be less than vocab_size 19"},
        {"smollm3", "3", 3, "3"},
        {"qwen3", NULL, -1, ""},
        {"qwen3", "null", -1, ""},
        {"neox", "5", -1, "5"}, /* the embeddings of GPT-NeoX and GPT-J have no padding */
        {"neox", "-1", -1, "-1"},
        {"gptj", "18", -1, "18"},
        {"gptj", "null", -1, ""},
    };
    static const char *const without[] = {"pad_token_id", NULL};
    const char              *to = tn_test_folder("saved");
    for (size_t i = 0; i < sizeof at / sizeof *at; i++) {
        tn_llama *m = tn_llama_load(
            changed(at[i].name, without, at[i].with ? tn_name("{\"pad_token_id\":%s}", at[i].with) : "{}"));
        ck_assert_msg(!m == (at[i].padding == -2), "%s: %s", at[i].name, tn_error_message());
        if (!m) ck_error_has(TN_EFORMAT, at[i].says);
        if (!m) continue;
        ck_assert_int_eq(m->config.padding, at[i].padding);
        ck_assert_int_eq(tn_llama_save(m, to), TN_OK);
        tn_json        *doc = tn_json_load(tn_name("%s/config.json", to));
        tn_json_writer *w = tn_json_writer_new(0);
        const tn_json  *v = tn_json_get(doc, "pad_token_id");
        if (v) tn_json_put(w, NULL, v);
        ck_assert_str_eq(v ? tn_json_text(w, NULL) : "", at[i].says);
        tn_json_writer_free(w), tn_json_free(doc);
        tn_free(m);
    }
}

/* GPT-NeoX's members of rope_scaling count first; those of other classes do not count. */
TEST(rotary_positions_of_neox)
{
    static const char *const without[] = {"rope_parameters", NULL};
    const char *const        with = "{\"rope_scaling\":{\"rope_type\":\"default\",\"partial_rotary_factor\":0.75,"
                                    "\"rope_theta\":9},\"rotary_pct\":0.25,\"rotary_emb_base\":100,\"head_dim\":8}";
    tn_llama                *m = tn_llama_load(changed("neox", without, with));
    fine();
    ck_assert(m->config.rope.dim == 6 && m->config.rope.theta == 9);
    tn_free(m);
    m = tn_llama_load(changed("neox", without, "{\"partial_rotary_factor\":0.75,\"rope_theta\":9}"));
    fine();
    ck_assert(m->config.rope.dim == 2 && m->config.rope.theta == 10000);
    tn_free(m);
}

/* Gemma's class makes masks of windows also if no layer has one, and fails without sliding_window. */
TEST(gemma_without_windows)
{
    static const char *const without[] = {NULL};
    const char              *to = tn_test_folder("saved");
    for (int i = 2; i <= 3; i++) {
        tn_llama *m = tn_llama_load(changed(tn_name("gemma%d", i), without,
                                            "{\"layer_types\":[\"full_attention\",\"full_attention\","
                                            "\"full_attention\"]}"));
        fine();
        ck_assert(!m->config.scores.window && !m->config.pattern);
        ck_assert_int_eq(tn_llama_save(m, to), TN_OK);
        tn_free(m);
        tn_json *doc = tn_json_load(tn_name("%s/config.json", to));
        ck_assert_int_eq(tn_json_i64(tn_json_get(doc, "sliding_window")), 4096);
        ck_assert_int_eq(tn_json_count(tn_json_get(doc, "layer_types")), 3);
        tn_json_free(doc);
        m = tn_llama_load(to);
        fine();
        ck_assert(!m->config.scores.window && !m->config.pattern);
        tn_free(m);
    }
}

/* ---- from C ------------------------------------------------------------------------------------------------------ */

#define SIZES .vocab = 11, .dim = 12, .layers = 2, .heads = 2, .ff = 8
TEST(types_of_options)
{
    static const struct {
        const char *type;
        bool        writable;
    } want[] = {{"qwen3", true},   {"olmo2", true},     {"smollm3", true}, {"phi3", true}, {"gpt_neox", true},
                {"mixtral", true}, {"qwen3_moe", true}, {NULL, false},     {NULL, false}};
    tn_llama *m[] = {
        tn_llama_new(SIZES, .scores.qk_norm = TN_QK_NORM_HEAD),
        tn_llama_new(SIZES, .scores.qk_norm = TN_QK_NORM_ALL, .order = TN_NORM_RESULT),
        tn_llama_new(SIZES, .pattern = "gn"),
        tn_llama_new(SIZES, .rope.dim = 4),
        tn_llama_new(SIZES, .norm = TN_NORM_LAYER, .plain_ff = true, .order = TN_NORM_PARALLEL, .qkv_bias = true,
                     .out_bias = true, .ff_bias = true),
        tn_llama_new(SIZES, .experts = 3),
        tn_llama_new(SIZES, .experts = 3, .scores.qk_norm = TN_QK_NORM_HEAD, .experts_per_token = 1),
        tn_llama_new(SIZES, .experts = 3, .experts_per_token = 1), /* Mixtral's weights are always shares */
        tn_llama_new(SIZES, .scores.cap = 5),
    };
    fine();
    for (size_t i = 0; i < sizeof m / sizeof *m; i++) {
        ck_assert_msg((m[i]->config.type == NULL) == (want[i].type == NULL), "%d", (int)i);
        if (want[i].type) ck_assert_str_eq(m[i]->config.type, want[i].type);
        mkdir(tn_test_file("options"), 0777);
        ck_assert_int_eq(tn_llama_save(m[i], tn_test_file("options")), want[i].writable ? TN_OK : TN_EUNSUPPORTED);
        tn_clear_error(), tn_free(m[i]);
    }
    /* rotary positions of a part of each head: 44 · (30 / 44) is below 30 */
    tn_llama *part = tn_llama_new(SIZES, .type = "phi3", .head_dim = 44, .rope.dim = 30), *again;
    ck_assert_int_eq(tn_llama_save(part, tn_test_file("options")), TN_OK);
    again = tn_llama_load(tn_test_file("options"));
    fine();
    ck_assert_int_eq(again->config.rope.dim, 30);
    tn_free(part), tn_free(again);
    ck_refused(tn_llama_new(SIZES, .type = "llama", .scores.qk_norm = TN_QK_NORM_HEAD), TN_EINVAL,
               "tn_llama_new: .type is 'llama', whose models do not have these options; unset .type");
    ck_refused(tn_llama_new(SIZES, .experts = 1025), TN_EINVAL,
               "tn_llama_new: .experts is 1025, but must be from 1 to 1024");
    ck_refused(tn_llama_new(SIZES, .experts = 1), TN_EINVAL,
               "tn_llama_new: .experts_per_token is 2, but must be from 1 to 1");
    ck_refused(tn_llama_new(SIZES, .type = "mamba"), TN_EINVAL,
               "tn_llama_new: .type is 'mamba', which is not a model_type that tn_llama supports");
    ck_refused(tn_llama_new(SIZES, .logit_cap = -2), TN_EINVAL,
               "tn_llama_new: .logit_cap is -2 and .embedding_scale 0; neither may be negative or infinite");
}
