/* look.h — the commands of the program look, and the functions that they share. */
#ifndef TENON_EXTRAS_PROGRAMS_LOOK_LOOK_H
#define TENON_EXTRAS_PROGRAMS_LOOK_LOOK_H

#include "programs/common/files.h"
#include "programs/common/numbers.h"
#include "programs/common/options.h"
#include "programs/common/record.h"

#include <tenon/extras.h>

extern const command heads_command, prune_command, attend_command, align_command, attribute_command, surface_command,
    probe_command, guide_command, walk_command, positions_command, draw_command;

/* ---- a model and its tokenizer (model.c) ------------------------------------------------------------------------- */

typedef enum {
    READER,    /* an encoder: BERT */
    TUNED,     /* an encoder with a task head */
    WRITER,    /* a causal language model: GPT-2, LLaMA */
    TRANSLATOR /* a sequence-to-sequence model */
} model_kind;
typedef struct {
    model_kind    kind;
    tn_model      all;     /* owns net and tokens */
    tn_module    *net;     /* a tn_bert, a tn_tuned, a tn_lm or a tn_seq2seq */
    tn_bert      *encoder; /* READER or TUNED: net or a part of it; NULL: another kind */
    tn_tokenizer *tokens;
    const char   *vectors; /* module path of the token embedding */
    int64_t       longest; /* maximum tokens per text */
} model;
bool      model_open(const char *path, model *m); /* returns false if an error is set */
void      model_close(model *m);
bool      model_may_save(const char *dir); /* call before the work; NULL: not saved; returns false if an error is set */
tn_status model_save(const model *m, const char *dir);

/* The tokens of a text, with the names that a figure shows. */
typedef struct {
    int64_t      n;
    const char **name;
    tn_string   *text;
    tn_tensor   *ids; /* i64 [1, n] */
} token_list;
/* target: the text is a translation and gets the start token. A text that is longer than the model's maximum is
 * truncated if cut is true, otherwise an error is raised. The caller frees p with pieces_free. */
bool token_list_encode(const model *m, const char *text, bool target, bool cut, token_list *p);
bool token_list_label(const model *m, tn_tensor *ids, token_list *p);
void token_list_free(token_list *p);
/* The model's greedy translation. */
bool translate_greedily(const model *m, tn_tensor *source, token_list *p);
/* Runs the model on a text, so that a tn_look records it; target: input of the decoder of a TRANSLATOR. */
void run_model(const model *m, tn_tensor *ids, tn_tensor *target);
/* Raises an error and returns false if the look has recorded `path` more than once, as in a block that layers share. */
bool runs_once(const tn_look *l, const char *path);

/* ---- texts as batches (texts.c) ---------------------------------------------------------------------------------- */

typedef struct {
    const model *model;
    tn_tensor   *ids, *types, *padding, *positions, *expected, *target; /* as the kind of model needs; owned */
    int64_t      targets; /* number of targets that the loss is the mean of */
} text_batch;
typedef struct {
    int64_t     n;
    text_batch *batch;
} texts;
typedef struct {
    const char *file, *target;         /* target: file of the translations */
    const char *target_option;         /* the option that names target, for errors */
    bool        pairs;                 /* labelled texts: the second column is a second text */
    int64_t     max_lines, batch_size; /* maximum lines; lines per batch */
    int64_t     seed;
} texts_config;
#define TEXTS_CONFIG                                                               \
    {                                                                              \
        .target_option = "--target", .max_lines = 256, .batch_size = 16, .seed = 1 \
    }
bool       texts_open(const texts_config *c, const model *m, texts *t);
void       texts_close(texts *t);
uint64_t   texts_checksum(const texts *t);
tn_tensor *texts_loss(void *net, void *batch); /* a tn_look_loss */

typedef struct {
    double  loss, accuracy, seconds; /* mean loss in nats, accuracy from 0 to 1, seconds per pass */
    int64_t targets;
} quality;
bool texts_quality(const texts *t, const model *m, quality *q);

/* ---- files (model.c) --------------------------------------------------------------------------------------------- */

/* A report on the model in this folder. */
tn_report *report_new(const char *title, const char *dir);
/* Writes and frees a report: an HTML page or, if path ends in .svg, only its last figure. */
bool write_report(tn_report *r, const char *path);
bool is_svg(const char *path);
int  reject_png(const char *path); /* returns 0, or the exit code of program_usage for .png */

#endif
