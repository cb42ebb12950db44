/* options.c — parses the command line; help.c writes --help. */
#define _GNU_SOURCE
#include "options.h"

#include "help.h"
#include "messages.h"
#include "ranks.h"
#include "stop.h"
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

program_settings settings;

static bool         want_help, want_version;
static const option common[] = {
    OPTION_INT("threads", 0, "N", &settings.threads, "use at most N threads; results do not depend on the number",
               .least = 1, .most = 512),
    OPTION_FLAG("quiet", 'q', &settings.quiet, "print only results and errors"),
    OPTION_FLAG("verbose", 'v', &settings.verbose, "print more details"),
    OPTION_FLAG("no-progress", 0, &settings.no_progress, "show no progress bar"),
    OPTION_TEXT("color", 0, "WHEN", &settings.color, "when to use colours: auto, always or never",
                .choices = "auto|always|never"),
    OPTION_FLAG("help", 'h', &want_help, "show this help"),
    OPTION_FLAG("version", 0, &want_version, "show the version, the CPU kernels and the number of threads"),
    {0}};

static struct {
    const program *program;
    const command *command;
    int            argc;
    char         **argv;      /* a copy of main's */
    option_list   *lists[16]; /* their values are allocated here */
    int            list_count;
    const char    *given[128]; /* names of the options on the command line */
    int            given_count;
} now;

/* ---- messages and exit codes ------------------------------------------------------------------------------------- */

int program_usage(const char *fmt, ...)
{
    const char *c = now.command && now.command->name ? now.command->name : "";
    va_list     ap;
    if (!ranks_first()) return EXIT_USAGE;
    va_start(ap, fmt);
    fprintf(stderr, "%s%s%s: ", now.program->name, *c ? " " : "", c);
    vfprintf(stderr, fmt, ap);
    fprintf(stderr, "\nTry '%s%s%s --help'.\n", now.program->name, *c ? " " : "", c);
    va_end(ap);
    return EXIT_USAGE;
}

tn_world *program_ranks(int64_t ranks)
{
    const int there = ranks_started();
    if (there == 1 && ranks > 1) ranks_launch((int)ranks, NULL, now.argc, now.argv);
    if (!ranks_first()) settings.quiet = settings.no_progress = true;
    if (tn_error() != TN_OK || (there == 1 && !ranks)) return NULL;
    return ranks_join(ranks ? (int)ranks : there, there, now.program->world);
}

int program_exit_code(tn_status s)
{
    switch (s) {
    case TN_OK: return EXIT_OK;
    case TN_ENOMEM: return EXIT_MEMORY;
    case TN_EIO: return EXIT_IO;
    case TN_EFORMAT: return EXIT_INPUT;
    case TN_ENUMERIC: return EXIT_NUMERIC;
    case TN_EUNSUPPORTED: return EXIT_UNSUPPORTED;
    default: return EXIT_FAILED;
    }
}

bool program_color(FILE *to)
{
    const char *no = getenv("NO_COLOR"), *term = getenv("TERM"), *when = settings.color;
    if (when && !strcmp(when, "always")) return true;
    if ((when && !strcmp(when, "never")) || (no && *no) || (term && !strcmp(term, "dumb"))) return false;
    return isatty(fileno(to)) != 0;
}

/* Prints the error in the words of a program. */
static void print_error(void)
{
    tn_error_state e;
    char           text[sizeof e.text];
    tn_error_push(&e), tn_error_pop(&e);
    message_for_user(e.text, now.command ? now.command->options : NULL, text, sizeof text);
    fprintf(stderr, program_color(stderr) ? "\033[1;31m%s:\033[0m %s\n" : "%s: %s\n",
            now.program ? now.program->name : "error", text);
}

int program_end(void)
{
    if (tn_error() == TN_OK) return stop_exit_code();
    if (ranks_first()) print_error();
    return program_exit_code(tn_error());
}

/* ---- suggestions for misspelled names ---------------------------------------------------------------------------- */

enum { WORD = 48 };

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

static int unknown_option(const char *name)
{
    const char *names[128];
    int         n = 0;
    for (const option *o = now.command->options; o && o->name && n < 100; o++) names[n++] = o->name;
    for (const option *o = common; o->name; o++) names[n++] = o->name;
    const char *near = program_nearest(name, n, names);
    return near ? program_usage("unknown option --%s; did you mean --%s?", name, near)
                : program_usage("unknown option --%s", name);
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

bool program_given(const char *name)
{
    for (int i = 0; i < now.given_count; i++)
        if (!strcmp(now.given[i], name)) return true;
    return false;
}

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
    if (!program_given(o->name) && now.given_count < 128) now.given[now.given_count++] = o->name;
}

