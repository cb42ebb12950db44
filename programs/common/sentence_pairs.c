/* sentence_pairs.c — see sentence_pairs.h. */
#include "sentence_pairs.h"

#include "numbers.h"
#include "progress.h"
#include "stop.h"

#include <stdlib.h>
#include <string.h>

enum { COLUMNS = 4, CHUNK = 128 /* sentences between two looks at the progress bar */ };

/* The index of the group of this name, which is added if it is new; -1: raised. */
static int64_t group_of(pairs_group **groups, int64_t *n, tn_text name)
{
    for (int64_t i = *n; i-- > 0;) /* the last ones first: lines of a paradigm are neighbours */
        if (strlen((*groups)[i].name) == name.bytes && !memcmp((*groups)[i].name, name.at, name.bytes)) return i;
    pairs_group *more = realloc(*groups, (size_t)(*n + 1) * sizeof *more);
    char        *copy = malloc(name.bytes + 1);
    if (more) *groups = more;
    if (!more || !copy) return free(copy), tn_raise(TN_ENOMEM, "out of memory"), -1;
    memcpy(copy, name.at, name.bytes), copy[name.bytes] = 0;
    more[*n] = (pairs_group){.name = copy};
    return (*n)++;
}

static bool add_sentence(sentence_pairs *p, tn_text s)
{
    const size_t at = p->text.bytes;
    if (at > INT32_MAX) return tn_raise_false(TN_EFORMAT, "the pairs of sentences take more than 2 GiB");
    return tn_ids_add(&p->at, (int32_t)at) == TN_OK && tn_string_add(&p->text, s) == TN_OK &&
           tn_string_add(&p->text, (tn_text){"", 1}) == TN_OK;
}

static bool add_pair(sentence_pairs *p, const tn_text column[COLUMNS], int64_t most)
{
    const int64_t of = group_of(&p->phenomenon, &p->phenomena, column[1]);
    const int64_t paradigm = of < 0 ? -1 : group_of(&p->paradigm, &p->paradigms, column[0]);
    if (paradigm < 0) return false;
    pairs_group *g = &p->paradigm[paradigm];
    if (most && g->pairs == most) return true;
    if (!g->pairs++) g->of = of;
    return tn_ids_add(&p->of, (int32_t)paradigm) == TN_OK && add_sentence(p, column[2]) && add_sentence(p, column[3]);
}

bool sentence_pairs_open(const char *path, int64_t most, sentence_pairs *to)
{
    static const char *const names[COLUMNS] = {"1", "2", "3", "4"};
    *to = (sentence_pairs){.mean = 0};
    tn_table *t = tn_table_open(path, .form = "tsv", .no_header = true);
    while (t && tn_table_next(t)) {
        tn_text column[COLUMNS];
        for (int i = 0; i < COLUMNS; i++) {
            column[i] = tn_table_text(t, names[i]);
            if (tn_error() == TN_EINDEX) tn_clear_error(), column[i].bytes = 0; /* the file has fewer columns */
            if (tn_error() == TN_OK && !column[i].bytes)
                tn_raise(TN_EFORMAT,
                         "'%s', line %lld: no column %d; expected paradigm, phenomenon, acceptable and unacceptable "
                         "sentence, separated by tabs",
                         path, (long long)tn_table_line(t), i + 1);
        }
        if (tn_error() != TN_OK || !add_pair(to, column, most)) break;
    }
    tn_table_free(t);
    if (tn_error() == TN_OK && !to->of.n) tn_raise(TN_EFORMAT, "'%s' has no pairs of sentences", path);
    if (tn_error() == TN_OK) return true;
    sentence_pairs_close(to);
    return false;
}

void sentence_pairs_close(sentence_pairs *p)
{
    for (int64_t i = 0; i < p->paradigms; i++) free(p->paradigm[i].name);
    for (int64_t i = 0; i < p->phenomena; i++) free(p->phenomenon[i].name);
    free(p->paradigm), free(p->phenomenon);
    tn_string_free(&p->text);
    tn_ids_free(&p->at), tn_ids_free(&p->of);
    *p = (sentence_pairs){.mean = 0};
}

