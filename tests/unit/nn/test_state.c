/* test_state.c — state dicts: saved tensors are loaded under every name they may have, nothing changes unless
 * everything fits, and errors name the mismatches. */
#include "nn/base/nn_private.h"
#include "nn/base/state_private.h"
#include "tests/common/check_main.h"
#include "tests/common/faults.h"

typedef struct {
    tn_module      base;
    tn_embedding  *words;
    tn_batch_norm *norm;
    tn_linear     *head;
    tn_tensor     *mask;
} model;

static tn_tensor *model_forward(model *m, tn_tensor *x)
{
    if (!tn_ready(m)) return NULL;
    tn_frame f = tn_enter(m);
    return tn_leave(f, tn_call(m->head, tn_call(m->norm, tn_call(m->words, x))));
}
TN_FORWARD(model);

static model *model_new(bool tied)
{
    model *m = tn_module_new(model);
    if (!m) return NULL;
    m->words = tn_child(m, "words", tn_embedding_new(.count = 6, .dim = 4));
    m->norm = tn_child(m, "norm", tn_batch_norm1d_new(.features = 4));
    m->head = tn_child(m, "head", tn_linear_new(.in = 4, .out = 6, .no_bias = true));
    m->mask = tn_buffer_unsaved(m, "mask", tn_ones(TN_SHAPE(2)));
    if (tied) tn_tie(m, "head.weight", m->words->weight);
    return tn_built(m);
}

static tn_tensor *tokens(void) { return tn_from_data(TN_I64, TN_SHAPE(4), (int64_t[]){0, 3, 5, 3}); }
static tn_tensor *answer(model *m)
{
    tn_eval(m);
    return tn_detach(tn_call(m, tokens()));
}

/* The names in a file, in alphabetical order. */
static const char *names_in(const char *path)
{
    static char     text[2000];
    size_t          at = 0;
    tn_safetensors *f = tn_safetensors_open(path);
    text[0] = 0;
    for (int64_t i = 0; i < tn_safetensors_count(f); i++)
        at += (size_t)snprintf(text + at, sizeof text - at, "%s%s", at ? " " : "", tn_safetensors_at(f, i).name);
    tn_safetensors_close(f);
    return text;
}

TEST(what_is_saved_comes_back)
{
    const char *path = tn_test_file("state.safetensors");
    model      *a = model_new(false), *b = model_new(false);
    tn_call(a, tokens()); /* updates the running statistics */
    ck_assert_int_eq(tn_save(a, path), TN_OK);
    ck_assert_str_eq(
        names_in(path),
        "norm.num_batches_tracked head.weight norm.bias norm.running_mean norm.running_var norm.weight words.weight");
    tn_tensor *want = answer(a);
    ck_assert(!tn_allclose(answer(b), want, 1e-3, 1e-3));
    ck_assert_int_eq(tn_load(b, path), TN_OK);
    ck_assert(tn_allclose(answer(b), want, 0, 0));
    ck_assert_int_eq(tn_get_i64(b->norm->num_batches_tracked, 0), 1);
    ck_assert(tn_needs_grad(b->head->weight));
    tn_free(a), tn_free(b);
}

