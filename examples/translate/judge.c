/* judge.c — how good a model is while it learns: BLEU on two files that it does not learn from. */
#include "translate.h"

#include <math.h>

bool judge_open(judge *j, tn_tokenizer *t, const char *source, const char *target)
{
    *j = (judge){.tokens = t, .source = tn_lines_load(source), .target = tn_lines_load(target)};
    return tn_error() == TN_OK;
}
void judge_close(judge *j)
{
    tn_lines_free(j->source), tn_lines_free(j->target);
    *j = (judge){.source = NULL};
}

/* Some lines at a time, so that Ctrl-C is not kept waiting. */
double judge_bleu(void *net, void *user)
{
    enum { SOME = 256 };
    const judge  *j = user;
    const model   m = {.net = net, .tokens = j->tokens};
    const manner  greedy = {.beams = 1, .best = 1, .batch = 64, .length_penalty = 1};
    const int64_t n = tn_lines_count(j->source);
    tn_bleu       bleu = {.tokenize = TN_BLEU_13A};
    for (int64_t i = 0; i < n && tn_error() == TN_OK; i += SOME) {
        tn_text       lines[SOME];
        tn_string     said[SOME] = {{0}};
        const int64_t some = n - i < SOME ? n - i : SOME;
        if (stop_flag) return NAN;
        for (int64_t k = 0; k < some; k++) lines[k] = tn_lines_at(j->source, i + k);
        translate_lines(&m, &greedy, some, lines, said, NULL);
        for (int64_t k = 0; k < some; k++) {
            const tn_text right = tn_lines_at(j->target, i + k), is = {said[k].at ? said[k].at : "", said[k].bytes};
            tn_bleu_add(&bleu, is, 1, &right);
            tn_string_free(&said[k]);
        }
    }
    return tn_bleu_score(&bleu);
}
