/* jobs.c — the jobs that wait and run. A step gives each text of tn_live a token and reads a part of one prompt; then
 * it computes the vectors of some texts of one job for embeddings. */
#include "serve.h"

#include "../../../programs/common/files.h"
#include "../../../programs/common/numbers.h"

enum { EMBEDDED_AT_ONCE = 512 /* tokens of a step, but for one longer text */, CONTEXT = 8 /* tokens, to decode */ };

tn_live *jobs_live(const server *s)
{
    return tn_live_new(s->lm.net, .rows = s->rows, .length = s->length, .chunk = s->chunk);
}

/* ---- memory ------------------------------------------------------------------------------------------------------ */

static size_t room_for(int64_t n)
{
    size_t room = 1;
    while ((int64_t)room < n) room *= 2;
    return n ? room * sizeof(choice) : 0;
}

bool jobs_choices(job *j, int64_t n)
{
    const size_t had = room_for(j->count), room = room_for(n);
    if (room > had) {
        choice *more = tn_mem_get(room);
        if (!more) return false;
        if (had) memcpy(more, j->choice, (size_t)j->count * sizeof *more), tn_mem_put(j->choice, had);
        j->choice = more;
    }
    for (; j->count < n; j->count++) j->choice[j->count].number = -1;
    return true;
}

/* Ends a text of tn_live, if it is one. */
static void leave(server *s, choice *c)
{
    if (c->number < 0) return;
    const tn_scope scope = tn_scope_begin();
    const int64_t  number = c->number;
    c->number = -1; /* also if its error is raised */
    tn_live_take(s->live, number);
    tn_scope_end(scope);
}

void job_free(server *s, job *j)
{
    if (!j) return;
    tn_error_state aside;
    tn_error_push(&aside);
    for (job **at = &s->jobs; *at; at = &(*at)->next)
        if (*at == j) {
            *at = j->next, s->count--;
            if (!j->next) s->last = at;
            break;
        }
    for (int64_t i = 0; i < j->count; i++) {
        choice *c = &j->choice[i];
        leave(s, c);
        tn_clear_error();
        tn_ids_free(&c->prompt), tn_ids_free(&c->distinct);
        tn_string_free(&c->text);
        stream_free(&c->out);
    }
    if (j->count) tn_mem_put(j->choice, room_for(j->count));
    for (int i = 0; i < j->stop.count; i++) {
        const char *word = j->stop.value[i];
        tn_mem_put((void *)(uintptr_t)word, strlen(word) + 1);
    }
    if (j->stop.value) tn_mem_put(j->stop.value, STOPS_MOST * sizeof *j->stop.value);
    tn_string_free(&j->vectors), tn_string_free(&j->answer);
    tn_mem_put(j, sizeof *j);
    tn_error_pop(&aside);
}

void jobs_add(server *s, job *j)
{
    if (!s->jobs) s->last = &s->jobs;
    *s->last = j, s->last = &j->next, s->count++;
    j->accepted = true;
}

/* ---- texts ------------------------------------------------------------------------------------------------------- */

/* .each of tn_live: a token was chosen. */
static bool take_token(int64_t row, int64_t word, void *user)
{
    choice       *c = user;
    const server *s = c->of->server;
    bool          known = false, ends = word == s->first || (c->of->kind == JOB_CHAT && word == s->answer_end);
    (void)row;
    for (int64_t i = 0; i < s->lm.all.ends.n; i++) ends |= word == s->lm.all.ends.at[i];
    if (ends) return false;
    c->made++;
    if (c->of->presence != 0) {
        for (int64_t i = 0; i < c->distinct.n; i++) known |= c->distinct.at[i] == word;
        if (!known) tn_ids_add(&c->distinct, (int32_t)word);
    }
    return stream_add(&c->out, (int32_t)word, true);
}

/* .adjust of tn_live: OpenAI's penalties, of the new tokens. */
static tn_status penalise(const tn_next_token *next, void *user)
{
    const choice  *c = user;
    const int64_t *made = next->tokens + next->length - next->made;
    for (int64_t i = 0; i < next->made; i++) next->scores[made[i]] -= (float)c->of->frequency;
    for (int64_t i = 0; i < c->distinct.n; i++) next->scores[c->distinct.at[i]] -= (float)c->of->presence;
    return TN_OK;
}

/* Adds a text to tn_live, which has room. With a seed, equal requests have equal texts; others follow the generator. */
static void start(server *s, job *j, choice *c)
{
    const tn_scope     scope = tn_scope_begin();
    tn_generator      *g = tn_current_generator();
    const tn_generator before = *g;
    tn_generate_args   a = j->how;
    const int64_t      from = c->prompt.n > CONTEXT ? c->prompt.n - CONTEXT : 0;
    if (j->seed >= 0) tn_seed((uint64_t)j->seed + (uint64_t)(c - j->choice));
    c->of = j;
    c->out = (stream){.tokens = s->lm.tokens, .stop = &j->stop, .silent = true, .kept = &c->text};
    for (int64_t i = from; i < c->prompt.n; i++) stream_add(&c->out, c->prompt.at[i], false);
    c->out.stopped = false;
    a.prompt = tn_to(tn_from_data(TN_I32, TN_SHAPE(1, c->prompt.n), c->prompt.at), TN_I64);
    a.most = c->most, a.end = tn_tokenizer_special(s->lm.tokens).last;
    a.each = take_token, a.user = c;
    if (j->frequency != 0 || j->presence != 0) a.adjust = penalise;
    c->number = tn_live_add_run(s->live, a);
    if (j->seed >= 0) *g = before;
    if (c->number < 0) request_raised(s, j);
    tn_scope_end(scope);
}

