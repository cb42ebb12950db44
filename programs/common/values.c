/* values.c — the values of options: texts to numbers and back, choices, ranges, and misspelled names. */
#include "core/system/system.h"

#include "command_line.h"
#include "ranks.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

/* ---- suggestions for misspelled names ---------------------------------------------------------------------------- */

enum { WORD = LONGEST_NAME };

/* The edit distance: number of letters to insert, delete, replace or swap with their neighbour. */
static int distance(const char *a, const char *b)
{
    const int m = (int)strlen(a), n = (int)strlen(b);
    int       d[WORD + 1][WORD + 1];
    if (m > WORD || n > WORD) return WORD;
    for (int i = 0; i <= m; i++) d[i][0] = i;
    for (int j = 0; j <= n; j++) d[0][j] = j;
    for (int i = 1; i <= m; i++)
        for (int j = 1; j <= n; j++) {
            const int change = d[i - 1][j - 1] + (a[i - 1] != b[j - 1]);
            int       least = d[i - 1][j] < d[i][j - 1] ? d[i - 1][j] + 1 : d[i][j - 1] + 1;
            if (change < least) least = change;
            if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1] && d[i - 2][j - 2] + 1 < least)
                least = d[i - 2][j - 2] + 1;
            d[i][j] = least;
        }
    return d[m][n];
}

const char *program_nearest(const char *word, int n, const char *const *names)
{
    const char *best = NULL;
    const int   length = (int)strlen(word);
    int         least = 1 + (length < 3 ? 0 : length / 3); /* a larger distance is not a misspelling */
    for (int i = 0; i < n; i++) {
        const int  d = distance(word, names[i]);
        const bool begins = length >= 3 && !strncmp(word, names[i], (size_t)length);
        if (begins || d < least) best = names[i], least = begins ? 0 : d;
    }
    return best;
}

/* ---- values ------------------------------------------------------------------------------------------------------ */

static bool is_choice(const char *choices, const char *value, char nearest[WORD])
{
    const char *names[32], *near;
    char        copy[512];
    int         n = 0;
    snprintf(copy, sizeof copy, "%s", choices);
    for (char *p = copy; p && n < 32;) {
        char *bar = strchr(p, '|');
        if (bar) *bar++ = 0;
        if (!strcmp(p, value)) return true;
        names[n++] = p, p = bar;
    }
    near = program_nearest(value, n, names);
    snprintf(nearest, WORD, "%s", near ? near : "");
    return false;
}

static int out_of_range(const option *o, const char *value, const char *kind)
{
    char least[32], most[32];
    tn_format_double(o->least, least), tn_format_double(o->most, most);
    if (o->kind == KIND_INT) least[strcspn(least, ".")] = 0, most[strcspn(most, ".")] = 0;
    if (o->least == 0 && o->most == 0) return program_usage("--%s needs %s, got '%s'", o->name, kind, value);
    if (o->most > o->least)
        return program_usage("--%s needs %s from %s to %s, got '%s'", o->name, kind, least, most, value);
    return program_usage("--%s needs %s of at least %s, got '%s'", o->name, kind, least, value);
}

static bool in_range(const option *o, double v)
{
    return (o->least == 0 && o->most == 0) || (v >= o->least && (v <= o->most || o->most <= o->least));
}

bool option_text(const option *o, const void *at, char *to, size_t size)
{
    char number[32];
    switch (o->kind) {
    case KIND_FLAG: return snprintf(to, size, "set"), *(const bool *)at;
    case KIND_INT:
        if (!in_range(o, (double)*(const int64_t *)at)) return false;
        return snprintf(to, size, "%lld", (long long)*(const int64_t *)at), true;
    case KIND_REAL:
        if (isnan(*(const double *)at) || !in_range(o, *(const double *)at)) return false;
        tn_format_double(*(const double *)at, number);
        return snprintf(to, size, "%s", number), true;
    case KIND_TEXT:
        if (*(const char *const *)at) snprintf(to, size, "%s", *(const char *const *)at);
        return *(const char *const *)at != NULL;
    case KIND_LIST: break;
    }
    return false;
}

bool is_path(const option *o)
{
    const char *v = o->value ? o->value : "";
    return !strcmp(v, "FILE") || !strcmp(v, "PATH") || !strcmp(v, "DIR");
}

/* ---- which options are set --------------------------------------------------------------------------------------- */

