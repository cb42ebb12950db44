/* test_peft.c — adapters in PEFT's files: read and written, as PEFT does; joined and tied weights, members of
 * adapter_config.json. */
#include "extras.h"
#include "tests/common/lora_models.h"

#include <unistd.h>

static void register_extras(void) { ck_assert_int_eq(tn_extras_register(), TN_OK); }
AROUND_TESTS(register_extras, NULL);

/* Sets a weight of an adapter's file, which it replaces or is added to. */
static void put_weight(const char *dir, const char *name, tn_tensor *t)
{
    const char            *path = tn_name("%s/adapter_model.safetensors", dir);
    const char            *own = tn_name("base_model.model.%s", name);
    tn_safetensors        *f = tn_safetensors_open(path);
    tn_safetensors_writer *w = tn_safetensors_writer_new();
    for (int64_t i = 0; i < tn_safetensors_count(f); i++)
        if (strcmp(tn_safetensors_at(f, i).name, own) != 0)
            tn_safetensors_put(w, tn_safetensors_at(f, i).name, tn_safetensors_get_at(f, i));
    tn_safetensors_put(w, own, t);
    tn_safetensors_close(f);
    ck_assert_int_eq(tn_safetensors_save(w, path), TN_OK);
    tn_safetensors_writer_free(w);
}

/* ---- joined weights ---------------------------------------------------------------------------------------------- */

/* The adapters of weights that files join are one: of rank n r with blocks, or of rank r if their A are equal. Other
 * adapters of that rank are no sum of separate ones, and are rejected; so is a weight that is trained completely. */
TEST_EACH(joined_weights, 2)
{
    const struct model *of = &models[3 + _i];
    const char         *dir = tn_test_folder("joined"), *layer = of->first;
    const int64_t       rows = _i ? 96 : 64;
    tn_seed(3);
    void *m = of->make(), *other = of->make();
    ck_assert_int_eq(tn_lora_run((tn_lora_args){.module = m, .rank = 2, .names = layer}), TN_OK);
    shake(m);
    ck_assert_int_eq(tn_peft_save_run(m, dir, (tn_peft_save_args){.zero_ = 0}), TN_OK);
    tn_json *c = tn_json_load(tn_name("%s/adapter_config.json", dir));
    ck_assert_int_eq(tn_json_i64(tn_json_get(c, "r")), 2);
    ck_assert_int_eq(tn_json_i64(tn_json_get(tn_json_get(c, "rank_pattern"), layer)), 6);
    ck_assert_int_eq(tn_json_count(tn_json_get(c, "target_modules")), 1);
    fine();
    tn_json_free(c);
    const char     *b = tn_name("%s.lora_B.weight", layer);
    tn_safetensors *f = tn_safetensors_open(tn_name("%s/adapter_model.safetensors", dir));
    tn_tensor      *t = tn_safetensors_get(f, tn_name("base_model.model.%s", b));
    ck_assert(tn_shape_equal(tn_shape_of(t), TN_SHAPE(rows, 6)) && tn_safetensors_count(f) == 2);
    tn_safetensors_close(f);
    tn_set(t, 5, 1.0); /* row 0 is of q, column 5 of v */
    put_weight(dir, b, t);
    ck_assert_int_ne(tn_module_peft_load(other, dir), TN_OK);
    ck_error_has(TN_EUNSUPPORTED, "has rank 6, but is not made of one block of rank 2 for each of the 3 weights");
    ck_assert(!tn_module_has_lora(other));
    tn_module_lora_merge(m);
    ck_assert_int_eq(
        tn_lora_run((tn_lora_args){.module = m, .rank = 2, .names = "linear2", .trained = "layers.0.self_attn.k_proj"}),
        TN_OK);
    ck_assert_int_ne(tn_peft_save_run(m, dir, (tn_peft_save_args){.zero_ = 0}), TN_OK);
    ck_error_has(TN_EUNSUPPORTED, "is trained completely, but it is one of 3 that files join as ");
    tn_module_free(m), tn_module_free(other);
}

/* ---- members of adapter_config.json ------------------------------------------------------------------------------ */

