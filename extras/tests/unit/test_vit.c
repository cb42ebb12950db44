/* test_vit.c — ViT and DeiT compared with Hugging Face's (tests/golden/vit.py): hidden states, logits, interpolated
 * positions, gradients, reading and writing files and labels; errors. */
#include "extras.h"
#include "tests/common/answers.h"
#include "tests/common/faults.h"
#include "tests/common/golden_case.h"

static void open_answers(void) { tn_answers_open("golden/vit/answers.safetensors"); }
AROUND_TESTS(open_answers, close_answers);
static tn_tensor *answer_of(const char *name, const char *what)
{
    tn_tensor *t = tn_safetensors_get(answers, name ? tn_name("%s.%s", name, what) : what);
    fine();
    return t;
}
static const char *folder(const char *name) { return tn_test_data(tn_name("golden/vit/%s", name)); }

static const char *const names[] = {"classifier", "model", "deit", "teacher"};
enum { MODELS = sizeof names / sizeof *names };

static tn_tensor *told(tn_vit *m, tn_tensor *vectors)
{
    return m->classifier ? tn_vit_logits(m, vectors, NULL) : m->pooler ? tn_vit_pooled(m, vectors) : vectors;
}

TEST_EACH(numbers_as_hugging_face, MODELS)
{
    const char *name = names[_i];
    tn_vit     *m = tn_vit_load(folder(name));
    fine();
    ck_assert(!m->base.training && (m->distillation != NULL) == (_i > 1) && (m->taught != NULL) == (_i == 3));
    tn_tensor *x = answer_of(NULL, "x"), *v = tn_vit_forward(m, x), *y = told(m, v);
    ck_assert_double_le(furthest(v, answer_of(name, "vectors")), 2e-5);
    ck_assert_double_le(furthest(y, answer_of(name, "y")), 2e-5);
    if (m->classifier) ck_assert(tn_same_bits(tn_call(m, x), y));
    ck_assert(tn_same_bits(tn_vit_forward(m, tn_narrow(x, 0, 1, 1)), tn_narrow(v, 0, 1, 1)));

    tn_tensor *wide = told(m, tn_vit_forward(m, answer_of(NULL, "wide"), .interpolate = true));
    ck_assert_double_le(furthest(wide, answer_of(name, "wide")), 2e-5);
    tn_tensor *by = tn_reshape(tn_arange_of(TN_F32, 1, 1 + (double)tn_numel(wide), 1), tn_shape_of(wide));
    tn_backward(tn_sum(tn_mul(wide, by)));
    tn_tensor *g = answer_of(name, "grad");
    ck_assert_double_le(furthest(tn_grad(m->positions), g), 1e-5 * tn_item(tn_amax(tn_abs(g))));
    if (m->taught) {
        tn_tensor *parts[2], *mean = tn_vit_logits(m, v, parts);
        ck_assert(tn_same_bits(mean, y));
        ck_assert_double_le(furthest(parts[0], answer_of(name, "cls")), 2e-5);
        ck_assert_double_le(furthest(parts[1], answer_of(name, "taught")), 2e-5);
    }
    tn_free(m);
}

TEST(weights_of_each_layer)
{
    tn_vit    *m = tn_vit_load(folder("deit"));
    tn_tensor *w[2], *x = answer_of(NULL, "x"), *y = tn_vit_forward(m, x, .weights = w);
    fine();
    ck_assert(tn_same_bits(y, tn_vit_forward(m, x)));
    for (int i = 0; i < 2; i++) {
        ck_assert(tn_shape_equal(tn_shape_of(w[i]), TN_SHAPE(2, 3, 11, 11)));
        tn_tensor *sums = tn_sum(w[i], .dims = TN_DIMS(-1));
        ck_assert(tn_allclose(sums, tn_ones_like(sums), 1e-5, 0));
    }
    tn_free(m);
}

/* ---- files ------------------------------------------------------------------------------------------------------- */

static tn_vit *filled(tn_vit *m)
{
    fine();
    for (tn_each p = tn_parameters(m); tn_next(&p);) {
        const tn_scope s = tn_no_grad_begin();
        tn_copy_(p.tensor, tn_mul_scalar(tn_golden_values(p.name, TN_F32, tn_shape_of(p.tensor)), 0.5));
        tn_scope_end(s);
    }
    tn_eval(m);
    return m;
}
#define SIZES .image = 9, .patch = 3, .channels = 2, .dim = 12, .layers = 2, .heads = 3, .ff = 20
static const char *const labels[] = {"a \"cat\"", "Hündin", "a \"cat\""};
static tn_vit           *plain(void)
{
    tn_vit *m = tn_vit_new(SIZES, .classes = 3);
    ck_assert_int_eq(tn_vit_set_labels(m, labels), TN_OK);
    return m;
}
static tn_vit *unnamed(void) { return tn_vit_new(SIZES, .classes = 5, .activation = "relu", .eps = 1e-6); }
static tn_vit *vectors(void) { return tn_vit_new(SIZES, .pooler = 7); }
static tn_vit *deit(void) { return tn_vit_new(SIZES, .classes = 4, .distilled = true); }
static tn_vit *teacher(void) { return tn_vit_new(SIZES, .classes = 4, .teacher = true); }
static const struct {
    const char *name, *architecture;
    tn_vit *(*make)(void);
} written[] = {
    {"plain", "ViTForImageClassification", plain},
    {"unnamed", "ViTForImageClassification", unnamed},
    {"vectors", "ViTModel", vectors},
    {"deit", "DeiTForImageClassification", deit},
    {"teacher", "DeiTForImageClassificationWithTeacher", teacher},
};
enum { WRITTEN = sizeof written / sizeof *written };