static bool is_among(const char *name, int from, int to)
{
    for (int i = from; i < to; i++)
        if (!strcmp(now.given[i], name)) return true;
    return false;
}

bool program_given(const char *name) { return is_among(name, 0, now.given_count); }
bool program_typed(const char *name) { return is_among(name, 0, now.typed); }

int program_stray(const char *name, const char *what)
{
    return program_given(name) ? program_usage("--%s is for %s", name, what) : 0;
}

int program_strays(const char *const *names, const char *what)
{
    int code = 0;
    while (*names && !code) code = program_stray(*names++, what);
    return code;
}

int program_either(const char *one, const char *other)
{
    if (!program_given(one) || !program_given(other)) return 0;
    return program_usage("--%s and --%s exclude each other; give only one of them", one, other);
}

static void mark_given(const option *o)
{
    if (!program_given(o->name) && now.given_count < MOST_OPTIONS) now.given[now.given_count++] = o->name;
}

/* ---- setting them ------------------------------------------------------------------------------------------------ */

void set_flag(const option *o)
{
    mark_given(o);
    *(bool *)o->to = true;
}

static int set_whole(const option *o, const char *value)
{
    char *end;
    errno = 0;
    const long long v = strtoll(value, &end, 10);
    if (!*value || *end || errno || !in_range(o, (double)v)) return out_of_range(o, value, "a whole number");
    *(int64_t *)o->to = v;
    return 0;
}

static int add_to_list(option_list *l, const char *value)
{
    bool known = false;
    for (int i = 0; i < now.list_count; i++) known = known || now.lists[i] == l;
    if (!known && now.list_count < MOST_LISTS) *l = (option_list){0, NULL}, now.lists[now.list_count++] = l;
    const char **more = realloc(l->value, ((size_t)l->count + 1) * sizeof *more);
    if (!more) return fputs("out of memory\n", stderr), EXIT_MEMORY;
    l->value = more, l->value[l->count++] = value;
    return 0;
}

/* The random seed of --seed random: at most nine digits, so that it can be typed again. Replaces the word in the
 * command line, which --ranks passes to other processes. */
static int set_random_seed(const option *o, const char *value)
{
    uint32_t x = 0;
    if (ranks_started() > 1)
        return program_usage("--%s random cannot be used under mpirun, where each process would draw its own number; "
                             "give a number, or use --ranks",
                             o->name);
    if (!tn__sys_random(&x, sizeof x))
        return fprintf(stderr, "%s: no random number from the system\n", now.program->name), EXIT_FAILED;
    *(int64_t *)o->to = x % 1000000000U;
    for (int i = 1; i < now.argc; i++) {
        const char  *word = now.argv[i];
        const size_t n = (size_t)(value - word), all = strlen(word);
        if (value < word || value > word + all) continue;
        char *copy = keep_string(malloc(n + 12));
        if (!copy) return EXIT_MEMORY;
        snprintf(copy, n + 12, "%.*s%lld", (int)n, word, (long long)*(int64_t *)o->to);
        now.argv[i] = copy;
    }
    now.drawn = o;
    return 0;
}

int set_option(const option *o, const char *value)
{
    char   near[WORD];
    double v;
    mark_given(o);
    switch (o->kind) {
    case KIND_FLAG: return 0;
    case KIND_INT: return o->random && !strcmp(value, "random") ? set_random_seed(o, value) : set_whole(o, value);
    case KIND_REAL:
        if (!tn_parse_double(value, strlen(value), &v) || !in_range(o, v)) return out_of_range(o, value, "a number");
        *(double *)o->to = v;
        return 0;
    case KIND_TEXT:
        if (o->choices && !is_choice(o->choices, value, near))
            return *near ? program_usage("--%s must be one of %s, got '%s'; did you mean %s?", o->name, o->choices,
                                         value, near)
                         : program_usage("--%s must be one of %s, got '%s'", o->name, o->choices, value);
        *(const char **)o->to = value;
        return 0;
    case KIND_LIST: return add_to_list(o->to, value);
    }
    return 0;
}

int option_values(const option *o, const char *const **values)
{
    if (o->kind == KIND_LIST) return *values = ((option_list *)o->to)->value, ((option_list *)o->to)->count;
    *values = o->to;
    return o->kind == KIND_TEXT && **values ? 1 : 0;
}
