/* live.c — texts that are generated at the same time. Each has a decoding of its own; a step joins their key/value
 * caches, so that it reads the weights once for all of them. Models without such caches step text by text, and so do
 * small ones, whose steps alone are replayed: what is faster is measured. A text has the same bits in both ways. */
#include "core/base/toolbox.h"
#include "models/generate/generation.h"
#include "models/generate/lm_private.h"
#include "models/live.h"

#include <math.h>

typedef struct {
    int64_t         number; /* -1: the slot is free */
    tn_decoding    *decoding;
    tn__generation *generation;
    tn_tensor      *prompt; /* i64 [1, n], owned, with .most_each */
    tn_tensor      *most_each;
    int64_t         read; /* tokens of the prompt that the decoding has read */
    int64_t         had;  /* positions in the cache before a step with others */
    tn_tensor      *next; /* i64 [1, 1], owned: the token to read next; NULL: its prompt is read, or it has ended */
    bool            ended;
    tn_error_state  why; /* of a text that went wrong; .code is TN_OK otherwise */
} slot;

/* Steps of n texts: how many there were, and the seconds of one joined and of one text by text; 0: not measured. */
typedef struct {
    int64_t steps;
    double  joined, apart;
} pace;

struct tn_live {
    tn_live_config c;
    int64_t        added, slots; /* number of texts so far; of slots, ended texts included */
    int64_t        turn, reads;  /* the slot whose turn it is to be read; the parts of prompts read so far */
    double         debt;         /* seconds of writing that are due before a prompt is read again */
    double (*seconds)(void);     /* tn__seconds, or the clock of a test */
    bool          apart;         /* the model cannot read joined caches */
    slot         *slot;
    tn_kv_cache **caches;  /* [rows] */
    slot        **writing; /* [rows] */
    pace         *pace;    /* [rows + 1] */
};

static bool is_alive(const slot *s) { return s->number >= 0 && !s->ended; }

static int64_t alive(const tn_live *l)
{
    int64_t n = 0;
    for (int64_t i = 0; i < l->slots; i++) n += is_alive(&l->slot[i]);
    return n;
}

/* Whether a position's angles depend on the length of the call that reads it: then a prompt is read in one part. */
static bool reads_whole(const tn_blocks *blocks)
{
    for (int64_t i = 0; blocks && i < tn_length(blocks->layers); i++) {
        const tn_rotary *r = tn_rotary_of(((tn_block *)tn_at(blocks->layers, i))->self_attn);
        if (r && (r->rope.scaling == TN_ROPE_DYNAMIC)) return true;
    }
    return false;
}

/* ---- creating and freeing ---------------------------------------------------------------------------------------- */

tn_live *tn_live_create(tn_live_config c)
{
    static const char *const who = "tn_live_new";
    const tn_lm_info         i = tn_lm_info_of(c.model);
    if (tn_error() != TN_OK) return NULL;
    if (!c.length) c.length = i.positions;
    if (c.rows < 1 || c.rows > 1 << 20 || c.length < 1 || c.chunk < 1)
        return tn_raise_null(TN_EINVAL,
                             "%s: .rows is %lld, .length %lld, .chunk %lld; each must be at least 1, .rows at most "
                             "1048576",
                             who, (long long)c.rows, (long long)c.length, (long long)c.chunk);
    if (i.limited && c.length > i.positions)
        return tn_raise_null(TN_EINVAL, "%s: .length is %lld, but the model has only %lld positions", who,
                             (long long)c.length, (long long)i.positions);
    tn_live *l = tn_mem_get(sizeof *l);
    if (!l) return NULL;
    l->c = c;
    if (reads_whole(i.blocks)) l->c.chunk = c.length;
    l->caches = tn_mem_get((size_t)c.rows * sizeof *l->caches);
    l->writing = l->caches ? tn_mem_get((size_t)c.rows * sizeof *l->writing) : NULL;
    l->seconds = tn__seconds;
    l->pace = l->writing ? tn_mem_get((size_t)(c.rows + 1) * sizeof *l->pace) : NULL;
    if (!l->pace) tn_live_free(l), l = NULL;
    return l;
}

static void release(slot *s)
{
    tn__generation_free(s->generation);
    tn_decoding_free(s->decoding);
    tn_drop(s->prompt), tn_drop(s->most_each), tn_drop(s->next);
    *s = (slot){.number = -1};
}

