/* kv_cache.c — the cache of keys and values of positions already read. Memory for all positions is allocated at
 * creation and filled from the first position.
 *
 * A layer stores `own` positions. While a token passes through the layers, later layers have one position less, so the
 * token's position is the number of positions that all layers have. If a layer has more when it is called, it was
 * called twice or an earlier pass did not finish; that raises an error. */
#include "nn/attention/kv_cache_private.h"
#include "nn/attention/block.h"
#include "nn/base/look_private.h"
#include "nn/base/nn_private.h"

#include <string.h>

static void forget_replay(tn__cache_replay *r)
{
    tn_drop(r->at), tn_drop(r->angles[0]), tn_drop(r->angles[1]);
    *r = (tn__cache_replay){.at = NULL};
}

bool tn__cache_is_int8(const tn_kv_cache *c) { return c && c->c.int8; }

/* Dtype and width of a stored key or value. (A head_dim that overflows is too large for any memory.) */
static tn_dtype dtype_of(const tn_kv_cache_config *c) { return c->int8 ? TN_U8 : c->dtype; }
static int64_t  width_of(const tn_kv_cache_config *c)
{
    return c->int8 && c->head_dim < INT64_MAX / 2 ? c->head_dim + TN_INT8_ROW_SCALE : c->head_dim;
}

/* Row i attends to memory i. */
static void set_memories_apart(tn_kv_cache *c)
{
    for (int64_t i = 0; i < c->c.batch; i++) c->memory_of[i] = i;
}

/* ---- creating and freeing ---------------------------------------------------------------------------------------- */

tn_kv_cache *tn_kv_cache_create(tn_kv_cache_config c)
{
    static const char *const who = "tn_kv_cache_new";
    if (tn__blocked()) return NULL;
    if (!tn__at_least(who, "layers", c.layers, 1) || !tn__at_least(who, "batch", c.batch, 1) ||
        !tn__at_least(who, "length", c.length, 1) || !tn__at_least(who, "memory_length", c.memory_length, 0) ||
        !tn__at_least(who, "heads", c.heads, 1) || !tn__at_least(who, "head_dim", c.head_dim, 1) ||
        !tn__floating(who, c.dtype))
        return NULL;
    if (c.int8 && c.dtype == TN_F64)
        return tn_raise_null(TN_EDTYPE, "%s: .dtype is f64, but .int8 is for f32 and bf16", who);
    size_t     bytes, numbers;
    const bool many_layers = __builtin_mul_overflow((uint64_t)c.layers, sizeof(tn__cache_slot), &bytes) ||
                             __builtin_add_overflow(bytes, sizeof(tn_kv_cache), &bytes);
    const bool many_rows = __builtin_mul_overflow((uint64_t)c.batch, sizeof(int64_t), &numbers) ||
                           __builtin_add_overflow(bytes, numbers, &bytes);
    if (!TN__NO_MISTAKE(who, TN__IF_N(many_layers, TN_EINVAL, ".layers is %lld, too many for any memory", c.layers),
                        TN__IF_N(many_rows, TN_EINVAL, ".batch is %lld, too many for any memory", c.batch)))
        return NULL;
    tn_kv_cache *k = tn_mem_get(bytes);
    if (!k) return NULL;
    k->replay = (tn__cache_replay){.at = NULL};
    k->c = c, k->bytes = bytes, k->rows = -1;
    k->memory_of = (int64_t *)(void *)(k->layer + c.layers);
    set_memories_apart(k);
    for (int64_t i = 0; i < c.layers; i++) k->layer[i].memory = -1;
    for (int i = 0; i < 2 && tn_error() == TN_OK; i++) {
        const int64_t n = i ? c.memory_length : c.length;
        if (!n) continue;
        const tn_shape s = TN_SHAPE(c.layers, c.batch, c.heads, n, width_of(&c));
        k->keys[i] = tn_take(tn_empty_of(dtype_of(&c), s)), k->values[i] = tn_take(tn_empty_of(dtype_of(&c), s));
    }
    if (tn_error() == TN_OK) k->origin = tn_take(tn_empty_of(TN_I64, TN_SHAPE(c.batch + 1, c.length)));
    if (tn_error() != TN_OK) tn_kv_cache_free(k), k = NULL;
    return k;
}