/* Replaces members of dir's adapter_config.json, as the text of an object says, in a copy of the directory. */
static const char *changed(const char *dir, const char *with)
{
    const char *to = tn_test_folder("changed"), *weights = "adapter_model.safetensors";
    tn_json    *was = tn_json_load(tn_name("%s/adapter_config.json", dir)), *more = tn_json_parse(with, strlen(with));
    tn_json_writer *w = tn_json_writer_new(0);
    fine();
    tn_json_open_object(w, NULL);
    for (const tn_json *x = tn_json_first(was); x; x = tn_json_next(x))
        if (!tn_json_get(more, tn_json_key(x))) tn_json_put(w, tn_json_key(x), x);
    for (const tn_json *x = tn_json_first(more); x; x = tn_json_next(x)) tn_json_put(w, tn_json_key(x), x);
    tn_json_close(w);
    ck_assert_int_eq(tn_json_save(w, tn_name("%s/adapter_config.json", to)), TN_OK);
    remove(tn_name("%s/%s", to, weights));
    ck_assert_int_eq(link(tn_name("%s/%s", dir, weights), tn_name("%s/%s", to, weights)), 0);
    tn_json_writer_free(w), tn_json_free(was), tn_json_free(more);
    return to;
}

#define SHORT "\"target_modules\":[\"q_proj\",\"v_proj\"]"
/* The file has adapters of q_proj and v_proj of two layers, all that PEFT must load for the results to be equal. */
static const struct {
    const char *with;
    tn_status   status;
    const char *says; /* NULL: loads */
} cases[] = {
    {"{\"target_modules\":[\"q_proj\",\"self_attn.v_proj\",\"none\"]}", TN_OK, NULL},
    {"{\"target_modules\":\"all-Linear\"}", TN_OK, NULL},
    {"{\"target_modules\":\"model\\\\.layers\\\\.[\\\\d]{1,}\\\\.(?:self_attn|mlp).*?(k|q|v)_proj\"}", TN_OK, NULL},
    {"{\"target_modules\":\".*[^kv]_proj|.*\\\\bv_proj$\"}", TN_OK, NULL},
    {"{\"layers_to_transform\":[0,1],\"exclude_modules\":[\"_proj\",\"up_proj\"]}", TN_OK, NULL},
    {"{\"layers_to_transform\":[1,0],\"layers_pattern\":[\"h\",\"layers\"]}", TN_OK, NULL},
    {"{\"layers_to_transform\":[],\"layers_pattern\":null,\"exclude_modules\":\".*k_proj\"}", TN_OK, NULL},
    {"{\"rank_pattern\":{\"k.proj\":9,\"^q_proj\":8},\"alpha_pattern\":{\"layers.[2-9].*\":3}}", TN_OK, NULL},
    {"{\"init_lora_weights\":\"eva\",\"eva_config\":{\"rho\":2},\"use_dora\":false,\"kasa_config\":null}", TN_OK, NULL},
    {"{\"target_modules\":[\"q_proj\"]}", TN_EFORMAT,
     "target_modules excludes 'model.layers.0.self_attn.v_proj', which has adapters in the file"},
    {"{\"target_modules\":\".*q_proj\"}", TN_EFORMAT, "target_modules excludes 'model.layers.0.self_attn.v_proj'"},
    {"{\"target_modules\":null}", TN_EUNSUPPORTED, "target_modules is missing"},
    {"{\"target_modules\":\".*(?<=q)_proj\"}", TN_EUNSUPPORTED, "target_modules has the regular expression '.*(?<=q)_"},
    {"{\"target_modules\":\"((.*)*)*x\"}", TN_EUNSUPPORTED, "target_modules has the regular expression '((.*)*)*x'"},
    {"{\"layers_to_transform\":1}", TN_OK, NULL}, /* target_modules has whole names, which this does not exclude */
    {"{\"layers_to_transform\":1," SHORT "}", TN_EFORMAT,
     "layers_to_transform excludes 'model.layers.0.self_attn.q_proj'"},
    {"{\"layers_to_transform\":[0]," SHORT "}", TN_EFORMAT,
     "layers_to_transform excludes 'model.layers.1.self_attn.q_proj'"},
    {"{\"layers_to_transform\":[0,1],\"layers_pattern\":\"h\"," SHORT "}", TN_EFORMAT,
     "layers_to_transform with layers_pattern excludes"},
    {"{\"layers_pattern\":\"layers\"}", TN_EFORMAT, "layers_pattern needs layers_to_transform"},
    {"{\"layers_to_transform\":0,\"target_modules\":\".*\"}", TN_EFORMAT, "needs target_modules as an array"},
    {"{\"exclude_modules\":[\"layers.1.self_attn.v_proj\"]}", TN_EFORMAT,
     "exclude_modules excludes 'model.layers.1.self_attn.v_proj'"},
    {"{\"modules_to_save\":[\"self_attn\"]}", TN_EFORMAT, "modules_to_save excludes 'model.layers.0.self_attn.q_proj'"},
    {"{\"alpha_pattern\":{\"layers\\\\.1\\\\..*\":3}}", TN_EUNSUPPORTED,
     "have rank 2 and alpha 3, and the others 2 and 4"},
    {"{\"init_lora_weights\":\"pissa_niter_4\"}", TN_EUNSUPPORTED,
     "init_lora_weights is 'pissa_niter_4', which is not"},
    {"{\"init_lora_weights\":3}", TN_EFORMAT, "init_lora_weights"},
    {"{\"init_lora_weights\":false,\"target_modules\":[\"q_proj\",\"v_proj\",\"k_proj\"]}", TN_EUNSUPPORTED,
     "'model.layers.0.self_attn.k_proj' is adapted, but not in the file, and init_lora_weights is false"},
    {"{\"alora_invocation_tokens\":[5]}", TN_EUNSUPPORTED, "adapters with alora_invocation_tokens are not supported"},
    {"{\"kasa_config\":{}}", TN_EUNSUPPORTED, "adapters with kasa_config are not supported"},
    {"{\"use_new\":false}", TN_EUNSUPPORTED, "use_new is not a member that is known"},
    {"{\"use_rslora\":1}", TN_EFORMAT, "use_rslora"},
    {"{\"r\":2.5}", TN_EFORMAT, "expected an integer"},
    {"{\"target_modules\":[1]}", TN_EFORMAT, "expected a string"},
    {"{\"rank_pattern\":[2]}", TN_EFORMAT, "rank_pattern must be an object"},
    {"{\"modules_to_save\":\"score\"}", TN_EFORMAT, "modules_to_save must be an array of strings"},
};
TEST_ROWS(members, cases)
{
    const char *dir = tn_test_folder("adapter");
    tn_seed(3);
    void *m = a_llama(), *other = a_llama();
    ck_assert_int_eq(tn_lora_run((tn_lora_args){.module = m, .rank = 2, .names = "q_proj,v_proj"}), TN_OK);
    ck_assert_int_eq(tn_peft_save_run(m, dir, (tn_peft_save_args){.zero_ = 0}), TN_OK);
    tn_module_free(m);
    const char *with = changed(dir, cases[_i].with);
    ck_assert_int_eq(tn_module_peft_load(other, with), cases[_i].status);
    if (cases[_i].says) ck_error_has(cases[_i].status, cases[_i].says);
    ck_assert(tn_module_has_lora(other) == !cases[_i].says);
    tn_module_free(other);
}

