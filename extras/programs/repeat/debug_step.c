/* debug_step.c — what one step of a training reads and computes: the rows of its batch with their losses, the results
 * of its modules, its gradients. Observing changes no bits: losses of single rows are computed in eval mode, without
 * gradients, and the random generator is restored. */
#include "debug.h"

#include "programs/common/checksum.h"

#include <stdlib.h>
#include <string.h>

/* ---- room -------------------------------------------------------------------------------------------------------- */

/* Appends a zeroed element; NULL: raised. */
static void *append(void **array, int64_t *n, size_t size)
{
    char *more = realloc(*array, (size_t)(*n + 1) * size);
    if (!more) return tn_raise_null(TN_ENOMEM, "no memory for %lld elements of %zu bytes", (long long)*n + 1, size);
    *array = more, more += (size_t)(*n)++ * size;
    return memset(more, 0, size);
}

void debug_forget(debug_step *s)
{
    for (int64_t i = 0; i < s->rows; i++) tn_string_free(&s->row[i].text);
    free(s->row), free(s->result), free(s->gradient);
    *s = (debug_step){.loss = NAN, .norm = NAN};
}

/* ---- rows -------------------------------------------------------------------------------------------------------- */

static bool is_ids(const tn_tensor *x) { return x && tn_ndim(x) == 2 && tn_dtype_of(x) == TN_I64; }

/* The token ids of a row, with the tokens that were masked; none if the batch has no token ids. */
static void ids_of(const tn_batch *b, int64_t row, tn_ids *to)
{
    const tn_tensor *at = tn_batch_find(b, "masked_at");
    const int64_t    width = is_ids(b->x) ? tn_size(b->x, 1) : 0;
    to->n = 0;
    for (int64_t i = 0; i < width && tn_error() == TN_OK; i++)
        tn_ids_add(to, (int32_t)tn_get_i64(b->x, row * width + i));
    for (int64_t i = 0; at && to->at && i < tn_numel(at) && tn_error() == TN_OK; i++) {
        const int64_t k = tn_get_i64(at, i) - row * width;
        if (k >= 0 && k < width) to->at[k] = (int32_t)tn_get_i64(b->y, i);
    }
}

static uint64_t hash_row(uint64_t sum, const tn_tensor *t, int64_t row, int64_t rows)
{
    if (!t || tn_ndim(t) < 1 || tn_size(t, 0) != rows || !tn_is_contiguous(t)) return sum;
    const size_t bytes = (size_t)(tn_numel(t) / rows) * tn_dtype_size(tn_dtype_of(t));
    return checksum(sum, (const char *)tn_data(t) + (size_t)row * bytes, bytes);
}

/* The masked tokens of a row. False: it has none, or raised. */
static bool cut_masked(const tn_batch *b, const tn_tensor *at, int64_t row, tn_batch *to)
{
    const int64_t width = tn_size(b->x, 1);
    int64_t       n = 0, first = 0;
    for (int64_t i = 0; i < tn_numel(at); i++) {
        first += tn_get_i64(at, i) < row * width;
        n += tn_get_i64(at, i) / width == row;
    }
    tn_tensor *where = n ? tn_empty_of(TN_I64, TN_SHAPE(n)) : NULL;
    int64_t   *p = where ? tn_data_mut(where) : NULL;
    for (int64_t i = 0; p && i < n; i++) p[i] = tn_get_i64(at, first + i) - row * width;
    to->y = where ? tn_narrow(b->y, 0, first, n) : NULL;
    for (int i = 0; i < TN_BATCH_FIELDS; i++)
        if (to->fields[i].tensor == at) to->fields[i].tensor = where;
    return where && tn_error() == TN_OK;
}

static tn_tensor *cut_tensor(tn_tensor *t, int64_t row, int64_t rows)
{
    return t && tn_ndim(t) > 0 && tn_size(t, 0) == rows ? tn_narrow(t, 0, row, 1) : t;
}

