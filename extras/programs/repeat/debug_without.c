/* debug_without.c — PROGRAM debug DIR --without LINE: the training again, without one line of its text. It is the run
 * that `train` makes from a file without the line, with the tokenizer of that text: the same options, number of steps
 * and seed. */
#include "core/system/system.h"

#include "debug.h"

#include "programs/common/options.h"

#include <stdlib.h>
#include <string.h>

/* ---- the text without the line ----------------------------------------------------------------------------------- */

/* The part of a text that is line `line`, from 1, with its line end. Returns its number of lines; *part is empty if
 * that is less. */
static int64_t line_of(tn_text all, int64_t line, tn_text *part)
{
    int64_t n = 0;
    *part = (tn_text){all.at, 0};
    for (size_t at = 0, bytes; at < all.bytes; at += bytes) {
        const char *end = memchr(all.at + at, '\n', all.bytes - at);
        bytes = end ? (size_t)(end - all.at) + 1 - at : all.bytes - at;
        if (++n == line) *part = (tn_text){all.at + at, bytes};
    }
    return n;
}

/* Writes the file without its line, if it has that many, into the temporary folder, and replaces its name by the new
 * one. Returns the number of lines; -1: raised. */
static int64_t cut_file(const debugging *d, const char **path, int64_t line, const char *name)
{
    static char    to[2][1024]; /* a run has one text, or two of translations */
    static int     files;
    struct stat    st;
    tn_text        part = {0};
    int64_t        lines = -1;
    const tn_scope s = tn_scope_begin();
    if (!tn__sys_stat(*path, &st) && S_ISDIR(st.st_mode))
        tn_raise(TN_EINVAL, "'%s' of --%s is a folder, but --without needs text files", *path, name);
    const tn_tensor *read = tn_file_read(*path, INT32_MAX);
    if (read && tn_error() == TN_OK) {
        const tn_text all = {tn_numel(read) ? tn_data(read) : "", (size_t)tn_numel(read)};
        lines = line_of(all, line, &part);
        if (lines >= line && part.bytes && files < 2) {
            char        *now_at = to[files++];
            const size_t before = (size_t)(part.at - all.at), after = before + part.bytes;
            tn_string    rest = {0};
            printf("without   line %lld of '%s': ", (long long)line, *path);
            debug_print_text((tn_text){part.at, part.bytes - (part.at[part.bytes - 1] == '\n')}, 0);
            printf("\n");
            tn_string_add(&rest, (tn_text){all.at, before});
            tn_string_add(&rest, (tn_text){all.at + after, all.bytes - after});
            *path = in_folder(d->scratch, files == 1 ? "text" : "other text", now_at);
            (void)!tn_file_write(*path, rest.at ? rest.at : "", rest.bytes); /* the caller sees the error */
            tn_string_free(&rest);
        }
    }
    tn_scope_end(s);
    return tn_error() == TN_OK ? lines : -1;
}

/* Removes the line from the texts that the options name. With several files, lines are counted over all of them. */
static bool cut_line(const debugging *d, int64_t line)
{
    static const char *const names[] = {"text", "src", "tgt"};
    int64_t                  lines = 0;
    bool                     any = false, cut = false;
    for (const option *o = d->train->options; o->name; o++)
        for (int k = 0; k < 3; k++) {
            if (strcmp(o->name, names[k]) != 0 || !program_given(o->name)) continue;
            option_list one = {1, o->to}, *all = o->kind == KIND_LIST ? o->to : &one;
            bool        found = false;
            lines = 0, any = true;
            for (int i = 0; i < all->count && !found; i++) {
                const int64_t n = cut_file(d, &all->value[i], line - lines, o->name);
                if (n < 0) return false;
                found = line - lines <= n, lines += n;
            }
            cut = cut || found;
        }
    if (!any)
        return tn_raise_false(TN_EINVAL, "--without removes a line of a text, but '%s' was trained on images", d->run);
    return cut || tn_raise_false(TN_EINVAL, "--without is %lld, but the text has %lld lines", (long long)line,
                                 (long long)lines);
}

/* ---- what changed ------------------------------------------------------------------------------------------------ */

static void print_tokenizer(const debugging *d)
{
    tn_tokenizer *was = d->t->tokens ? tn_tokenizer_load(d->run) : NULL;
    int64_t       other = 0;
    const int64_t n = was ? tn_tokenizer_size(was) : 0, now = was ? tn_tokenizer_size(d->t->tokens) : 0;
    for (int64_t i = 0; i < n && i < now; i++)
        other += strcmp(tn_tokenizer_token(was, i), tn_tokenizer_token(d->t->tokens, i)) != 0;
    if (was)
        printf("tokenizer %lld of %lld tokens differ\n", (long long)(other + llabs(n - now)),
               (long long)(n > now ? n : now));
    tn_tokenizer_free(was);
}

static void print_losses(const debugging *d)
{
    enum { LINES = 5 };
    const history *h = &d->h;
    int64_t        first = h->first, valid = d->room - 1;
    while (first < d->room && (h->loss[first] == d->other[first] || isnan(d->other[first]))) first++;
    if (first < d->room) printf("differs   from step %lld on\n", (long long)first);
    else printf("differs   in no loss\n"), first = h->first;
    printf("\n%10s  %12s  %12s  %12s\n", "step", "loss", "without it", "difference");
    for (int64_t k = 0, last = 0; k <= LINES; k++) {
        const int64_t i = k ? h->first + (d->room - 1 - h->first) * k / LINES : first;
        if (i > last)
            printf("%10lld  %12.6g  %12.6g  %12.3g\n", (long long)i, h->loss[i], d->other[i], d->other[i] - h->loss[i]);
        if (i > last) last = i;
    }
    while (valid > 0 && (isnan(h->valid[valid]) || isnan(d->other_valid[valid]))) valid--;
    if (valid > 0)
        printf("%10s  %12.6g  %12.6g  %12.3g   (step %lld)\n", "validation", h->valid[valid], d->other_valid[valid],
               d->other_valid[valid] - h->valid[valid], (long long)valid);
}

