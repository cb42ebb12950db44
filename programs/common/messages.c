/* messages.c — sentences for the user of a program. */
#include "core/system/system.h"

#include "messages.h"

#include "command_line.h"
#include "ranks.h"
#include "wrap.h"
#include <ctype.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

/* A message that is being written. */
typedef struct {
    char  *to;
    size_t at, room;
} output;

static void put(output *o, const char *s, size_t n)
{
    const size_t left = o->room - o->at - 1;
    n = n < left ? n : left;
    memcpy(o->to + o->at, s, n);
    o->at += n, o->to[o->at] = 0;
}

/* The length of "tn_load: " at s; 0: there is no such name. */
static size_t call_name(const char *s)
{
    if (strncmp(s, "tn_", 3) != 0) return 0;
    const size_t n = strspn(s, "abcdefghijklmnopqrstuvwxyz0123456789_");
    return strncmp(s + n, ": ", 2) ? 0 : n + 2;
}

/* Writes the option that ".name" at s sets, if there is one. Returns the length of ".name", or 0. */
static size_t member_name(const char *s, const option *options, output *o)
{
    char         name[48] = "";
    const size_t n = *s == '.' ? strspn(s + 1, "abcdefghijklmnopqrstuvwxyz_") : 0;
    if (!n || n >= sizeof name) return 0;
    for (size_t i = 0; i < n; i++) name[i] = s[i + 1] == '_' ? '-' : s[i + 1];
    for (const option *p = options; p && p->name; p++)
        if (!strcmp(p->name, name)) {
            put(o, "--", 2), put(o, name, n);
            return n + 1;
        }
    return 0;
}

/* Writes "1 noun" for "1 nouns" at s, and "is", "has" or "was" for a following "are", "have" or "were". Returns the
 * number of bytes read, or 0. */
static size_t one_of(const char *s, output *o)
{
    static const char nouns[] =
        " bytes characters checkpoints classes columns documents entries epochs examples experts files folders "
        "heads images items labels layers lines members pairs parts phrases points positions processes "
        "questions rows segments sentences sequences steps texts tokens values vectors weights words ";
    char         word[24];
    const size_t n = s[0] == '1' && s[1] == ' ' ? strspn(s + 2, "abcdefghijklmnopqrstuvwxyz") : 0;
    if (!n || n > sizeof word - 3) return 0;
    snprintf(word, sizeof word, " %.*s ", (int)n, s + 2);
    if (!strstr(nouns, word)) return 0;
    const char *last = strstr(word, "ies ") ? "y" : "";
    put(o, s, 2), put(o, word + 1, n - (*last ? 3 : strstr(word, "sses ") ? 2 : 1)), put(o, last, strlen(last));
    s += n + 2;
    if (!strncmp(s, " are ", 5)) return put(o, " is", 3), n + 6;
    if (!strncmp(s, " have ", 6)) return put(o, " has", 4), n + 7;
    if (!strncmp(s, " were ", 6)) return put(o, " was", 4), n + 7;
    return n + 2;
}

/* Programs that texts of other programs name, with the commands. */
static const char *const others[] = {"bert tune",   "bert fill",  "elmo train", "vectors sentence",
                                     "look attend", "look heads", "look prune"};

/* Writes the name of another program with the prefix of this one. */
static void put_other(const char *name, size_t n, output *o)
{
    const char  *own = now.program ? now.program->name : "", *end = now.name ? strstr(own, now.name) : NULL;
    const size_t prefix = end && !strcmp(end, now.name) ? (size_t)(end - own) : 0;
    put(o, own, prefix), put(o, name, n);
}

/* Writes the name of a program whose command is at s, as "bert tag". Returns the length of the name, or 0. */
static size_t program_at(const char *s, output *o)
{
    const size_t n = strcspn(s, " ");
    if (now.name && !strcmp(now.name, now.program->name)) return 0;
    if (now.name && n == strlen(now.name) && s[n] && !strncmp(s, now.name, n)) {
        const size_t length = strspn(s + n + 1, "abcdefghijklmnopqrstuvwxyz-");
        bool         found = !strncmp(s + n + 1, "COMMAND", 7);
        for (const command *c = now.program->commands; c->name && !found; c++)
            found = strlen(c->name) == length && !strncmp(c->name, s + n + 1, length);
        if (found) return put(o, now.program->name, strlen(now.program->name)), n;
    }
    for (size_t i = 0; i < sizeof others / sizeof *others; i++)
        if (!strncmp(s, others[i], strlen(others[i]))) return put_other(s, n, o), n;
    return 0;
}

/* True if a word starts after this character. */
static bool starts_word(char before)
{
    return !isalnum((unsigned char)before) && before != '.' && before != '_' && before != '-';
}

const char *message_name(const char *from, char *to, size_t room)
{
    output o = {.to = to, .room = room};
    char   before = ' ';
    for (*to = 0; *from && o.at + 1 < room; before = from[-1]) {
        const size_t n = starts_word(before) ? program_at(from, &o) : 0;
        if (!n) put(&o, from, 1);
        from += n ? n : 1;
    }
    return to;
}

