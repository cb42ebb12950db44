/* cached.c — the tn_decoding of any model with a key/value cache: reads the prompt, then the chosen tokens; beams
 * reorder the cache, and rejected tokens are trimmed from it.
 *
 * After a few single tokens, the step of the library's own models is recorded, and later tokens are read by replays:
 * the same bits without the calls of ops. Whatever a replay cannot do, and each error, is done by the step itself. */
#include "core/base/toolbox.h"
#include "models/generate/lm_private.h"

typedef tn__cached decoding;

/* Attention sums over keys in blocks of this size (ADR 0016): keeping positions aligned to blocks keeps the bits. */
enum { BLOCK = 128 };

tn_status tn__cached_make_room(decoding *d, int64_t n)
{
    const int64_t have = tn_kv_cache_length(d->cache);
    if (!d->room || have + n <= d->room) return tn_error();
    if (d->window) return tn_kv_cache_forget(d->cache, 0, (have - d->window) / BLOCK * BLOCK);
    const int64_t least = have + n - d->room, quarter = (d->room - d->sinks + 3) / 4;
    return d->turn(d->model, d->cache, d->sinks, least > quarter ? least : quarter);
}

/* ---- replays ----------------------------------------------------------------------------------------------------- */

enum { BEFORE_RECORDING = 2 }; /* number of single tokens that are read without a replay: a short text needs none */

static void forget_replay(decoding *d)
{
    tn_replay_free(d->replay), tn_drop(d->ids);
    d->replay = NULL, d->ids = NULL, d->singles = 0;
}

static tn_tensor *recorded_step(void *user)
{
    decoding *d = user;
    return d->step(d->model, d->ids, d->cache);
}

/* The logits after one token of each row, by a replay; NULL: the cache is unchanged, and if no error is set (only
 * TN_ENOMEM stays), the step must read the token. */
static tn_tensor *replayed(decoding *d, tn_tensor *token)
{
    const int64_t rows = tn_size(token, 0);
    if (!d->replays || tn_error() != TN_OK || ((tn_module *)d->model)->training) return NULL;
    if (d->ids && tn_size(d->ids, 0) != rows) forget_replay(d);
    if (d->singles++ < BEFORE_RECORDING) return NULL;
    if (!d->replay && (d->ids = tn_take(tn_clone(token)))) {
        const tn_generator before = *tn_current_generator();
        d->replay = tn_kv_cache_record(d->cache, recorded_step, d);
        if (!d->replay) *tn_current_generator() = before;
        d->replays = d->replay || tn_error() == TN_ENOMEM;
    }
    if (d->replay && tn_copy_from(d->ids, token) == TN_OK) {
        tn_tensor *y = tn_clone(tn_kv_cache_replay(d->cache, d->replay));
        if (y) return y;
    }
    if (tn_error() != TN_ENOMEM) tn_clear_error();
    forget_replay(d);
    return NULL;
}

/* ---- reading tokens ---------------------------------------------------------------------------------------------- */

/* Reads the tokens in parts that fit next to the positions that must stay. */
static tn_tensor *scores(tn_decoding *base, tn_tensor *tokens)
{
    decoding     *d = (decoding *)base;
    const int64_t n = tn_size(tokens, 1), most = !d->room ? n : d->window ? BLOCK : (d->room - d->sinks + 3) / 4;
    tn_tensor    *y = NULL;
    for (int64_t at = 0; at < n && tn_error() == TN_OK; at += most) {
        const int64_t k = at + most < n ? most : n - at;
        if (tn__cached_make_room(d, k) == TN_OK) y = n == 1 ? replayed(d, tokens) : NULL;
        if (!y && tn_error() == TN_OK) y = d->step(d->model, tn_narrow(tokens, 1, at, k), d->cache);
        if (tn_error() == TN_OK) d->read += k;
    }
    return tn_select(y, 1, 0);
}
static tn_status reorder(tn_decoding *base, tn_tensor *index)
{
    return tn_kv_cache_reorder(((decoding *)base)->cache, index);
}
static void end(tn_decoding *base)
{
    forget_replay((decoding *)base);
    tn_kv_cache_free(((decoding *)base)->cache);
    tn_mem_put(base, sizeof(decoding));
}
static int64_t                tokens_read(const tn_decoding *base) { return ((const decoding *)base)->read; }
static const tn_decoding_kind kind = {sizeof(tn_decoding_kind), scores, reorder, end, tokens_read};

