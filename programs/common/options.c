/* options.c — parses the command line; help.c writes --help. */
#include "core/system/system.h"

#include "argument_file.h"
#include "command_line.h"
#include "completion.h"
#include "files.h"
#include "help.h"
#include "inputs.h"
#include "messages.h"
#include "ranks.h"
#include "resume.h"
#include "stop.h"
#include <ctype.h>
#include <errno.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

program_settings settings;

static bool  want_help, want_short, want_version; /* want_short: by -h */
const option common_options[] = {
    OPTION_INT(
        "threads", 0, "N", &settings.threads,
        "use at most N threads; results do not depend on the number (default: the cores that the process may use)",
        .least = 1, .most = 512),
    OPTION_FLAG("quiet", 'q', &settings.quiet, "print only results, warnings and errors"),
    OPTION_FLAG("verbose", 'v', &settings.verbose, "print more details"),
    OPTION_FLAG("no-progress", 0, &settings.no_progress, "show no progress bar"),
    OPTION_TEXT("color", 0, "WHEN", &settings.color, "when to use colours: auto, always or never",
                .choices = "auto|always|never"),
    OPTION_FLAG("help", 'h', &want_help, "show this help; -h is the short one"),
    OPTION_FLAG("version", 0, &want_version, "show the version, the CPU kernels and the number of threads"),
    {0}};

command_line now;

char *keep_string(char *s)
{
    char **more = s ? realloc(now.kept, (size_t)(now.kept_count + 1) * sizeof *more) : NULL;
    if (!more) return free(s), fputs("out of memory\n", stderr), NULL;
    now.kept = more;
    return now.kept[now.kept_count++] = s;
}

/* ---- messages and exit codes ------------------------------------------------------------------------------------- */

