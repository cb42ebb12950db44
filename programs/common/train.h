/* train.h — a training, from the command line to the model's folder. A train_kind contains the functions that are
 * specific to one kind of model; options, folder, lock, tokenizer, run.json, resuming, tn_fit, progress, record and
 * report are common to all.
 *
 *     static struct { training base; option_list text; } t = {.base = {.kind = &kind, .asked = {TRAIN_DEFAULTS}}};
 *     static const option options[] = {TRAIN_OPTIONS(t.base.asked, 's', "tiny|small", "20", "0.001"), {0}};
 *     const command train_command = TRAIN_COMMAND("train", "train a model", options, &t.base, .text = "…"); */
#ifndef TENON_PROGRAMS_COMMON_TRAIN_H
#define TENON_PROGRAMS_COMMON_TRAIN_H

#include "page.h"
#include "ranks.h"
#include "record.h"
#include "sentence_pairs.h"
#include "stop.h"
#include "train_texts.h"
#include <math.h>

/* The options of every training. 0, or NaN for dropout: the value of --size. */
typedef struct {
    const char *out, *size, *dtype, *vocab, *memory;
    int64_t     vocab_size, steps, epochs, seed, layers, heads, dim, ranks, shards, keep;
    double      minutes, lr, warmup, dropout;
    bool        resume, force, zero;
    option_list compare;
} train_asked;
#define TRAIN_DEFAULTS .lr = 1e-3, TRAIN_DEFAULTS_CHOSEN
/* For a kind that calls train_choose, which sets `size` and lr, too. */
#define TRAIN_DEFAULTS_CHOSEN .dtype = "f32", TRAIN_DEFAULTS_ALL_CHOSEN
/* The same, and train_choose also sets dtype: bf16 if the CPU has products of it. */
#define TRAIN_DEFAULTS_ALL_CHOSEN .warmup = 0.1, .seed = 1
/* The options of a kind that calls train_choose. */
#define TRAIN_OPTIONS(a, letter_of_size, sizes, minutes_, rate)                                           \
    TRAIN_SIZE(a, letter_of_size, sizes, "depends on the minutes"), TRAIN_HEADS(a), TRAIN_WIDTH(a),       \
        TRAIN_TEXT(a, "default: depends on the size of the text"), TRAIN_RUN(a, "texts", minutes_, rate), \
        TRAIN_KEEP(a), TRAIN_RANKS(a)
/* The parts of TRAIN_OPTIONS, for a model without heads or without text, or a source that has no shards. */
#define TRAIN_SIZE(a, letter_of_size, sizes, otherwise_)                                                            \
    OPTION_TEXT("out", 'o', "DIR", &(a).out, "folder of the new model", .required = true, .resume = RESUME_FOLDER), \
        OPTION_TEXT("size", letter_of_size, "NAME", &(a).size, "model size", .choices = (sizes),                    \
                    .otherwise = otherwise_),                                                                       \
        OPTION_INT("layers", 0, "N", &(a).layers, "number of layers (default: of --size)", .least = 1, .most = 1024)
#define TRAIN_HEADS(a) \
    OPTION_INT("heads", 0, "N", &(a).heads, "number of heads (default: of --size)", .least = 1, .most = 1024)
#define TRAIN_WIDTH(a)                                                                               \
    OPTION_INT("dim", 0, "N", &(a).dim, "width (default: of --size)", .least = 1, .most = 65536),    \
        OPTION_REAL("dropout", 0, "P", &(a).dropout, "dropout probability", .least = 0, .most = 0.9, \
                    .otherwise = "depends on the model and the text")
#define TRAIN_TEXT(a, otherwise_)                                                                                \
    OPTION_TEXT("vocab", 0, "PATH", &(a).vocab, "file or folder of an existing tokenizer to use"),               \
        OPTION_INT("vocab-size", 0, "N", &(a).vocab_size, "vocabulary size of a new tokenizer (" otherwise_ ")", \
                   .least = 10, .most = 1e7)