/* A batch of one row. "fresh": a recurrent model starts with zero states. */
static bool cut_row(const tn_batch *b, int64_t row, int64_t rows, tn_batch *to)
{
    const tn_tensor *at = tn_batch_find(b, "masked_at");
    *to = *b;
    if (!tn_batch_find(b, "fresh")) tn_batch_put(to, "fresh", tn_ones(TN_SHAPE(1)));
    to->x = cut_tensor(b->x, row, rows), to->y = at ? b->y : cut_tensor(b->y, row, rows);
    for (int i = 0; i < TN_BATCH_FIELDS; i++)
        if (to->fields[i].tensor != at) to->fields[i].tensor = cut_tensor(to->fields[i].tensor, row, rows);
    to->first = b->first + row, to->rows = 1, to->whole = b->whole ? b->whole : rows;
    to->items = 0, to->weight = 0;
    return (!at || cut_masked(b, at, row, to)) && tn_error() == TN_OK;
}

/* NaN if the row has no loss, for example no masked token. */
static double loss_of_row(const training *t, const tn_batch *b, int64_t row, int64_t rows, tn_fit_loss loss)
{
    const tn_generator before = *tn_current_generator();
    tn_error_state     aside;
    tn_batch           one;
    double             v = NAN;
    tn_error_push(&aside);
    const tn_scope s = tn_no_grad_begin();
    if (cut_row(b, row, rows, &one)) {
        const tn_tensor *l = loss(t->net, &one, t->fit.user);
        if (l && tn_numel(l) == 1 && tn_error() == TN_OK) v = tn_item(l);
    }
    tn_scope_end(s);
    tn_error_pop(&aside);
    *tn_current_generator() = before;
    return v;
}

/* Sets eval mode in all modules and returns their modes, which the caller passes again to restore and free them. */
static bool *switch_modes(void *module, bool *modes)
{
    bool   *saved = modes;
    int64_t n = 0, room = 0;
    for (tn_each e = tn_module_each(module, TN_EACH_MODULE); !modes && tn_next(&e);) room++;
    if (!modes && !(saved = calloc((size_t)room + 1, sizeof *saved))) return NULL;
    for (tn_each e = tn_module_each(module, TN_EACH_MODULE); tn_next(&e); n++) {
        if (modes) e.module->training = modes[n];
        else saved[n] = e.module->training, e.module->training = false;
    }
    if (modes) free(modes);
    return modes ? NULL : saved;
}

void debug_rows(debug_step *s, training *t, const tn_batch *b, tn_fit_loss loss, bool losses)
{
    const int64_t rows = b->x && tn_ndim(b->x) > 0 ? tn_size(b->x, 0) : 0;
    tn_ids        ids = {0};
    bool         *modes = losses ? switch_modes(t->net, NULL) : NULL;
    if (!b->first) debug_forget(s); /* not a further part of the batch */
    s->items += b->items ? b->items : rows;
    for (int64_t i = 0; i < rows && tn_error() == TN_OK; i++) {
        debug_row *r = append((void **)&s->row, &s->rows, sizeof *r);
        if (!r) break;
        ids_of(b, i, &ids);
        r->hash =
            ids.n ? checksum(CHECKSUM, ids.at, (size_t)ids.n * sizeof *ids.at) : hash_row(CHECKSUM, b->x, i, rows);
        if (!tn_batch_find(b, "masked_at")) r->hash = hash_row(r->hash, b->y, i, rows);
        r->row = b->first + i, r->same = -1;
        for (int64_t k = s->rows - 1; k-- > 0;)
            if (s->row[k].hash == r->hash) r->same = s->row[k].row;
        r->loss = modes ? loss_of_row(t, b, i, rows, loss) : NAN;
        if (losses && t->kind->row) t->kind->row(t, b, i, &ids, r->place, &r->text);
    }
    if (modes) switch_modes(t->net, modes);
    tn_ids_free(&ids);
}

double debug_worst(const debug_step *s)
{
    double worst = NAN;
    for (int64_t i = 0; i < s->rows; i++) worst = fmax(worst, s->row[i].loss);
    return worst;
}

int64_t debug_copies(const debug_step *s)
{
    int64_t n = 0;
    for (int64_t i = 0; i < s->rows; i++) n += s->row[i].same >= 0;
    return n;
}

/* ---- masks ------------------------------------------------------------------------------------------------------- */

