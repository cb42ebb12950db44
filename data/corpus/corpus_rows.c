/* corpus_rows.c — builds a row from an example: draws the two segments, adds special tokens, masks tokens. All draws of
 * an example come from its own generator, whose seed depends on the seed and the epoch and whose position on the
 * example's index. So a row does not depend on its batch. */
#include "data/corpus/corpus_examples.h"
#include "core/base/toolbox.h"

enum { PER_EXAMPLE = 20 /* bits of the position per example: far more than a row draws */, TRIES = 64 };

void tn__mlm_rows_free(tn__mlm_rows *r)
{
    tn_ids *all[] = {&r->ids, &r->next, &r->row, &r->masked_ids, &r->second, &r->used, &r->chosen, &r->order};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) tn_ids_free(all[i]);
    tn__mem_put(r->masked_at, (size_t)r->masked_room * sizeof *r->masked_at);
    *r = (tn__mlm_rows){0};
}

static tn_generator generator_of(const tn__examples *x, int64_t epoch, uint32_t example)
{
    uint64_t seed = x->config.seed + 0x9e3779b97f4a7c15u * (uint64_t)(x->config.fixed ? 1 : epoch + 1);
    seed = (seed ^ seed >> 30) * 0xbf58476d1ce4e5b9u;
    return (tn_generator){seed ^ seed >> 27, (uint64_t)example << PER_EXAMPLE};
}

/* ---- the tokens of a row ----------------------------------------------------------------------------------------- */

static bool put_range(const tn_corpus *c, int64_t from, int64_t n, tn_ids *to)
{
    if (!tn__ids_room(to, n) || !tn__corpus_read(c, from, n, to->at + to->n)) return false;
    to->n += n;
    return true;
}

typedef struct {
    int64_t from, n; /* tokens of the corpus */
} range;

/* Whole sentences from a random position in another document: about `most` tokens, at least one sentence. Redraws if
 * the first sentence is longer than `most`. */
static range draw_other(const tn_corpus *c, uint32_t document, int64_t most, tn_generator *g)
{
    range r = {0, 0};
    for (int tries = 0; tries < TRIES; tries++) {
        uint32_t d = (uint32_t)tn_random_below(g, (int64_t)c->footer.documents - 1);
        if (d >= document) d++;
        uint32_t first = c->document[d], end = c->document[d + 1];
        uint32_t s = first + (uint32_t)tn_random_below(g, end - first);
        r = (range){c->start[s], c->start[s + 1] - c->start[s]};
        while (++s < end && c->start[s + 1] - r.from <= most) r.n = c->start[s + 1] - r.from;
        if (r.n <= most) break;
    }
    return r;
}

static bool put_pair(const tn__examples *x, const tn__example *e, tn_generator *g, tn__mlm_rows *to)
{
    const tn_corpus *c = x->corpus;
    int64_t          room = x->config.max_tokens - 3, cut = 1 + tn_random_below(g, e->count - 1);
    int64_t          middle = c->start[e->first + cut], end = c->start[e->first + e->count];
    bool             other = tn_random_u32(g) & 1;
    range            a = {c->start[e->first], middle - c->start[e->first]}, b = {middle, end - middle};
    if (other && !x->config.order) b = draw_other(c, e->document, b.n, g);
    if (a.n + b.n > room) { /* A loses its start; B, whose end would show the cut, only if needed */
        b.n = tn__min_i64(b.n, room - tn__min_i64(a.n, tn__max_i64(room / 4, 1)));
        a.from += a.n - (room - b.n), a.n = room - b.n;
    }
    if (other && x->config.order) {
        const range first = a;
        a = b, b = first;
    }
    tn_ids *row = &to->row;
    if (!tn__ids_room(row, a.n + b.n + 3)) return false;
    row->at[row->n++] = x->config.cls;
    if (!put_range(c, a.from, a.n, row)) return false;
    row->at[row->n++] = x->config.sep;
    if (!tn__ids_room(&to->second, 1) || !tn__ids_room(&to->next, 1)) return false;
    to->second.at[to->second.n++] = (int32_t)row->n;
    to->next.at[to->next.n++] = other;
    if (!tn__ids_room(row, b.n + 1) || !put_range(c, b.from, b.n, row) || !tn__ids_room(row, 1)) return false;
    row->at[row->n++] = x->config.sep;
    return true;
}

static bool put_sentences(const tn__examples *x, const tn__example *e, tn__mlm_rows *to)
{
    tn_ids    *row = &to->row;
    const bool permuted = x->config.permuted;
    if (!tn__ids_room(row, e->tokens + 2)) return false;
    if (!permuted) row->at[row->n++] = x->config.cls;
    if (!put_range(x->corpus, x->corpus->start[e->first] + e->skip, e->tokens, row)) return false;
    if (!tn__ids_room(row, 1) || !tn__ids_room(&to->second, 1)) return false;
    row->at[row->n++] = x->config.sep;
    to->second.at[to->second.n++] = (int32_t)row->n;
    if (permuted) row->at[row->n++] = x->config.cls;
    return true;
}