/* The recorded files, which transformers reads, are equal to those written now, and load here. */
TEST_EACH(writes_what_hugging_face_reads, WRITTEN)
{
    char        path[1000];
    const char *kept = folder(tn_name("tenon/%s", written[_i].name)), *now = tn_test_folder("written");
    tn_vit     *m = filled(written[_i].make()), *b;
    tn_tensor  *x = answer_of(NULL, "x"), *y = told(m, tn_vit_forward(m, x));
    if (getenv("TENON_GOLDEN")) {
        mkdir(folder("tenon"), 0777), mkdir(kept, 0777);
        tn_safetensors_writer *w = tn_safetensors_writer_new();
        tn_safetensors_put(w, "x", x), tn_safetensors_put(w, "y", y);
        snprintf(path, sizeof path, "%s/answers.safetensors", kept);
        ck_assert(tn_vit_save(m, kept) == TN_OK && tn_safetensors_save(w, path) == TN_OK);
        tn_safetensors_writer_free(w);
    }
    ck_assert_msg(tn_vit_save(m, now) == TN_OK, "%s", tn_error_message());
    for (int k = 0; k < 2; k++) {
        snprintf(path, sizeof path, "%s/%s", k ? now : kept, "config.json");
        tn_json *c = tn_json_load(path);
        ck_assert_str_eq(tn_json_string(tn_json_first(tn_json_get(c, "architectures"))), written[_i].architecture);
        tn_json_free(c);
        b = tn_vit_load(k ? now : kept);
        fine();
        ck_assert(tn_same_bits(told(b, tn_vit_forward(b, x)), y));
        for (int64_t i = 0; i < m->config.classes; i++) ck_assert_str_eq(tn_vit_label(b, i), tn_vit_label(m, i));
        ck_assert(!memcmp(&b->config.image, &m->config.image, offsetof(tn_vit_config, activation) - sizeof(int64_t)));
        tn_free(b);
    }
    ck_assert_str_eq(tn_vit_label(m, -1), "");
    ck_assert_str_eq(tn_vit_label(m, 5), "");
    if (_i == 1) ck_assert_str_eq(tn_vit_label(m, 4), "4");
    tn_free(m);
}

static void put_config(const char *dir, const char *members)
{
    char path[1000], text[800];
    tn_test_unsummed(dir);
    snprintf(path, sizeof path, "%s/config.json", dir);
    const int n = snprintf(text, sizeof text,
                           "{\"hidden_size\": 12, \"num_attention_heads\": 3, \"num_hidden_layers\": 2, "
                           "\"intermediate_size\": 20, \"image_size\": 9, \"patch_size\": 3, \"num_channels\": 2%s%s}",
                           *members ? ", " : "", members);
    ck_assert_int_eq(tn_file_write(path, text, (size_t)n), TN_OK);
}

