/* model.c — opens a model's folder. */
#include "translate.h"

bool model_open(const char *dir, model *m)
{
    *m = (model){.net = tn_seq2seq_load(dir)};
    if (m->net) m->tokens = tn_tokenizer_load(dir);
    if (m->tokens) return true;
    model_close(m);
    return false;
}
void model_close(model *m)
{
    tn_free(m->net);
    tn_tokenizer_free(m->tokens);
    *m = (model){.net = NULL};
}
