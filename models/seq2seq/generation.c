/* generation.c — how a model of transformers generates: generation_config.json, and tn_generate with its rules. As in
 * transformers, the members of config.json count if there is no such file. */
#include "models/seq2seq/seq2seq_private.h"

#include <math.h>

/* ---- generation_config.json -------------------------------------------------------------------------------------- */

enum { ABSENT = -1, MOST = 10000000, LONG = 1024 /* tokens, if nothing says how many */ };
typedef struct {
    tn_seq2seq_search s;
    int64_t           begin, end, longest, shortest, most, least; /* longest, shortest: with the begin token */
} said;

#define COUNT(key, member) TN_HF(key, said, member, .high = MOST)
#define TOKEN(key, member) TN_HF(key, said, member, .otherwise = ABSENT, .low = ABSENT, .high = MOST)
static const tn_hf_row rows[] = {
    TN__IDS("bos_token_id", said, s.begin),
    TOKEN("decoder_start_token_id", begin),
    TN_HF("early_stopping", said, s.early_stopping, .otherwise = false),
    TOKEN("eos_token_id", end),
    TOKEN("forced_bos_token_id", s.first),
    TOKEN("forced_eos_token_id", s.last),
    TN_HF("length_penalty", said, s.length_penalty, .otherwise = 1, .low = -100, .high = 100),
    COUNT("max_length", longest),
    COUNT("max_new_tokens", most),
    COUNT("min_length", shortest),
    COUNT("min_new_tokens", least),
    COUNT("no_repeat_ngram_size", s.no_repeat),
    TN_HF("num_beams", said, s.beams, .high = 64),
    TN__IDS("pad_token_id", said, s.padding),
    TN_HF("renormalize_logits", said, s.renormalize, .otherwise = false),
    TN_HF("repetition_penalty", said, s.repetition_penalty, .otherwise = 1, .low = 1e-6, .high = 1e6),

    {"do_sample diversity_penalty encoder_no_repeat_ngram_size penalty_alpha token_healing "
     "force_bos_token_to_be_generated",
     TN_HF_MUST, .silent = true},
    {"num_beam_groups encoder_repetition_penalty guidance_scale", TN_HF_MUST, .otherwise = 1, .silent = true},
    {"begin_suppress_tokens constraints exponential_decay_length_penalty force_words_ids forced_decoder_ids max_time "
     "sequence_bias stop_strings suppress_tokens watermarking_config",
     TN_HF_EMPTY, .silent = true},
    /* Not here: those of sampling, which do_sample rules out, of assistants, outputs, caches, remove_invalid_values. */
};
static const tn_hf_files files = {rows, TN_HF_COUNT_(rows), NULL, 0};

/* bad_words_ids: sequences of tokens; only single ones are supported. */
static bool read_forbidden(const tn_json *list, const char *path, tn_token_ids *to)
{
    const int64_t room = (int64_t)(sizeof to->id / sizeof *to->id);
    if (tn_json_type_of(list) <= TN_JSON_NULL) return true;
    if (tn_json_type_of(list) != TN_JSON_ARRAY || tn_json_count(list) > room)
        return tn_raise_false(TN_EUNSUPPORTED, "'%s': bad_words_ids must be an array of at most %lld sequences", path,
                              (long long)room);
    for (const tn_json *v = tn_json_first(list); v; v = tn_json_next(v)) {
        const int64_t id = tn_json_count(v) == 1 ? tn_json_i64(tn_json_first(v)) : -1;
        if (tn_error() == TN_OK && (id < 0 || id > MOST))
            tn_raise(TN_EUNSUPPORTED, "'%s': bad_words_ids[%lld] is not one token id; only single tokens are supported",
                     path, (long long)to->n);
        if (tn_error() != TN_OK) return false;
        to->id[to->n++] = id;
    }
    return true;
}

/* The file's id replaces that of config.json, which is kept if it is another one. */
static void replace(int64_t id, int64_t *now, tn_token_ids *kept)
{
    if (id >= 0 && id != *now) *kept = (tn_token_ids){1, {*now}}, *now = id;
}

bool tn__seq2seq_search_read(const tn_hf_source *source, tn__seq2seq_stored *s)
{
    tn_hf_source own;
    said         r = {.begin = ABSENT};
    bool ok = tn__hf_open_beside(source, "generation_config.json", &own) && tn_hf_source_read(&own, &files, &r) &&
              read_forbidden(tn_json_get(own.config, "bad_words_ids"), own.name, &r.s.forbidden);
    if (own.config == source->config) /* the class has a default; they are kept */
        r.s.last = s->search.last, r.s.begin.n = r.s.padding.n = 0;
    else tn_json_free(own.config);
    if (!ok) return false;
    if (r.s.last != s->search.last) s->kept.last = (tn_token_ids){1, {s->search.last}};
    replace(r.begin, &s->c.begin, &s->kept.start), replace(r.end, &s->c.end, &s->kept.end);
    r.s.most = r.most ? r.most : r.longest > 0 ? r.longest - 1 : 0;
    r.s.least = r.least ? r.least : r.shortest > 0 ? r.shortest - 1 : 0;
    s->search = r.s;
    return true;
}

