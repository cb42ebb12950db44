/* model.c — opens a language model (GPT-2, LLaMA, Mistral, Qwen2, Reformer or a recurrent one) and its tokenizer from a
 * folder, a .gguf file or a .bin file of llama2.c. */
#include "core/system/system.h"

#include "model.h"

#include "files.h"
#include "messages.h"
#include "texts.h"
#include "weights.h"
#include <string.h>

static bool open_as(const char *path, const char *tokenizer, bool alone, bool packed, const char *type, model *m)
{
    const tn_model d = tn_model_open(path, .family = TN_MODEL_DECODER, .tokenizer = tokenizer, .packed = packed,
                                     .pack = weights_packer(type));
    *m = (model){.all = d, .net = d.lm, .tokens = d.tokenizer};
    if (m->net) m->about = tn_lm_info_of(m->net);
    if (m->net && !m->tokens && !alone)
        tn_raise(TN_EFORMAT, "'%s' contains no tokenizer; name its file or folder with --tokenizer", path);
    const int64_t pieces = m->tokens ? tn_tokenizer_size(m->tokens) : m->about.vocab;
    if (pieces < m->about.vocab && settings.verbose)
        tell("the tokenizer has %lld tokens, the model's vocabulary %lld\n", (long long)pieces,
             (long long)m->about.vocab);
    if (m->net && tn_error() == TN_OK) return true;
    model_close(m);
    return false;
}

/* Opens the model whose adapters, in PEFT's format, are in a directory: the base model, perhaps an adapter, too, with
 * these merged, then packed. Without adapters there: open_as. */
static bool open_adapted(const char *path, const char *tokenizer, bool alone, bool packed, const char *type, model *m)
{
    enum { DEEPEST = 8 };
    static int depth;
    char       at[1024], config[1024];
    const bool adapter =
        file_exists(in_folder(path, "adapter_config.json", at)) && !file_exists(in_folder(path, "config.json", config));
    if (!adapter) return open_as(path, tokenizer, alone, packed, type, m);
    *m = (model){.net = NULL};
    tn_json    *j = tn_json_load(at);
    const char *base = tn_json_string_or(tn_json_get(j, "base_model_name_or_path"), "");
    if (j && (!file_exists(base) || depth == DEEPEST))
        tn_raise(TN_EIO,
                 "'%s' has adapters of '%s', which is not a model here; set base_model_name_or_path in '%s' to the "
                 "folder of that model",
                 path, base, at);
    depth++;
    const bool good = tn_error() == TN_OK && open_adapted(base, tokenizer, alone, false, NULL, m) &&
                      tn_module_peft_load(m->net, path) == TN_OK && tn_lora_merge(m->net) == TN_OK &&
                      (!type || weights_pack(m->net, type));
    depth--;
    tn_json_free(j);
    if (!good) model_close(m);
    return good;
}

bool model_open(const char *path, const char *tokenizer, bool alone, model *m)
{
    return open_adapted(path, tokenizer, alone, false, NULL, m);
}
bool model_open_packed(const char *path, const char *tokenizer, const char *type, model *m)
{
    return open_adapted(path, tokenizer, false, false, type, m);
}

bool model_open_to_infer(const char *path, const char *tokenizer, bool alone, const char *type, model *m)
{
    if (!open_adapted(path, tokenizer, alone, !type, type, m)) return false;
    if (type || !m->all.stored || strcmp(m->all.stored, "F16") != 0) return true;
    if (weights_pack(m->net, "f16")) return true; /* also what is transposed in the file */
    model_close(m);
    return false;
}

bool model_set_cache(model *m, const char *type)
{
    tn_blocks *blocks = type && !strcmp(type, "int8") ? tn_lm_blocks(m->net) : NULL;
    if (blocks) blocks->int8_cache = true;
    return tn_error() == TN_OK;
}

/* The token that the tokenizer adds before a text: LLaMA's <s>, LLaMA 3's <|begin_of_text|>. */
int32_t model_first(const model *m)
{
    tn_encoding *e = tn_encoding_new();
    int32_t      first = -1;
    if (e && tn_tokenizer_traits_of(m->tokens).first && tn_tokenizer_encode(m->tokens, e, "", 0) == TN_OK && e->n)
        first = e->id[0];
    tn_encoding_free(e);
    return first;
}

bool model_has_chat(const model *m) { return m->all.chat_template.bytes > 0; }

bool model_chat_ready(model *m)
{
    if (!m->chat) m->chat = tn_chat_parse(m->all.chat_template.at, m->all.chat_template.bytes);
    return m->chat != NULL;
}

bool model_chat(const model *m, int64_t n, const tn_message *said, bool answer, tn_string *to)
{
    const tn_tokenizer_roles r = tn_tokenizer_special(m->tokens);
    const time_t             now = time(NULL);
    struct tm                local;
    return tn_chat_text(m->chat, n, said, to, .answer = answer, .now = localtime_r(&now, &local),
                        .begin = r.first < 0 ? NULL : tn_tokenizer_token(m->tokens, r.first),
                        .end = r.last < 0 ? NULL : tn_tokenizer_token(m->tokens, r.last)) == TN_OK;
}

int32_t model_answer_end(const model *m)
{
    static const char said[] = "tenon";
    const tn_message  talk[2] = {{"user", said}, {"assistant", said}};
    tn_string         before = {0}, all = {0};
    tn_ids            ids = {0};
    int32_t           id = tn_tokenizer_special(m->tokens).last;
    const bool        fine = model_chat(m, 1, talk, true, &before) && model_chat(m, 2, talk, false, &all);
    const char       *at = fine && before.bytes < all.bytes ? strstr(all.at + before.bytes, said) : NULL;
    if (at && texts_encode(m->tokens, tn_text_of(at + strlen(said)), false, &ids))
        for (int64_t i = ids.n - 1; i >= 0; i--)
            if (tn_tokenizer_is_special(m->tokens, ids.at[i])) id = ids.at[i];
    tn_string_free(&before), tn_string_free(&all);
    tn_ids_free(&ids);
    return id;
}

void model_close(model *m)
{
    tn_model_close(&m->all);
    tn_chat_free(m->chat);
    *m = (model){.net = NULL};
}