void tn_kv_cache_free(tn_kv_cache *c)
{
    if (!c) return;
    tn_kv_cache_clear(c);
    forget_replay(&c->replay);
    tn__joined_free(c->joined);
    for (int i = 0; i < 2; i++) tn_drop(c->keys[i]), tn_drop(c->values[i]);
    tn_drop(c->origin);
    tn_mem_put(c, c->bytes);
}

/* ---- length, rows and removal ------------------------------------------------------------------------------------ */

static int64_t length_of(const tn_kv_cache *c)
{
    int64_t n = c->layer[0].own;
    for (int64_t i = 1; i < c->c.layers; i++)
        if (c->layer[i].own < n) n = c->layer[i].own;
    return n;
}

int64_t tn_kv_cache_length(const tn_kv_cache *c)
{
    const char *const who = "tn_kv_cache_length";
    return !c || tn__unreplayable(who) || !tn__not_joined(who, c) ? 0 : length_of(c);
}

int64_t tn_kv_cache_rows(const tn_kv_cache *c) { return c && c->rows > 0 ? c->rows : 0; }

static void delete_memory(tn__cache_slot *s)
{
    tn_drop(s->of);
    s->of = NULL, s->memory = -1;
}

void tn_kv_cache_clear(tn_kv_cache *c)
{
    if (!c) return;
    for (int64_t i = 0; i < c->c.layers; i++) c->layer[i].own = 0, delete_memory(&c->layer[i]);
    c->rows = -1, c->removed = c->marked = 0;
}

/* Resets the number of rows if the cache is empty. */
static void reset_if_empty(tn_kv_cache *c)
{
    for (int64_t i = 0; i < c->c.layers; i++)
        if (c->layer[i].own || c->layer[i].of) return;
    c->rows = -1;
}

tn_status tn_kv_cache_trim(tn_kv_cache *c, int64_t length)
{
    if (tn__blocked()) return tn_error();
    if (!tn__not_null("tn_kv_cache_trim", "the cache", c)) return tn_error();
    if (!tn__not_joined("tn_kv_cache_trim", c)) return tn_error();
    const int64_t now = tn_kv_cache_length(c);
    if (length < 0 || length > now)
        return tn_raise(TN_EINVAL, "tn_kv_cache_trim: length is %lld, but the cache holds %lld positions",
                        (long long)length, (long long)now);
    for (int64_t i = 0; i < c->c.layers; i++) c->layer[i].own = length;
    if (c->marked > length) c->marked = length;
    if (!length) c->removed = 0;
    reset_if_empty(c);
    return TN_OK;
}

tn_status tn_kv_cache_forget(tn_kv_cache *c, int64_t from, int64_t count)
{
    if (tn__blocked()) return tn_error();
    if (!tn__not_null("tn_kv_cache_forget", "the cache", c)) return tn_error();
    if (!tn__not_joined("tn_kv_cache_forget", c)) return tn_error();
    const int64_t now = tn_kv_cache_length(c);
    if (from < 0 || count < 0 || from > now || count > now - from)
        return tn_raise(TN_EINVAL, "tn_kv_cache_forget: %lld positions from %lld on, but the cache holds %lld",
                        (long long)count, (long long)from, (long long)now);
    for (int64_t i = 0; i < c->c.layers; i++) {
        if (c->rows > 0) {
            tn__move_up(c->keys[0], i, c->rows, from, from + count, now - from - count);
            tn__move_up(c->values[0], i, c->rows, from, from + count, now - from - count);
        }
        c->layer[i].own = now - count;
    }
    if (from == 0) c->removed += count;
    c->marked = 0;
    reset_if_empty(c);
    return tn_error();
}

int64_t tn__cache_removed(const tn_kv_cache *c) { return c ? c->removed : 0; }

/* ---- for attention ----------------------------------------------------------------------------------------------- */

tn__cached_lengths tn__cache_lengths(const tn_kv_cache *c, int64_t layer)
{
    if (!c || layer < 0 || layer >= c->c.layers) return (tn__cached_lengths){0, -1};
    return (tn__cached_lengths){c->layer[layer].own, c->layer[layer].memory};
}

