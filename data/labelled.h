/* labelled.h — texts with labels, as fine-tuning learns from them: sentences and pairs with a class or a number, words
 * with tags, questions with answers, beginnings with endings; and batches of them. Include data.h.
 *
 *     tn_labelled *train = tn_labelled_load("train.tsv");           // lines of text <tab> label
 *     tn_labels   *names = tn_labels_of(train);
 *     tn_features *batches = tn_features_new(train, tokenizer, names, .batch = 32, .seed = 1);
 *     tn_fit(model, .train = tn_features_source(batches), .loss = tn_tuned_fit_loss, .epochs = 1, .lr = 5e-5);
 *
 * What is wrong with a line is said with its number; with .skip so many such lines are left out instead. */
#ifndef TENON_DATA_LABELLED_H
#define TENON_DATA_LABELLED_H

#include "source.h"
#include "tokenizer.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef enum {
    TN_LABELLED_TEXTS = 0, /* one text or two, and a label, several, or a number */
    TN_LABELLED_WORDS,     /* a sentence's words, and a tag for each             */
    TN_LABELLED_ANSWERS,   /* a question, a text, and answers that stand in it   */
    TN_LABELLED_CHOICES    /* a beginning, its endings, and which of them is it  */
} tn_labelled_kind;
typedef enum { TN_ONE_LABEL = 0, TN_ANY_LABELS, TN_REGRESSION } tn_problem;

typedef struct tn_labelled_config {
    int              zero_;
    tn_labelled_kind kind;
    tn_problem       problem; /* of texts; several labels stand in one column, a comma between */
    /* "tsv", "csv", "jsonl"; "conll" (word first, tag last) or "conllu"; "squad"; or a task of GLUE, "cola", "sst-2",
     * "mrpc", "sts-b", "qqp", "mnli", "qnli", "rte", "wnli". NULL: by the file's name, else the first of the kind */
    const char *form;
    /* Columns by their name in the first line, or by number from 1. NULL: the text first, the label last, where a first
     * line that only names them is passed over; of conllu the column of the tag, or else UPOS. */
    const char *text, *pair, *label;
    bool        pairs;    /* the second column is a second text */
    bool        bio;      /* tags of IOB1 and BIOES become those of BIO */
    bool        no_label; /* there is none to be read */
    int64_t     skip;     /* lines that are left out, rather than refused, because something is wrong with them */
    int         end_;
} TN_KEYWORDS_ONLY         tn_labelled_config;
typedef struct tn_labelled tn_labelled;
typedef struct tn_labels   tn_labels;
TN_API tn_labelled        *tn_labelled_load_run(const char *path, tn_labelled_config c);
TN_API tn_labelled        *tn_labelled_parse_run(const char *text, size_t bytes, tn_labelled_config c); /* a file's */
TN_API int64_t             tn_labelled_count(const tn_labelled *l);
TN_API int64_t             tn_labelled_skipped(const tn_labelled *l, const char **first); /* what was wrong with one */
/* Leaves those whose labels are known; the others are refused, or count as skipped. For what is to be measured on. */
TN_API tn_status tn_labelled_only(tn_labelled *l, const tn_labels *known);
TN_API tn_status tn_labelled_first(tn_labelled *l, int64_t most); /* leaves so many, the first of the file */
TN_API void      tn_labelled_free(tn_labelled *l);

/* One of them: of texts one or two; the words; question and text; the beginning and its endings. Labels: one or
 * several; a tag a word; answers, each with the byte start[i] of the text where it begins; the number of an ending. */
typedef struct {
    const char        *id; /* of a question; else "" */
    int64_t            line, texts, labels;
    const char *const *text, *const *label;
    const int64_t *start;
} tn_example;
TN_API tn_example tn_labelled_at(const tn_labelled *l, int64_t i);

/* The labels' names: those that occur, sorted (numbers as numbers), or given; where each stands. */
TN_API tn_labels         *tn_labels_of(const tn_labelled *l);
TN_API tn_labels         *tn_labels_new(int64_t n, const char *const *names); /* copied */
TN_API int64_t            tn_labels_count(const tn_labels *l);
TN_API const char *const *tn_labels_names(const tn_labels *l);
TN_API int64_t            tn_labels_find(const tn_labels *l, const char *name); /* -1: it is not there */
TN_API void               tn_labels_free(tn_labels *l);

/* As batches of like lengths: x the pieces' numbers, [B, T] or [B, choices, T], y what is to be said of them, "types",
 * "padding", and "row", which feature each row is. Of words a batch has the pieces of .batch average sentences. With
 * .parts, .batch examples of any lengths are one step's, in so many batches, for tn_fit's .accumulate. A sentence too
 * long for .length goes on in another feature; a text with a question is read through windows; other texts are cut. */
typedef struct tn_features_config {
    int           zero_;
    tn_problem    problem;
    int64_t batch TN_IS(32), length TN_IS(128), stride TN_IS(128); /* stride: what two windows have in common */
    int64_t       parts;                                           /* 0: each batch is a step's */
    uint64_t      seed;
    bool          fixed, no_label; /* the same batches in each epoch, for validation; y is left out */
    int           end_;
} TN_KEYWORDS_ONLY         tn_features_config;
typedef struct tn_features tn_features;
TN_API tn_features        *tn_features_create(const tn_labelled *l, const tn_tokenizer *t, const tn_labels *labels,
                                              tn_features_config c);
TN_API tn_source           tn_features_source(tn_features *f);
TN_API int64_t             tn_features_cut(const tn_features *f); /* texts that were cut, or go on in another feature */
TN_API void                tn_features_free(tn_features *f);

/* One of them: whose it is, and what its pieces are: of words, which word begins there, or -1; of answers, which bytes
 * of the text, or end 0. */
typedef struct {
    int64_t        example, pieces;
    const int32_t *id, *word, *start, *end;
} tn_feature;
TN_API int64_t    tn_features_count(const tn_features *f);
TN_API tn_feature tn_features_at(tn_features *f, int64_t i); /* good until the next call */

#ifdef __cplusplus
} /* extern "C" */
#else
#define TN_FEATURES_DEFAULTS .batch = 32, .length = 128, .stride = 128
#define tn_labelled_load(...) TN_CALL_(tn_labelled_load_run(TN_LABELLED_LOAD_(__VA_ARGS__, .zero_ = 0)))
#define TN_LABELLED_LOAD_(path, ...) path, ((tn_labelled_config){TN_NO_DEFAULTS_, TN_NAMED_, __VA_ARGS__})
#define tn_labelled_parse(...) TN_CALL_(tn_labelled_parse_run(TN_LABELLED_PARSE_(__VA_ARGS__, .zero_ = 0)))
#define TN_LABELLED_PARSE_(at, n, ...) at, n, ((tn_labelled_config){TN_NO_DEFAULTS_, TN_NAMED_, __VA_ARGS__})
#define tn_features_new(...) TN_CALL_(tn_features_create(TN_FEATURES_NEW_(__VA_ARGS__, .zero_ = 0)))
#define TN_FEATURES_NEW_(l, t, labels, ...) \
    l, t, labels, ((tn_features_config){TN_FEATURES_DEFAULTS, TN_NAMED_, __VA_ARGS__})
#endif
#endif
