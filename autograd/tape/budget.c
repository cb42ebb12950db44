/* budget.c — a memory budget: chooses which segments of a pass keep their activations for the backward, and which are
 * computed again.
 *
 * The first pass with a new size of batch runs all n segments as checkpoints and measures
 *
 *   kept[i]   the bytes that the second run of segment i puts on the tape
 *   peak[i]   the maximum memory, above that at the start of the pass, from the second run of segment i to that of
 *             segment i - 1; peak[n]: until the first second run; peak[0]: to the end
 *
 * If only the first k segments are recomputed, segments k to n - 1 hold their tape from the forward until their turn in
 * the backward, and the pass needs
 *
 *   need(k) = max over i of  peak[i] + Σ kept[j] for k ≤ j < i
 *
 * choose() takes the smallest k that fits. The first segments are recomputed because their turn comes last, when the
 * others have freed their tape. The memory limit of the process is the budget, so that a wrong estimate cannot exceed
 * it: the pass then fails, changes nothing, and runs again with more segments recomputed. If it fails although all are,
 * it runs once more without the budget, so that the error can state the bytes that it needs. */
#include "autograd/tape/budget.h"

#include <math.h>

enum { SIZES = 8 };

typedef struct {
    size_t kept, peak;
} part;

/* The measurements with one size of batch: that of the first input of the first segment. */
typedef struct {
    int64_t elements, length; /* of that input: number of elements, second last dim */
    int64_t count, least;     /* segments; minimum to recompute */
    part   *part;             /* [room], of which count + 1 are used */
    int64_t room;
    bool    measured;
} size_plan;

struct tn_budget {
    size_t        bytes, limit;             /* the budget; the memory limit before it, 0: none */
    bool          open, probing;            /* probing: the pass is measured without the budget, and then fails */
    size_t        later, start, live, peak; /* of the pass: the bytes to come, live at its start, live before a second
                                               run, the process's peak before the pass */
    tn_generator *generator, before;
    int64_t       at, recomputed; /* segments begun; the first `recomputed` are checkpoints */
    tn_shape      shape;          /* of the first segment's first input */
    size_plan    *plan;           /* NULL: no segment has begun */
    double        scale, need;
    size_plan     list[SIZES];
    int           next; /* the place of the next size */
};

static size_t larger(size_t a, size_t b) { return a > b ? a : b; }

/* ---- planning ---------------------------------------------------------------------------------------------------- */

/* need(k), above the start of the pass. */
static double need_of(const size_plan *p, int64_t k)
{
    size_t kept = 0, most = 0;
    for (int64_t i = 0; i <= p->count; i++) {
        most = larger(most, p->part[i].peak + kept);
        if (i >= k && i < p->count) kept += p->part[i].kept;
    }
    return (double)most;
}

static int64_t choose(const tn_budget *b, const size_plan *p, double scale, double *need)
{
    for (int64_t k = p->least;; k++) {
        *need = (double)(b->start + b->later) + scale * need_of(p, k);
        if (k >= p->count || *need <= (double)b->bytes) return k;
    }
}

/* The factor by which a batch is larger than p's in the larger of both sizes; at least 1. */
static double excess(const size_plan *p, int64_t elements, int64_t length)
{
    return fmax(1, fmax((double)elements / (double)p->elements, (double)length / (double)p->length));
}

/* Chooses the plan of a batch of this size: one of the smallest batch that is not smaller, or of one that is at most a
 * quarter smaller, or a new one, to be measured. A plan for a much larger batch is used only if it keeps everything. */
