/* test_pages.c — memory and the system: after its first steps a training loop touches no new page. Without the
 * cache of freed memory it only runs. */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include "tenon.h"
#include "tests/common/check_main.h"

#include <limits.h>
#include <sys/resource.h>

static long faults(void)
{
    struct rusage u;
    ck_assert_int_eq(getrusage(RUSAGE_SELF, &u), 0);
    return u.ru_minflt;
}

enum { STEPS = 29, EARLY = 16, SETTLED = 10, WINDOW = 6, DIM = 64, WORDS = 9000 };

/* A layer, a vocabulary's loss in blocks (of 22 MB), AdamW: memory freed by a step is reused by the next. Blocks of a
 * class change owners at first, and a larger use of a block touches the rest of it once; after that no page is new. On
 * a busy machine that takes longer, because tasks change threads: the quietest of a few windows of steps counts. */
TEST(no_faults_after_the_first_steps)
{
    tn_transformer_encoder_layer *m = tn_transformer_encoder_layer_new(.dim = DIM, .heads = 4, .ff = 256);
    const int64_t                 tokens = tn_test_slow() ? 10 : 120;
    tn_linear                    *head = tn_linear_new(.in = DIM, .out = WORDS);
    tn_tensor                    *x = tn_normal(TN_SHAPE(10, tokens, DIM), 0, 1);
    tn_tensor                    *t = tn_randint(TN_SHAPE(10, tokens), 0, WORDS);
    tn_optimizer                 *o = tn_adamw_new(m, .lr = 1e-3);
    long                          before = 0, early = 0, settled = 0, least = LONG_MAX;
    for (int step = 0; step < (tn_test_slow() ? 5 : STEPS); step++) {
        if (step == 3) before = faults();
        if (step == EARLY) early = faults() - before;
        if (step > SETTLED && (step - SETTLED) % WINDOW == 0 && faults() - settled < least) least = faults() - settled;
        if (step >= SETTLED && (step - SETTLED) % WINDOW == 0) settled = faults();
        tn_scope s = tn_scope_begin();
        tn_zero_grads(head);
        tn_tensor *y = tn_transformer_encoder_layer_forward(m, x);
        tn_backward(tn_linear_cross_entropy(y, head->weight, head->bias, t));
        tn_step(o);
        ck_assert_msg(tn_error() == TN_OK, "%s", tn_error_message());
        tn_scope_end(s);
    }
    if (tn_test_slow()) early = faults() - before;
    if (TN_TEST_CACHE) ck_assert_int_le(early, 150);                   /* of some 15,000 of the blocks */
    if (TN_TEST_CACHE && !tn_test_slow()) ck_assert_int_le(least, 20); /* one block is 16 a step, 96 a window */
    tn_optimizer_free(o);
    tn_free(head), tn_free(m);
}
