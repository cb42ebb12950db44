/* chat.c — a model's end tokens and chat template: read from a path, written to a folder or GGUF. */
#include "core/base/toolbox.h"
#include "core/files/io.h"
#include "models/open/open_private.h"

#include <string.h>

static const char generation_file[] = "generation_config.json", chat_file[] = "chat_template.jinja",
                  chat_key[] = "tokenizer.chat_template", eos_key[] = "tokenizer.ggml.eos_token_id";
/* GGUF keys of further tokens at which llama.cpp ends a text, in addition to eos_token_id. llama.cpp also stops at some
 * token names, as "<|eot_id|>", "<|im_end|>" and "<|endoftext|>", regardless of the file; Tenon does not. The fim keys
 * come last: in fill-in-the-middle models they have another meaning. */
static const char *const other_eos_keys[] = {"tokenizer.ggml.eot_token_id", "tokenizer.ggml.eom_token_id",
                                             "tokenizer.ggml.fim_pad_token_id", "tokenizer.ggml.fim_rep_token_id",
                                             "tokenizer.ggml.fim_sep_token_id"};
enum { OTHER_KEYS = 5, PATH_ROOM = 1024 };

static void set_template(tn_model *m, const char *path, const char *text, size_t bytes)
{
    if (bytes && memchr(text, 0, bytes)) tn_raise(TN_EFORMAT, "'%s': the chat template contains a NUL", path);
    else tn_string_add(&m->chat_template, (tn_text){text, bytes});
}

static bool has_end(const tn_model *m, int64_t id)
{
    for (int64_t i = 0; i < m->ends.n; i++)
        if (m->ends.at[i] == id) return true;
    return false;
}

/* Ignores ids outside the model's vocabulary: a config may contain the default of its class. */
static void add_end(tn_model *m, int64_t id)
{
    if (id >= 0 && id < tn_lm_info_of(m->lm).vocab && !has_end(m, id)) tn_ids_add(&m->ends, (int32_t)id);
}

/* ---- read -------------------------------------------------------------------------------------------------------- */

static void read_gguf(tn_model *m, const char *path)
{
    tn_gguf    *g = tn_gguf_open(path);
    const char *chat = g ? tn_gguf_string_or(g, chat_key, "") : "";
    set_template(m, path, chat, strlen(chat));
    if (g) add_end(m, tn_gguf_i64_or(g, eos_key, -1));
    for (int i = 0; g && i < OTHER_KEYS; i++) add_end(m, tn_gguf_i64_or(g, other_eos_keys[i], -1));
    tn_gguf_close(g);
}

/* Of several named templates, the one that transformers uses for a conversation without tools, or else the first. */
static const tn_json *pick_template(const tn_json *list)
{
    const tn_json *best = tn_json_get(tn_json_first(list), "template");
    for (const tn_json *x = tn_json_first(list); x; x = tn_json_next(x))
        if (!strcmp(tn_json_string_or(tn_json_get(x, "name"), ""), "default")) best = tn_json_get(x, "template");
    return best;
}

static bool has_file(const char *folder, const char *name, char file[PATH_ROOM])
{
    return tn__path_in(folder, name, file, PATH_ROOM) && tn__file_exists(file);
}

static void read_chat(tn_model *m, const char *folder)
{
    enum { MOST = 16 << 20 };
    char file[PATH_ROOM];
    if (has_file(folder, chat_file, file)) {
        const tn_scope   s = tn_scope_begin();
        const tn_tensor *t = tn_file_read(file, MOST);
        const size_t     n = t ? (size_t)tn_numel(t) : 0;
        if (t && tn__sha256sums_check(file, tn_data(t), n)) set_template(m, file, tn_data(t), n);
        tn_scope_end(s);
    } else if (has_file(folder, "tokenizer_config.json", file)) {
        tn_json       *doc = tn_json_load(file);
        const tn_json *t = doc ? tn_json_get(doc, "chat_template") : NULL;
        if (tn_json_type_of(t) == TN_JSON_ARRAY) t = pick_template(t);
        if (tn_json_type_of(t) == TN_JSON_STRING)
            set_template(m, file, tn_json_string(t), (size_t)tn_json_string_bytes(t));
        tn_json_free(doc);
    }
}

