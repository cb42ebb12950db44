/* model.c — opening a model: GPT-2, LLaMA, Mistral, Qwen2, Reformer or a recurrent one, with the tokenizer that belongs
 * to it, from a folder, a .gguf or llama2.c's .bin. */
#include "model.h"

#include "files.h"
#include "texts.h"

#include <string.h>

/* The kind of its chat_template, from where it stands: tokenizer_config.json, chat_template.jinja or the .gguf. */
static void known(model *m, const char *chat_template)
{
    m->chat = tn_chat_kind(chat_template);
    m->speaks = !m->chat && chat_template && *chat_template;
}

static void chat_of(const char *path, const char *form, model *m)
{
    char      file[1024];
    tn_string text = {0};
    if (!strcmp(form, "gguf")) {
        tn_gguf *g = tn_gguf_open(path);
        if (g) known(m, tn_gguf_string_or(g, "tokenizer.chat_template", ""));
        tn_gguf_close(g);
    } else if (is_there(in_folder(path, "chat_template.jinja", file))) {
        const option_list one = {1, (const char *[]){file}};
        if (texts_read(&one, &text)) known(m, text.at);
    } else if (is_there(in_folder(path, "tokenizer_config.json", file))) {
        tn_json       *doc = tn_json_load(file);
        const tn_json *t = doc ? tn_json_get(doc, "chat_template") : NULL;
        if (t && tn_json_type_of(t) == TN_JSON_STRING) known(m, tn_json_string(t));
        else m->speaks = t && tn_json_type_of(t) != TN_JSON_NULL; /* several, each with a name */
        tn_json_free(doc);
    }
    tn_string_free(&text);
}

/* eos_token_id, a number or several, of generation_config.json, or, where that says nothing, of config.json. A config
 * may have the default of its class, which a smaller vocabulary has not. */
static void ends_of(const char *path, model *m)
{
    static const char *const names[] = {"generation_config.json", "config.json"};
    char                     file[1024];
    for (size_t i = 0; i < 2 && !m->ends.n && tn_error() == TN_OK; i++) {
        if (!is_there(in_folder(path, names[i], file))) continue;
        tn_json       *doc = tn_json_load(file);
        const tn_json *end = doc ? tn_json_get(doc, "eos_token_id") : NULL;
        const bool     several = tn_json_type_of(end) == TN_JSON_ARRAY;
        for (const tn_json *x = several ? tn_json_first(end) : end; x; x = several ? tn_json_next(x) : NULL) {
            const int64_t id = tn_json_i64_or(x, -1);
            if (id >= 0 && id < m->about.vocab) tn_ids_add(&m->ends, (int32_t)id);
        }
        tn_json_free(doc);
    }
}

bool model_open(const char *path, const char *tokenizer, bool alone, model *m)
{
    const tn_decoder d = tn_decoder_open(path, .tokenizer = tokenizer);
    *m = (model){.net = d.model, .tokens = d.tokenizer, .form = d.form, .stored = d.stored};
    if (m->net) m->about = tn_lm_about(m->net);
    if (m->net) chat_of(path, m->form, m), ends_of(path, m);
    if (m->net && !m->tokens && !alone)
        tn_raise(TN_EFORMAT, "'%s' holds no tokenizer: name its file or folder with --tokenizer", path);
    const int64_t pieces = m->tokens ? tn_tokenizer_size(m->tokens) : m->about.vocab;
    if (pieces < m->about.vocab && settings.verbose)
        fprintf(stderr, "the tokenizer has %lld pieces, the model room for %lld\n", (long long)pieces,
                (long long)m->about.vocab);
    if (m->net && tn_error() == TN_OK) return true;
    model_close(m);
    return false;
}

bool model_pack(model *m, const char *type)
{
    const char *stored = !type && m->stored ? m->stored : "";
    if (!strcmp(type ? type : "", "f16") || !strcmp(stored, "F16")) tn_halve(m->net);
    if (!strcmp(type ? type : "", "q8_0") || !strcmp(stored, "Q8_0")) tn_quantize(m->net);
    return tn_error() == TN_OK;
}

/* What the tokenizer puts in front of an empty text: LLaMA's <s>, LLaMA 3's <|begin_of_text|>. */
int32_t model_first(const model *m)
{
    tn_encoding *e = tn_encoding_new();
    int32_t      first = -1;
    if (e && tn_tokenizer_manner_of(m->tokens).first && tn_tokenizer_encode(m->tokens, e, "", 0) == TN_OK && e->n)
        first = e->id[0];
    tn_encoding_free(e);
    return first;
}

void model_close(model *m)
{
    tn_module_free(m->net);
    tn_tokenizer_free(m->tokens);
    tn_ids_free(&m->ends);
    *m = (model){.net = NULL};
}
