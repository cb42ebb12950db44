/* run.c — translate run: translates the lines of standard input in order. */
#include "core/system/system.h"

#include "../common/ensemble.h"
#include "../common/messages.h"
#include "../common/numbers.h"
#include "../common/records.h"
#include "../common/progress.h"
#include "../common/texts.h"
#include "../common/weights.h"
#include "translate.h"

#include <stdlib.h>

static const char       *model_dir, *dtype, *from, *to;
static option_list       model_dirs;
static translate_options config = {.beams = 5, .best = 1, .batch = 256, .budget = 1024};
static double            length_penalty = 1;
static bool              print_scores, strict, json, short_list;
static shortlist         likely;

/* ---- lines ------------------------------------------------------------------------------------------------------- */

enum { MOST = 4096, BEST = 64, LONGEST_LINE = 1 << 20 };

/* Reads at most `most` lines, one if standard input is a terminal. The lines borrow the bytes of `text`. Returns the
 * number of lines; *ended: no line follows. */
static int64_t read_lines(int64_t most, tn_string *text, tn_text *lines, bool *ended)
{
    static size_t starts[MOST + 1];
    char         *line = NULL;
    size_t        room = 0;
    int64_t       n = 0;
    if (isatty(STDIN_FILENO)) most = 1;
    tn_string_free(text);
    while (n < most && tn_error() == TN_OK) {
        const ssize_t got = getline(&line, &room, stdin);
        if (got < 0) { /* without memory for the line, getline fails but sets no error on the stream */
            *ended = true;
            if (ferror(stdin)) tn_raise(TN_EIO, "standard input cannot be read");
            else if (!feof(stdin)) tn_raise(TN_ENOMEM, "no memory for a line of standard input");
            break;
        }
        if (got > LONGEST_LINE) {
            tn_raise(TN_EFORMAT, "a line has %lld bytes, the maximum is %d; split it", (long long)got, LONGEST_LINE);
            break;
        }
        tn_string_add(text, (tn_text){line, (size_t)got});
        starts[++n] = text->bytes;
    }
    free(line);
    for (int64_t i = 0; i < n && tn_error() == TN_OK; i++) {
        size_t      length = starts[i + 1] - starts[i];
        const char *at = text->at + starts[i];
        if (length && at[length - 1] == '\n') length--;
        if (length && at[length - 1] == '\r') length--;
        lines[i] = (tn_text){at, length};
    }
    return n;
}

/* Writes one line. Line ends and NULs in s become blanks: a byte-level model can generate them. */
static void write_line(const tn_string *s)
{
    for (size_t i = 0; i < s->bytes; i++) putchar(s->at[i] == '\n' || s->at[i] == '\r' || !s->at[i] ? ' ' : s->at[i]);
    putchar('\n');
}

/* Prints a line and its translations as a line of JSON. */
static void write_json(tn_text line, const tn_string *out, const double *scores)
{
    tn_json_writer *w = tn_json_writer_new(0);
    tn_string       source = {0};
    tn_string_add(&source, line);
    tn_json_open_object(w, NULL);
    texts_put(w, "source", tn_string_add(&source, (tn_text){"", 1}) == TN_OK ? source.at : "");
    tn_json_open_array(w, "translations");
    for (int64_t k = 0; k < config.best; k++) {
        tn_json_open_object(w, NULL);
        texts_put(w, "text", out[k].at ? out[k].at : "");
        numbers_put(w, "score", scores[k], 6);
        tn_json_close(w);
    }
    tn_json_close(w), tn_json_close(w);
    records_print(w);
    tn_json_writer_free(w);
    tn_string_free(&source);
}

static void warn_faults(const faults *f)
{
    if (f->cut)
        warn("%lld lines were longer than the model's positions and truncated; the first is line %lld\n",
             (long long)f->cut, (long long)f->first_cut);
    if (f->broken)
        warn("%lld lines are not UTF-8; invalid bytes were read as U+FFFD; the first is line %lld\n",
             (long long)f->broken, (long long)f->first_break);
}

static bool wants_scores(void) { return json || print_scores || config.best > 1; }

/* ---- the command ------------------------------------------------------------------------------------------------- */

