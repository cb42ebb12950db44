/* decoder_private.h — what the files of models/decoder share. */
#ifndef TENON_MODELS_DECODER_DECODER_PRIVATE_H
#define TENON_MODELS_DECODER_DECODER_PRIVATE_H

#include "models/files/model_file.h"

/* NULL and no error: the file holds none. path: for messages. */
tn_tokenizer *tn__gguf_tokenizer(const tn_gguf *g, const char *path);
tn_tokenizer *tn__llama2c_tokenizer(const char *path, const void *data, size_t n);
/* NULL puts that there is none. words: the model's, of which the last may have no piece. */
tn_status tn__gguf_put_tokenizer(tn_gguf_writer *w, const tn_tokenizer *t, int64_t words);

/* .ends and .chat_template (manner.c): from where d->form says that they stand, into GGUF, and into a folder. */
void      tn__manner_read(tn_decoder *d, const char *path);
tn_status tn__manner_put(tn_gguf_writer *w, const tn_decoder *d);
tn_status tn__manner_save(const tn_decoder *d, const char *folder);

#endif
