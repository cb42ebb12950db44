/* write.c — gpt write: continues a text, or holds a conversation. */
#include "core/system/system.h"

#include "../common/messages.h"
#include "../common/records.h"
#include "gpt.h"

#include <stdlib.h>
#include <string.h>

enum { LINE_MOST = 1 << 20 }; /* bytes */

static option_list    files;
static const char    *dir, *tokenizer, *type, *cache, *prompt, *prompts, *draft, *choices, *schema;
static writer_options how = {.how = {TN_GENERATE_ARGS_DEFAULTS}, .tokens = 200};
static int64_t        seed = 1;
static double         temperature = 0.8;
static bool           chat, json;

/* ---- a conversation ---------------------------------------------------------------------------------------------- */

/* All messages, and the part of their text that the model has read. */
typedef struct {
    tn_message *said;
    int64_t     n, room;
    tn_string   read;
} conversation;

static bool add_message(conversation *c, const char *role, const char *text, size_t bytes)
{
    if (c->n == c->room) {
        tn_message *more = realloc(c->said, (size_t)(2 * c->room + 8) * sizeof *more);
        if (!more) return tn_raise_false(TN_ENOMEM, "no memory for the conversation");
        c->said = more, c->room = 2 * c->room + 8;
    }
    char *copy = malloc(bytes + 1);
    if (!copy) return tn_raise_false(TN_ENOMEM, "no memory for the conversation");
    memcpy(copy, text, bytes), copy[bytes] = 0;
    c->said[c->n++] = (tn_message){role, copy};
    return true;
}
/* A line of the user: a text, or with --json an object with "content" and perhaps "role". NULL: raised. */
static const char *read_message(const char *line, size_t bytes, tn_json **j, const char **role)
{
    static const char *const roles[] = {"user", "system", "assistant", "tool"};
    const tn_json           *v;
    tn_json_free(*j), *j = NULL, *role = roles[0];
    if (!json || *line != '{') return line;
    if (!(*j = tn_json_parse(line, bytes))) return NULL;
    const char *name = tn_json_string_or(tn_json_get(*j, "role"), roles[0]);
    *role = NULL;
    for (int i = 0; i < 4; i++)
        if (!strcmp(name, roles[i])) *role = roles[i];
    if (!*role) return tn_raise_null(TN_EFORMAT, "the role is '%s'; expected user, system, assistant or tool", name);
    if (!(v = tn_json_get(*j, "content"))) return tn_raise_null(TN_EFORMAT, "the object has no member \"content\"");
    return tn_json_string(v);
}

/* On a terminal: whose turn it is. */
static bool on_terminal(void) { return isatty(STDIN_FILENO) && isatty(STDOUT_FILENO) && !settings.quiet; }

static void show_turn(const char *who)
{
    if (!on_terminal() || json) return;
    printf(program_color(stdout) ? "\033[1m%s>\033[0m " : "%s> ", who);
    fflush(stdout);
}

static bool next_message(char **line, size_t *room, size_t *bytes)
{
    show_turn("you");
    if (tn_error() == TN_OK && next_line(line, room, bytes, LINE_MOST - 1)) return true;
    if (on_terminal()) putchar('\n');
    return false;
}

/* The answer as a line of JSON. */
static void print_answer(tn_string *made)
{
    tn_json_writer *w = tn_json_writer_new(0);
    tn_json_open_object(w, NULL);
    tn_json_put_string(w, "role", "assistant");
    texts_put(w, "content", tn_string_add(made, (tn_text){"", 1}) == TN_OK ? made->at : "");
    tn_json_close(w);
    records_print(w);
    tn_json_writer_free(w);
}

/* Generates an answer, and prints it: as text with a line end, or as JSON. */
static bool print_generated(writer *w)
{
    tn_string made = {0};
    show_turn("model");
    if (json) w->out.silent = true, w->out.kept = &made;
    const bool fine = writer_write(w);
    if (json && fine) print_answer(&made);
    else if (!json) putchar('\n');
    w->out.kept = NULL;
    fflush(stdout), tn_string_free(&made);
    return fine;
}

