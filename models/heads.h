/* heads.h — an encoder with a head, tuned to say what a text is: sentences and pairs get a label, several, or a number;
 * words get tags; questions get answers; beginnings get endings. Part of models.h: include that.
 *
 *     tn_tuned *m = tn_tuned_new(tn_bert_load("bert-base-uncased"), .task = TN_TASK_CLASSES, .n = 2);
 *     tn_tensor *scores = tn_tuned_forward(m, ids, .types = types, .blocked_keys = padding);  // [B, 2]
 *     tn_tensor *loss = tn_tuned_loss(m, scores, classes);
 *
 * Directories are Hugging Face's, both ways: …ForSequenceClassification, …ForTokenClassification,
 * …ForQuestionAnswering and …ForMultipleChoice. The texts come from data/labelled.h; docs/guide/fine_tuning.md goes
 * through all of it. */
#ifndef TENON_MODELS_HEADS_H
#define TENON_MODELS_HEADS_H

#include "../data/labelled.h"
#include "../nn/nn.h"
#include "bert.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef enum {
    TN_TASK_CLASSES = 0, /* of the pooled first piece: [B, n]                           */
    TN_TASK_TAGS,        /* of each piece: [B, T, n]                                    */
    TN_TASK_ANSWERS,     /* where an answer begins and where it ends: [B, T, 2]         */
    TN_TASK_CHOICES      /* of B texts in C versions, ids [B, C, T]: which it is, [B, C] */
} tn_task;

typedef struct tn_tuned_config {
    int                zero_;
    tn_task            task;
    tn_problem         problem;   /* of classes */
    int64_t            n;         /* how many labels; of regression 1 without being said */
    const char *const *labels;    /* their names, copied; NULL: "LABEL_0" … */
    bool               crf;       /* tags of a sentence are chosen together: see nn/crf.h */
    double dropout     TN_IS(-1); /* in front of the head; below 0: as in the encoder */
    int                end_;
} TN_KEYWORDS_ONLY tn_tuned_config;
#define TN_TUNED_DEFAULTS .dropout = -1

/* Adapters: of layer i the matrices of its queries and values, a[2 i] and a[2 i + 1]. */
typedef struct {
    tn_module   base;
    int64_t     layers, rank;
    double      scale;
    tn_tensor **a, **b, **kept;
} tn_lora;

typedef struct {
    tn_module       base;
    tn_tuned_config config; /* with the defaults put in; .labels is NULL */
    tn_bert        *encoder;
    tn_dropout     *dropout;
    tn_linear      *dense, *classifier; /* dense: of kinds that have one in front, else NULL */
    tn_crf         *crf;                /* NULL: none */
    tn_lora        *lora;               /* likewise */
    const char    **labels;             /* [config.n] */
    char           *names;              /* what they point to */
} tn_tuned;
/* The encoder is the new model's, also if that fails; what only its own training needed is taken off, and a pooler put
 * on where the task needs one that it lacks. */
TN_API tn_tuned *tn_tuned_create(tn_bert *encoder, tn_tuned_config c);

typedef struct tn_tuned_args {
    int        zero_;
    tn_tensor *ids, *types, *blocked_keys; /* as of tn_bert_forward */
    int        end_;
} TN_KEYWORDS_ONLY tn_tuned_args;
TN_API tn_tensor  *tn_tuned_run(tn_tuned *m, tn_tuned_args a);

/* What it learns by, as Hugging Face's models have it: cross-entropy of classes [B], tags [B, T] (-100 is passed over),
 * choices [B], and the mean of both ends' [B, 2]; of several labels [B, n] binary cross-entropy; of numbers [B] the
 * mean squared difference. weight: of each label, [n] or NULL. blocked_keys: pieces that can be no end of an answer. */
typedef struct tn_tuned_loss_args {
    int        zero_;
    tn_tensor *scores, *target, *weight, *blocked_keys;
    int        end_;
} TN_KEYWORDS_ONLY tn_tuned_loss_args;
TN_API tn_tensor  *tn_tuned_loss_run(tn_tuned *m, tn_tuned_loss_args a);
TN_API tn_tensor *tn_tuned_fit_loss(void *tuned, const tn_batch *b, void *weight); /* a tn_fit_loss; weight: a tensor */
TN_API tn_tensor *tn_tuned_scores(tn_tuned *m, const tn_batch *b);                 /* of a batch of tn_features */
/* Goes through all features once, in eval mode, and tells of each what is said of it: n scores, or for each of `pieces`
 * pieces (padding included) n scores. */
typedef void (*tn_tuned_listener)(void *user, int64_t feature, int64_t pieces, int64_t n, const float *scores);
TN_API tn_status tn_tuned_each(tn_tuned *m, tn_features *f, tn_tuned_listener take, void *user);
/* The tags of the words of feature i, by what tn_tuned_each told of it: to[word], for each word that begins there. */
TN_API tn_status tn_tuned_tags(tn_tuned *m, tn_features *f, int64_t i, const float *scores, int64_t *to);

/* ---- what it says ------------------------------------------------------------------------------------------------ */

/* The likeliest answer in the text that an example's windows show: bytes [start, end) of it, the sum of both scores,
 * and its probability among all that were looked at; of no answer the sum of the scores of the first piece. */
typedef struct {
    int64_t start, end; /* 0, 0: there is none */
    double  score, probability, none;
} tn_answer;
/* scores: what was said of features first … first + n - 1, [pieces, 2] each, all of one example; the best `most` of
 * them go to `to`, best first; none is longer than `longest` pieces. Returns how many; -1: raised. */
TN_API int64_t tn_answers_best(tn_features *f, int64_t first, int64_t n, const float *const *scores, int64_t longest,
                               int64_t most, tn_answer *to);

/* ---- adapters ---------------------------------------------------------------------------------------------------- */

/* LoRA (Hu et al. 2021): the encoder is frozen, and to the matrices of queries and values is added alpha / rank · B A,
 * of that rank, which learns with the head. One thread at a time runs such a model. Adapters and head alone go to and
 * from a directory that is there, with PEFT's names; merged, the sum becomes the encoder's own. */
TN_API tn_status tn_tuned_adapt(tn_tuned *m, int64_t rank, double alpha);
TN_API tn_status tn_tuned_save_adapter(tn_tuned *m, const char *dir) TN_CHECKED;
TN_API tn_status tn_tuned_load_adapter(tn_tuned *m, const char *dir);
TN_API tn_status tn_tuned_merge(tn_tuned *m);

/* ---- directories ------------------------------------------------------------------------------------------------- */

TN_API tn_tuned *tn_tuned_load(const char *dir); /* in eval mode */
TN_API tn_status tn_tuned_save(tn_tuned *m, const char *dir) TN_CHECKED;

#ifdef __cplusplus
}
#else
#define tn_tuned_new(...) TN_CALL_(tn_tuned_create(TN_TUNED_NEW_(__VA_ARGS__, .zero_ = 0)))
#define TN_TUNED_NEW_(encoder, ...) encoder, ((tn_tuned_config){TN_TUNED_DEFAULTS, TN_NAMED_, __VA_ARGS__})
#define tn_tuned_forward(m, ...) \
    TN_CALL_(tn_tuned_run(m, TN_ARGS1_(tn_tuned_args, TN_NO_DEFAULTS_, ids, __VA_ARGS__, .zero_ = 0)))
#define tn_tuned_loss(m, ...) \
    TN_CALL_(                 \
        tn_tuned_loss_run(m, TN_ARGS2_(tn_tuned_loss_args, TN_NO_DEFAULTS_, scores, target, __VA_ARGS__, .zero_ = 0)))
#endif
#endif
