/* writer.c — see writer.h. */
#include "writer.h"

#include "files.h"
#include "messages.h"

#include <string.h>

/* ---- the stream -------------------------------------------------------------------------------------------------- */

static bool ends_within_character(const tn_string *s)
{
    return s->bytes >= 3 && !memcmp(s->at + s->bytes - 3, "\xef\xbf\xbd", 3);
}

/* The number of bytes at the end of the text that may be the start of a stop word. If the text contains a stop word,
 * *found points to its start; else NULL. */
static size_t held_back(const stream *s, const char **found)
{
    size_t most = 0;
    *found = NULL;
    for (int i = 0; s->stop && i < s->stop->count; i++) {
        const char  *word = s->stop->value[i], *at = s->text.at ? strstr(s->text.at, word) : NULL;
        const size_t n = strlen(word);
        if (at && n && (!*found || at < *found)) *found = at;
        for (size_t k = n > 0 ? n - 1 : 0; k > most; k--)
            if (s->text.at && k <= s->text.bytes && !memcmp(s->text.at + s->text.bytes - k, word, k)) most = k;
    }
    return most;
}

static bool show(stream *s, size_t bytes)
{
    if (bytes && !s->silent && (fwrite(s->text.at, 1, bytes, stdout) != bytes || fflush(stdout)))
        return tn_raise_false(TN_EIO, "cannot write to standard output");
    if (bytes && s->kept) tn_string_add(s->kept, (tn_text){s->text.at, bytes});
    if (bytes) memmove(s->text.at, s->text.at + bytes, s->text.bytes - bytes + 1), s->text.bytes -= bytes;
    return true;
}

/* Decodes the last tokens together, because the text of a token may depend on those before it. */
bool stream_add(stream *s, int32_t id, bool shown)
{
    enum { MOST = 64, KEPT = 8 };
    tn_string text = {0};
    if (tn_ids_add(&s->ids, id) != TN_OK) return false;
    tn_tokenizer_decode(s->tokens, s->ids.at, s->ids.n, &text, .keep_spaces = true);
    if (tn_error() == TN_OK && !ends_within_character(&text)) {
        if (shown && text.bytes > s->known)
            tn_string_add(&s->text, (tn_text){text.at + s->known, text.bytes - s->known});
        s->known = text.bytes;
        if (s->ids.n >= MOST) { /* keep only the last tokens and the size of their text */
            memmove(s->ids.at, s->ids.at + s->ids.n - KEPT, KEPT * sizeof *s->ids.at), s->ids.n = KEPT;
            text.bytes = 0;
            tn_tokenizer_decode(s->tokens, s->ids.at, s->ids.n, &text, .keep_spaces = true);
            s->known = text.bytes;
        }
    }
    tn_string_free(&text);
    const char  *found;
    const size_t back = held_back(s, &found);
    s->stopped = found != NULL;
    if (tn_error() == TN_OK) show(s, found ? (size_t)(found - s->text.at) : s->text.bytes - back);
    return tn_error() == TN_OK && !s->stopped;
}

/* The bytes of a text without the U+FFFD at its end, which stand for the first bytes of a character whose last ones
 * were not written; `from`: bytes that are kept. */
static size_t without_cut_character(const tn_string *text, size_t from)
{
    size_t n = text->bytes;
    for (int i = 0; i < 3 && n >= from + 3 && !memcmp(text->at + n - 3, "\xef\xbf\xbd", 3); i++) n -= 3;
    return n;
}

void stream_end(stream *s)
{
    tn_string text = {0};
    if (!s->stopped && s->ids.n &&
        tn_tokenizer_decode(s->tokens, s->ids.at, s->ids.n, &text, .keep_spaces = true) == TN_OK) {
        text.bytes = without_cut_character(&text, s->known);
        if (text.bytes > s->known) tn_string_add(&s->text, (tn_text){text.at + s->known, text.bytes - s->known});
        s->known = text.bytes;
        show(s, s->text.bytes);
    }
    s->text.bytes = 0, s->stopped = false;
    tn_string_free(&text);
}

void stream_free(stream *s) { tn_ids_free(&s->ids), tn_string_free(&s->text); }

/* ---- writing ----------------------------------------------------------------------------------------------------- */

int writer_set_sampling(writer_options *how, double temperature)
{
    static const char *const of_draws[] = {"top-k", "top-p", "min-p", NULL};
    how->how.sample = temperature > 0, how->how.unscored = !how->how.sample;
    if (!how->how.sample) return program_strays(of_draws, "sampling; set --temperature above 0");
    how->how.temperature = temperature;
    return 0;
}

bool writer_open(writer *w, const model *m, const writer_options *how)
{
    *w = (writer){.m = m, .options = how, .room = m->about.positions};
    w->out = (stream){.tokens = m->tokens, .stop = &how->stop};
    tn_seed(how->seed);
    w->first = model_first(m);
    w->last = tn_tokenizer_special(m->tokens).last;
    if (how->sinks) w->room = INT32_MAX;
    if (w->first >= 0) tn_ids_add(&w->text, w->first); /* LLaMA's texts start with <s> */
    return tn_error() == TN_OK;
}

void writer_close(writer *w)
{
    tn_decoding_free(w->decoding);
    tn_ids_free(&w->text);
    stream_free(&w->out);
}

void writer_forget(writer *w)
{
    tn_decoding_free(w->decoding);
    w->decoding = NULL, w->text.n = 0, w->read = 0;
}