typedef struct {
    training       *t;
    const tn_batch *b;
    tn_fit_loss     loss;
} loss_call;
static tn_tensor *call_loss(void *model, void *user)
{
    const loss_call *c = user;
    return c->loss(model, c->b, c->t->fit.user);
}

void debug_leak(debug_step *s, training *t, const tn_batch *b, tn_fit_loss loss)
{
    loss_call  c = {t, b, loss};
    tn_tensor *ordered = t->kind->causal ? tn_batch_find(b, t->kind->causal) : NULL;
    tn_tensor *padding = tn_batch_find(b, "padding");
    tn_leak    l = {.size = 0};
    bool      *modes = ordered || padding ? switch_modes(t->net, NULL) : NULL;
    if (modes && ordered) /* targets, y, are padded with 0 */
        l = tn_mask_leak(.model = t->net, .run = call_loss, .user = &c, .tokens = ordered,
                         .padding_id = ordered == b->y ? 0 : -1);
    if (modes && padding && l.size == 0)
        l = tn_mask_leak(.model = t->net, .run = call_loss, .user = &c, .tokens = b->x, .padding = padding);
    if (modes) switch_modes(t->net, modes), s->masked = true;
    l.row += b->first;
    if (l.size > s->leak.size) s->leak = l;
}

/* ---- results and gradients --------------------------------------------------------------------------------------- */

static debug_values *values_at(debug_values **array, int64_t *n, const char *path)
{
    for (int64_t i = *n; i-- > 0;)
        if (!strcmp((*array)[i].path, path)) return *array + i;
    debug_values *v = append((void **)array, n, sizeof *v);
    if (v) snprintf(v->path, sizeof v->path, "%.255s", path);
    return v;
}

/* The elements of a tensor as f64; NULL: raised. */
static const double *doubles_of(const tn_tensor *t)
{
    tn_tensor *dense = tn_empty_of(TN_F64, tn_shape_of(t));
    return dense && tn_copy_from(dense, t) == TN_OK ? tn_data(dense) : NULL;
}

static void add_values(debug_values *v, const tn_tensor *t)
{
    const tn_scope s = tn_no_grad_begin();
    const double  *x = v ? doubles_of(t) : NULL;
    for (int64_t i = 0; x && i < tn_numel(t); i++) {
        if (!isfinite(x[i])) {
            v->bad++;
            continue;
        }
        v->n++, v->sum += x[i], v->squares += x[i] * x[i];
        v->most = fmax(v->most, fabs(x[i]));
    }
    tn_scope_end(s);
}

tn_tensor *debug_loss(debug_step *s, training *t, const tn_batch *b, tn_fit_loss loss)
{
    debug_rows(s, t, b, loss, true);
    debug_leak(s, t, b, loss);
    tn_look *look = tn_look_new();
    tn_look_request(look, "**");
    const tn_scope observed = tn_look_begin(look);
    tn_tensor     *l = tn_scope_return(observed, loss(t->net, b, t->fit.user));
    for (int64_t i = 0; i < tn_look_count(look) && tn_error() == TN_OK; i++) {
        const char *path = tn_look_name(look, i);
        add_values(values_at(&s->result, &s->results, path), tn_look_at(look, path));
    }
    tn_look_free(look);
    return l;
}

static double squares_of(const tn_tensor *t)
{
    debug_values v = {.n = 0};
    add_values(&v, t);
    return v.bad ? NAN : v.squares;
}

double debug_norm(void *module)
{
    double squares = 0;
    for (tn_each e = tn_module_each(module, TN_EACH_PARAMETER); tn_next(&e);)
        if (tn_grad(e.tensor)) squares += squares_of(tn_grad(e.tensor));
    return sqrt(squares);
}

void debug_gradients(debug_step *s, void *module)
{
    double all = 0;
    for (tn_each e = tn_module_each(module, TN_EACH_PARAMETER); tn_next(&e) && tn_error() == TN_OK;) {
        char *dot = strrchr(e.name, '.');
        if (dot) *dot = 0;
        debug_values *v = values_at(&s->gradient, &s->gradients, dot ? e.name : "(model)");
        if (dot) *dot = '.';
        if (v) v->weights += squares_of(e.tensor);
        if (v && tn_grad(e.tensor)) add_values(v, tn_grad(e.tensor));
    }
    for (int64_t i = 0; i < s->gradients; i++) all += s->gradient[i].bad ? NAN : s->gradient[i].squares;
    s->norm = sqrt(all);
}

