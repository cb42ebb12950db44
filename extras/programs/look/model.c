/* model.c — opens a model of any kind, names tokens for figures, and writes reports. */
#include "look.h"

#include "programs/common/page.h"

#include <string.h>

/* ---- a model ----------------------------------------------------------------------------------------------------- */

static const char *vectors_of_writer(const char *type)
{
    if (!strcmp(type, "gpt2")) return "transformer.wte";
    return !strcmp(type, "reformer") ? "reformer.embeddings.word_embeddings" : "embed_tokens";
}

static void kind_set(const char *path, model *m)
{
    const tn_model *a = &m->all;
    switch (a->family) {
    case TN_MODEL_ENCODER:
        m->kind = READER, m->encoder = a->bert, m->vectors = "bert.embeddings.word_embeddings";
        break;
    case TN_MODEL_TUNED:
        m->kind = TUNED, m->encoder = a->tuned->encoder, m->vectors = "encoder.bert.embeddings.word_embeddings";
        break;
    case TN_MODEL_DECODER:
        m->kind = WRITER, m->longest = tn_lm_info_of(a->lm).positions, m->vectors = vectors_of_writer(a->type);
        break;
    case TN_MODEL_SEQ2SEQ:
        m->kind = TRANSLATOR, m->longest = a->seq2seq->config.positions, m->vectors = "source";
        break;
    default:
        tn_raise(TN_EUNSUPPORTED,
                 "'%s' is not a model for texts; look needs an encoder, a language model or a translation model", path);
    }
    if (m->encoder) m->longest = m->encoder->config.positions;
}

bool model_open(const char *path, model *m)
{
    *m = (model){.all = tn_model_open(path, .needs_tokenizer = true)};
    m->net = m->all.module, m->tokens = m->all.tokenizer;
    if (m->net) kind_set(path, m);
    if (tn_error() == TN_OK) return true;
    model_close(m);
    return false;
}

void model_close(model *m)
{
    tn_model_close(&m->all);
    *m = (model){.net = NULL};
}

bool model_may_save(const char *dir) { return !dir || record_check_folder(dir); }

tn_status model_save(const model *m, const char *dir) { return tn_model_save(&m->all, dir); }

/* ---- tokens ------------------------------------------------------------------------------------------------------ */

/* The name of one token: its text with visible blanks, or for an encoder its entry in the vocabulary. */
static void name_one(const model *m, int32_t id, tn_string *to)
{
    const char *piece = tn_tokenizer_token(m->tokens, id);
    tn_string   said = {0};
    if (m->encoder || tn_tokenizer_is_special(m->tokens, id)) {
        tn_string_add(to, tn_text_of(piece));
        return;
    }
    tn_tokenizer_decode(m->tokens, &id, 1, &said, .keep_special = true, .keep_spaces = true);
    for (size_t i = 0; i < said.bytes; i++)
        tn_string_add(to, said.at[i] == ' '    ? tn_text_of("␣")
                          : said.at[i] == '\n' ? tn_text_of("↵")
                          : said.at[i] == '\t' ? tn_text_of("⇥")
                          : said.at[i] == '\r' ? tn_text_of("␍")
                                               : (tn_text){said.at + i, 1});
    if (!said.bytes) tn_string_add(to, tn_text_of(piece));
    tn_string_free(&said);
}

bool token_list_label(const model *m, tn_tensor *ids, token_list *p)
{
    *p = (token_list){.n = ids ? tn_numel(ids) : 0, .ids = ids};
    const size_t n = (size_t)p->n;
    if (!ids || !n) return false;
    p->name = tn_mem_get(n * sizeof *p->name), p->text = tn_mem_get(n * sizeof *p->text);
    if (!p->name || !p->text) return token_list_free(p), false;
    memset(p->text, 0, n * sizeof *p->text);
    for (size_t i = 0; i < n; i++) {
        name_one(m, (int32_t)tn_get_i64(ids, (int64_t)i), &p->text[i]);
        p->name[i] = p->text[i].at ? p->text[i].at : "";
    }
    return tn_error() == TN_OK;
}

