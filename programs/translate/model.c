/* model.c — opens a model's folder. */
#include "translate.h"

bool model_open_languages(const char *dir, const char *from, const char *to, model *m)
{
    const tn_model d = tn_model_open(dir, .family = TN_MODEL_SEQ2SEQ, .needs_tokenizer = true, .from = from, .to = to);
    *m = (model){d.seq2seq, d.tokenizer, d.target};
    return m->net != NULL;
}
bool model_open(const char *dir, model *m) { return model_open_languages(dir, NULL, NULL, m); }
void model_close(model *m)
{
    tn_free(m->net);
    tn_tokenizer_free(m->tokens), tn_tokenizer_free(m->target);
    *m = (model){.net = NULL};
}
