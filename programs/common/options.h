/* options.h — the command line of a program: commands, options, and --help.
 *
 *     static int64_t      steps = 1000;                         // the default, which --help shows
 *     static const char  *out;
 *     static const option train_options[] = {
 *         OPTION_TEXT("out", 'o', "DIR", &out, "the model's folder", .required = true),
 *         OPTION_INT("steps", 0, "N", &steps, "number of training steps", .least = 1),
 *         {0}};
 *     static const command commands[] = {
 *         {.name = "train", .summary = "train a model", .options = train_options, .run = train, .operands = "FILE...",
 *          .least = 1, .most = -1},
 *         {0}};
 *     static const program bert = {.name = "bert", .summary = "masked language models", .commands = commands};
 *     int main(int argc, char **argv) { return program_main(&bert, argc, argv); }
 *
 * GNU's conventions hold: --name=value and --name value, -n value and -nvalue, combined letters of flags, operands
 * anywhere, and -- ends the options. The command of a program with only one has no name. A wrong command line causes
 * two lines on standard error and exit code 2. Every command also has --help, --version, --quiet, --verbose, --threads,
 * --color and --no-progress, which may also precede it; a program has `help [COMMAND]` and `completion SHELL`, too.
 * @FILE inserts the words of a file: see argument_file.h. */
#ifndef TENON_PROGRAMS_COMMON_OPTIONS_H
#define TENON_PROGRAMS_COMMON_OPTIONS_H

#include <tenon/extras.h>

typedef enum { KIND_FLAG = 0, KIND_INT, KIND_REAL, KIND_TEXT, KIND_LIST } option_kind;

/* The values of an option that takes one or more, up to the next option, and may be repeated. With .single it takes one
 * value each time, so that operands may follow. */
typedef struct {
    int          count;
    const char **value;
} option_list;

/* What --resume does with an option of a command whose runs can be resumed: see resume.h. */
typedef enum {
    RESUME_SAME = 0, /* saved; a resumed run has the same value */
    RESUME_FREE,     /* saved; a resumed run may have another value */
    RESUME_NOT,      /* not saved */
    RESUME_FOLDER,   /* not saved; the folder of the run, with run.json */
    RESUME_FILE      /* not saved; the run's checkpoint, next to which is a file of this name and .json */
} option_resume;

typedef struct {
    const char   *name;
    char          letter; /* 0: none */
    option_kind   kind;
    const char   *value; /* the value's name in --help: "N", "DIR" */
    const char   *help;  /* a noun phrase or an imperative */
    void         *to;    /* the variable to set; it holds the default */
    bool          required, single;
    double        least, most; /* range of a number; both 0: any number */
    const char   *choices;     /* allowed texts: "f32|bf16" */
    const char   *otherwise;   /* what --help shows as the default while the variable is not set */
    bool          random;      /* integer: the value "random" draws a number */
    option_resume resume;
} option;

/* The type of `to` is checked. The help comes last, perhaps followed by .required, .least, .most, .choices. */
#define OPTION_FLAG(n, l, t, ...) OPTION_(KIND_FLAG, bool *, n, l, NULL, t, __VA_ARGS__)
#define OPTION_INT(n, l, v, t, ...) OPTION_(KIND_INT, int64_t *, n, l, v, t, __VA_ARGS__)
#define OPTION_REAL(n, l, v, t, ...) OPTION_(KIND_REAL, double *, n, l, v, t, __VA_ARGS__)
#define OPTION_TEXT(n, l, v, t, ...) OPTION_(KIND_TEXT, const char **, n, l, v, t, __VA_ARGS__)
#define OPTION_LIST(n, l, v, t, ...) OPTION_(KIND_LIST, option_list *, n, l, v, t, __VA_ARGS__)
/* The random seed of a command; a string literal after t continues the help; .least and .most may follow. */
#define OPTION_SEED(l, t, ...) \
    OPTION_INT("seed", l, "N", t, "number, or random to draw one: random seed" __VA_ARGS__, .random = true)
