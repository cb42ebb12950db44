/* checksum.h — FNV-1a over 64 bits: what tells texts, images and tokenizers apart from those that a run began with. */
#ifndef TENON_EXAMPLES_COMMON_CHECKSUM_H
#define TENON_EXAMPLES_COMMON_CHECKSUM_H

#include <tenon/tenon.h>

#define CHECKSUM UINT64_C(14695981039346656037) /* what a sum begins with */
uint64_t checksum(uint64_t sum, const void *data, size_t bytes);
uint64_t checksum_string(uint64_t sum, const char *text);   /* with the NUL behind it */
uint64_t checksum_tensor(uint64_t sum, const tn_tensor *t); /* of its elements, which lie one behind the other */
uint64_t checksum_ids(const tn_ids *ids);                   /* of whole numbers, not of their bytes */
uint64_t checksum_pieces(const tn_tokenizer *t);            /* tells tokenizers apart: of all their pieces */
uint64_t checksum_file(uint64_t sum, const char *path);     /* of its bytes; raises */
void     checksum_text(uint64_t sum, char to[17]);
void     checksum_put(tn_json_writer *w, const char *name, uint64_t sum);

#endif