TEST(a_tied_tensor_is_stored_once_and_found_by_any_name)
{
    const char *path = tn_test_file("tied.safetensors");
    model      *a = model_new(true), *b = model_new(true), *c = model_new(false);
    ck_assert_int_eq(tn_save(a, path), TN_OK);
    ck_assert_ptr_null(strstr(names_in(path), "head.weight"));
    tn_safetensors *f = tn_safetensors_open(path);
    ck_assert_str_eq(tn_safetensors_metadata(f, "head.weight"), "words.weight");
    tn_safetensors_close(f);
    ck_assert_int_eq(tn_load(b, path), TN_OK);
    ck_assert(tn_allclose(answer(a), answer(b), 0, 0));
    ck_assert_int_eq(tn_load(c, path), TN_EFORMAT); /* not tied here, so two names are required */
    tn_clear_error();
    /* both names: the values must agree */
    ck_assert_int_eq(tn_save(a, path, .every_name = true), TN_OK);
    ck_assert_ptr_nonnull(strstr(names_in(path), "head.weight"));
    ck_assert_int_eq(tn_load(b, path), TN_OK);
    ck_assert_int_eq(tn_load(c, path), TN_OK);
    ck_assert(tn_allclose(answer(a), answer(c), 0, 0));
    tn_scope s = tn_no_grad_begin();
    tn_set(c->head->weight, 3, 9);
    tn_scope_end(s);
    ck_assert_int_eq(tn_save(c, path), TN_OK);
    ck_fails(tn_load(b, path), TN_EFORMAT,
             "tn_load: 'head.weight' and 'words.weight' are one tensor here, but differ in the file");
    ck_assert(tn_allclose(answer(a), answer(b), 0, 0));
    tn_free(a), tn_free(b), tn_free(c);
}

static char told[2000];
static void tell(tn_mismatch what, const char *name, const char *text, void *user)
{
    static const char *const words[] = {"missing", "unexpected", "mismatched"};
    (void)user;
    snprintf(told + strlen(told), sizeof told - strlen(told), "%s %s%s; ", words[what], name, text);
}

/* A file of another model: two names missing, three unexpected, one mismatched. */
static const char *other_model(void)
{
    const char            *path = tn_test_file("other.safetensors");
    tn_safetensors_writer *w = tn_safetensors_writer_new();
    tn_safetensors_put(w, "words.weight", tn_ones(TN_SHAPE(7, 4)));
    tn_safetensors_put(w, "norm.weight", tn_full(TN_SHAPE(4), 3));
    tn_safetensors_put(w, "norm.bias", tn_full(TN_SHAPE(4), 4));
    tn_safetensors_put(w, "norm.running_mean", tn_zeros(TN_SHAPE(4)));
    tn_safetensors_put(w, "norm.running_var", tn_ones(TN_SHAPE(4)));
    tn_safetensors_put(w, "mask", tn_zeros(TN_SHAPE(2)));
    tn_safetensors_put(w, "norm", tn_zeros(TN_SHAPE(2)));
    tn_safetensors_put(w, "pooler.weight", tn_zeros(TN_SHAPE(2)));
    ck_assert_int_eq(tn_safetensors_save(w, path), TN_OK);
    tn_safetensors_writer_free(w);
    return path;
}

TEST(another_model_is_told_and_changes_nothing)
{
    const char    *path = other_model();
    char           want[2000];
    model         *m = model_new(false);
    tn_load_report report;
    tn_tensor     *before = tn_clone(answer(m));
    told[0] = 0;
    ck_assert_int_eq(tn_load(m, path, .report = &report, .mismatch = tell), TN_EFORMAT);
    snprintf(
        want, sizeof want,
        "tn_load: '%s' holds another model: 2 names missing (norm.num_batches_tracked, …), 3 unexpected (mask, …), 1 "
        "of another "
        "shape: words.weight is [6, 4], the file has [7, 4]",
        path);
    ck_error(TN_EFORMAT, want);
    ck_assert_int_eq(report.loaded, 4);
    ck_assert_int_eq(report.missing, 2);
    ck_assert_int_eq(report.unexpected, 3);
    ck_assert_int_eq(report.mismatched, 1);
    ck_assert_str_eq(
        told,
        "unexpected mask; unexpected norm; unexpected pooler.weight; mismatched words.weight is [6, 4], the file has "
        "[7, 4]; "
        "missing norm.num_batches_tracked; missing head.weight; ");
    ck_assert(tn_allclose(answer(m), before, 0, 0));
    ck_assert_int_eq(tn_load(m, path, .allow_missing = true, .allow_unexpected = true), TN_EFORMAT);
    snprintf(want, sizeof want,
             "tn_load: '%s' holds another model: 1 of another shape: words.weight is [6, 4], the file has [7, 4]",
             path);
    ck_error(TN_EFORMAT, want);
    ck_assert(tn_allclose(answer(m), before, 0, 0));
    /* with .allow_…, tensors that fit are loaded */
    ck_assert_int_eq(tn_load(m, path, .allow_missing = true, .allow_unexpected = true, .allow_shape_mismatch = true,
                             .report = &report),
                     TN_OK);
    ck_assert_int_eq(report.loaded, 4);
    ck_assert_double_eq(tn_get(m->norm->bias, 2), 4);
    ck_assert_double_eq(tn_get(m->mask, 0), 1);
    tn_linear *l = tn_linear_new(.in = 1, .out = 1);
    ck_assert_int_eq(tn_load(l, path, .allow_missing = true, .allow_unexpected = true), TN_EFORMAT);
    snprintf(want, sizeof want, "tn_load: nothing in '%s' fits this Linear: it has 'weight', the file has 'mask'",
             path);
    ck_error(TN_EFORMAT, want);
    tn_free(l), tn_free(m);
}