/* Takes a text that has ended, or whose time is over. */
static void end(server *s, job *j, choice *c, bool cut)
{
    const bool stopped = c->out.stopped;
    leave(s, c);
    if (tn_error() == TN_OK) stream_end(&c->out);
    if (tn_error() != TN_OK) request_raised(s, j);
    c->finish = cut || (c->made >= c->most && !stopped) ? "length" : "stop";
}

/* After a token: writes what is new, and the end. */
static void progress_of(server *s, job *j)
{
    const bool late = seconds_now() > j->until;
    bool       all = true;
    for (int64_t i = 0; i < j->count && !j->done; i++) {
        choice *c = &j->choice[i];
        if (!c->finish && late && c->number < 0)
            request_fail(s, j, 503, "timeout", NULL,
                         "the server had no room for this request within %g seconds; "
                         "try again later",
                         s->seconds);
        else if (!c->finish && c->number >= 0 && (late || tn_live_ended(s->live, c->number)))
            end(s, j, c, !tn_live_ended(s->live, c->number));
        all &= c->finish != NULL;
        if (j->stream && !j->done) answer_event(s, j, c);
    }
    for (int64_t i = 0; i < j->count && j->done; i++) leave(s, &j->choice[i]), tn_clear_error();
    if (!j->done && all) (j->stream ? answer_end : answer_whole)(s, j);
    if (tn_error() != TN_OK) request_raised(s, j);
}

/* After an error of a step, which would fail again if it needs memory: the jobs that run fail, and if there is no
 * memory for a new tn_live, those that wait, too. */
static void restart(server *s)
{
    char text[400];
    snprintf(text, sizeof text, "%s", tn_error_message());
    tn_clear_error();
    tn_live_free(s->live);
    s->live = jobs_live(s);
    tn_clear_error();
    for (job *j = s->jobs; j; j = j->next) {
        bool runs = !s->live && j->kind != JOB_EMBEDDINGS;
        for (int64_t i = 0; i < j->count; i++) runs |= j->choice[i].number >= 0, j->choice[i].number = -1;
        if (runs) request_fail(s, j, 500, NULL, NULL, "%s", text);
    }
}

/* ---- embeddings -------------------------------------------------------------------------------------------------- */

/* The vectors of the next texts of a job. */
static void embed(server *s, job *j)
{
    const char    *text[EMBEDDED_AT_ONCE];
    int64_t        n = 0, tokens = 0;
    const tn_scope scope = tn_scope_begin();
    for (int64_t i = j->embedded; i < j->count && n < EMBEDDED_AT_ONCE; i++) {
        tokens += j->choice[i].made;
        if (n && tokens > EMBEDDED_AT_ONCE) break;
        text[n++] = j->choice[i].text.at;
    }
    tn_tensor   *y = tn_bert_embed(s->encoder.bert, s->encoder.tokenizer, n, text, s->pooling);
    const float *v = y ? tn_data(y) : NULL;
    if (v && numbers_vector(v, tn_numel(y)))
        tn_string_add(&j->vectors, (tn_text){(const char *)v, (size_t)tn_numel(y) * sizeof *v});
    tn_scope_end(scope);
    j->embedded += n;
    if (tn_error() != TN_OK) request_raised(s, j);
    else if (j->embedded == j->count) answer_embeddings(s, j);
    else if (seconds_now() > j->until)
        request_fail(s, j, 503, "timeout", NULL, "%lld of %lld vectors within %g seconds; send fewer texts at a time",
                     (long long)j->embedded, (long long)j->count, s->seconds);
}

/* ---- a step ------------------------------------------------------------------------------------------------------ */

/* The text that starts next: the one with the fewest tokens to read and to write, or the oldest one if it has waited
 * for LONG seconds. NULL: none waits. */
static choice *next_waiting(const server *s, job **of)
{
    enum { LONG = 2 };
    choice *next = NULL;
    for (job *j = s->jobs; j; j = j->next)
        for (int64_t i = 0; i < j->count && !j->done && j->kind != JOB_EMBEDDINGS; i++) {
            choice *c = &j->choice[i];
            if (c->number >= 0 || c->finish) continue;
            if (next && c->prompt.n + c->most >= next->prompt.n + next->most) continue;
            const bool first = !next;
            next = c, *of = j;
            if (first && seconds_now() - (j->until - s->seconds) > LONG) return c;
        }
    return next;
}

bool jobs_step(server *s)
{
    bool    more = false, embedded = false;
    choice *c;
    job    *of;
    if (s->lm.net && !s->live && !(s->live = jobs_live(s))) restart(s);
    while (s->live && tn_live_room(s->live) > 0 && (c = next_waiting(s, &of))) start(s, of, c);
    if (s->live && tn_live_room(s->live) < s->rows && tn_live_step(s->live) < 0) restart(s);
    for (job *j = s->jobs; j; j = j->next) {
        if (!j->done && j->kind != JOB_EMBEDDINGS) progress_of(s, j);
        else if (!j->done && !embedded) embed(s, j), embedded = true;
        more |= !j->done;
    }
    return more;
}
