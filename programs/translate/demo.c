/* demo.c — translate demo: translates dates in five languages to ISO 8601. */
#include "../common/messages.h"
#include "../common/numbers.h"
#include "dates.h"
#include "tasks.h"
#include "translate.h"

#include <string.h>

static const char *out = "build/dates";
enum { DEFAULT_STEPS = 900 };
static double  minutes;
static int64_t steps, training_pairs = 60000, test_dates = 1000;
static bool    resume, json;

/* The fraction of dates on held-out days that the model translates without an error. */
static double exact_fraction(const model *m)
{
    enum { BATCH = 256 };
    const translate_options greedy = {.beams = 1, .best = 1, .batch = 128, .budget = 4096, .length_penalty = 1};
    int64_t                 right = 0, shown = 0;
    for (int64_t i = 0; i < test_dates && tn_error() == TN_OK; i += BATCH) {
        static char   text[BATCH][DATE_TEXT], iso[BATCH][DATE_TEXT];
        tn_text       lines[BATCH];
        tn_string     output[BATCH] = {{0}};
        const int64_t n = test_dates - i < BATCH ? test_dates - i : BATCH;
        for (int64_t k = 0; k < n; k++) {
            date_pair(2, (uint64_t)(i + k), true, text[k], iso[k]);
            lines[k] = tn_text_of(text[k]);
        }
        translate_lines(m, &greedy, n, lines, output, NULL);
        for (int64_t k = 0; k < n; k++) {
            const bool same = output[k].bytes == strlen(iso[k]) && !memcmp(output[k].at, iso[k], output[k].bytes);
            right += same;
            if ((!same || i + k < 5) && shown < 12 && !settings.quiet) {
                tell("  %-32s %.*s%s%s\n", text[k], (int)output[k].bytes, output[k].at ? output[k].at : "",
                     same ? "" : "   expected ", same ? "" : iso[k]);
                shown++;
            }
            tn_string_free(&output[k]);
        }
    }
    return (double)right / (double)test_dates;
}

/* Writes a page with the alignments of four dates. */
static bool write_alignments(const model *m)
{
    static const char *const dates[] = {"Friday, 3rd of May 2019", "le mardi 14 juillet 1998", "8. März 2031",
                                        "05/03/19 (US)"};
    char                     path[1024];
    tn_report               *r = tn_report_new("Dates: attention of the model");
    tn_report_paragraph(r, "One row per token of the translation, one column per token of the date: a stronger colour "
                           "means more attention.");
    for (size_t i = 0; i < sizeof dates / sizeof *dates && tn_error() == TN_OK; i++) {
        tn_string output = {0};
        align_picture(m, dates[i], r, &output);
        tn_string_free(&output);
    }
    const bool fine = record_report(r, in_folder(out, "align.html", path));
    if (fine && !settings.quiet) tell("alignments: %s\n", path);
    return fine;
}

static void print_end(double part, double took)
{
    if (json) numbers_json("{\"exact\":", part, 4), numbers_json(",\"minutes\":", took, 2), printf("}\n");
    else printf("After %.2f minutes the model converts %.1f %% of unseen dates without an error.\n", took, 100 * part);
}

static int run(int count, char **operands)
{
    (void)count, (void)operands;
    char               text[1024], iso[1024], folder[1024];
    const double       began = seconds_now();
    translate_training t = TRANSLATE_TRAINING;
    const int          code = program_either("steps", "minutes");
    if (code) return code;
    if (!make_folder(out) || !sample_pairs(TASK_DATES, 1, training_pairs, 1, false, in_folder(out, "dates.txt", text),
                                           in_folder(out, "dates.iso", iso)))
        return program_end();
    train_asked *a = &t.base.asked;
    t.source = text, t.target = iso, t.pieces = 2048, a->out = in_folder(out, "model", folder), a->size = "tiny";
    a->layers = 2, a->vocab_size = 320, a->lr = 2e-3, a->dropout = 0.05, a->resume = resume;
    a->minutes = minutes, a->steps = steps || minutes > 0 ? steps : DEFAULT_STEPS;
    t.base.no_duration = !steps && !(minutes > 0);
    const tn_fit_result r = train_run(&t.base);
    model               m = {.net = t.base.net, .tokens = t.base.tokens};
    if (r.why == TN_FIT_STOPPED) train_stopped(&r, "translate demo --resume");
    else if (r.why != TN_FIT_FAILED) {
        const double part = exact_fraction(&m);
        if (tn_error() == TN_OK && write_alignments(&m)) print_end(part, (seconds_now() - began) / 60);
    }
    model_close(&m);
    return t.base.usage ? t.base.usage : program_end();
}

static const option options[] = {
    OPTION_TEXT("out", 'o', "DIR", &out, "folder for dates, model and pages"),
    OPTION_INT("steps", 'n', "N", &steps, "training steps (default: 900)", .least = 1, .most = 1e9),
    OPTION_REAL("minutes", 0, "N", &minutes, "minutes of training, instead of --steps", .least = 0.01, .most = 1e4),
    OPTION_INT("pairs", 0, "N", &training_pairs, "dates in the training set", .least = 10, .most = 1e9),
    OPTION_INT("asked", 0, "N", &test_dates, "dates in the test set", .least = 1, .most = 1e6),
    OPTION_FLAG("resume", 'r', &resume, "resume an interrupted run"),
    OPTION_FLAG("json", 0, &json, "print the last line as JSON"),
    {0},
};
const command demo_command =
    COMMAND("demo", "train on dates in five languages, in about two minutes", options,
            .text = "Trains a model that converts dates such as \"Friday, 3rd of May 2019\", \"le 3 mai 2019\" and "
                    "\"05/03/19 (US)\" to 2019-05-03. The dates are generated. The program first prints an estimate of "
                    "the training time; the last line shows the percentage of test dates converted without an error. "
                    "Test dates are on days that are not in the training set.");
