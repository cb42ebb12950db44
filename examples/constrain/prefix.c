/* prefix.c — a forced prefix: the text starts with the first argument; the model writes the rest. */
#include "constrain.h"

#include <math.h>

tn_status prefix(const tn_next_token *next, void *user)
{
    const tn_ids *start = ((const rules *)user)->ids;
    if (next->made >= start->n) return TN_OK;
    for (int64_t w = 0; w < next->vocab; w++)
        if (w != start->at[next->made]) next->scores[w] = -INFINITY;
    return TN_OK;
}
