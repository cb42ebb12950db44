/* bert.h — the commands of bert, and the declarations they share. */
#ifndef TENON_PROGRAMS_BERT_BERT_H
#define TENON_PROGRAMS_BERT_BERT_H

#include "../common/options.h"
#include "../common/train.h"

extern const command train_command, verify_command, debug_command, distil_command, contrast_command, fill_command,
    eval_command, embed_command, search_command, info_command, export_command, demo_command, sample_command,
    score_command, tune_command, classify_command, tag_command, answer_command, choose_command;

/* ---- a model and its tokenizer (model.c) ------------------------------------------------------------------------- */

typedef struct {
    tn_bert      *bert;
    tn_tokenizer *tokens;
} model;
bool model_open(const char *dir, model *m);                /* false: an error is set */
bool model_open_as(const char *dir, bool alone, model *m); /* alone: .tokens is NULL if the folder has no tokenizer */
void model_close(model *m);
/* A pairs_score (sentence_pairs.h). */
tn_status score_pairs(void *bert, const tn_tokenizer *t, int64_t n, const char *const *text, double *to);

/* How a sentence is embedded (sentences.c): as a folder of sentence-transformers specifies; otherwise by the mean of
 * the tokens' hidden states, scaled to length 1. */
enum { SENTENCE_STEPS = 8 };
typedef struct {
    tn_linear     *dense; /* NULL: scale the vector to length 1 */
    tn_hf_function then;  /* activation after dense; NULL: none */
} sentence_step;
typedef struct {
    char            folder[1024]; /* the model's folder */
    bool            given;        /* specified by modules.json */
    tn_bert_pooling pooling;
    bool            skip_prompt;          /* the pooling excludes the prompt's tokens */
    char           *prompt;               /* is put before each text; owned; NULL: none */
    int64_t         truncate;             /* elements of a vector to keep; 0: all */
    bool            lower;                /* the text is converted to lower case */
    int64_t         length, dim;          /* maximum tokens of a text; elements of a vector */
    sentence_step   step[SENTENCE_STEPS]; /* after the pooling */
    int             steps;
} sentences;
bool       sentences_open(const char *dir, sentences *to, model *m);                /* false: raised */
bool       sentences_open_as(const char *dir, bool alone, sentences *to, model *m); /* see model_open_as */
void       sentences_close(sentences *s, model *m);
tn_tensor *sentences_vectors(const sentences *how, const model *m, int64_t n, const char *const *lines);
/* The vectors of n lines, [n, dim], in their order. Lines of similar length are batched (vectors.c). */
bool sentences_all(const sentences *how, const model *m, int64_t n, const char *const *lines, float *to);

/* Prints the cosines between the vectors that a word has in n texts, and its static vector (embed_word.c). */
bool embed_word(const model *m, const char *word, int64_t n, const char *const *texts);

/* A text's tokens, for a figure of the report; freed with words_free. */
typedef struct {
    int64_t      n;
    const char **word; /* the tokens' texts, borrowed from the tokenizer */
    tn_tensor   *ids;  /* [1, n] */
    tn_tensor   *segments;
} words;
bool words_of(const model *m, const char *text, words *w);
void words_free(words *w);

/* ---- texts as batches (texts.c) ---------------------------------------------------------------------------------- */

typedef struct {
    tn_encoding *encoding;
    tn_corpus   *corpus;
    tn_mlm      *batches;
    tn_mlm      *held; /* batches of the part that .held sets aside; NULL: none */
    tn_ids       ids;  /* tokens of all sentences, their starts [sentences + 1] and lines [sentences]: see lines.c */
    int64_t     *start, *line;
} texts;

typedef struct {
    option_list  files;
    const char  *cache; /* file for the token ids */
    tn_bert_kind kind;  /* the model's kind, which decides the form of the examples */
    bool         pairs, fixed, whole_words, by_rule;
    int64_t      length, batch; /* tokens per example, examples per batch */
    double       rate;          /* fraction of tokens that are masked; 0: 0.15, XLNet 1/6 */
    double       held;          /* fraction of the tokens, at the end, for .held; 0: none */
    int64_t      most_held;     /* at most about this number of tokens in .held, and in a fixed text; 0: no limit */
    uint64_t     seed;
} texts_config;
bool texts_open(const texts_config *c, const tn_tokenizer *t, texts *to);
void texts_close(texts *t);
/* The mean loss, in nats, of predicting the tokens of `of` by their frequencies in t; `of` may be t. NaN: raised. */
double texts_unigram(const texts *t, const texts *of, int64_t vocab);
/* For debug: "lines 3-5, 12" of the sentences that a row of a batch consists of (lines.c). */
void texts_lines_of(texts *t, const option_list *files, bool by_rule, const tn_tokenizer *tokens, const tn_ids *row,
                    char place[64]);