/* Of a tied embedding PEFT would change a copy, and the output layer would keep the base model's. */
static const struct {
    void *(*make)(void);
    const char *trained, *name, *other; /* NULL: not tied */
} embeddings[] = {{a_gpt, "wte", "transformer.wte", "the output layer"},
                  {a_llama, "embed_tokens", "model.embed_tokens", NULL},
                  {a_bert, "word_embeddings", "bert.embeddings.word_embeddings", "cls.predictions.decoder.weight"},
                  {a_bart, "out", "model.shared", "source.weight"},
                  {a_t5, "out", "shared", "source.weight"}};
TEST_ROWS(tied_embeddings, embeddings)
{
    const char *dir = tn_test_folder("tied"), *other = embeddings[_i].other;
    const char *problem = tn_name("tn_peft: '%s.weight' is trained completely (modules_to_save), but its weight is "
                                  "also that of %s, where PEFT would use the weight of the base model; freeze it, or "
                                  "untie the two",
                                  embeddings[_i].name, other ? other : "");
    for (int in_file = 0; in_file < 2; in_file++) {
        void        *m = embeddings[_i].make(), *to = embeddings[_i].make();
        const char  *trained = in_file ? NULL : embeddings[_i].trained;
        tn_lora_args a = {.module = m, .rank = 2, .trained = trained};
        ck_assert_int_eq(tn_lora_run(a), TN_OK);
        ck_assert_int_eq(tn_peft_save_run(m, dir, (tn_peft_save_args){.zero_ = 0}),
                         in_file || !other ? TN_OK : TN_EUNSUPPORTED);
        if (other && !in_file) ck_error(TN_EUNSUPPORTED, problem);
        if (in_file) {
            put_weight(dir, tn_name("%s.weight", embeddings[_i].name), tn_ones(TN_SHAPE(50, 32)));
            ck_assert_int_eq(tn_module_peft_load(to, dir), other ? TN_EUNSUPPORTED : TN_OK);
            if (other) ck_error(TN_EUNSUPPORTED, problem);
            ck_assert(tn_module_has_lora(to) == !other);
        }
        tn_module_free(m), tn_module_free(to);
    }
}