typedef struct {
    double difference, size; /* sums of squares */
} distance;

/* Adds a weight of two models to the distance; false: raised. */
static bool add_distance(const tn_safetensors *a, int64_t i, const tn_safetensors *b, int64_t k, distance *to)
{
    const tn_scope s = tn_no_grad_begin();
    tn_tensor     *x = tn_safetensors_get_at(a, i), *y = tn_safetensors_get_at(b, k);
    tn_tensor *p = x ? tn_empty_of(TN_F64, tn_shape_of(x)) : NULL, *q = y ? tn_empty_of(TN_F64, tn_shape_of(y)) : NULL;
    if (p && q && tn_copy_from(p, x) == TN_OK && tn_copy_from(q, y) == TN_OK) {
        const double *u = tn_data(p), *v = tn_data(q);
        for (int64_t e = 0; e < tn_numel(p); e++) {
            to->difference += (u[e] - v[e]) * (u[e] - v[e]);
            to->size += u[e] * u[e];
        }
    }
    tn_scope_end(s);
    return tn_error() == TN_OK;
}

static bool same_shape(tn_shape a, tn_shape b) { return a.n == b.n && !memcmp(a.d, b.d, (size_t)a.n * sizeof *a.d); }

static double relative(distance d) { return d.size > 0 ? sqrt(d.difference / d.size) : sqrt(d.difference); }

/* Compares the weights of the two models by name. Those of other shapes, as of another vocabulary, are counted. */
static bool print_weights(const debugging *d)
{
    char            path[2][1024], name[256] = "";
    tn_safetensors *was = tn_safetensors_open(in_folder(d->run, "model.safetensors", path[0])),
                   *now = tn_safetensors_open(in_folder(d->folder, "model.safetensors", path[1]));
    distance all = {0};
    double   most = -1;
    int64_t  same = 0, equal = 0, others = 0;
    for (int64_t i = 0; now && i < tn_safetensors_count(was) && tn_error() == TN_OK; i++) {
        const tn_safetensors_entry e = tn_safetensors_at(was, i);
        const int64_t              k = tn_safetensors_find(now, e.name);
        distance                   one = {0};
        if (k < 0 || !same_shape(e.shape, tn_safetensors_at(now, k).shape)) {
            others++;
            continue;
        }
        if (!add_distance(was, i, now, k, &one)) break;
        all.difference += one.difference, all.size += one.size, same++;
        equal += one.difference == 0;
        if (relative(one) > most) most = relative(one), snprintf(name, sizeof name, "%.255s", e.name);
    }
    tn_safetensors_close(was), tn_safetensors_close(now);
    if (tn_error() != TN_OK) return false;
    printf("\nweights   distance %.4g, relative to their norm; %lld of %lld tensors are equal\n", relative(all),
           (long long)equal, (long long)(same + others));
    if (others) printf("          %lld tensors have another shape, and are not compared\n", (long long)others);
    if (most > 0) printf("          the largest distance: %.4g, of %s\n", most, name);
    return true;
}

/* ---- the run ----------------------------------------------------------------------------------------------------- */

/* A run that was stopped ends at the same step; one that ended by itself may end at another one. */
static int64_t end_of(const debugging *d)
{
    const history *h = &d->h;
    const int64_t  n = h->part[h->parts - 1].steps;
    return d->t->fit.patience || h->last >= n ? n : h->last;
}

static bool repeat_without(debugging *d, tn_json_writer *w)
{
    training *t = d->t;
    if (!replay_texts(t, d->folder) || !replay_model(t)) return false;
    const int64_t steps = replay_steps(t, d->run);
    if (!(d->config = train_describe(t, steps, w))) return false;
    if (d->h.parts == 1) d->h.part[0].steps = steps; /* --epochs of a shorter text */
    const int64_t end = end_of(d);
    d->room = (end < d->h.last ? end : d->h.last) + 1;
    d->other = malloc((size_t)d->room * sizeof *d->other), d->other_valid = malloc((size_t)d->room * sizeof *d->other);
    if (!d->other || !d->other_valid) return tn_raise_false(TN_ENOMEM, "no memory for %lld steps", (long long)d->room);
    for (int64_t i = 0; i < d->room; i++) d->other[i] = d->other_valid[i] = NAN;
    if (!debug_repeat(d, 1, end)) return false;
    tn_module_train(t->net, false);
    return t->kind->save(t, d->why);
}

bool debug_without(debugging *d, int64_t line, const char *out)
{
    char            checkpoints[1024], path[1024];
    tn_json_writer *w = tn_json_writer_new(2);
    bool            made = false;
    d->without = true, d->folder = out ? out : d->scratch;
    if (!file_exists(in_folder(d->run, "model.safetensors", path)))
        tn_raise(TN_EIO, "'%s' does not exist: the training did not end, so that there is no model to compare with",
                 path);
    if (out && file_exists(in_folder(out, "checkpoints", checkpoints)))
        tn_raise(TN_EINVAL, "'%s' already exists; choose another folder for --out", checkpoints);
    bool good = w && tn_error() == TN_OK && cut_line(d, line) && (!out || record_check_folder(out)) && (made = true) &&
                repeat_without(d, w);
    if (good) print_tokenizer(d), print_losses(d);
    good = good && print_weights(d);
    if (out && made) replay_delete(checkpoints);
    free(d->other), free(d->other_valid);
    d->config = NULL;
    tn_json_writer_free(w);
    return good && tn_error() == TN_OK;
}
