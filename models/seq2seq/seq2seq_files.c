/* seq2seq_files.c — a seq2seq model to and from a directory: config.json and model.safetensors. */
#include "models/files/hf_config.h"

#include <string.h>

static const char type[] = "tenon-seq2seq";

static bool read_config(const tn__settings *s, tn_seq2seq_config *c)
{
    const char *is = tn__setting_text(s, "model_type", ""), *kind = tn__setting_text(s, "kind", "transformer");
    if (tn_error() != TN_OK) return false;
    if (strcmp(is, type))
        return tn_raise(TN_EUNSUPPORTED,
                        "'%s': model_type is '%s', but a model from sequence to sequence has '%s': is this the folder "
                        "of another program's model?",
                        s->path, is, type),
               false;
    *c = (tn_seq2seq_config){
        .kind = tn_seq2seq_kind_of(kind),
        .source_words = tn__setting_i64(s, "source_words", TN__NEEDED, 1, 10000000),
        .target_words = tn__setting_i64(s, "target_words", TN__NEEDED, 1, 10000000),
        .shared = tn__setting_bool(s, "shared", false),
        .untied = tn__setting_bool(s, "untied", false),
        .dim = tn__setting_i64(s, "dim", TN__NEEDED, 1, 65536),
        .layers = tn__setting_i64(s, "layers", TN__NEEDED, 1, 1024),
        .decoder_layers = tn__setting_i64(s, "decoder_layers", TN__NEEDED, 1, 1024),
        .dropout = tn__setting_double(s, "dropout", 0.1, 0, 0.999999),
        .padding = tn__setting_i64(s, "padding", 0, 0, 10000000),
        .begin = tn__setting_i64(s, "begin", 2, 0, 10000000),
        .end = tn__setting_i64(s, "end", 3, 0, 10000000),
        .heads = tn__setting_i64(s, "heads", 8, 1, 1024),
        .ff = tn__setting_i64(s, "ff", 0, 1, 1048576),
        .positions = tn__setting_i64(s, "positions", 1024, 1, 10000000),
        .norm_first = tn__setting_bool(s, "norm_first", false),
        .lstm = tn__setting_bool(s, "lstm", false),
        .one_way = tn__setting_bool(s, "one_way", false),
    };
    return tn_error() == TN_OK;
}

/* The numbers of the tables and of the largest matrices, of which there are more. */
static int64_t elements(const tn_seq2seq_config *c)
{
    const int64_t tables = c->source_words + (c->shared ? 0 : c->target_words) + (c->untied ? c->target_words : 0);
    const int64_t layer =
        c->kind == TN_SEQ2SEQ_TRANSFORMER ? 4 * c->dim * c->dim + 2 * c->dim * c->ff : 6 * c->dim * c->dim;
    return tables * c->dim + (c->layers + c->decoder_layers) * layer;
}

tn_seq2seq *tn_seq2seq_load(const char *dir)
{
    tn__settings      s = {.doc = NULL};
    tn_seq2seq_config c;
    char              path[1024];
    tn_safetensors   *f = NULL;
    tn_seq2seq       *m = NULL;
    if (tn_error() == TN_OK && tn__settings_open(&s, dir) && read_config(&s, &c)) f = tn__weights_open(dir, path);
    tn__settings_close(&s);
    if (f && tn__enough(f, path, elements(&c))) m = tn_seq2seq_create(c);
    return tn__model_read(m, f, path, NULL, 0);
}

tn_status tn_seq2seq_save(tn_seq2seq *m, const char *dir)
{
    if (!tn_ready(m)) return tn_error();
    const tn_seq2seq_config *c = &m->config;
    const struct {
        const char *key;
        int64_t     value;
    } numbers[] = {{"source_words", c->source_words},
                   {"target_words", c->target_words},
                   {"dim", c->dim},
                   {"layers", c->layers},
                   {"decoder_layers", c->decoder_layers},
                   {"padding", c->padding},
                   {"begin", c->begin},
                   {"end", c->end},
                   {"heads", c->heads},
                   {"ff", c->ff},
                   {"positions", c->positions}};
    const struct {
        const char *key;
        bool        value;
    } flags[] = {{"shared", c->shared},
                 {"untied", c->untied},
                 {"norm_first", c->norm_first},
                 {"lstm", c->lstm},
                 {"one_way", c->one_way}};
    tn_json_writer *w = tn_json_writer_new(2);
    tn_json_open_object(w, NULL);
    tn_json_put_string(w, "model_type", type);
    tn_json_put_string(w, "kind", tn_seq2seq_kind_name(c->kind));
    for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++) tn_json_put_i64(w, numbers[i].key, numbers[i].value);
    for (size_t i = 0; i < sizeof flags / sizeof *flags; i++) tn_json_put_bool(w, flags[i].key, flags[i].value);
    tn_json_put_double(w, "dropout", c->dropout);
    tn_json_close(w);
    return tn__model_write(m, w, dir, NULL, 0);
}
