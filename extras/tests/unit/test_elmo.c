/* test_elmo.c — ELMo: encoding of sentences; the context of each layer and direction; gradients of the loss by finite
 * differences; training, files, errors. */
#include "extras.h"
#include "tests/common/check_main.h"

static void near(const tn_tensor *a, const tn_tensor *b, double tol)
{
    fine();
    ck_assert_int_eq(tn_numel(a), tn_numel(b));
    for (int64_t i = 0; i < tn_numel(a); i++) ck_assert_double_le(fabs(tn_get(a, i) - tn_get(b, i)), tol);
}

static tn_elmo *small(void)
{
    return tn_elmo_new(.vocab = 9, .dim = 4, .hidden = 6, .letters = 3, .filters = 2, .widths = 3, .longest = 6,
                       .dropout = 0);
}
static tn_elmo_batch sentences(const tn_elmo *m, int n, const char *const *lines)
{
    tn_text t[8];
    for (int i = 0; i < n; i++) t[i] = tn_text_of(lines[i]);
    const tn_elmo_batch b = tn_elmo_sentences(m, n, t);
    fine();
    return b;
}
#define SENTENCES(m, ...) \
    sentences(m, (int)(sizeof((const char *[]){__VA_ARGS__}) / sizeof(char *)), (const char *[]){__VA_ARGS__})

TEST(spelling)
{
    tn_elmo            *m = small();
    const tn_elmo_batch b = SENTENCES(m, "ab  c ab", "", "c extraordinary");
    ck_assert_int_eq(tn_size(b.words, 0), 5); /* begin, end, ab, c, extraordinary */
    const int64_t want[3][5] = {{0, 2, 3, 2, 1}, {0, 1, 1, 1, 1}, {0, 3, 4, 1, 1}}, length[] = {3, 0, 2};
    for (int i = 0; i < 15; i++) ck_assert_int_eq(tn_get_i64(b.rows, i), want[i / 5][i % 5]);
    for (int i = 0; i < 3; i++) ck_assert_int_eq(tn_get_i64(b.lengths, i), length[i]);
    const int64_t ab[8] = {257, 'a' + 1, 'b' + 1, 258, 0, 0, 0, 0}, cut[8] = {257, 102, 121, 117, 115, 98, 112, 258};
    for (int i = 0; i < 8; i++) {
        ck_assert_int_eq(tn_get_i64(b.words, 16 + i), ab[i]);
        ck_assert_int_eq(tn_get_i64(b.words, 32 + i), cut[i]);
    }
    tn_free(m);
}

/* "<unk>" and "<pad>", a vocabulary's special words, are ordinary words if a text contains them: they are encoded by
 * their characters, and do not collide with begin and end. */
TEST(words_in_brackets)
{
    tn_elmo            *m = small();
    tn_tensor          *a[TN_ELMO_LAYERS], *b[TN_ELMO_LAYERS];
    const tn_elmo_batch one = SENTENCES(m, "a b c"), two = SENTENCES(m, "a b c", "<unk> <pad> a"),
                        three = SENTENCES(m, "<pad>", "<pad>x");
    const int64_t unknown[8] = {257, '<' + 1, 'u' + 1, 'n' + 1, 'k' + 1, '>' + 1, 258, 0};
    for (int i = 0; i < 2 * 3; i++)
        ck_assert_int_eq(tn_get_i64(two.words, i / 3 * 8 + i % 3), tn_get_i64(one.words, i / 3 * 8 + i % 3));
    ck_assert_int_ne(tn_get_i64(one.words, 1), tn_get_i64(one.words, 8 + 1));
    const int64_t at = tn_get_i64(two.rows, 5 + 1), other = tn_get_i64(two.rows, 5 + 2);
    ck_assert(at > 1 && other > 1 && at != other && other < tn_size(two.words, 0));
    for (int i = 0; i < 8; i++) ck_assert_int_eq(tn_get_i64(two.words, at * 8 + i), unknown[i]);
    ck_assert_int_eq(tn_get_i64(three.rows, 1), tn_size(three.words, 0) - 2);
    tn_eval(m);
    ck_assert(tn_elmo_vectors(m, &one, a) && tn_elmo_vectors(m, &two, b));
    for (int k = 0; k < TN_ELMO_LAYERS; k++) near(tn_select(a[k], 0, 0), tn_select(b[k], 0, 0), 1e-6);
    tn_free(m);
}