static void translate_all(const model *m, tn_string *out, tn_text *lines, double *scores)
{
    faults    found = {0};
    tn_string text = {0};
    bool      ended = false;
    config.found = &found;
    progress bar = progress_begin("translate", 0, "line");
    bar.silent = bar.silent || isatty(STDOUT_FILENO);
    for (int64_t before = 0; !ended && tn_error() == TN_OK; before = found.before) {
        const int64_t n = read_lines(config.batch * 16 < MOST ? config.batch * 16 : MOST, &text, lines, &ended);
        if (!n || !translate_lines(m, &config, n, lines, out, wants_scores() ? scores : NULL)) break;
        if (strict && found.broken) {
            tn_raise(TN_EFORMAT, "line %lld is not UTF-8; " TEXTS_CONVERT, (long long)found.first_break);
            break;
        }
        for (int64_t i = 0; json && i < n; i++) write_json(lines[i], &out[i * config.best], &scores[i * config.best]);
        for (int64_t i = 0; !json && i < n * config.best; i++) {
            if (wants_scores()) printf("%lld\t%.4f\t", (long long)(before + i / config.best), scores[i]);
            write_line(&out[i]);
        }
        if (fflush(stdout) != 0) tn_raise(TN_EIO, "standard output cannot be written");
        for (int64_t i = 0; i < n * config.best; i++) tn_string_free(&out[i]);
        progress_at(&bar, before + n, "");
    }
    if (bar.drawn > bar.began) progress_end(&bar);
    for (int64_t i = 0; i < MOST * BEST; i++) tn_string_free(&out[i]);
    tn_string_free(&text);
    if (tn_error() == TN_OK) warn_faults(&found);
}

/* Options that are not set are the model's, if it has them. */
static void follow(const model *m)
{
    const tn_seq2seq_search *own = &m->net->search;
    if (!program_given("beam") && own->beams >= config.best) config.beams = own->beams;
    config.length_penalty = program_given("length-penalty") ? length_penalty : own->length_penalty;
}

/* Opens the models after the first, to decode together with it. False: raised. */
static bool open_others(const model *first, model *other, tn_seq2seq **nets)
{
    config.other = nets;
    for (int i = 1; i < model_dirs.count; i++) {
        model *m = &other[config.others];
        if (!model_open(model_dirs.value[i], m)) return false;
        nets[config.others++] = m->net;
        if (first->net->config.type || m->net->config.type)
            return tn_raise_false(TN_EUNSUPPORTED,
                                  "several --model decode together only if 'translate train' wrote them");
        if (tn_tokenizer_checksum(m->tokens) != tn_tokenizer_checksum(first->tokens))
            return tn_raise_false(TN_EINVAL,
                                  "'%s' and '%s' have different tokens; train both with one tokenizer (--vocab)",
                                  model_dirs.value[0], model_dirs.value[i]);
        if (!weights_pack(m->net, dtype)) return false;
    }
    return true;
}

static int run(int count, char **operands)
{
    (void)count, (void)operands;
    model_dir = model_dirs.value[0];
    if (model_dirs.count > ENSEMBLE_MOST)
        return program_usage("%d times --model; at most %d models decode together", model_dirs.count, ENSEMBLE_MOST);
    if (model_dirs.count > 1 && short_list)
        return program_usage("--shortlist is for one model; omit it or give one --model");
    if (config.best > config.beams)
        return program_usage("--top is %lld, but --beam is %lld; --top must not exceed --beam", (long long)config.best,
                             (long long)config.beams);
    if (config.beams == 1 && (config.gnmt || config.coverage > 0))
        return program_usage("--%s ranks the texts of a beam search; set --beam above 1",
                             config.gnmt ? "gnmt" : "coverage");
    model       m, other[ENSEMBLE_MOST] = {{.net = NULL}};
    tn_seq2seq *nets[ENSEMBLE_MOST];
    tn_string  *out = tn_mem_get(sizeof(tn_string) * MOST * BEST);
    tn_text    *lines = tn_mem_get(sizeof *lines * MOST);
    double     *scores = tn_mem_get(sizeof *scores * MOST * BEST);
    if (out && lines && scores && model_open_languages(model_dir, from, to, &m)) {
        follow(&m);
        if (config.copies && m.net->config.type)
            tn_raise(TN_EUNSUPPORTED, "--copy-unknown is for models of 'translate train', but this one is of type '%s'",
                     m.net->config.type);
        if (tn_error() == TN_OK && short_list && shortlist_open(model_dir, &m, &likely)) config.tokens = &likely;
        if (tn_error() == TN_OK && weights_pack(m.net, dtype) && open_others(&m, other, nets))
            translate_all(&m, out, lines, scores);
        shortlist_close(&likely);
        for (int i = 0; i < config.others; i++) model_close(&other[i]);
        model_close(&m);
    }
    if (out) tn_mem_put(out, sizeof(tn_string) * MOST * BEST);
    if (lines) tn_mem_put(lines, sizeof *lines * MOST);
    if (scores) tn_mem_put(scores, sizeof *scores * MOST * BEST);
    return program_end();
}

