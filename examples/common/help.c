/* help.c — see help.h. */
#include "help.h"

#include <math.h>
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
static void paragraphs(FILE *to, const char *text)
{
    for (fputc('\n', to); *text;) {
        const size_t n = strcspn(text, "\n");
        if (*text != ' ') text = words(to, 0, text);
        else fprintf(to, "%.*s\n", (int)n, text), text += n + (text[n] == '\n');
    }
}

static void entry(FILE *to, const char *left, const char *text)
{
    const int n = fprintf(to, "  %s", left);
    if (n + 2 > COLUMN) fprintf(to, "\n%*s", COLUMN, "");
    else fprintf(to, "%*s", COLUMN - n, "");
    words(to, COLUMN, text);
}

/* A default below the option's range means that the option is not set. */
static bool is_unsaid(const option *o) { return o->most > o->least && (double)*(int64_t *)o->to < o->least; }

/* " (default: 1000)", or nothing. */
static void put_default(const option *o, char *to, size_t size)
{
    char number[32];
    *to = 0;
    if (o->kind == KIND_INT && *(int64_t *)o->to && !is_unsaid(o))
        snprintf(to, size, " (default: %lld)", (long long)*(int64_t *)o->to);
    if (o->kind == KIND_REAL && fabs(*(double *)o->to) > 0) { /* 0 and NaN: not set */
        tn_format_double(*(double *)o->to, number);
        snprintf(to, size, " (default: %s)", number);
    }
    if (o->kind == KIND_TEXT && *(const char **)o->to) snprintf(to, size, " (default: %s)", *(const char **)o->to);
    if (o->required) snprintf(to, size, " (needed)");
}

static void options(FILE *to, const option *o)
{
    char left[120], right[600], otherwise[120];
    for (; o && o->name; o++) {
        snprintf(left, sizeof left, "%c%c%c --%s%s%s%s", o->letter ? '-' : ' ', o->letter ? o->letter : ' ',
                 o->letter ? ',' : ' ', o->name, o->value ? " " : "", o->value ? o->value : "",
                 o->kind == KIND_LIST && !o->single ? "..." : "");
        put_default(o, otherwise, sizeof otherwise);
        snprintf(right, sizeof right, "%s%s", o->help, otherwise);
        entry(to, left, right);
    }
}

void help_program(const program *p, FILE *to)
{
    fprintf(to, "%s: %s\n\nUsage: %s COMMAND [OPTION]...\n\nCommands:\n", p->name, p->summary, p->name);
    for (const command *c = p->commands; c->run; c++) entry(to, c->name, c->summary);
    if (p->text) paragraphs(to, p->text);
    fprintf(to, "\n'%s COMMAND --help' explains a command and its options.\n", p->name);
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
    fputs("\nAs with every command:\n", to), options(to, common);
}