#define OPTION_(k, type, n, l, v, t, ...)                                                                      \
    {                                                                                                          \
        .name = (n), .letter = (l), .kind = (k), .value = (v), .to = 1 ? (t) : (type)NULL, .help = __VA_ARGS__ \
    }

typedef struct command command;
struct command {
    const char   *name, *summary;           /* "train", "train a model from text files" */
    const option *options;                  /* ends with {0}; may be NULL */
    int (*run)(int count, char **operands); /* returns the exit code, usually program_end() */
    const char    *text;                    /* paragraphs and examples for --help; may be NULL */
    const char    *operands;                /* "FILE..."; NULL: none */
    int            least, most;             /* number of operands; most -1: any number */
    void          *training;                /* what a command trains: see train.h */
    const command *repeats;                 /* verify and debug: the command whose runs they repeat */
};

/* A command whose function is named run; may be followed by .operands, .least, .most and .text. */
#define COMMAND(n, s, o, ...)                                                \
    {                                                                        \
        .name = (n), .summary = (s), .options = (o), .run = run, __VA_ARGS__ \
    }

typedef struct {
    const char    *name, *summary; /* texts call a program by this name: see message_name */
    const command *commands;       /* ends with {0} */
    const char    *text;
    tn_world *(*world)(const void *communicator); /* PROGRAM_WORLD if a command has --ranks; else NULL */
} program;
#ifdef PROGRAM_MPI /* linked with tenon::mpi */
#define PROGRAM_WORLD tn_world_mpi
#else
#define PROGRAM_WORLD NULL
#endif
/* Joins a world of `ranks` processes under MPI. A process that was started alone starts them, and is replaced by them.
 * ranks 0: the number of processes that mpirun started. Returns NULL for ranks 0 and one process, or raises. */
tn_world *program_ranks(int64_t ranks);
/* Frees the world. An error of one rank is set on all, and printed while all are running: mpiexec ends the first rank
 * as soon as another one has ended with an error. */
void program_leave(tn_world *w);

/* The options that every command has. */
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
    EXIT_INPUT = 3, /* an invalid input file */
    EXIT_MEMORY = 4,
    EXIT_IO = 5,
    EXIT_NUMERIC = 6, /* NaN or Inf, as in training that diverged */
    EXIT_UNSUPPORTED = 7
    /* 130 and 143: ended by Ctrl-C or SIGTERM after saving */
};

int            program_main(const program *p, int argc, char **argv);
const command *program_command(void); /* the one that runs */

/* Prints "bert train: ..." and a hint to standard error; returns EXIT_USAGE. For checks of several options. */
int program_usage(const char *fmt, ...) TN_PRINTF(1, 2);
/* program_given: was the option set, on the command line or by --resume? program_stray: returns 0 if not; else prints
 * "--NAME is for WHAT" as program_usage does. `what` is the option or the case without which --NAME has no effect. */
bool program_given(const char *name);
bool program_typed(const char *name); /* program_given, and not restored from a run's folder by --resume */
int  program_stray(const char *name, const char *what);
/* program_stray for several names; the list ends with NULL. */
int program_strays(const char *const *names, const char *what);
/* 0, or program_usage if both options are given. */
int program_either(const char *one, const char *other);
/* Adds the command line, quoted for a shell: "bert train --text 'my book.txt'". */
void program_line(tn_string *to);
void program_quote(const char *word, tn_string *to);
/* The values of the options that name files (value FILE), as they were given; at most `most`. Returns their number. */
int program_files(const char **to, int most);
/* The exit code of a command. If an error is set, prints it to standard error; if a signal ended the run, returns the
 * signal's code. */
int program_end(void);
int program_exit_code(tn_status s);

/* The name that `word` probably misspells, or NULL. */
const char *program_nearest(const char *word, int n, const char *const *names);
/* May colours be written to this stream? Decided by --color, NO_COLOR, TERM, and whether it is a terminal. */
bool program_color(FILE *to);

#endif
