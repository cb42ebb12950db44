/* need.c — the memory of a forward, measured with some of its rows. Kernels divide rows into blocks, and attention has
 * no matrix of all pairs of tokens, so that no formula of the layers was near; but rows are alike, and what does not
 * depend on their number is counted once for each part, which makes the result too high rather than too low. */
#include "autograd/autograd.h"
#include "core/base/toolbox.h"

enum {
    TOKENS = 512, /* of the rows that are run: with fewer, the fixed part weighs too much */
    KEPT = 4096   /* bytes of lists that the library keeps for the next call */
};

static size_t peak_of(tn_tensor *(*forward)(int64_t rows, void *user), void *user, int64_t rows)
{
    const tn_scope s = tn_no_grad_begin();
    const size_t   before = tn_memory_now().live;
    tn_reset_peak();
    forward(rows, user);
    const size_t peak = tn_memory_now().peak;
    tn_scope_end(s);
    return peak > before ? peak - before : 0;
}

size_t tn_forward_need(tn_tensor *(*forward)(int64_t rows, void *user), void *user, int64_t rows, int64_t tokens)
{
    if (tn__blocked()) return 0;
    if (!forward || rows < 1 || tokens < 1) {
        tn_raise(TN_EINVAL, "tn_forward_need: %s, %lld rows of %lld tokens; expected a function and at least 1 of each",
                 forward ? "a function" : "no function", (long long)rows, (long long)tokens);
        return 0;
    }
    const int64_t enough = tokens < TOKENS ? (TOKENS + tokens - 1) / tokens : 1, some = enough < rows ? enough : rows;
    peak_of(forward, user, some); /* makes what the model keeps, which is not needed again */
    const size_t part = tn_error() == TN_OK ? peak_of(forward, user, some) : 0;
    const double all = (double)part * (double)rows / (double)some + KEPT;
    if (tn_error() != TN_OK) return 0;
    return all < (double)SIZE_MAX ? (size_t)all : SIZE_MAX;
}