/* ---- masks ------------------------------------------------------------------------------------------------------- */

static int kind_of(const tn__examples *x, int32_t id)
{
    if (id == x->config.cls || id == x->config.sep || id == x->config.pad || id == x->config.mask)
        return TN_TOKEN_SPECIAL;
    return x->kinds ? x->kinds[id] : 0;
}

static int32_t draw_token(const tn__examples *x, tn_generator *g, int32_t instead)
{
    for (int tries = 0; tries < TRIES; tries++) {
        int32_t id = (int32_t)tn_random_below(g, (int64_t)x->corpus->footer.vocabulary);
        if (!(kind_of(x, id) & TN_TOKEN_SPECIAL)) return id;
    }
    return instead; /* nearly the whole vocabulary is special */
}

/* Shell sort: the arrays are short. */
static void sort(int32_t *x, int64_t n)
{
    for (int64_t gap = n / 2; gap > 0; gap /= 2)
        for (int64_t i = gap; i < n; i++) {
            int32_t v = x[i];
            int64_t j = i;
            for (; j >= gap && x[j - gap] > v; j -= gap) x[j] = x[j - gap];
            x[j] = v;
        }
}

/* Number of tokens of the unit, a token or a word, that starts at `at`. */
static int32_t unit_length(const tn__examples *x, const tn_ids *row, int32_t at)
{
    int32_t n = 1;
    while (x->config.whole_words && at + n < row->n && (kind_of(x, row->at[at + n]) & TN_TOKEN_INNER) &&
           !(kind_of(x, row->at[at + n]) & TN_TOKEN_SPECIAL))
        n++;
    return n;
}

/* Writes the starts of the row's units to `chosen`, which then has room for three more arrays of row->n values. Returns
 * the number of tokens that may be masked; -1: out of memory. */
static int64_t find_units(const tn__examples *x, tn__mlm_rows *to)
{
    const tn_ids *row = &to->row;
    tn_ids       *units = &to->chosen;
    int64_t       ordinary = 0;
    bool          open = false;
    units->n = 0;
    if (!tn__ids_room(units, 4 * row->n)) return -1;
    for (int64_t i = 0; i < row->n; i++) {
        int kind = kind_of(x, row->at[i]);
        if (kind & TN_TOKEN_SPECIAL) {
            open = false;
            continue;
        }
        ordinary++;
        if (!x->config.whole_words || !open || !(kind & TN_TOKEN_INNER)) units->at[units->n++] = (int32_t)i;
        open = true;
    }
    return ordinary;
}

/* Chooses units at random until `wanted` tokens are chosen. Returns the number of positions in `place`. */
static int64_t choose_units(const tn__examples *x, tn_generator *g, tn__mlm_rows *to, int64_t wanted, int32_t *place)
{
    tn_ids *units = &to->chosen;
    int64_t taken = 0;
    for (int64_t i = 0, count = units->n; i < count && taken < wanted; i++) {
        int64_t j = i + tn_random_below(g, count - i);
        int32_t at = units->at[j];
        units->at[j] = units->at[i];
        const int32_t length = unit_length(x, &to->row, at);
        if (taken && taken + length > wanted) continue; /* a shorter word may still fit */
        for (int32_t k = 0; k < length; k++) place[taken + k] = at + k;
        taken += length;
    }
    return taken;
}

/* 1 … most; n with probability proportional to 1/n, as ALBERT draws its n-grams. */
static int64_t draw_span(tn_generator *g, int64_t most)
{
    double all = 0;
    for (int64_t n = 1; n <= most; n++) all += 1 / (double)n;
    double u = tn_random_double(g) * all;
    for (int64_t n = 1; n < most; n++)
        if ((u -= 1 / (double)n) < 0) return n;
    return most;
}

/* Chooses runs of adjacent units: each span starts at a random unit and ends before a chosen unit, before a special
 * token, or where it would exceed `wanted`. Returns the number of positions in `place`. */
static int64_t choose_spans(const tn__examples *x, tn_generator *g, tn__mlm_rows *to, int64_t wanted, int32_t *place)
{
    const int32_t *unit = to->chosen.at;
    const int64_t  count = to->chosen.n;
    int32_t       *order = place + to->row.n, *used = order + to->row.n;
    int64_t        taken = 0;
    for (int64_t i = 0; i < count; i++) order[i] = (int32_t)i, used[i] = 0;
    for (int64_t i = 0; i < count && taken < wanted; i++) {
        const int64_t j = i + tn_random_below(g, count - i), first = order[j];
        order[j] = order[i];
        if (used[first]) continue;
        const int64_t n = draw_span(g, x->config.spans);
        for (int64_t k = first, at = unit[first]; k < count && k < first + n && !used[k] && unit[k] == at; k++) {
            const int32_t length = unit_length(x, &to->row, unit[k]);
            if (taken && taken + length > wanted) break;
            for (int32_t c = 0; c < length; c++) place[taken + c] = unit[k] + c;
            taken += length, at += length, used[k] = 1;
        }
    }
    return taken;
}