static void put_token(tn_json_writer *w, const char *key, int64_t id)
{
    if (id >= 0) tn_json_put_i64(w, key, id);
}
static void put_ids(tn_json_writer *w, const char *key, const tn_token_ids *ids, int64_t otherwise)
{
    if (ids->n) tn__hf_put_ids(w, key, ids);
    else put_token(w, key, otherwise);
}
static void put_count(tn_json_writer *w, const char *key, int64_t n)
{
    if (n) tn_json_put_i64(w, key, n);
}

bool tn__seq2seq_search_write(const tn_seq2seq *m, const char *dir)
{
    const tn_seq2seq_search *s = &m->search;
    tn_json_writer          *w = tn_json_writer_new(2);
    tn_json_open_object(w, NULL);
    if (s->forbidden.n > 0) tn_json_open_array(w, "bad_words_ids");
    for (int64_t i = 0; i < s->forbidden.n; i++) {
        tn_json_open_array(w, NULL);
        tn_json_put_i64(w, NULL, s->forbidden.id[i]);
        tn_json_close(w);
    }
    if (s->forbidden.n > 0) tn_json_close(w);
    put_ids(w, "bos_token_id", &s->begin, m->kept.begin.n == 1 ? m->kept.begin.id[0] : -1);
    tn_json_put_i64(w, "decoder_start_token_id", m->config.begin);
    if (s->early_stopping) tn_json_put_bool(w, "early_stopping", true);
    tn_json_put_i64(w, "eos_token_id", m->config.end);
    put_token(w, "forced_bos_token_id", s->first), put_token(w, "forced_eos_token_id", s->last);
    if (s->length_penalty != 1) tn_json_put_double(w, "length_penalty", s->length_penalty);
    put_count(w, "max_length", s->most ? s->most + 1 : 0), put_count(w, "min_length", s->least ? s->least + 1 : 0);
    put_count(w, "no_repeat_ngram_size", s->no_repeat), put_count(w, "num_beams", s->beams);
    put_ids(w, "pad_token_id", &s->padding, m->config.padding);
    if (s->renormalize) tn_json_put_bool(w, "renormalize_logits", true);
    if (s->repetition_penalty != 1) tn_json_put_double(w, "repetition_penalty", s->repetition_penalty);
    tn_json_close(w);
    const bool ok = tn__config_save(w, dir, "generation_config.json");
    tn_json_writer_free(w);
    return ok;
}

/* ---- generating -------------------------------------------------------------------------------------------------- */

typedef struct {
    const tn_seq2seq_search *search;
    tn_generate_args         a; /* the caller's */
} rules;

/* Leaves one token, with probability 1. */
static void force(const tn_next_token *next, int64_t id)
{
    if (id < 0 || id >= next->vocab) return;
    for (int64_t i = 0; i < next->vocab; i++) next->scores[i] = -INFINITY;
    next->scores[id] = 0;
}

static void renormalize(const tn_next_token *next)
{
    double most = -INFINITY, sum = 0;
    for (int64_t i = 0; i < next->vocab; i++) most = fmax(most, (double)next->scores[i]);
    if (!(most > -INFINITY)) return;
    for (int64_t i = 0; i < next->vocab; i++) sum += tn__libm_exp((double)next->scores[i] - most);
    const float log_sum = (float)(most + tn__libm_log(sum));
    for (int64_t i = 0; i < next->vocab; i++) next->scores[i] -= log_sum;
}

static tn_status adjust(const tn_next_token *next, void *user)
{
    const rules             *r = user;
    const tn_seq2seq_search *s = r->search;
    const int64_t            most = r->a.most_each ? tn_get_i64(r->a.most_each, next->row) : r->a.most;
    for (int64_t i = 0; i < s->forbidden.n; i++)
        if (s->forbidden.id[i] < next->vocab) next->scores[s->forbidden.id[i]] = -INFINITY;
    if (next->made == 0) force(next, s->first);
    if (next->made == most - 1) force(next, s->last);
    if (s->renormalize && r->a.beams > 1) renormalize(next);
    return r->a.adjust ? r->a.adjust(next, r->a.user) : tn_error();
}
static bool each(int64_t row, int64_t word, void *user)
{
    const rules *r = user;
    return r->a.each(row, word, r->a.user);
}

tn_generated tn_seq2seq_generate_run(tn_seq2seq *m, tn_tensor *source, tn_generate_args a)
{
    tn_generated none = {NULL, NULL, NULL};
    if (!tn_ready(m)) return none;
    const tn_seq2seq_search *s = &m->search;
    if (!a.most) a.most = s->most ? s->most : m->config.positions < LONG ? m->config.positions : LONG;
    rules            r = {s, a};
    tn_generate_args b = a;
    if (s->forbidden.n > 0 || s->first >= 0 || s->last >= 0 || s->renormalize) b.adjust = adjust, b.user = &r;
    if (b.adjust == adjust && a.each) b.each = each;
    const tn_scope outer = tn_no_grad_begin();
    b.from = tn_seq2seq_decoding(m, source, a.beams, a.most + 1);
    if (b.from) {
        b.prompt = tn_full_of(TN_I64, TN_SHAPE(tn_size(source, 0), 1), (double)m->config.begin);
        b.end = m->config.end;
        none = tn_generate_run(b);
        tn_decoding_free(b.from);
    }
    tn_scope_return_list(outer, 3, (tn_tensor *[]){none.tokens, none.lengths, none.scores});
    return none;
}
