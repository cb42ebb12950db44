/* decoder_private.h — what the files of models/decoder share. */
#ifndef TENON_MODELS_DECODER_DECODER_PRIVATE_H
#define TENON_MODELS_DECODER_DECODER_PRIVATE_H

#include "models/files/model_file.h"

/* NULL and no error: the file holds none. path: for messages. */
tn_tokenizer *tn__gguf_tokenizer(const tn_gguf *g, const char *path);
tn_tokenizer *tn__llama2c_tokenizer(const char *path, const void *data, size_t n);
/* A tokenizer, of which NULL puts nothing; as tn__gguf_how has it. */
tn_status tn__gguf_put_tokenizer(tn_gguf_writer *w, void *tokenizer);

#endif