TEST(names_have_prefixes_and_are_renamed)
{
    const char *path = tn_test_file("renamed.safetensors");
    model      *a = model_new(false), *b = model_new(false);
    tn_save(a, path, .prefix = "model.");
    ck_assert_ptr_nonnull(strstr(names_in(path), "model.norm.running_mean"));
    ck_assert_int_eq(tn_load(b, path, .prefix = "model."), TN_OK);
    ck_assert(tn_allclose(answer(a), answer(b), 0, 0));
    /* a file with other names, loaded and saved */
    const tn_rename rules[] = {
        TN_RENAME("bert", ""),
        TN_RENAME("embeddings.word", "words"),
        TN_RENAME("cls.*.decoder.kernel", "head.*.weight", .transpose = true),
        TN_RENAME("head.predictions", "head"),
        TN_RENAME("**.gamma", "**.weight", .load_only = true),
        TN_RENAME("**.beta", "**.bias", .load_only = true),
        TN_RENAME("pooler", NULL),
    };
    const int              n = sizeof rules / sizeof *rules;
    tn_safetensors_writer *w = tn_safetensors_writer_new();
    tn_scope               s = tn_no_grad_begin();
    tn_safetensors_put(w, "bert.embeddings.word.weight", a->words->weight);
    tn_safetensors_put(w, "cls.predictions.decoder.kernel", tn_transpose(a->head->weight, 0, 1));
    tn_safetensors_put(w, "bert.norm.gamma", tn_full(TN_SHAPE(4), 2));
    tn_safetensors_put(w, "norm.beta", tn_full(TN_SHAPE(4), 5));
    tn_safetensors_put(w, "pooler.dense.weight", tn_zeros(TN_SHAPE(9)));
    tn_safetensors_put(w, "norm.running_mean", tn_zeros(TN_SHAPE(4)));
    tn_safetensors_put(w, "norm.running_var", tn_ones(TN_SHAPE(4)));
    ck_assert_int_eq(tn_safetensors_save(w, path), TN_OK);
    tn_safetensors_writer_free(w);
    tn_scope_end(s);
    ck_fails(tn_load(b, path, .rename = rules, .allow_missing = true), TN_EINVAL,
             "tn_load: .renames is 0, but .rename is set");
    ck_assert_int_eq(tn_load(b, path, .rename = rules, .renames = n, .allow_missing = true), TN_OK);
    ck_assert(tn_allclose(b->head->weight, a->head->weight, 0, 0) &&
              tn_allclose(b->words->weight, a->words->weight, 0, 0));
    ck_assert_double_eq(tn_get(b->norm->weight, 1), 2);
    ck_assert_double_eq(tn_get(b->norm->bias, 1), 5);
    ck_assert_int_eq(tn_save(b, path, .rename = rules + 1, .renames = n - 1), TN_OK);
    ck_assert_str_eq(names_in(path),
                     "norm.num_batches_tracked cls.predictions.decoder.kernel embeddings.word.weight norm.bias "
                     "norm.running_mean norm.running_var norm.weight");
    tn_safetensors *f = tn_safetensors_open(path);
    ck_assert(tn_allclose(tn_safetensors_get(f, "cls.predictions.decoder.kernel"), tn_transpose(a->head->weight, 0, 1),
                          0, 0));
    tn_safetensors_close(f);
    tn_free(a), tn_free(b);
}

