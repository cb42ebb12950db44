/* fuzz_chat.c — any bytes as a chat template: it is rejected, or runs within its limits on two conversations. */
#include "extras.h"

#include <stdlib.h>
#include <time.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
    const tn_message said[] = {{"system", "be terse"}, {"user", " hi\n"}, {"assistant", "yes"}};
    tn_chat         *c = tn_chat_parse((const char *)data, bytes);
    tn_string        text = {0};
    for (int n = 0; c && n <= 3; n += 3) {
        tn_chat_text(c, n, said, &text, .answer = n == 0, .begin = "<s>", .end = "</s>",
                     .now = &(struct tm){.tm_mday = 1});
        if (tn_error() != TN_OK && text.bytes) abort();
        tn_clear_error();
        text.bytes = 0;
    }
    tn_clear_error();
    tn_chat_free(c);
    tn_string_free(&text);
    return 0;
}
