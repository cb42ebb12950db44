/* blocks.c — a stack of Transformer blocks with an optional final norm. Layers may share blocks: with L layers in G
 * groups, layer i uses block ⌊i / (L / G)⌋, computed in f64 as in ALBERT's reference implementation. */
#include "nn/attention/block.h"
#include "nn/base/look_private.h"

static tn_tensor *blocks_forward(void *self, tn_tensor *x) { return tn_blocks_forward((tn_blocks *)self, x); }

/* Names of classes are PyTorch's where PyTorch has the module. */
#define CLASS(id, title, run) \
    static const tn_class id = {.size = sizeof(tn_class), .name = (title), .bytes = sizeof(tn_blocks), .forward = (run)}
CLASS(encoder, "TransformerEncoder", blocks_forward);
CLASS(decoder, "TransformerDecoder", NULL);
CLASS(any_blocks, "Blocks", blocks_forward);

static bool groups_fit(const char *who, const tn_block_config *c)
{
    if (c->groups >= 0 && c->groups <= c->layers) return true;
    return tn_raise_false(TN_EINVAL,
                          "%s: .groups is %lld, but must be from 1 to .layers, %lld, or 0 for one block per layer", who,
                          (long long)c->groups, (long long)c->layers);
}

/* Appends block i. Returns true if it has the stack's positions and they belong to the first layer: then that has taken
 * them or, after an error, freed them. */
static bool append(const char *who, tn_blocks *m, const tn_block_config *every, bool memory, int64_t i)
{
    tn_block_config  c = *every;
    const tn_module *positions = every->attention.positions;
    if (c.each) c.each(&c, i, c.user);
    const bool own = c.attention.positions != every->attention.positions;
    const bool first = !own && positions && positions->kind->positions->in_first_layer;
    if (tn__block_config(who, &c, memory)) tn_append(m->layers, tn__block_of(&c, memory, own || first));
    else if (own || first) tn__part_drop(c.attention.positions);
    return first;
}

static tn_blocks *create(const char *who, const tn_class *kind, tn_block_config c, bool memory)
{
    const bool fits =
        tn__at_least(who, "layers", c.layers, 1) && tn__block_config(who, &c, memory) && groups_fit(who, &c);
    tn_blocks *m = fits ? tn_module_create(kind) : NULL;
    void      *positions = c.attention.positions;
    bool       taken = false;
    if (!m) return tn__part_drop(positions), NULL;
    m->layers = tn_child(m, "layers", tn_module_list_new());
    m->depth = c.layers, m->positions = positions;
    for (int64_t i = 0; i < (c.groups ? c.groups : c.layers) && tn_error() == TN_OK; i++)
        taken = append(who, m, &c, memory, i) || taken;
    if (c.final_norm) m->norm = tn_child(m, "norm", tn__block_norm(&c));
    if (!taken) tn__part_take(&m->base, positions);
    return tn_built(m);
}
tn_blocks *tn_blocks_create(tn_block_config c) { return create("tn_blocks_new", &any_blocks, c, false); }
tn_blocks *tn_transformer_encoder_create(tn_block_config c)
{
    return create("tn_transformer_encoder_new", &encoder, c, false);
}
tn_blocks *tn_transformer_decoder_create(tn_block_config c)
{
    return create("tn_transformer_decoder_new", &decoder, c, true);
}

enum { ARRAYS = 3 };

static void set_null(int64_t n, tn_tensor **list)
{
    for (int64_t i = 0; list && i < n; i++) list[i] = NULL;
}

/* tn_leave for y and for the n tensors of each array (which may be NULL). If an error is set, all become NULL. */
static tn_tensor *leave_all(tn_frame f, tn_tensor *y, int64_t n, tn_tensor **const of[ARRAYS])
{
    if (!of[0] && !of[1] && !of[2]) return tn_leave(f, y);
    const size_t bytes = (size_t)(ARRAYS * n + 1) * sizeof(tn_tensor **);
    tn_tensor ***all = tn_mem_get(bytes);
    int          count = 1;
    for (int64_t i = 0; i < ARRAYS * n; i++) {
        if (!of[i / n]) continue;
        if (all) all[count++] = of[i / n] + i % n;
        else of[i / n][i % n] = NULL;
    }
    if (!all) return tn_leave(f, NULL);
    all[0] = &y;
    tn_leave_list(f, count, all);
    tn_mem_put(all, bytes);
    return y;
}

/* The places of x in the self-attention, of which layers with the same positions share what those have made. */
enum { KINDS = 4 };
typedef struct {
    const tn_module *of[KINDS]; /* NULL: none so far */
    tn_placed        placed[KINDS];
} shared_places;