/* eos_token_id, a number or an array. */
static void read_ends(tn_model *m, const tn_json *config, const char *path)
{
    const tn_json *end = tn_json_get(config, "eos_token_id");
    const bool     several = tn_json_type_of(end) == TN_JSON_ARRAY;
    if (several && !tn_json_count(end))
        tn_raise(TN_EUNSUPPORTED, "'%s': eos_token_id is an empty array; use null for no token", path);
    for (const tn_json *x = several ? tn_json_first(end) : end; x; x = several ? tn_json_next(x) : NULL)
        add_end(m, tn_json_i64_or(x, -1));
}

/* The end tokens of generation_config.json, or if it has none, of config.json. */
void tn__chat_read(tn_model *m, const tn_hf_source *s)
{
    char file[PATH_ROOM];
    if (!strcmp(m->form, "gguf")) read_gguf(m, s->path);
    if (strcmp(m->form, "huggingface") != 0) return;
    read_chat(m, s->path);
    if (tn_error() == TN_OK && has_file(s->path, generation_file, file)) {
        tn_json *doc = tn_json_load(file);
        read_ends(m, doc, file);
        tn_json_free(doc);
    }
    if (tn_error() == TN_OK && !m->ends.n) read_ends(m, s->config, s->name);
}

/* ---- written ----------------------------------------------------------------------------------------------------- */

tn_status tn__chat_put_gguf(tn_gguf_writer *w, const tn_model *m)
{
    const int32_t own = m->tokenizer ? tn_tokenizer_special(m->tokenizer).last : -1;
    const int32_t last = own < 0 && m->ends.n ? m->ends.at[0] : own;
    const int64_t all = m->ends.n + (last >= 0 && !has_end(m, last));
    if (all > 1 + OTHER_KEYS)
        return tn_raise(TN_EUNSUPPORTED,
                        "the model has %lld different end tokens, but GGUF can store at most %d; save to a directory, "
                        "or remove tokens from eos_token_id in its generation_config.json",
                        (long long)all, 1 + OTHER_KEYS);
    if (last != own) tn_gguf_put_u32(w, eos_key, last); /* else written with the tokenizer */
    for (int64_t i = 0, n = 0; i < m->ends.n; i++)
        if (m->ends.at[i] != last) tn_gguf_put_u32(w, other_eos_keys[n++], m->ends.at[i]);
    if (m->chat_template.bytes) tn_gguf_put_string(w, chat_key, m->chat_template.at);
    return tn_error();
}

static void put_token(tn_json_writer *w, const char *key, int32_t id)
{
    if (id >= 0) tn_json_put_i64(w, key, id);
}

static void put_ends(tn_json_writer *w, const tn_model *m, int32_t last)
{
    static const char key[] = "eos_token_id";
    if (m->ends.n < 2) {
        put_token(w, key, m->ends.n ? m->ends.at[0] : last);
        return;
    }
    tn_json_open_array(w, key);
    for (int64_t i = 0; i < m->ends.n; i++) tn_json_put_i64(w, NULL, m->ends.at[i]);
    tn_json_close(w);
}

static tn_status save_ends(const tn_model *m, const char *file)
{
    const tn_tokenizer_roles none = {.first = -1, .last = -1, .pad = -1},
                             r = m->tokenizer ? tn_tokenizer_special(m->tokenizer) : none;
    if (!m->ends.n && r.first < 0 && r.last < 0) return tn__sha256sums_remove(file);
    tn_json_writer *w = tn_json_writer_new(2);
    tn_json_open_object(w, NULL);
    put_token(w, "bos_token_id", r.first);
    put_ends(w, m, r.last);
    put_token(w, "pad_token_id", r.pad);
    tn_json_close(w);
    const tn_status s = tn_json_save_with_sha256(w, file);
    tn_json_writer_free(w);
    return s;
}

static tn_status save_chat(const tn_string *t, const char *file)
{
    char label[TN__LABEL];
    if (!t->bytes) return tn__sha256sums_remove(file);
    return tn__sha256sums_write(tn__label(label, "tn_model_save", file), file, t->at, t->bytes, "", true);
}

/* Removes a file that the model does not need: another model may have left it in the folder. */
tn_status tn__chat_save(const tn_model *m, const char *folder)
{
    char file[PATH_ROOM];
    if (tn__path_in(folder, chat_file, file, sizeof file) && save_chat(&m->chat_template, file) == TN_OK &&
        tn__path_in(folder, generation_file, file, sizeof file))
        save_ends(m, file);
    return tn_error();
}