/* True if a layer with these heads may use the cache for a batch of this size; else raises an error. */
static bool usable(const tn_kv_cache *c, int64_t layer, int64_t rows, int64_t heads, int64_t head_dim, tn_dtype dt)
{
    const tn_kv_cache_config *k = &c->c;
    const int64_t             stored = c->rows < 0 ? k->batch : c->rows;
    if (!TN__NO_MISTAKE("kv_cache",
                        TN__IF(tn_grad_enabled(), TN_ESTATE,
                               "gradients are being recorded; decode between tn_no_grad_begin() and tn_scope_end()"),
                        TN__IF_N(layer < 0 || layer >= k->layers, TN_EINDEX,
                                 "layer %lld is outside the cache, which has %lld layers", layer, k->layers),
                        TN__IF_N(heads != k->heads || head_dim != k->head_dim, TN_ESHAPE,
                                 "the cache has %lld heads of width %lld, this layer has %lld heads of width %lld",
                                 k->heads, k->head_dim, heads, head_dim),
                        TN__IF_N(c->rows < 0 && rows > stored, TN_ESHAPE,
                                 "the batch has %lld rows, the cache at most %lld", rows, stored),
                        TN__IF_N(c->rows >= 0 && rows != stored, TN_ESHAPE,
                                 "the batch has %lld rows, but the cache stores %lld; see tn_kv_cache_reorder", rows,
                                 stored)))
        return false;
    if (dt != k->dtype && !(dt == TN_BF16 && k->dtype == TN_F32)) /* bf16 comes from autocast; f32 stores it exactly */
        return tn_raise_false(TN_EDTYPE, "kv_cache: the cache is %s, these keys are %s; see .dtype of tn_kv_cache_new",
                              tn_dtype_name(k->dtype), tn_dtype_name(dt));
    return true;
}

static tn_tensor *place(tn_tensor *t, int64_t layer, int64_t rows, int64_t from,
                        int64_t n) /* [rows, heads, n, width_of] */
{
    return tn_narrow(tn_narrow(tn_select(t, 0, layer), 0, 0, rows), 2, from, n);
}

bool tn__cache_write(tn_kv_cache *c, int64_t layer, bool memory, int64_t made, tn_tensor *k, tn_tensor *v)
{
    if (tn_error() != TN_OK || (!c->replay.recording && tn__unreplayable("kv_cache"))) return false;
    const tn_shape s = tn_shape_of(k); /* [B, heads, n, head_dim] */
    const int64_t  rows = s.d[0], n = s.d[2], all = length_of(c);
    if (!usable(c, layer, rows, made, s.d[3], tn_dtype_of(k))) return false;
    const int64_t from = memory ? 0 : c->layer[layer].own, room = memory ? c->c.memory_length : c->c.length;
    if (!TN__NO_MISTAKE(
            "kv_cache",
            TN__IF_N(from > all && !memory, TN_ESTATE,
                     "layer %lld has %lld positions, others have %lld: the layer was called twice, a layer was not "
                     "called, or the pass before was interrupted; tn_kv_cache_trim(cache, %lld) restores the "
                     "common length",
                     layer, from, all, all),
            TN__IF_N(n > room - from, TN_ESHAPE,
                     memory ? "no room for %lld positions after %lld; .memory_length is %lld"
                            : "no room for %lld positions after %lld; .length is %lld",
                     n, from, room)))
        return false;
    if (n == 0) return true;
    if (memory && !tn__cache_copy_memories(c)) return false;
    if (c->c.int8) k = tn_int8_rows(k), v = tn_int8_rows(v);
    if (c->replay.recording) {
        const int64_t all_keys = c->c.length;
        if (n != 1 || memory)
            return tn_raise_false(TN_EUNSUPPORTED, "kv_cache: a recorded step must add one position, and no memory");
        tn_index_copy_(tn_narrow(place(c->keys[0], layer, rows, 0, all_keys), 1, 0, s.d[1]), 2, c->replay.at, k);
        tn_index_copy_(tn_narrow(place(c->values[0], layer, rows, 0, all_keys), 1, 0, s.d[1]), 2, c->replay.at, v);
        return tn_error() == TN_OK;
    }
    tn_copy_from(tn_narrow(place(c->keys[memory], layer, rows, from, n), 1, 0, s.d[1]), k);
    return tn_copy_from(tn_narrow(place(c->values[memory], layer, rows, from, n), 1, 0, s.d[1]), v) == TN_OK;
}