static const tn_placed *places_of(const tn_block *block, const tn_block_args *a, int64_t before, shared_places *s)
{
    tn_mha *m = block->self_attn;
    int     i = 0;
    if (!m->positions || !a->x || tn_ndim(a->x) != 3) return NULL;
    while (i < KINDS && s->of[i] && s->of[i] != m->positions) i++;
    if (a->placed && i)
        return tn_raise_null(TN_EINVAL, "blocks: .placed is given, but the layers have different positions");
    if (i == KINDS) return NULL; /* computed in the layer */
    if (s->of[i]) return &s->placed[i];
    s->of[i] = m->positions;
    if (a->placed) return s->placed[i] = *a->placed, &s->placed[i];
    const int64_t n = tn_size(a->x, 1);
    s->placed[i] = (tn_placed){.cache = a->cache,
                               .first = tn__cache_removed(a->cache) + before,
                               .queries = n,
                               .keys = before + n,
                               .at = a->unpadded ? tn__unpadded_positions(a->unpadded) : NULL};
    return tn_mha_place(m, &s->placed[i]) ? &s->placed[i] : NULL;
}

static tn_block *block_of(const tn_blocks *m, int64_t layer)
{
    const double shared = (double)m->depth / (double)tn_length(m->layers);
    return tn_at(m->layers, (int64_t)((double)layer / shared));
}

/* ---- without padding --------------------------------------------------------------------------------------------- */

/* The rows of x and of the memory that a stack works on; a member without rows: all. */
typedef struct {
    tn_unpadded x, memory;
} kept_rows;

static bool unpadded_places(const tn_blocks *m)
{
    for (int64_t i = 0; i < tn_length(m->layers); i++) {
        const tn_module *p = ((tn_block *)tn_at(m->layers, i))->self_attn->positions;
        if (p && !p->kind->positions->unpadded) return false;
    }
    return true;
}

/* True if the layers can run without the padding. Otherwise they take the masks: those who look at the layers, or at
 * their weights, get padded tensors, and other masks and biases are made for padded batches. */
static bool can_unpad(const tn_blocks *m, const tn_block_args *a)
{
    const tn_block *block = tn_at(m->layers, 0);
    return a->skip_padding && (a->key_padding_mask || a->memory_key_padding_mask) && !a->unpadded && !a->attn_mask &&
           !a->memory_mask && !a->weights && !a->memory_weights && !a->cache && !a->placed && block &&
           unpadded_places(m) && a->x && tn_ndim(a->x) == 3 && (!a->memory || tn_ndim(a->memory) == 3) &&
           !tn__look_active() && !tn__any_hooks(m);
}

static bool is_full(const tn_unpadded *u) { return tn_numel(u->rows) == u->batch * u->length; }

/* The rows of x [B, T, dim] that are not padding. mask: NULL for none. False: the layers report or handle it. */
static bool kept_of(const tn_tensor *x, tn_tensor *mask, tn_unpadded *u)
{
    const tn_shape s = TN_SHAPE(tn_size(x, 0), tn_size(x, 1));
    if (mask && !tn_shape_equal(tn_shape_of(mask), s)) return false;
    *u = tn_unpad(mask ? mask : tn_zeros_of(TN_BOOL, s));
    return tn_error() == TN_OK && u->in_order;
}

/* Replaces x and memory by their rows without padding, and the masks by u. Padding before or between the rows stays:
 * dropout on attention weights counts positions from a sequence's first row. */
static void unpad(tn_block_args *a, kept_rows *u)
{
    kept_rows k = {.x = {.batch = 0}};
    if (!kept_of(a->x, a->key_padding_mask, &k.x) ||
        (a->memory ? !kept_of(a->memory, a->memory_key_padding_mask, &k.memory) : a->memory_key_padding_mask != NULL) ||
        (is_full(&k.x) && (!a->memory || is_full(&k.memory))))
        return;
    *u = k;
    a->x = tn_unpad_rows(u->x, a->x), a->unpadded = &u->x, a->key_padding_mask = NULL;
    if (!a->memory) return;
    a->memory = tn_unpad_rows(u->memory, a->memory), a->memory_unpadded = &u->memory;
    a->memory_key_padding_mask = NULL;
}

/* The enhanced mask decoder. */
static tn_tensor *decoded(tn_block *block, tn_block_args a, tn_tensor *positions)
{
    a.query = tn_add(a.x, positions);
    for (int i = 0; i < 2 && tn_error() == TN_OK; i++) a.query = tn_block_run(block, a);
    return tn_error() == TN_OK ? a.query : NULL;
}

/* The result of the stack from x, that of the last layer: normed, and with the padding, or the rows of targets alone.
 * own: the rows without padding that the stack has made itself. few: x has only the rows of targets. */
static tn_tensor *finished(tn_blocks *m, tn_tensor *x, const tn_unpadded *own, const tn_unpadded *given,
                           tn_tensor *targets, bool few)
{
    if (tn_error() == TN_OK && m->norm) x = tn_call(m->norm, x);
    if (few || tn_error() != TN_OK) return x;
    if (own->rows) x = tn_pad_rows(*own, x);
    return targets ? tn__target_rows(x, tn__target_index(own->rows ? NULL : given, targets)) : x;
}