#define TRAIN_RUN(a, what, minutes_, rate)                                                                             \
    OPTION_INT("steps", 'n', "N", &(a).steps, "train for N steps, instead of --minutes", .least = 1, .most = 1e9,      \
               .resume = RESUME_FREE),                                                                                 \
        OPTION_INT("epochs", 0, "N", &(a).epochs, "train for N epochs of the " what ", instead of --minutes",          \
                   .least = 1, .most = 1e6, .resume = RESUME_FREE),                                                    \
        OPTION_REAL("minutes", 0, "N", &(a).minutes,                                                                   \
                    "train for about N minutes (default: " minutes_ ", unless --steps or --epochs is set)",            \
                    .least = 0.01, .most = 1e6, .resume = RESUME_FREE),                                                \
        OPTION_TEXT("memory", 0, "SIZE", &(a).memory,                                                                  \
                    "maximum memory in bytes, such as 500M or 2G; layers that do not fit are recomputed",              \
                    .resume = RESUME_FREE),                                                                            \
        OPTION_TEXT("dtype", 0, "TYPE", &(a).dtype, "dtype of the computation; bf16 is faster if the CPU supports it", \
                    .choices = "f32|bf16", .otherwise = "the faster one on this CPU"),                                 \
        OPTION_REAL("lr", 0, "RATE", &(a).lr, "maximum learning rate", .least = 1e-9, .most = 100, .otherwise = rate), \
        OPTION_SEED(0, &(a).seed, ""), TRAIN_RESUME(a)
/* The same for a command that trains a model further, by default for some epochs. */
#define TRAIN_TUNE(a, epochs_, rate)                                                                                   \
    OPTION_REAL("warmup", 0, "PART", &(a).warmup, "fraction of the steps in which the learning rate rises",            \
                .least = 0, .most = 1),                                                                                \
        OPTION_INT("steps", 'n', "N", &(a).steps, "train for N steps, instead of --epochs", .least = 1, .most = 1e9,   \
                   .resume = RESUME_FREE),                                                                             \
        OPTION_INT("epochs", 0, "N", &(a).epochs, "train for N epochs (default: " epochs_ ")", .least = 1,             \
                   .most = 1e6, .resume = RESUME_FREE),                                                                \
        OPTION_REAL("minutes", 0, "N", &(a).minutes, "train for about N minutes, instead of --epochs", .least = 0.01,  \
                    .most = 1e6, .resume = RESUME_FREE),                                                               \
        OPTION_TEXT("dtype", 0, "TYPE", &(a).dtype, "dtype of the computation; bf16 is faster if the CPU supports it", \
                    .choices = "f32|bf16"),                                                                            \
        OPTION_REAL("lr", 0, "RATE", &(a).lr, "maximum learning rate", .least = 1e-9, .most = 100, .otherwise = rate), \
        OPTION_SEED(0, &(a).seed, ""), TRAIN_RESUME(a)
/* For a program with the commands verify and debug. */
#define TRAIN_KEEP(a)                                                                                             \
    OPTION_INT("keep", 0, "N", &(a).keep,                                                                         \
               "keep the newest N training checkpoints, from which verify and debug can repeat parts of the run " \
               "(default: 2)",                                                                                    \
               .least = 1, .most = 1e6, .resume = RESUME_FREE)
#define TRAIN_PAIRS(t)                                                                                               \
    OPTION_TEXT("pairs", 0, "FILE", &(t).pairs,                                                                      \
                "at each validation, measure the model on pairs of sentences of which one is wrong, the first 5 of " \
                "each paradigm (see eval --pairs)",                                                                  \
                .resume = RESUME_FREE)
#define TRAIN_RESUME(a)                                                                                             \
    OPTION_FLAG(                                                                                                    \
        "resume", 'r', &(a).resume,                                                                                 \
        "resume the run in DIR; its options are saved there; a larger --steps, --epochs or --minutes lengthens it", \
        .resume = RESUME_NOT),                                                                                      \
        OPTION_FLAG("force", 0, &(a).force, "start even if memory or disk space seems insufficient",                \
                    .resume = RESUME_NOT),                                                                          \
        OPTION_LIST("compare", 0, "LOG", &(a).compare,                                                              \
                    "log.csv of another run to draw in the report; may be repeated", .single = true,                \
                    .resume = RESUME_FREE)