/* Exactly Unicode's white space separates words, as in a vocabulary. */
TEST(white_space)
{
    tn_elmo            *m = small();
    const tn_elmo_batch a = SENTENCES(m, "a bc d"),
                        b = SENTENCES(m, "\xe3\x80\x80"
                                         "a\xc2\xa0 bc\xe2\x80\xa9\t"
                                         "d\xc2\x85"),
                        c = SENTENCES(m, "a\xe2\x80\x8b"
                                         "bc \xff\xa0"
                                         "d");
    ck_assert_int_eq(tn_get_i64(b.lengths, 0), 3);
    ck_assert_int_eq(tn_numel(a.words), tn_numel(b.words));
    for (int64_t i = 0; i < tn_numel(a.words); i++) ck_assert_int_eq(tn_get_i64(a.words, i), tn_get_i64(b.words, i));
    ck_assert_int_eq(tn_get_i64(c.lengths, 0), 2);
    tn_free(m);
}

/* The first layer depends on the word only; in the others the first half depends on the words before, the second half
 * on the words after; nothing depends on other rows. */
TEST(who_sees_what)
{
    tn_elmo            *m = small();
    tn_tensor          *a[TN_ELMO_LAYERS], *b[TN_ELMO_LAYERS];
    const tn_elmo_batch one = SENTENCES(m, "a b c d", "e f"), two = SENTENCES(m, "a b x d", "a longer one this time");
    tn_eval(m);
    ck_assert(tn_elmo_vectors(m, &one, a) && tn_elmo_vectors(m, &two, b));
    ck_assert_int_eq(tn_size(a[0], 1), 4);
    for (int k = 0; k < TN_ELMO_LAYERS; k++)
        for (int64_t t = 0; t < 4; t++)
            for (int side = 0; side < 2; side++) {
                tn_tensor   *x = tn_narrow(tn_narrow(tn_select(a[k], 0, 0), 0, t, 1), 1, 4 * side, 4);
                tn_tensor   *y = tn_narrow(tn_narrow(tn_select(b[k], 0, 0), 0, t, 1), 1, 4 * side, 4);
                const double off = tn_item(tn_amax(tn_abs(tn_sub(x, y))));
                const bool   sees = !k ? t == 2 : side ? t <= 2 : t >= 2;
                ck_assert_msg(sees ? off > 1e-6 : off < 1e-6, "layer %d, word %d, side %d: %g", k, (int)t, side, off);
            }
    tn_free(m);
}

/* The backward direction equals the forward direction over the reversed sentence. */
TEST(both_sides_alike)
{
    tn_elmo            *m = small();
    tn_tensor          *a[TN_ELMO_LAYERS], *b[TN_ELMO_LAYERS];
    const tn_elmo_batch there = SENTENCES(m, "a b c"), back = SENTENCES(m, "c b a");
    tn_eval(m);
    for (int i = 0; i < 2; i++) ck_assert_int_eq(tn_module_assign(m->backward[i], m->forward[i]), TN_OK);
    const tn_scope s = tn_no_grad_begin(); /* begin and end must be equal, too */
    tn_copy_from(tn_select(m->letters->weight, 0, 259), tn_select(m->letters->weight, 0, 260));
    tn_scope_end(s);
    ck_assert(tn_elmo_vectors(m, &there, a) && tn_elmo_vectors(m, &back, b));
    for (int k = 0; k < TN_ELMO_LAYERS; k++)
        near(tn_narrow(a[k], 2, 4, 4), tn_flip(tn_narrow(b[k], 2, 0, 4), TN_DIMS(1)), 1e-6);
    tn_free(m);
}

static tn_elmo_batch looked_at;
static tn_elmo      *checked;
static tn_tensor    *loss_of(tn_tensor *const *in, int n, void *user)
{
    (void)n;
    (void)user;
    const tn_scope s = tn_scope_begin();
    tn_tensor     *own = checked->projection->weight, *bias = checked->forward[0]->weight_hr[0];
    checked->projection->weight = in[0], checked->forward[0]->weight_hr[0] = in[1];
    tn_tensor *loss = tn_elmo_loss(checked, &looked_at, looked_at.rows);
    checked->projection->weight = own, checked->forward[0]->weight_hr[0] = bias;
    return tn_scope_return(s, loss);
}

TEST(gradients)
{
    checked = small();
    looked_at = SENTENCES(checked, "a b c", "d");
    tn_module_to(checked, TN_F64);
    tn_tensor *in[] = {checked->projection->weight, checked->forward[0]->weight_hr[0]};
    ck_assert_msg(tn_gradcheck(loss_of, .count = 2, .inputs = in, .name = "elmo") == TN_OK, "%s", tn_error_message());
    tn_free(checked);
}

