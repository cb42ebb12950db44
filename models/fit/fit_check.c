/* fit_check.c — the beginning of tn_fit: checks its arguments, and creates its default optimizer. */
#include "models/fit/fit_private.h"

static bool invalid(const char *text) { return tn_raise_false(TN_EINVAL, "tn_fit: %s", text); }

static bool check_numbers(const tn_fit_args *c)
{
    const struct {
        const char *name;
        int64_t     value, least;
    } n[] = {{"steps", c->steps, 0},    {"epochs", c->epochs, 0},        {"accumulate", c->accumulate, 1},
             {"warmup", c->warmup, -1}, {"patience", c->patience, 0},    {"valid_every", c->valid_every, 0},
             {"keep", c->keep, 1},      {"save_every", c->save_every, 0}};
    for (size_t i = 0; i < sizeof n / sizeof *n; i++)
        if (n[i].value < n[i].least)
            return tn_raise_false(TN_EINVAL, "tn_fit: .%s is %lld, but must be at least %lld", n[i].name,
                                  (long long)n[i].value, (long long)n[i].least);
    if (c->accumulate > 1 << 20) return invalid(".accumulate is more than 1048576 batches; use larger batches instead");
    if (!(c->min_delta >= 0 && c->min_delta < INFINITY)) return invalid(".min_delta must be finite and at least 0");
    if (isnan(c->enough)) return invalid(".enough is NaN, but must be a number");
    return true;
}

static bool check_ranks(const tn_fit_args *c)
{
    const tn_fit_args d = {TN_FIT_ARGS_DEFAULTS};
    if (!c->world && (c->shards != d.shards || c->zero)) return invalid(".shards and .zero need a .world");
    if (c->world && c->memory) return invalid(".memory does not support .world");
    if (c->world && c->accumulate != 1)
        return invalid(".accumulate does not support .world; use larger batches and multiply .shards instead");
    return true;
}

static bool check_sources(const tn_fit_args *c)
{
    if (!c->train.next)
        return invalid(".train has no .next and so gives no batches; tn_dataset_source makes a source from tensors");
    if (c->valid.next == c->train.next && c->valid.user == c->train.user && c->valid.user)
        return invalid(".valid and .train are the same source, and each validation would restart it; pass a separate "
                       "source as .valid");
    if (c->train.batches < 0 && !c->steps) return invalid(".train has no epochs; set .steps");
    if (c->valid.batches < 0) return invalid(".valid never ends; it must have epochs");
    return c->valid.next || !c->measure || invalid(".measure needs .valid, the source of its batches");
}

/* Raises for options that have no effect without another one. */
static bool check_options(const tn_fit_args *c)
{
    const tn_fit_args d = {TN_FIT_ARGS_DEFAULTS};
    const bool        mine = c->lr != d.lr || c->weight_decay != d.weight_decay || c->clip != d.clip ||
                      c->warmup != d.warmup || c->decay != d.decay;
    if (c->optimizer && mine)
        return invalid(
            ".lr, .weight_decay, .clip, .warmup and .decay have no effect with an .optimizer; set them in the "
            "optimizer and its schedule");
    if (c->optimizer && c->make) return invalid(".optimizer and .make exclude each other; give only one of them");
    if (!c->optimizer && (c->schedule || c->plateau)) return invalid(".schedule and .plateau need an .optimizer");
    if (!tn__fit_validates(c)) {
        if (c->plateau) return invalid(".plateau needs .valid or .score, the source of its values");
        if (c->patience || c->restore_best || c->valid_every || c->rising || c->min_delta != 0 || c->enough != 0)
            return invalid(
                ".patience, .enough, .restore_best, .valid_every, .rising and .min_delta need .valid or .score");
    }
    if (!c->folder && (c->resume || c->save_every || c->keep != d.keep || c->config))
        return invalid(".resume, .save_every, .keep and .config need a .folder");
    return true;
}

/* The optimizer and the .ema may have only some of the module's parameters, but must have at least one. */
static bool check_optimizer(const tn_fit_args *c)
{
    bool steps = !c->optimizer, averages = !c->ema;
    for (tn_each p = tn_module_each(c->module, TN_EACH_PARAMETER); tn_next(&p) && !(steps && averages);) {
        steps = steps || tn_group_of(c->optimizer, p.tensor) >= 0;
        averages = averages || tn_ema_has(c->ema, p.tensor);
    }
    if (c->ema && tn_ema_swapped(c->ema))
        return invalid("the averages of .ema are swapped in; call tn_ema_swap before training");
    if (!steps) return invalid(".optimizer has none of the module's parameters; create it for this module");
    return averages || invalid(".ema has none of the module's parameters; create it for this module");
}

