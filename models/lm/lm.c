/* lm.c — tn_lm: a table of the language models, selected by a module's class or a directory's model_type. */
#include "models/files/hf_config.h"
#include "models/gpt/gpt_private.h"
#include "models/llama/llama_private.h"
#include "models/lm/lm_private.h"
#include "models/reformer/reformer_private.h"
#include "models/rnn_lm/rnn_lm_private.h"

#include <string.h>

typedef struct {
    const tn_class *of;
    tn_lm_info (*about)(const void *m);
    tn_tensor *(*run)(void *m, tn_decoder_args a);
    tn_tensor *(*loss)(void *m, tn_tensor *ids, tn_tensor *targets);
    tn_blocks *(*blocks)(void *m);
    tn_decoding *(*decoding)(void *m, int64_t rows, int64_t length);
    tn_status (*save)(void *m, const char *to, const tn__gguf_options *gguf);
} kind;

static tn_lm_info gpt_about(const void *m)
{
    const tn_gpt_config *c = &((const tn_gpt *)m)->config;
    return (tn_lm_info){"gpt2", c->vocab, c->dim, c->layers, c->heads, c->heads, c->positions, true};
}
static tn_tensor   *gpt_run(void *m, tn_decoder_args a) { return tn_gpt_run(m, a); }
static tn_tensor   *gpt_loss(void *m, tn_tensor *ids, tn_tensor *targets) { return tn_gpt_loss(m, ids, targets); }
static tn_blocks   *gpt_blocks(void *m) { return ((tn_gpt *)m)->blocks; }
static tn_decoding *gpt_decoding(void *m, int64_t rows, int64_t n) { return tn_gpt_decoding(m, rows, n); }
static tn_status    gpt_save(void *m, const char *to, const tn__gguf_options *gguf)
{
    return tn__gpt_save_as(m, to, gguf);
}

static tn_lm_info llama_about(const void *m)
{
    const tn_llama_config *c = &((const tn_llama *)m)->config;
    return (tn_lm_info){c->type, c->vocab, c->dim, c->layers, c->heads, c->kv_heads, c->positions, false};
}
static tn_tensor   *llama_run(void *m, tn_decoder_args a) { return tn_llama_run(m, a); }
static tn_tensor   *llama_loss(void *m, tn_tensor *ids, tn_tensor *targets) { return tn_llama_loss(m, ids, targets); }
static tn_blocks   *llama_blocks(void *m) { return ((tn_llama *)m)->blocks; }
static tn_decoding *llama_decoding(void *m, int64_t rows, int64_t n) { return tn_llama_decoding(m, rows, n); }
static tn_status    llama_save(void *m, const char *to, const tn__gguf_options *gguf)
{
    return tn__llama_save_as(m, to, gguf);
}

/* Sequences may have any length; the length used in training is not stored. */
static tn_lm_info rnn_about(const void *m)
{
    enum { LONG = 1 << 16 };
    const tn_rnn_lm_config *c = &((const tn_rnn_lm *)m)->config;
    return (tn_lm_info){TN__RNN_LM_TYPE, c->vocab, c->dim, c->layers, 1, 1, LONG, false};
}
static tn_tensor *rnn_run(void *m, tn_decoder_args a)
{
    if (a.cache)
        return tn_raise(TN_EUNSUPPORTED, "tn_lm_run: a recurrent model has no key/value cache; omit "
                                         ".cache"),
               NULL;
    return tn_rnn_lm_forward((tn_rnn_lm *)m, a.ids, .last = a.last, .vectors = a.vectors);
}
static tn_tensor *rnn_loss(void *m, tn_tensor *ids, tn_tensor *targets)
{
    return tn_rnn_lm_loss((tn_rnn_lm *)m, ids, targets);
}
static tn_blocks *rnn_blocks(void *m)
{
    (void)m;
    return tn_raise(TN_EUNSUPPORTED, "tn_lm_blocks: a recurrent model has no tn_blocks"), NULL;
}
static tn_decoding *rnn_decoding(void *m, int64_t rows, int64_t n) { return tn_rnn_lm_decoding(m, rows, n); }
static tn_status    rnn_save(void *m, const char *to, const tn__gguf_options *gguf)
{
    if (gguf) return tn_raise(TN_EUNSUPPORTED, "'%s': GGUF does not support recurrent models; save to a directory", to);
    return tn_rnn_lm_save(m, to);
}

static tn_lm_info reformer_about(const void *m)
{
    const tn_reformer_config *c = &((const tn_reformer *)m)->config;
    return (tn_lm_info){"reformer", c->vocab, c->dim, c->layers, c->heads, c->heads, c->positions, true};
}
static tn_tensor *reformer_run(void *m, tn_decoder_args a) { return tn_reformer_run(m, a); }
static tn_tensor *reformer_loss(void *m, tn_tensor *ids, tn_tensor *targets)
{
    return tn_reformer_loss(m, ids, targets);
}
static tn_blocks *reformer_blocks(void *m)
{
    (void)m;
    return tn_raise(TN_EUNSUPPORTED, "tn_lm_blocks: a Reformer has no tn_blocks and no key/value cache; see "
                                     "tn_reformer_decoding"),
           NULL;
}
static tn_decoding *reformer_decoding(void *m, int64_t rows, int64_t n) { return tn_reformer_decoding(m, rows, n); }
static tn_status    reformer_save(void *m, const char *to, const tn__gguf_options *gguf)
{
    return tn__reformer_save_as(m, to, gguf);
}