static void plan(tn_budget *b, const tn_tensor *x)
{
    const tn_shape s = x->l.shape;
    const int64_t  elements = tn_shape_numel(s) + 1, length = s.n > 1 ? s.d[s.n - 2] + 1 : 1;
    size_plan     *best = NULL;
    b->shape = s, b->scale = INFINITY;
    for (int i = 0; i < SIZES; i++) {
        size_plan   *p = &b->list[i];
        const double more = p->measured ? excess(p, elements, length) : INFINITY;
        if (more > 1.25 || more > b->scale || (best && more == b->scale && p->elements > best->elements)) continue;
        best = p, b->scale = more;
    }
    if (best && !b->probing) {
        b->recomputed = choose(b, best, b->scale, &b->need);
        if (!b->recomputed || (double)best->elements <= 1.25 * (double)elements) {
            b->plan = best;
            return;
        }
    }
    b->plan = &b->list[b->next++ % SIZES];
    b->plan->measured = false, b->plan->count = b->plan->least = 0;
    b->plan->elements = elements, b->plan->length = length;
    b->recomputed = INT64_MAX, b->scale = 1, b->need = 0;
}

/* ---- measuring --------------------------------------------------------------------------------------------------- */

static bool measures(const tn_budget *b) { return b && b == tn__tape.budget && b->plan && !b->plan->measured; }

/* Adds the peak since the last call to that of part i. */
static void note_peak(tn_budget *b, int64_t i)
{
    const tn_memory m = tn_memory_now();
    part           *p = &b->plan->part[i];
    p->peak = larger(p->peak, m.peak > b->start ? m.peak - b->start : 0);
    b->peak = larger(b->peak, m.peak), b->live = m.live;
    tn_reset_peak();
}

void tn__budget_before(tn_budget *b, int64_t at)
{
    if (measures(b) && at < b->plan->count) note_peak(b, at + 1);
}

void tn__budget_after(tn_budget *b, int64_t at, const tn_tensor *out)
{
    if (!measures(b) || at >= b->plan->count) return;
    const size_t now = tn_memory_now().live, own = out ? (size_t)tn_numel(out) * tn_dtype_size(out->dtype) : 0;
    b->plan->part[at].kept = now > b->live + own ? now - b->live - own : 0; /* the forward has made the result, too */
}

/* Makes room for segment i of the pass. False: raised. */
static bool add_part(size_plan *p, int64_t i)
{
    if (i + 2 > p->room) {
        const int64_t room = 2 * (i + 8);
        void         *list = p->part;
        if (!tn__mem_grow(&list, (size_t)p->room * sizeof(part), (size_t)room * sizeof(part))) return false;
        p->part = list, p->room = room;
    }
    for (int64_t k = i ? i + 1 : 0; k <= i + 1; k++) p->part[k] = (part){0, 0};
    p->count = i + 1;
    return true;
}

/* ---- segments ---------------------------------------------------------------------------------------------------- */

bool tn_budget_is_open(void) { return tn__tape.budget && !tn__self.mode.no_grad; }

bool tn__budget_segment(tn_budget *b, const tn_tensor *x, int64_t *at, bool *recomputed)
{
    if (!b->plan) plan(b, x);
    *at = b->at++, *recomputed = *at < b->recomputed;
    return b->plan->measured || add_part(b->plan, *at);
}

/* ---- passes ------------------------------------------------------------------------------------------------------ */

/* Limits live memory to `bytes`, and live and cached memory together to a quarter more than the budget: if cached
 * blocks had no room, a step would get most of its memory from the system each time. */
static void set_limit(const tn_budget *b, size_t bytes)
{
    const size_t most = b->bytes + b->bytes / 4;
    tn__mem_limit(bytes, b->limit && b->limit < most ? b->limit : most);
}

tn_budget *tn_budget_new(size_t bytes)
{
    if (tn__blocked()) return NULL;
    if (!bytes) return tn_raise_null(TN_EINVAL, "tn_budget_new: the budget is 0 bytes, but must be above 0");
    tn_budget *b = tn__mem_zeroed(sizeof *b);
    if (!b) return NULL;
    b->limit = tn_memory_now().limit;
    b->bytes = b->limit && b->limit < bytes ? b->limit : bytes;
    set_limit(b, b->bytes);
    return b;
}