void tn__live_clock(tn_live *l, double (*seconds)(void)) { l->seconds = seconds; }

void tn_live_free(tn_live *l)
{
    if (!l) return;
    for (int64_t i = 0; i < l->slots; i++) release(&l->slot[i]);
    if (l->slot) tn_mem_put(l->slot, (size_t)l->slots * sizeof *l->slot);
    if (l->caches) tn_mem_put(l->caches, (size_t)l->c.rows * sizeof *l->caches);
    if (l->writing) tn_mem_put(l->writing, (size_t)l->c.rows * sizeof *l->writing);
    if (l->pace) tn_mem_put(l->pace, (size_t)(l->c.rows + 1) * sizeof *l->pace);
    tn_mem_put(l, sizeof *l);
}

/* ---- adding and taking ------------------------------------------------------------------------------------------- */

/* Whether the options are those of a text alone; else raises. */
static bool fits(const tn_live *l, const tn_generate_args *a)
{
    char          text[192];
    const int64_t n = a->prompt && tn_ndim(a->prompt) == 2 ? tn_size(a->prompt, 1) : 0;
    if (!l) return tn_raise_false(TN_EINVAL, "tn_live_add: the tn_live is NULL");
    if (n < 1 || tn_size(a->prompt, 0) != 1)
        return tn_raise_false(TN_ESHAPE, "tn_live_add: the prompt must be [1, n], n at least 1, got %s",
                              a->prompt ? tn_shape_text(tn_shape_of(a->prompt), text, sizeof text) : "NULL");
    if (a->from || a->read || a->before || a->lengths || a->beams != 1)
        return tn_raise_false(TN_EINVAL, "tn_live_add: .from, .read, .before, .lengths and .beams are not for tn_live");
    if (a->most < 0 || n > l->c.length || a->most > l->c.length - n || (!a->most && n == l->c.length))
        return tn_raise_false(TN_EINVAL,
                              "tn_live_add: a prompt of %lld tokens and %lld new ones do not fit .length, %lld",
                              (long long)n, (long long)(a->most ? a->most : 1), (long long)l->c.length);
    if (tn_live_room(l) > 0) return true;
    return tn_raise_false(TN_ESTATE, "tn_live_add: %lld texts have not ended, as many as .rows; add it later",
                          (long long)l->c.rows);
}

/* NULL: raised. */
static slot *free_slot(tn_live *l)
{
    for (int64_t i = 0; i < l->slots; i++)
        if (l->slot[i].number < 0) return &l->slot[i];
    const int64_t n = l->slots ? 2 * l->slots : l->c.rows;
    slot         *more = n <= 1 << 24 ? tn_mem_get((size_t)n * sizeof *more) : NULL;
    if (n > 1 << 24) tn_raise(TN_ESTATE, "tn_live_add: %lld texts have ended; take them", (long long)l->slots);
    if (!more) return NULL;
    for (int64_t i = 0; i < n; i++) more[i] = i < l->slots ? l->slot[i] : (slot){.number = -1};
    if (l->slot) tn_mem_put(l->slot, (size_t)l->slots * sizeof *l->slot);
    slot *s = &more[l->slots];
    l->slot = more, l->slots = n;
    return s;
}

int64_t tn_live_add_run(tn_live *l, tn_generate_args a)
{
    if (tn__blocked() || !fits(l, &a)) return -1;
    slot *s = free_slot(l);
    if (!s) return -1;
    const tn_scope scope = tn_no_grad_begin();
    const int64_t  length = a.most ? tn_size(a.prompt, 1) + a.most : l->c.length;
    s->prompt = tn_keep(tn_clone(tn_to(a.prompt, TN_I64)));
    s->most_each = a.most_each ? tn_keep(tn_clone(a.most_each)) : NULL;
    s->decoding = tn_lm_decoding(l->c.model, 1, length);
    a.prompt = s->prompt, a.most_each = s->most_each, a.from = s->decoding;
    s->generation = tn__generation_begin(a);
    tn_scope_end(scope);
    if (!s->generation) return release(s), -1;
    if (a.sample) tn_current_generator()->position += tn__generation_draws(s->generation);
    return s->number = l->added++;
}

static slot *slot_of(const char *who, const tn_live *l, int64_t text)
{
    for (int64_t i = 0; l && i < l->slots; i++)
        if (text >= 0 && l->slot[i].number == text) return &l->slot[i];
    return tn_raise_null(TN_EINDEX, "%s: text %lld does not exist, or was taken", who, (long long)text);
}

