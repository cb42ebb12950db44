/* image_batches.c — images as a source of batches: the rows of a tn_dataset, shifted, mirrored and normalised. The
 * random changes of image i in epoch e come from a separate generator at position e · N + i. */
#include "extras/images/images_private.h"

struct tn_images {
    tn_dataset        *rows;
    tn_source          inner;
    tn_image_processor processor;
    int64_t            n, epoch, padding;
    bool               plain, flip; /* plain: values 0 … 1, no processor */
    uint64_t           seed;
};

/* ---- one image --------------------------------------------------------------------------------------------------- */

typedef struct {
    int64_t down, right;
    bool    mirrored;
} move;

enum { DRAWS = 4 }; /* generator blocks per image; a rejected draw, once in 2^60, takes one more */

static move move_of(const tn_images *s, int64_t index)
{
    move         m = {0, 0, false};
    tn_generator g = {.seed = s->seed ^ UINT64_C(0x9e3779b97f4a7c15)}; /* differs from the shuffle's seed */
    g.position = ((uint64_t)s->epoch * (uint64_t)s->n + (uint64_t)index) * DRAWS;
    if (s->padding) {
        m.down = tn_random_below(&g, 2 * s->padding + 1) - s->padding;
        m.right = tn_random_below(&g, 2 * s->padding + 1) - s->padding;
    }
    if (s->flip) m.mirrored = tn_random_below(&g, 2);
    return m;
}

/* Shifts a plane of [height, width] into another one; the rest is 0. */
static void moved(const move *m, int64_t height, int64_t width, const unsigned char *from, unsigned char *to)
{
    memset(to, 0, (size_t)(height * width));
    for (int64_t y = 0; y < height; y++) {
        const int64_t at = y - m->down;
        if (at < 0 || at >= height) continue;
        for (int64_t x = tn__greater(0, m->right); x < tn__lesser(width, width + m->right); x++) {
            const int64_t column = x - m->right;
            to[y * width + x] = from[at * width + (m->mirrored ? width - 1 - column : column)];
        }
    }
}

/* ---- the source -------------------------------------------------------------------------------------------------- */

static bool next(void *user, tn_batch *b)
{
    tn_images *s = user;
    if (!s->inner.next(s->inner.user, b)) {
        s->epoch += tn_error() == TN_OK;
        return false;
    }
    const tn_shape   shape = tn_shape_of(b->x);
    const tn_tensor *index = tn_batch_get(b, "index");
    const int64_t    n = shape.d[0], c = shape.d[1], plane = shape.d[2] * shape.d[3];
    const bool       random = s->padding || s->flip;
    tn_tensor       *y = tn_empty(shape), *room = random ? tn_empty_of(TN_U8, TN_SHAPE(plane)) : NULL;
    float           *to = y ? tn_data_mut(y) : NULL;
    unsigned char   *scratch = room ? tn_data_mut(room) : NULL;
    for (int64_t i = 0; i < n && to && (scratch || !random); i++) {
        const move m = random ? move_of(s, tn_get_i64(index, i)) : (move){0, 0, false};
        for (int64_t k = 0; k < c; k++) {
            const unsigned char *from = (const unsigned char *)tn_data(b->x) + (i * c + k) * plane;
            if (random) moved(&m, shape.d[2], shape.d[3], from, scratch), from = scratch;
            tn__image_normalize(s->plain ? NULL : &s->processor, (int)k, plane, from, to + (i * c + k) * plane);
        }
    }
    b->x = y;
    return tn_error() == TN_OK;
}

static void begin(void *user, const tn_json *at)
{
    tn_images *s = user;
    s->inner.begin(s->inner.user, at);
    s->epoch = at && tn_error() == TN_OK ? tn_json_i64(tn_json_need(at, "epoch")) : 0;
}
static void save(void *user, tn_json_writer *w) { ((tn_images *)user)->inner.save(((tn_images *)user)->inner.user, w); }
static void shard(void *user, tn_shard to) { ((tn_images *)user)->inner.shard(((tn_images *)user)->inner.user, to); }

tn_source tn_images_source(tn_images *s)
{
    return (tn_source){.next = s ? next : NULL,
                       .begin = begin,
                       .save = save,
                       .shard = shard,
                       .user = s,
                       .batches = s ? s->inner.batches : 0};
}

/* ---- making one -------------------------------------------------------------------------------------------------- */

static bool check(const tn_images_config *c)
{
    static const char who[] = "tn_images_new";
    char              text[192];
    if (!c->x) return tn_raise_false(TN_EINVAL, "%s: .x is NULL", who);
    const tn_shape s = tn_shape_of(c->x);
    const int64_t  channels = s.n == 4 ? s.d[1] : 1;
    if (tn_dtype_of(c->x) != TN_U8 || (s.n != 3 && s.n != 4) || channels < 1 || channels > 4)
        return tn_raise_false(TN_ESHAPE, "%s: .x must be u8 [N, H, W] or [N, 1 to 4, H, W], not %s %s", who,
                              tn_dtype_name(tn_dtype_of(c->x)), tn_shape_text(s, text, sizeof text));
    if (c->y && (tn_dtype_is_float(tn_dtype_of(c->y)) || tn_ndim(c->y) != 1))
        return tn_raise_false(TN_ESHAPE, "%s: .y must be integers [N], not %s %s", who,
                              tn_dtype_name(tn_dtype_of(c->y)), tn_shape_text(tn_shape_of(c->y), text, sizeof text));
    if (c->processor && c->processor->channels != channels)
        return tn_raise_false(TN_EINVAL, "%s: .processor is for %lld channels, but the images have %lld", who,
                              (long long)c->processor->channels, (long long)channels);
    return tn__image_within(who, "padding", c->padding, 0, TN__IMAGE_SIDE);
}

tn_images *tn_images_create(tn_images_config c)
{
    if (tn_blocked() || !check(&c)) return NULL;
    const tn_scope scope = tn_scope_begin();
    tn_images     *s = tn_mem_get(sizeof *s);
    tn_shape       shape = tn_shape_of(c.x);
    if (shape.n == 3) shape = (tn_shape){.n = 4, .d = {shape.d[0], 1, shape.d[1], shape.d[2]}};
    tn_tensor *x = tn_empty_of(TN_U8, shape), *y = c.y ? tn_empty_of(TN_I64, tn_shape_of(c.y)) : NULL;
    tn_tensor *flat = tn_empty_like(c.x);
    if (flat && tn_copy_from(flat, c.x) == TN_OK) tn_copy_in(x, TN_U8, tn_data(flat), (size_t)tn_numel(flat));
    if (y && tn_error() == TN_OK) tn_copy_from(y, c.y);
    if (s && tn_error() == TN_OK) {
        s->n = shape.d[0], s->padding = c.padding, s->flip = c.flip, s->seed = c.seed;
        s->plain = !c.processor;
        if (c.processor) s->processor = *c.processor;
        s->rows = tn_dataset_new(.x = x, .y = y, .fields = {{"index", tn_arange(s->n)}}, .batch = c.batch,
                                 .shuffle = c.shuffle, .drop_last = c.drop_last, .seed = c.seed);
        s->inner = tn_dataset_source(s->rows);
    }
    tn_scope_end(scope);
    if (tn_error() == TN_OK) return s;
    tn_images_free(s);
    return NULL;
}

void tn_images_free(tn_images *s)
{
    if (!s) return;
    tn_dataset_free(s->rows);
    tn_mem_put(s, sizeof *s);
}
