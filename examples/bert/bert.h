/* bert.h — the commands of bert, and what they share. */
#ifndef TENON_EXAMPLES_BERT_BERT_H
#define TENON_EXAMPLES_BERT_BERT_H

#include "../common/options.h"
#include "../common/train.h"

extern const command train_command, fill_command, eval_command, embed_command, attention_command, info_command,
    demo_command, sample_command, score_command, tune_command, classify_command, tag_command, answer_command,
    choose_command;

/* ---- a model and its tokenizer (model.c) ------------------------------------------------------------------------- */

typedef struct {
    tn_bert      *bert;
    tn_tokenizer *tokens;
} model;
bool model_open(const char *dir, model *m); /* false: an error stands */
void model_close(model *m);

/* How sentences become vectors (sentences.c): as a folder of sentence-transformers says, or else as bert does it, the
 * mean of the pieces' with length 1. */
typedef struct {
    char            folder[1024]; /* where the model is */
    bool            given;        /* does modules.json say it? */
    tn_bert_pooling pooling;
    bool            plain;  /* the vectors are left as long as they are */
    bool            lower;  /* capitals are to become small letters */
    int64_t         length; /* pieces of a text at most */
} sentences;
bool       sentences_read(const char *dir, sentences *to); /* false: raised */
bool       sentences_open(const char *dir, sentences *to, model *m);
tn_tensor *sentences_vectors(const sentences *how, const model *m, int64_t n, const char *const *lines);

/* A text's pieces as words for a picture; free them with words_free. */
typedef struct {
    int64_t      n;
    const char **word; /* as the vocabulary has them */
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
} texts;

typedef struct {
    option_list files;
    const char *cache; /* the file of tokens */
    bool        pairs, fixed, whole_words, by_rule;
    int64_t     length, batch; /* pieces in an example, examples in a batch */
    uint64_t    seed;
} texts_config;
bool       texts_open(const texts_config *c, const tn_tokenizer *t, texts *to);
void       texts_close(texts *t);
tn_tensor *texts_loss(void *bert, const tn_batch *b, void *user);

/* ---- training (train.c) ------------------------------------------------------------------------------------------ */

typedef struct {
    training    base;
    option_list text, valid;
    const char *objective;
    int64_t     batch, length;
    bool        cased, norm_last, whole_words, by_rule;
    texts       texts, held;
} bert_training;
extern const train_kind bert_kind;
#define BERT_TRAINING                                                                                                 \
    {                                                                                                                 \
        .base = {.kind = &bert_kind, .asked = {TRAIN_DEFAULTS, .size = "mini", .dropout = 0.1}}, .objective = "bert", \
        .batch = 16, .length = 128                                                                                    \
    }

/* How well it does on texts it has not seen. */
typedef struct {
    double  loss, perplexity, right, next; /* of hidden words: nats, exp of them, the part guessed; of pairs */
    double  unigram; /* the loss of who knows how often each word occurs in these texts, and nothing else */
    int64_t words, pairs;
} evaluation;
bool evaluate(model *m, const texts_config *c, evaluation *e);

/* ---- what is shown (report.c) ------------------------------------------------------------------------------------ */

/* A sentence with [MASK], what the model puts there, and what else it thinks of. */
bool report_fill(tn_report *r, const model *m, const char *text);
/* Every head of every layer. */
bool report_looks(tn_report *r, const model *m, const char *text, int64_t layer, int64_t head);

#endif