/* Save and load with the same rules, of square matrices, which fit either way; .fails: the expected error. */
TEST(what_is_transposed_comes_back)
{
    const char *path = tn_test_file("turned.safetensors");
    static const struct {
        tn_rename   rule[4];
        int         rules;
        const char *fails;
    } rows[] = {
        {{TN_RENAME("fc.weight", "1.weight", .transpose = true), TN_RENAME("fc.bias", "1.bias")}, 2, NULL},
        {{TN_RENAME("fc", "1"), TN_RENAME("1.weight", "1.weight", .transpose = true)}, 2, NULL},
        {{TN_RENAME("q.weight", "0.weight", .part = 0, .parts = 3, .transpose = true),
          TN_RENAME("k.weight", "0.weight", .part = 1, .parts = 3),
          TN_RENAME("v.weight", "0.weight", .part = 2, .parts = 3, .transpose = true)},
         3,
         NULL},
        {{TN_RENAME("q.weight", "0.weight", .part = 0, .parts = 3),
          TN_RENAME("k.weight", "0.weight", .part = 1, .parts = 3),
          TN_RENAME("v.weight", "0.weight", .part = 2, .parts = 3),
          TN_RENAME("0.weight", "0.weight", .transpose = true)},
         4,
         NULL},
        {{TN_RENAME("fc.weight", "1.weight", .transpose = true), TN_RENAME("fc", "1")},
         2,
         "tn_save: '1.weight' becomes 'fc.weight' not transposed, but these rules would load it transposed; only one "
         "rule may rename it"},
        {{TN_RENAME("fc", "1"), TN_RENAME("fc.weight", "1.weight", .transpose = true)},
         2,
         "tn_save: '1.weight' becomes 'fc.weight' transposed, but these rules would load it not transposed; only one "
         "rule may rename it"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        tn_sequential *net[2] = {tn_sequential_new(), tn_sequential_new()};
        for (int k = 0; k < 2; k++) {
            tn_append(net[k], tn_linear_new(.in = 4, .out = 12));
            tn_append(net[k], tn_linear_new(.in = 4, .out = 4));
        }
        tn_save(net[0], path, .rename = rows[i].rule, .renames = rows[i].rules);
        if (rows[i].fails) ck_error(TN_EINVAL, rows[i].fails);
        else {
            ck_assert_int_eq(tn_load(net[1], path, .rename = rows[i].rule, .renames = rows[i].rules), TN_OK);
            for (tn_each e = tn_parameters(net[0]); tn_next(&e);)
                ck_assert_msg(tn_allclose(e.tensor, tn_find_tensor(net[1], e.name), 0, 0), "row %zu: %s", i, e.name);
        }
        tn_free(net[0]), tn_free(net[1]);
    }
}

/* Three matrices in the file are the rows of one in the module. */
TEST(parts_become_one_and_come_apart_again)
{
    const char     *path = tn_test_file("parts.safetensors");
    const tn_rename real[] = {
        TN_RENAME("self.query.weight", "in.weight", .part = 0, .parts = 3),
        TN_RENAME("self.query.bias", "in.bias", .part = 0, .parts = 3),
        TN_RENAME("self.key.weight", "in.weight", .part = 1, .parts = 3),
        TN_RENAME("self.key.bias", "in.bias", .part = 1, .parts = 3),
        TN_RENAME("self.value.weight", "in.weight", .part = 2, .parts = 3),
        TN_RENAME("self.value.bias", "in.bias", .part = 2, .parts = 3),
    };
    tn_sequential *a = tn_sequential_new(), *b = tn_sequential_new();
    tn_linear     *x = tn_child(a, "in", tn_linear_new(.in = 2, .out = 6)),
              *y = tn_child(b, "in", tn_linear_new(.in = 2, .out = 6));
    ck_assert_int_eq(tn_save(a, path, .rename = real, .renames = 6), TN_OK);
    ck_assert_str_eq(
        names_in(path),
        "self.key.bias self.key.weight self.query.bias self.query.weight self.value.bias self.value.weight");
    tn_safetensors *f = tn_safetensors_open(path);
    ck_assert_double_eq(tn_get(tn_safetensors_get(f, "self.key.weight"), 1), tn_get_at(x->weight, TN_SHAPE(2, 1)));
    tn_safetensors_close(f);
    ck_assert_int_eq(tn_load(b, path, .rename = real, .renames = 6), TN_OK);
    ck_assert(tn_allclose(x->weight, y->weight, 0, 0) && tn_allclose(x->bias, y->bias, 0, 0));
    /* a missing part is a missing tensor */
    ck_assert_int_eq(tn_load(b, path, .rename = real, .renames = 5, .allow_unexpected = true), TN_EFORMAT);
    ck_assert_ptr_nonnull(strstr(tn_error_message(), "1 name missing (in.bias)"));
    tn_clear_error();
    const tn_rename wrong[] = {TN_RENAME("self.query.weight", "in.weight", .part = 3, .parts = 3)};
    ck_fails(tn_load(b, path, .rename = wrong, .renames = 1), TN_EINVAL,
             "tn_load: rename 'self.query.weight': part 3 of 3 does not exist");
    const tn_rename piece[] = {TN_RENAME("self.query.weight", "in.weight", .piece = 2, .pieces = 2)};
    ck_fails(tn_load(b, path, .rename = piece, .renames = 1), TN_EINVAL,
             "tn_load: rename 'self.query.weight': piece 2 of 2 does not exist; at most 4 tensors can be "
             "joined, without .parts and .transpose");
    const tn_rename stars[] = {TN_RENAME("a.*", "b")};
    ck_fails(tn_load(b, path, .rename = stars, .renames = 1), TN_EINVAL,
             "tn_load: rename 'a.*' to 'b': both need the same number of stars, at most 8, and at most "
             "one **");
    tn_free(a), tn_free(b);
}

/* Tensors of the module that the file joins: unequal ones one after another, equal ones in groups of rows. */
TEST(pieces_are_joined_and_come_apart_again)
{
    const char *path = tn_test_file("pieces.safetensors");
    for (int64_t groups = 0; groups < 4; groups += 3) {
        const tn_rename rules[] = {
            TN_RENAME("all", "q", .piece = 0, .pieces = 3, .groups = groups),
            TN_RENAME("all", "k", .piece = 1, .pieces = 3, .groups = groups),
            TN_RENAME("all", "v", .piece = 2, .pieces = 3, .groups = groups),
            TN_RENAME("two", "q2", .piece = 0, .pieces = 2),
            TN_RENAME("two", "k2", .piece = 1, .pieces = 2),
        };
        static const char *const names[] = {"q", "k", "v", "q2", "k2", "o"};
        tn_module_dict          *net[2];
        for (int i = 0; i < 2; i++) {
            net[i] = tn_module_dict_new();
            for (int k = 0; k < 6; k++)
                tn_child(net[i], names[k], tn_linear_new(.in = 2, .out = groups ? 6 : 2 + k, .no_bias = k > 2));
        }
        ck_assert_int_eq(tn_save(net[0], path, .rename = rules, .renames = 5), TN_OK);
        tn_safetensors *f = tn_safetensors_open(path);
        ck_assert_int_eq(tn_safetensors_count(f), 4);
        tn_linear *q = (void *)tn_find(net[0], "q"), *k = (void *)tn_find(net[0], "k"),
                  *v = (void *)tn_find(net[0], "v");
        tn_tensor *want =
            groups ? tn_reshape(tn_cat(1, tn_reshape(q->weight, TN_SHAPE(3, 4)), tn_reshape(k->weight, TN_SHAPE(3, 4)),
                                       tn_reshape(v->weight, TN_SHAPE(3, 4))),
                                TN_SHAPE(18, 2))
                   : tn_cat(0, q->weight, k->weight, v->weight);
        ck_assert(tn_same_bits(tn_safetensors_get(f, "all.weight"), want));
        tn_safetensors_close(f);
        ck_assert_msg(tn_load(net[1], path, .rename = rules, .renames = 5) == TN_OK, "%s", tn_error_message());
        tn_each a = tn_parameters(net[0]), b = tn_parameters(net[1]);
        while (tn_next(&a) && tn_next(&b)) ck_assert(tn_same_bits(a.tensor, b.tensor));
        ck_assert_int_eq(tn_load(net[1], path, .rename = rules + 1, .renames = 4), TN_EFORMAT);
        tn_clear_error();
        tn_free(net[0]), tn_free(net[1]);
    }
}

/* ** matches any number of parts, also none; * matches one. */
TEST(stars_take_parts)
{
    static const struct {
        const char *from, *to, *name, *want; /* want NULL: no match */
    } rows[] = {{"**.gamma", "**.weight", "a.b.c.gamma", "a.b.c.weight"},
                {"**.gamma", "**.weight", "gamma", "weight"},
                {"**.gamma", "**.weight", "a.gamma.b", NULL},
                {"a.**.z", "**.z.a", "a.b.c.z", "b.c.z.a"},
                {"a.**.z", "q.**", "a.z", "q"},
                {"a.**.z", "q.**", "a", NULL},
                {"*.b", "x.*", "a.b.c", "x.a.c"},
                {"*.b", "x.*", "a.c.b", NULL},
                {"*.*", "m.*.n.*", "a.b", "m.a.n.b"},
                {"a", "", "a.b", "b"},
                {"a", "", "ab.c", NULL},
                {"", "bert", "a.b", "bert.a.b"},
                {"a.b.c", "x", "a.b", NULL},
                {"a.b", "x", "a.b", "x"}};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        char name[TN_PATH_BYTES];
        strcpy(name, rows[i].name);
        ck_assert_int_eq(tn__renamed(rows[i].from, rows[i].to, name), rows[i].want != NULL);
        ck_assert_str_eq(name, rows[i].want ? rows[i].want : rows[i].name);
    }
    char name[TN_PATH_BYTES] = "a", longer[600];
    memset(longer, 'x', sizeof longer - 1), longer[sizeof longer - 1] = 0;
    ck_assert_int_eq(tn__renamed("", longer, name), 1);
    ck_assert_int_eq(tn__renamed("", longer, name), -1);
}

