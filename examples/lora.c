/* lora.c — low-rank adapters (LoRA, Hu et al. 2021): a GPT has learned to count by threes; adapters on its feed-forward
 * layers teach it to count by fives, and are then merged into its weights. nn/lora.h explains the calls.
 * Build: cc -O2 lora.c -o lora $(pkg-config --cflags --libs tenon) */
#include <stdio.h>
#include <tenon/tenon.h>

enum { WORDS = 20, LENGTH = 12 };

/* i64 [WORDS, LENGTH]: row i counts from i, modulo WORDS. */
static tn_tensor *counts(int by)
{
    tn_tensor *start = tn_view(tn_arange(WORDS), TN_SHAPE(WORDS, 1)), *steps = tn_mul_scalar(tn_arange(LENGTH), by);
    return tn_remainder(tn_add(start, steps), tn_full_of(TN_I64, TN_SHAPE(1), WORDS));
}

static void train(tn_gpt *gpt, int by)
{
    tn_optimizer *opt = tn_adamw_new(gpt, .lr = 5e-3); /* of the parameters that are not frozen */
    for (int i = 1; i <= 300 && !tn_error(); i++) {
        const tn_scope s = tn_scope_begin();
        tn_tensor     *loss = tn_gpt_loss(gpt, counts(by), NULL);
        tn_backward(loss), tn_step(opt);
        if (i % 100 == 0) printf("step %3d  loss %.3f\n", i, tn_item(loss));
        tn_scope_end(s);
    }
    tn_optimizer_free(opt);
}

static void count_on(const char *what, tn_gpt *gpt)
{
    tn_decoding *d = tn_gpt_decoding(gpt, 1, LENGTH);
    tn_generated g = tn_generate(d, tn_full_of(TN_I64, TN_SHAPE(1, 1), 7), .most = 6);
    printf("%s: 7", what);
    for (int i = 0; i < 6 && !tn_error(); i++) printf(" %d", (int)tn_get_i64(g.tokens, i));
    printf("\n");
    tn_decoding_free(d);
}

int main(void)
{
    tn_seed(1);
    tn_gpt *gpt = tn_gpt_new(.vocab = WORDS, .dim = 32, .layers = 2, .heads = 4, .positions = LENGTH, .dropout = 0);
    train(gpt, 3);
    count_on("by threes", gpt);

    tn_lora(gpt, .rank = 4, .names = "mlp"); /* mlp.c_fc and mlp.c_proj in GPT-2's files */
    count_on("with new adapters", gpt);
    printf("adapters: %lld parameters, the GPT has %lld\n", (long long)tn_count_trainable(gpt),
           (long long)(tn_count(gpt) - tn_count_trainable(gpt)));
    train(gpt, 5);
    count_on("with trained adapters", gpt);
    tn_lora_merge(gpt);
    count_on("merged", gpt);

    if (tn_error()) fprintf(stderr, "%s\n", tn_error_message());
    tn_free(gpt);
    return tn_error() != TN_OK;
}
