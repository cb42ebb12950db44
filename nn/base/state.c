/* state.c — loading a state dict: checks all names and shapes, then reads all values, then changes the module. */
#include "core/files/safetensors_rows.h"
#include "core/products/q8_fits.h"
#include "nn/base/nn_private.h"
#include "nn/base/state_private.h"

typedef struct {
    const tn_tensor *tensor; /* the module's tensor of this name; NULL: none */
    tn_tensor       *target; /* the tensor to change: whose, or a part of it; NULL: none */
    tn_tensor       *now;    /* the new values, converted to target's dtype */
    int64_t          in;     /* the tensor's index in the file */
    int64_t          first;  /* joined: the piece's first row, without groups */
    int              part, parts;
    const tn_rename *joined; /* the rule if the file's tensor joins several of the module; else NULL */
    bool             transpose;
    bool             weight; /* of tn_weight */
} entry;

typedef struct {
    const tn_load_args *c;
    tn_module          *m;
    tn_safetensors     *f;
    int64_t             n, room;
    entry              *e; /* one per tensor in the file, or several if it joins tensors of the module */
    tn_load_report      count;
    char                first_missing[200], first_unexpected[200], first_mismatched[500];
} load;

/* ---- names ----------------------------------------------------------------------------------------------------- */

static void mismatch(load *l, tn_mismatch what, const char *name, const char *text)
{
    int64_t *const count[] = {&l->count.missing, &l->count.unexpected, &l->count.mismatched};
    char *const    first[] = {l->first_missing, l->first_unexpected, l->first_mismatched};
    const size_t   size[] = {sizeof l->first_missing, sizeof l->first_unexpected, sizeof l->first_mismatched};
    if (!(*count[what])++) snprintf(first[what], size[what], "%s%s", name, text);
    if (l->c->mismatch) l->c->mismatch(what, name, text, l->c->user);
}

/* Derives the name in the module from the name in the file, of a joined tensor that of piece `piece`, and sets e's
 * part, joined and transpose from the rules. Returns 1, 0 if the tensor is to be skipped, -1 if an error was raised. */
static int module_name(const load *l, const char *in_file, char name[TN_PATH_BYTES], int piece, entry *e)
{
    const char  *prefix = l->c->prefix ? l->c->prefix : "";
    const size_t n = strlen(prefix);
    if (strncmp(in_file, prefix, n) != 0) return 0;
    if (strlen(in_file + n) >= TN_PATH_BYTES)
        return tn_raise(TN_EUNSUPPORTED, "tn_load: the name '%.40s...' is too long; a name has less than %d bytes",
                        in_file, TN_PATH_BYTES),
               -1;
    memcpy(name, in_file + n, strlen(in_file + n) + 1);
    for (int i = 0; i < l->c->renames; i++) {
        const tn_rename *r = &l->c->rename[i];
        if (r->pieces && (e->joined || r->piece != piece)) continue;
        const int done = tn__renamed(r->file, r->module, name);
        if (done < 0)
            return tn_raise(TN_EINVAL, "tn_load: '%s' becomes too long with the rule for '%s'", in_file, r->file), -1;
        if (done && !r->module) return 0;
        if (done && r->transpose) e->transpose = !e->transpose;
        if (done && r->parts) e->part = r->part, e->parts = r->parts;
        if (done && r->pieces) e->joined = r;
    }
    return 1;
}

/* Computes the shape that the tensor in the file must have. False if no shape fits (dim 0 not divisible by parts). */
static bool shape_wanted(const entry *e, tn_shape *s)
{
    *s = tn_shape_of(e->tensor);
    if (e->parts) {
        if (!s->n || s->d[0] % e->parts) return false;
        s->d[0] /= e->parts;
    }
    if (e->transpose && s->n == 2) {
        const int64_t rows = s->d[0];
        s->d[0] = s->d[1], s->d[1] = rows;
    }
    return true;
}

