/* lr_functions.c — schedules whose learning rate is a function of the base rate and the step t, as in
 * torch.optim.lr_scheduler. */
#include "optim/schedule_private.h"

static const double PI = 3.14159265358979323846;
#define AT_LEAST_1 "be at least 1"
#define NOT_NEGATIVE "not be negative, nor infinite"
static bool one_or_more(const char *name, const char *what, int64_t v)
{
    return tn__schedule_check(name, what, v >= 1, (double)v, AT_LEAST_1);
}
static bool not_negative(const char *name, const char *what, double v)
{
    return tn__schedule_check(name, what, v >= 0 && v < INFINITY, v, NOT_NEGATIVE);
}
static double least(double a, double b) { return a < b ? a : b; }
static double most(double a, double b) { return a > b ? a : b; }

/* ---- constant, linear, polynomial -------------------------------------------------------------------------------- */

static double constant_lr(const tn_schedule *s, double base, int64_t t, int group)
{
    (void)group;
    return (double)t < s->number[1] ? base * s->number[0] : base;
}
static const tn__schedule_kind constant = {.name = "constant", .number = {"factor", "steps"}, .lr = constant_lr};

tn_schedule *tn_constant_lr_create(tn_constant_lr_config c)
{
    const double  factor = c.factor;
    const int64_t steps = c.steps;
    if (tn__blocked() || !not_negative("constant", "factor", factor) || !one_or_more("constant", "steps", steps))
        return NULL;
    return tn__schedule_make(&constant,
                             (tn_schedule){.owner = c.optimizer, .number = {factor, (double)steps}, .numbers = 2});
}

static double linear_lr(const tn_schedule *s, double base, int64_t t, int group)
{
    const double start = s->number[0], end = s->number[1], steps = s->number[2];
    (void)group;
    if ((double)t >= steps) return base * end; /* start + (end - start) may differ by rounding, even below 0 */
    return base * (start + (end - start) * (double)t / steps);
}
static const tn__schedule_kind linear = {.name = "linear", .number = {"start", "end", "steps"}, .lr = linear_lr};

tn_schedule *tn_linear_lr_create(tn_linear_lr_config c)
{
    const double  start = c.start, end = c.end;
    const int64_t steps = c.steps;
    if (tn__blocked() || !not_negative("linear", "start", start) || !not_negative("linear", "end", end) ||
        !one_or_more("linear", "steps", steps))
        return NULL;
    return tn__schedule_make(&linear,
                             (tn_schedule){.owner = c.optimizer, .number = {start, end, (double)steps}, .numbers = 3});
}

static double polynomial_lr(const tn_schedule *s, double base, int64_t t, int group)
{
    (void)group;
    return base * tn__libm_pow(1 - least((double)t, s->number[0]) / s->number[0], s->number[1]);
}
static const tn__schedule_kind polynomial = {.name = "polynomial", .number = {"steps", "power"}, .lr = polynomial_lr};

tn_schedule *tn_polynomial_lr_create(tn_polynomial_lr_config c)
{
    const double  power = c.power;
    const int64_t steps = c.steps;
    if (tn__blocked() || !one_or_more("polynomial", "steps", steps) || !not_negative("polynomial", "power", power))
        return NULL;
    return tn__schedule_make(&polynomial,
                             (tn_schedule){.owner = c.optimizer, .number = {(double)steps, power}, .numbers = 2});
}

/* ---- powers of gamma --------------------------------------------------------------------------------------------- */

static double step_lr(const tn_schedule *s, double base, int64_t t, int group)
{
    (void)group;
    return base * tn__libm_pow(s->number[1], floor((double)t / s->number[0]));
}
static const tn__schedule_kind step = {.name = "step", .number = {"size", "gamma"}, .lr = step_lr};

tn_schedule *tn_step_lr_create(tn_step_lr_config c)
{
    const double gamma = c.gamma;
    if (tn__blocked() || !one_or_more("step", "size", c.size) || !not_negative("step", "gamma", gamma)) return NULL;
    return tn__schedule_make(&step,
                             (tn_schedule){.owner = c.optimizer, .number = {(double)c.size, gamma}, .numbers = 2});
}

