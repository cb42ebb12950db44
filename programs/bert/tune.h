/* tune.h — the tasks of fine-tuning: their files, predictions, metrics and output. */
#ifndef TENON_PROGRAMS_BERT_TUNE_H
#define TENON_PROGRAMS_BERT_TUNE_H

#include "../common/options.h"
#include "../common/train.h"

/* A task. "pairs" is classification of two texts. */
typedef struct {
    const char      *name, *metric; /* metric: selects the best model */
    tn_task          task;
    tn_labelled_kind kind;
    int64_t          length, batch; /* defaults */
    const char      *next, *tag;    /* see run_page */
} tune_task;
const tune_task *tune_task_of(const char *name); /* NULL: unknown, after program_usage */

/* The texts of one file, with their features and predictions. */
typedef struct {
    tn_labelled *texts;
    tn_features *features;
    tn_tuned    *asked;  /* the model of the scores; borrowed */
    int64_t     *first;  /* index of each example's first feature; without features, of the next example's */
    int64_t      n;      /* number of features */
    float      **scores; /* a tensor [count, width] for each feature */
    int64_t     *count, *width;
} text_set;
bool text_set_open(text_set *h, const tn_labels *labels, const tn_tokenizer *t, tn_features_config c);
bool text_set_predict(text_set *h, tn_tuned *m); /* fills the scores; false: raised */
void text_set_close(text_set *h);

/* Predictions for an example: the index of its label or of the ending to choose; the value of a regression; the tags of
 * its words, in to[]; the best answer. */
int64_t   predicted_class(const text_set *h, int64_t example);
double    predicted_value(const text_set *h, int64_t example);
void      predicted_tags(const text_set *h, int64_t example, int64_t *to);
tn_answer predicted_answer(const text_set *h, int64_t example, int64_t longest);
/* Probabilities of n classes from their scores. each: independent (sigmoid), else softmax. */
void probabilities_of(const float *scores, int64_t n, bool each, double *to);

/* Metrics, in percent except for correlations. NaN: does not apply; infinite: undefined for this data. */
typedef struct {
    int64_t examples, skipped;
    double  seconds;
    double  accuracy, f1, exact, precision, recall, matthews, pearson, spearman;
    double  threshold;  /* for "no answer"; NaN: all questions have one */
    char    f1_of[200]; /* what F1 is of: a label, "mean of all labels"; "": of entities or answers */
} metrics;
typedef struct {
    const tune_task *task;
    tn_problem_type  problem;
    const tn_labels *labels;
    int64_t          longest; /* maximum tokens of an answer */
    tn_tokenizer    *tokens;
} test_settings;
void    metrics_name_f1(metrics *v, const tn_labels *labels); /* F1 of the second of two labels, else the mean */
metrics metrics_none(int64_t examples);
/* Sets the correlations of v->examples values; infinite if undefined, because all values are equal. */
void metrics_correlate(metrics *v, const double *x, const double *y);
/* Scores the predicted answers said(user, i) to the v->examples questions of a file. none: score of "no answer" minus
 * that of the answer. */
typedef struct {
    tn_text text;
    double  none;
} span;
bool test_answers(const tn_labelled *gold, span (*said)(void *user, int64_t i), void *user, bool thresholds,
                  metrics *v);
bool test_model(const test_settings *j, text_set *h, tn_tuned *m, metrics *v); /* false: raised */
/* Writes folder/test.html: metrics, the confusion matrix, wrong predictions, and the attention weights on the first of
 * these texts. False: raised. */
bool test_page(const test_settings *j, const text_set *h, const metrics *v, const char *folder);
/* Saves the predictions for these texts as lines of JSON (predictions.c). False: raised. */
bool   predictions_save(const test_settings *j, const text_set *h, const char *path);
double metrics_get(const metrics *v, const char *metric);
void   metrics_print(const metrics *v, bool json);
void   metrics_print_mean(const metrics *v, int64_t n, bool json); /* mean and standard deviation of n tunings */

/* freeze.c. tune_freeze: freezes the embeddings and the first n layers. tune_thaw: trains the last `epoch` layers, and
 * the embeddings once all layers are trained; but the first `kept` layers, and then the embeddings, stay frozen.
 * tune_start_crf: sets the transitions by the labels of these texts. */
void          tune_freeze(tn_tuned *m, int64_t n);
void          tune_thaw(tn_tuned *m, int64_t epoch, int64_t kept);
void          tune_start_crf(tn_crf *crf, const tn_labelled *texts, const tn_labels *labels);
tn_optimizer *tune_optimizer(tn_tuned *m, double lr, double rate, double decay); /* rate: factor per layer */

/* Scores the tagged lines on standard input and prints conlleval's table, or JSON. strict: like seqeval's strict mode.
 * May raise. */
void score_entities(bool strict, bool json);

#endif