void tn__cache_commit(tn_kv_cache *c, int64_t layer, tn_tensor *of, int64_t rows, int64_t n)
{
    tn__cache_slot *s = &c->layer[layer];
    if (of) delete_memory(s), s->memory = n, s->of = tn_keep(of);
    else s->own += n;
    c->rows = rows;
    reset_if_empty(c);
}

bool tn__cache_read(tn_kv_cache *c, int64_t layer, bool memory, int64_t rows, int64_t n, tn_tensor **k, tn_tensor **v)
{
    const int64_t all = memory ? rows * tn__cache_sharing(c) : rows;
    if (tn_error() != TN_OK || !usable(c, layer, all, c->c.heads, c->c.head_dim, c->c.dtype)) return false;
    if (c->replay.recording) n = c->c.length;
    if (c->keys[memory])
        *k = place(c->keys[memory], layer, rows, 0, n), *v = place(c->values[memory], layer, rows, 0, n);
    else *k = *v = tn_zeros_of(dtype_of(&c->c), TN_SHAPE(rows, c->c.heads, 0, width_of(&c->c))); /* an empty memory */
    return tn_error() == TN_OK;
}

bool tn__cache_memory_is(const tn_kv_cache *c, int64_t layer, const tn_tensor *of)
{
    const tn_tensor *had = c->layer[layer].of; /* a different view of the same storage counts as a different memory */
    bool same = !of || (had && tn_data(of) == tn_data(had) && tn_shape_equal(tn_shape_of(of), tn_shape_of(had)));
    if (same && (!of || tn_shape_equal(tn_strides_of(of), tn_strides_of(had)))) return true;
    return tn_raise_false(
        TN_ESTATE,
        "kv_cache: layer %lld stores another memory; pass NULL to use the stored one, or call tn_kv_cache_clear "
        "first",
        (long long)layer);
}

void tn__cache_undo(tn_kv_cache *c, int64_t layer, tn__cached_lengths before)
{
    if (!c || layer < 0 || layer >= c->c.layers) return;
    if (c->joined) tn__joined_undo(c, layer);
    tn__cache_slot *s = &c->layer[layer];
    if (s->own > before.own) s->own = before.own;
    if (before.memory < 0) delete_memory(s);
    reset_if_empty(c);
}

tn_tensor *tn__cache_tensor(const tn_kv_cache *c, int i) { return i ? c->values[0] : c->keys[0]; }

void tn__cache_fill(tn_kv_cache *c, int64_t n)
{
    for (int64_t i = 0; i < c->c.layers; i++) c->layer[i].own = n;
    c->rows = 1, c->marked = 0;
}

/* ---- replays ----------------------------------------------------------------------------------------------------- */

/* The number of positions, if a step can add one to every layer; -1: raised. */
static int64_t before_step(const char *who, const tn_kv_cache *c)
{
    const int64_t n = length_of(c);
    for (int64_t i = 0; i < c->c.layers; i++)
        if (c->layer[i].own != n)
            tn_raise(TN_ESTATE, "%s: layer %lld has %lld positions, others %lld; call tn_kv_cache_trim(cache, %lld)",
                     who, (long long)i, (long long)c->layer[i].own, (long long)n, (long long)n);
    const bool ready = TN__NO_MISTAKE(
        who, TN__IF(c->rows < 1, TN_ESTATE, "the cache is empty; read the first tokens without a replay"),
        TN__IF_N(n >= c->c.length, TN_ESHAPE, "no room for a position after %lld; .length is %lld", n, c->c.length));
    return ready && tn_error() == TN_OK ? n : -1;
}

static void set_length(tn_kv_cache *c, int64_t n)
{
    for (int64_t i = 0; i < c->c.layers; i++) c->layer[i].own = n;
}

/* Whether a step that was to add a position has done so. */
static bool has_added_to(const tn_kv_cache *c, int64_t n)
{
    for (int64_t i = 0; i < c->c.layers; i++)
        if (c->layer[i].own != n + 1)
            return tn_raise_false(TN_ESTATE,
                                  "tn_kv_cache_record: the step added %lld positions to layer %lld of the "
                                  "cache, but must add 1",
                                  (long long)(c->layer[i].own - n), (long long)i);
    return true;
}

/* Autocast would convert all weights in each replay, and a tn_look would observe nothing. */
static bool in_plain_mode(const char *who)
{
    if (!tn__look_active() && !tn__self.mode.autocast) return true;
    return tn_raise_false(TN_EUNSUPPORTED, "%s: not under autocast, and not while a tn_look is open", who);
}

