/* tune.h — tasks that a model is tuned for: what their files are, how they are judged, and what is printed of it. */
#ifndef TENON_EXAMPLES_BERT_TUNE_H
#define TENON_EXAMPLES_BERT_TUNE_H

#include "../common/options.h"
#include "../common/train.h"

/* The tasks by name. Pairs are texts with a second one. */
typedef struct {
    const char      *name, *metric; /* what says which of two models is the better one */
    tn_task          task;
    tn_labelled_kind kind;
    int64_t          length, batch; /* the defaults */
    const char      *needs;         /* what its files are */
} tune_task;
const tune_task *tune_task_of(const char *name); /* NULL: there is none; says so */

/* Texts of one file, with their features and what was said of them. */
typedef struct {
    tn_labelled *texts;
    tn_features *features;
    tn_tuned    *asked;  /* who said it */
    int64_t     *first;  /* feature of each example; of one that has none, that of the next */
    int64_t      n;      /* features */
    float      **scores; /* of each feature, and how many */
    int64_t     *count, *width;
} held;
bool held_open(held *h, const tn_labels *labels, const tn_tokenizer *t, tn_features_config c);
bool held_ask(held *h, tn_tuned *m); /* fills the scores; false: raised */
void held_close(held *h);

/* What was said of an example. Of classes the label, of choices the ending; of words a label each, in to[]; of several
 * labels those with a probability of at least a half; of answers the best. */
int64_t   said_class(const held *h, int64_t example);
double    said_number(const held *h, int64_t example);
void      said_tags(const held *h, int64_t example, int64_t *to);
tn_answer said_answer(const held *h, int64_t example, int64_t longest);
/* Probabilities of an example's n classes; or of its word's tags. */
void said_probabilities(const float *scores, int64_t n, bool each, double *to);

/* How right it is. NaN: does not apply; infinite: it does, and is not defined. In percent, but for correlations. */
typedef struct {
    int64_t examples, skipped;
    double  seconds;
    double  accuracy, f1, exact, precision, recall, matthews, pearson, spearman;
    double  threshold; /* of answers, where some questions have none */
} verdict;
typedef struct {
    const tune_task *task;
    tn_problem       problem;
    const tn_labels *labels;
    int64_t          longest; /* pieces of an answer */
    tn_tokenizer    *tokens;
} judging;
verdict verdict_of_none(int64_t examples);
/* Of numbers, v->examples of them, of which all may be the same: then no correlation is defined. */
void verdict_correlate(verdict *v, const double *x, const double *y);
/* Answers beside those of a file, of v->examples questions; none: how much likelier it is that there is no answer. */
typedef struct {
    tn_text text;
    double  none;
} span;
bool judge_spans(const tn_labelled *gold, span (*said)(void *user, int64_t i), void *user, bool thresholds, verdict *v);
bool judge(const judging *j, held *h, tn_tuned *m, verdict *v); /* false: raised */
/* folder/test.html: which labels are taken for which, the texts that went wrong, and what the model looks at
 * in the first of them. False: raised. */
bool   mistakes_page(const judging *j, const held *h, const char *folder);
double verdict_of(const verdict *v, const char *metric);
void   verdict_print(const verdict *v, bool json);
void   verdict_print_mean(const verdict *v, int64_t n, bool json); /* of n tunings, and their standard deviation */

/* Which parts learn, and how fast. n: the embeddings and the first n layers learn nothing. epoch: so many of the last
 * layers learn, and when all do, the embeddings; but not the first `kept` layers, nor then the embeddings. */
void          tune_freeze(tn_tuned *m, int64_t n);
void          tune_thaw(tn_tuned *m, int64_t epoch, int64_t kept);
tn_optimizer *tune_optimizer(tn_tuned *m, double lr, double rate, double decay); /* rate: from layer to layer, down */

/* conlleval's table of the lines on standard input, or its numbers as JSON; strict: as seqeval's strict mode has them.
 * Raises. */
void score_entities(bool strict, bool json);

#endif