TEST(number_types_are_converted)
{
    const char *path = tn_test_file("wide.safetensors");
    model      *a = model_new(false), *b = model_new(false);
    tn_module_to(a, TN_F64);
    ck_assert_int_eq(tn_save(a, path), TN_OK);
    ck_assert_int_eq(tn_load(b, path), TN_OK);
    ck_assert_int_eq(tn_dtype_of(b->words->weight), TN_F32);
    ck_assert_double_eq(tn_get(b->words->weight, 5), tn_get(a->words->weight, 5));
    tn_module_to(b, TN_BF16);
    ck_assert_int_eq(tn_save(b, path), TN_OK);
    ck_assert_int_eq(tn_load(a, path), TN_OK);
    ck_assert_double_eq(tn_get(b->words->weight, 5), tn_get(a->words->weight, 5));
    tn_free(a), tn_free(b);
}

TEST(one_module_becomes_another)
{
    model     *a = model_new(false), *b = model_new(false);
    tn_linear *c = tn_linear_new(.in = 4, .out = 6), *d = tn_linear_new(.in = 5, .out = 6);
    ck_assert_int_eq(tn_assign(b, a), TN_OK);
    ck_assert(tn_allclose(answer(a), answer(b), 0, 0));
    ck_fails(tn_assign(c, a), TN_EINVAL,
             "tn_assign: the modules differ: one has 'weight' where the other has 'words.weight'");
    ck_fails(tn_assign(c, d), TN_ESHAPE, "tn_assign: 'weight' is [6, 4] in one module and [6, 5] in the other");
    tn_free(a), tn_free(b), tn_free(c), tn_free(d);
}

