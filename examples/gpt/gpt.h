/* gpt.h — the commands of gpt, and what they share. */
#ifndef TENON_EXAMPLES_GPT_GPT_H
#define TENON_EXAMPLES_GPT_GPT_H

#include "../common/train.h"

extern const command train_command, write_command, eval_command, info_command, convert_command, demo_command;

/* ---- a model and its tokenizer (model.c) ------------------------------------------------------------------------- */

typedef struct {
    tn_lm        *net;
    tn_tokenizer *tokens;
    tn_lm_info    about;
    const char   *form; /* of what it was read from: "huggingface", "gguf", "llama2.c" */
} model;
#define MODEL_HELP "the model: a folder, a .gguf file, or llama2.c's .bin"
#define TOKENIZER_HELP "its tokenizer, a file or a folder, where the model has none"
/* tokenizer: its file or folder, or NULL: what the path holds. alone: there need be none, and .tokens may be NULL.
 * False: an error stands. */
bool    model_open(const char *path, const char *tokenizer, bool alone, model *m);
int32_t model_first(const model *m); /* the piece that begins every text; -1: there is none */
void    model_close(model *m);

/* ---- texts as numbers (texts.c) ---------------------------------------------------------------------------------- */

/* All of the files, folders (what is in them, sorted by name, and in their folders) and "-", one after the other. */
bool texts_read(const option_list *files, tn_string *to);
/* Added to `to`; a special token that the text spells becomes one unless literal. */
bool texts_encode(const tn_tokenizer *t, tn_text text, bool literal, tn_ids *to);
/* A tokenizer of bytes whose pieces are the characters of a text: no merges but those inside of them. */
tn_tokenizer *texts_characters(tn_text text);

/* ---- training (train.c) ------------------------------------------------------------------------------------------ */

/* Windows of a text: drawn by chance, or one after the other. */
typedef struct {
    tn_ids  ids;
    int64_t length, batch, at; /* at: the next window, in order */
    bool    in_order;
} windows;

typedef struct {
    training    base;
    option_list text, valid;
    const char *pieces, *shape;
    int64_t     batch, length;
    double      valid_part, weight_decay;
    tn_string   all;   /* what is learned, then what is measured on ... */
    size_t      bytes; /* ... from here on */
    windows     train, held;
} gpt_training;
extern const train_kind gpt_kind;
#define GPT_TRAINING                                                                                             \
    {                                                                                                            \
        .base = {.kind = &gpt_kind, .asked = {TRAIN_DEFAULTS, .size = "mini", .dropout = 0.1}}, .pieces = "bpe", \
        .shape = "gpt2", .batch = 16, .length = 256, .valid_part = 0.1, .weight_decay = 0.1                      \
    }

/* ---- writing (stream.c) ------------------------------------------------------------------------------------------ */

/* Numbers become text as they come: nothing is shown that the next number may still change, be it half a character or
 * the beginning of a stop word. */
typedef struct {
    const tn_tokenizer *tokens;
    const option_list  *stop;
    tn_ids              ids;   /* those whose text is not all in `shown` */
    size_t              known; /* bytes of their text that are in `text` already */
    tn_string           text;  /* not shown yet */
    tn_string           room;
    bool                stopped; /* a stop word has come */
    bool                silent;  /* only counts */
} stream;
bool stream_add(stream *s, int32_t id, bool show); /* false: stopped, or an error stands */
void stream_end(stream *s);                        /* shows the rest */
void stream_free(stream *s);

/* How a text is made; the decoding is kept from one call to the next, so that a conversation is read once. */
typedef struct {
    tn_generate_args how; /* temperature, top_k, ...; .sample */
    int64_t          tokens;
    option_list      stop;
    uint64_t         seed;
} manner;
typedef struct {
    const model  *m;
    tn_decoding  *decoding;
    tn_ids        text;  /* all of it */
    int32_t       first; /* model_first */
    int64_t       read, room;
    bool          cut; /* the last text came to no end: it was as long as it might be */
    stream        out;
    const manner *manner;
} writer;
bool writer_open(writer *w, const model *m, const manner *how);
bool writer_read(writer *w, tn_text prompt); /* comes behind the text so far */
bool writer_write(writer *w);                /* goes on, on standard output */
void writer_close(writer *w);

/* ---- measuring (eval.c) ------------------------------------------------------------------------------------------ */

typedef struct {
    double  loss, perplexity, bits; /* nats a token; exp of it; bits a byte */
    int64_t tokens, bytes;
} measured;
/* Windows of `length` that go on by `stride`: only what the window before did not have counts. 0: as the model is long,
 * and half of that. */
bool measure(const model *m, tn_text text, int64_t length, int64_t stride, measured *to);

#endif
