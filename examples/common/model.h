/* model.h — a model that writes text, and the tokenizer that belongs to it: what gpt and lm open. */
#ifndef TENON_EXAMPLES_COMMON_MODEL_H
#define TENON_EXAMPLES_COMMON_MODEL_H

#include "options.h"

typedef struct {
    tn_lm        *net;
    tn_tokenizer *tokens;
    tn_lm_info    about;
    const char   *chat; /* how it reads conversations, as tn_chat_text's kinds; NULL: it does not say */
    const char   *form; /* of what it was read from: "huggingface", "gguf", "llama2.c" */
} model;
#define MODEL_HELP "the model: a folder, a .gguf file, or llama2.c's .bin"
#define TOKENIZER_HELP "its tokenizer, a file or a folder, where the model has none"
/* tokenizer: its file or folder, or NULL: what the path holds. alone: there need be none, and .tokens may be NULL.
 * False: an error stands. */
bool    model_open(const char *path, const char *tokenizer, bool alone, model *m);
int32_t model_first(const model *m); /* the piece that begins every text; -1: there is none */
void    model_close(model *m);

#endif
