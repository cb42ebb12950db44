/* fuzz_entities.c — any bytes as the columns that `bert score entities` reads from standard input; any word may be a
 * tag. They give a table and JSON, or are rejected with the line number. Nothing stays allocated. */
#define _GNU_SOURCE
#include "programs/bert/tune.h"
#include "tests/fuzz/silent.h"
#include <string.h>

#define CHECK(x) ((x) ? (void)0 : abort())

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const size_t before = tn_memory_now().live;
    for (int i = 0; i < 4; i++) {
        const streams were = silent_begin(data ? data : (const uint8_t *)"", size);
        score_entities(i & 1, i > 1);
        silent_end(were);
        CHECK(tn_error() == TN_OK || strstr(tn_error_message(), "line "));
        tn_clear_error();
    }
    CHECK(tn_memory_now().live == before);
    return 0;
}
