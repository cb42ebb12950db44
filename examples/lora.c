/* lora.c — low-rank adapters (LoRA, Hu et al. 2021) on chosen matrices of any model: W + scale · B A, with W frozen. A
 * GPT has learned to count by threes; adapters on its feed-forward layers teach it to count by fives, and are then
 * merged into its weights. tn_tuned_adapt does this for the encoders of heads.h. */
#include <stdio.h>
#include <string.h>
#include <tenon/tenon.h>

/* ---- adapters ---------------------------------------------------------------------------------------------------- */

typedef struct {
    tn_tensor **at;        /* where the layer has its weight */
    tn_tensor  *w, *a, *b; /* W [out, in], A [rank, in], B [out, rank] */
} adapter;

enum { MOST = 64 };
typedef struct {
    tn_module base;
    adapter   on[MOST];
    int       count;
    double    scale;
} adapters;
static const tn_class adapters_class = {sizeof(tn_class), .name = "Adapters", .bytes = sizeof(adapters)};

/* Adapters on the linear layers below `model` whose path contains `part`. B starts at 0, so nothing changes yet. */
static adapters *adapters_new(tn_gpt *model, const char *part, int64_t rank, double alpha)
{
    adapters *m = tn_module_new(adapters);
    if (!m) return NULL;
    m->scale = alpha / (double)rank;
    for (tn_each e = tn_modules(model); !tn_error() && tn_next(&e) && m->count < MOST;) {
        if (!strstr(e.name, part) || strcmp(e.module->kind->name, "Linear") != 0) continue;
        adapter      *p = &m->on[m->count];
        tn_linear    *layer = (tn_linear *)e.module;
        const int64_t out = tn_size(layer->weight, 0), in = tn_size(layer->weight, 1);
        p->at = &layer->weight, p->w = layer->weight;
        p->a = tn_param(m, tn_name("%d.lora_A", m->count), tn_normal(TN_SHAPE(rank, in), 0, 0.1));
        p->b = tn_param(m, tn_name("%d.lora_B", m->count), tn_zeros(TN_SHAPE(out, rank)));
        m->count++;
    }
    return tn_built(m);
}

static tn_tensor *sum(const adapters *m, const adapter *p)
{
    return tn_add(p->w, tn_mul_scalar(tn_matmul(p->b, p->a), m->scale));
}

/* Between apply and restore, the layers use the sums; the tape computes the gradients of A and B. */
static void apply(adapters *m)
{
    for (int i = 0; i < m->count && !tn_error(); i++) *m->on[i].at = sum(m, &m->on[i]);
}
static void restore(adapters *m)
{
    for (int i = 0; i < m->count; i++) *m->on[i].at = m->on[i].w;
}

static void merge(adapters *m)
{
    const tn_scope s = tn_no_grad_begin();
    for (int i = 0; i < m->count && !tn_error(); i++)
        tn_add_(m->on[i].w, tn_mul_scalar(tn_matmul(m->on[i].b, m->on[i].a), m->scale));
    tn_scope_end(s);
}

/* ---- training and use -------------------------------------------------------------------------------------------- */

enum { WORDS = 20, LENGTH = 12 };

/* i64 [WORDS, LENGTH]: row i counts from i, modulo WORDS. */
static tn_tensor *counts(int by)
{
    tn_tensor *start = tn_view(tn_arange(WORDS), TN_SHAPE(WORDS, 1)), *steps = tn_mul_scalar(tn_arange(LENGTH), by);
    return tn_remainder(tn_add(start, steps), tn_full_of(TN_I64, TN_SHAPE(1), WORDS));
}

/* Trains the parameters of `learner`: the GPT, or adapters on it. */
static void train(tn_gpt *gpt, tn_module *learner, adapters *on, int by)
{
    tn_optimizer *opt = tn_adamw_new(learner, .lr = 5e-3);
    for (int i = 1; i <= 300 && !tn_error(); i++) {
        const tn_scope s = tn_scope_begin();
        if (on) apply(on);
        tn_tensor *loss = tn_gpt_loss(gpt, counts(by), NULL);
        tn_backward(loss), tn_step(opt);
        if (i % 100 == 0) printf("step %3d  loss %.3f\n", i, tn_item(loss));
        if (on) restore(on);
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
    train(gpt, (tn_module *)gpt, NULL, 3);
    count_on("by threes", gpt);

    tn_freeze(gpt, true);
    adapters *lora = adapters_new(gpt, ".linear", 4, 8);
    printf("adapters on %d matrices: %lld parameters, the GPT has %lld\n", lora ? lora->count : 0,
           (long long)tn_count_trainable(lora), (long long)tn_count(gpt));
    train(gpt, (tn_module *)lora, lora, 5);
    count_on("without the adapters", gpt);
    merge(lora);
    count_on("merged", gpt);

    if (tn_error()) fprintf(stderr, "%s\n", tn_error_message());
    tn_free(lora), tn_free(gpt);
    return tn_error() != TN_OK;
}