#define TRAIN_RANKS(a)                                                                                               \
    OPTION_INT("ranks", 0, "K", &(a).ranks,                                                                          \
               "train with K processes under MPI; any K gives the same bits (default: 1)", .least = 1, .most = 4096, \
               .resume = RESUME_FREE),                                                                               \
        OPTION_INT("shards", 0, "N", &(a).shards, "with --ranks: number of shards of a batch (default: 12)",         \
                   .least = 1, .most = TN_SHARDS_MAX),                                                               \
        OPTION_FLAG("zero", 0, &(a).zero, "with --ranks: shard the optimizer's state, too", .resume = RESUME_FREE)

/* A run of a number of minutes (plan.c). */
typedef struct {
    double  began, all; /* when the command started; seconds of the run, 0: its number of steps is fixed */
    double  before;     /* seconds of training before the current call of tn_fit */
    double  time;       /* when the clock was last read, at `step` */
    int64_t step;
    int64_t steps; /* the new number of steps, for which tn_fit has to stop; 0: none */
    int     look;  /* index of the next time to read the clock */
} plan;

/* One training. A kind puts it first in a struct of its own that has more members. */
typedef struct train_kind train_kind;
typedef struct {
    const train_kind *kind;
    tn_world         *world; /* NULL: one process, and no shards */
    train_asked       asked; /* complete after check */
    tn_tokenizer     *tokens;
    void             *net;
    tn_fit_args       fit;            /* open sets the sources, the loss, and how the best model is selected */
    int64_t           batches, width; /* set by open: batches per epoch; approximate tokens per step */
    double            uniform;        /* set by open: the loss of a uniform guess, of all its parts; 0: not known */
    double            unigram;        /* set by open: the loss of a guess by the tokens' frequencies; 0: not known */
    plan              plan;
    int64_t           every;             /* steps between two checkpoints; 0: depends on the number of steps */
    char              each[64];          /* description of a step: "16 examples of at most 128 tokens" */
    const char       *score;             /* name of the validation's value; NULL: the loss */
    const char       *pairs;             /* file of sentence pairs to measure at validations; NULL: none */
    const char       *load, *next, *tag; /* set by check or open: see run_page; next, tag NULL: the kind's */
    double            minutes;           /* set by train_choose: of the run, or of its start; --steps: the default */
    double            speed;       /* set by train_choose: measured speed of the machine (plan.c); 0: not measured */
    bool              recorded;    /* the run exists: it is resumed or repeated, and run.json has its choices */
    bool              untimed;     /* do not measure the duration of a step */
    bool              no_duration; /* the user set no duration: a resumed run keeps its number of steps */
    bool              vocab_size_given; /* --vocab-size was given */
    bool              chosen;           /* train_choose has set the size */
    bool              new_folder;       /* the folder is locked by this run and does not contain a model yet */
    void (*on)(void *training, const tn_fit_event *e); /* called after the record's listener; may be NULL */
    int usage; /* set by train_run: the exit code if the options are wrong, which has been reported; else 0 */
} training;

/* The functions of one kind, in the order of their calls. False or NULL: an error is set. */
struct train_kind {
    const char *title;         /* the report's title */
    int         max_interval;  /* maximum number of steps between two checkpoints */
    double      minutes;       /* default duration of a run */
    int (*check)(training *t); /* before anything is created: sets the size's values; returns 0 or program_usage */
    bool (*read)(training *t); /* reads and checks the texts; may be NULL */
    tn_tokenizer *(*tokenizer)(training *t, progress *bar); /* trains one on the texts; member NULL: no tokenizer */
    int32_t end;                     /* token id that the model's tokenizer adds to a text; 0: none */
    bool (*open)(training *t);       /* prepares the batches */
    void *(*make)(training *t);      /* creates the model; the generator has been seeded */
    void (*print_info)(training *t); /* prints a description of the texts to standard error */
    void (*describe)(const training *t, tn_json_writer *w); /* puts the kind's options, which --resume must repeat */
    bool (*save)(training *t, tn_fit_why why);              /* saves the model in the folder */
    void (*close)(training *t);
    void (*show)(training *t); /* after a complete run: evaluates the saved model; may be NULL */
    const char *next, *tag;    /* see run_page */
    pairs_score score_pairs;   /* for .pairs; NULL: the kind has no such option */
    /* For debug: sets the place of a batch's row in the data, as "line 12" ("": not known), and adds its text. ids: its
     * token ids, with those that are masked; empty if the data are not texts. NULL: no places and texts. */
    void (*row)(training *t, const tn_batch *b, int64_t row, const tn_ids *ids, char place[64], tn_string *text);
    /* For debug: the tensor of a batch, "x" or "y", on whose later tokens no result may depend; NULL: none. */
    const char *causal;
};