static double multi_step_lr(const tn_schedule *s, double base, int64_t t, int group)
{
    int reached = 0;
    (void)group;
    for (int i = 1; i < s->numbers; i++) reached += s->number[i] <= (double)t;
    return base * tn__libm_pow(s->number[0], reached);
}
static const tn__schedule_kind multi_step = {
    .name = "multi_step", .number = {"gamma", "milestones"}, .lr = multi_step_lr};

tn_schedule *tn_multi_step_lr_create(tn_multi_step_lr_config c)
{
    tn_schedule s = {.owner = c.optimizer, .number = {c.gamma}, .numbers = 1};
    if (tn__blocked() || !not_negative("multi_step", "gamma", s.number[0]) ||
        !one_or_more("multi_step", "milestones", c.milestones[0]))
        return NULL;
    for (int i = 0; i < TN_MILESTONES && c.milestones[i]; i++) {
        if (!one_or_more("multi_step", "milestones", c.milestones[i])) return NULL;
        s.number[s.numbers++] = (double)c.milestones[i];
    }
    return tn__schedule_make(&multi_step, s);
}

static double exponential_lr(const tn_schedule *s, double base, int64_t t, int group)
{
    (void)group;
    return base * tn__libm_pow(s->number[0], (double)t);
}
static const tn__schedule_kind exponential = {.name = "exponential", .number = {"gamma"}, .lr = exponential_lr};

tn_schedule *tn_exponential_lr_create(tn_exponential_lr_config c)
{
    if (tn__blocked() ||
        !tn__schedule_check("exponential", "gamma", c.gamma > 0 && c.gamma < INFINITY, c.gamma, "be positive"))
        return NULL;
    return tn__schedule_make(&exponential, (tn_schedule){.owner = c.optimizer, .number = {c.gamma}, .numbers = 1});
}

/* ---- cosines ----------------------------------------------------------------------------------------------------- */

static double half_cosine(double from, double to, double part) { return to + (from - to) * (1 + cos(PI * part)) / 2; }

static double cosine_lr(const tn_schedule *s, double base, int64_t t, int group)
{
    (void)group;
    return half_cosine(base, s->number[1], fmod((double)t, 2 * s->number[0]) / s->number[0]);
}
static const tn__schedule_kind cosine = {.name = "cosine", .number = {"steps", "min_lr"}, .lr = cosine_lr};

tn_schedule *tn_cosine_lr_create(tn_cosine_lr_config c)
{
    const double low = c.min_lr;
    if (tn__blocked() || !one_or_more("cosine", "steps", c.steps) || !not_negative("cosine", "min_lr", low))
        return NULL;
    return tn__schedule_make(&cosine,
                             (tn_schedule){.owner = c.optimizer, .number = {(double)c.steps, low}, .numbers = 2});
}

static double cosine_restarts_lr(const tn_schedule *s, double base, int64_t t, int group)
{
    const double times = s->number[1];
    double       round = s->number[0], at = (double)t;
    (void)group;
    if (times == 1) at = fmod(at, round);
    while (at >= round) at -= round, round *= times;
    return half_cosine(base, s->number[2], at / round);
}
static const tn__schedule_kind cosine_restarts = {
    .name = "cosine_restarts", .number = {"steps", "times", "min_lr"}, .lr = cosine_restarts_lr};

tn_schedule *tn_cosine_restarts_lr_create(tn_cosine_restarts_lr_config c)
{
    static const char name[] = "cosine_restarts";
    const double      low = c.min_lr;
    const int64_t     times = c.times;
    if (tn__blocked() || !one_or_more(name, "steps", c.steps) || !one_or_more(name, "times", times) ||
        !not_negative(name, "min_lr", low))
        return NULL;
    return tn__schedule_make(
        &cosine_restarts,
        (tn_schedule){.owner = c.optimizer, .number = {(double)c.steps, (double)times, low}, .numbers = 3});
}

/* ---- one cycle --------------------------------------------------------------------------------------------------- */

enum { MAX_LR, STEPS, WARMUP, STRAIGHT, PHASES, LOW, HIGH, DIV, FINAL };

/* Returns the phase of step t and sets *part to the fraction of the phase that is over. Step `steps`, which the usual
 * loop reaches after its last batch, has the final value (PyTorch's OneCycleLR continues, even below 0). */
