/* optim_case.c — parameters and gradients for tests of optimizers; see optim_case.h. */
#include "tests/common/optim_case.h"

#include "tests/common/bits.h"
#include <string.h>

static const struct {
    const char *name;
    tn_shape    shape;
} parameters[TN_CASE_PARAMETERS] = {{"w", {.n = 2, .d = {3, 4}}},
                                    {"b", {.n = 1, .d = {4}}},
                                    {"e", {.n = 2, .d = {5, 2}}},
                                    {"c", {.n = 3, .d = {2, 3, 2}}}};

static tn_tensor *values(int64_t seed, int64_t slot, tn_dtype dt, tn_shape s)
{
    tn_tensor    *t = tn_zeros_of(dt, s);
    const int64_t n = tn_numel(t);
    for (int64_t i = 0; i < n; i++)
        tn_set(t, i, -1 + 2 * ((double)((i * 7919 + slot * 104729 + seed * 1299709 + 17) % 10007) / 10007.0));
    return t;
}

tn_sequential *tn_case_new(tn_dtype dt)
{
    tn_sequential *net = tn_sequential_new();
    const tn_scope s = tn_scope_begin();
    for (int i = 0; net && i < TN_CASE_PARAMETERS; i++)
        tn_param(net, parameters[i].name, values(0, i, dt, parameters[i].shape));
    tn_scope_end(s);
    return tn_built(net);
}

tn_status tn_case_backward(tn_sequential *net, int t, int part)
{
    const tn_scope s = tn_scope_begin();
    tn_tensor     *loss = NULL;
    int            slot = 0;
    for (tn_each p = tn_parameters(net); tn_next(&p); slot++) {
        if (!strcmp(p.name, "e") && (t <= 4 || t % 3 == 0)) continue;
        tn_tensor *c = values(t + 100 * part, slot, tn_dtype_of(p.tensor), tn_shape_of(p.tensor));
        tn_tensor *sum = tn_sum(tn_mul(p.tensor, c));
        sum = tn_add(sum, tn_mul_scalar(tn_sum(tn_square(p.tensor)), 0.125));
        loss = loss ? tn_add(loss, sum) : sum;
    }
    tn_backward(loss);
    tn_scope_end(s);
    return tn_error();
}

void tn_case_elements(tn_sequential *net, double to[TN_CASE_ELEMENTS])
{
    int at = 0;
    for (tn_each p = tn_parameters(net); tn_next(&p);)
        for (int64_t i = 0; i < tn_numel(p.tensor); i++) to[at++] = tn_get(p.tensor, i);
}

bool tn_case_same(tn_sequential *a, tn_sequential *b)
{
    tn_each p = tn_parameters(a), q = tn_parameters(b);
    while (tn_next(&p))
        if (!tn_next(&q) || !tn_same_bits(p.tensor, q.tensor)) return false;
    return true;
}

tn_status tn_case_steps(tn_sequential *net, tn_optimizer *o, int from, int to, int parts)
{
    for (int t = from; t <= to; t++)
        for (int part = 0; part < parts; part++) {
            tn_case_backward(net, t, part);
            tn_step(o);
        }
    return tn_error();
}

/* ---- the optimizers of tests/golden/optim.py --------------------------------------------------------------------- */

