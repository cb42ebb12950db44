/* tokenizer_files.h — what the readers and the writer of tokenizers' files share. Private. */
#ifndef TENON_DATA_TOKENIZER_TOKENIZER_FILES_H
#define TENON_DATA_TOKENIZER_TOKENIZER_FILES_H

#include "data/tokenizer/tokenizer_private.h"

enum { TN__WORD_MOST = 10000 };

bool tn__unsupported(const char *who, const char *where, const char *what); /* raises: false */

/* Of a tokenizer.json: the normalizer as steps; the pre_tokenizer of SentencePiece's kinds; Unigram's scores; how these
 * kinds are decoded. They raise. */
bool tn__json_steps(tn_tokenizer *t, const char *who, const tn_json *v);
bool tn__json_metaspace(tn_tokenizer *t, const char *who, const tn_json *v);
bool tn__json_unigram(tn_tokenizer *t, const char *who, const tn_json *model);
bool tn__json_decoder(tn_tokenizer *t, const char *who, const tn_json *v);
/* And back. A writer keeps what failed. */
void tn__json_put_steps(const tn_tokenizer *t, tn_json_writer *w);
void tn__json_put_metaspace(const tn_tokenizer *t, tn_json_writer *w);
bool tn__json_put_unigram(const tn_tokenizer *t, tn_json_writer *w);
void tn__json_put_decoder(const tn_tokenizer *t, tn_json_writer *w);

tn_tokenizer *tn__tokenizer_read(const char *who, const tn_json *v); /* of a tokenizer.json */

/* Of SentencePiece's .model; control: are "<s>" and its like looked for in texts? And back, with its scores. */
tn_tokenizer *tn__sentencepiece_read(const char *who, const void *data, size_t bytes, bool control);
bool          tn__sentencepiece_write(const tn_tokenizer *t, tn_string *to);

#endif
