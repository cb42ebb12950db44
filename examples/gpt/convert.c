/* convert.c — gpt convert: a model in another form. */
#include "gpt.h"

static const char *dir, *tokenizer, *out;

static int run(int count, char **operands)
{
    model m;
    char  path[1024];
    (void)count, (void)operands;
    if (model_open(dir, tokenizer, &m)) {
        if (is_there(in_folder(out, "config.json", path)))
            tn_raise(TN_EINVAL, "'%s' holds a model already: choose another folder", out);
        if (tn_error() == TN_OK && make_folder(out) && tn_lm_save(m.net, out) == TN_OK &&
            tn_tokenizer_save(m.tokens, out) == TN_OK)
            printf("%s\n", out);
        model_close(&m);
    }
    return program_end();
}

static const option options[] = {
    OPTION_TEXT("model", 'm', "PATH", &dir, "the model", .required = true),
    OPTION_TEXT("tokenizer", 0, "PATH", &tokenizer, "its tokenizer, where the model has none"),
    OPTION_TEXT("out", 'o', "DIR", &out, "where it goes", .required = true),
    {0},
};
const command convert_command =
    COMMAND("convert", "write a model in another form", options,
            .text = "Reads what gpt write reads and writes a folder that Hugging Face's libraries open: config.json, "
                    "model.safetensors in one file, and the tokenizer.");
