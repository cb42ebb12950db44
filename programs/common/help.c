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

static void one_option(FILE *to, const option *o)
{
    char left[120], right[800], values[300];
    snprintf(left, sizeof left, "%c%c%c --%s%s%s%s", o->letter ? '-' : ' ', o->letter ? o->letter : ' ',
             o->letter ? ',' : ' ', o->name, o->value ? " " : "", o->value ? o->value : "",
             o->kind == KIND_LIST && !o->single ? "..." : "");
    put_values(o, values, sizeof values);
    snprintf(right, sizeof right, "%s%s", o->help, values);
    entry(to, left, right);
}

/* The groups of a long list of options. The last one has those that no group names. */
static const struct {
    const char *title, *names; /* names: each between blanks */
} groups[] = {
    {"Options of the data",
     " text valid valid-part valid-target src tgt valid-src valid-tgt train test pairs chat file prompts prompt "
     "images labels label answer columns vocab vocab-size pieces alphabet lowercase cased by-rule strict-utf8 "
     "skip-bad documents sentences lengths longest span mask whole-words flip shift special buckets min-count "
     "window lines from to "},
    {"Options of the model",
     " model size layers heads dim hidden length shape experts experts-per-token objective kind tokenizer type "
     "dtype cache draft embedding embeddings word-vectors cell transformer depth patch causal norm-first "
     "norm-last untied share sharing stride classes segments crf lstm embed adapter lora lora-layers new-classifier "
     "freeze thaw pool "},
    {"Options of the training",
     " steps epochs minutes batch tokens lr weight-decay dropout warmup decay clip patience seed seeds memory "
     "ranks shards zero optimizer average smoothing balance layer-rate loss negatives weight weight-drop "
     "dropout-words dropout-in dropout-between temperature alpha beta valid-every early-stopping awd cutoffs "
     "teacher matrices passes "},
    {"Options of the output", " out resume force keep compare json html report predictions trace table c "},
};
enum { GROUPS = sizeof groups / sizeof *groups, FEW = 10 };

static int group_of(const option *o)
{
    char name[64];
    snprintf(name, sizeof name, " %s ", o->name);
    for (int i = 0; i < GROUPS; i++)
        if (strstr(groups[i].names, name)) return i;
    return GROUPS;
}

/* All options; many of them in groups. */
static void options(FILE *to, const option *list)
{
    int n = 0;
    for (const option *o = list; o && o->name; o++) n++;
    if (n < FEW) {
        if (n) fputs("\nOptions:\n", to);
        for (int i = 0; i < n; i++) one_option(to, &list[i]);
        return;
    }
    for (int k = 0; k <= GROUPS; k++) {
        bool first = true;
        for (int i = 0; i < n; i++) {
            if (group_of(&list[i]) != k) continue;
            if (first) fprintf(to, "\n%s:\n", k < GROUPS ? groups[k].title : "Other options");
            first = false, one_option(to, &list[i]);
        }
    }
}

static void usage(const program *p, const command *c, FILE *to)
{
    fprintf(to, "Usage: %s%s%s", p->name, c->name ? " " : "", c->name ? c->name : "");
    for (const option *o = c->options; o && o->name; o++)
        if (o->required) fprintf(to, " --%s %s%s", o->name, o->value, o->kind == KIND_LIST && !o->single ? "..." : "");
    fprintf(to, " [OPTION]...%s%s\n", c->operands ? " " : "", c->operands ? c->operands : "");
}

/* ---- -h ---------------------------------------------------------------------------------------------------------- */

/* What an example has for the value or operand of this name. */
static const char *sample_of(const char *name, const char *value)
{
    static const char *const samples[][2] = {
        {"out", "new"},        {"text", "book.txt"}, {"train", "train.tsv"}, {"src", "train.de"},
        {"tgt", "train.en"},   {"html", "a.html"},   {"vectors", "v.vec"},   {"model", "model"},
        {"c", "model.c"},      {"test", "test.tsv"}, {"DIR", "model"},       {"PATH", "model"},
        {"FILE", "text.txt"},  {"TEXT", "'a text'"}, {"LINE", "'a line'"},   {"WORD", "house"},
        {"QUERY", "'a text'"}, {"N", "10"},
    };
    const char *const of[] = {name, value};
    for (int k = 0; k < 2; k++)
        for (size_t i = 0; of[k] && i < sizeof samples / sizeof *samples; i++) {
            const size_t n = strlen(samples[i][0]);
            const char  *at = k ? strstr(of[k], samples[i][0]) : of[k];
            if (at && !strncmp(at, samples[i][0], n) && (k || !at[n])) return samples[i][1];
        }
    return value ? value : "";
}

/* The first example of the command's text, or one that is made of what is required. */
static void example(const program *p, const command *c, FILE *to)
{
    char        named[8192];
    const char *text = c->text ? message_name(c->text, named, sizeof named) : NULL;
    const char *at = text && *text == ' ' ? text : text ? strstr(text, "\n  ") : NULL;
    if (at) {
        at += *at == '\n';
        fprintf(to, "\n%.*s\n", (int)strcspn(at, "\n"), at);
        return;
    }
    fprintf(to, "\n  %s%s%s", p->name, c->name ? " " : "", c->name ? c->name : "");
    for (const option *o = c->options; o && o->name; o++)
        if (o->required) fprintf(to, " --%s %s", o->name, sample_of(o->name, o->value));
    const char *operand = c->operands ? sample_of(NULL, c->operands) : NULL;
    if (operand) fprintf(to, " %.*s", (int)strcspn(operand, "|"), operand);
    fputc('\n', to);
}

void help_short(const program *p, const command *c, FILE *to)
{
    enum { MAIN = 5 };
    int  n = 0, shown = 0;
    char all[80];
    usage(p, c, to);
    fprintf(to, "%s\n\n", c->name ? c->summary : p->summary);
    for (const option *o = c->options; o && o->name; o++) n++;
    /* those that are required, then those with a letter, then the first ones */
    for (int k = 0; k < 3; k++)
        for (int i = 0; i < n && shown < MAIN; i++) {
            const option *o = &c->options[i];
            const int     of = o->required ? 0 : o->letter ? 1 : 2;
            if (of == k) one_option(to, o), shown++;
        }
    example(p, c, to);
    snprintf(all, sizeof all, n == 1 ? "its option" : "all %d options", n);
    fprintf(to, "\n'%s%s%s --help' describes %s.\n", p->name, c->name ? " " : "", c->name ? c->name : "",
            n ? all : "it");
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
    fprintf(to, "%s%s%s: %s\n\n", p->name, *name ? " " : "", name, *name ? c->summary : p->summary);
    usage(p, c, to);
    if (c->text) paragraphs(to, c->text);
    if (!c->text && p->text && !*name) paragraphs(to, p->text);
    options(to, c->options);
    fputs("\nOptions of every command:\n", to);
    for (const option *o = common; o->name; o++) one_option(to, o);
}
