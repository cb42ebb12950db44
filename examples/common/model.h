/* model.h — a language model and its tokenizer, as gpt and lm open them. */
#ifndef TENON_EXAMPLES_COMMON_MODEL_H
#define TENON_EXAMPLES_COMMON_MODEL_H

#include "weights.h"

typedef struct {
    tn_model      all; /* owns net and tokens */
    tn_lm        *net;
    tn_tokenizer *tokens;
    tn_lm_info    about;
    tn_chat      *chat; /* the chat template, after model_chat_ready */
} model;
#define MODEL_HELP "model: a folder, a .gguf file, or a .bin file of llama2.c"
#define MODEL_TYPE_HELP WEIGHT_TYPE_TEXT " (default: the file's)"
#define TOKENIZER_HELP "file or folder of the tokenizer, if the model has none"
/* Opens the model at path. tokenizer: the tokenizer's file or folder; NULL: the one at path. alone: the tokenizer is
 * optional, and .tokens may be NULL. False: an error is set. */
bool model_open(const char *path, const char *tokenizer, bool alone, model *m);
/* The same for inference only, with the weights in a type: one of WEIGHT_TYPES; NULL: that of each in the file. */
bool    model_open_to_infer(const char *path, const char *tokenizer, bool alone, const char *type, model *m);
int32_t model_first(const model *m); /* the token that starts every text; -1: none */
void    model_close(model *m);
/* model_has_chat: does the model have a chat template? model_chat_ready: reads it; false: raised, it is not supported.
 * model_chat, after that: appends a conversation in its form; answer: up to where the next answer starts. */
bool model_has_chat(const model *m);
bool model_chat_ready(model *m);
bool model_chat(const model *m, int64_t n, const tn_message *said, bool answer, tn_string *to);

#endif