/* A weight of a layer that also has adapters, which PEFT would not load. */
TEST(two_kinds_of_weights)
{
    const char *dir = tn_test_folder("adapter");
    void       *m = a_llama();
    ck_assert_int_eq(tn_lora_run((tn_lora_args){.module = m, .rank = 2, .names = "q_proj"}), TN_OK);
    ck_assert_int_eq(tn_peft_save_run(m, dir, (tn_peft_save_args){.zero_ = 0}), TN_OK);
    put_weight(dir, "model.layers.1.self_attn.q_proj.weight", tn_ones(TN_SHAPE(32, 32)));
    ck_assert_int_ne(tn_module_peft_load(m, dir), TN_OK);
    ck_error_has(TN_EFORMAT, "'model.layers.1.self_attn.q_proj' has adapters and other weights");
    tn_module_free(m), m = a_neox();
    ck_assert_int_eq(tn_lora_run((tn_lora_args){.module = m, .rank = 2, .names = "dense", .trained = "out_proj.bias"}),
                     TN_OK);
    ck_assert_int_ne(tn_peft_save_run(m, dir, (tn_peft_save_args){.zero_ = 0}), TN_OK);
    ck_error_has(TN_EUNSUPPORTED,
                 "'gpt_neox.layers.0.attention.dense' has adapters, and 'gpt_neox.layers.0.attention.");
    tn_module_free(m);
}

/* ---- PEFT's files (tests/golden/lora.py) ------------------------------------------------------------------------- */

static const struct {
    const char *name, *base;
} golden[] = {{"llama", "llama/llama3"}, {"llama-rs", "llama/qwen2"},       {"gpt", "gpt/torch"},
              {"bert", "heads/classes"}, {"phi3", "families/phi3"},         {"neox", "families/neox"},
              {"vit", "vit/classifier"}, {"bart", "encoder_decoders/bart"}, {"t5", "t5/flan"}};
enum { GOLDEN = sizeof golden / sizeof *golden };

static tn_tensor *logits(void *m, tn_tensor *ids)
{
    if (tn_dtype_of(ids) == TN_F32) return tn_module_call(m, ids); /* images */
    if (!strcmp(((tn_module *)m)->kind->name, "Seq2Seq")) return tn_seq2seq_forward((tn_seq2seq *)m, ids, ids);
    return ((tn_module *)m)->kind->lm ? tn_lm_forward(m, ids) : tn_tuned_forward((tn_tuned *)m, ids);
}

/* The adapters in both folders have the same names and bits. */
static void same_files(const char *a, const char *b)
{
    tn_safetensors *f = tn_safetensors_open(tn_name("%s/adapter_model.safetensors", a));
    tn_safetensors *g = tn_safetensors_open(tn_name("%s/adapter_model.safetensors", b));
    fine();
    ck_assert_int_eq(tn_safetensors_count(f), tn_safetensors_count(g));
    for (int64_t i = 0; i < tn_safetensors_count(f); i++)
        ck_assert(tn_same_bits(tn_safetensors_get_at(f, i), tn_safetensors_get(g, tn_safetensors_at(f, i).name)));
    fine();
    tn_safetensors_close(f), tn_safetensors_close(g);
}

/* Adapters written by PEFT give its logits, also merged, and written again; with TENON_GOLDEN=write other values are
 * left for PEFT to read. */
