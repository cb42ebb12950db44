/* seq2seq_files.c — loads and saves a seq2seq model: config.json, generation_config.json and model.safetensors, by the
 * tables of families.c or in Tenon's own format. */
#include "models/seq2seq/seq2seq_private.h"

#include <string.h>

typedef tn__seq2seq_stored stored;

/* A lower bound of the model's elements: embeddings and the largest matrices. */
static int64_t elements(const tn_seq2seq_config *c)
{
    const int64_t tables = c->source_words + (c->shared ? 0 : c->target_words) + (c->untied ? c->target_words : 0);
    const int64_t width = c->head_dim ? c->heads * c->head_dim : c->dim, ff = c->decoder_ff ? c->decoder_ff : c->ff;
    const bool    conv = c->kind == TN_SEQ2SEQ_CONVS2S || c->kind == TN_SEQ2SEQ_BYTENET;
    const int64_t inner = c->gated ? 3 : 2, rnn = (conv ? 1 : 6) * c->dim * c->dim;
    const bool    net = c->kind == TN_SEQ2SEQ_TRANSFORMER;
    return tables * c->dim + c->layers * (net ? c->dim * (4 * width + inner * c->ff) : rnn) +
           c->decoder_layers * (net ? c->dim * (4 * width + inner * ff) : rnn);
}

/* The tables of the config's family, in *room, or of Tenon's own format. */
static const tn_hf_files *files_of(const stored *s, tn__hf_tables *room)
{
    if (!s->family) return tn__seq2seq_files();
    tn__seq2seq_tables_of(s->family, &s->c, room);
    return &room->files;
}

/* ---- reading ----------------------------------------------------------------------------------------------------- */

/* The members of a family's config that others imply. */
static bool apply_family(stored *s, const tn_hf_source *source)
{
    const char               *name = source->name;
    const tn__seq2seq_family *f = s->family;
    tn_seq2seq_config        *c = &s->c;
    tn__seq2seq_set_options(c, f->must);
    c->shared = s->share && s->tie, c->untied = !s->tie;
    if (!c->target_words || s->share) c->target_words = c->source_words;
    if (f->read && !f->read(s, source)) return false;
    if (c->dim % c->heads && !c->head_dim)
        tn_raise(TN_EFORMAT, "'%s': encoder_attention_heads %lld does not divide d_model %lld", name,
                 (long long)c->heads, (long long)c->dim);
    else if (c->decoder_heads && c->dim % c->decoder_heads && !c->head_dim)
        tn_raise(TN_EFORMAT, "'%s': decoder_attention_heads %lld does not divide d_model %lld", name,
                 (long long)c->decoder_heads, (long long)c->dim);
    return tn_error() == TN_OK;
}

/* Raises if a token id is null or not in a vocabulary. */
static bool ids_fit(const stored *s, const char *name)
{
    const struct {
        const char *key;
        int64_t     id, words;
    } all[] = {{"pad_token_id", s->c.padding, s->c.source_words},
               {"pad_token_id", s->c.padding, s->c.target_words},
               {"decoder_start_token_id", s->c.begin, s->c.target_words},
               {"eos_token_id", s->c.end, s->c.target_words}};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        if (all[i].id < 0)
            return tn_raise_false(TN_EUNSUPPORTED, "'%s': %s is null or negative, which is not supported", name,
                                  all[i].key);
        else if (all[i].id >= all[i].words)
            return tn_raise_false(TN_EFORMAT, "'%s': %s is %lld, but must be less than the vocabulary's size, %lld",
                                  name, all[i].key, (long long)all[i].id, (long long)all[i].words);
    return true;
}

static bool config_read(const tn_hf_source *source, stored *s, tn__hf_tables *tables)
{
    const tn_hf_row   type = {"model_type", TN_HF_TYPE, .at = offsetof(stored, c.type), .choices = tn__seq2seq_types,
                              .needed = true};
    const tn_hf_files first = {&type, 1, NULL, 0};
    *s = (stored){
        .c = {TN_SEQ2SEQ_DEFAULTS}, .share = true, .tie = true, .kept = {.init = 0.02}, .search = {.last = -1}};
    if (!tn_hf_source_read(source, &first, s)) return false;
    s->family = tn__seq2seq_family_of(s->c.type);
    if (!tn_hf_source_read(source, files_of(s, tables), s)) return false;
    if (s->family) return apply_family(s, source) && tn__seq2seq_search_read(source, s) && ids_fit(s, source->name);
    s->c.type = NULL, s->c.kind = tn_seq2seq_kind_of(s->kind);
    while (strcmp(tn__seq2seq_position_kinds[s->c.position_kind], s->positions) != 0) s->c.position_kind++;
    return true;
}

void *tn__seq2seq_load(const tn_hf_source *source)
{
    stored        s;
    tn__hf_tables tables;
    tn_hf_weights w;
    if (!config_read(source, &s, &tables)) return NULL;
    const int64_t head = s.c.head_dim ? s.c.head_dim : s.c.dim / s.c.heads;
    bool          ok = tn_hf_weights_open(&w, source, 0, head * (4 * s.c.dim + 3));
    if (ok && s.family && s.family->look) s.family->look(&s, w.file);
    ok = ok && tn__has_elements(&w, elements(&s.c));
    const tn_hf_files *files = files_of(&s, &tables);
    tn_seq2seq        *m = ok ? tn_seq2seq_create(s.c) : NULL;
    if (m && s.family) m->search = s.search, m->kept = s.kept;
    return tn_hf_weights_load(&w, m, files);
}
tn_seq2seq *tn_seq2seq_load(const char *dir) { return tn_hf_load(dir, tn__seq2seq_load); }

/* ---- writing ----------------------------------------------------------------------------------------------------- */

tn_status tn_seq2seq_save(tn_seq2seq *m, const char *dir)
{
    if (!tn_ready(m)) return tn_error();
    const tn__seq2seq_family *f = tn__seq2seq_family_of(m->config.type);
    stored                    s = {.c = m->config, .family = f, .kept = m->kept, .search = m->search};
    tn__hf_tables             tables;
    if (f) {
        s.architecture = f->architecture, s.tie = !s.c.untied, s.share = s.c.shared || s.c.untied;
        if (s.c.source_words != s.c.target_words) s.share = false;
        if (f->write) f->write(&s);
        if (!tn__seq2seq_search_write(m, dir)) return tn_error();
        if (s.kept.start.n) s.c.begin = s.kept.start.id[0];
        if (s.kept.end.n) s.c.end = s.kept.end.id[0];
        if (s.kept.last.n) s.search.last = s.kept.last.id[0];
    } else { /* what follows from other members is not written */
        s.kind = tn_seq2seq_kind_name(s.c.kind), s.positions = tn__seq2seq_position_kinds[s.c.position_kind];
        if (s.c.decoder_heads == s.c.heads) s.c.decoder_heads = 0;
        if (s.c.decoder_ff == s.c.ff) s.c.decoder_ff = 0;
        if (s.c.attention_dropout == s.c.dropout) s.c.attention_dropout = -1;
        if (s.c.activation_dropout == s.c.dropout) s.c.activation_dropout = -1;
    }
    return tn_hf_write(m, dir, files_of(&s, &tables), &s);
}