/* Positions of the row to predict: chosen[0 … *n), ascending. */
static bool choose(const tn__examples *x, tn_generator *g, tn__mlm_rows *to, int64_t *n)
{
    const int64_t ordinary = find_units(x, to);
    if (ordinary < 0) return false;
    int64_t  wanted = (int64_t)((double)ordinary * x->config.rate + 0.5);
    int32_t *place = to->chosen.at + to->row.n;
    if (ordinary && wanted < 1) wanted = 1;
    *n = x->config.spans > 1 ? choose_spans(x, g, to, wanted, place) : choose_units(x, g, to, wanted, place);
    sort(place, *n);
    memmove(to->chosen.at, place, (size_t)*n * sizeof *place);
    return true;
}

/* Appends the row's ranks: sep, cls and the n chosen tokens in a random order. */
static bool put_order(const tn_ids *row, tn_generator *g, int64_t n, tn__mlm_rows *to)
{
    int32_t *place = to->chosen.at, *rank;
    if (!tn__ids_room(&to->order, row->n)) return false;
    rank = to->order.at + to->order.n, to->order.n += row->n;
    for (int64_t i = 0; i < row->n; i++) rank[i] = -1;
    place[n++] = (int32_t)row->n - 2, place[n++] = (int32_t)row->n - 1;
    for (int64_t i = 0; i < n; i++) {
        const int64_t j = i + tn_random_below(g, n - i);
        rank[place[j]] = (int32_t)i;
        place[j] = place[i];
    }
    return true;
}

static bool mask_row(const tn__examples *x, tn_generator *g, int64_t r, tn__mlm_rows *to)
{
    int64_t n;
    if (!choose(x, g, to, &n) || !tn__ids_room(&to->masked_ids, n) ||
        !tn__grown((void *)&to->masked_at, &to->masked_room, to->masked + n, sizeof *to->masked_at))
        return false;
    for (int64_t i = 0; i < n; i++) {
        int32_t at = to->chosen.at[i], *id = &to->row.at[at];
        double  u = x->config.permuted ? 1 : tn_random_double(g);
        to->masked_at[to->masked] = r << 32 | at; /* row and column; converted by spread when the width is known */
        to->masked_ids.at[to->masked_ids.n++] = *id;
        to->masked++;
        if (u < 0.8) *id = x->config.mask;
        else if (u < 0.9) *id = draw_token(x, g, *id);
    }
    return !x->config.permuted || put_order(&to->row, g, n, to);
}

/* ---- the batch --------------------------------------------------------------------------------------------------- */

/* Spreads the rows of ids, stored without gaps, to the width of the longest, from the last row to the first. */
static bool spread_ids(const tn__mlm_rows *r, tn_ids *ids, int32_t pad)
{
    int64_t at = ids->n;
    if (!tn__ids_room(ids, r->rows * r->width - at)) return false;
    ids->n = r->rows * r->width;
    for (int64_t k = r->rows; k-- > 0;) {
        int32_t *row = ids->at + k * r->width;
        int64_t  n = r->used.at[k];
        at -= n;
        memmove(row, ids->at + at, (size_t)n * sizeof *row);
        for (int64_t i = n; i < r->width; i++) row[i] = pad;
    }
    return true;
}

static bool spread(const tn__examples *x, tn__mlm_rows *to)
{
    if (!spread_ids(to, &to->ids, x->config.pad) || (x->config.permuted && !spread_ids(to, &to->order, -1)))
        return false;
    for (int64_t i = 0; i < to->masked; i++)
        to->masked_at[i] = (to->masked_at[i] >> 32) * to->width + (to->masked_at[i] & UINT32_MAX);
    return true;
}

bool tn__mlm_make(const tn__examples *x, int64_t epoch, const uint32_t *examples, int64_t n, tn__mlm_rows *to)
{
    to->rows = n, to->width = to->tokens = to->masked = 0;
    to->ids.n = to->next.n = to->masked_ids.n = to->second.n = to->used.n = to->order.n = 0;
    if (!tn__ids_room(&to->used, n)) return false;
    for (int64_t r = 0; r < n; r++) {
        const tn__example *e = &x->example[examples[r]];
        tn_generator       g = generator_of(x, epoch, examples[r]);
        to->row.n = 0;
        if (x->config.pairs ? !put_pair(x, e, &g, to) : !put_sentences(x, e, to)) return false;
        if (!mask_row(x, &g, r, to) || !tn__ids_room(&to->ids, to->row.n)) return false;
        memcpy(to->ids.at + to->ids.n, to->row.at, (size_t)to->row.n * sizeof *to->row.at);
        to->ids.n += to->row.n;
        to->used.at[to->used.n++] = (int32_t)to->row.n;
        to->tokens += to->row.n;
        to->width = tn__max_i64(to->width, to->row.n);
    }
    return spread(x, to);
}
