/* tokenizer_files.h — what the readers and the writer of tokenizers' files share. Private. */
#ifndef TENON_DATA_TOKENIZER_TOKENIZER_FILES_H
#define TENON_DATA_TOKENIZER_TOKENIZER_FILES_H

#include "data/tokenizer/tokenizer_private.h"

enum { TN__WORD_MOST = 10000 };

tn_tokenizer *tn__tokenizer_read(const char *who, const tn_json *v); /* of a tokenizer.json */

#endif
