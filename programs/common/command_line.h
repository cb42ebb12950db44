/* command_line.h — the command line while it is read: shared by options.c, values.c, argument_file.c, resume.c and
 * completion.c; other files use options.h. */
#ifndef TENON_PROGRAMS_COMMON_COMMAND_LINE_H
#define TENON_PROGRAMS_COMMON_COMMAND_LINE_H

#include "options.h"

enum { MOST_OPTIONS = 128, MOST_LISTS = 16, LONGEST_NAME = 48 };

typedef union {
    bool        flag;
    int64_t     whole;
    double      real;
    const char *text;
} option_value;

typedef struct {
    const program *program; /* with the name by which it was started, "tenon-bert" */
    const char    *name;    /* the program's own name, "bert" */
    const command *command; /* NULL until it is known */
    int            argc;
    char         **argv; /* a copy of main's, with the words of each @FILE in its place */
    option_list   *lists[MOST_LISTS];
    int            list_count;
    const char    *given[MOST_OPTIONS]; /* names of the options that have been set */
    int            given_count, typed; /* typed: the first ones, which are on the command line; the rest are restored */
    option_value   before[MOST_OPTIONS]; /* defaults of the command's options */
    const option  *drawn;                /* the option whose value is "random"; NULL: none */
    char         **operands;             /* allocated */
    int            operand_count;
    char         **words; /* the options and operands for run.json, as they were when the command began; allocated */
    int            word_count;
    char         **kept; /* strings that live as long as the command */
    int            kept_count;
} command_line;
extern command_line now;
extern const option common_options[];                    /* options that every command has */
int                 program_unknown(const char *option); /* program_usage for an unknown option */

/* Takes ownership of a string from malloc until the command ends. NULL, or no memory: NULL, raised. */
char *keep_string(char *s);
/* Sets an option that is not a flag. Returns 0 or an exit code, after a message. */
int  set_option(const option *o, const char *value);
void set_flag(const option *o);
/* The option of this name, of the command or of every command. NULL: none. */
const option *exact_option(const char *name);
/* A value as text: of o->to, or of another variable of its type. False if it is not set: NULL, an empty list, NaN, or a
 * number outside of the option's range. */
bool option_text(const option *o, const void *at, char *to, size_t size);
/* The values of a text or a list; none of another option. Returns their number. */
int  option_values(const option *o, const char *const **values);
bool is_path(const option *o); /* its value names a file or a folder */

#endif