tn_tensor *tn_blocks_run(tn_blocks *m, tn_block_args a)
{
    const int64_t n = m ? m->depth : 0;
    set_null(n, a.weights), set_null(n, a.memory_weights), set_null(n, a.router);
    if (!tn_ready(m)) return NULL;
    tn_tensor *const positions = a.mask_decoder, *const targets = a.targets;
    if (!TN__NO_MISTAKE("blocks",
                        TN__IF(a.layer != 0, TN_EINVAL, ".layer is for a single block; a stack runs all layers"),
                        TN__IF(a.query != NULL, TN_EINVAL, ".query is for a single block"),
                        TN__IF(positions && targets, TN_EINVAL, ".targets cannot be used with .mask_decoder")))
        return NULL;
    const bool whole = tn__look_active() || tn__any_hooks(m); /* the norm's hooks see all rows */
    a.mask_decoder = a.targets = NULL;
    const tn_frame           f = tn_enter(m);
    const tn__cached_lengths before = tn__cache_lengths(a.cache, 0);
    tn_tensor               *mine = NULL; /* the result of the layer before, kept until the next layer has read it */
    kept_rows                u = {.x = {.batch = 0}};
    if (!positions && can_unpad(m, &a)) unpad(&a, &u);
    tn_block_args       b = a;
    const tn_block_args start = a;
    shared_places       places = {.of = {NULL}};
    tn_path_push("layers");
    for (int64_t i = 0; i < n && tn_error() == TN_OK; i++) {
        const bool last = i + 1 == n && !m->norm;
        if (a.cache) b.layer = i;
        if (a.weights) b.weights = a.weights + i;
        if (a.memory_weights) b.memory_weights = a.memory_weights + i;
        if (a.router) b.router = a.router + i;
        if (i + 1 == n && !whole) b.targets = targets;
        tn_block *block = block_of(m, i);
        b.placed = places_of(block, &start, before.own, &places);
        if (tn_error() != TN_OK) b.x = NULL;
        else b.x = positions && i + 1 == n ? decoded(block, b, positions) : tn_block_run(block, b);
        tn_drop(mine);
        mine = last ? NULL : tn_take(b.x);
    }
    tn_path_pop();
    b.x = finished(m, b.x, &u.x, a.unpadded, targets, b.targets != NULL);
    tn_drop(mine);
    tn_tensor *y = leave_all(f, b.x, n, (tn_tensor * *[]){a.weights, a.memory_weights, a.router});
    for (int64_t i = 0; i < n && tn_error() != TN_OK; i++) tn__cache_undo(a.cache, i, before);
    return y;
}

tn_status tn_blocks_forget(tn_blocks *m, tn_kv_cache *cache, int64_t from, int64_t count)
{
    if (!tn_ready(m)) return tn_error();
    const int64_t rows = tn_kv_cache_rows(cache), n = tn_kv_cache_length(cache) - from - count;
    bool          rotary = false;
    for (int64_t i = 0; i < m->depth; i++) rotary = rotary || tn_rotary_of(block_of(m, i)->self_attn);
    if (!rotary || from <= 0)
        return tn_raise(TN_EINVAL, "tn_blocks_forget: positions must be rotary, and from must be above 0");
    if (tn_kv_cache_forget(cache, from, count) != TN_OK || !count || n <= 0) return tn_error();
    const tn_scope s = tn_no_grad_begin();
    tn_tensor     *position = tn_full_of(TN_I64, TN_SHAPE(1), -(double)count);
    for (int64_t i = 0; i < m->depth && tn_error() == TN_OK; i++) {
        const tn_mha *a = block_of(m, i)->self_attn;
        tn_tensor    *k, *v;
        if (!tn_rotary_of(a)) continue;
        tn_tensor *back = tn_rope_angles_at(tn__mha_rope(a), position); /* rotate back by count positions */
        if (!tn__cache_read(cache, i, false, rows, from + n, &k, &v)) break;
        k = tn_narrow(k, 2, from, n);
        const bool int8 = tn__cache_is_int8(cache); /* rounds the rotated keys again */
        tn_tensor *turned = tn_rope(int8 ? tn_int8_rows_unpack(k) : k, back, tn_rotary_of(a)->rope.interleaved);
        tn_copy_from(k, int8 ? tn_int8_rows(turned) : turned);
    }
    tn_scope_end(s);
    return tn_error();
}

tn_kv_cache *tn_blocks_cache(tn_blocks *m, int64_t batch, int64_t length, int64_t memory_length)
{
    if (!tn_ready(m)) return NULL;
    const tn_block *block = tn_at(m->layers, 0);
    if (!block) return NULL;
    const tn_mha *a = block->self_attn;
    return tn_kv_cache_new(.layers = m->depth, .batch = batch, .length = length, .memory_length = memory_length,
                           .heads = a->made_kv_heads, .head_dim = a->head_dim,
                           .dtype = tn_weight_dtype(a->out_proj->weight), .int8 = m->int8_cache);
}