/* True if the file's tensor has the shape of its pieces joined; sets the rows of e's piece. */
static bool joins(const load *l, entry *e, const char *in_file, const tn_shape *shape)
{
    tn_shape      want = tn_shape_of(e->tensor);
    const int64_t groups = e->joined->groups, rows = want.n ? want.d[0] : 0;
    int64_t       all = 0;
    for (int k = 0; k < e->joined->pieces; k++) {
        entry           other = {.in = e->in};
        char            name[TN_PATH_BYTES];
        tn_module      *within;
        const bool      named = module_name(l, in_file, name, k, &other) > 0 && *name;
        const tn__slot *s = named ? tn__slot_within(l->m, name, &within) : NULL;
        if (!s || !s->tensor || tn_ndim(s->tensor) != want.n || !want.n) return false;
        if (k == e->joined->piece) e->first = all;
        if (groups > 1 && tn_size(s->tensor, 0) != rows) return false;
        all += tn_size(s->tensor, 0);
    }
    want.d[0] = all;
    return tn_shape_equal(want, *shape) && (groups < 2 || rows % groups == 0);
}

/* A copy of e's piece of t. */
static tn_tensor *piece_of(const entry *e, tn_tensor *t)
{
    const tn_shape s = tn_shape_of(e->tensor);
    const int64_t  groups = e->joined->groups;
    if (groups < 2 || !tn_numel(t)) return tn_clone(tn_narrow(t, 0, e->first, s.d[0]));
    t = tn_reshape(t, TN_SHAPE(groups, e->joined->pieces, tn_numel(t) / groups / e->joined->pieces));
    return tn_reshape(tn_clone(tn_select(t, 1, e->joined->piece)), s);
}

/* Reads a matrix, or the rows of a piece, as the packed weight that it is in the file: sets now. Otherwise returns
 * without it. False: raised. */
static bool read_packed(const load *l, entry *e)
{
    enum { PART = 1 << 18 }; /* bytes read at a time */
    const tn_dtype dt = tn_dtype_of(e->target);
    const bool     pieces = e->joined && (e->joined->groups > 1 || e->transpose); /* not adjacent rows */
    tn__st_matrix  m;
    size_t         row;
    if (!l->c->packed || !e->weight || e->target != e->tensor || (dt != TN_F32 && dt != TN_BF16) || pieces ||
        !tn__st_matrix_of(l->f, e->in, &m) || m.transposed != e->transpose)
        return true;
    const tn_scope s = tn_scope_begin();
    tn__self.mode.blank = true; /* no huge pages, of which the last one of each matrix would be partly used */
    const int64_t out = tn_size(e->target, 0), first = e->joined ? e->first : 0;
    tn_tensor    *t = tn__packed_new("tn_load", m.type, dt, TN_SHAPE(out, m.in), &row);
    const int64_t most = t && row < PART ? (int64_t)(PART / row) : 1;
    const size_t  bytes = t ? (size_t)most * row : 0;
    char         *part = t && row == m.row ? tn_mem_get(bytes) : NULL;
    for (int64_t from = 0; part && tn_error() == TN_OK && from < out; from += most) {
        const int64_t n = out - from < most ? out - from : most;
        if (!tn__st_matrix_rows(l->f, e->in, first + from, n, part) || !tn__packed_put("tn_load", t, from, n, part))
            break;
    }
    e->now = tn_scope_return(s, part && tn_error() == TN_OK ? t : NULL);
    tn_mem_put(part, bytes);
    return tn_error() == TN_OK;
}

static bool read_one(load *l, int64_t i)
{
    entry *e = &l->e[i];
    if (!read_packed(l, e) || e->now) return e->now != NULL;
    const tn_scope s = tn_scope_begin();
    tn__self.mode.blank = false; /* these values are kept: huge pages */
    tn_tensor *t = tn_safetensors_get_at(l->f, e->in);
    if (e->transpose && tn_ndim(t) == 2) t = tn_transpose(t, 0, 1);
    if (e->joined) t = piece_of(e, t);
    if (t && tn_dtype_of(t) != tn_dtype_of(e->target)) {
        tn_tensor *now = tn_empty_of(tn_dtype_of(e->target), tn_shape_of(t));
        t = now && tn_copy_from(now, t) == TN_OK ? now : NULL;
    }
    if (l->c->pack && e->weight && e->target == e->tensor && t) {
        tn_path_push(tn_safetensors_at(l->f, e->in).name);
        t = tn__pack_weight("tn_load", t, l->c->pack);
        tn_path_pop();
    }
    e->now = tn_scope_return(s, tn_error() == TN_OK ? t : NULL);
    return e->now != NULL;
}