static int phase_at(const tn_schedule *s, int64_t t, double *part)
{
    const double steps = s->number[STEPS], up = s->number[WARMUP] * steps - 1;
    const double end[3] = {up, s->number[PHASES] == 3 ? 2 * s->number[WARMUP] * steps - 2 : steps - 1, steps - 1};
    const int    last = s->number[PHASES] == 3 ? 2 : 1;
    double       begin = 0;
    int          i = 0;
    for (; i < last && (double)t > end[i]; i++) begin = end[i];
    *part = (double)t < end[i] ? ((double)t - begin) / (end[i] - begin) : 1;
    return i;
}

static double between(const tn_schedule *s, double from, double to, double part)
{
    return s->number[STRAIGHT] != 0 ? (to - from) * part + from : half_cosine(from, to, part);
}

static double one_cycle_lr(const tn_schedule *s, double base, int64_t t, int group)
{
    const double high = s->number[MAX_LR] > 0 ? s->number[MAX_LR] : base, low = high / s->number[DIV];
    double       part;
    const int    phase = phase_at(s, t, &part);
    (void)group;
    if (phase == 0) return between(s, low, high, part);
    if (phase == 1 && s->number[PHASES] == 3) return between(s, high, low, part);
    return between(s, phase == 1 ? high : low, low / s->number[FINAL], part);
}

static bool one_cycle_momentum(const tn_schedule *s, int64_t t, double *to)
{
    const double low = s->number[LOW], high = s->number[HIGH];
    double       part;
    if (high == 0) return false;
    const int phase = phase_at(s, t, &part);
    *to = phase == 0 ? between(s, high, low, part) : phase == 1 ? between(s, low, high, part) : high;
    return true;
}

static bool one_cycle_ready(const tn_schedule *s, int64_t t)
{
    if ((double)t <= s->number[STEPS]) return true;
    return tn_raise_false(TN_ESTATE, "tn_one_cycle_lr_new: the cycle ended after %s steps; step %lld is not possible",
                          tn__format_number(s->number[STEPS]), (long long)t);
}

static const tn__schedule_kind one_cycle = {
    .name = "one_cycle",
    .number = {"max_lr", "steps", "warmup", "straight", "phases", "min_momentum", "max_momentum", "div", "final_div"},
    .lr = one_cycle_lr,
    .momentum = one_cycle_momentum,
    .ready = one_cycle_ready,
};

tn_schedule *tn_one_cycle_lr_create(tn_one_cycle_lr_config c)
{
    static const char name[] = "one_cycle";
    const double      high = c.no_momentum ? 0 : c.max_momentum;
    const double      low = c.no_momentum ? 0 : c.min_momentum;
    const double      warmup = c.warmup, div = c.div, end = c.final_div;
    if (tn__blocked() || !one_or_more(name, "steps", c.steps) || !not_negative(name, "max_lr", c.max_lr) ||
        !tn__schedule_check(name, "warmup", warmup >= 0 && warmup <= 1, warmup, "be from 0 to 1") ||
        !tn__schedule_check(name, "div", div > 0 && div < INFINITY, div, "be positive") ||
        !tn__schedule_check(name, "final_div", end > 0 && end < INFINITY, end, "be positive") ||
        !tn__schedule_check(name, "max_momentum", high >= 0 && high < 1, high, "be at least 0 and less than 1") ||
        !tn__schedule_check(name, "min_momentum", low >= 0 && low < 1, low, "be at least 0 and less than 1"))
        return NULL;
    if (c.three_phase && !tn__schedule_check(name, "warmup", warmup <= 0.5, warmup,
                                             "be at most 0.5 with .three_phase, whose first two phases have equal "
                                             "length"))
        return NULL;
    if (c.optimizer && high > 0 && !tn__has(c.optimizer, TN_OPT_BETA1) && !tn__has(c.optimizer, TN_OPT_MOMENTUM))
        return tn_raise_null(TN_EUNSUPPORTED,
                             "tn_one_cycle_lr_new: %s has no momentum to cycle; set .no_momentum = true",
                             tn_optimizer_name(c.optimizer));
    return tn__schedule_make(&one_cycle, (tn_schedule){.owner = c.optimizer,
                                                       .number = {c.max_lr, (double)c.steps, warmup, c.straight,
                                                                  c.three_phase ? 3 : 2, low, high, div, end},
                                                       .numbers = 9});
}