TEST_EACH(equals_peft, GOLDEN)
{
    const char     *name = golden[_i].name, *dir = tn_test_data(tn_name("golden/lora/%s", name));
    tn_model        m = tn_model_open(tn_test_data(tn_name("golden/%s", golden[_i].base)), .no_tokenizer = true);
    tn_safetensors *f = tn_safetensors_open(tn_test_data("golden/lora/answers.safetensors"));
    tn_tensor      *ids = tn_safetensors_get(f, tn_name("%s.ids", name));
    tn_tensor      *scores = tn_safetensors_get(f, tn_name("%s.scores", name));
    fine();
    ck_assert_int_eq(tn_module_peft_load(m.module, dir), TN_OK);
    ck_assert_double_le(furthest(logits(m.module, ids), scores), 2e-5);
    const char *own = tn_test_folder("peft");
    ck_assert_int_eq(tn_peft_save_run(m.module, own, (tn_peft_save_args){.task = _i == 3 ? "SEQ_CLS" : NULL}), TN_OK);
    same_files(dir, own);
    tn_model again = tn_model_open(tn_test_data(tn_name("golden/%s", golden[_i].base)), .no_tokenizer = true);
    ck_assert_int_eq(tn_module_peft_load(again.module, own), TN_OK);
    ck_assert(tn_same_bits(logits(again.module, ids), logits(m.module, ids)));
    ck_assert_int_eq(tn_module_lora_merge(again.module), TN_OK);
    ck_assert_double_le(furthest(logits(again.module, ids), scores), 5e-5);
    tn_model_close(&again);
    if (getenv("TENON_GOLDEN")) {
        const char *to = tn_test_data(tn_name("golden/lora/tenon/%s", name));
        mkdir(tn_test_data("golden/lora/tenon"), 0777), mkdir(to, 0777);
        shake(m.module);
        ck_assert_int_eq(tn_peft_save_run(m.module, to, (tn_peft_save_args){.task = _i == 3 ? "SEQ_CLS" : NULL}),
                         TN_OK);
        tn_safetensors_writer *w = tn_safetensors_writer_new();
        tn_safetensors_put(w, "ids", ids), tn_safetensors_put(w, "scores", logits(m.module, ids));
        ck_assert_int_eq(tn_safetensors_save(w, tn_name("%s/answers.safetensors", to)), TN_OK);
        tn_safetensors_writer_free(w);
    }
    tn_safetensors_close(f);
    tn_model_close(&m);
}

/* Adapters of each expert and of the router, which PEFT reads (golden/lora/tenon); those that it writes, of parameters
 * that join the experts, are rejected by name. */
TEST_EACH(experts, 2)
{
    const char *name = _i ? "qwen3_moe" : "mixtral", *dir = tn_test_folder("experts");
    const char *base = tn_test_data(tn_name("golden/families/%s", name)),
               *to = tn_test_data(tn_name("golden/lora/tenon/%s", name)), *theirs = tn_test_folder("experts-of-peft");
    tn_model   m = tn_model_open(base, .no_tokenizer = true), again = tn_model_open(base, .no_tokenizer = true);
    tn_tensor *ids = tn_randint(TN_SHAPE(2, 9), 1, 19);
    fine();
    ck_assert_int_eq(tn_lora_run((tn_lora_args){.module = m.module, .rank = 2}), TN_OK);
    shake(m.module);
    ck_assert_int_eq(tn_peft_save_run(m.module, dir, (tn_peft_save_args){.zero_ = 0}), TN_OK);
    ck_assert_int_eq(tn_module_peft_load(again.module, dir), TN_OK);
    ck_assert(tn_same_bits(logits(again.module, ids), logits(m.module, ids)));
    if (getenv("TENON_GOLDEN")) {
        mkdir(to, 0777);
        ck_assert_int_eq(tn_peft_save_run(m.module, to, (tn_peft_save_args){.zero_ = 0}), TN_OK);
        tn_safetensors_writer *w = tn_safetensors_writer_new();
        tn_safetensors_put(w, "ids", ids), tn_safetensors_put(w, "scores", logits(m.module, ids));
        ck_assert_int_eq(tn_safetensors_save(w, tn_name("%s/answers.safetensors", to)), TN_OK);
        tn_safetensors_writer_free(w);
    }
    tn_safetensors *f = tn_safetensors_open(tn_name("%s/answers.safetensors", to));
    ck_assert_int_eq(tn_module_peft_load(again.module, to), TN_OK);
    ck_assert_double_le(furthest(logits(again.module, tn_safetensors_get(f, "ids")), tn_safetensors_get(f, "scores")),
                        2e-5);
    tn_safetensors_close(f);
    FILE *file = fopen(tn_name("%s/adapter_config.json", theirs), "w");
    fputs("{\"r\": 2, \"lora_alpha\": 4, \"target_parameters\": [\"mlp.experts.gate_up_proj\"]}", file);
    fclose(file);
    ck_assert_int_ne(tn_module_peft_load(again.module, theirs), TN_OK);
    ck_error_has(TN_EUNSUPPORTED, "adapter_config.json': adapters with target_parameters are not supported");
    tn_model_close(&m), tn_model_close(&again);
}
