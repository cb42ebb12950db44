/* long_texts.c — Reformer on long sequences: `long_texts copy [STEPS]` learns the copy task of its paper, 0w0w with w
 * of 511 symbols, and prints the accuracy on the second w; `long_texts memory [T]` prints the memory and time of a
 * training step for 1,024 up to T tokens, compared with GPT's full attention.
 * Build: cc -O2 long_texts.c -o long_texts $(pkg-config --cflags --libs tenon) */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <tenon/extras.h>
#include <time.h>

enum { SYMBOLS = 128, WORD = 511, LENGTH = 2 * WORD + 2, BATCH = 4, HELD = 8 };

static double seconds(void)
{
    struct timespec t;
    timespec_get(&t, TIME_UTC);
    return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

/* Rows 0w0w, and targets: the next symbol at each position, if it belongs to the second w. */
static void rows_of(int64_t n, tn_tensor **ids, tn_tensor **next)
{
    *ids = tn_zeros_of(TN_I64, TN_SHAPE(n, LENGTH)), *next = tn_full_of(TN_I64, TN_SHAPE(n, LENGTH), -100);
    tn_tensor *words = tn_randint(TN_SHAPE(n, WORD), 1, SYMBOLS);
    tn_copy_from(tn_narrow(*ids, 1, 1, WORD), words);
    tn_copy_from(tn_narrow(*ids, 1, WORD + 2, WORD), words);
    tn_copy_from(tn_narrow(*next, 1, WORD + 1, WORD), words);
}

/* The accuracy on the symbols of the second w; with more rounds of hashing than in training, as in the paper, so that
 * hardly any position misses its counterpart. */
static double known(tn_reformer *m)
{
    const tn_scope s = tn_no_grad_begin();
    tn_tensor     *ids, *next;
    rows_of(HELD, &ids, &next);
    const int64_t rounds = m->config.rounds;
    tn_eval(m);
    m->config.rounds = 8;
    tn_tensor   *best = tn_argmax(tn_reformer_forward(m, ids), -1, false);
    const double right =
        tn_item(tn_mean(tn_to(tn_eq(tn_narrow(best, 1, WORD + 1, WORD), tn_narrow(next, 1, WORD + 1, WORD)), TN_F32)));
    m->config.rounds = rounds;
    tn_train(m, true);
    tn_scope_end(s);
    return right;
}

static int copy(int64_t steps)
{
    tn_seed(1);
    /* one layer of hashing; three rows of 511 positions, so that the copies of a symbol are in one column */
    tn_reformer  *m = tn_reformer_new(.vocab = SYMBOLS, .dim = 128, .layers = 1, .heads = 2, .head_dim = 64, .ff = 128,
                                      .kinds = "h", .rounds = 2, .positions = LENGTH, .axial = {3, WORD},
                                      .axial_dim = {16, 112}, .init = 0.1, .dropout = 0);
    tn_optimizer *opt = tn_adamw_new(m, .lr = 3e-3);
    const double  began = seconds();
    double        right = 0;
    for (int64_t step = 1; step <= steps && right < 0.999 && !tn_error(); step++) {
        const tn_scope s = tn_scope_begin();
        tn_tensor     *ids, *next;
        rows_of(BATCH, &ids, &next);
        tn_tensor *loss = tn_reformer_loss(m, ids, next);
        tn_backward(loss);
        tn_step(opt);
        if (step % 50 == 0) {
            right = known(m);
            printf("step %5lld  loss %.4f  copied %.2f %%  %.0f s\n", (long long)step, tn_item(loss), 100 * right,
                   seconds() - began);
            fflush(stdout);
        }
        tn_scope_end(s);
    }
    tn_optimizer_free(opt);
    tn_free(m);
    if (tn_error()) fprintf(stderr, "%s\n", tn_error_message());
    return tn_error() != TN_OK;
}

/* The peak memory of a step in bytes, without the model, and its duration in seconds; of the second step, after a
 * warm-up. */
static size_t step_of(void *m, int64_t length, double *took)
{
    size_t peak = 0;
    for (int i = 0; i < 2; i++) {
        const size_t before = tn_memory_now().live;
        const double began = seconds();
        tn_reset_peak();
        const tn_scope s = tn_scope_begin();
        tn_backward(tn_lm_loss(m, tn_randint(TN_SHAPE(1, length), 0, 256), NULL));
        tn_scope_end(s);
        peak = tn_memory_now().peak - before, *took = seconds() - began;
    }
    return peak;
}

static int memory(int64_t most)
{
    printf("%8s%32s%32s\n%8s%16s%16s%16s%16s\n", "", "Reformer", "GPT", "T", "MiB", "seconds", "MiB", "seconds");
    for (int64_t length = 1024; length <= most && !tn_error(); length *= 2) {
        double       took[2];
        size_t       peak[2];
        tn_reformer *a = tn_reformer_new(.vocab = 256, .positions = length, .axial = {length / 64, 64}, .ff_chunk = 512,
                                         .ff = 1024, .dropout = 0, .local_dropout = 0);
        peak[0] = step_of(a, length, &took[0]);
        tn_free(a);
        tn_gpt *b = tn_gpt_new(.vocab = 256, .positions = length, .dim = 256, .layers = 6, .heads = 4, .ff = 1024,
                               .dropout = 0);
        peak[1] = step_of(b, length, &took[1]);
        tn_free(b);
        printf("%8lld%16.1f%16.2f%16.1f%16.2f\n", (long long)length, (double)peak[0] / 1048576, took[0],
               (double)peak[1] / 1048576, took[1]);
        fflush(stdout);
    }
    if (tn_error()) fprintf(stderr, "%s\n", tn_error_message());
    return tn_error() != TN_OK;
}

int main(int argc, char **argv)
{
    const char   *what = argc > 1 ? argv[1] : "";
    const int64_t n = argc > 2 ? strtoll(argv[2], NULL, 10) : 0;
    if (!strcmp(what, "copy")) return copy(n > 0 ? n : 3000);
    if (!strcmp(what, "memory")) return memory(n > 0 ? n : 8192);
    return fprintf(stderr, "Usage: long_texts copy [STEPS] | long_texts memory [T]\n"), 2;
}
