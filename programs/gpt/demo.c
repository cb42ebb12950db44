/* demo.c — gpt demo: trains a model on the small world's text, compares its loss with the grammar's entropy, and
 * generates text. */
#include "../common/messages.h"
#include "../common/numbers.h"
#include "../common/world.h"
#include "gpt.h"

static const char *out = "build/gpt";
static double      minutes;
static int64_t     steps, documents = 12000;
static bool        again, json;
enum {
    USUAL_STEPS = 1800,
    HELD = 1 << 30, /* index of the first validation document */
    MEASURED = 250  /* number of validation documents */
};

/* Bits per byte of the validation documents under the grammar that generates them. */
static double allowed(void)
{
    char   text[WORLD_DOCUMENT];
    double sum = 0, bits, bytes = 0;
    for (int64_t i = 0; i < MEASURED; i++) {
        bytes += (double)world_document(1, (uint64_t)(HELD + i), text, &bits) + 1;
        sum += bits;
    }
    return sum / bytes;
}

/* Generates a text, prints it, and adds it to the report. */
static void show(const model *m, tn_report *r, const char *prompt, double temperature)
{
    writer_options how = {.how = {TN_GENERATE_ARGS_DEFAULTS}, .tokens = 60, .seed = 3};
    how.how.sample = temperature < 1, how.how.temperature = temperature;
    writer w;
    char   title[100];
    if (writer_open(&w, m, &how) && writer_read(&w, tn_text_of(prompt))) {
        if (!settings.quiet) fputs(prompt, stdout);
        w.out.silent = settings.quiet;
        writer_write(&w);
        if (!settings.quiet) printf("\n\n");
    }
    tn_string said = {0};
    if (tn_error() == TN_OK && tn_tokenizer_decode(m->tokens, w.text.at, w.text.n, &said) == TN_OK) {
        snprintf(title, sizeof title, "%s: %s", prompt, temperature < 1 ? "sampled" : "greedy");
        tn_report_heading(r, title);
        tn_report_paragraph(r, said.at);
    }
    tn_string_free(&said);
    writer_close(&w);
}

static void print_end(double bits, double took)
{
    if (json) numbers_json("{\"bits_per_byte\":", bits, 4), numbers_json(",\"minutes\":", took, 2), printf("}\n");
    else
        printf("After %.2f minutes the model needs %.4f bits per byte of unseen text; the best possible is %.4f.\n",
               took, bits, allowed());
}

static int run(int count, char **operands)
{
    (void)count, (void)operands;
    char         text[1024], held[1024], folder[1024], page[1024], words[400];
    const char  *files[1] = {text}, *others[1] = {held};
    const double began = seconds_now();
    gpt_training t = GPT_TRAINING;
    tn_string    unseen = {0};
    measured     e = {.loss = 0};
    const int    code = program_either("steps", "minutes");
    if (code) return code;
    if (!make_folder(out) || !world_save(in_folder(out, "world.txt", text), 0, documents) ||
        !world_save(in_folder(out, "held-out.txt", held), HELD, MEASURED))
        return program_end();
    t.texts.of.text = (option_list){1, files}, t.texts.of.valid = (option_list){1, others};
    t.texts.length = 128, t.texts.batch = 16;
    train_asked *a = &t.base.asked;
    a->out = in_folder(out, "model", folder), a->size = "tiny", a->vocab_size = 1000, a->dropout = 0, a->lr = 2e-3;
    a->dtype = "f32", t.shape = "gpt2";
    a->minutes = minutes, a->steps = steps || minutes > 0 ? steps : USUAL_STEPS, a->resume = again;
    t.base.no_duration = !steps && !(minutes > 0);
    const tn_fit_result r = train_run(&t.base);
    model               m = {.net = t.base.net, .tokens = t.base.tokens};
    if (m.net) m.about = tn_lm_info_of(m.net);
    if (r.why == TN_FIT_STOPPED) train_stopped(&r, "gpt demo --resume");
    else if (r.why != TN_FIT_FAILED && texts_read(&t.texts.of.valid, &unseen) &&
             measure(&m, (tn_text){unseen.at, unseen.bytes}, 0, 0, &e)) {
        tn_report *p = tn_report_new("A small GPT trained on a small world");
        snprintf(
            words, sizeof words,
            "On unseen documents the model needs %.4f bits per byte. The random choices of the grammar that generated "
            "them amount to %.4f bits per byte: no model can need fewer on average.",
            e.bits, allowed());
        char number[32];
        snprintf(number, sizeof number, "%.4f", e.bits);
        run_summary(p, &(run_page){.folder = folder}, number, "bits per byte on unseen documents");
        tn_report_paragraph(p, words);
        show(&m, p, "The keys to the cabinet", 1);
        show(&m, p, "The girl carried the basket because", 0.8);
        tn_report_heading(p, "Training");
        run_curves(p, &(run_page){.folder = folder});
        if (record_report(p, in_folder(out, "report.html", page)) && !settings.quiet) tell("report   %s\n", page);
        if (tn_error() == TN_OK) print_end(e.bits, (seconds_now() - began) / 60);
    }
    tn_string_free(&unseen);
    model_close(&m);
    return t.base.usage ? t.base.usage : program_end();
}

static const option options[] = {
    OPTION_TEXT("out", 'o', "DIR", &out, "output folder"),
    OPTION_INT("steps", 'n', "N", &steps, "training steps (default: 1800)", .least = 1, .most = 1e9),
    OPTION_REAL("minutes", 0, "N", &minutes, "train for about N minutes instead", .least = 0.01, .most = 1e4),
    OPTION_INT("documents", 0, "N", &documents, "number of documents to generate", .least = 10, .most = 1e9),
    OPTION_FLAG("resume", 'r', &again, "resume an interrupted run"),
    OPTION_FLAG("json", 0, &json, "print the last line as JSON"),
    {0},
};
const command demo_command =
    COMMAND("demo", "train on generated English, and generate text", options,
            .text = "Generates text about a small world from a grammar, trains a small model on it, compares the "
                    "model's bits per byte with those of the grammar, generates two texts, and writes a report to "
                    "DIR/report.html. The expected duration is printed at the start.");