/* ---- warmup schedules of Transformers ---------------------------------------------------------------------------- */

static double warmup_lr(const tn_schedule *s, double base, int64_t t, int group)
{
    const double up = s->number[0], steps = s->number[1], now = (double)t;
    (void)group;
    if (now < up) return base * now / most(1, up);
    const double left = most(0, steps - now) / most(1, steps - up);
    switch ((int)s->number[2]) {
    case TN_DECAY_LINEAR: return base * left;
    case TN_DECAY_COSINE: return half_cosine(base, 0, 1 - left);
    default: return base;
    }
}
static const tn__schedule_kind warmup = {.name = "warmup", .number = {"warmup", "steps", "decay"}, .lr = warmup_lr};

tn_schedule *tn_warmup_lr_create(tn_warmup_lr_config c)
{
    const double up = (double)c.warmup;
    if (tn__blocked() || !not_negative("warmup", "warmup", up)) return NULL;
    if (!tn__schedule_check("warmup", "decay", (int)c.decay >= 0 && c.decay <= TN_DECAY_NONE, (double)c.decay,
                            "be one of TN_DECAY_..."))
        return NULL;
    if (c.decay != TN_DECAY_NONE &&
        !(one_or_more("warmup", "steps", c.steps) &&
          tn__schedule_check("warmup", "steps", (double)c.steps >= up, (double)c.steps, "be at least .warmup")))
        return NULL;
    return tn__schedule_make(
        &warmup, (tn_schedule){.owner = c.optimizer, .number = {up, (double)c.steps, (double)c.decay}, .numbers = 3});
}

static double noam_lr(const tn_schedule *s, double base, int64_t t, int group)
{
    const double dim = s->number[0], up = s->number[1], now = most(1, (double)t);
    (void)group;
    return base * s->number[2] * tn__libm_pow(dim, -0.5) * least(tn__libm_pow(now, -0.5), now * tn__libm_pow(up, -1.5));
}
static const tn__schedule_kind noam = {.name = "noam", .number = {"dim", "warmup", "factor"}, .lr = noam_lr};

tn_schedule *tn_noam_lr_create(tn_noam_lr_config c)
{
    const int64_t up = c.warmup;
    const double  factor = c.factor;
    if (tn__blocked() || !one_or_more("noam", "dim", c.dim) || !one_or_more("noam", "warmup", up) ||
        !not_negative("noam", "factor", factor))
        return NULL;
    return tn__schedule_make(
        &noam, (tn_schedule){.owner = c.optimizer, .number = {(double)c.dim, (double)up, factor}, .numbers = 3});
}

static double inverse_sqrt_lr(const tn_schedule *s, double base, int64_t t, int group)
{
    const double up = s->number[0], now = (double)t;
    (void)group;
    return now < up ? base * now / up : base * sqrt(up / now);
}
static const tn__schedule_kind inverse_sqrt = {.name = "inverse_sqrt", .number = {"warmup"}, .lr = inverse_sqrt_lr};

tn_schedule *tn_inverse_sqrt_lr_create(tn_inverse_sqrt_lr_config c)
{
    const int64_t up = c.warmup;
    if (tn__blocked() || !one_or_more("inverse_sqrt", "warmup", up)) return NULL;
    return tn__schedule_make(&inverse_sqrt, (tn_schedule){.owner = c.optimizer, .number = {(double)up}, .numbers = 1});
}

/* ---- a function of the user -------------------------------------------------------------------------------------- */

static double lambda_lr(const tn_schedule *s, double base, int64_t t, int group)
{
    return base * s->factor(t, group, s->user);
}
static const tn__schedule_kind lambda = {.name = "lambda", .lr = lambda_lr};

tn_schedule *tn_lambda_lr_create(tn_lambda_lr_config c)
{
    if (tn__blocked()) return NULL;
    if (!c.factor) return tn_raise_null(TN_EINVAL, "tn_lambda_lr_new: .factor is NULL");
    return tn__schedule_make(&lambda, (tn_schedule){.owner = c.optimizer, .factor = c.factor, .user = c.user});
}