/* A command that trains t, as in COMMAND. */
#define TRAIN_COMMAND(n, s, o, t, ...)                                                                          \
    {                                                                                                           \
        .name = (n), .summary = (s), .options = (o), .run = train_main, .training = 1 ? (t) : (training *)NULL, \
        __VA_ARGS__                                                                                             \
    }
int train_main(int count, char **operands);

run_page train_page(const training *t, bool live); /* the report of the run */
/* After a complete run: what to type next and where the report is, if not --quiet. */
void          train_advise(const training *t);
tn_fit_result train_run(training *t); /* net and tokens are valid until train_free; TN_FIT_FAILED after an error */
tn_fit_result train_run_ranks(training *t); /* train_run with --ranks; afterwards only ranks_first() prints */
void          train_free(training *t);
void train_stopped(const tn_fit_result *r, const char *again); /* reports step and resume command, if not --quiet */

/* The number of steps of the run to resume. Options that ask for more lengthen it; others raise. 0: an error is set.
 * For make. */
int64_t train_resumed_steps(const training *t);

/* The steps of train_run, for extras/programs/repeat. train_check returns 0 or an exit code. The arguments of tn_fit
 * lack .resume, .on and .stop. train_describe: the options that define the run, as JSON in w. */
int           train_check(training *t);
bool          train_read(training *t);
tn_tokenizer *train_tokenizer(training *t);
void         *train_model(training *t);
tn_fit_args   train_fit_args(const training *t, int64_t steps, const char *folder, const char *config);
const char   *train_describe(const training *t, int64_t steps, tn_json_writer *w);

/* plan.c, for train.c. plan_begin: the command starts. plan_steps: the number of steps of --minutes, each of which
 * takes `seconds`. plan_watch: on each event; if the run would end more than 3 % too early or too late, asks tn_fit
 * to stop. plan_again: then sets the new number of steps, to resume with. plan_memory, plan_disk: approximate bytes.
 * plan_budget: sets .memory from --memory, and returns 0 or program_usage. */
void    plan_begin(training *t);
int64_t plan_steps(training *t, double seconds);
void    plan_watch(plan *p, const tn_fit_event *e, progress *bar);
bool    plan_again(training *t, int64_t *steps);
int     plan_budget(training *t);
double  plan_memory(const training *t);
double  plan_disk(const training *t);

/* For describe: puts the path of a model, an option of this name. A resumed run has the path that it started with. */
void train_put_path(const training *t, tn_json_writer *w, const char *name, const char *path);

/* What a run of `minutes` or more gets where the user sets nothing: in a few minutes a small model learns more from
 * many small steps than a large one from a few. The rows are in ascending order; the last one has no size. */
typedef struct {
    double      minutes; /* by_speed: of two cores of Zen 3 in f32; a machine that is twice as fast needs half */
    const char *size;
    int64_t     batch, length; /* values for the kind's options */
} train_choice;
/* train_choose returns the row for this run and sets --size and --dtype, unless they were given; call it in check. The
 * row for --steps, and with --ranks, does not depend on the machine's speed. train_valid_tokens: the number of tokens
 * to validate on, so that validations take a small part of the run. train_choose_vocabulary sets --vocab-size, unless
 * it was given, to `share` times the square root of the text's bytes, from 300 to share · 4,000: with 2, 2,000 tokens
 * for 1 MB; call it in read. */
const train_choice *train_choose(training *t, const train_choice *rows, bool by_speed);
int64_t             train_valid_tokens(const training *t);
void                train_choose_vocabulary(training *t, size_t bytes, int share);

/* For check: sets the sizes that were not given and the learning rate, to `rate` divided by the width, at most 0.004;
 * checks that heads divide dim. Returns 0 or program_usage. TRAIN_RATE is 6e-4 for a width of 640, as a GPT-3 of that
 * size. */
#define TRAIN_RATE 0.384
int train_shape(training *t, int64_t layers, int64_t heads, int64_t dim, double rate);

#endif
