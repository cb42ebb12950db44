/* look.h — the commands of look, and what they share. */
#ifndef TENON_EXAMPLES_LOOK_LOOK_H
#define TENON_EXAMPLES_LOOK_LOOK_H

#include "../common/files.h"
#include "../common/numbers.h"
#include "../common/options.h"
#include "../common/record.h"

extern const command heads_command, prune_command, attend_command, align_command, attribute_command, surface_command,
    probe_command, guide_command;

/* ---- a model and its tokenizer (model.c) ------------------------------------------------------------------------- */

typedef enum {
    READER,    /* BERT */
    TUNED,     /* one with a head for a task */
    WRITER,    /* GPT-2, LLaMA */
    TRANSLATOR /* from sequence to sequence */
} model_kind;
typedef struct {
    model_kind    kind;
    tn_module    *net;     /* a tn_bert, a tn_tuned, a tn_lm or a tn_seq2seq */
    tn_decoder    writer;  /* of a writer: what was opened, net and tokens among it */
    tn_bert      *encoder; /* of a reader, tuned or not: it, or a part of it; else NULL */
    tn_tokenizer *tokens;
    const char   *vectors; /* the path of its words' vectors */
    int64_t       longest; /* pieces of a text */
} model;
bool      model_open(const char *path, model *m); /* false: an error stands */
void      model_close(model *m);
bool      model_may_go_to(const char *dir); /* asked before the work; NULL: it goes nowhere; false: an error stands */
tn_status model_save(const model *m, const char *dir);

/* A text's pieces, as they are shown. */
typedef struct {
    int64_t      n;
    const char **name;
    tn_string   *text;
    tn_tensor   *ids; /* i64 [1, n] */
} pieces;
/* target: of a translation, with its begin. What is longer than the model reads is refused, or with `cut` cut. */
bool pieces_of(const model *m, const char *text, bool target, bool cut, pieces *p);
bool pieces_name(const model *m, tn_tensor *ids, pieces *p);
void pieces_free(pieces *p);
/* The translation that the model itself thinks the likeliest. */
bool translated(const model *m, tn_tensor *source, pieces *p);
/* The model runs on a text; of a translator also on what it has said. What it gives is looked at, not used. */
void run_model(const model *m, tn_tensor *ids, tn_tensor *said);
/* Was what is noted there noted once? If not, raises: a layer that others share is not told from them. */
bool runs_once(const tn_look *l, const char *path);

/* ---- texts as batches (texts.c) ---------------------------------------------------------------------------------- */

typedef struct {
    const model *of;
    tn_tensor   *ids, *types, *blocked, *where, *what, *target; /* what the kind of model needs; kept */
    int64_t      words;                                         /* that its loss is the mean of */
} batch;
typedef struct {
    int64_t n;
    batch  *batch;
} texts;
typedef struct {
    const char *file, *target; /* target: the translations */
    const char *target_option; /* what names them */
    bool        pairs;         /* of labelled texts: the second column is a second text */
    int64_t     most, together;
    int64_t     seed;
} texts_config;
#define TEXTS_CONFIG                                                        \
    {                                                                       \
        .target_option = "--target", .most = 256, .together = 16, .seed = 1 \
    }
bool       texts_open(const texts_config *c, const model *m, texts *t);
void       texts_close(texts *t);
uint64_t   texts_checksum(const texts *t);
tn_tensor *texts_loss(void *net, void *batch); /* a tn_look_loss */

typedef struct {
    double  loss, right, seconds; /* of the words to be said, nats and the share that is right; of one pass */
    int64_t words;
} quality;
bool texts_quality(const texts *t, const model *m, quality *q);

/* ---- files (model.c) --------------------------------------------------------------------------------------------- */

/* Ends a report: writes it as a page or, if the name ends in .svg, its last figure. */
bool written(tn_report *r, const char *path);
bool is_picture(const char *path);
int  no_png(const char *path); /* 0, or program_usage for a name that ends in .png */

#endif