bool writer_read(writer *w, tn_text prompt)
{
    const int64_t before = w->text.n;
    if (!texts_encode(w->m->tokens, prompt, false, &w->text)) return false;
    for (int64_t i = before; i < w->text.n; i++) stream_add(&w->out, w->text.at[i], false);
    w->out.stopped = false;
    if (w->text.n == 0)
        tn_raise(TN_EINVAL,
                 "the prompt is empty, but the model's tokenizer has no token that starts a text; give a prompt");
    else if (w->text.n - before >= w->room)
        tn_raise(TN_EINVAL,
                 "the prompt has %lld tokens, but the model reads at most %lld; shorten it, or give only its end",
                 (long long)(w->text.n - before), (long long)w->room);
    return tn_error() == TN_OK;
}

static bool on_token(int64_t row, int64_t word, void *user)
{
    writer *w = user;
    (void)row;
    if (!w->made++) w->first_seconds = seconds_now() - w->began;
    if (word == w->first) return false; /* a new text starts: llama2.c's models have no other end token */
    for (int64_t i = 0; i < w->m->all.ends.n; i++)
        if (word == w->m->all.ends.at[i]) return false;
    return tn_ids_add(&w->text, (int32_t)word) == TN_OK && stream_add(&w->out, (int32_t)word, true);
}

static tn_status by_rule(const tn_next_token *next, void *user)
{
    const writer_options *how = ((writer *)user)->options;
    return how->rule(next, how->rules);
}

static tn_decoding *new_decoding(writer *w)
{
    const writer_options *how = w->options;
    if (how->sinks) return tn_lm_rolling(w->m->net, 1, w->m->about.positions, how->sinks);
    if (!how->draft && !how->lookup) return tn_lm_decoding(w->m->net, 1, w->room);
    const tn_speculation before = w->drafted; /* keep counting */
    const int64_t        ahead = how->ahead ? how->ahead : how->draft ? 4 : 16;
    void *const          draft = how->draft ? how->draft->net : NULL;
    tn_decoding         *d = tn_speculative_decoding(w->m->net, draft, w->room, ahead, &w->drafted);
    if (before.plain > 0) w->drafted = before;
    return d;
}

/* Reads all of the prompt but its last token, what the file has from there; the file then has all of it. */
static bool read_through_cache(writer *w)
{
    const char    *path = w->options->cache;
    const tn_scope s = tn_no_grad_begin();
    const int64_t  n = w->text.n - 1;
    tn_tensor     *text = tn_to(tn_from_data(TN_I32, TN_SHAPE(1, n + 1), w->text.at), TN_I64);
    w->read = text && file_exists(path) ? tn_prompt_cache_load(w->decoding, text, path) : 0;
    if (settings.verbose && tn_error() == TN_OK)
        tell("cache    %lld of %lld tokens\n", (long long)w->read, (long long)n);
    if (tn_error() == TN_OK && w->read < n) {
        w->decoding->kind->scores(w->decoding, tn_narrow(text, 1, w->read, n - w->read));
        if (tn_prompt_cache_save(w->decoding, tn_narrow(text, 1, 0, n), path) == TN_OK) w->read = n;
    }
    tn_scope_end(s);
    return tn_error() == TN_OK;
}

/* Replaces the decoding, which is full or NULL, with a new one, and cuts a text that is too long to its last half. */
static bool restart_decoding(writer *w)
{
    tn_decoding_free(w->decoding);
    w->decoding = new_decoding(w);
    w->read = 0;
    if (w->text.n < w->room) return w->decoding != NULL;
    if (w->options->rule)
        return tn_raise_false(
            TN_EINVAL,
            "the prompt and the text by the rule have more than the %lld tokens that the model reads; "
            "shorten the prompt, or the texts that the rule allows",
            (long long)w->room);
    const int64_t keep = w->room / 2;
    if (settings.verbose) tell("from here on, the model reads only the last %lld tokens\n", (long long)keep);
    memmove(w->text.at, w->text.at + w->text.n - keep, (size_t)keep * sizeof *w->text.at), w->text.n = keep;
    return w->decoding != NULL;
}

/* Generates up to *left tokens, as many as fit in the decoding. False: the text is complete, or an error is set. */
static bool generate_some(writer *w, int64_t *left)
{
    const tn_scope   s = tn_scope_begin();
    const int64_t    begin = w->text.n;
    tn_tensor       *text = tn_from_data(TN_I32, TN_SHAPE(1, begin), w->text.at);
    tn_generate_args a = w->options->how;
    a.from = w->decoding, a.read = w->read, a.each = on_token, a.user = w;
    a.before = tn_narrow(text, 1, 0, w->read), a.prompt = tn_narrow(text, 1, w->read, begin - w->read);
    a.most = *left < w->room - begin ? *left : w->room - begin;
    a.end = w->last, a.adjust = w->options->rule ? by_rule : NULL;
    const double began = seconds_now();
    if (!w->made) w->began = began;
    const tn_generated g = tn_generate_run(a);
    const int64_t      made = w->text.n - begin;
    w->seconds += seconds_now() - began;
    const bool ended = made < a.most && !w->out.stopped;
    if (g.tokens) w->read = ended ? w->text.n : w->text.n - 1; /* the model has not read the last token yet */
    *left -= made;
    tn_scope_end(s);
    return tn_error() == TN_OK && !w->out.stopped && made == a.most;
}

bool writer_write(writer *w)
{
    int64_t left = w->options->tokens;
    while (left > 0) {
        if ((!w->decoding || w->text.n >= w->room) && !restart_decoding(w)) break;
        if (w->options->cache && !w->made && w->text.n > 1 && !read_through_cache(w)) break;
        if (!generate_some(w, &left)) break;
    }
    w->cut = !w->out.stopped;
    stream_end(&w->out);
    return tn_error() == TN_OK;
}