int program_usage(const char *fmt, ...)
{
    const char *c = now.command && now.command->name ? now.command->name : "";
    char        text[2048], named[2100];
    va_list     ap;
    if (!ranks_first()) return EXIT_USAGE;
    va_start(ap, fmt);
    vsnprintf(text, sizeof text, fmt, ap);
    va_end(ap);
    fprintf(stderr, "%s%s%s: %s", now.program->name, *c ? " " : "", c, message_name(text, named, sizeof named));
    fprintf(stderr, "\nTry '%s%s%s --help'.\n", now.program->name, *c ? " " : "", c);
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

static bool printed; /* the error, since program_end */

/* Prints the error in the words of a program: once, and on the first rank only. */
static void print_error(void)
{
    const char    *name = now.program ? now.program->name : "error", *own = now.program ? now.name : name, *from;
    const size_t   n = strlen(own);
    tn_error_state e;
    char           text[sizeof e.text];
    if (tn_error() == TN_OK || printed || !ranks_first()) return;
    printed = true;
    tn_error_push(&e), tn_error_pop(&e);
    from = !strncmp(e.text, own, n) && !strncmp(e.text + n, ": ", 2) ? e.text + n + 2 : e.text; /* once is enough */
    message_for_user(from, now.command ? now.command->options : NULL, text, sizeof text);
    fprintf(stderr, program_color(stderr) ? "\033[1;31m%s:\033[0m %s\n" : "%s: %s\n", name, text);
}

void program_leave(tn_world *w)
{
    if (tn_world_size(w) > 1 && tn_world_barrier(w) != TN_OK) print_error();
    tn_world_free(w);
}

int program_end(void)
{
    if (tn_error() == TN_OK) return stop_exit_code();
    print_error();
    printed = false;
    return program_exit_code(tn_error());
}

/* ---- the command line -------------------------------------------------------------------------------------------- */

static const option *options_of(int list) { return list ? common_options : now.command ? now.command->options : NULL; }

const option *exact_option(const char *name)
{
    for (int k = 0; k < 2; k++)
        for (const option *o = options_of(k); o && o->name; o++)
            if (!strcmp(o->name, name)) return o;
    return NULL;
}

/* A long name may be shortened while it names one option: --temp for --temperature. */
static const option *find(const char *name, size_t length, char letter)
{
    const option *longer = NULL;
    int           count = 0;
    for (int k = 0; k < 2; k++)
        for (const option *o = options_of(k); o && o->name; o++) {
            const bool starts = !letter && length >= 3 && !strncmp(o->name, name, length);
            if (letter ? o->letter == letter : strlen(o->name) == length && !strncmp(o->name, name, length)) return o;
            if (starts) longer = o, count++;
        }
    return count == 1 ? longer : NULL;
}

int program_unknown(const char *name)
{
    const char *names[MOST_OPTIONS];
    int         n = 0;
    for (int k = 0; k < 2; k++)
        for (const option *o = options_of(k); o && o->name && n < MOST_OPTIONS; o++) names[n++] = o->name;
    const char *near = program_nearest(name, n, names);
    if (!now.command && !near) return program_usage("unknown option --%s; a command's options follow its name", name);
    return near ? program_usage("unknown option --%s; did you mean --%s?", name, near)
                : program_usage("unknown option --%s", name);
}

static bool looks_like_option(const char *a) { return a[0] == '-' && a[1]; }

/* Takes the option's value from `attached` or from the word after *i; a list takes all up to the next option. */
static int take_values(const option *o, const char *attached, int *i)
{
    int code = 0;
    if (attached) return set_option(o, attached);
    if (*i + 1 >= now.argc || (o->kind == KIND_LIST && looks_like_option(now.argv[*i + 1])))
        return program_usage("--%s needs %s: %s", o->name, o->value ? o->value : "a value", o->help);
    code = set_option(o, now.argv[++*i]);
    while (!code && o->kind == KIND_LIST && !o->single && *i + 1 < now.argc && !looks_like_option(now.argv[*i + 1]))
        code = set_option(o, now.argv[++*i]);
    return code;
}

static int long_option(int *i)
{
    const char   *a = now.argv[*i] + 2, *equals = strchr(a, '=');
    const size_t  n = equals ? (size_t)(equals - a) : strlen(a);
    const option *o = find(a, n, 0);
    char          name[LONGEST_NAME];
    snprintf(name, sizeof name, "%.*s", (int)(n < sizeof name ? n : sizeof name - 1), a);
    if (!o) return program_unknown(name);
    if (o->kind != KIND_FLAG) return take_values(o, equals ? equals + 1 : NULL, i);
    if (equals) return program_usage("--%s takes no value", o->name);
    return set_flag(o), 0;
}

/* -steps for --steps: one hyphen before the name of an option. */
static bool is_long(const char *word)
{
    char         name[LONGEST_NAME];
    const size_t n = strcspn(word, "=");
    snprintf(name, sizeof name, "%.*s", (int)(n < sizeof name ? n : sizeof name - 1), word);
    return n > 2 && exact_option(name);
}

static int letters(int *i)
{
    if (is_long(now.argv[*i] + 1))
        return program_usage("unknown option %s; did you mean -%s?", now.argv[*i], now.argv[*i]);
    for (const char *a = now.argv[*i] + 1; *a; a++) {
        const option *o = find(NULL, 0, *a);
        if (!o) return program_usage("unknown option -%c", *a);
        if (o->kind != KIND_FLAG) return take_values(o, a[1] ? a + 1 : NULL, i);
        set_flag(o);
        if (*a == 'h') want_short = true;
    }
    return 0;
}

static int one_option(int *i) { return now.argv[*i][1] == '-' ? long_option(i) : letters(i); }

/* Is the word @FILE, and can the file be read? Otherwise it is an operand, as the text "@home". */
static bool names_arguments(const char *word) { return word[0] == '@' && word[1] && !access(word + 1, R_OK); }

/* Sets the options before the command. Returns the index of the command, or -1 with *code. */
static int parse_start(int *code)
{
    int i = 1;
    for (; i < now.argc && !*code; i++)
        if (names_arguments(now.argv[i])) *code = argument_file_insert(i--);
        else if (!looks_like_option(now.argv[i])) break;
        else *code = one_option(&i);
    return *code ? -1 : i;
}

/* Sets the options from the word i, and collects the operands. Returns 0 or an exit code. */
static int parse(int i)
{
    bool over = false;
    for (int code = 0; i < now.argc; i++) {
        char *const word = now.argv[i];
        if (!over && names_arguments(word)) {
            if ((code = argument_file_insert(i--))) return code;
            continue;
        }
        if (over || !looks_like_option(word)) {
            char **more = realloc(now.operands, (size_t)(now.operand_count + 2) * sizeof *more);
            if (!more) return fputs("out of memory\n", stderr), EXIT_MEMORY;
            now.operands = more, more[now.operand_count++] = word, more[now.operand_count] = NULL;
        } else if (!strcmp(word, "--")) over = true;
        else if ((code = one_option(&i))) return code;
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

static int check(void)
{
    const command *c = now.command;
    const int      n = now.operand_count;
    for (const option *o = c->options; o && o->name; o++)
        if (o->required && !is_set(o)) return program_usage("--%s %s is required: %s", o->name, o->value, o->help);
    if (n < c->least)
        return program_usage(n ? "too few operands, expected %s" : "missing operand, expected %s", c->operands);
    if (c->most < 0 || n <= c->most) return 0;
    const char *extra = now.operands[c->most];
    return program_usage("unexpected argument '%s'%s", extra,
                         *extra == '@' && !names_arguments(extra) ? "; this file of options cannot be read" : "");
}

/* Warns if a file is both training text and validation or test text. */
static void warn_same_files(void)
{
    static const char *const trained[] = {"text", "train", "src", "tgt", "pairs", "chat", NULL};
    static const char *const tested[] = {"valid", "test", "valid-src", "valid-tgt", NULL};
    for (int i = 0; trained[i]; i++)
        for (int k = 0; tested[k]; k++) {
            const option      *a = exact_option(trained[i]), *b = exact_option(tested[k]);
            const char *const *from, *const *to;
            const int n = a ? option_values(a, &from) : 0, m = b ? option_values(b, &to) : 0;
            for (int j = 0; j < n * m; j++)
                if (file_exists(from[j / m]) && same_file(from[j / m], to[j % m]))
                    warn("'%s' is both --%s and --%s: the result says nothing about texts that are not trained on\n",
                         to[j % m], a->name, b->name);
        }
}

static const command *choose(const program *p, const char *name, int *code)
{
    const char *names[64], *near;
    int         n = 0;
    for (const command *c = p->commands; c->run && n < 62; c++) {
        if (!strcmp(c->name, name)) return c;
        names[n++] = c->name;
    }
    names[n++] = "help", names[n++] = "completion";
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

/* PROGRAM help [COMMAND] and PROGRAM completion SHELL, which every program with commands has. */
static int own_command(const char *name, int i)
{
    const program *p = now.program;
    const char    *operand = i < now.argc ? now.argv[i] : NULL;
    int            code = 0;
    if (i + 1 < now.argc)
        return program_usage("unexpected argument '%s' after '%s %s'", now.argv[i + 1], name, operand);
    if (strcmp(name, "help") != 0) return completion_print(p, operand);
    if (!operand) return help_program(p, stdout), EXIT_OK;
    const command *c = choose(p, operand, &code);
    if (c) help_command(p, c, common_options, stdout);
    return code;
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

/* Keeps the defaults of the options, with which --resume compares. */
static void keep_defaults(void)
{
    const option *o = now.command->options;
    for (int i = 0; o && o[i].name && i < MOST_OPTIONS; i++) {
        if (o[i].kind == KIND_FLAG) now.before[i].flag = *(bool *)o[i].to;
        if (o[i].kind == KIND_INT) now.before[i].whole = *(int64_t *)o[i].to;
        if (o[i].kind == KIND_REAL) now.before[i].real = *(double *)o[i].to;
        if (o[i].kind == KIND_TEXT) now.before[i].text = *(const char **)o[i].to;
    }
}

static int run_command_line(int i)
{
    int code = parse(i);
    if (code) return code;
    if (want_help && want_short) return help_short(now.program, now.command, stdout), EXIT_OK;
    if (want_help) return help_command(now.program, now.command, common_options, stdout), EXIT_OK;
    if (want_version) return version();
    now.typed = now.given_count;
    if ((code = resume_restore()) || (code = check())) return code;
    if (!inputs_check()) return program_end();
    warn_same_files();
    resume_keep();
    if (now.drawn && !settings.quiet) tell("seed     %lld\n", (long long)*(int64_t *)now.drawn->to);
    tn_set_threads((int)settings.threads);
    call c = {now.operand_count, EXIT_FAILED, now.operands};
    tn__sys_on_enough_stack(run_command, &c);
    return c.code;
}

static int run(void)
{
    const program *p = now.program;
    int            code = 0, i = 1;
    if (p->commands->name) {
        if ((i = parse_start(&code)) < 0) return code;
        if (i < now.argc && (!strcmp(now.argv[i], "help") || !strcmp(now.argv[i], "completion")))
            return own_command(now.argv[i], i + 1);
        if (i == now.argc && want_help) return help_program(p, stdout), EXIT_OK;
        if (i == now.argc && want_version) return version();
        if (i == now.argc) return program_usage("missing command; '%s --help' lists the commands", p->name);
        if (!(now.command = choose(p, now.argv[i++], &code))) return code;
    } else {
        now.command = p->commands;
    }
    keep_defaults();
    return run_command_line(i);
}

/* ---- the command line as text ------------------------------------------------------------------------------------ */

void program_quote(const char *word, tn_string *to)
{
    static const char plain[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_./=,:+%@";
    if (*word && strspn(word, plain) == strlen(word)) {
        tn_string_add(to, tn_text_of(word));
        return;
    }
    tn_string_add(to, tn_text_of("'"));
    for (const char *at = word; *at; at++) tn_string_add(to, *at == '\'' ? tn_text_of("'\\''") : (tn_text){at, 1});
    tn_string_add(to, tn_text_of("'"));
}

void program_line(tn_string *to)
{
    tn_string_add(to, tn_text_of(now.program->name));
    for (int i = 1; i < now.argc; i++) tn_string_add(to, tn_text_of(" ")), program_quote(now.argv[i], to);
}

int program_files(const char **to, int most)
{
    int n = 0;
    for (const option *o = now.command ? now.command->options : NULL; o && o->name; o++) {
        if (!o->value || strcmp(o->value, "FILE") != 0 || !program_given(o->name)) continue;
        const option_list *l = o->to;
        if (o->kind == KIND_TEXT && n < most) to[n++] = *(const char **)o->to;
        for (int i = 0; o->kind == KIND_LIST && i < l->count && n < most; i++) to[n++] = l->value[i];
    }
    return n;
}

/* The program by the name of the file argv[0], which a package or a link may have changed. */
static program started_as(const program *p, const char *path)
{
    static const char plain[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_-.+";
    program           named = *p;
    const char       *slash = path ? tn__sys_last_slash(path) : NULL, *base = slash ? slash + 1 : path;
    if (base && isalnum((unsigned char)*base) && strspn(base, plain) == strlen(base)) named.name = base;
    return named;
}

const command *program_command(void) { return now.command; }

int program_main(const program *p, int argc, char **argv)
{
    if (!tn__sys_start(&argc, &argv)) return EXIT_IO;
    const program named = started_as(p, argc ? argv[0] : NULL);
    settings = (program_settings){.color = "auto"};
    want_help = want_short = want_version = false;
    now = (command_line){
        .program = &named, .name = p->name, .argc = argc, .argv = calloc((size_t)argc + 1, sizeof *now.argv)};
    if (!now.argv) return fputs("out of memory\n", stderr), EXIT_MEMORY;
    memcpy(now.argv, argv, (size_t)argc * sizeof *argv);
    int code = tn_extras_register() == TN_OK ? run() : program_end();
    for (int i = 0; i < now.list_count; i++) free(now.lists[i]->value), *now.lists[i] = (option_list){0, NULL};
    for (int i = 0; i < now.kept_count; i++) free(now.kept[i]);
    free(now.argv), free(now.operands), free(now.words), free(now.kept);
    now.argv = now.operands = now.kept = NULL;
    if (fflush(stdout) != 0 || ferror(stdout)) {
        fprintf(stderr, "%s: cannot write to standard output\n", named.name);
        if (!code) code = EXIT_IO;
    }
    now.program = NULL, now.name = NULL, now.command = NULL;
    return code;
}