/* ---- compared with PyTorch: tests/golden/state.py -------------------------------------------------------------- */

typedef struct {
    tn_module      base;
    tn_embedding  *words;
    tn_batch_norm *norm;
    tn_sequential *mix;
    tn_linear     *head;
} torchs;

static tn_tensor *torchs_forward(torchs *m, tn_tensor *x)
{
    if (!tn_ready(m)) return NULL;
    tn_frame f = tn_enter(m);
    return tn_leave(f, tn_call(m->head, tn_call(m->mix, tn_call(m->norm, tn_call(m->words, x)))));
}
TN_FORWARD(torchs);

static torchs *torchs_new(void)
{
    torchs *m = tn_module_new(torchs);
    if (!m) return NULL;
    m->words = tn_child(m, "words", tn_embedding_new(.count = 6, .dim = 4));
    m->norm = tn_child(m, "norm", tn_batch_norm1d_new(.features = 4));
    m->mix = tn_child(m, "mix", tn_sequential_new());
    tn_append(m->mix, tn_linear_new(.in = 4, .out = 4));
    tn_append(m->mix, tn_gelu_new());
    tn_append(m->mix, tn_layer_norm_new(.dim = 4));
    m->head = tn_child(m, "head", tn_linear_new(.in = 4, .out = 6, .no_bias = true));
    tn_tie_to(m, "head.weight", "words.weight");
    return tn_built(m);
}