static const option options[] = {
    OPTION_LIST("model", 'm', "DIR", &model_dirs,
                "folder of the model; of several that share their tokens, the mean of their probabilities decides",
                .required = true),
    OPTION_TEXT("from", 0, "LANGUAGE", &from, "language of the lines, of a model of several: en, eng_Latn"),
    OPTION_TEXT("to", 0, "LANGUAGE", &to, "language of the translations: fr, fra_Latn"),
    OPTION_INT("beam", 0, "N", &config.beams, "beam width; 1: greedy decoding; a model may have another default",
               .least = 1, .most = 64),
    OPTION_INT("top", 'k', "N", &config.best, "translations per line, printed with line number and score", .least = 1,
               .most = 64),
    OPTION_INT("batch", 0, "N", &config.batch, "maximum lines of a batch", .least = 1, .most = 4096),
    OPTION_INT("tokens", 0, "N", &config.budget,
               "maximum tokens of a batch with several lines, padded to the longest; changes speed and memory only",
               .least = 1, .most = 1000000),
    OPTION_FLAG("early-stopping", 0, &config.early_stopping,
                "end a line's search when as many translations as the beam is wide have ended"),
    OPTION_INT(
        "longest", 0, "N", &config.most,
        "maximum tokens of a translation, with the one that ends it (default: the model's, else twice the line's "
        "tokens plus 20)",
        .least = 1, .most = 100000),
    OPTION_REAL("length-penalty", 0, "P", &length_penalty,
                "divide scores by the number of tokens to the power P; a model may have another default", .least = 0,
                .most = 10),
    OPTION_FLAG("gnmt", 0, &config.gnmt,
                "GNMT's length penalty: divide scores by ((5 + tokens) / 6) to the power P instead"),
    OPTION_REAL("coverage", 0, "B", &config.coverage,
                "GNMT's coverage penalty: add B times the sum of log(min(attention, 1)) over the line's tokens",
                .least = 0, .most = 10),
    OPTION_FLAG("copy-unknown", 0, &config.copies,
                "print the line's word with the largest attention weight for an unknown token, not nothing"),
    OPTION_FLAG("scores", 0, &print_scores, "print line number (from 0) and score before each translation"),
    OPTION_FLAG("json", 0, &json, "print a line of JSON for each line: \"source\" and \"translations\", best first"),
    OPTION_FLAG("shortlist", 0, &short_list,
                "use only likely translations of each token, from 'translate lexicon': faster, slightly worse"),
    OPTION_FLAG("strict-utf8", 0, &strict, "stop with an error at a line that is not UTF-8"),
    OPTION_WEIGHTS(&dtype),
    {0},
};
const command run_command = COMMAND(
    "run", "translate the lines of standard input", options,
    .text =
        "Reads lines from standard input and prints the translation of each in order; an empty line stays empty.\n"
        "A line longer than the model's positions is truncated, and invalid UTF-8 is read as U+FFFD; a warning at the "
        "end gives the number of such lines.\n\n"
        "The model is that of 'translate train', or the folder of a model of transformers: BART, Marian (OPUS-MT), "
        "M2M-100 or NLLB, whose generation_config.json is followed.\n\n"
        "  translate run --model ende < test.en > test.out\n"
        "  translate run --model m2m100_418M --from en --to fr < test.en > test.fr");
