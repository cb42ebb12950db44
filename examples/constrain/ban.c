/* ban.c — banned tokens: none whose text contains one of the arguments, as the letter e. */
#include "constrain.h"

#include <math.h>
#include <string.h>

tn_status ban(const tn_next_token *next, void *user)
{
    const rules *r = user;
    for (int64_t w = 0; w < next->vocab && w < r->known; w++)
        for (int i = 0; i < r->count; i++)
            if (r->text[w].bytes && strstr(r->text[w].at, r->words[i])) next->scores[w] = -INFINITY;
    return TN_OK;
}