static void conversation_free(conversation *c)
{
    for (int64_t i = 0; i < c->n; i++) free((char *)(uintptr_t)c->said[i].content);
    free(c->said);
    tn_string_free(&c->read);
}

/* Adds one line of the user and generates the answer. The model reads only the new text, unless the template now
 * renders the earlier messages differently. */
static bool answer(writer *w, conversation *c, const char *line, size_t bytes)
{
    tn_string text = {0}, made = {0};
    if (add_message(c, "user", line, bytes) && model_chat(w->m, c->n, c->said, true, &text)) {
        const bool   goes_on = c->read.bytes && !strncmp(text.at, c->read.at, c->read.bytes);
        const size_t known = goes_on ? c->read.bytes : 0;
        if (!goes_on) writer_forget(w);
        if (writer_read(w, (tn_text){text.at + known, text.bytes - known})) {
            const int64_t before = w->text.n;
            print_generated(w);
            const int64_t from = before < w->text.n ? before : w->text.n; /* the start may have been cut off */
            if (tn_error() == TN_OK)
                tn_tokenizer_decode(w->m->tokens, w->text.at + from, w->text.n - from, &made, .keep_spaces = true);
            if (tn_error() == TN_OK) add_message(c, "assistant", made.at ? made.at : "", made.bytes);
            tn_string_add(&text, (tn_text){made.at, made.bytes});
        }
        tn_string_free(&c->read);
        c->read = text, text = (tn_string){0};
    }
    tn_string_free(&text), tn_string_free(&made);
    return tn_error() == TN_OK;
}

static void chat_with_template(writer *w)
{
    conversation c = {.n = 0};
    char        *line = NULL;
    size_t       room = 0, bytes;
    tn_json     *j = NULL;
    const char  *role, *text;
    w->last = model_answer_end(w->m);
    while (next_message(&line, &room, &bytes) && (text = read_message(line, bytes, &j, &role)))
        if (*role == 'u') answer(w, &c, text, json ? strlen(text) : bytes);
        else add_message(&c, role, text, strlen(text)); /* no answer to what the system says */
    conversation_free(&c);
    tn_json_free(j), free(line);
}

/* Without a chat template: each line of standard input is a message; the model's answer ends at the end of a line or
 * at a stop word. */
static void chat_plain(writer *w)
{
    char       *line = NULL;
    size_t      room = 0, bytes;
    tn_json    *j = NULL;
    tn_string   said = {0};
    const char *role, *text;
    while (next_message(&line, &room, &bytes) && (text = read_message(line, bytes, &j, &role))) {
        said.bytes = 0;
        tn_string_add(&said, (tn_text){text, j ? strlen(text) : bytes}), tn_string_add(&said, tn_text_of("\n"));
        if (w->cut) writer_read(w, tn_text_of("\n"));
        if (!writer_read(w, (tn_text){said.at, said.bytes}) || (*role == 'u' && !print_generated(w))) break;
    }
    tn_string_free(&said), tn_json_free(j), free(line);
}

/* Reports the speedup from proposals: the model reads several tokens in about the time of one. */
static void report_proposals(const writer *w)
{
    const tn_speculation *d = &w->drafted;
    const int64_t         pieces = d->accepted + d->readings;
    if (tn_error() != TN_OK || !d->readings) return;
    tell("\n%s   %lld of %lld proposed tokens accepted; %.2f tokens per pass of the model\n",
         how.lookup ? "lookup" : "draft ", (long long)d->accepted, (long long)d->proposed,
         (double)pieces / (double)d->readings);
    const double times = d->plain * (double)pieces / (w->seconds > 0 ? w->seconds : 1);
    if (times >= 1)
        tell("speedup  %.2f times as fast: %.2f s; without proposals about %.2f s\n", times, w->seconds,
             d->plain * (double)pieces);
    else
        tell("slower   by a factor of %.2f: %.2f s; without proposals about %.2f s; omit --%s\n", 1 / times, w->seconds,
             d->plain * (double)pieces, how.lookup ? "lookup" : "draft");
}