/* The groups' accuracies, and the mean over paradigms. */
static void set_accuracies(sentence_pairs *p)
{
    p->mean = 0;
    for (int64_t i = 0; i < p->phenomena; i++) p->phenomenon[i].accuracy = 0, p->phenomenon[i].paradigms = 0;
    for (int64_t i = 0; i < p->paradigms; i++) {
        pairs_group *g = &p->paradigm[i], *of = &p->phenomenon[g->of];
        g->accuracy = 100 * (double)g->right / (double)g->pairs;
        of->accuracy += g->accuracy, of->paradigms++;
        p->mean += g->accuracy / (double)p->paradigms;
    }
    for (int64_t i = 0; i < p->phenomena; i++) p->phenomenon[i].accuracy /= (double)p->phenomenon[i].paradigms;
}

bool sentence_pairs_measure(sentence_pairs *p, pairs_score score, void *model, const tn_tokenizer *t, bool silent)
{
    const int64_t n = p->at.n;
    progress      bar = progress_begin("pairs", n / 2, "pair");
    bar.silent = bar.silent || silent;
    for (int64_t i = 0; i < p->paradigms; i++) p->paradigm[i].right = 0;
    for (int64_t from = 0; from < n && tn_error() == TN_OK && !stop_flag; from += CHUNK) {
        const int64_t count = from + CHUNK < n ? CHUNK : n - from;
        const char   *text[CHUNK];
        double        value[CHUNK];
        for (int64_t i = 0; i < count; i++) text[i] = p->text.at + p->at.at[from + i];
        const tn_scope s = tn_autocast_begin(tn_has_bf16()); /* twice as fast; the order of scores hardly changes */
        const bool     done = score(model, t, count, text, value) == TN_OK;
        tn_scope_end(s);
        if (!done) break;
        for (int64_t i = 0; i < count; i += 2) p->paradigm[p->of.at[(from + i) / 2]].right += value[i] > value[i + 1];
        progress_at(&bar, (from + count) / 2, NULL);
    }
    progress_end(&bar);
    set_accuracies(p);
    return tn_error() == TN_OK && !stop_flag;
}

void sentence_pairs_print(const sentence_pairs *p, bool json)
{
    if (json) {
        tn_json_writer *w = tn_json_writer_new(0);
        tn_json_open_object(w, NULL);
        tn_json_open_object(w, "phenomena");
        for (int64_t i = 0; i < p->phenomena; i++) numbers_put(w, p->phenomenon[i].name, p->phenomenon[i].accuracy, 4);
        tn_json_close(w);
        tn_json_open_object(w, "paradigms");
        for (int64_t i = 0; i < p->paradigms; i++) numbers_put(w, p->paradigm[i].name, p->paradigm[i].accuracy, 4);
        tn_json_close(w);
        tn_json_put_i64(w, "pairs", p->of.n);
        numbers_put(w, "mean", p->mean, 4);
        tn_json_close(w);
        const char *text = tn_json_text(w, NULL);
        if (text) printf("%s\n", text);
        tn_json_writer_free(w);
        return;
    }
    printf("%-28s %9s %9s\n", "phenomenon", "paradigms", "right, %");
    for (int64_t i = 0; i < p->phenomena; i++)
        printf("%-28s %9lld %9.2f\n", p->phenomenon[i].name, (long long)p->phenomenon[i].paradigms,
               p->phenomenon[i].accuracy);
    printf("%-28s %9lld %9.2f\n", "mean over paradigms", (long long)p->paradigms, p->mean);
}

void sentence_pairs_eval(const char *path, pairs_score score, void *model, const tn_tokenizer *t, bool json)
{
    sentence_pairs p;
    stop_begin("ending");
    if (!sentence_pairs_open(path, 0, &p)) return;
    if (sentence_pairs_measure(&p, score, model, t, false)) sentence_pairs_print(&p, json);
    sentence_pairs_close(&p);
}

int sentence_pairs_check(const char *path, int texts, char **operands)
{
    if (path && texts) return program_usage("--pairs has its own sentences; omit '%s'", operands[0]);
    return path || texts ? 0 : program_usage("no text to measure on; give a FILE, or --pairs");
}