/* What to call first if only one of a weight of the module and one of the file is packed, or "". */
static const char *packed_advice(const tn__slot *s, const tn_safetensors_entry *in)
{
    if (s->weight && !tn_is_packed(s->tensor) && in->dtype == TN_U8 && in->shape.n == 1)
        return ", packed weights; call tn_quantize or tn_halve, as for the saved module, before tn_load";
    if (tn_is_packed(s->tensor) && in->shape.n == 2)
        return ", weights that are not packed; call tn_load before tn_quantize or tn_halve";
    return "";
}

/* Finds the target of entry i, piece `piece` of tensor `at` of the file, or counts it as a mismatch. False: raised. */
static bool plan(load *l, int64_t i, int64_t at, int piece)
{
    const tn_safetensors_entry in = tn_safetensors_at(l->f, at);
    entry                     *e = &l->e[i];
    char                       name[TN_PATH_BYTES], text[500], a[TN__Q8_TEXT], b[TN__Q8_TEXT];
    tn_module                 *within;
    tn_shape                   want;
    e->in = at;
    const int done = module_name(l, in.name, name, piece, e);
    if (done <= 0) return done == 0;
    const tn__slot *s = *name ? tn__slot_within(l->m, name, &within) : NULL;
    if (!s && (tn__renamed("**.parametrizations.weight.original0", "**.weight_g", name) > 0 ||
               tn__renamed("**.parametrizations.weight.original1", "**.weight_v", name) > 0))
        s = tn__slot_within(l->m, name, &within); /* weight normalisation in newer versions of PyTorch */
    if (!s || !s->tensor || !s->saved) {
        mismatch(l, TN_UNEXPECTED, in.name, "");
        return true;
    }
    e->tensor = s->tensor, e->weight = s->weight && !tn_is_packed(s->tensor);
    if (!in.loadable)
        return tn_raise_false(TN_EUNSUPPORTED, "tn_load: '%s' is stored as %s, which Tenon does not load", in.name,
                              in.stored);
    if (e->joined ? !joins(l, e, in.name, &in.shape) : !shape_wanted(e, &want) || !tn_shape_equal(want, in.shape)) {
        snprintf(text, sizeof text, " is %s, the file has %s%s", tn_shape_text(tn_shape_of(e->tensor), a, sizeof a),
                 tn_shape_text(in.shape, b, sizeof b), packed_advice(s, &in));
        mismatch(l, TN_SHAPE_MISMATCH, name, text);
        return true;
    }
    const int64_t rows = e->parts ? tn_size(s->tensor, 0) / e->parts : 0;
    e->target = e->parts ? tn_narrow(s->tensor, 0, e->part * rows, rows) : s->tensor;
    if (!e->target) return false;
    if (tn_is_packed(s->tensor)) { /* the original shape is part of the packed data */
        if (!read_one(l, i)) return false;
        if (!tn__q8_fits(s->tensor, e->now, a, b)) {
            e->target = NULL;
            snprintf(text, sizeof text, " is %s, the file has %s", a, b);
            mismatch(l, TN_SHAPE_MISMATCH, name, text);
            return true;
        }
    }
    l->count.loaded++;
    return true;
}

/* True if the file has tensors (also mismatched ones) for every part of t. */
static bool covered(const load *l, const tn_tensor *t)
{
    uint64_t parts = 0;
    for (int64_t i = 0; i < l->room; i++) {
        const entry *e = &l->e[i];
        if (e->tensor != t) continue;
        if (!e->parts || !e->target) return true;
        parts |= (uint64_t)1 << e->part;
        if (parts == UINT64_MAX >> (TN__TENSOR_PARTS - e->parts)) return true;
    }
    return false;
}

