/* write.c — gpt write: a text goes on. */
#include "gpt.h"

#include <stdlib.h>
#include <string.h>

enum { LINE_MOST = 1 << 20 }; /* bytes */

static const char *dir, *tokenizer, *prompt;
static manner      how = {.how = {TN_GENERATE_ARGS_DEFAULTS}, .tokens = 200};
static int64_t     seed = 1;
static double      temperature = 0.8;
static bool        chat;

/* Each line of standard input is what somebody says; the model's answer ends at a line's end, or a stop word. */
static void talk(writer *w)
{
    char  *line = NULL;
    size_t room = 0, bytes;
    while (tn_error() == TN_OK && next_line(&line, &room, &bytes, LINE_MOST - 1)) {
        line[bytes] = '\n'; /* the NUL's place */
        if (w->cut) writer_read(w, tn_text_of("\n"));
        if (!writer_read(w, (tn_text){line, bytes + 1}) || !writer_write(w)) break;
        putchar('\n');
        fflush(stdout);
    }
    free(line);
}

static int run(int count, char **operands)
{
    static const char *line_end[] = {"\n"};
    model              m;
    writer             w;
    (void)count, (void)operands;
    if (chat && prompt) return program_usage("--chat reads what is said from standard input: leave --prompt out");
    if (chat && !how.stop.count) how.stop = (option_list){1, line_end};
    how.how.sample = temperature > 0, how.seed = (uint64_t)seed;
    if (how.how.sample) how.how.temperature = temperature;
    if (!model_open(dir, tokenizer, false, &m)) return program_end();
    if (writer_open(&w, &m, &how)) {
        if (chat) talk(&w);
        else {
            if (!prompt) prompt = w.text.n ? "" : "\n"; /* LLaMA's begin by themselves */
            if (writer_read(&w, tn_text_of(prompt))) {
                fputs(prompt, stdout);
                writer_write(&w);
            }
        }
    }
    writer_close(&w);
    model_close(&m);
    return program_end();
}

static const option options[] = {
    OPTION_TEXT("model", 'm', "PATH", &dir, MODEL_HELP, .required = true),
    OPTION_TEXT("tokenizer", 0, "PATH", &tokenizer, TOKENIZER_HELP),
    OPTION_TEXT("prompt", 'p', "TEXT", &prompt,
                "how the text begins; without it, the model begins by itself, or with a new line"),
    OPTION_INT("tokens", 'n', "N", &how.tokens, "how many pieces to write", .least = 0, .most = 1e9),
    OPTION_REAL("temperature", 't', "T", &temperature,
                "0: always the likeliest; below 1 rather the likely ones, above 1 also others", .least = 0,
                .most = 100),
    OPTION_INT("top-k", 'k', "N", &how.how.top_k, "only the N likeliest", .least = 0, .most = 1e7),
    OPTION_REAL("top-p", 0, "P", &how.how.top_p, "only the likeliest that make up so much probability", .least = 1e-9,
                .most = 1),
    OPTION_REAL("min-p", 0, "P", &how.how.min_p, "only those at least so likely as P times the likeliest", .least = 0,
                .most = 1),
    OPTION_REAL("repetition-penalty", 0, "X", &how.how.repetition_penalty,
                "what the text has already becomes less likely above 1", .least = 0.01, .most = 100),
    OPTION_LIST("stop", 0, "TEXT", &how.stop, "end before one of these", .single = true),
    OPTION_INT("seed", 0, "N", &seed, "of what is drawn: another one, another text"),
    OPTION_FLAG("chat", 0, &chat, "answer each line of standard input, and remember what was said"),
    {0},
};
const command write_command = COMMAND(
    "write", "go on with a text", options,
    .text = "Writes the prompt and what the model makes of it to standard output, piece by piece. A text may be longer "
            "than the model's own length: it then sees the last half of that.\n\n"
            "  gpt write --model book --prompt \"The old man\" --tokens 300 --temperature 0.7\n"
            "  gpt write --model book --prompt \"Chapter 1\" --temperature 0 --stop \"Chapter 2\"");