void texts_note_labelled(const tn_labelled *l, const char *path); /* notes texts of invalid UTF-8 */
tn_tensor *texts_loss(void *bert, const tn_batch *b, void *user); /* user: a bert_training; may be NULL */

/* ---- training (train.c) ------------------------------------------------------------------------------------------ */

typedef struct {
    training    base;
    option_list text, valid;
    const char *objective;                /* NULL: modernbert */
    int64_t     batch, length, embedding; /* embedding: width, ALBERT and ELECTRA only; 0: min(128, dim) */
    const char *sharing;                  /* how two models share embeddings; NULL: tied, deberta-v3: gdes */
    bool        cased, norm_last, whole_words, by_rule;
    double      valid_part;   /* held-out fraction of the text; NaN: the default */
    int64_t     word_vectors; /* epochs of skip-gram before the training; 0: no skip-gram */
    int64_t     segment;      /* XLNet: tokens of a segment; 0: examples are one segment */
    texts       texts, held;
    tn_tensor  *initial; /* the vectors of skip-gram; may be NULL */
    tn_bert    *teacher; /* this and the following: used by distil.c only */
    const char *teacher_dir;
    double      temperature;
} bert_training;
extern const train_kind bert_kind;

/* word_vectors.c. word_vectors_train: trains skip-gram for `epochs` epochs on the corpus; returns vectors [pieces,
 * dim], zeros for tokens that do not occur. Writes a temporary file at path. word_vectors_apply: copies the vectors,
 * centred and scaled to one length, into an embedding. */
tn_tensor *word_vectors_train(const tn_corpus *c, int64_t pieces, int64_t dim, int64_t epochs, uint64_t seed,
                              const char *path);
void       word_vectors_apply(tn_tensor *weight, tn_tensor *rows);

/* ELECTRA and DeBERTa v3: two models that are trained together (electra.c). sharing: "tied", "gdes" or "none". */
typedef struct {
    tn_module base;
    tn_bert  *generator, *discriminator;
    bool      gdes;
} electra;
electra *electra_new(tn_bert_config discriminator, const char *sharing);
enum { REPLACED_WEIGHT = 50 }; /* loss = the generator's cross-entropy + 50 · that of finding the replaced tokens */
tn_tensor *electra_loss(void *net, const tn_batch *b, void *user);
/* Prints the two parts of the loss on the source's next batch, unless --quiet. False: raised. */
bool electra_print_parts(electra *m, const tn_source *s);
bool electra_save(electra *m, const tn_tokenizer *tokens, const char *dir);
#define BERT_TRAINING                                                                                  \
    {                                                                                                  \
        .base = {.kind = &bert_kind, .asked = {TRAIN_DEFAULTS_ALL_CHOSEN, .lr = NAN, .dropout = NAN}}, \
        .valid_part = NAN                                                                              \
    }

/* Results on a validation text. */
typedef struct {
    double  loss, perplexity, right, next; /* masked tokens: nats, exp(loss), accuracy; pairs: accuracy */
    double  unigram;                       /* loss of a baseline that predicts by the tokens' frequencies, in nats */
    int64_t words, pairs;                  /* number of masked tokens; of pairs */
} evaluation;
bool evaluate(model *m, const texts_config *c, evaluation *e);

/* ---- reports (report.c) ------------------------------------------------------------------------------------------ */

/* A text with one mask: `word` at its place, and `other` below it. */
bool report_fill(tn_report *r, const model *m, const char *text, const tn_report_word *word,
                 const tn_report_word *other);
/* Adds the attention weights of every head; those of one head enlarged. */
bool report_attention(tn_report *r, const model *m, const char *text, int64_t layer, int64_t head);

#endif
