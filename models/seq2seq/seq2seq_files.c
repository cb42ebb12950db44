/* seq2seq_files.c — a seq2seq model to and from a directory: config.json and model.safetensors. */
#include "models/files/hf_config.h"

#include <string.h>

/* As it stands in the file. */
typedef struct {
    tn_seq2seq_config c;
    const char       *kind;
} stored;

/* clang-format off */
static const char *const kinds[] = {"transformer", "bahdanau", "luong", "rnn", NULL}; /* by tn_seq2seq_kind */
static const tn_hf_row rows[] = {
    {"model_type", TN_HF_TYPE, .text = "tenon-seq2seq", .needed = true,
     .says = "a model from sequence to sequence has 'tenon-seq2seq': is this the folder of another program's model?"},
    {"kind", TN_HF_CHOICE, .at = offsetof(stored, kind), .choices = kinds},
    TN_HF("source_words", stored, c.source_words, .needed = true, .low = 1, .high = 10000000),
    TN_HF("target_words", stored, c.target_words, .needed = true, .low = 1, .high = 10000000),
    TN_HF("dim", stored, c.dim, .needed = true, .low = 1, .high = 65536),
    TN_HF("layers", stored, c.layers, .needed = true, .low = 1, .high = 1024),
    TN_HF("decoder_layers", stored, c.decoder_layers, .needed = true, .low = 1, .high = 1024),
    TN_HF("padding", stored, c.padding, .high = 10000000),
    TN_HF("begin", stored, c.begin, .otherwise = 2, .high = 10000000),
    TN_HF("end", stored, c.end, .otherwise = 3, .high = 10000000),
    TN_HF("heads", stored, c.heads, .otherwise = 8, .low = 1, .high = 1024),
    TN_HF("ff", stored, c.ff, .low = 1, .high = 1048576),
    TN_HF("positions", stored, c.positions, .otherwise = 1024, .low = 1, .high = 10000000),
    TN_HF("shared", stored, c.shared, .otherwise = false),
    TN_HF("untied", stored, c.untied, .otherwise = false),
    TN_HF("norm_first", stored, c.norm_first, .otherwise = false),
    TN_HF("lstm", stored, c.lstm, .otherwise = false),
    TN_HF("one_way", stored, c.one_way, .otherwise = false),
    TN_HF("dropout", stored, c.dropout, .otherwise = 0.1, .high = 0.999999),
};
/* clang-format on */
static const tn_hf_files files = {rows, TN_HF_COUNT_(rows), NULL, 0};

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
    stored            s = {.kind = NULL};
    tn_seq2seq_config c;
    char              path[1024];
    tn_seq2seq       *m = NULL;
    if (!tn_hf_config_read(dir, &files, &s)) return NULL;
    c = s.c, c.kind = tn_seq2seq_kind_of(s.kind);
    tn_safetensors *f = tn__weights_open(dir, path);
    if (f && tn__enough(f, path, elements(&c))) m = tn_seq2seq_create(c);
    return tn__model_read(m, f, path, &files);
}

tn_status tn_seq2seq_save(tn_seq2seq *m, const char *dir)
{
    if (!tn_ready(m)) return tn_error();
    return tn_hf_write(m, dir, &files, &(stored){m->config, tn_seq2seq_kind_name(m->config.kind)});
}
