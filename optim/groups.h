/* groups.h — parameter groups and their options. Part of optim.h: include that. */
#ifndef TENON_OPTIM_GROUPS_H
#define TENON_OPTIM_GROUPS_H

#include "optim.h"

TN_C_BEGIN_

/* Each parameter is in one group, initially in group 0. Each group has its own options. */
typedef enum {
    TN_OPT_LR = 0,
    TN_OPT_BASE_LR, /* the learning rate that schedules scale */
    TN_OPT_WEIGHT_DECAY,
    TN_OPT_MOMENTUM,
    TN_OPT_DAMPENING,
    TN_OPT_BETA1,
    TN_OPT_BETA2,
    TN_OPT_EPS,
    TN_OPT_EPS2,
    TN_OPT_ALPHA,
    TN_OPT_LR_DECAY,
    TN_OPT_BETA2_DECAY,
    TN_OPT_D,
    TN_OPT_MOMENTUM_DECAY,
    TN_OPTS
} tn_opt;
TN_API double    tn_option(const tn_optimizer *o, int group, tn_opt which); /* NaN (raised) if it has no such option */
TN_API tn_status tn_set_option(tn_optimizer *o, int group, tn_opt which, double value); /* group -1: all */
TN_API double    tn_lr(const tn_optimizer *o, int group);
TN_API tn_status tn_set_lr(tn_optimizer *o, int group, double lr); /* lr and base lr; group -1: all */

TN_API int tn_group_count(const tn_optimizer *o);
TN_API int tn_group_of(const tn_optimizer *o, const tn_tensor *t); /* -1: not one of its parameters */

/* Sets options of the parameters that match all of .module, .vectors and .match; other options stay. A group of which
 * only some match is split in two. Returns the group of the first match. Call it before creating schedules. */
typedef bool (*tn_group_match)(const char *name, const tn_tensor *t, void *user);
typedef struct tn_group_config {
    int            zero_;
    tn_optimizer  *optimizer;
    void          *module;  /* match parameters of this module, a part of the optimizer's module; NULL: all */
    bool           vectors; /* match parameters with fewer than 2 dims: biases and the weights of norms */
    tn_group_match match;   /* match parameters for which this returns true; name: full path; NULL: all */
    void          *user;    /* passed to match */
    double lr      TN_IS(-1), weight_decay TN_IS(-1); /* new value; -1: unchanged */
    int            end_;
} TN_KEYWORDS_ONLY tn_group_config;
#define TN_GROUP_DEFAULTS .lr = -1, .weight_decay = -1
TN_API int       tn_group_create(tn_group_config c);
TN_API tn_status tn_no_decay(tn_optimizer *o); /* sets weight decay 0 for parameters with fewer than 2 dims */

TN_C_END_
/* tn_group_new(opt, .module = net->encoder, .lr = 1e-5) */
#define tn_group_new(...) \
    TN_CALL_(tn_group_create(TN_ARGS1_(tn_group_config, TN_GROUP_DEFAULTS, optimizer, __VA_ARGS__, TN_END_)))
#endif
