/* train.h — a training from the command line to the model's folder. What it is made of is said once, in a train_kind;
 * options, folder, lock, tokenizer, run.json, resuming, tn_fit, progress, record and the report are the same for all.
 *
 *     static struct { training base; option_list text; } t = {.base = {.kind = &kind, .asked = {TRAIN_DEFAULTS}}};
 *     static const option options[] = {TRAIN_OPTIONS(t.base.asked, 's', "tiny|small", "20"), {0}};
 *     static int run(int count, char **operands) { return train_main(&t.base); } */
#ifndef TENON_EXAMPLES_COMMON_TRAIN_H
#define TENON_EXAMPLES_COMMON_TRAIN_H

#include "ranks.h"
#include "record.h"
#include "stop.h"
#include <math.h>

/* What every training is told. 0, and NaN for dropout: as the size has it. */
typedef struct {
    const char *out, *size, *dtype, *vocab;
    int64_t     vocab_size, steps, epochs, seed, layers, heads, dim, ranks, shards;
    double      minutes, lr, warmup, dropout;
    bool        resume, force, zero, zero3;
} train_asked;
#define TRAIN_DEFAULTS .dtype = "f32", .lr = 1e-3, .warmup = 0.1, .seed = 1
#define TRAIN_OPTIONS(a, letter_of_size, sizes, minutes_)                                \
    TRAIN_SIZE(a, letter_of_size, sizes), TRAIN_HEADS(a), TRAIN_WIDTH(a), TRAIN_TEXT(a), \
        TRAIN_RUN(a, "texts", minutes_), TRAIN_RANKS(a)
/* Its parts, for a model without heads, one that does not read texts, or a source that cannot be cut into shards. */
#define TRAIN_SIZE(a, letter_of_size, sizes)                                                                  \
    OPTION_TEXT("out", 'o', "DIR", &(a).out, "where the model goes", .required = true),                       \
        OPTION_TEXT("size", letter_of_size, "NAME", &(a).size, "how large the model is", .choices = (sizes)), \
        OPTION_INT("layers", 0, "N", &(a).layers, "another number of layers than the size has", .least = 1,   \
                   .most = 1024)
#define TRAIN_HEADS(a) OPTION_INT("heads", 0, "N", &(a).heads, "another number of heads", .least = 1, .most = 1024)
#define TRAIN_WIDTH(a)                                                                                               \
    OPTION_INT("dim", 0, "N", &(a).dim, "another width", .least = 1, .most = 65536),                                 \
        OPTION_REAL("dropout", 0, "P", &(a).dropout, "what part of the numbers is left out in training", .least = 0, \
                    .most = 0.9)
#define TRAIN_TEXT(a)                                                                                                 \
    OPTION_TEXT("vocab", 0, "PATH", &(a).vocab, "a tokenizer that is there, instead of a new one"),                   \
        OPTION_INT("vocab-size", 0, "N", &(a).vocab_size, "pieces of a new tokenizer; without it, 8000", .least = 10, \
                   .most = 1e7)
#define TRAIN_RUN(a, what, minutes_)                                                                                  \
    OPTION_INT("steps", 'n', "N", &(a).steps, "how long: steps, or ...", .least = 1, .most = 1e9),                    \
        OPTION_INT("epochs", 0, "N", &(a).epochs, "... times through the " what ", or ...", .least = 1, .most = 1e6), \
        OPTION_REAL("minutes", 'm', "N", &(a).minutes, "... about so many minutes; without all three, " minutes_,     \
                    .least = 0.01, .most = 1e6),                                                                      \
        OPTION_TEXT("dtype", 0, "TYPE", &(a).dtype, "bf16 is faster where the CPU has it", .choices = "f32|bf16"),    \
        OPTION_REAL("lr", 0, "RATE", &(a).lr, "the highest learning rate", .least = 1e-9, .most = 100),               \
        OPTION_INT("seed", 0, "N", &(a).seed, "of everything that is drawn"),                                         \
        OPTION_FLAG("resume", 'r', &(a).resume, "go on where a run was broken off"),                                  \
        OPTION_FLAG("force", 0, &(a).force, "begin, though the memory or the disk space that it needs is not there")
#define TRAIN_RANKS(a)                                                                                              \
    OPTION_INT("ranks", 0, "K", &(a).ranks, "learn with K processes under MPI; the same bits for any number",       \
               .least = 1, .most = 4096),                                                                           \
        OPTION_INT("shards", 0, "N", &(a).shards, "with --ranks, in how many parts a batch is cut; without it, 12", \
                   .least = 1, .most = TN_SHARDS_MAX),                                                              \
        OPTION_FLAG("zero", 0, &(a).zero, "with --ranks, share out the optimizer's memory, too"),                   \
        OPTION_FLAG("zero3", 0, &(a).zero3, "and the weights")

/* One training. What a kind's functions need besides follows it in a struct of its own. */
typedef struct train_kind train_kind;
typedef struct {
    const train_kind *kind;
    tn_world         *world; /* NULL: one process, and no shards */
    train_asked       asked; /* from the check on with all numbers put in */
    tn_tokenizer     *tokens;
    void             *net;
    tn_fit_args       fit;            /* open fills in sources, loss, and what says which model is the best */
    int64_t           batches, width; /* of an epoch; pieces in a step, about: open says */
    int64_t           every;          /* steps between two checkpoints; 0: by the number of steps */
    char              each[64];       /* what a step is: "16 examples of at most 128 pieces" */
    const char       *score;          /* what the validation's value is called; NULL: the loss */
    bool              untimed;        /* how long it takes is not measured before */
    bool              usual;          /* how long is nobody's wish: a run that goes on has its own number of steps */
    bool              sized;          /* --vocab-size was given */
    bool              begun;          /* the folder is ours, and has nothing of a model in it yet */
    void (*on)(void *training, const tn_fit_event *e); /* hears what the record hears, after it; or NULL */
    int usage; /* train_run's: not 0 where the options are wrong, which has been said */
} training;

/* What is particular, in the order in which it is called. False or NULL: an error stands. */
struct train_kind {
    const char *title;         /* of the report */
    int         seldom;        /* steps between two checkpoints of a long run */
    double      minutes;       /* how long a run is that is not told */
    int (*check)(training *t); /* before anything is made: puts the size's numbers in; 0, or program_usage */
    bool (*look)(training *t); /* are the texts as they must be? or NULL */
    tn_tokenizer *(*tokenizer)(training *t, progress *bar); /* a new one from the texts; NULL: there is none */
    bool (*open)(training *t);                              /* the texts as batches */
    void *(*make)(training *t);                             /* a fresh model; the generator has been seeded */
    void (*say)(training *t);                               /* about the texts, on standard error */
    void (*describe)(const training *t, tn_json_writer *w); /* what the run is besides: to resume, the same */
    bool (*save)(training *t, tn_fit_why why);              /* into the folder */
    void (*close)(training *t);
};

int           train_main(training *t);      /* the command: the exit code */
tn_fit_result train_run(training *t);       /* net and tokens stay, until train_free; TN_FIT_FAILED if it went wrong */
tn_fit_result train_run_ranks(training *t); /* train_run with --ranks; behind it only ranks_first() speaks */
void          train_free(training *t);
void train_stopped(const tn_fit_result *r, const char *again); /* says where, and what goes on, if not --quiet */

/* For check: numbers of the size in the place of those that were not asked for, and whether they go together. */
int train_shape(training *t, int64_t layers, int64_t heads, int64_t dim);

#endif