/* Ends the pass. */
static void end_pass(tn_budget *b)
{
    b->open = false;
    tn__tape.budget = NULL;
    tn__mem_raise_peak(b->peak);
    set_limit(b, b->bytes);
}

void tn_budget_free(tn_budget *b)
{
    if (!b) return;
    if (b->open) end_pass(b);
    tn_set_memory_limit(b->limit);
    for (int i = 0; i < SIZES; i++) tn__mem_put(b->list[i].part, (size_t)b->list[i].room * sizeof(part));
    tn__mem_put(b, sizeof *b);
}

tn_status tn_budget_begin(tn_budget *b, size_t later)
{
    if (tn__blocked() || !b) return tn__self.error;
    if (tn__tape.budget)
        return tn_raise(TN_ESTATE, "tn_budget_begin: a budget of this thread is open; call tn_budget_again first");
    if (later >= b->bytes)
        return tn_raise(TN_ENOMEM, "tn_budget_begin: %zu bytes are needed later, but the budget is %zu", later,
                        b->bytes);
    if (b->probing) tn__mem_limit(b->limit, b->limit);
    else set_limit(b, b->bytes - later);
    const tn_memory m = tn_memory_now();
    b->later = later, b->start = m.live, b->peak = m.peak, b->at = b->recomputed = 0;
    b->plan = NULL, b->need = 0, b->open = true;
    b->generator = tn_current_generator(), b->before = *b->generator;
    tn__mem_refused(true);
    tn_reset_peak();
    tn__tape.budget = b;
    return TN_OK;
}

/* need: the bytes of the pass; exact: they were measured, not refused. */
static tn_status raise_too_small(const tn_budget *b, size_t need, bool exact)
{
    char text[192] = "the batch";
    if (b->plan) tn_shape_text(b->shape, text, sizeof text);
    tn_clear_error();
    return tn_raise(TN_ENOMEM,
                    "out of memory: the pass (%s%s) needs %s %zu bytes%s, %zu of them in use before it and %zu "
                    "needed later, but the budget is %zu; use smaller batches and accumulate gradients, shorter "
                    "sequences, or a larger budget",
                    text, b->plan ? " in its first segment" : "", exact ? "at least" : "more than", need + b->later,
                    b->plan ? " even if all segments are recomputed" : "; it has no segments to recompute", b->start,
                    b->later, b->bytes);
}

bool tn_budget_again(tn_budget *b)
{
    if (!b || !b->open) return false;
    size_plan   *p = b->plan;
    const size_t refused = tn__mem_refused(false);
    if (measures(b)) note_peak(b, 0);
    const size_t need = p && !p->measured ? b->start + (size_t)need_of(p, p->count) : tn_memory_now().peak;
    const bool   probed = b->probing;
    end_pass(b);
    b->probing = false;
    if (probed && (tn__self.error == TN_OK || (tn__self.error == TN_ENOMEM && refused))) {
        const bool exact = tn__self.error == TN_OK;
        raise_too_small(b, exact ? need : refused, exact);
        return false;
    }
    if (tn__self.error == TN_OK) {
        if (p) p->measured = true;
        return false;
    }
    if (tn__self.error != TN_ENOMEM || !refused) return false; /* if the system has no memory, the caller decides */
    if (p && p->measured && b->recomputed < p->count) p->least = b->recomputed + 1 + (p->count - b->recomputed) / 4;
    else b->probing = true;
    tn_clear_error();
    *b->generator = b->before;
    return true;
}

tn_budget_report tn_budget_last(const tn_budget *b)
{
    tn_budget_report r = {.bytes = 0};
    if (!b) return r;
    r.bytes = b->bytes, r.segments = b->at, r.measured = b->recomputed == INT64_MAX;
    r.recomputed = b->recomputed < b->at ? b->recomputed : b->at, r.need = (size_t)b->need;
    return r;
}
