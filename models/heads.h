/* heads.h — an encoder with a task head, for fine-tuning: classification and regression of sentences and pairs, tagging
 * of words, question answering, multiple choice. Part of models.h: include that.
 *
 *     tn_tuned *m = tn_tuned_new(tn_bert_load("bert-base-uncased"), .task = TN_TASK_CLASSIFICATION, .n = 2);
 *     tn_tensor *scores = tn_tuned_forward(m, ids, .types = types, .key_padding_mask = padding);  // [B, 2]
 *     tn_tensor *loss = tn_tuned_loss(m, scores, classes);
 *
 * Reads and writes Hugging Face's directories of …ForSequenceClassification, …ForTokenClassification,
 * …ForQuestionAnswering and …ForMultipleChoice. data/labelled.h reads the texts; docs/guide/fine_tuning.md is the
 * tutorial. */
#ifndef TENON_MODELS_HEADS_H
#define TENON_MODELS_HEADS_H

#include "../data/labelled.h"
#include "../nn/nn.h"
#include "bert.h"

TN_C_BEGIN_

typedef enum {
    TN_TASK_CLASSIFICATION = 0,   /* logits of a text's labels, from the pooled first token: [B, n]     */
    TN_TASK_TOKEN_CLASSIFICATION, /* logits of each token's labels: [B, T, n]                           */
    TN_TASK_QUESTION_ANSWERING,   /* logits of an answer's first and last token: [B, T, 2]              */
    TN_TASK_MULTIPLE_CHOICE       /* logits of C versions of each of B texts, ids [B, C, T]: [B, C]     */
} tn_task;

typedef struct tn_tuned_config {
    int                zero_;
    tn_task            task;
    tn_problem_type    problem; /* TN_TASK_CLASSIFICATION only */
    int64_t            n;       /* number of labels; regression: 0 means 1 */
    const char *const *labels;  /* names of the labels, copied; NULL: "LABEL_0" … */
    bool               crf;     /* TN_TASK_TOKEN_CLASSIFICATION: decode the tags of a sentence jointly, see nn/crf.h */
    double dropout     TN_IS(-1); /* dropout probability before the head; below 0: the encoder's */
    int                end_;
} TN_KEYWORDS_ONLY tn_tuned_config;
#define TN_TUNED_DEFAULTS .dropout = -1

typedef struct {
    tn_module       base;
    tn_tuned_config config; /* with defaults filled in; .labels is NULL */
    tn_bert        *encoder;
    tn_dropout     *dropout;
    tn_linear      *dense, *classifier; /* dense: an extra layer before the classifier; NULL: the kind has none */
    tn_layer_norm  *norm;               /* after dense and its activation (ModernBERT); NULL: none */
    tn_crf         *crf;                /* NULL: none */
    const char    **labels;             /* [config.n] */
    char           *names;              /* the storage of the labels */
    char           *head;               /* see tn_tuned_head */
} tn_tuned;
/* Takes ownership of the encoder, also on failure. Removes the heads of its pre-training, and adds a new pooler if the
 * task needs one that the encoder lacks. */
TN_API tn_tuned *tn_tuned_create(tn_bert *encoder, tn_tuned_config c);

typedef struct tn_tuned_args {
    int        zero_;
    tn_tensor *ids, *types, *key_padding_mask; /* as in tn_bert_args */
    bool       skip_padding;                   /* scores of padding tokens are not meaningful then */
    int        end_;
} TN_KEYWORDS_ONLY tn_tuned_args;
TN_API tn_tensor  *tn_tuned_run(tn_tuned *m, tn_tuned_args a);

/* The training loss, as in Hugging Face's models. Targets: classes [B], tags [B, T] (-100: ignored) and choices [B]:
 * cross-entropy; answers [B, 2]: the mean of the cross-entropies of first and last token; several labels [B, n]: binary
 * cross-entropy; numbers [B]: mean squared error. weight: label weights [n], or NULL. key_padding_mask: tokens that
 * cannot be the first or last of an answer, or NULL. */
typedef struct tn_tuned_loss_args {
    int        zero_;
    tn_tensor *scores, *target, *weight, *key_padding_mask;
    int        end_;
} TN_KEYWORDS_ONLY tn_tuned_loss_args;
TN_API tn_tensor  *tn_tuned_loss_run(tn_tuned *m, tn_tuned_loss_args a);
TN_API tn_tensor *tn_tuned_fit_loss(void *tuned, const tn_batch *b, void *weight); /* a tn_fit_loss; weight: a tensor */
TN_API tn_tensor *tn_tuned_logits(tn_tuned *m, const tn_batch *b);                 /* logits of a tn_features' batch */
/* Runs the model over all features once, in eval mode, and calls take with the logits of each: n, or n for each of its
 * `pieces` tokens including padding, whose logits are not meaningful. */
typedef void (*tn_tuned_listener)(void *user, int64_t feature, int64_t pieces, int64_t n, const float *scores);
TN_API tn_status tn_tuned_each(tn_tuned *m, tn_features *f, tn_tuned_listener take, void *user);
/* The tags of feature i, from its scores of tn_tuned_each: to[word] for each word that starts in the feature. */
TN_API tn_status tn_tuned_tags(tn_tuned *m, tn_features *f, int64_t i, const float *scores, int64_t *to);

/* ---- answers ----------------------------------------------------------------------------------------------------- */

/* An answer: bytes [start, end) of the text that an example's windows cover; score: the sum of the logits of its first
 * and last token; probability: among the returned answers and "no answer"; none: the score of "no answer". */
typedef struct {
    int64_t start, end; /* 0, 0: no answer */
    double  score, probability, none;
} tn_answer;
/* scores: the logits of features first … first + n - 1, [pieces, 2] each, all of one example. Writes the best `most`
 * answers of at most `longest` tokens to `to`, best first. Returns their number; -1: raised. */
TN_API int64_t tn_answers_best(tn_features *f, int64_t first, int64_t n, const float *const *scores, int64_t longest,
                               int64_t most, tn_answer *to);

/* The names of the head's modules, for tn_lora's .trained (nn/lora.h): "classifier". Valid until m is freed. */
TN_API const char *tn_tuned_head(const tn_tuned *m);

/* ---- directories ------------------------------------------------------------------------------------------------- */

TN_API tn_tuned *tn_tuned_load(const char *dir); /* in eval mode */
TN_API tn_status tn_tuned_save(tn_tuned *m, const char *dir) TN_CHECKED;

TN_C_END_
#define tn_tuned_new(...) TN_CALL_(tn_tuned_create(TN_TUNED_NEW_(__VA_ARGS__, TN_END_)))
#define TN_TUNED_NEW_(encoder, ...) encoder, TN_FILLED_(tn_tuned_config, TN_TUNED_DEFAULTS, __VA_ARGS__)
#define tn_tuned_forward(m, ...) \
    TN_CALL_(tn_tuned_run(m, TN_ARGS1_(tn_tuned_args, TN_NO_DEFAULTS_, ids, __VA_ARGS__, TN_END_)))
#define tn_tuned_loss(m, ...) \
    TN_CALL_(tn_tuned_loss_run(m, TN_ARGS2_(tn_tuned_loss_args, TN_NO_DEFAULTS_, scores, target, __VA_ARGS__, TN_END_)))
#endif
