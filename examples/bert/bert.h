/* bert.h — the commands of bert, and what they share. */
#ifndef TENON_EXAMPLES_BERT_BERT_H
#define TENON_EXAMPLES_BERT_BERT_H

#include "../common/options.h"
#include "../common/train.h"

extern const command train_command, distil_command, contrast_command, fill_command, eval_command, embed_command,
    search_command, attention_command, info_command, demo_command, sample_command, score_command, tune_command,
    classify_command, tag_command, answer_command, choose_command;

/* ---- a model and its tokenizer (model.c) ------------------------------------------------------------------------- */

typedef struct {
    tn_bert      *bert;
    tn_tokenizer *tokens;
} model;
bool model_open(const char *dir, model *m); /* false: an error stands */
void model_close(model *m);

/* How sentences become vectors (sentences.c): as a folder of sentence-transformers says, or else as bert does it, the
 * mean of the pieces' with length 1. */
enum { SENTENCE_STEPS = 8 };
typedef struct {
    tn_linear     *dense; /* NULL: the vector gets length 1 */
    tn_hf_function then;  /* NULL: nothing */
} sentence_step;
typedef struct {
    char            folder[1024]; /* where the model is */
    bool            given;        /* does modules.json say it? */
    tn_bert_pooling pooling;
    bool            lower;                /* capitals are to become small letters */
    int64_t         length, dim;          /* pieces of a text at most; numbers of a vector */
    sentence_step   step[SENTENCE_STEPS]; /* behind the pooling */
    int             steps;
} sentences;
bool       sentences_open(const char *dir, sentences *to, model *m); /* false: raised */
void       sentences_close(sentences *s, model *m);
tn_tensor *sentences_vectors(const sentences *how, const model *m, int64_t n, const char *const *lines);
/* The vectors of n lines, [n, dim], in their order; those of near lengths go through the model together (vectors.c). */
bool sentences_all(const sentences *how, const model *m, int64_t n, const char *const *lines, float *to);

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
    const char *cache;                                     /* the file of tokens */
    bool        pairs, order, fixed, whole_words, by_rule; /* order: of pairs, as ALBERT has them */
    int64_t     spans;                                     /* pieces or words that are hidden in a row; 0: one */
    int64_t     length, batch;                             /* pieces in an example, examples in a batch */
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
    int64_t     batch, length, embedding; /* embedding: of ALBERT and ELECTRA; 0: as wide as the layers, 128 at most */
    bool        cased, norm_last, whole_words, by_rule;
    int64_t     word_vectors; /* how often skip-gram reads the texts before; 0: not */
    texts       texts, held;
    tn_tensor  *beginning; /* what it learned */
    tn_bert    *teacher;   /* from here on of distil.c */
    const char *teacher_dir;
    double      temperature;
} bert_training;
extern const train_kind bert_kind;

/* Vectors of the corpus's pieces, [pieces, dim], by skip-gram that reads it so often; 0 where a piece is not in it.
 * While it learns, the texts are at path, as numbers. And they as the rows of an embedding, all of one length
 * (beginning.c). */
tn_tensor *beginning_learn(const tn_corpus *c, int64_t pieces, int64_t dim, int64_t epochs, uint64_t seed,
                           const char *path);
void       beginning_take(tn_tensor *weight, tn_tensor *rows);

/* ELECTRA: two models that learn together (electra.c). */
typedef struct {
    tn_module base;
    tn_bert  *generator, *discriminator;
} electra;
electra   *electra_new(tn_bert_config discriminator);
tn_tensor *electra_loss(void *net, const tn_batch *b, void *user);
bool       electra_save(electra *m, const tn_tokenizer *tokens, const char *dir);
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
