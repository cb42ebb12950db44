/* answers.c — a list of allowed answers: the text is one of the arguments. After a whole answer only the end is
 * allowed, or nothing, which ends the text, too, and what continues a longer answer. */
#include "constrain.h"

#include <math.h>
#include <stdlib.h>

tn_status answers(const tn_next_token *next, void *user)
{
    const rules   *r = user;
    const int64_t *made = next->tokens + next->length - next->made;
    bool          *allowed = calloc((size_t)next->vocab, sizeof *allowed);
    if (!allowed) return TN_ENOMEM;
    for (int i = 0; i < r->count; i++) {
        const tn_ids *answer = &r->ids[i];
        bool          same = next->made <= answer->n;
        for (int64_t k = 0; same && k < next->made; k++) same = made[k] == answer->at[k];
        const int32_t word = same && next->made < answer->n ? answer->at[next->made] : r->end;
        if (same && word >= 0) allowed[word] = true;
    }
    for (int64_t w = 0; w < next->vocab; w++)
        if (!allowed[w]) next->scores[w] = -INFINITY;
    free(allowed);
    return TN_OK;
}