TEST(configs_refused)
{
    const tn_vit_config base = tn_vit_size("base");
    ck_assert(base.dim == 768 && base.layers == 12 && base.heads == 12 && base.patch == 16);
    ck_assert_int_eq(tn_vit_size(NULL).dim, 0);
    ck_error(TN_EINVAL, "tn_vit_size: unknown size 'NULL'; the sizes are tiny, mini, small and base");
    static const struct {
        const char *members;
        tn_status   code;
        const char *says;
    } wrong[] = {
        {"\"model_type\": \"swin\"", TN_EUNSUPPORTED, "model_type is 'swin'; supported: 'vit' and 'deit'"},
        {"\"qkv_bias\": false", TN_EUNSUPPORTED, "qkv_bias is false, which is not supported"},
        {"\"pooler_act\": \"relu\"", TN_EUNSUPPORTED, "pooler_act is 'relu'; only 'tanh' is supported"},
        {"\"hidden_size\": 13", TN_EFORMAT, ""}, /* a duplicate key */
        {"\"hidden_act\": \"quick_gelu\"", TN_EUNSUPPORTED, ""},
        {"\"layer_norm_eps\": 5", TN_EFORMAT, "layer_norm_eps is 5, but must be from 1e-15 to 0.1"},
        {"\"id2label\": {\"0\": \"a\"}", TN_EFORMAT, "id2label has 1 names, but the weights are for 3 classes"},
        {"\"id2label\": {\"0\": \"a\", \"1\": \"b\", \"3\": \"c\"}", TN_EFORMAT,
         "id2label has the key '3', but must have the numbers from 0 to 2, each once"},
        {"\"pruned_heads\": {\"0\": [1]}", TN_EUNSUPPORTED, "pruned_heads is not empty, which is not supported"},
    };
    const char *dir = tn_test_folder("wrong");
    tn_vit     *m = filled(plain());
    ck_assert_int_eq(tn_vit_save(m, dir), TN_OK);
    tn_free(m);
    put_config(dir, "");
    m = tn_vit_load(dir);
    fine();
    ck_assert_str_eq(tn_vit_label(m, 2), "2");
    tn_free(m);
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        put_config(dir, wrong[i].members);
        ck_assert_ptr_null(tn_vit_load(dir));
        ck_assert_msg(tn_error() == wrong[i].code && strstr(tn_error_message(), wrong[i].says), "%s: %s",
                      wrong[i].members, tn_error_message());
        tn_clear_error();
    }
    put_config(dir, "\"model_type\": \"deit\""); /* its weights are missing */
    ck_refused_code(tn_vit_load(dir), TN_EFORMAT);
    ck_refused_code(tn_vit_load(NULL), TN_EINVAL);
}

/* ---- use --------------------------------------------------------------------------------------------------------- */

TEST(refuses)
{
    ck_refused(tn_vit_new(.image = 8, .patch = 9), TN_EINVAL, "tn_vit_new: .patch is 9, but must be at most .image 8");
    ck_refused(tn_vit_new(.teacher = true), TN_EINVAL, "tn_vit_new: .teacher needs .classes");
    ck_refused(tn_vit_new(.layers = 0), TN_EINVAL, "tn_vit_new: .layers is 0, but must be from 1 to 1024");
    ck_refused_code(tn_vit_new(.activation = "what"), TN_EINVAL);
    tn_vit *m = vectors(), *c = unnamed();
    fine();
    tn_vit_forward(m, tn_ones(TN_SHAPE(1, 3, 9, 9)));
    ck_error(TN_ESHAPE, "vit: x must be [batch, 2, height, width], got [1, 3, 9, 9]");
    tn_vit_forward(m, tn_ones(TN_SHAPE(1, 2, 9, 10)));
    ck_error(TN_ESHAPE, "vit: images of 9 x 10 pixels, but the model expects 9 x 9; resize them, or set .interpolate");
    tn_vit_forward(m, tn_ones(TN_SHAPE(1, 2, 2, 10)), .interpolate = true);
    ck_error(TN_ESHAPE, "vit: an image of 2 x 10 pixels is smaller than a patch of 3");
    tn_tensor *y = tn_ones(TN_SHAPE(1, 10, 12)), *parts[2] = {y, y};
    tn_vit_logits(m, y, NULL);
    ck_error(TN_ESTATE, "vit: this model has no classifier; create it with .classes");
    tn_vit_logits(c, y, parts);
    ck_error(TN_ESTATE, "vit: this model has one classifier, so .parts must be NULL; create it with .teacher");
    ck_assert(!parts[0] && !parts[1]);
    tn_vit_pooled(c, y);
    ck_error(TN_ESTATE, "vit: this model has no pooler; create it with .pooler");
    ck_fails(tn_vit_set_labels(m, labels), TN_EINVAL, "tn_vit_set_labels: this model has no classes");
    tn_free(m), tn_free(c);
}

/* Learns which half of an image is bright; failed allocations on the way leak nothing. */
static double once(int i)
{
    const tn_scope s = tn_scope_begin();
    tn_seed(3);
    tn_vit    *m = tn_vit_new(.image = 6, .patch = 3, .channels = 1, .dim = 8, .layers = 1, .heads = 2, .classes = 2,
                              .ff = 8, .teacher = i > 0);
    tn_tensor *x = tn_uniform(TN_SHAPE(3, 1, 6, 6), 0, 1), *y = tn_randint(TN_SHAPE(3), 0, 2);
    double     v = NAN;
    if (m) {
        tn_vit_set_labels(m, labels);
        tn_tensor *loss = tn_cross_entropy(tn_call(m, x), y);
        if (tn_backward(loss) == TN_OK) v = tn_item(loss) + tn_item(tn_sum(tn_grad(m->positions)));
    }
    tn_free(m);
    tn_scope_end(s);
    return v;
}
BARE_TEST_EACH(memory, 2) { tn_each_allocation_fails(once, _i, tn_test_slow() ? 7 : 2, 5, 100); }

TEST(copies_keep_their_labels)
{
    tn_vit *m = plain(), *c = tn_copy(m);
    tn_free(m);
    ck_assert_str_eq(tn_vit_label(c, 1), "Hündin");
    tn_free(c);
}