bool token_list_encode(const model *m, const char *text, bool target, bool cut, token_list *p)
{
    const bool    bare = m->kind == TRANSLATOR;
    const int64_t limit = m->longest - (bare ? 2 : 0);
    tn_encoding  *e = tn_encoding_new();
    *p = (token_list){.n = 0};
    if (!e || tn_tokenizer_encode(m->tokens, e, text, strlen(text), .bare = bare, .literal = bare,
                                  .max_length = cut ? limit : 0) != TN_OK)
        return tn_encoding_free(e), false;
    if (e->n > limit) {
        tn_raise(TN_EINVAL, "the text has %lld tokens, but this model reads at most %lld; give a shorter text",
                 (long long)e->n, (long long)limit);
        return tn_encoding_free(e), false;
    }
    const int64_t n = e->n + (bare ? 1 + target : 0);
    tn_tensor    *ids = n ? tn_empty_of(TN_I64, TN_SHAPE(1, n)) : NULL;
    int64_t      *id = ids ? tn_data_mut(ids) : NULL, at = 0;
    if (!n) tn_raise(TN_EINVAL, "the text is empty");
    if (id && bare && target) id[at++] = ((tn_seq2seq *)(void *)m->net)->config.begin;
    for (int64_t i = 0; id && i < e->n; i++) id[at++] = e->id[i];
    if (id && bare) id[at] = ((tn_seq2seq *)(void *)m->net)->config.end;
    tn_encoding_free(e);
    return id && token_list_label(m, ids, p);
}

void token_list_free(token_list *p)
{
    for (int64_t i = 0; p->text && i < p->n; i++) tn_string_free(&p->text[i]);
    if (p->name) tn_mem_put(p->name, (size_t)p->n * sizeof *p->name);
    if (p->text) tn_mem_put(p->text, (size_t)p->n * sizeof *p->text);
    *p = (token_list){.n = 0};
}

bool translate_greedily(const model *m, tn_tensor *source, token_list *p)
{
    tn_seq2seq    *net = (tn_seq2seq *)(void *)m->net;
    const int64_t  n = tn_size(source, 1), room = net->config.positions;
    const int64_t  limit = 2 * n + 20 < room ? 2 * n + 20 : room;
    tn_tensor     *begin = tn_full_of(TN_I64, TN_SHAPE(1, 1), (double)net->config.begin);
    const tn_scope s = tn_no_grad_begin();
    tn_decoding   *d = tn_seq2seq_decoding(net, source, 1, limit);
    tn_generated   g = {NULL, NULL, NULL};
    if (d) g = tn_generate(d, begin, .end = net->config.end);
    tn_decoding_free(d);
    tn_tensor *said = NULL;
    if (g.tokens) {
        said = tn_narrow(tn_reshape(g.tokens, TN_SHAPE(1, -1)), 1, 0, tn_get_i64(g.lengths, 0));
        said = tn_cat(1, begin, said, tn_full_like(begin, (double)net->config.end));
    }
    said = tn_scope_return(s, said);
    return said && token_list_label(m, said, p);
}

void run_model(const model *m, tn_tensor *ids, tn_tensor *target)
{
    if (m->kind == TUNED) tn_tuned_forward((tn_tuned *)(void *)m->net, ids);
    else if (m->kind == READER) tn_bert_forward(m->encoder, ids);
    else if (m->kind == WRITER) tn_lm_forward(m->net, ids);
    else tn_seq2seq_forward((tn_seq2seq *)(void *)m->net, ids, target);
}

bool runs_once(const tn_look *l, const char *path)
{
    const int64_t times = tn_look_times(l, path);
    if (times > 1)
        tn_raise(TN_EUNSUPPORTED,
                 "'%s' runs %lld times, as in ALBERT, whose layers share one block; only the last run would be shown",
                 path, (long long)times);
    return tn_error() == TN_OK;
}

/* ---- reports ----------------------------------------------------------------------------------------------------- */

static bool ends_with(const char *path, const char *end)
{
    const size_t n = path ? strlen(path) : 0, of = strlen(end);
    return n >= of && !strcmp(path + n - of, end);
}
bool is_svg(const char *path) { return ends_with(path, ".svg"); }

int reject_png(const char *path)
{
    if (!ends_with(path, ".png")) return 0;
    return program_usage("--html '%s': figures are written as .svg; convert one to PNG with a browser or rsvg-convert",
                         path);
}

tn_report *report_new(const char *title, const char *dir)
{
    char       both[400];
    tn_report *r = tn_report_new(dir ? run_title(&(run_page){.folder = dir, .title = title}, both) : title);
    if (r && dir) tn_report_summary(r, NULL, NULL, 1, (const char *const[]){"model"}, &dir);
    return r;
}

bool write_report(tn_report *r, const char *path)
{
    if (!is_svg(path)) return record_report(r, path);
    if (record_check_file(path, "<svg", "SVG that begins with '<svg'")) tn_report_save_figure(r, path);
    tn_report_free(r);
    return tn_error() == TN_OK;
}
