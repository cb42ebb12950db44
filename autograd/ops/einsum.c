/* einsum — y = the product of the operands, summed over the letters that are not in the output
 *
 * "ij,jk->ik" is a matrix product, "ii" a trace, "...ij->...ji" a transpose of the last two dims. Each letter is a dim;
 * a letter twice in one operand is its diagonal; "..." denotes the unnamed dims, counted from the last, which
 * broadcast. Without "->" the output is "..." and the letters that occur once, in order, A-Z before a-z.
 *
 * The operands are multiplied pair by pair from the left. A letter that is in only one of the pair, and neither in the
 * output nor in a later operand, is summed first. The dims of a pair are sorted into those of both that stay (batch),
 * those of one (left, right) and those that are summed; then the product is a matmul [batch, left, summed] x [batch,
 * summed, right]; or a mul, if no dim is summed. Views of the operands suffice if left, right and summed have one
 * letter each. */
#include "autograd/rooms/einsum_equation.h"

typedef struct {
    const char *equation;
} args_t;

static bool einsum_infer(tn_ctx *c)
{
    const char  *p = TN_ARG(c, equation);
    tn__equation q;
    tn__term     t;
    if (!p) return tn_infer_fail(c, TN_EINVAL, "the equation is NULL");
    for (int i = 0; i < c->nin; i++) {
        if (!tn__need_real(c, i)) return false;
        if (c->in[i]->dtype != c->in[0]->dtype)
            return tn_infer_fail(c, TN_EDTYPE, "dtypes differ: operand 0 is %s, operand %d %s; convert with tn_to",
                                 tn_dtype_name(c->in[0]->dtype), i, tn_dtype_name(c->in[i]->dtype));
    }
    if (!tn__equation_read(c, p, &q)) return false;
    c->result[0].dtype = c->in[0]->dtype, c->result[0].shape.n = q.out.n;
    for (int i = 0; i < q.out.n; i++) c->result[0].shape.d[i] = q.size[q.out.d[i]];
    uint64_t all = 0;
    for (int i = 0; i < c->nin; i++) { /* the dims of each intermediate product */
        tn__equation_operand(c, &q, &p, i, &t);
        const uint64_t s = tn__equation_kept(&q, c->in[i]->l.shape, &t);
        tn__equation_used(&q, s);
        all = (all | s) & tn__equation_needed(&q);
        const int dims = __builtin_popcountll(all);
        if (dims > TN_MAX_DIMS)
            return tn_infer_fail(c, TN_EUNSUPPORTED,
                                 "'%.200s': the product of operands 0 to %d has %d dims, more than %d; reorder them",
                                 q.text, i, dims, TN_MAX_DIMS);
    }
    return true;
}

/* A tensor and the labels of its dims. */
typedef struct {
    tn_tensor *x;
    tn__term   t;
} factor;

static int at_of(const tn__term *t, int label)
{
    for (int i = 0; i < t->n; i++)
        if (t->d[i] == label) return i;
    return -1;
}
static void forget(tn__term *t, int dim)
{
    t->n--;
    for (int i = dim; i < t->n; i++) t->d[i] = t->d[i + 1];
}

/* x as a factor: takes diagonals, and drops the dims of "..." that broadcast. */
static factor einsum_prepare(const tn__equation *q, tn_tensor *x, tn__term t)
{
    for (int j = 1; j < t.n; j++) {
        const int label = t.d[j], i = at_of(&t, label);
        if (i == j) continue;
        x = tn_diagonal(x, 0, i, j); /* replaces both dims by one at the end */
        forget(&t, j), forget(&t, i);
        t.d[t.n++] = label;
        j = 0;
    }
    for (int k = t.n - 1; k >= 0 && x; k--)
        if (x->l.shape.d[k] != q->size[t.d[k]]) x = tn_squeeze(x, k), forget(&t, k);
    return (factor){x, t};
}

static void sum_all_but(factor *f, uint64_t keep)
{
    tn_dims gone = {.n = 0};
    for (int k = 0; k < f->t.n; k++)
        if (!(keep & tn__label_bit(f->t.d[k]))) gone.d[gone.n++] = k;
    if (!gone.n) return;
    f->x = tn_sum(f->x, .dims = gone);
    for (int k = gone.n - 1; k >= 0; k--) forget(&f->t, gone.d[k]);
}

/* Appends those labels of `from` that are in `which` to an order. */
static void add(tn__term *to, const tn__term *from, uint64_t which)
{
    for (int i = 0; i < from->n; i++)
        if (which & tn__label_bit(from->d[i])) to->d[to->n++] = from->d[i];
}
/* Appends the sizes of those labels. */
static void add_sizes(const tn__equation *q, tn_shape *s, const tn__term *from, uint64_t which)
{
    for (int i = 0; i < from->n; i++)
        if (which & tn__label_bit(from->d[i])) s->d[s->n++] = q->size[from->d[i]];
}
/* Appends the product of those sizes. */
static void add_one(const tn__equation *q, tn_shape *s, const tn__term *from, uint64_t which)
{
    tn_shape sizes = {.n = 0};
    add_sizes(q, &sizes, from, which);
    s->d[s->n++] = tn_shape_numel(sizes);
}