bool tn_live_ended(const tn_live *l, int64_t text)
{
    const slot *s = tn__blocked() ? NULL : slot_of("tn_live_ended", l, text);
    return s && s->ended;
}

int64_t tn_live_room(const tn_live *l) { return l ? l->c.rows - alive(l) : 0; }

tn_generated tn_live_take(tn_live *l, int64_t text)
{
    tn_generated   r = {NULL, NULL, NULL};
    const tn_scope scope = tn_no_grad_begin();
    slot          *s = tn__blocked() ? NULL : slot_of("tn_live_take", l, text);
    if (s && s->why.code) tn_error_pop(&s->why);
    else if (s) tn__generation_stop(s->generation), r = tn__generation_result(s->generation);
    if (s) release(s);
    if (tn_error() != TN_OK) r = (tn_generated){NULL, NULL, NULL};
    tn_scope_return_list(scope, 3, (tn_tensor *[]){r.tokens, r.lengths, r.scores});
    return r;
}

size_t tn_live_need(const tn_live *l, int64_t tokens)
{
    const tn_lm_info i = l ? tn_lm_info_of(l->c.model) : (tn_lm_info){0};
    const tn_block  *block = i.blocks ? tn_at(i.blocks->layers, 0) : NULL;
    if (!block || tokens < 1) return 0;
    const tn_mha  *a = block->self_attn;
    const tn_dtype dt = tn_weight_dtype(a->out_proj->weight);
    const int64_t  each =
        i.blocks->int8_cache ? a->head_dim + TN_INT8_ROW_SCALE : a->head_dim * (int64_t)tn_dtype_size(dt);
    return (size_t)(2 * (i.blocks->depth * a->made_kv_heads * each + (int64_t)sizeof(int64_t)) * tokens);
}

/* ---- a step ------------------------------------------------------------------------------------------------------ */

/* Ends a text. Frees its cache; its tokens stay until it is taken. */
static void finish(slot *s)
{
    s->ended = true;
    tn_decoding_free(s->decoding);
    tn_drop(s->next);
    s->decoding = NULL, s->next = NULL;
}

/* Chooses the next token of a text from its logits; an error ends it. */
static void choose(slot *s, tn_tensor *logits)
{
    tn_tensor *next = NULL;
    if (tn_error() == TN_OK && tn__generation_next(s->generation, logits, &next) && next) {
        tn_drop(s->next);
        if ((s->next = tn_keep(next))) return;
    }
    if (tn_error() != TN_OK) tn_error_push(&s->why);
    finish(s);
}

/* After a step whose layers have added a token to the caches, and whose output layer then failed. */
static void forget_token(const tn_live *l, int64_t n)
{
    tn_error_state aside;
    tn_error_push(&aside);
    for (int64_t i = 0; i < n; i++) tn_kv_cache_trim(l->caches[i], l->writing[i]->had);
    tn_error_pop(&aside);
}

/* The logits of n texts after their next tokens, [n, vocab]; NULL: raised, and the caches are unchanged. */
static tn_tensor *joined_logits(tn_live *l, int64_t n)
{
    tn__cached *first = tn__as_cached(l->writing[0]->decoding);
    tn_tensor  *ids = tn_empty_of(TN_I64, TN_SHAPE(n, 1));
    for (int64_t i = 0; i < n && tn_error() == TN_OK; i++) {
        tn__cached *d = tn__as_cached(l->writing[i]->decoding);
        tn_copy_from(tn_narrow(ids, 0, i, 1), l->writing[i]->next);
        if (tn__cached_make_room(d, 1) == TN_OK) l->caches[i] = d->cache;
        l->writing[i]->had = tn_kv_cache_length(d->cache);
    }
    tn_kv_cache *all = tn_kv_cache_join(n, l->caches);
    tn_tensor   *y = all ? tn_select(first->step(l->c.model, ids, all), 1, 0) : NULL;
    const bool   stepped = all != NULL;
    tn_kv_cache_free(all);
    for (int64_t i = 0; y && i < n; i++) tn__as_cached(l->writing[i]->decoding)->read++;
    if (!y && stepped) forget_token(l, n);
    return y;
}

