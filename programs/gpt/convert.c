/* convert.c — gpt convert: writes a model in another file format. */
#include "gpt.h"

#include <string.h>

static const char *dir, *tokenizer, *out, *type;

static bool is_gguf(const char *path)
{
    const size_t n = strlen(path);
    return n > 5 && !strcmp(path + n - 5, ".gguf");
}

/* The dtype without --type: the one of the matrices in the model's file. bf16 takes half of the memory of f32, q8_0 a
 * quarter. */
static const char *as_stored(const model *m)
{
    const char *stored = m->all.stored ? m->all.stored : "";
    return !strcmp(stored, "BF16") ? "bf16" : !strcmp(stored, "Q8_0") ? "q8_0" : "f32";
}

/* A .gguf keeps its small tensors in f32; a folder has one dtype, like Hugging Face's models. */
static bool save(model *m)
{
    char        path[1024];
    const char *as = type ? type : as_stored(m);
    if (is_gguf(out)) {
        if (file_exists(out)) return tn_raise_false(TN_EINVAL, "'%s' already exists; choose another --out", out);
        return tn_model_save(&m->all, out, .type = as) == TN_OK;
    }
    if (file_exists(in_folder(out, "config.json", path)))
        return tn_raise_false(TN_EINVAL, "'%s' already contains a model; choose another --out", out);
    if (tn_module_to(m->net, !strcmp(as, "bf16") ? TN_BF16 : TN_F32) != TN_OK) return false;
    return make_folder(out) && tn_model_save(&m->all, out) == TN_OK;
}

static int run(int count, char **operands)
{
    model m;
    (void)count, (void)operands;
    const char *dot = strrchr(out, '.');
    if (dot && (!strcmp(dot, ".bin") || !strcmp(dot, ".safetensors") || !strcmp(dot, ".pt")))
        return program_usage("--out '%s': cannot write this format; name a folder, or a file that ends in .gguf", out);
    if (type && !strcmp(type, "q8_0") && !is_gguf(out))
        return program_usage("--type q8_0 needs an --out that ends in .gguf; a folder holds f32 or bf16");
    if (model_open(dir, tokenizer, false, &m)) {
        if (save(&m)) printf("%s\n", out);
        model_close(&m);
    }
    return program_end();
}

static const option options[] = {
    OPTION_TEXT("model", 'm', "PATH", &dir, MODEL_HELP, .required = true),
    OPTION_TEXT("tokenizer", 0, "PATH", &tokenizer, TOKENIZER_HELP),
    OPTION_TEXT("out", 'o', "PATH", &out, "what to write: a folder, or a file with a name that ends in .gguf",
                .required = true),
    OPTION_TEXT("type", 0, "TYPE", &type,
                "dtype of the matrices (default: the file's, or f32 if the output cannot hold it)",
                .choices = "f32|bf16|q8_0"),
    {0},
};
const command convert_command =
    COMMAND("convert", "convert a model to another file format", options,
            .text = "Reads every format that gpt write reads. Writes a folder for Hugging Face's libraries "
                    "(config.json, model.safetensors in one file, the tokenizer, the chat template and, in "
                    "generation_config.json, the tokens that end a text), or a .gguf file for llama.cpp.\n\n"
                    "  gpt convert --model book --out book.gguf --type q8_0\n"
                    "  gpt convert --model stories.bin --tokenizer tokenizer.bin --out stories");
