/* text_queue.c — a language model that several threads of a program use at the same time: a queue, and one thread that
 * generates the texts of all of them together.
 * Build: cc -O2 text_queue.c -o text_queue $(pkg-config --cflags --libs tenon) -pthread */
#include <pthread.h>
#include <stdio.h>
#include <tenon/tenon.h>

/* ---- the queue --------------------------------------------------------------------------------------------------- */

typedef struct request request;
struct request {
    const int64_t *prompt; /* token ids */
    int64_t        tokens, most, made[32];
    int64_t        count;  /* of made; -1: it went wrong */
    int64_t        number; /* in the tn_live */
    bool           started, done;
    request       *next;
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t  changed = PTHREAD_COND_INITIALIZER;
static request        *queue; /* waiting and running requests */
static bool            closing;

/* Called by any thread: waits for the text. */
static void ask(request *r)
{
    pthread_mutex_lock(&lock);
    request **last = &queue;
    while (*last) last = &(*last)->next;
    *last = r;
    pthread_cond_broadcast(&changed);
    while (!r->done) pthread_cond_wait(&changed, &lock);
    pthread_mutex_unlock(&lock);
}

/* Adds the requests that there is room for, and removes those whose text has ended. False: the queue is closed and
 * empty. */
static bool serve_queue(tn_live *l)
{
    pthread_mutex_lock(&lock);
    while (!queue && !closing) pthread_cond_wait(&changed, &lock);
    for (request **at = &queue; *at;) {
        request       *r = *at;
        const tn_scope s = tn_scope_begin();
        if (!r->started && tn_live_room(l) > 0) {
            tn_tensor *prompt = tn_from_data(TN_I64, TN_SHAPE(1, r->tokens), r->prompt);
            r->number = tn_live_add(l, prompt, .most = r->most), r->started = true;
        } else if (r->started && r->number >= 0 && tn_live_ended(l, r->number)) {
            const tn_generated g = tn_live_take(l, r->number);
            r->count = g.tokens ? tn_get_i64(g.lengths, 0) : -1, r->done = true;
            for (int64_t i = 0; i < r->count; i++) r->made[i] = tn_get_i64(g.tokens, i);
        }
        if (tn_error()) r->count = -1, r->done = true, tn_clear_error();
        tn_scope_end(s);
        if (r->done) *at = r->next;
        else at = &r->next;
    }
    const bool more = queue || !closing;
    pthread_cond_broadcast(&changed);
    pthread_mutex_unlock(&lock);
    return more;
}

/* The thread of the model: between two steps it looks into the queue. */
static void *serve(void *model)
{
    tn_live *l = tn_live_new(model, .rows = 4, .length = 64);
    while (l && serve_queue(l) && tn_live_step(l) >= 0) {}
    if (tn_error()) fprintf(stderr, "%s\n", tn_error_message());
    tn_live_free(l);
    return NULL;
}

/* ---- users ------------------------------------------------------------------------------------------------------- */

enum { USERS = 8, TEXTS = 5 };

static void *use(void *user)
{
    int64_t *good = user, prompt[] = {3, 1, 4, 1, 5};
    for (int64_t i = 0; i < TEXTS; i++) {
        request r = {.prompt = prompt, .tokens = 1 + (*good + i) % 5, .most = 4 + i * 5};
        ask(&r);
        if (r.count != r.most) return *good = -1, NULL;
    }
    return *good = TEXTS, NULL;
}

int main(void)
{
    pthread_t server, users[USERS];
    int64_t   good[USERS], all = 0;
    tn_seed(1);
    tn_gpt *m = tn_gpt_new(.vocab = 50, .dim = 32, .layers = 2, .heads = 4, .positions = 64);
    tn_eval(m);
    pthread_create(&server, NULL, serve, m);
    for (int i = 0; i < USERS; i++) good[i] = i, pthread_create(&users[i], NULL, use, &good[i]);
    for (int i = 0; i < USERS; i++) pthread_join(users[i], NULL), all += good[i];
    pthread_mutex_lock(&lock);
    closing = true;
    pthread_cond_broadcast(&changed);
    pthread_mutex_unlock(&lock);
    pthread_join(server, NULL);
    printf("%lld texts of %d users\n", (long long)all, USERS);
    tn_free(m);
    return all != USERS * TEXTS;
}