/* ---- printing ---------------------------------------------------------------------------------------------------- */

/* In one line of at most `most` bytes; 0: no limit. */
static void print_text(tn_text text, size_t most)
{
    size_t n = 0;
    for (size_t at = 0, from; at < text.bytes;) {
        from = at;
        const uint32_t code = tn_utf8_next(text.at, text.bytes, &at, NULL);
        if (most && n + (at - from) > most) {
            printf("…");
            return;
        }
        n += at - from;
        if (code == '\n') printf("\\n");
        else if (code < 32 || code == 127) printf(" ");
        else printf("%.*s", (int)(at - from), text.at + from);
    }
}

static void print_leak(const debug_step *s)
{
    const tn_leak *l = &s->leak;
    const char    *place = l->row < s->rows ? s->row[l->row].place : "";
    if (s->masked) printf("leak      %.4g", l->size);
    if (s->masked && l->size > 0)
        printf(": '%s' at position %lld of row %lld%s%s depends on %s", l->path, (long long)l->position,
               (long long)l->row, *place ? ", " : "", place, l->from < 0 ? "padding" : "later tokens");
    if (s->masked) printf("\n");
}

/* The row to print after n others: the largest loss first, then in order. */
static int64_t next_row(const debug_step *s, const bool *printed)
{
    int64_t best = -1;
    for (int64_t i = 0; i < s->rows; i++)
        if (!printed[i] &&
            (best < 0 || s->row[i].loss > s->row[best].loss || (isnan(s->row[best].loss) && !isnan(s->row[i].loss))))
            best = i;
    return best;
}

static void print_rows(const debug_step *s, int64_t most)
{
    bool         *printed = calloc((size_t)s->rows + 1, 1);
    const int64_t n = most && most < s->rows ? most : s->rows;
    if (printed && n)
        printf("\n%5s  %9s  %-14s  %s\n", "row", "loss", "place", n < s->rows ? "text (the largest losses)" : "text");
    for (int64_t k = 0; printed && k < n; k++) {
        const int64_t    i = next_row(s, printed);
        const debug_row *r = &s->row[i];
        printed[i] = true;
        printf("%5lld  %9.5g  %-14s  ", (long long)r->row, isnan(r->loss) ? (double)NAN : r->loss, r->place);
        if (r->same >= 0) printf("[same as row %lld] ", (long long)r->same);
        print_text((tn_text){r->text.at ? r->text.at : "", r->text.bytes}, settings.verbose ? 0 : 80);
        printf("\n");
    }
    free(printed);
}

static void print_values(const debug_values *v, int64_t n, int64_t depth, bool gradients)
{
    bool any = false;
    for (int64_t i = 0; i < n; i++, v++) {
        int64_t      parts = 1;
        const double count = v->n ? (double)v->n : 1, mean = v->sum / count;
        for (const char *c = v->path; *c; c++) parts += *c == '.';
        if (depth && parts > depth) continue;
        if (!any && gradients)
            printf("\n%-44s %11s %11s %11s %8s\n", "gradients of", "norm", "max |x|", "weights", "NaN, inf");
        if (!any && !gradients)
            printf("\n%-44s %11s %11s %11s %8s\n", "results of", "mean", "deviation", "max |x|", "NaN, inf");
        any = true;
        if (gradients) printf("%-44s %11.4g %11.4g %11.4g", v->path, sqrt(v->squares), v->most, sqrt(v->weights));
        else
            printf("%-44s %11.4g %11.4g %11.4g", v->path, mean, sqrt(fmax(v->squares / count - mean * mean, 0)),
                   v->most);
        printf(" %8lld\n", (long long)v->bad);
    }
}

void debug_print(const debug_step *s, int64_t most, int64_t depth)
{
    print_leak(s);
    print_rows(s, most);
    print_values(s->result, s->results, depth, false);
    print_values(s->gradient, s->gradients, depth, true);
}
