/* labelled.h — labelled texts for fine-tuning: texts and pairs with a class or a number, words with tags,
 * questions with answers, contexts with endings to choose from; and batches of them. Include data.h.
 *
 *     tn_labelled *train = tn_labelled_load("train.tsv");           // lines of text <tab> label
 *     tn_labels   *names = tn_labels_of(train);
 *     tn_features *batches = tn_features_new(train, tokenizer, names, .batch = 32, .seed = 1);
 *     tn_fit(model, .train = tn_features_source(batches), .loss = tn_tuned_fit_loss, .epochs = 1, .lr = 5e-5); */
#ifndef TENON_DATA_LABELLED_H
#define TENON_DATA_LABELLED_H

#include "source.h"
#include "tokenizer.h"

TN_C_BEGIN_

typedef enum {
    TN_LABELLED_TEXTS = 0, /* one text or two, with a label, several, or a number */
    TN_LABELLED_WORDS,     /* a sentence's words, with a tag for each */
    TN_LABELLED_ANSWERS,   /* a question, a text, and answers contained in it */
    TN_LABELLED_CHOICES    /* a context, its endings, and the number of the right one */
} tn_labelled_kind;
typedef enum { TN_SINGLE_LABEL = 0, TN_MULTI_LABEL, TN_REGRESSION } tn_problem_type;

typedef struct tn_labelled_config {
    int              zero_;
    tn_labelled_kind kind;
    tn_problem_type  problem; /* of texts; several labels share one column, separated by commas */
    /* "tsv", "csv", "jsonl"; "conll" (word first, tag last) or "conllu"; "squad"; or a GLUE task: "cola", "sst-2",
     * "mrpc", "sts-b", "qqp", "mnli", "qnli", "rte", "wnli". NULL: chosen by the file's name, else the kind's first */
    const char *form;
    /* Columns, by name in the first line or by number from 1. NULL: text first and label last, a first line that only
     * names columns is skipped; for conllu the column of the tag, default UPOS. */
    const char *text, *pair, *label;
    bool        pairs;     /* the second column is a second text */
    bool        bio;       /* convert tags of IOB1 and BIOES to BIO */
    bool        no_label;  /* the file has no labels */
    bool        no_header; /* the first line is an example, even if it looks like names of columns */
    int64_t     skip;      /* number of bad lines to skip; one more is an error, which names its line */
    int         end_;
} TN_KEYWORDS_ONLY         tn_labelled_config;
typedef struct tn_labelled tn_labelled;
typedef struct tn_labels   tn_labels;
TN_API tn_labelled        *tn_labelled_create(tn_labelled_config c); /* without examples: see tn_labelled_add */
TN_API tn_labelled        *tn_labelled_load_run(const char *path, tn_labelled_config c);
TN_API tn_labelled        *tn_labelled_parse_run(const char *text, size_t bytes, tn_labelled_config c); /* not a file */
TN_API int64_t             tn_labelled_count(const tn_labelled *l);
TN_API int64_t tn_labelled_skipped(const tn_labelled *l, const char **first); /* *first: the first one's error */
/* Keeps the examples whose labels are known; others are an error or count as skipped. For validation sets. */
TN_API tn_status tn_labelled_only(tn_labelled *l, const tn_labels *known);
TN_API tn_status tn_labelled_first(tn_labelled *l, int64_t most); /* keeps the first `most` examples */
TN_API void      tn_labelled_free(tn_labelled *l);

/* An example. text: one or two texts; words; question and text; or context and endings. label: one or several; a tag
 * per word; answers, where answer i starts at byte start[i] of the text; or the number of the right ending. */
typedef struct {
    const char        *id; /* id of a question; otherwise "" */
    int64_t            line, texts, labels;
    const char *const *text, *const *label;
    const int64_t *start;
} tn_example;
TN_API tn_example tn_labelled_at(const tn_labelled *l, int64_t i); /* valid until an example is added */
TN_API tn_status  tn_labelled_add(tn_labelled *l, tn_example x);   /* copies x; x.line is for errors */