tn_replay *tn_kv_cache_record(tn_kv_cache *c, tn_tensor *(*step)(void *user), void *user)
{
    static const char *const who = "tn_kv_cache_record";
    if (tn__blocked() || !tn__not_null(who, "the cache", c) || !tn__not_joined(who, c) || tn__unreplayable(who))
        return NULL;
    const int64_t n = before_step(who, c);
    if (n < 0) return NULL;
    if (!in_plain_mode(who)) return NULL;
    tn__cache_replay *r = &c->replay;
    forget_replay(r);
    r->at = tn_take(tn_full_of(TN_I64, TN_SHAPE(1), (double)n));
    if (!r->at || !(r->position = tn_data_mut(r->at))) return forget_replay(r), NULL;
    r->recording = true;
    tn_replay *made = tn_replay_record(step, user);
    r->recording = false;
    if (made && !has_added_to(c, n)) tn_replay_free(made), made = NULL;
    for (int64_t i = 0; i < c->c.layers; i++)
        if (c->layer[i].own > n) c->layer[i].own = n;
    if (!made) return forget_replay(r), NULL;
    *r->position = -1; /* tn_replay_run alone would write to the same position again: index_copy raises */
    r->of = made, r->rows = c->rows;
    return made;
}

tn_tensor *tn_kv_cache_replay(tn_kv_cache *c, tn_replay *of)
{
    static const char *const who = "tn_kv_cache_replay";
    if (tn__blocked() || !tn__not_null(who, "the cache", c) || !tn__not_joined(who, c) || tn__unreplayable(who))
        return NULL;
    tn__cache_replay *r = &c->replay;
    if (!TN__NO_MISTAKE(
            who, TN__IF(!of || of != r->of, TN_ESTATE, "this is not the last replay that was recorded with this cache"),
            TN__IF_N(c->rows != r->rows, TN_ESTATE, "the cache has %lld rows, and had %lld when the step was recorded",
                     c->rows, r->rows)) ||
        !in_plain_mode(who))
        return NULL;
    const int64_t n = before_step(who, c);
    if (n < 0) return NULL;
    const tn_scope s = tn_no_grad_begin();
    *r->position = n;
    for (int i = 0; i < 2 && r->angles[i]; i++)
        tn_copy_from(r->angles[i], tn_rope_angles(r->rope[i], c->removed + n, 1));
    tn_scope_end(s);
    tn_tensor *y = tn_error() == TN_OK ? tn_replay_run(of) : NULL;
    *r->position = -1;
    if (y) set_length(c, n + 1);
    return y;
}

tn_tensor *tn_kv_cache_at(const tn_kv_cache *c)
{
    return c && (c->replay.recording || c->joined) ? c->replay.at : NULL;
}

tn_tensor *tn__cache_angles(tn_kv_cache *c, tn_rope_config rope)
{
    tn__cache_replay *r = &c->replay;
    int               i = 0;
    while (i < 2 && r->angles[i] && !tn__rope_same(&r->rope[i], &rope)) i++;
    if (i == 2)
        return tn_raise_null(TN_EUNSUPPORTED,
                             "kv_cache: a recorded step may have two kinds of rotary positions, not more");
    if (!r->angles[i]) {
        const uint16_t recording = tn__self.mode.replay;
        tn__self.mode.replay = 0; /* tn_kv_cache_replay writes them again */
        tn_tensor *t = c->joined ? tn__joined_angles(c, rope) : tn_rope_angles(rope, c->removed + length_of(c), 1);
        tn__self.mode.replay = recording;
        if (t) r->angles[i] = tn_keep(t), r->rope[i] = rope;
    }
    return r->angles[i];
}

/* ---- beams ------------------------------------------------------------------------------------------------------- */

/* Memory for eight numbers of each row and a spare row; *bytes is its size. No size overflows: the cache exists. */
static int64_t *row_numbers(const tn_kv_cache *c, size_t *bytes)
{
    const int64_t longest = c->c.length > c->c.memory_length ? c->c.length : c->c.memory_length;
    const size_t  one = (size_t)longest * (size_t)c->c.heads * (size_t)width_of(&c->c) * tn_dtype_size(dtype_of(&c->c));
    return tn_mem_get(*bytes = (size_t)c->c.batch * 8 * sizeof(int64_t) + one);
}