static tn_optimizer *sgd(tn_sequential *m) { return tn_sgd_new(m, .lr = 0.1); }
static tn_optimizer *sgd_decay(tn_sequential *m) { return tn_sgd_new(m, .lr = 0.1, .weight_decay = 0.1); }
static tn_optimizer *sgd_momentum(tn_sequential *m)
{
    return tn_sgd_new(m, .lr = 0.05, .momentum = 0.9, .dampening = 0.3, .weight_decay = 0.01);
}
static tn_optimizer *sgd_nesterov(tn_sequential *m)
{
    return tn_sgd_new(m, .lr = 0.05, .momentum = 0.8, .nesterov = true);
}
static tn_optimizer *sgd_maximize(tn_sequential *m)
{
    return tn_sgd_new(m, .lr = 0.01, .momentum = 0.5, .maximize = true, .weight_decay = 0.1);
}
static tn_optimizer *adam(tn_sequential *m) { return tn_adam_new(m); }
static tn_optimizer *adam_options(tn_sequential *m)
{
    return tn_adam_new(m, .lr = 0.02, .beta1 = 0.8, .beta2 = 0.95, .eps = 1e-3, .weight_decay = 0.1);
}
static tn_optimizer *adam_amsgrad(tn_sequential *m)
{
    return tn_adam_new(m, .lr = 0.02, .beta1 = 0.8, .beta2 = 0.9, .amsgrad = true);
}
static tn_optimizer *adam_maximize(tn_sequential *m)
{
    return tn_adam_new(m, .lr = 0.02, .maximize = true, .weight_decay = 0.1);
}
static tn_optimizer *adamw(tn_sequential *m) { return tn_adamw_new(m); }
static tn_optimizer *adamw_options(tn_sequential *m)
{
    return tn_adamw_new(m, .lr = 0.02, .beta1 = 0.8, .beta2 = 0.95, .eps = 1e-3, .weight_decay = 0.1);
}
static tn_optimizer *adamw_amsgrad(tn_sequential *m)
{
    return tn_adamw_new(m, .lr = 0.02, .beta1 = 0.8, .beta2 = 0.9, .amsgrad = true);
}
static tn_optimizer *adamw_no_decay(tn_sequential *m)
{
    tn_optimizer *o = tn_adamw_new(m, .lr = 0.02);
    tn_no_decay(o);
    return o;
}
static tn_optimizer *adamw_clip_norm(tn_sequential *m) { return tn_adamw_new(m, .lr = 0.02, .clip.norm = 0.7); }
static tn_optimizer *adamw_clip_value(tn_sequential *m) { return tn_adamw_new(m, .lr = 0.02, .clip = {.value = 0.3}); }
static tn_optimizer *sgd_clip_largest(tn_sequential *m)
{
    return tn_sgd_new(m, .lr = 0.1, .momentum = 0.9, .clip = {.norm = 0.5, .largest = true});
}
static tn_optimizer *sgd_accumulate(tn_sequential *m)
{
    tn_optimizer *o = tn_sgd_new(m, .lr = 0.1, .momentum = 0.9);
    tn_accumulate(o, 2);
    return o;
}
static tn_optimizer *adagrad(tn_sequential *m) { return tn_adagrad_new(m); }
static tn_optimizer *adagrad_options(tn_sequential *m)
{
    return tn_adagrad_new(m, .lr = 0.1, .lr_decay = 0.05, .weight_decay = 0.1, .initial = 0.5, .eps = 1e-3);
}
static tn_optimizer *rmsprop(tn_sequential *m) { return tn_rmsprop_new(m); }
static tn_optimizer *rmsprop_options(tn_sequential *m)
{
    return tn_rmsprop_new(m, .lr = 0.02, .alpha = 0.9, .eps = 1e-3, .weight_decay = 0.1, .momentum = 0.5);
}
static tn_optimizer *rmsprop_centered(tn_sequential *m)
{
    return tn_rmsprop_new(m, .lr = 0.005, .alpha = 0.9, .centered = true, .eps = 1e-3);
}
static tn_optimizer *rmsprop_all(tn_sequential *m)
{
    return tn_rmsprop_new(m, .lr = 0.005, .alpha = 0.9, .centered = true, .eps = 1e-3, .momentum = 0.5);
}
static tn_optimizer *adafactor(tn_sequential *m) { return tn_adafactor_new(m); }
static tn_optimizer *adafactor_options(tn_sequential *m)
{
    return tn_adafactor_new(m, .lr = 0.05, .beta2_decay = -0.5, .eps = 1e-2, .eps2 = 0.1, .d = 2, .weight_decay = 0.1);
}
static tn_optimizer *lamb(tn_sequential *m) { return tn_lamb_new(m); }
static tn_optimizer *lamb_options(tn_sequential *m)
{
    return tn_lamb_new(m, .lr = 0.02, .beta1 = 0.8, .beta2 = 0.95, .eps = 1e-3, .weight_decay = 0.1);
}

static tn_optimizer *nadam(tn_sequential *m) { return tn_nadam_new(m); }
static tn_optimizer *nadam_options(tn_sequential *m)
{
    return tn_nadam_new(m, .lr = 0.02, .beta1 = 0.8, .beta2 = 0.95, .eps = 1e-3, .weight_decay = 0.1,
                        .momentum_decay = 0.02, .decoupled = true);
}
static tn_optimizer *radam(tn_sequential *m) { return tn_radam_new(m); }
static tn_optimizer *radam_options(tn_sequential *m)
{
    return tn_radam_new(m, .lr = 0.02, .beta1 = 0.8, .beta2 = 0.95, .eps = 1e-3, .weight_decay = 0.1);
}
static tn_optimizer *radam_decoupled(tn_sequential *m)
{
    return tn_radam_new(m, .lr = 0.02, .weight_decay = 0.1, .decoupled = true, .maximize = true);
}
static tn_optimizer *lion(tn_sequential *m) { return tn_lion_new(m); }
static tn_optimizer *lion_options(tn_sequential *m)
{
    return tn_lion_new(m, .lr = 0.01, .beta1 = 0.8, .beta2 = 0.95, .weight_decay = 0.1);
}
static tn_optimizer *muon(tn_sequential *m) { return tn_muon_new(m); }
static tn_optimizer *muon_options(tn_sequential *m)
{
    return tn_muon_new(m, .lr = 0.02, .momentum = 0.8, .no_nesterov = true, .match_rms = true, .beta2 = 0.95);
}

#define KIND(name, parts)  \
    {                      \
#name, name, parts \
    }
const tn_case_kind tn_case_kinds[TN_CASE_KINDS] = {
    KIND(sgd, 1),
    KIND(sgd_decay, 1),
    KIND(sgd_momentum, 1),
    KIND(sgd_nesterov, 1),
    KIND(sgd_maximize, 1),
    KIND(adam, 1),
    KIND(adam_options, 1),
    KIND(adam_amsgrad, 1),
    KIND(adam_maximize, 1),
    KIND(adamw, 1),
    KIND(adamw_options, 1),
    KIND(adamw_amsgrad, 1),
    KIND(adamw_no_decay, 1),
    KIND(adamw_clip_norm, 1),
    KIND(adamw_clip_value, 1),
    KIND(sgd_clip_largest, 1),
    KIND(sgd_accumulate, 2),
    KIND(adagrad, 1),
    KIND(adagrad_options, 1),
    KIND(rmsprop, 1),
    KIND(rmsprop_options, 1),
    KIND(rmsprop_centered, 1),
    KIND(rmsprop_all, 1),
    KIND(adafactor, 1),
    KIND(adafactor_options, 1),
    KIND(lamb, 1),
    KIND(lamb_options, 1),
    KIND(nadam, 1),
    KIND(nadam_options, 1),
    KIND(radam, 1),
    KIND(radam_options, 1),
    KIND(radam_decoupled, 1),
    KIND(lion, 1),
    KIND(lion_options, 1),
    KIND(muon, 1),
    KIND(muon_options, 1),
};