/* True if all mismatches are allowed. Else raises the list: "2 names missing (a, …), 1 unexpected (b)". */
static bool state_fits(const load *l, const char *file)
{
    const tn_load_args *c = l->c;
    const int64_t       missing = c->allow_missing ? 0 : l->count.missing,
                  unexpected = c->allow_unexpected ? 0 : l->count.unexpected;
    const int64_t mismatched = c->allow_shape_mismatch ? 0 : l->count.mismatched;
    char          text[3][600] = {"", "", ""};
    if (!missing && !unexpected && !mismatched) {
        if (l->count.loaded || !(l->count.missing + l->count.mismatched)) return true;
        return tn_raise_false(TN_EFORMAT, "tn_load: nothing in '%s' fits this %s: it has '%s', the file has '%s'", file,
                              tn__kind_name(l->m), l->count.missing ? l->first_missing : l->first_mismatched,
                              l->n ? tn_safetensors_at(l->f, 0).name : "no tensors");
    }
    if (missing)
        snprintf(text[0], sizeof text[0], "%lld name%s missing (%s%s)", (long long)missing, missing > 1 ? "s" : "",
                 l->first_missing, missing > 1 ? ", …" : "");
    if (unexpected)
        snprintf(text[1], sizeof text[1], "%s%lld unexpected (%s%s)", missing ? ", " : "", (long long)unexpected,
                 l->first_unexpected, unexpected > 1 ? ", …" : "");
    if (mismatched)
        snprintf(text[2], sizeof text[2], "%s%lld of another shape: %s", missing || unexpected ? ", " : "",
                 (long long)mismatched, l->first_mismatched);
    return tn_raise_false(TN_EFORMAT, "tn_load: '%s' holds another model: %s%s%s", file, text[0], text[1], text[2]);
}

/* ---- values ---------------------------------------------------------------------------------------------------- */

/* True if the file's entries for one tensor of the module are consistent: copies under several names must be equal, and
 * a tensor must not be present both whole and in parts. */
static bool copies_agree(const load *l)
{
    for (int64_t i = 0; i < l->room; i++) {
        const entry *a = &l->e[i];
        for (int64_t k = i + 1; a->target && k < l->room; k++) {
            const entry *b = &l->e[k];
            if (b->tensor != a->tensor || !b->target || (a->parts == b->parts && a->part != b->part)) continue;
            if (a->parts == b->parts) {
                const tn_scope s = tn_scope_begin();
                const void    *p = tn_data(tn_contiguous(a->now)), *q = tn_data(tn_contiguous(b->now));
                const bool     same = p && q && tn_dtype_of(a->now) == tn_dtype_of(b->now) &&
                                  tn_numel(a->now) == tn_numel(b->now) &&
                                  !memcmp(p, q, (size_t)tn_numel(a->now) * tn_dtype_size(tn_dtype_of(a->now)));
                tn_scope_end(s);
                if (same) continue;
                if (tn_error() != TN_OK) return false;
            }
            return tn_raise_false(TN_EFORMAT, "tn_load: '%s' and '%s' are one tensor here, but differ in the file",
                                  tn_safetensors_at(l->f, a->in).name, tn_safetensors_at(l->f, b->in).name);
        }
    }
    return true;
}

/* True if all targets can be written. Then nothing fails any more: dtypes and shapes match, so nothing is allocated. */
static bool writable(const load *l)
{
    for (int64_t i = 0; i < l->room; i++) {
        if (!l->e[i].target) continue;
        const tn_shape s = tn_shape_of(l->e[i].target), stride = tn_strides_of(l->e[i].target);
        for (int d = 0; d < s.n; d++)
            if (s.d[d] > 1 && !stride.d[d])
                return tn_raise_false(TN_EINVAL, "tn_load: '%s' is expanded: several of its elements share memory",
                                      tn_safetensors_at(l->f, l->e[i].in).name);
    }
    return true;
}

/* True if the module is being created (tn__blank_begin): no other code has its tensors yet, so they may take over the
 * memory that was read instead of copying it. */
static bool may_adopt(const entry *e)
{
    return tn__self.mode.blank && e->target && e->target == e->tensor && tn_is_contiguous(e->now);
}

/* ---- the whole load -------------------------------------------------------------------------------------------- */

/* The largest number of pieces of a rule; at least 1. */
static int pieces_of(const tn_load_args *c)
{
    int n = 1;
    for (int i = 0; i < c->renames; i++)
        if (c->rename[i].pieces > n) n = c->rename[i].pieces;
    return n;
}