TEST(learns_and_is_kept)
{
    tn_seed(1);
    tn_elmo            *m = small();
    const tn_elmo_batch b = SENTENCES(m, "a b c a b c", "b c a b");
    tn_optimizer       *o = tn_adam_new(m, .lr = 0.02);
    double              first = 0, last = 0;
    for (int i = 0; i < 60; i++) {
        const tn_scope s = tn_scope_begin();
        tn_tensor     *loss = tn_elmo_loss(m, &b, b.rows);
        last = tn_item(loss);
        if (!i) first = last;
        tn_backward(loss);
        tn_step(o);
        tn_scope_end(s);
    }
    fine();
    ck_assert_msg(fabs(first - log(9)) < 0.5 && last < 1.4, "from %g to %g", first, last);
    tn_optimizer_free(o);
    const char *dir = tn_test_file("elmo");
    ck_assert_int_eq(mkdir(dir, 0777), 0);
    ck_assert_int_eq(tn_elmo_save(m, dir), TN_OK);
    tn_elmo *n = tn_elmo_load(dir);
    fine();
    tn_eval(m);
    ck_assert(tn_same_bits(tn_elmo_loss(m, &b, b.rows), tn_elmo_loss(n, &b, b.rows)));
    tn_free(m), tn_free(n);
}

TEST(mistakes)
{
    const tn_elmo_config large = tn_elmo_size("large");
    ck_assert(large.dim == 512 && large.hidden == 4096 && large.highways == 2);
    ck_assert_int_eq(tn_elmo_size("base").dim, 0);
    ck_error(TN_EINVAL, "tn_elmo_size: unknown size 'base'; the sizes are tiny, small, medium and large");
    ck_refused(tn_elmo_new(.vocab = 9, .dim = 8, .hidden = 8), TN_EINVAL,
               "tn_elmo_new: .dim is 8, but must be less than .hidden 8, from which it is projected");
    tn_elmo            *m = small(), *other = tn_elmo_new(.vocab = 9, .dim = 4, .hidden = 6);
    const tn_elmo_batch b = SENTENCES(other, "a b");
    ck_refused(tn_elmo_loss(m, &b, b.rows), TN_EINVAL,
               "elmo: the batch was not made by tn_elmo_sentences for this model");
    ck_refused(tn_elmo_sentences(m, 0, NULL).rows, TN_EINVAL, "tn_elmo_sentences: no lines");
    tn_free(m), tn_free(other);
}

/* ---- skip-thought ------------------------------------------------------------------------------------------------ */

/* Stories of two kinds: a sentence vector predicts the neighbours; padding has no effect. */
TEST(thoughts)
{
    tn_seed(3);
    tn_skip_thought *m = tn_skip_thought_new(.vocab = 8, .dim = 6, .hidden = 12);
    const int64_t    now[] = {2, 3, 0, 4, 3, 2}, behind[] = {5, 5, 1, 6, 1, -100}, front[] = {6, 1, -100, 5, 1, -100};
    const int64_t    length[] = {2, 3};
    tn_tensor *ids = tn_from_data(TN_I64, TN_SHAPE(2, 3), now), *after = tn_from_data(TN_I64, TN_SHAPE(2, 3), behind);
    tn_tensor *lengths = tn_from_data(TN_I64, TN_SHAPE(2), length);
    tn_tensor *before = tn_from_data(TN_I64, TN_SHAPE(2, 3), front);
    tn_optimizer *o = tn_adam_new(m, .lr = 0.02);
    double        first = 0, last = 0;
    for (int i = 0; i < 120; i++) {
        const tn_scope s = tn_scope_begin();
        tn_tensor     *loss = tn_skip_thought_loss(m, ids, lengths, before, after);
        last = tn_item(loss);
        if (!i) first = last;
        tn_backward(loss);
        tn_step(o);
        tn_scope_end(s);
    }
    fine();
    ck_assert_msg(fabs(first - log(8)) < 0.3 && last < 0.2, "from %g to %g", first, last);
    tn_tensor *v = tn_skip_thought_encode(m, tn_call(m->words, ids), lengths);
    tn_tensor *alone = tn_skip_thought_encode(m, tn_call(m->words, tn_narrow(tn_narrow(ids, 0, 0, 1), 1, 0, 2)), NULL);
    near(tn_narrow(v, 0, 0, 1), alone, 1e-6);
    const char *dir = tn_test_file("thoughts");
    ck_assert_int_eq(mkdir(dir, 0777), 0);
    ck_assert_int_eq(tn_skip_thought_save(m, dir), TN_OK);
    tn_skip_thought *n = tn_skip_thought_load(dir);
    fine();
    ck_assert(tn_same_bits(v, tn_skip_thought_encode(n, tn_call(n->words, ids), lengths)));
    ck_refused(tn_skip_thought_loss(m, ids, lengths, before, NULL), TN_ESHAPE,
               "skip_thought: the neighbouring sentences must be i64 [2, T], got NULL");
    tn_optimizer_free(o);
    tn_free(m), tn_free(n);
}