/* The values in the file's metadata equal the results of m. */
static void answers(torchs *m, tn_safetensors *f)
{
    tn_eval(m);
    tn_tensor *y = tn_call(m, tokens());
    char      *text = (char *)tn_safetensors_metadata(f, "answer");
    double     largest = 0;
    for (int64_t i = 0; i < tn_numel(y); i++) largest = fmax(largest, fabs(tn_get(y, i)));
    for (int64_t i = 0; i < tn_numel(y); i++) {
        const double want = strtod(text, &text);
        ck_assert_msg(fabs(tn_get(y, i) - want) <= 2e-6 * largest, "[%lld]: %.9g, not %.9g", (long long)i, tn_get(y, i),
                      want);
    }
    ck_assert_str_eq(text, "");
}

TEST(pytorchs_state_dict_loads)
{
    torchs         *m = torchs_new();
    tn_safetensors *f = tn_safetensors_open(tn_test_data("golden/state_torch.safetensors"));
    ck_assert_msg(tn_load(m, NULL, .file = f) == TN_OK, "%s", tn_error_message());
    answers(m, f);
    tn_safetensors_close(f);
    tn_free(m);
}

/* PyTorch loads this file: it has the names that PyTorch expects, and equals the file that is saved now. */
TEST(our_state_dict_is_kept)
{
    const char *path = tn_test_data("golden/state_tenon.safetensors"), *now = tn_test_file("now.safetensors");
    tn_seed(6);
    torchs                *m = torchs_new(), *kept = torchs_new();
    tn_safetensors_writer *w = tn_safetensors_writer_new();
    tn_eval(m);
    ck_assert_int_eq(tn_save(m, NULL, .writer = w, .every_name = true), TN_OK);
    if (getenv("TENON_GOLDEN")) {
        char       text[24 * 20] = "";
        tn_tensor *y = tn_call(m, tokens());
        for (int64_t i = 0; i < 24; i++) sprintf(text + strlen(text), "%s%.9g", i ? " " : "", tn_get(y, i));
        tn_safetensors_note(w, "answer", text);
        ck_assert_int_eq(tn_safetensors_save(w, path), TN_OK);
    }
    ck_assert_int_eq(tn_safetensors_save(w, now), TN_OK);
    tn_safetensors_writer_free(w);
    char names[2000];
    strcpy(names, names_in(now));
    ck_assert_str_eq(names_in(path), names);
    tn_safetensors *f = tn_safetensors_open(path);
    ck_assert_int_eq(tn_load(kept, NULL, .file = f), TN_OK);
    for (tn_each a = tn_parameters(m), b = tn_parameters(kept); tn_next(&a) && tn_next(&b);)
        ck_assert_msg(tn_allclose(a.tensor, b.tensor, 0, 0), "%s", a.name);
    answers(kept, f);
    tn_safetensors_close(f);
    tn_free(m), tn_free(kept);
}

