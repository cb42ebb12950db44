/* model.c — opens a model's folder. */
#include "translate.h"

bool model_open(const char *dir, model *m)
{
    const tn_model d = tn_model_open(dir, .family = TN_MODEL_SEQ2SEQ, .needs_tokenizer = true);
    *m = (model){d.seq2seq, d.tokenizer};
    return m->net != NULL;
}
void model_close(model *m)
{
    tn_free(m->net);
    tn_tokenizer_free(m->tokens);
    *m = (model){.net = NULL};
}