/* With --verbose: how fast it was. */
static void report_speed(const writer *w, double loading)
{
    if (!settings.verbose || tn_error() != TN_OK || !w->made) return;
    tell("\nload     %.3f s\nfirst    %.3f s until the first token\n", loading, w->first_seconds);
    tell("speed    %.1f tokens/s: %lld in %.3f s\n", (double)w->made / fmax(w->seconds, 1e-9), (long long)w->made,
         w->seconds);
}

/* Reads the chat template. Without one, an answer is one line; so it is if the template is not supported and --stop
 * ends the answers. */
static bool check_chat(model *m)
{
    static const char *line_end[] = {"\n"};
    if (model_has_chat(m) && !model_chat_ready(m) && !how.stop.count) {
        char said[400];
        snprintf(said, sizeof said, "%s", tn_error_message());
        tn_clear_error();
        return tn_raise_false(TN_EUNSUPPORTED,
                              "'%s': %s; to chat in plain lines instead, give the text that ends an answer with --stop",
                              dir, said);
    }
    tn_clear_error();
    if (!m->chat && !how.stop.count) how.stop = (option_list){1, line_end};
    return true;
}

/* Writes the prompt and its continuation, or both as a line of JSON. */
static bool continue_text(writer *w, tn_text text, tn_json_writer *json_line)
{
    tn_string made = {0}, start = {0};
    if (!writer_read(w, text)) return false;
    if (json_line) w->out.silent = true, w->out.kept = &made;
    if (!json_line) fwrite(text.at, 1, text.bytes, stdout);
    if (writer_write(w) && json_line) {
        tn_json_open_object(json_line, NULL);
        tn_string_add(&start, text);
        texts_put(json_line, "prompt", tn_string_add(&start, (tn_text){"", 1}) == TN_OK ? start.at : "");
        texts_put(json_line, "text", tn_string_add(&made, (tn_text){"", 1}) == TN_OK ? made.at : "");
        tn_json_close(json_line);
        records_print(json_line);
    }
    w->out.kept = NULL;
    tn_string_free(&made), tn_string_free(&start);
    return tn_error() == TN_OK;
}

/* Continues one text; in a terminal, then writes a line end, so that the shell starts on a new line. */
static void continue_one(writer *w, tn_json_writer *json_line)
{
    tn_string file = {0};
    if (files.count && texts_read(&files, &file) && file.bytes && file.at[file.bytes - 1] == '\n') file.bytes--;
    const char   *start = w->text.n ? "" : "\n"; /* LLaMA's tokenizers add <s> */
    const tn_text text = files.count ? (tn_text){file.at, file.bytes} : tn_text_of(prompt ? prompt : start);
    if (tn_error() == TN_OK && continue_text(w, text, json_line) && !json_line && isatty(STDOUT_FILENO)) putchar('\n');
    tn_string_free(&file);
}

static bool some_failed; /* a line of --prompts cannot be continued */

/* After an error of one prompt, such as too many tokens: reports its line, so that the others are still continued.
 * False: another error, which ends the run. */
static bool skip_prompt(const records *r, const char *text, tn_json_writer *json_line)
{
    char said[600];
    if (tn_error() != TN_EINVAL) return false;
    snprintf(said, sizeof said, "%s", tn_error_message());
    tn_clear_error();
    warn("'%s', line %lld: %s\n", r->name, (long long)r->number, said);
    some_failed = true;
    if (!json_line) return true;
    tn_json_open_object(json_line, NULL);
    texts_put(json_line, "prompt", text), texts_put(json_line, "error", said);
    tn_json_close(json_line);
    return records_print(json_line);
}