static const kind kinds[] = {
    {&tn__gpt_class, gpt_about, gpt_run, gpt_loss, gpt_blocks, gpt_decoding, gpt_save},
    {&tn__llama_class, llama_about, llama_run, llama_loss, llama_blocks, llama_decoding, llama_save},
    {&tn__rnn_lm_class, rnn_about, rnn_run, rnn_loss, rnn_blocks, rnn_decoding, rnn_save},
    {&tn__reformer_class, reformer_about, reformer_run, reformer_loss, reformer_blocks, reformer_decoding,
     reformer_save},
};

/* NULL: an error is set. */
static const kind *kind_of(const char *who, void *m)
{
    if (!tn_module_ready(who, m)) return NULL;
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++)
        if (((tn_module *)m)->kind == kinds[i].of) return &kinds[i];
    tn_raise(TN_EINVAL, "a %s is not a language model; expected a tn_gpt, tn_llama, tn_reformer or tn_rnn_lm",
             ((tn_module *)m)->kind->name);
    return NULL;
}

tn_lm_info tn_lm_about(void *m)
{
    const kind *k = kind_of(__func__, m);
    return k ? k->about(m) : (tn_lm_info){0};
}
tn_tensor *tn_lm_run(void *m, tn_decoder_args a)
{
    const kind *k = kind_of(__func__, m);
    return k ? k->run(m, a) : NULL;
}
tn_tensor *tn_lm_loss(void *m, tn_tensor *ids, tn_tensor *targets)
{
    const kind *k = kind_of(__func__, m);
    return k ? k->loss(m, ids, targets) : NULL;
}
tn_blocks *tn_lm_blocks(void *m)
{
    const kind *k = kind_of(__func__, m);
    return k ? k->blocks(m) : NULL;
}
tn_decoding *tn_lm_decoding(void *m, int64_t rows, int64_t length)
{
    const kind *k = kind_of(__func__, m);
    return k ? k->decoding(m, rows, length) : NULL;
}
/* The logits of the next token, for any model with a cache. */
static tn_tensor *next_logits(void *m, tn_tensor *ids, tn_kv_cache *cache)
{
    return tn_lm_run(m, (tn_decoder_args){.ids = ids, .cache = cache, .last = true});
}
static tn_status rotate_keys(void *m, tn_kv_cache *cache, int64_t from, int64_t count)
{
    return tn_blocks_forget(tn_lm_blocks(m), cache, from, count);
}
tn_decoding *tn_lm_rolling(void *m, int64_t rows, int64_t room, int64_t sinks)
{
    const kind *k = kind_of(__func__, m);
    tn_blocks  *blocks = k ? k->blocks(m) : NULL;
    if (!blocks) return NULL;
    if (!((tn_block *)tn_at(blocks->layers, 0))->self_attn->rotary)
        return tn_raise(TN_EUNSUPPORTED, "tn_lm_rolling: this model has position embeddings; only rotary positions "
                                         "are supported"),
               NULL;
    return tn_rolling_decoding(m, next_logits, rotate_keys, tn_blocks_cache(blocks, rows, room, 0), rows, room, sinks);
}

tn_status tn__lm_save_as(void *m, const char *to, const tn__gguf_options *gguf)
{
    const kind *k = kind_of("tn_lm_save", m);
    return k ? k->save(m, to, gguf) : tn_error();
}
tn_status tn_lm_save(void *m, const char *dir) { return tn__lm_save_as(m, dir, NULL); }

const char *const tn__lm_types[] = {"gpt2", "llama", "mistral", "qwen2", "reformer", TN__RNN_LM_TYPE, NULL};

tn_lm *tn_lm_load(const char *dir)
{
    typedef struct {
        const char *type;
    } stored;
    static const tn_hf_row rows[] = {
        {"model_type", TN_HF_TYPE, .at = offsetof(stored, type), .choices = tn__lm_types, .needed = true}};
    static const tn_hf_files files = {rows, TN_HF_COUNT_(rows), NULL, 0};
    stored                   s = {NULL};
    if (!tn_hf_config_read(dir, &files, &s)) return NULL;
    if (!strcmp(s.type, TN__RNN_LM_TYPE)) return (tn_lm *)tn_rnn_lm_load(dir);
    if (!strcmp(s.type, "reformer")) return (tn_lm *)tn_reformer_load(dir);
    return !strcmp(s.type, tn__lm_types[0]) ? (tn_lm *)tn_gpt_load(dir) : (tn_lm *)tn_llama_load(dir);
}
