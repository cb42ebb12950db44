/* model.h — a language model and its tokenizer, as gpt and lm open them. */
#ifndef TENON_PROGRAMS_COMMON_MODEL_H
#define TENON_PROGRAMS_COMMON_MODEL_H

#include "weights.h"

typedef struct {
    tn_model      all; /* owns net and tokens */
    tn_lm        *net;
    tn_tokenizer *tokens;
    tn_lm_info    about;
    tn_chat      *chat; /* the chat template, after model_chat_ready */
} model;
#define MODEL_HELP "model: a folder, also of PEFT's adapters, a .gguf file, or a .bin file of llama2.c"
#define MODEL_TYPES WEIGHT_TYPES "|q4_0"
#define MODEL_TYPE_HELP WEIGHT_TYPE_TEXT "; q4_0 takes an eighth (default: the file's)"
#define TOKENIZER_HELP "file or folder of the tokenizer, if the model has none"
/* Opens the model at path. tokenizer: the tokenizer's file or folder; NULL: the one at path. alone: the tokenizer is
 * optional, and .tokens may be NULL. False: an error is set. */
bool model_open(const char *path, const char *tokenizer, bool alone, model *m);
/* model_open with a tokenizer; the weights are packed as they are read. type: one of WEIGHT_TYPES; NULL: f32. */
bool model_open_packed(const char *path, const char *tokenizer, const char *type, model *m);
/* The same for inference only, with the weights in a type: one of MODEL_TYPES; NULL: that of each in the file. */
bool model_open_to_infer(const char *path, const char *tokenizer, bool alone, const char *type, model *m);
/* Sets the type in which generation stores keys and values: "int8"; or "f32" or NULL, the default. */
#define OPTION_CACHE(type)                                                                                 \
    OPTION_TEXT("cache", 0, "TYPE", type,                                                                  \
                "dtype of the cache of keys and values: int8 takes about a quarter of f32 (default: f32)", \
                .choices = "f32|int8")
bool    model_set_cache(model *m, const char *type);
int32_t model_first(const model *m); /* the token that starts every text; -1: none */
void    model_close(model *m);
/* model_has_chat: does the model have a chat template? model_chat_ready: reads it; false: raised, it is not supported.
 * model_chat, after that: appends a conversation in its form; answer: up to where the next answer starts. */
bool model_has_chat(const model *m);
bool model_chat_ready(model *m);
bool model_chat(const model *m, int64_t n, const tn_message *said, bool answer, tn_string *to);
/* The first special token that the template writes after an answer, or the tokenizer's last one if it writes none. */
int32_t model_answer_end(const model *m);

#endif