/* Nothing here fails. */
static void change_all(load *l)
{
    bool packed = false;
    for (int64_t i = 0; i < l->room; i++) {
        const entry *e = &l->e[i];
        const bool   now = e->weight && e->target && tn_is_packed(e->now);
        packed = packed || now;
        if (now) tn_freeze_tensor(e->target);
        if (now || may_adopt(e)) tn_adopt(e->target, e->now);
        else if (e->target) tn_copy_from(e->target, e->now);
    }
    if (packed) tn__packed_done(l->m);
}

static void run(load *l, const char *file)
{
    const int      each = pieces_of(l->c);
    const size_t   bytes = (size_t)(l->n * each) * sizeof *l->e;
    const tn_scope s = tn_no_grad_begin();
    bool           ok = !l->n || (l->e = tn_mem_get(bytes)) != NULL;
    l->room = l->n * each;
    for (int64_t i = 0; ok && i < l->room; i++) {
        const tn_rename *joined = i % each ? l->e[i / each * each].joined : NULL;
        if (i % each < (joined ? joined->pieces : 1)) ok = plan(l, i, i / each, (int)(i % each));
    }
    for (tn_each t = tn_module_each(l->m, TN_EACH_SAVED); ok && tn_next(&t);)
        if (!covered(l, t.tensor)) mismatch(l, TN_MISSING, t.name, "");
    ok = ok && state_fits(l, file);
    for (int64_t i = 0; ok && i < l->room; i++) ok = !l->e[i].target || l->e[i].now || read_one(l, i);
    if (ok && copies_agree(l) && writable(l)) {
        change_all(l);
        if (l->c->pack) tn__pack_weights("tn_load", l->m, l->c->pack); /* those that the file has in parts */
    }
    tn_scope_end(s);
    tn_mem_put(l->e, bytes);
}

tn_status tn_load_run(void *module, tn_load_args c)
{
    load l = {.c = &c, .m = module};
    if (c.report) *c.report = l.count;
    if (!tn_module_ready("tn_load", module) || !tn__renames_check("tn_load", c.rename, c.renames)) return tn_error();
    if (!c.path && !c.file) return tn_raise(TN_EINVAL, "tn_load: .path and .file are NULL; set one of them");
    l.f = c.file ? c.file : tn_safetensors_open(c.path);
    if (!l.f) return tn_error();
    l.n = tn_safetensors_count(l.f);
    run(&l, c.path ? c.path : "the file");
    if (!c.file) tn_safetensors_close(l.f);
    if (c.report) *c.report = l.count;
    return tn_error();
}

tn_status tn_module_assign(void *m, void *from)
{
    char a[TN__Q8_TEXT], b[TN__Q8_TEXT];
    if (!tn_module_ready("tn_assign", m) || !tn_module_ready("tn_assign", from)) return tn_error();
    tn_each to = tn_module_each(m, TN_EACH_SAVED), other = tn_module_each(from, TN_EACH_SAVED);
    for (;;) {
        const bool more = tn_next(&to), more_there = tn_next(&other);
        if (!more && !more_there) break;
        if (!more || !more_there || strcmp(to.name, other.name) != 0)
            return tn_raise(TN_EINVAL, "tn_assign: the modules differ: one has '%s' where the other has '%s'",
                            more ? to.name : "nothing", more_there ? other.name : "nothing");
        const bool same = tn_shape_equal(tn_shape_of(to.tensor), tn_shape_of(other.tensor));
        if (same && tn__q8_fits(to.tensor, other.tensor, a, b)) continue;
        if (!same) {
            tn_shape_text(tn_shape_of(to.tensor), a, sizeof a);
            tn_shape_text(tn_shape_of(other.tensor), b, sizeof b);
        }
        return tn_raise(TN_ESHAPE, "tn_assign: '%s' is %s in one module and %s in the other", to.name, a, b);
    }
    const tn_scope s = tn_no_grad_begin();
    to = tn_module_each(m, TN_EACH_SAVED), other = tn_module_each(from, TN_EACH_SAVED);
    while (tn_next(&to) && tn_next(&other)) tn_copy_from(to.tensor, other.tensor);
    tn_scope_end(s);
    return tn_error();
}
