/* help.c — see help.h. */
#include "help.h"

#include "command_line.h"
#include "messages.h"
#include <string.h>

enum { WIDTH = 80, COLUMN = 26 };

/* Writes the words of one line from column `begin`, wrapped at WIDTH and indented to `begin`. Returns the next line. */
static const char *words(FILE *to, int begin, const char *text)
{
    bool first = true;
    int  at = begin;
    while (*text && *text != '\n') {
        const int n = (int)strcspn(text, " \n");
        if (!first && at + 1 + n > WIDTH) fprintf(to, "\n%*s", begin, ""), at = begin, first = true;
        if (!first) fputc(' ', to), at++;
        fwrite(text, 1, (size_t)n, to), at += n, first = false;
        text += n + (text[n] == ' ');
    }
    fputc('\n', to);
    return text + (*text == '\n');
}

/* Wraps paragraphs. Lines that start with a blank are examples and are not wrapped. */
static void paragraphs(FILE *to, const char *from)
{
    char        named[8192];
    const char *text = message_name(from, named, sizeof named);
    for (fputc('\n', to); *text;) {
        const size_t n = strcspn(text, "\n");
        if (*text != ' ') text = words(to, 0, text);
        else fprintf(to, "%.*s\n", (int)n, text), text += n + (text[n] == '\n');
    }
}

static void entry(FILE *to, const char *left, const char *text)
{
    char      named[1024];
    const int n = fprintf(to, "  %s", left);
    if (n + 2 > COLUMN) fprintf(to, "\n%*s", COLUMN, "");
    else fprintf(to, "%*s", COLUMN - n, "");
    words(to, COLUMN, message_name(text, named, sizeof named));
}

/* Does the help text name each of "f32|bf16"? */
static bool names_all(const char *help, const char *choices)
{
    char name[64];
    for (size_t n; *choices; choices += n + (choices[n] == '|')) {
        n = strcspn(choices, "|");
        snprintf(name, sizeof name, "%.*s", (int)n, choices);
        if (!strstr(help, name)) return false;
    }
    return true;
}

/* " (f32|bf16; default: f32)": the choices, unless the help text names them, and the default; or nothing. */
static void put_values(const option *o, char *to, size_t size)
{
    const char *choices = o->choices && !names_all(o->help, o->choices) ? o->choices : "";
    char        value[140] = "", text[120];
    if (o->required) snprintf(value, sizeof value, "required");
    else if (o->kind != KIND_FLAG && option_text(o, o->to, text, sizeof text))
        snprintf(value, sizeof value, "default: %s", text);
    else if (o->otherwise) snprintf(value, sizeof value, "default: %s", o->otherwise);
    *to = 0;
    if (*choices || *value) snprintf(to, size, " (%s%s%s)", choices, *choices && *value ? "; " : "", value);
}

static void options(FILE *to, const option *o)
{
    char left[120], right[800], values[300];
    for (; o && o->name; o++) {
        snprintf(left, sizeof left, "%c%c%c --%s%s%s%s", o->letter ? '-' : ' ', o->letter ? o->letter : ' ',
                 o->letter ? ',' : ' ', o->name, o->value ? " " : "", o->value ? o->value : "",
                 o->kind == KIND_LIST && !o->single ? "..." : "");
        put_values(o, values, sizeof values);
        snprintf(right, sizeof right, "%s%s", o->help, values);
        entry(to, left, right);
    }
}

void help_program(const program *p, FILE *to)
{
    fprintf(to, "%s: %s\n\nUsage: %s COMMAND [OPTION]...\n\nCommands:\n", p->name, p->summary, p->name);
    for (const command *c = p->commands; c->run; c++) entry(to, c->name, c->summary);
    if (p->text) paragraphs(to, p->text);
    fprintf(to, "\n'%s COMMAND --help' or '%s help COMMAND' describes a command and its options.\n", p->name, p->name);
    fprintf(to, "'%s completion bash' prints a script for the completion of options in bash, zsh or fish.\n", p->name);
}

void help_command(const program *p, const command *c, const option *common, FILE *to)
{
    const char *name = c->name ? c->name : "";
    fprintf(to, "%s%s%s: %s\n\nUsage: %s%s%s", p->name, *name ? " " : "", name, *name ? c->summary : p->summary,
            p->name, *name ? " " : "", name);
    for (const option *o = c->options; o && o->name; o++)
        if (o->required) fprintf(to, " --%s %s%s", o->name, o->value, o->kind == KIND_LIST && !o->single ? "..." : "");
    fprintf(to, " [OPTION]...%s%s\n", c->operands ? " " : "", c->operands ? c->operands : "");
    if (c->text) paragraphs(to, c->text);
    if (!c->text && p->text && !*name) paragraphs(to, p->text);
    if (c->options && c->options->name) fputs("\nOptions:\n", to), options(to, c->options);
    fputs("\nOptions of every command:\n", to), options(to, common);
}
