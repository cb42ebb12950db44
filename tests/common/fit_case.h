/* fit_case.h — a training run that uses all features of tn_fit, for its tests. */
#ifndef TENON_TESTS_COMMON_FIT_CASE_H
#define TENON_TESTS_COMMON_FIT_CASE_H

#include "models/models.h"

/* Two layers with dropout between them; 21 rows in batches of 5 or, for kind 1, an endless source that uses the
 * generator. Do not move a fit_case after it was passed to tn_fit. */
typedef struct {
    tn_sequential        *net, *remembered;
    tn_optimizer         *o;
    tn_schedule          *lr, *plateau;
    tn_ema               *ema;
    tn_dataset           *rows, *valid_rows;
    tn_source             train, valid;
    volatile sig_atomic_t stop;
    int64_t               stop_at;       /* step at which the listener sets stop */
    bool                  stop_in_valid; /* set stop in the next validation after stop_at instead */
    int64_t               remember_at;   /* step whose weights are copied to `remembered` */
    bool                  remember_averages;
    int                   raise_at; /* the listener raises at event raise_at - 1 */
    bool                  rising;
    int64_t               told[TN_FIT_END + 1], improved, items;
    tn_fit_event          last;
    char                  last_text[200], note[1200], story[4000];
} fit_case;
fit_case   fit_case_begin(int kind);
void       fit_case_end(fit_case *c);
tn_tensor *fit_case_loss(void *module, const tn_batch *b, void *user);
void       fit_case_listen(const tn_fit_event *e, void *user);
double fit_case_backward(fit_case *c); /* the gradients of a step in three parts, without tn_fit; returns the loss */
bool   fit_case_same_bits(fit_case *a, fit_case *b); /* weights, averages, optimizer, schedule, counts */

#endif
