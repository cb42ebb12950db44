/* demo.c — translate demo: dates as people write them, to ISO 8601. */
#include "dates.h"
#include "translate.h"

#include <string.h>

static const char *out = "build/dates";
static double      minutes = 1.5;
static int64_t     steps, pairs_to_learn = 60000, asked = 1000;
static bool        again;

static bool write_pairs(const char *text, const char *iso, int64_t n)
{
    FILE *f[2] = {fopen(text, "wb"), fopen(iso, "wb")};
    bool  fine = f[0] && f[1];
    char  line[2][DATE_TEXT];
    for (int64_t i = 0; fine && i < n; i++) {
        date_pair(1, (uint64_t)i, false, line[0], line[1]);
        fine = fprintf(f[0], "%s\n", line[0]) >= 0 && fprintf(f[1], "%s\n", line[1]) >= 0;
    }
    for (int i = 0; i < 2; i++)
        if (f[i] && fclose(f[i])) fine = false;
    if (!fine) tn_raise(TN_EIO, "'%s' and '%s' cannot be written", text, iso);
    return fine;
}

/* Of dates on days that were held out: the part that comes out exactly right. */
static double exact(const model *m)
{
    enum { AT_ONCE = 256 };
    const manner greedy = {.beams = 1, .best = 1, .batch = 128};
    int64_t      right = 0, shown = 0;
    for (int64_t i = 0; i < asked && tn_error() == TN_OK; i += AT_ONCE) {
        static char   text[AT_ONCE][DATE_TEXT], iso[AT_ONCE][DATE_TEXT];
        tn_span       lines[AT_ONCE];
        tn_string     said[AT_ONCE] = {{0}};
        const int64_t n = asked - i < AT_ONCE ? asked - i : AT_ONCE;
        for (int64_t k = 0; k < n; k++) {
            date_pair(2, (uint64_t)(i + k), true, text[k], iso[k]);
            lines[k] = tn_span_of(text[k]);
        }
        translate_lines(m, &greedy, n, lines, said, NULL);
        for (int64_t k = 0; k < n; k++) {
            const bool same = said[k].bytes == strlen(iso[k]) && !memcmp(said[k].at, iso[k], said[k].bytes);
            right += same;
            if ((!same || i + k < 5) && shown < 12 && !settings.quiet) {
                fprintf(stderr, "  %-32s %.*s%s%s\n", text[k], (int)said[k].bytes, said[k].at ? said[k].at : "",
                        same ? "" : "   should be ", same ? "" : iso[k]);
                shown++;
            }
            tn_string_free(&said[k]);
        }
    }
    return (double)right / (double)asked;
}

static int run(int count, char **operands)
{
    (void)count, (void)operands;
    char         text[1024], iso[1024], folder[1024];
    const double began = seconds_now();
    train_config c = TRAIN_DEFAULTS;
    model        m = {.net = NULL};
    if (!make_folder(out) ||
        !write_pairs(in_folder(out, "dates.txt", text), in_folder(out, "dates.iso", iso), pairs_to_learn))
        return program_end();
    c.source = text, c.target = iso, c.out = in_folder(out, "model", folder), c.size = "tiny", c.layers = 2;
    c.vocab_size = 320, c.tokens = 2048, c.lr = 2e-3, c.dropout = 0.05, c.resume = again;
    c.minutes = steps ? 0 : minutes, c.steps = steps;
    const tn_fit_result r = train_model(&c, &m);
    if (r.why == TN_FIT_STOPPED) fprintf(stderr, "stopped; translate demo --resume goes on\n");
    else if (r.why != TN_FIT_FAILED) {
        const double part = exact(&m);
        if (tn_error() == TN_OK) printf("exact %.4f minutes %.2f\n", part, (seconds_now() - began) / 60);
    }
    model_close(&m);
    return program_end();
}

static const option options[] = {
    OPTION_TEXT("out", 'o', "DIR", &out, "where everything goes"),
    OPTION_REAL("minutes", 'm', "N", &minutes, "how long to train", .least = 0.01, .most = 1e4),
    OPTION_INT("steps", 'n', "N", &steps, "instead: how many steps", .least = 0, .most = 1e9),
    OPTION_INT("pairs", 0, "N", &pairs_to_learn, "dates to learn from", .least = 10, .most = 1e9),
    OPTION_INT("asked", 0, "N", &asked, "dates to ask for", .least = 1, .most = 1e6),
    OPTION_FLAG("resume", 'r', &again, "go on where it was broken off"),
    {0},
};
const command demo_command = {
    .name = "demo",
    .summary = "learn to read dates in five languages",
    .options = options,
    .run = run,
    .text =
        "\"Friday, 3rd of May 2019\", \"le 3 mai 2019\", \"05/03/19 (US)\": all are 2019-05-03. Learns from dates of a "
        "generator, and says how many it gets exactly right on days that it has never seen.",
};