/* Continues each line of --prompts as --prompt would: with the same random numbers, and without the texts before it. */
static void continue_each(writer *w, const model *m, tn_json_writer *json_line)
{
    records     r = {.file = prompts, .member = "prompt"};
    const char *text;
    for (bool first = true; (text = records_next(&r)); first = false) {
        const tn_speculation drafted = w->drafted;
        const double         seconds = w->seconds;
        writer_close(w);
        if (!writer_open(w, m, &how)) break;
        w->drafted = drafted, w->seconds = seconds;
        if (!first && !json_line) printf("\n");
        if (!continue_text(w, tn_text_of(text), json_line) && !skip_prompt(&r, text, json_line)) break;
        if (!json_line) printf("\n"), fflush(stdout);
    }
    records_close(&r);
}

/* Writes what the options ask for. */
static void write_texts(writer *w, const model *m)
{
    static const char *input = "-"; /* text in a pipe is the prompt */
    tn_json_writer    *json_line = json ? tn_json_writer_new(0) : NULL;
    if (!prompt && !prompts && !files.count && !chat && input_waits()) files = (option_list){1, &input};
    if (chat && on_terminal()) fputs("Each line is a message. Ctrl-D ends the conversation.\n", stderr);
    if (chat && m->chat) chat_with_template(w);
    else if (chat) chat_plain(w);
    else if (prompts) continue_each(w, m, json_line);
    else continue_one(w, json_line);
    if (files.value == &input) files = (option_list){0, NULL};
    tn_json_writer_free(json_line);
}

static int check(void)
{
    static const char *const of_text[] = {"prompt", "file", "prompts", "json"};
    static const char *const of_decoding[] = {"draft", "lookup", "prompt-cache", "sinks"};
    for (int i = 0; i < 3; i++)
        for (int k = i + 1; k < 3; k++)
            if (program_either(of_text[i], of_text[k])) return EXIT_USAGE;
    for (int i = 0; chat && i < 3; i++)
        if (program_given(of_text[i]))
            return program_usage("--chat reads messages from standard input and does not take --%s", of_text[i]);
    for (int i = 0; i < 4; i++) /* each is a decoding of its own */
        for (int k = i + 1; k < 4; k++)
            if (program_given(of_decoding[i]) && program_given(of_decoding[k]))
                return program_usage("--%s and --%s cannot be combined", of_decoding[i], of_decoding[k]);
    if (program_either("choices", "json-schema") || (choices && program_either("choices", "draft")) ||
        (schema && program_either("json-schema", "draft")))
        return EXIT_USAGE;
    if ((choices || schema) && how.lookup) return program_stray("lookup", "texts without rules");
    if (how.cache && (chat || prompts)) return program_stray("prompt-cache", "--prompt and --file");
    if (!draft && !how.lookup && program_given("ahead")) return program_stray("ahead", "--draft and --lookup");
    return 0;
}

static int run(int count, char **operands)
{
    model  m, small = {.net = NULL};
    writer w = {.m = NULL};
    (void)count, (void)operands;
    int code = check();
    if (code) return code;
    const double began = seconds_now();
    double       loading = 0;
    how.seed = (uint64_t)seed;
    if ((code = writer_set_sampling(&how, temperature))) return code;
    if (!model_open_to_infer(dir, tokenizer, false, type, &m)) return program_end();
    if (chat && !check_chat(&m)) {
        model_close(&m);
        return program_end();
    }
    if (draft && model_open_to_infer(draft, NULL, true, type, &small) && model_set_cache(&small, cache))
        how.draft = &small;
    if (tn_error() == TN_OK && (choices || schema)) rules_open(choices, schema, &m, &how);
    if (tn_error() == TN_OK && model_set_cache(&m, cache) && writer_open(&w, &m, &how)) {
        loading = seconds_now() - began;
        write_texts(&w, &m);
    }
    report_speed(&w, loading);
    if ((how.draft || how.lookup) && !settings.quiet) report_proposals(&w);
    writer_close(&w);
    rules_close(&how);
    model_close(&m), model_close(&small);
    code = program_end();
    return code || !some_failed ? code : EXIT_FAILED;
}