/* True if the n texts may step together. */
static bool can_join(const tn_live *l, int64_t n)
{
    for (int64_t i = 0; i < n; i++)
        if (!tn__as_cached(l->writing[i]->decoding)) return false;
    return n > 1 && !l->apart;
}

/* True if a step of n texts should be a joined one: at first in turn, then the faster way, at times the other one. */
static bool is_joined_faster(tn_live *l, int64_t n)
{
    enum { FIRST = 8, AGAIN = 64 };
    pace         *p = &l->pace[n];
    const bool    faster = p->joined <= p->apart;
    const int64_t step = p->steps++;
    return step < FIRST ? step % 2 == 0 : step % AGAIN ? faster : !faster;
}

/* Remembers the time of a step; a longer one counts less, because the machine may have been busy. */
static void remember(double *seconds, double took)
{
    *seconds = !(*seconds > 0) || took < *seconds ? took : *seconds + 0.1 * (took - *seconds);
}

/* A token more of each text that has one to read, whose number goes to *count. False: raised, and nothing has
 * changed. */
static bool write_tokens(tn_live *l, int64_t *count)
{
    int64_t n = 0;
    for (int64_t i = 0; i < l->slots; i++)
        if (is_alive(&l->slot[i]) && l->slot[i].next) l->writing[n++] = &l->slot[i];
    *count = n;
    const double began = l->seconds();
    const bool   joins = can_join(l, n) && is_joined_faster(l, n);
    tn_tensor   *y = joins ? joined_logits(l, n) : NULL;
    if (tn_error() == TN_EUNSUPPORTED) tn_clear_error(), l->apart = true;
    for (int64_t i = 0; i < n && tn_error() == TN_OK; i++) {
        slot *s = l->writing[i];
        choose(s, y ? tn_narrow(y, 0, i, 1) : s->decoding->kind->scores(s->decoding, s->next));
    }
    if (n > 1) remember(y ? &l->pace[n].joined : &l->pace[n].apart, l->seconds() - began);
    return tn_error() == TN_OK;
}

static int64_t unread(const slot *s) { return tn_size(s->prompt, 1) - s->read; }

/* The text whose prompt is read next: the one with the fewest tokens left, so that short requests need not wait for
 * long ones; every FAIR-th time the one whose turn it is, so that long ones are read, too. NULL: none. */
static slot *next_prompt(tn_live *l)
{
    enum { FAIR = 4 };
    slot      *s = NULL;
    int64_t    which = 0;
    const bool fair = l->debt <= 0 && l->reads % FAIR == FAIR - 1;
    for (int64_t i = 0; i < l->slots && !(s && fair); i++) {
        slot *at = &l->slot[(l->turn + i) % l->slots];
        if (is_alive(at) && !at->next && (!s || unread(at) < unread(s))) s = at, which = (l->turn + i) % l->slots;
    }
    if (s && fair) l->turn = (which + 1) % l->slots;
    return s;
}

/* Reads a part of one prompt. While texts are written, parts that are not short are read in about a fifth of the time:
 * after one, writing gets SHARE times its seconds. */
static void read_prompt(tn_live *l, bool writing)
{
    enum { SHARE = 4, SHORT = 4 /* a part of at most .chunk / SHORT tokens never waits */ };
    slot *s = next_prompt(l);
    if (!s) return;
    const int64_t left = unread(s), n = left < l->c.chunk ? left : l->c.chunk;
    if (writing && l->debt > 0 && n > l->c.chunk / SHORT) return;
    const double began = l->seconds();
    tn_tensor   *y = s->decoding->kind->scores(s->decoding, tn_narrow(s->prompt, 1, s->read, n));
    s->read += n, l->reads++;
    if (!y || n == left) choose(s, y);
    l->debt = writing ? l->debt + SHARE * (l->seconds() - began) : 0;
}

int64_t tn_live_step(tn_live *l)
{
    if (tn__blocked()) return -1;
    if (!l) return tn_raise(TN_EINVAL, "tn_live_step: the tn_live is NULL"), -1;
    const tn_scope s = tn_no_grad_begin();
    const double   began = l->seconds();
    int64_t        written = 0;
    if (write_tokens(l, &written)) {
        l->debt = written ? fmax(0, l->debt - (l->seconds() - began)) : 0;
        read_prompt(l, written > 0);
    }
    tn_scope_end(s);
    return tn_error() == TN_OK ? alive(l) : -1;
}
