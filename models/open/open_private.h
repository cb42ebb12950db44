/* open_private.h — shared by the files of models/open. */
#ifndef TENON_MODELS_OPEN_OPEN_PRIVATE_H
#define TENON_MODELS_OPEN_OPEN_PRIVATE_H

#include "models/files/hf_config.h"

/* The registered families (families.c). find: the one that has the model_type; NULL: none. of_source: the one of a
 * config.json, among those of a kind (TN_MODEL_NONE: all), and *type; NULL: raised. */
const tn_family *tn__family_find(const char *type);
const tn_family *tn__family_of_source(const tn_hf_source *s, tn_model_family kind, const char **type);

/* Raises if the tokenizer has more tokens than the model has token ids. */
bool tn__model_sizes_fit(const tn_model *m, const char *path);

/* NULL without an error: the file has no tokenizer. path: for messages. */
tn_tokenizer *tn__gguf_tokenizer(const tn_gguf *g, const char *path);
tn_tokenizer *tn__llama2c_tokenizer(const char *path, const void *data, size_t n);
/* t NULL: writes that there is no tokenizer. words: size of the model's vocabulary; the last ids may have no token. */
tn_status tn__gguf_put_tokenizer(tn_gguf_writer *w, const tn_tokenizer *t, int64_t words);

/* .ends and .chat_template (chat.c): read in the format m->form, written to GGUF, written to a folder. */
void      tn__chat_read(tn_model *m, const tn_hf_source *s);
tn_status tn__chat_put_gguf(tn_gguf_writer *w, const tn_model *m);
tn_status tn__chat_save(const tn_model *m, const char *folder);

#endif
