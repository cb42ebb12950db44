/* answers.h — comparison with numbers that a reference implementation computed: tests/golden/NAME/answers.safetensors.
 * AROUND_TESTS(open_answers, close_answers) opens them, with an open_answers that calls tn_answers_open. */
#ifndef TENON_TESTS_COMMON_ANSWERS_H
#define TENON_TESTS_COMMON_ANSWERS_H

#include "autograd/autograd.h"
#include "core/files.h"
#include "nn/nn.h"
#include "tests/common/bits.h"
#include "tests/common/check_main.h"
#include "tests/common/errors.h"

static tn_safetensors *answers;

static inline void tn_answers_open(const char *path)
{
    answers = tn_safetensors_open(tn_test_data(path));
    fine();
}
static inline void close_answers(void) { tn_safetensors_close(answers); }

static inline tn_tensor *answer(const char *name)
{
    tn_tensor *t = tn_safetensors_get(answers, name);
    fine();
    return t;
}

/* The largest difference of two tensors of one shape. */
static inline double furthest(tn_tensor *a, tn_tensor *b)
{
    ck_assert(a && b && tn_shape_equal(tn_shape_of(a), tn_shape_of(b)));
    return tn_item(tn_amax(tn_reshape(tn_abs(tn_sub(a, b)), TN_SHAPE(-1)), .dims = TN_DIMS(0)));
}
/* Asserts that the gradients of m's parameters are those of `want`, whose parameters hold them. */
static inline void same_gradients(tn_module *m, tn_module *want)
{
    tn_each a = tn_parameters(m), b = tn_parameters(want);
    while (tn_next(&a) && tn_next(&b)) {
        const double most = tn_item(tn_amax(tn_abs(tn_reshape(b.tensor, TN_SHAPE(-1))))),
                     off = furthest(tn_grad(a.tensor), b.tensor);
        ck_assert_msg(off <= 1e-5 * most, "%s: the gradient differs by %g of %g", a.name, off, most);
    }
}

/* Asserts that the model in the folder `written` has each tensor of the test data `golden`, except one; NULL: none. */
static inline void same_weights(const char *written, const char *golden, const char *except)
{
    tn_safetensors *now = tn_safetensors_open(tn_test_in(written, "model.safetensors")),
                   *was = tn_safetensors_open(tn_test_data(golden));
    fine();
    if (!except) ck_assert_int_eq(tn_safetensors_count(now), tn_safetensors_count(was));
    for (int64_t i = 0; i < tn_safetensors_count(was); i++) {
        const char *name = tn_safetensors_at(was, i).name;
        if (except && !strcmp(name, except)) continue;
        ck_assert_msg(tn_safetensors_find(now, name) >= 0, "%s is missing", name);
        ck_assert_msg(tn_same_bits(tn_safetensors_get(now, name), tn_safetensors_get(was, name)), "%s", name);
    }
    tn_safetensors_close(now), tn_safetensors_close(was);
}

#endif
