/* fit_case.c — a training run for the tests of tn_fit; see fit_case.h. */
#include "tests/common/fit_case.h"

#include "tests/common/bits.h"
#include <check.h>
#include <string.h>

static bool draw(void *user, tn_batch *b)
{
    (void)user;
    b->x = tn_normal(TN_SHAPE(5, 3), 0, 1), b->y = tn_uniform(TN_SHAPE(5, 2), 0, 1);
    return tn_error() == TN_OK;
}

fit_case fit_case_begin(int kind)
{
    fit_case       c = {.stop_at = -1, .remember_at = -1};
    const tn_scope s = tn_scope_begin();
    tn_generator   own = {.seed = 21}, *before = tn_use_generator(&own);
    c.net = tn_sequential_new();
    tn_append(c.net, tn_linear_new(.in = 3, .out = 8));
    tn_append(c.net, tn_dropout_new(.p = 0.25));
    tn_append(c.net, tn_gelu_new());
    tn_append(c.net, tn_linear_new(.in = 8, .out = 2));
    c.o = tn_adamw_new(c.net, .lr = 0.01, .clip.norm = 1);
    tn_no_decay(c.o);
    c.plateau = tn_plateau_lr_new(c.o, .patience = 1, .factor = 0.5);
    c.lr = tn_chained_lr_new(c.o, .parts = {tn_warmup_lr_new(c.o, .warmup = 4, .steps = 60), c.plateau});
    tn_set_lr(c.o, -1,
              0.01); /* the warm-up starts at 0; parts of the test that do not use the schedule need a positive rate */
    c.ema = tn_ema_new(c.net, .decay = 0.8, .warmup = true);
    tn_tensor *x = tn_normal(TN_SHAPE(21, 3), 0, 1), *y = tn_normal(TN_SHAPE(21, 2), 0, 1);
    c.rows = tn_dataset_new(.x = x, .y = y, .batch = 5, .shuffle = true, .seed = 3);
    c.valid_rows =
        tn_dataset_new(.x = tn_normal(TN_SHAPE(9, 3), 0, 1), .y = tn_normal(TN_SHAPE(9, 2), 0, 1), .batch = 4);
    c.train = kind == 1 ? (tn_source){.next = draw} : tn_dataset_source(c.rows);
    c.valid = tn_dataset_source(c.valid_rows);
    tn_use_generator(before);
    tn_scope_end(s);
    return c;
}

void fit_case_end(fit_case *c)
{
    tn_ema_free(c->ema);
    tn_optimizer_free(c->o);
    tn_dataset_free(c->rows), tn_dataset_free(c->valid_rows);
    tn_free(c->net), tn_free(c->remembered);
}

tn_tensor *fit_case_loss(void *module, const tn_batch *b, void *user)
{
    tn_sequential *net = module;
    fit_case      *c = user;
    if (c && c->stop_in_valid && !net->base.training && c->last.step >= c->stop_at) c->stop = 1;
    return tn_mse_loss(tn_call(net, b->x), b->y);
}

static void tell(fit_case *c, const char *word, const char *end)
{
    const size_t n = strlen(c->story);
    snprintf(c->story + n, sizeof c->story - n, "%s%s", word, end);
}

void fit_case_listen(const tn_fit_event *e, void *user)
{
    static const char *const word[] = {"start", "step", "valid", "saved", "note", "end"};
    fit_case                *c = user;
    c->told[e->what]++;
    c->last = *e;
    if (e->what == TN_FIT_NOTE) snprintf(c->note, sizeof c->note, "%s", e->text);
    snprintf(c->last_text, sizeof c->last_text, "%s", e->text);
    tell(c, word[e->what], e->what == TN_FIT_SAVED ? "|" : e->what == TN_FIT_END ? "" : " ");
    if (e->what == TN_FIT_STEP) c->items += e->items;
    if (e->what == TN_FIT_STEP && e->step == c->stop_at && !c->stop_in_valid) c->stop = 1;
    if (e->what == TN_FIT_VALID && e->improved) c->improved++;
    if (e->what == TN_FIT_STEP && e->step == c->remember_at) {
        if (c->remember_averages) tn_ema_swap(c->ema);
        c->remembered = tn_copy(c->net);
        if (c->remember_averages) tn_ema_swap(c->ema);
    }
    if (c->raise_at == (int)e->what + 1) tn_raise(TN_EINVAL, "the listener had enough");
}

static bool same_weights(fit_case *a, fit_case *b)
{
    for (tn_each p = tn_parameters(a->net), q = tn_parameters(b->net); tn_next(&p) && tn_next(&q);)
        if (!tn_same_bits(p.tensor, q.tensor)) return false;
    return true;
}

double fit_case_backward(fit_case *c)
{
    const tn_scope s = tn_scope_begin();
    tn_batch       b[3] = {{0}};
    double         rows = 0, loss = 0;
    for (int part = 0; part < 3; rows += (double)tn_size(b[part++].x, 0))
        while (!tn_source_next(&c->train, b + part)) continue;
    for (int part = 0; part < 3; part++) {
        const double share = (double)tn_size(b[part].x, 0) / rows;
        tn_tensor   *l = fit_case_loss(c->net, b + part, c);
        loss += share * tn_item(l);
        tn_backward(l, .seed = tn_full_like(l, share));
    }
    tn_scope_end(s);
    return loss;
}

bool fit_case_same_bits(fit_case *a, fit_case *b)
{
    static const char *const state[] = {"exp_avg", "exp_avg_sq"};
    bool                     same = same_weights(a, b);
    for (tn_each p = tn_parameters(a->net), q = tn_parameters(b->net); tn_next(&p) && tn_next(&q);)
        for (int i = 0; i < 2; i++) {
            const tn_tensor *s = tn_optimizer_state(a->o, p.tensor, state[i]),
                            *t = tn_optimizer_state(b->o, q.tensor, state[i]);
            same = same && !s == !t && (!s || tn_same_bits(s, t));
        }
    tn_ema_swap(a->ema), tn_ema_swap(b->ema);
    same = same && same_weights(a, b);
    tn_ema_swap(a->ema), tn_ema_swap(b->ema);
    for (int g = 0; g < tn_group_count(a->o); g++) same = same && tn_lr(a->o, g) == tn_lr(b->o, g);
    return same && tn_steps(a->o) == tn_steps(b->o) && tn_schedule_now(a->lr) == tn_schedule_now(b->lr);
}