static tn_tensor *arranged(const factor *f, const tn__term *order)
{
    tn_dims d = {.n = order->n};
    for (int i = 0; i < order->n; i++) d.d[i] = at_of(&f->t, order->d[i]);
    return tn_permute(f->x, d);
}
static tn_tensor *shaped(tn_tensor *x, tn_shape s) { return x && tn_shape_equal(x->l.shape, s) ? x : tn_reshape(x, s); }

/* The product of f and g, with the labels in `keep`. */
static factor multiply(const tn__equation *q, const factor *f, const factor *g, uint64_t keep)
{
    const uint64_t a = tn__labels_of(&f->t), b = tn__labels_of(&g->t), all = a | b;
    const uint64_t batch = a & b & keep, summed = a & b & ~keep, left = a & ~b, right = b & ~a;
    tn__term       fo = {.n = 0}, go = {.n = 0}, yo = {.n = 0}; /* the required orders */
    tn_shape       fs = {.n = 0}, gs = {.n = 0}, ys = {.n = 0}; /* and the shapes */
    add(&fo, &f->t, batch), add(&fo, &f->t, left), add(&fo, &f->t, summed);
    add(&go, &f->t, batch), add(&go, &f->t, summed), add(&go, &g->t, right);
    add(&yo, &f->t, batch), add(&yo, &f->t, left), add(&yo, &g->t, right);
    add_sizes(q, &ys, &yo, all);
    tn_tensor *x = arranged(f, &fo), *w = arranged(g, &go), *y;
    if (summed) {
        if (__builtin_popcountll(batch) > TN_MAX_DIMS - 2) add_one(q, &fs, &f->t, batch);
        else add_sizes(q, &fs, &f->t, batch);
        gs = fs;
        add_one(q, &fs, &f->t, left), add_one(q, &fs, &f->t, summed);
        add_one(q, &gs, &f->t, summed), add_one(q, &gs, &g->t, right);
        y = tn_matmul(shaped(x, fs), shaped(w, gs));
    } else {
        add_sizes(q, &fs, &fo, all);
        add_sizes(q, &gs, &f->t, batch);
        for (uint64_t s = right; s; s &= s - 1) fs.d[fs.n++] = 1;
        for (uint64_t s = left; s; s &= s - 1) gs.d[gs.n++] = 1;
        add_sizes(q, &gs, &g->t, right);
        y = tn_mul(shaped(x, fs), shaped(w, gs));
    }
    return (factor){shaped(y, ys), yo};
}

static void einsum_compose(tn_ctx *c)
{
    const char  *p = TN_ARG(c, equation);
    factor       y = {NULL, {.n = 0}};
    tn__equation q;
    tn__term     t;
    if (!tn__equation_read(c, p, &q)) return;
    for (int i = 0; i < c->nin; i++) {
        tn__equation_operand(c, &q, &p, i, &t);
        tn__equation_used(&q, tn__equation_kept(&q, c->in[i]->l.shape, &t));
        const uint64_t keep = tn__equation_needed(&q);
        factor         f = einsum_prepare(&q, c->in[i], t);
        sum_all_but(&f, keep | tn__labels_of(&y.t));
        sum_all_but(&y, keep | tn__labels_of(&f.t));
        y = i ? multiply(&q, &y, &f, keep) : f;
    }
    c->out[0] = arranged(&y, &q.out);
}

#define EQ(text) \
    .args = &(args_t) { text }
