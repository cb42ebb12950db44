/* options.h — the command line of a program: its commands, their options, and --help that teaches.
 *
 *     static int64_t      steps = 1000;                         // the default, which --help shows
 *     static const char  *out;
 *     static const option train_options[] = {
 *         OPTION_TEXT("out", 'o', "DIR", &out, "where the model goes", .required = true),
 *         OPTION_INT("steps", 0, "N", &steps, "how many steps", .least = 1),
 *         {0}};
 *     static const command commands[] = {
 *         {.name = "train", .summary = "train a model", .options = train_options, .run = train, .operands = "FILE...",
 *          .least = 1, .most = -1},
 *         {0}};
 *     static const program bert = {.name = "bert", .summary = "masked language models", .commands = commands};
 *     int main(int argc, char **argv) { return program_main(&bert, argc, argv); }
 *
 * GNU's conventions: --name=value and --name value, -n value and -nvalue, letters of flags together, operands anywhere,
 * -- ends the options. A program of one command gives it no name. A wrong command line is two lines on standard error
 * and exit code 2. Every command also has --help, --version, --quiet, --verbose, --threads, --color, --no-progress. */
#ifndef TENON_EXAMPLES_COMMON_OPTIONS_H
#define TENON_EXAMPLES_COMMON_OPTIONS_H

#include <tenon/tenon.h>

typedef enum { KIND_FLAG = 0, KIND_INT, KIND_REAL, KIND_TEXT, KIND_LIST } option_kind;

/* One value or more, up to the next option; the option may come again. With .single it takes one value each time, so
 * that operands may follow. */
typedef struct {
    int          count;
    const char **value;
} option_list;

typedef struct {
    const char *name;
    char        letter; /* 0: none */
    option_kind kind;
    const char *value; /* what help calls it: "N", "DIR" */
    const char *help;  /* what it does, as a phrase */
    void       *to;    /* holds the default before */
    bool        required, single;
    double      least, most; /* of numbers; both 0: any */
    const char *choices;     /* of a text: "f32|bf16" */
} option;

/* The type of `to` is checked. The help comes last, perhaps followed by .required, .least, .most, .choices. */
#define OPTION_FLAG(n, l, t, ...) OPTION_(KIND_FLAG, bool *, n, l, NULL, t, __VA_ARGS__)
#define OPTION_INT(n, l, v, t, ...) OPTION_(KIND_INT, int64_t *, n, l, v, t, __VA_ARGS__)
#define OPTION_REAL(n, l, v, t, ...) OPTION_(KIND_REAL, double *, n, l, v, t, __VA_ARGS__)
#define OPTION_TEXT(n, l, v, t, ...) OPTION_(KIND_TEXT, const char **, n, l, v, t, __VA_ARGS__)
#define OPTION_LIST(n, l, v, t, ...) OPTION_(KIND_LIST, option_list *, n, l, v, t, __VA_ARGS__)
#define OPTION_(k, type, n, l, v, t, ...)                                                                      \
    {                                                                                                          \
        .name = (n), .letter = (l), .kind = (k), .value = (v), .to = 1 ? (t) : (type)NULL, .help = __VA_ARGS__ \
    }

typedef struct {
    const char   *name, *summary;           /* "train", "train a model from text files" */
    const option *options;                  /* the last is {0}; or NULL */
    int (*run)(int count, char **operands); /* returns the exit code: program_end() at its end */
    const char *text;                       /* paragraphs for --help, examples above all; or NULL */
    const char *operands;                   /* "FILE..."; NULL: none */
    int         least, most;                /* how many; most -1: any number */
} command;

/* A command of a file of its own, whose function is run; perhaps followed by .operands, .least, .most, and .text. */
#define COMMAND(n, s, o, ...)                                                \
    {                                                                        \
        .name = (n), .summary = (s), .options = (o), .run = run, __VA_ARGS__ \
    }

typedef struct {
    const char    *name, *summary;
    const command *commands; /* the last is {0} */
    const char    *text;
    tn_world *(*world)(const void *communicator); /* PROGRAM_WORLD, in one that knows --ranks */
} program;
#ifdef PROGRAM_MPI /* linked with tenon::mpi */
#define PROGRAM_WORLD tn_world_mpi
#else
#define PROGRAM_WORLD NULL
#endif
/* One of `ranks` processes that do the same, under MPI; one that is not yet starts them, and is replaced by them. 0: as
 * many as there are, NULL if it is only this one. NULL: that, or raised. */
tn_world *program_ranks(int64_t ranks);

/* What every command can be told. */
typedef struct {
    bool        quiet, verbose, no_progress;
    int64_t     threads;
    const char *color;
} program_settings;
extern program_settings settings;

enum {
    EXIT_OK = 0,
    EXIT_FAILED = 1,
    EXIT_USAGE = 2,
    EXIT_INPUT = 3, /* a file that is not what it should be */
    EXIT_MEMORY = 4,
    EXIT_IO = 5,
    EXIT_NUMERIC = 6, /* NaN: training went astray */
    EXIT_UNSUPPORTED = 7
    /* 130 and 143: ended by Ctrl-C or SIGTERM, after saving */
};

int program_main(const program *p, int argc, char **argv);

/* "bert train: ..." and a hint, on standard error; returns EXIT_USAGE. For what options alone cannot say. */
int program_usage(const char *fmt, ...) TN_PRINTF(1, 2);
/* Was the option on the command line? And 0, or program_usage where it was though it says nothing: "--NAME is for
 * WHAT", which is the option or the kind that is missing. */
bool program_given(const char *name);
int  program_stray(const char *name, const char *what);
/* The same of several, which `what` is said of; the names end with a NULL. */
int program_strays(const char *const *names, const char *what);
/* 0, or program_usage where both were given: "--ONE and --OTHER are two ways to say one thing: give one of them". */
int program_either(const char *one, const char *other);
/* The exit code: if an error stands, says it on standard error; a signal's if one ended the run. */
int program_end(void);
int program_exit_code(tn_status s);

/* The one of the names that was probably meant, or NULL. */
const char *program_nearest(const char *word, int n, const char *const *names);
/* May colours be written to this stream? --color, NO_COLOR, TERM, and whether it is a terminal. */
bool program_color(FILE *to);

#endif