static void set_flag(const option *o)
{
    mark_given(o);
    *(bool *)o->to = true;
}

/* Sets an option that is not a flag. Returns 0 or an exit code. */
static int set(const option *o, const char *value)
{
    char near[WORD];
    mark_given(o);
    switch (o->kind) {
    case KIND_FLAG: return 0;
    case KIND_INT: {
        char *end;
        errno = 0;
        const long long v = strtoll(value, &end, 10);
        if (!*value || *end || errno || !in_range(o, (double)v)) return out_of_range(o, value, "a whole number");
        *(int64_t *)o->to = v;
        return 0;
    }
    case KIND_REAL: {
        double v;
        if (!tn_parse_double(value, strlen(value), &v) || !in_range(o, v)) return out_of_range(o, value, "a number");
        *(double *)o->to = v;
        return 0;
    }
    case KIND_TEXT:
        if (o->choices && !is_choice(o->choices, value, near))
            return *near ? program_usage("--%s must be one of %s, got '%s'; did you mean %s?", o->name, o->choices,
                                         value, near)
                         : program_usage("--%s must be one of %s, got '%s'", o->name, o->choices, value);
        *(const char **)o->to = value;
        return 0;
    case KIND_LIST: {
        option_list *l = o->to;
        bool         known = false;
        for (int i = 0; i < now.list_count; i++) known = known || now.lists[i] == l;
        if (!known) {
            l->count = 0;
            l->value = calloc((size_t)now.argc, sizeof *l->value);
            if (!l->value || now.list_count == 16) return fputs("out of memory\n", stderr), EXIT_MEMORY;
            now.lists[now.list_count++] = l;
        }
        l->value[l->count++] = value;
        return 0;
    }
    }
    return 0;
}

/* ---- the command line -------------------------------------------------------------------------------------------- */

/* A long name may be shortened while it names one option: --temp for --temperature. */
static const option *find(const char *name, size_t length, char letter)
{
    const option *lists[2] = {now.command->options, common}, *longer = NULL;
    int           count = 0;
    for (int k = 0; k < 2; k++)
        for (const option *o = lists[k]; o && o->name; o++) {
            const bool starts = !letter && length >= 3 && !strncmp(o->name, name, length);
            if (letter ? o->letter == letter : strlen(o->name) == length && !strncmp(o->name, name, length)) return o;
            if (starts) longer = o, count++;
        }
    return count == 1 ? longer : NULL;
}

static bool looks_like_option(const char *a) { return a[0] == '-' && a[1]; }

/* Takes the option's value from `attached` or from argv after *i; a list takes all values up to the next option. */
static int take_values(const option *o, const char *attached, int argc, char **argv, int *i)
{
    int code = 0;
    if (attached) return set(o, attached);
    if (*i + 1 >= argc || (o->kind == KIND_LIST && looks_like_option(argv[*i + 1])))
        return program_usage("--%s needs %s: %s", o->name, o->value ? o->value : "a value", o->help);
    code = set(o, argv[++*i]);
    while (!code && o->kind == KIND_LIST && !o->single && *i + 1 < argc && !looks_like_option(argv[*i + 1]))
        code = set(o, argv[++*i]);
    return code;
}

static int long_option(int argc, char **argv, int *i)
{
    const char   *a = argv[*i] + 2, *equals = strchr(a, '=');
    const size_t  n = equals ? (size_t)(equals - a) : strlen(a);
    const option *o = find(a, n, 0);
    char          name[WORD];
    snprintf(name, sizeof name, "%.*s", (int)(n < WORD ? n : WORD - 1), a);
    if (!o) return unknown_option(name);
    if (o->kind != KIND_FLAG) return take_values(o, equals ? equals + 1 : NULL, argc, argv, i);
    if (equals) return program_usage("--%s takes no value", o->name);
    return set_flag(o), 0;
}

static int letters(int argc, char **argv, int *i)
{
    for (const char *a = argv[*i] + 1; *a; a++) {
        const option *o = find(NULL, 0, *a);
        if (!o) return program_usage("unknown option -%c", *a);
        if (o->kind != KIND_FLAG) return take_values(o, a[1] ? a + 1 : NULL, argc, argv, i);
        set_flag(o);
    }
    return 0;
}

/* Sets the options and moves the operands to the front of argv. Returns 0 or an exit code. */
static int parse(int argc, char **argv, int *operands)
{
    bool over = false;
    *operands = 0;
    for (int i = 0; i < argc; i++) {
        int code = 0;
        if (over || !looks_like_option(argv[i])) argv[(*operands)++] = argv[i];
        else if (!strcmp(argv[i], "--")) over = true;
        else code = argv[i][1] == '-' ? long_option(argc, argv, &i) : letters(argc, argv, &i);
        if (code) return code;
    }
    return 0;
}