/* ---- errors ---------------------------------------------------------------------------------------------------- */

TEST(files_that_are_not_there)
{
    model *m = model_new(true);
    ck_assert_int_eq(tn_load(m, tn_test_file("nowhere.safetensors")), TN_EIO);
    tn_clear_error();
    ck_fails(tn_load(m, NULL), TN_EINVAL, "tn_load: .path and .file are NULL; set one of them");
    ck_fails(tn_save(m, NULL), TN_EINVAL, "tn_save: .path and .writer are NULL; set one of them");
    /* with an open file, and with a writer */
    tn_safetensors_writer *w = tn_safetensors_writer_new();
    ck_assert_int_eq(tn_save(m, NULL, .writer = w, .prefix = "m."), TN_OK);
    tn_tensor      *bytes = tn_safetensors_write(w);
    tn_safetensors *f = tn_safetensors_read(tn_data(bytes), (size_t)tn_numel(bytes));
    ck_assert_int_eq(tn_load(m, NULL, .file = f, .prefix = "m."), TN_OK);
    tn_safetensors_close(f), tn_safetensors_writer_free(w);
    tn_free(m);
}

/* Any failure while loading leaves the module unchanged: at each allocation, and at each file operation. */
TEST(a_failed_load_changes_nothing)
{
    const char *path = tn_test_file("faults.safetensors");
    tn_faulty_memory_begin();
    tn_scope s = tn_scope_begin();
    tn_seed(1);
    model *a = model_new(false), *b = model_new(false);
    ck_assert_int_eq(tn_save(a, path), TN_OK);
    tn_module_to(b, TN_F64); /* so that there are conversions */
    tn_tensor *want = tn_to(answer(a), TN_F64), *before = tn_clone(answer(b));
    bool       reached = true;
    int64_t    n = 0;
    for (; reached; n++) {
        tn_fail_memory(n, false);
        tn_status status = tn_load(b, path);
        reached = tn_memory_calls() > n;
        tn_fail_memory(-1, false);
        ck_assert_int_eq(status, reached ? TN_ENOMEM : TN_OK);
        tn_clear_error();
        if (reached) ck_assert(tn_allclose(answer(b), before, 0, 0));
    }
    ck_assert_int_gt(n, 20);
    ck_assert(tn_allclose(answer(b), want, 1e-5, 1e-6));
    tn_scope_end(s);
    tn_free(a), tn_free(b);
    tn_faulty_memory_end();

    a = model_new(false), b = model_new(false);
    before = tn_clone(answer(b));
    ck_assert_int_eq(tn_save(a, path), TN_OK);
    tn_faulty_files_begin();
    for (n = 0, reached = true; reached; n++) {
        tn_fail_file(n, 5, false);
        tn_status status = tn_load(b, path);
        reached = tn_file_calls() > n;
        const bool closing = reached && !strcmp(tn_file_call(n), "close");
        tn_fail_file(-1, 0, false);
        if (closing) ck_assert(status == TN_OK || status == TN_EIO);
        else ck_assert_int_eq(status, reached ? TN_EIO : TN_OK);
        tn_clear_error();
        if (reached && !closing) ck_assert(tn_allclose(answer(b), before, 0, 0));
    }
    ck_assert_int_gt(n, 5);
    tn_faulty_files_end();
    tn_free(a), tn_free(b);
}
