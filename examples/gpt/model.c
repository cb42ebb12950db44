/* model.c — opening a model: GPT-2, LLaMA, Mistral or Qwen2, with the tokenizer that belongs to it. */
#include "gpt.h"

bool model_open(const char *path, const char *tokenizer, model *m)
{
    *m = (model){.net = tn_lm_load(path)};
    if (m->net) m->about = tn_lm_about(m->net), m->tokens = tn_tokenizer_load(tokenizer ? tokenizer : path);
    const int64_t pieces = tn_tokenizer_size(m->tokens), rows = m->about.vocab;
    if (m->tokens && pieces > rows)
        tn_raise(TN_EFORMAT,
                 "'%s': the tokenizer has %lld pieces, the model a vocabulary of %lld: they do not belong together; "
                 "name the right one with --tokenizer",
                 path, (long long)pieces, (long long)rows);
    else if (m->tokens && pieces < rows && settings.verbose)
        fprintf(stderr, "the tokenizer has %lld pieces, the model room for %lld\n", (long long)pieces, (long long)rows);
    if (m->tokens && tn_error() == TN_OK) return true;
    model_close(m);
    return false;
}

void model_close(model *m)
{
    tn_module_free(m->net);
    tn_tokenizer_free(m->tokens);
    *m = (model){.net = NULL};
}