/* Makes row i of all layers' own positions, or memories, a copy of row source[i]. source: the second of eight numbers
 * of each row; changed. */
static bool move_rows(tn_kv_cache *c, bool memory, int64_t *source, int64_t n)
{
    const int64_t   batch = c->c.batch;
    int64_t        *readers = source + batch;
    tn__cache_move *moves = (tn__cache_move *)(void *)(readers + batch);
    for (int64_t i = 0; i < batch; i++) readers[i] = 0;
    int64_t *const origin = memory ? NULL : tn_data_mut(c->origin), length = length_of(c);
    const int64_t  count = tn__plan_moves(source, n, readers, moves);
    if (!memory && !origin) return false;
    for (int64_t row = 0; origin && row < batch; row++) /* -1: the row has no such position */
        for (int64_t p = c->marked; p < length; p++) origin[row * c->c.length + p] = row < c->rows ? row : -1;
    if (origin) c->marked = length, tn__plan_copies(origin, batch, c->c.length, length, moves, count);
    for (int64_t i = 0; i < c->c.layers; i++) {
        const int64_t filled = memory ? c->layer[i].memory : c->layer[i].own;
        char *const   spare = (char *)(source + 7 * batch);
        if (filled > 0 && !(tn__move_rows(c->keys[memory], i, filled, moves, count, spare) &&
                            tn__move_rows(c->values[memory], i, filled, moves, count, spare)))
            return false;
    }
    return true;
}

bool tn__cache_copy_memories(tn_kv_cache *c)
{
    bool   apart = true;
    size_t bytes;
    for (int64_t i = 0; i < c->rows; i++) apart = apart && c->memory_of[i] == i;
    int64_t *from = apart ? NULL : row_numbers(c, &bytes);
    for (int64_t i = 0; from && i < c->rows; i++) from[c->c.batch + i] = c->memory_of[i];
    if (from) apart = move_rows(c, true, from + c->c.batch, c->rows), tn_mem_put(from, bytes);
    if (apart) set_memories_apart(c);
    return apart;
}

int64_t tn__cache_sharing(const tn_kv_cache *c) { return tn__sharing(c->memory_of, c->rows); }

tn_status tn_kv_cache_reorder(tn_kv_cache *c, const tn_tensor *index)
{
    static const char *const who = "tn_kv_cache_reorder";
    if (tn__blocked()) return tn_error();
    if (!tn__not_null(who, "the cache", c) || !tn__not_null(who, "the index", index)) return tn_error();
    if (!tn__not_joined(who, c)) return tn_error();
    const tn_dtype dt = tn_dtype_of(index);
    if (tn_ndim(index) != 1 || (dt != TN_I64 && dt != TN_I32))
        return tn__unexpected(who, index, true, "the index must be integers [rows]"), tn_error();
    const int64_t n = tn_numel(index), rows = tn_kv_cache_rows(c);
    if (n > c->c.batch)
        return tn_raise(TN_ESHAPE, "%s: the index has %lld rows, the cache at most %lld", who, (long long)n,
                        (long long)c->c.batch);
    for (int64_t i = 0; i < n; i++)
        if (tn_get_i64(index, i) < 0 || tn_get_i64(index, i) >= rows)
            return tn_raise(TN_EINDEX, "%s: row %lld at [%lld] does not exist; the cache has %lld rows", who,
                            (long long)tn_get_i64(index, i), (long long)i, (long long)rows);
    if (c->rows < 0) return TN_OK;

    size_t   bytes;
    int64_t *from = n > 0 ? row_numbers(c, &bytes) : NULL, *source = from ? from + c->c.batch : NULL;
    if (n > 0 && !from) return tn_error();
    for (int64_t i = 0; i < n; i++) from[i] = source[i] = tn_get_i64(index, i);
    if (from && move_rows(c, false, source, n)) {
        const int64_t memories = tn__memories_of(c->memory_of, from, n, c->c.batch, source);
        if (move_rows(c, true, source, memories)) memcpy(c->memory_of, from, (size_t)n * sizeof *from);
    }
    if (from) tn_mem_put(from, bytes);
    if (tn_error() == TN_OK) c->rows = n;
    return tn_error();
}