tn__cached *tn__as_cached(tn_decoding *base) { return base && base->kind == &kind ? (decoding *)base : NULL; }

tn_decoding *tn_cached_decoding(void *model, tn_decoder_step step, tn_kv_cache *cache, int64_t rows, int64_t length)
{
    static const char *const who = "tn_cached_decoding";
    const bool               ok =
        tn__not_null(who, "the cache", cache) && tn__not_null(who, "the step", (const void *)(uintptr_t)step);
    decoding *d = ok && tn_module_ready(who, model) ? tn_mem_get(sizeof *d) : NULL;
    if (!d) return tn_kv_cache_free(cache), NULL;
    *d = (decoding){.base = {&kind, rows, length}, .model = model, .step = step, .cache = cache};
    d->read = tn_kv_cache_length(cache);
    return &d->base;
}

tn_decoding *tn__replayed(tn_decoding *base)
{
    if (base) ((decoding *)base)->replays = true;
    return base;
}

int64_t tn__windowed_room(int64_t length, int64_t window)
{
    const int64_t room = window < INT64_MAX / 2 ? (window + BLOCK - 1) / BLOCK * BLOCK + 2 * BLOCK : length;
    return room < length ? room : length;
}

tn_decoding *tn_windowed_decoding(void *model, tn_decoder_step step, tn_kv_cache *cache, int64_t rows, int64_t length,
                                  int64_t window)
{
    decoding *d = (decoding *)tn_cached_decoding(model, step, cache, rows, length);
    if (d && (window < 1 || tn__windowed_room(length, window) < 1))
        tn_raise(TN_EINVAL, "tn_windowed_decoding: the window is %lld, but must be at least 1", (long long)window);
    if (d && tn__windowed_room(length, window) < length)
        d->room = tn__windowed_room(length, window), d->window = window;
    if (tn_error() == TN_OK) return &d->base;
    return tn_decoding_free(d ? &d->base : NULL), NULL;
}

tn_decoding *tn_rolling_decoding(void *model, tn_decoder_step step, tn_decoder_turn turn, tn_kv_cache *cache,
                                 int64_t rows, int64_t room, int64_t sinks)
{
    decoding *d = (decoding *)tn_cached_decoding(model, step, cache, rows, INT64_MAX / 4);
    if (d && (!turn || sinks < 1 || room < sinks + 4))
        tn_raise(TN_EINVAL,
                 "tn_rolling_decoding: room is %lld and sinks is %lld; sinks must be at least 1, and room at least "
                 "sinks + 4",
                 (long long)room, (long long)sinks);
    if (d) d->room = room, d->sinks = sinks, d->turn = turn;
    if (tn_error() == TN_OK) return &d->base;
    return tn_decoding_free(d ? &d->base : NULL), NULL;
}

tn_status tn_cached_decoding_trim(tn_decoding *base, int64_t length)
{
    static const char *const who = "tn_cached_decoding_trim";
    decoding *const          d = tn__as_cached(base);
    if (tn__blocked()) return tn_error();
    if (!d) return tn_raise(TN_EINVAL, "%s: this decoding was not made by tn_cached_decoding", who);
    if (length < 0 || length > d->read)
        return tn_raise(TN_EINVAL, "%s: length is %lld, but %lld tokens have been read", who, (long long)length,
                        (long long)d->read);
    const int64_t forgotten = d->read - tn_kv_cache_length(d->cache), stays = d->window ? d->window - 1 : d->sinks;
    if (forgotten && length - forgotten < stays)
        return tn_raise(TN_ESTATE,
                        "%s: tokens after position %lld need dropped ones: of %lld tokens read %lld were dropped; "
                        "read the text again",
                        who, (long long)length, (long long)d->read, (long long)forgotten);
    if (tn_kv_cache_trim(d->cache, length - forgotten) == TN_OK) d->read = length;
    return tn_error();
}