static bool check_schedules(const tn_fit_args *c)
{
    if (c->schedule && tn_schedule_optimizer(c->schedule) != c->optimizer)
        return invalid(".schedule belongs to another optimizer; create it for .optimizer");
    if (c->plateau && tn_schedule_optimizer(c->plateau) != c->optimizer)
        return invalid(".plateau belongs to another optimizer; create it for .optimizer");
    if (tn_schedule_by_values(c->schedule))
        return invalid(".schedule is a plateau schedule, which needs values; pass it as .plateau");
    return !c->plateau || tn_schedule_by_values(c->plateau) ||
           invalid(".plateau is a schedule by steps, not by values; pass it as .schedule");
}

void tn__fit_no_steps(const tn__fit *f)
{
    tn_raise(TN_EINVAL,
             "tn_fit: .accumulate is %lld batches per step, but .epochs = %lld has fewer batches, which makes no "
             "step; decrease .accumulate or increase .epochs",
             (long long)f->c.accumulate, (long long)f->c.epochs);
}

void tn__fit_init(tn__fit *f)
{
    f->folder.lock = -1, f->valid_at = -1, f->unscheduled = -1, f->unsaved = true, f->start = tn__seconds();
    f->r.loss = f->r.value = f->r.best = f->lr = f->measured = f->mean = NAN;
    if (tn__blocked()) return;
    f->scope = tn_scope_begin(), f->generator = tn_current_generator(), f->open = true;
}

static void count_steps(tn__fit *f)
{
    const tn_fit_args *c = &f->c;
    f->steps = c->steps;
    if (c->epochs && c->train.batches > 0 && c->train.batches <= INT64_MAX / c->epochs) {
        const int64_t n = c->epochs * c->train.batches / c->accumulate;
        if (!n) tn__fit_no_steps(f);
        if (!f->steps || n < f->steps) f->steps = n;
    }
}

bool tn__fit_check(tn__fit *f)
{
    tn_fit_args *c = &f->c;
    if (!c->module) return invalid("the module is NULL: its constructor failed and the error was cleared");
    if (!c->loss) return invalid(".loss is NULL, but must be the function that computes the loss of a batch");
    if (!tn_grad_enabled()) return invalid("called in a scope of tn_no_grad_begin(), where no gradients are recorded");
    if (!c->steps && !c->epochs) return invalid(".steps and .epochs are both 0; set one of them");
    if (!check_sources(c) || !check_numbers(c) || !check_options(c) || !check_ranks(c) || !check_optimizer(c) ||
        !check_schedules(c))
        return false;
    if (c->config) {
        tn_path_push("tn_fit: .config");
        tn_json *v = tn_json_parse(c->config, strlen(c->config));
        tn_path_pop();
        tn_json_free(v);
    }
    count_steps(f);
    return tn_error() == TN_OK;
}

tn_optimizer *tn_fit_adamw(const tn_fit_args *a)
{
    if (!tn__not_null("tn_fit_adamw", "a", a)) return NULL;
    return tn_adamw_new((tn_module *)a->module, .lr = a->lr, .weight_decay = a->weight_decay, .clip.norm = a->clip);
}

tn_optimizer *tn_fit_muon(const tn_fit_args *a)
{
    if (!tn__not_null("tn_fit_muon", "a", a)) return NULL;
    return tn_muon_new((tn_module *)a->module, .lr = a->lr, .weight_decay = a->weight_decay, .clip.norm = a->clip,
                       .match_rms = true, .bf16 = a->autocast);
}

static bool create_schedule(tn__fit *f)
{
    const tn_fit_args *c = &f->c;
    const int64_t      warmup = c->warmup == -1 ? f->steps / 20 : c->warmup;
    /* also without a known number of steps: its state is then in checkpoints, and a call that knows it can resume */
    f->schedule = tn_warmup_lr_create((tn_warmup_lr_config){
        .optimizer = f->own, .warmup = warmup, .steps = f->steps, .decay = f->steps ? c->decay : TN_DECAY_NONE});
    tn_schedule_follow(f->schedule);
    return tn_error() == TN_OK;
}

bool tn__fit_optimizer(tn__fit *f)
{
    tn_fit_args *c = &f->c;
    if (c->optimizer) {
        const int64_t before = tn_optimizer_parts(c->optimizer);
        if (tn_accumulate(c->optimizer, 1) != TN_OK) return false; /* tn_fit itself accumulates */
        f->accumulate_before = before;
        if (c->schedule) tn_schedule_follow(c->schedule);
        return tn_error() == TN_OK;
    }
    tn_fit_args a = *c;
    if (c->world) a.clip = 0; /* the replica clips */
    f->own = (c->make ? c->make : tn_fit_adamw)(&a);
    if (!f->own && tn_error() == TN_OK) return invalid(".make returned NULL, but raised no error");
    tn_no_decay(f->own);
    c->optimizer = f->own;
    return create_schedule(f);
}
