/* answers.h — comparison with numbers that a reference implementation computed: tests/golden/NAME/answers.safetensors.
 * For a test case: tcase_add_unchecked_fixture(c, open_answers, close_answers), with an open_answers that calls
 * tn_answers_open. */
#ifndef TENON_TESTS_COMMON_ANSWERS_H
#define TENON_TESTS_COMMON_ANSWERS_H

#include "autograd/autograd.h"
#include "core/files.h"
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

#endif
