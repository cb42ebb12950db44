/* fuzz_options.c — any bytes as a command line, one word per line, of a program with commands and options of every
 * kind. It is rejected with a message, or the command runs with numbers within their limits, valid choices, and no word
 * lost. */
#define _GNU_SOURCE
#include "programs/common/options.h"
#include "tests/fuzz/silent.h"
#include <string.h>

#define CHECK(x) ((x) ? (void)0 : abort())

enum { WORDS = 64 };
static struct {
    bool        flag, other;
    int64_t     steps, any;
    double      rate;
    const char *size, *out;
    option_list texts, singles;
    int         ran;
} asked;

static int run(int count, char **operands)
{
    CHECK(asked.steps >= 1 && asked.steps <= 1000 && asked.rate >= 0 && asked.rate <= 0.9);
    CHECK(!strcmp(asked.size, "tiny") || !strcmp(asked.size, "small") || !strcmp(asked.size, "large"));
    CHECK(count >= 1 && count <= 3 && asked.out);
    for (int i = 0; i < count; i++) CHECK(operands[i]);
    for (int i = 0; i < asked.texts.count; i++) CHECK(asked.texts.value[i]);
    for (int i = 0; i < asked.singles.count; i++) CHECK(asked.singles.value[i]);
    asked.ran++;
    return EXIT_OK;
}

static const option options[] = {
    OPTION_FLAG("flag", 'f', &asked.flag, "a flag"),
    OPTION_FLAG("other", 0, &asked.other, "another"),
    OPTION_INT("steps", 's', "N", &asked.steps, "number of steps", .least = 1, .most = 1000),
    OPTION_INT("any", 0, "N", &asked.any, "any number"),
    OPTION_REAL("rate", 'r', "P", &asked.rate, "rate", .least = 0, .most = 0.9),
    OPTION_TEXT("size", 0, "NAME", &asked.size, "size", .choices = "tiny|small|large"),
    OPTION_TEXT("out", 'o', "DIR", &asked.out, "output folder", .required = true),
    OPTION_LIST("text", 't', "FILE", &asked.texts, "text files"),
    OPTION_LIST("single", 0, "FILE", &asked.singles, "one file per option", .single = true),
    {0},
};
static const command commands[] = {
    {.name = "train",
     .summary = "train it",
     .options = options,
     .run = run,
     .operands = "A [B [C]]",
     .least = 1,
     .most = 3},
    {.name = "train-other",
     .summary = "train another",
     .options = options,
     .run = run,
     .operands = "A",
     .least = 1,
     .most = 1},
    {0},
};
static const program many = {.name = "many", .summary = "of many commands", .commands = commands};
static const program one = {.name = "one",
                            .summary = "of one command",
                            .commands =
                                (const command[]){{.options = options, .run = run, .least = 1, .most = 3}, {0}}};

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char *words[WORDS + 1] = {"many"}, *text = calloc(size + 1, 1);
    int   n = 1;
    CHECK(text);
    if (size) memcpy(text, data, size);
    for (char *at = text; at && n < WORDS;) {
        words[n++] = at;
        at = strchr(at, '\n');
        if (at) *at++ = 0;
    }
    for (int i = 0; i < 2; i++) {
        char *given[WORDS + 1];
        memcpy(given, words, sizeof given);
        memset(&asked, 0, sizeof asked);
        asked.steps = 10, asked.rate = 0.5, asked.size = "tiny";
        const streams were = silent_begin(NULL, 0);
        const int     code = program_main(i ? &one : &many, n, given);
        silent_end(were);
        CHECK(code == EXIT_USAGE || code == EXIT_OK);
        CHECK(asked.ran <= (code == EXIT_OK));
    }
    free(text);
    tn_set_threads(0);
    CHECK(tn_error() == TN_OK);
    return 0;
}
