/* fuzz_merges.c — any bytes as vocab.json, merges.txt and tokenizer_config.json, GPT-2's files: see
 * tokenizer_folder.h. */
#define _GNU_SOURCE
#include "tests/fuzz/tokenizer_folder.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    tokenizer_folder(data, size);
    return 0;
}