/* What to do about an error of the library that knows no programs: added to a message that contains `part`. */
static const struct {
    const char *part, *advice;
} hints[] = {{" NUL; expected ", " (UTF-16? convert it with iconv -f utf-16 -t utf-8)"},
             {" a NUL byte; expected ", " (UTF-16? convert it with iconv -f utf-16 -t utf-8)"},
             {"; supported are …ForSequenceClassification", "; make such a model with bert tune"},
             {": out of memory: ", "; use a smaller model, batch or length"},
             {"; name two columns", " (columns are separated by tabs, in .csv files by commas; convert semicolons)"},
             {" is a duplicate of line ", "; expected a vocabulary, one token per line"},
             {"this model has no head for masked tokens", "; bert classify, tag, answer or choose run tuned models"}};

/* What only a program of one's own can do about an error: not written. */
static const char *const of_calls[] = {"; tn_detect_anomaly(true) names the op it came from",
                                       "; load a model trained for that, or create it with one"};

/* The program that opens a model_type. */
static const struct {
    const char *type, *program;
} openers[] = {{"gpt2", "gpt"},
               {"llama", "gpt"},
               {"mistral", "gpt"},
               {"qwen2", "gpt"},
               {"qwen3", "gpt"},
               {"gemma2", "gpt"},
               {"gemma3_text", "gpt"},
               {"olmo2", "gpt"},
               {"smollm3", "gpt"},
               {"phi3", "gpt"},
               {"gpt_neox", "gpt"},
               {"gptj", "gpt"},
               {"mixtral", "gpt"},
               {"qwen3_moe", "gpt"},
               {"reformer", "gpt"},
               {"tenon_rnn_lm", "lm"},
               {"tenon-seq2seq", "translate"},
               {"tenon_elmo", "elmo"},
               {"tenon_skip_thought", "vectors"},
               {"vit", "vit"},
               {"deit", "vit"},
               {"bert", "bert"},
               {"tenon-bert", "bert"},
               {"roberta", "bert"},
               {"xlm-roberta", "bert"},
               {"camembert", "bert"},
               {"distilbert", "bert"},
               {"albert", "bert"},
               {"electra", "bert"},
               {"deberta-v2", "bert"},
               {"modernbert", "bert"},
               {"xlnet", "bert"},
               {"bart", "translate"},
               {"marian", "translate"},
               {"m2m_100", "translate"},
               {"t5", "translate"},
               {"roberta-prelayernorm", "bert"}};

static size_t of_call(const char *s)
{
    for (size_t i = 0; i < sizeof of_calls / sizeof *of_calls; i++)
        if (!strncmp(s, of_calls[i], strlen(of_calls[i]))) return strlen(of_calls[i]);
    return 0;
}

static void add_hints(const char *from, output *o)
{
    char text[128];
    for (size_t i = 0; i < sizeof hints / sizeof *hints; i++)
        if (strstr(from, hints[i].part)) {
            char advice[sizeof text];
            message_name(hints[i].advice, advice, sizeof advice);
            put(o, advice, strlen(advice));
            return;
        }
    for (size_t i = 0; i < sizeof openers / sizeof *openers; i++) {
        snprintf(text, sizeof text, "model_type is '%s'; supported: ", openers[i].type);
        if (!strstr(from, text)) continue;
        put(o, "; the program ", 14), put_other(openers[i].program, strlen(openers[i].program), o);
        put(o, " opens it", 9);
    }
}

void message_for_user(const char *from, const option *options, char *to, size_t room)
{
    output      o = {.to = to, .room = room};
    const char *all = from;
    char        before = ' ';
    *to = 0;
    while (*from && o.at + 1 < room) {
        const bool starts = starts_word(before);
        size_t     n = starts ? call_name(from) : *from == ';' ? of_call(from) : 0;
        if (!n && starts) n = member_name(from, options, &o);
        if (!n && starts) n = one_of(from, &o);
        if (!n && starts) n = program_at(from, &o);
        if (!n) put(&o, from, n = 1);
        before = from[n - 1], from += n;
    }
    add_hints(all, &o);
}

static wrap line; /* that is being written */

void message_write(FILE *to, const char *text)
{
    char fixed[2048], out[4096];
    message_for_user(text, NULL, fixed, sizeof fixed);
    line.colors = program_color(to);
    wrap_text(&line, fixed, tn__sys_columns(to), out, sizeof out);
    fputs(out, to);
}

void tell(const char *fmt, ...)
{
    char    text[2048];
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(text, sizeof text, fmt, ap);
    va_end(ap);
    message_write(stderr, text);
}

void tell_command(const char *heading, const char *text)
{
    tell("%-*s", WRAP_HEADING, heading);
    fputs(text, stderr);
    tell("\n");
}

void warn(const char *fmt, ...)
{
    char    text[2048];
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(text, sizeof text, fmt, ap);
    va_end(ap);
    if (ranks_first()) {
        fputs(program_color(stderr) ? "\033[1;33mwarning:\033[0m " : "warning: ", stderr);
        line = (wrap){.at = WRAP_HEADING, .indent = WRAP_HEADING}; /* "warning: " is as wide as a heading */
        message_write(stderr, text);
    }
}
