/* model.h — a model that writes text, and the tokenizer that belongs to it: what gpt and lm open. */
#ifndef TENON_EXAMPLES_COMMON_MODEL_H
#define TENON_EXAMPLES_COMMON_MODEL_H

#include "options.h"

typedef struct {
    tn_decoder    all; /* what was opened */
    tn_lm        *net;
    tn_tokenizer *tokens;
    tn_lm_info    about;
    const char   *chat; /* how it reads conversations, as tn_chat_text's kinds; NULL: as nothing says that is known */
} model;
#define MODEL_HELP "the model: a folder, a .gguf file, or llama2.c's .bin"
#define MODEL_TYPES "f32|f16|q8_0"
#define MODEL_TYPE_HELP \
    "the weights' type in memory: f16 takes half of f32, q8_0 a quarter, and both are faster; without it, the file's"
#define TOKENIZER_HELP "its tokenizer, a file or a folder, where the model has none"
/* tokenizer: its file or folder, or NULL: what the path holds. alone: there need be none, and .tokens may be NULL.
 * False: an error stands. */
bool model_open(const char *path, const char *tokenizer, bool alone, model *m);
/* For inference. type: one of MODEL_TYPES, or NULL: as they were read, if they all were of one of these types.
 * False: an error stands. */
bool    model_pack(model *m, const char *type);
int32_t model_first(const model *m); /* the piece that begins every text; -1: there is none */
void    model_close(model *m);

#endif
