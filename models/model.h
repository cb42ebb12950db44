/* model.h — opens and saves a model of any family with its tokenizer. Part of models.h: include that.
 *
 *     tn_model m = tn_model_open("dir");
 *     if (m.family == TN_MODEL_ENCODER) tn_bert_embed(m.bert, m.tokenizer, 1, &text, TN_POOL_MEAN);
 *     else if (m.family == TN_MODEL_DECODER) tn_lm_forward(m.lm, ids);
 *     else if (!m.family) fprintf(stderr, "%s\n", tn_error_message());
 *     tn_model_close(&m);
 *
 *     tn_model m = tn_model_open("stories260K.bin", .tokenizer = "tok512.bin");
 *     if (tn_model_save(&m, "stories260K.gguf", .type = "q8_0") != TN_OK) puts(tn_error_message());
 *
 * A path is a directory in Hugging Face's format, whose config.json determines the family by its model_type and
 * architectures, a .gguf file, or llama2.c's .bin. The error for another path names the type or format. */
#ifndef TENON_MODELS_MODEL_H
#define TENON_MODELS_MODEL_H

#include "heads.h"
#include "hf.h"
#include "lm.h"
#include "seq2seq.h"

TN_C_BEGIN_

typedef enum {
    TN_MODEL_NONE = 0,
    TN_MODEL_ENCODER,
    TN_MODEL_TUNED,
    TN_MODEL_DECODER,
    TN_MODEL_SEQ2SEQ,
    TN_MODEL_IMAGES,
    TN_MODEL_OTHER
} tn_model_family;

typedef struct {
    tn_model_family family; /* TN_MODEL_NONE: an error is set */
    const char     *type;   /* model_type: "roberta", "llama" … */
    union {                 /* in eval mode */
        void       *module;
        tn_bert    *bert;    /* TN_MODEL_ENCODER */
        tn_tuned   *tuned;   /* TN_MODEL_TUNED, an encoder with a task head: heads.h */
        tn_lm      *lm;      /* TN_MODEL_DECODER, any language model: lm.h */
        tn_seq2seq *seq2seq; /* TN_MODEL_SEQ2SEQ, a translation model */
                             /* TN_MODEL_IMAGES, TN_MODEL_OTHER: module, of a family that the program has registered */
    };
    tn_tokenizer *tokenizer; /* NULL: the path contains none, and .tokenizer was not set */
    tn_tokenizer *target;    /* TN_MODEL_SEQ2SEQ: of the target, if it has its own (Marian); else NULL */
    const char   *form;      /* "huggingface", "gguf" or "llama2.c" */

    /* Language models only. */
    const char *stored; /* dtype of all matrices in the file but routers of experts, as "F16"; NULL: they differ. In
                           memory they are f32 (but see .packed) until tn_module_halve (exact if F16) or
                           tn_module_quantize (if Q8_0) */
    tn_ids      ends;   /* token ids that end a text by the path's metadata, in addition to the tokenizer's */
    tn_string   chat_template; /* format of conversations, in Jinja, for tn_chat_parse; empty: not specified */
} tn_model;

typedef struct tn_model_config {
    int             zero_;
    tn_model_family family;          /* others are errors; ENCODER also opens that of a tuned model; NONE: any family */
    const char     *tokenizer;       /* file or folder of a tokenizer; NULL: the path's own; llama2.c's .bin has none */
    bool            no_tokenizer;    /* load the model only */
    bool            needs_tokenizer; /* a path without tokenizer is an error */
    const char *from, *to; /* languages of a translation model of several ("en", "eng_Latn"); NULL: the path's own */
    bool        packed;    /* weights of Q4_0, Q4_K, Q5_K, Q6_K, Q8_0 and F16 stay so; see tn_load */
    tn_tensor *(*pack)(const tn_tensor *weight); /* packs each weight as it is read, as tn_int8_pack; see tn_load */
    int end_;
} TN_KEYWORDS_ONLY tn_model_config;
TN_API tn_model    tn_model_open_run(const char *path, tn_model_config c);
TN_API void        tn_model_close(tn_model *m); /* frees all members; set a member to NULL to keep it */

typedef struct tn_model_save_args {
    int         zero_;
    const char *type; /* dtype of a .gguf's matrices: "f32", "bf16" or "q8_0"; NULL: bf16 if they are, else f32 */
    bool        no_tokenizer; /* do not write the tokenizer */
    int         end_;
} TN_KEYWORDS_ONLY tn_model_save_args;
/* Writes all members to a path that ends in .gguf, or into an existing directory in Hugging Face's format. */
TN_API tn_status tn_model_save_run(const tn_model *m, const char *path, tn_model_save_args a) TN_CHECKED;

/* A family: the models of some model_types. The library registers its own; a program registers others before it opens
 * their models. */
typedef struct {
    tn_model_family    family; /* which member of tn_model is the model: DECODER, ENCODER, SEQ2SEQ, IMAGES or OTHER */
    const char *const *types;  /* values of model_type, NULL-terminated; no other family may have them */
    void *(*load)(const tn_hf_source *s);        /* returns the model in eval mode; NULL: raised */
    tn_status (*save)(void *m, const char *dir); /* of IMAGES and OTHER; else NULL: see tn_lm_ops */
} tn_family;
/* f, which must outlive the program's use of models, is registered once, however often it is called. */
TN_API tn_status tn_family_register(const tn_family *f);

TN_C_END_
#define tn_model_open(...) TN_CALL_(tn_model_open_run(TN_MODEL_OPEN_(__VA_ARGS__, TN_END_)))
#define TN_MODEL_OPEN_(path, ...) path, TN_FILLED_(tn_model_config, TN_NO_DEFAULTS_, __VA_ARGS__)
#define tn_model_save(m, ...) TN_CALL_(tn_model_save_run(m, TN_MODEL_SAVE_(__VA_ARGS__, TN_END_)))
#define TN_MODEL_SAVE_(path, ...) path, TN_FILLED_(tn_model_save_args, TN_NO_DEFAULTS_, __VA_ARGS__)
#endif
