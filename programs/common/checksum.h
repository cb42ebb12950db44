/* checksum.h — FNV-1a hashes of 64 bits, which show whether texts, images and tokenizers are those that a run started
 * with. */
#ifndef TENON_PROGRAMS_COMMON_CHECKSUM_H
#define TENON_PROGRAMS_COMMON_CHECKSUM_H

#include <tenon/extras.h>

#define CHECKSUM UINT64_C(14695981039346656037) /* the initial hash */
uint64_t checksum(uint64_t sum, const void *data, size_t bytes);
uint64_t checksum_string(uint64_t sum, const char *text);   /* with its NUL */
uint64_t checksum_tensor(uint64_t sum, const tn_tensor *t); /* hashes the elements; t must be contiguous */
uint64_t checksum_ids(const tn_ids *ids);                   /* hashes the integers, not their bytes */
uint64_t checksum_file(uint64_t sum, const char *path);     /* hashes the file's bytes; raises */
void     checksum_text(uint64_t sum, char to[17]);
void     checksum_put(tn_json_writer *w, const char *name, uint64_t sum);

#endif