static const option options[] = {
    OPTION_TEXT("model", 'm', "PATH", &dir, MODEL_HELP, .required = true),
    OPTION_TEXT("tokenizer", 0, "PATH", &tokenizer, TOKENIZER_HELP),
    OPTION_TEXT("type", 0, "TYPE", &type, MODEL_TYPE_HELP, .choices = MODEL_TYPES),
    OPTION_CACHE(&cache),
    OPTION_TEXT("prompt", 'p', "TEXT", &prompt,
                "text to continue; without it, the text in a pipe; else the tokenizer's start token, or a new line"),
    OPTION_LIST("file", 'f', "FILE", &files,
                "text to continue, from a file, or - for standard input; its last line end is ignored", .single = true),
    OPTION_TEXT(
        "prompts", 0, "FILE", &prompts,
        "several texts to continue, one per line, or lines of JSON with \"prompt\"; - for standard input; a line that "
        "cannot be continued is reported, and the exit code is then 1"),
    OPTION_FLAG("json", 0, &json,
                "print a line of JSON for each text: \"prompt\" and its continuation, \"text\"; with --chat, \"role\" "
                "and \"content\", which lines of the input may have, too"),
    OPTION_TEXT("choices", 0, "FILE", &choices,
                "write one of the lines of this file, each as it continues the prompt, blanks at its start included"),
    OPTION_TEXT("json-schema", 0, "FILE", &schema,
                "write JSON that follows this schema: objects, strings, integers and enums"),
    OPTION_INT("tokens", 'n', "N", &how.tokens, "maximum number of tokens to generate", .least = 0, .most = 1e9),
    WRITER_SAMPLING(how, temperature),
    OPTION_REAL("min-p", 0, "P", &how.how.min_p, "sample only tokens at least P times as likely as the most likely one",
                .least = 0, .most = 1),
    OPTION_REAL("repetition-penalty", 0, "X", &how.how.repetition_penalty,
                "above 1, tokens that are in the text become less likely", .least = 0.01, .most = 100),
    OPTION_LIST("stop", 0, "TEXT", &how.stop, "end before this text; may be given several times", .single = true),
    OPTION_SEED(0, &seed, " of the sampling"),
    OPTION_FLAG("chat", 0, &chat,
                "answer each line of standard input, and remember the conversation; uses the model's chat template, "
                "if it has one"),
    OPTION_TEXT("draft", 0, "PATH", &draft,
                "smaller model with the same vocabulary, for speculative decoding; the text stays the same"),
    OPTION_FLAG("lookup", 0, &how.lookup,
                "propose the next tokens from earlier text, which is faster if the text repeats itself or its prompt; "
                "the text stays the same"),
    OPTION_INT("ahead", 0, "N", &how.ahead, "tokens proposed at a time (default: 4, or at most 16 with --lookup)",
               .least = 1, .most = 64),
    OPTION_TEXT("prompt-cache", 0, "FILE", &how.cache,
                "file of the model's state after the prompt: a prompt that starts as the one in it is not read again"),
    OPTION_INT("sinks", 0, "N", &how.sinks,
               "generate without a limit: the first N tokens stay in the context, the oldest after them are dropped "
               "(only for rotary positions)",
               .least = 0, .most = 1e6),
    {0},
};
const command write_command = COMMAND(
    "write", "continue a text", options,
    .text = "Writes the prompt and its continuation to standard output, token by token. A text may be longer than the "
            "model's maximum context: when the context is full, the model keeps only the last half of it.\n\n"
            "  gpt write --model book --prompt \"The old man\" --tokens 300 --temperature 0.7\n"
            "  gpt write --model book --prompt \"Chapter 1\" --temperature 0 --stop \"Chapter 2\"");