#define FAILS(code, text) .status = code, .fails = "einsum: " text
/* clang-format off */
static const tn__sample samples[] = {
    {.nin = 2, .in = {{2, {3, 4}}, {2, {4, 2}}}, EQ("ij,jk->ik")},
    {.nin = 2, .in = {{3, {2, 3, 4}}, {3, {2, 4, 2}}}, EQ("bij, bjk")},
    {.nin = 2, .in = {{4, {2, 2, 3, 2}}, {4, {2, 2, 4, 2}}}, EQ("bhtd,bhsd->bhts")},
    {.nin = 1, .in = {{2, {3, 3}}}, EQ("ii->i")},
    {.nin = 1, .in = {{2, {3, 3}}}, EQ("ii")},
    {.nin = 1, .in = {{2, {2, 3}}}, EQ("ij->ji")},
    {.nin = 1, .in = {{3, {2, 3, 2}}}, EQ("abc->")},
    {.nin = 2, .in = {{1, {3}}, {1, {4}}}, EQ("i,j->ij")},
    {.nin = 2, .in = {{3, {2, 3, 4}}, {3, {1, 4, 2}}}, EQ("...ij,...jk->...ik")},
    {.nin = 3, .in = {{2, {2, 3}}, {2, {3, 4}}, {2, {4, 2}}}, EQ("ij,jk,kl->il")},
    {.nin = 2, .in = {{1, {4}}, {0, {0}}}, EQ("i,->i")},
    {.nin = 2, .in = {{2, {0, 3}}, {2, {3, 2}}}, EQ("ij,jk->ik")},
    {.nin = 2, .in = {{2, {2, 0}}, {2, {0, 2}}}, EQ("ij,jk->ik")},
    {.nin = 2, .in = {{2, {2, 3}}, {2, {4, 2}}}, EQ("ij,jk->ik"),
     FAILS(TN_ESHAPE, "'ij,jk->ik': letter 'j' is 3 in operand 0 and 4 in operand 1")},
    {.nin = 1, .in = {{2, {2, 3}}}, EQ("ii->i"),
     FAILS(TN_ESHAPE, "'ii->i': letter 'i' is 2 in operand 0 and 3 in operand 0")},
    {.nin = 2, .in = {{3, {2, 3, 4}}, {2, {2, 4}}}, EQ("...j,...j->..."),
     FAILS(TN_ESHAPE, "'...j,...j->...': the dims of '...' do not broadcast: 3 in operand 0 and 2 in operand 1")},
    {.nin = 2, .in = {{2, {2, 3}}, {2, {3, 2}}}, EQ("ij->ji"),
     FAILS(TN_EINVAL, "'ij->ji': the equation has 1 operand, 2 tensors were given")},
    {.nin = 1, .in = {{2, {2, 3}}}, EQ("ijk->ik"),
     FAILS(TN_ESHAPE, "'ijk->ik': operand 0 has 3 letters, its tensor is [2, 3]")},
    {.nin = 1, .in = {{1, {2}}}, EQ("...ij->ij"),
     FAILS(TN_ESHAPE, "'...ij->ij': operand 0 has 2 letters and '...', its tensor is [2]")},
    {.nin = 1, .in = {{2, {2, 3}}}, EQ("ij->ik"),
     FAILS(TN_EINVAL, "'ij->ik': letter 'k' of the output is in no operand")},
    {.nin = 1, .in = {{2, {2, 3}}}, EQ("ij->ii"), FAILS(TN_EINVAL, "'ij->ii': letter 'i' is twice in the output")},
    {.nin = 1, .in = {{2, {2, 3}}}, EQ("ij->i,j"),
     FAILS(TN_EINVAL, "'ij->i,j': ',' in the output, which must be one term")},
    {.nin = 1, .in = {{2, {2, 3}}}, EQ("ij-i"), FAILS(TN_EINVAL, "'ij-i': operand 0 is followed by '-' without '>'")},
    {.nin = 1, .in = {{2, {2, 3}}}, EQ("..ij"),
     FAILS(TN_EINVAL, "'..ij': operand 0 has a dot that is not part of '...'")},
    {.nin = 1, .in = {{2, {2, 3}}}, EQ("...i..."), FAILS(TN_EINVAL, "'...i...': operand 0 has '...' twice")},
    {.nin = 1, .in = {{2, {2, 3}}}, EQ("i2"),
     FAILS(TN_EINVAL, "'i2': '2' is not a letter; an equation consists of letters, ',', '...', '->' and spaces")},
    {.nin = 1, .in = {{2, {2, 3}}}, EQ("abcdefghi"), FAILS(TN_ESHAPE, "'abcdefghi': operand 0 has more than 8 dims")},
    {.nin = 2, .in = {{5, {1, 1, 1, 1, 1}}, {5, {1, 1, 1, 1, 1}}}, EQ("abcde,fghij"),
     FAILS(TN_ESHAPE, "'abcde,fghij': the output has more than 8 dims")},
    {.nin = 3, .in = {{5, {1, 1, 1, 1, 1}}, {5, {1, 1, 1, 1, 1}}, {4, {1, 1, 1, 1}}}, EQ("abcde,fghij,abfg->cdehij"),
     FAILS(TN_EUNSUPPORTED,
     "'abcde,fghij,abfg->cdehij': the product of operands 0 to 1 has 10 dims, more than 8; reorder them")},
    {.nin = 1, .in = {{2, {2, 3}}}, EQ(NULL), FAILS(TN_EINVAL, "the equation is NULL")},
    {.nin = 1, .in = {{2, {2, 3}}}, .kind = {TN__ARG_INT}, EQ("ij->ji"),
     FAILS(TN_EDTYPE, "needs a floating tensor, got i64; convert it with tn_to(x, TN_F32)")},
};
/* clang-format on */

const tn_op tn__op_einsum = {TN__ROOM("einsum", TN_NARROW(TN_ANY)), .inputs = TN_ANY, .args_size = sizeof(args_t),
                             .infer = einsum_infer, .compose = einsum_compose};
TN__SAMPLES(einsum, samples);

tn_tensor *tn_einsum_list(const char *equation, int n, tn_tensor *const *in)
{
    tn_tensor *met[16];
    if (n > 0 && !in) return tn_raise_null(TN_EINVAL, "einsum: the list of %d tensors is NULL", n);
    if (n > 0 && n <= 16) {
        for (int i = 0; i < n; i++) met[i] = in[i];
        tn__promote_all(n, met);
        in = met;
    }
    return tn_op_apply(&tn__op_einsum, &(args_t){equation}, n, in);
}