/* The names of the labels: those that occur, sorted (numbers by value), or given. A label's index is its class. */
TN_API tn_labels         *tn_labels_of(const tn_labelled *l);
TN_API tn_labels         *tn_labels_new(int64_t n, const char *const *names); /* copied */
TN_API int64_t            tn_labels_count(const tn_labels *l);
TN_API const char *const *tn_labels_names(const tn_labels *l);
TN_API int64_t            tn_labels_find(const tn_labels *l, const char *name); /* -1: not found */
TN_API void               tn_labels_free(tn_labels *l);

/* Batches of similar lengths: x is the token ids, [B, T] or [B, choices, T], y the targets; fields "types", "padding",
 * and "row", each row's feature. For words, a batch has as many tokens as .batch average sentences. With .parts, .batch
 * examples of any lengths form one step in .parts batches, for tn_fit's .accumulate. A sentence longer than .length
 * continues in another feature; texts with questions are read through windows; others are truncated. */
typedef struct tn_features_config {
    int             zero_;
    tn_problem_type problem;
    int64_t batch   TN_IS(32), length TN_IS(128), stride TN_IS(128); /* length in tokens; stride: overlap of windows */
    int64_t         parts;                                           /* batches per step; 0: each batch is a step */
    int64_t         tokens; /* maximum tokens of a batch, padding included, instead of .batch examples; 0: .batch */
    uint64_t        seed;
    bool            fixed, no_label; /* same batches in each epoch, for validation; no_label: no y */
    int             end_;
} TN_KEYWORDS_ONLY         tn_features_config;
typedef struct tn_features tn_features;
TN_API tn_features        *tn_features_create(const tn_labelled *l, const tn_tokenizer *t, const tn_labels *labels,
                                              tn_features_config c);
TN_API tn_source           tn_features_source(tn_features *f);
TN_API int64_t             tn_features_cut(const tn_features *f); /* texts truncated or continued in another feature */
TN_API void                tn_features_free(tn_features *f);

/* One feature: its example and its tokens. For words, word[i] is the word that starts at token i, or -1; for answers,
 * start and end are the token's bytes in the text, end 0 outside the text. */
typedef struct {
    int64_t        example, pieces;
    const int32_t *id, *word, *start, *end;
} tn_feature;
TN_API int64_t    tn_features_count(const tn_features *f);
TN_API tn_feature tn_features_at(tn_features *f, int64_t i); /* valid until the next call */

TN_C_END_
#define TN_FEATURES_DEFAULTS .batch = 32, .length = 128, .stride = 128
#define tn_labelled_new(...) TN_NEW_(tn_labelled_create, tn_labelled_config, TN_NO_DEFAULTS_, __VA_ARGS__)
#define tn_labelled_load(...) TN_CALL_(tn_labelled_load_run(TN_LABELLED_LOAD_(__VA_ARGS__, TN_END_)))
#define TN_LABELLED_LOAD_(path, ...) path, TN_FILLED_(tn_labelled_config, TN_NO_DEFAULTS_, __VA_ARGS__)
#define tn_labelled_parse(...) TN_CALL_(tn_labelled_parse_run(TN_LABELLED_PARSE_(__VA_ARGS__, TN_END_)))
#define TN_LABELLED_PARSE_(at, n, ...) at, n, TN_FILLED_(tn_labelled_config, TN_NO_DEFAULTS_, __VA_ARGS__)
#define tn_features_new(...) TN_CALL_(tn_features_create(TN_FEATURES_NEW_(__VA_ARGS__, TN_END_)))
#define TN_FEATURES_NEW_(l, t, labels, ...) \
    l, t, labels, TN_FILLED_(tn_features_config, TN_FEATURES_DEFAULTS, __VA_ARGS__)
#endif