static bool is_set(const option *o)
{
    switch (o->kind) {
    case KIND_TEXT: return *(const char **)o->to != NULL;
    case KIND_LIST: return ((option_list *)o->to)->count > 0;
    default: return true;
    }
}

static int check(int operands, char **argv)
{
    const command *c = now.command;
    for (const option *o = c->options; o && o->name; o++)
        if (o->required && !is_set(o)) return program_usage("--%s %s is required: %s", o->name, o->value, o->help);
    if (operands < c->least)
        return program_usage(operands ? "too few operands, expected %s" : "missing operand, expected %s", c->operands);
    if (c->most >= 0 && operands > c->most) return program_usage("unexpected argument '%s'", argv[c->most]);
    return 0;
}

static const command *choose(const program *p, const char *name, int *code)
{
    const char *names[64], *near;
    int         n = 0;
    for (const command *c = p->commands; c->run && n < 64; c++) {
        if (!strcmp(c->name, name)) return c;
        names[n++] = c->name;
    }
    near = program_nearest(name, n, names);
    *code = near ? program_usage("unknown command '%s'; did you mean %s?", name, near)
                 : program_usage("unknown command '%s'", name);
    return NULL;
}

static int version(void)
{
    printf("%s %s\n%s\n", now.program->name, tn_version(), tn_build_info());
    return EXIT_OK;
}

typedef struct {
    int    count, code;
    char **operands;
} call;
static void *run_command(void *user)
{
    call *c = user;
    c->code = now.command->run(c->count, c->operands);
    return NULL;
}

/* If the stack limit is small (ulimit -s 64), runs the command on a thread with a larger stack, which worker threads
 * get, too. */
static int on_enough_stack(int count, char **operands)
{
    enum { LEAST = 256 << 10, BYTES = 2 << 20 };
    call           c = {count, EXIT_FAILED, operands};
    struct rlimit  r;
    pthread_t      thread;
    pthread_attr_t a;
    if (getrlimit(RLIMIT_STACK, &r) != 0 || r.rlim_cur >= LEAST || pthread_attr_init(&a) != 0)
        return run_command(&c), c.code;
    pthread_attr_setstacksize(&a, BYTES), pthread_setattr_default_np(&a);
    if (pthread_create(&thread, &a, run_command, &c) != 0) run_command(&c);
    else pthread_join(thread, NULL);
    pthread_attr_destroy(&a);
    return c.code;
}

static int run(int argc, char **argv)
{
    const program *p = now.program;
    int            code = 0, operands = 0;
    if (p->commands->name) {
        if (argc < 1) return program_usage("missing command; '%s --help' lists the commands", p->name);
        if (!strcmp(argv[0], "--help") || !strcmp(argv[0], "-h")) return help_program(p, stdout), EXIT_OK;
        if (!strcmp(argv[0], "--version")) return version();
        if (!(now.command = choose(p, argv[0], &code))) return code;
        argc--, argv++;
    } else {
        now.command = p->commands;
    }
    if ((code = parse(argc, argv, &operands))) return code;
    if (want_help) return help_command(p, now.command, common, stdout), EXIT_OK;
    if (want_version) return version();
    if ((code = check(operands, argv))) return code;
    tn_set_threads((int)settings.threads);
    return on_enough_stack(operands, argv);
}

/* Opens standard streams that are closed at the start. Otherwise the next file would get their descriptor, and printed
 * text would be written into it. */
static void streams_open(void)
{
    for (int fd = 0; fd <= 2; fd++)
        if (fcntl(fd, F_GETFD) < 0 && open("/dev/null", fd ? O_WRONLY : O_RDONLY) != fd) _exit(EXIT_IO);
}

int program_main(const program *p, int argc, char **argv)
{
    streams_open();
    settings = (program_settings){.color = "auto"};
    signal(SIGPIPE, SIG_DFL); /* `… | head -1` ends a program quietly, also where its parent ignores the signal */
    want_help = want_version = false;
    now.program = p, now.command = NULL, now.argc = argc, now.list_count = now.given_count = 0;
    if (!(now.argv = calloc((size_t)argc + 1, sizeof *now.argv))) return fputs("out of memory\n", stderr), EXIT_MEMORY;
    memcpy(now.argv, argv, (size_t)argc * sizeof *argv);
    int code = run(argc - 1, argv + 1);
    free(now.argv);
    for (int i = 0; i < now.list_count; i++) free(now.lists[i]->value), *now.lists[i] = (option_list){0, NULL};
    if (fflush(stdout) != 0 || ferror(stdout)) {
        fprintf(stderr, "%s: cannot write to standard output\n", p->name);
        if (!code) code = EXIT_IO;
    }
    return code;
}
