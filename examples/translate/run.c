/* run.c — translate run: lines of standard input, translated, in their order. */
#include "translate.h"

#include <string.h>

static const char *dir;
static manner      how = {.beams = 5, .best = 1, .batch = 64};
static double      penalty = 1;
static bool        scored;

/* Reads at most so many lines; the spans point into `text`. */
static int64_t read_lines(int64_t most, tn_string *text, tn_span *lines, bool *ended)
{
    int64_t n = 0;
    size_t  starts[4097], bytes = 0;
    char    part[65536];
    tn_string_free(text);
    starts[0] = 0;
    while (n < most && tn_error() == TN_OK) {
        if (!fgets(part, sizeof part, stdin)) {
            *ended = true;
            break;
        }
        const size_t got = strlen(part);
        tn_string_add(text, (tn_span){part, got});
        bytes += got;
        if (part[got - 1] == '\n' || feof(stdin)) starts[++n] = bytes;
    }
    for (int64_t i = 0; i < n && tn_error() == TN_OK; i++) {
        size_t length = starts[i + 1] - starts[i];
        while (length && strchr("\r\n", text->at[starts[i] + length - 1])) length--;
        lines[i] = (tn_span){text->at + starts[i], length};
    }
    return n;
}

static int run(int count, char **operands)
{
    enum { MOST = 4096, BEST = 64 };
    (void)count, (void)operands;
    if (how.best > how.beams) return program_usage("--n-best can be at most --beam, %lld", (long long)how.beams);
    how.length_penalty = penalty == 0 ? TN_ZERO : penalty;
    model     m;
    tn_string text = {0}, *out = tn_mem_get(sizeof(tn_string) * MOST * BEST);
    tn_span  *lines = tn_mem_get(sizeof *lines * MOST);
    double   *scores = tn_mem_get(sizeof *scores * MOST * BEST);
    bool      ended = false;
    if (out && lines && scores && model_open(dir, &m)) {
        while (!ended && tn_error() == TN_OK) {
            const int64_t n = read_lines(how.batch * 16 < MOST ? how.batch * 16 : MOST, &text, lines, &ended);
            if (!n || !translate_lines(&m, &how, n, lines, out, scores)) break;
            for (int64_t i = 0; i < n * how.best; i++) {
                if (scored || how.best > 1) printf("%lld\t%.4f\t", (long long)(i / how.best), scores[i]);
                if (printf("%.*s\n", (int)out[i].bytes, out[i].at ? out[i].at : "") < 0)
                    tn_raise(TN_EIO, "standard output cannot be written");
                tn_string_free(&out[i]);
            }
            fflush(stdout);
        }
        model_close(&m);
    }
    tn_string_free(&text);
    if (out) tn_mem_put(out, sizeof(tn_string) * MOST * BEST);
    if (lines) tn_mem_put(lines, sizeof *lines * MOST);
    if (scores) tn_mem_put(scores, sizeof *scores * MOST * BEST);
    return program_end();
}

static const option options[] = {
    OPTION_TEXT("model", 'm', "DIR", &dir, "the model's folder", .required = true),
    OPTION_INT("beam", 'b', "N", &how.beams, "beginnings to follow side by side; 1 is greedy", .least = 1, .most = 64),
    OPTION_INT("n-best", 0, "N", &how.best, "how many translations of each line, with number and score", .least = 1,
               .most = 64),
    OPTION_INT("batch", 0, "N", &how.batch, "lines at once", .least = 1, .most = 4096),
    OPTION_INT("longest", 0, "N", &how.most, "pieces of a translation; without it, twice the line's and 20", .least = 2,
               .most = 100000),
    OPTION_REAL("length-penalty", 0, "P", &penalty, "scores are divided by the number of pieces to this power",
                .least = 0, .most = 10),
    OPTION_FLAG("scores", 0, &scored, "number and score before each line"),
    {0},
};
const command run_command = {
    .name = "run",
    .summary = "translate lines",
    .options = options,
    .run = run,
    .text = "Reads lines on standard input and writes a translation of each, in their order.\n\n"
            "  translate run --model ende < test.en > test.out",
};
