/* state_save.c — saving a state dict. */
#include "nn/base/nn_private.h"
#include "nn/base/state_private.h"

typedef struct {
    const tn_save_args    *c;
    tn_module             *m;
    tn_safetensors_writer *w;
} save;

/* Rewrites the name in the module to the name in the file: applies rules last … first, each from `module` to `file`,
 * except rules with parts or pieces. Inverts *turned for each rule that transposes. */
static bool in_file(const save *s, int last, int first, char name[TN_PATH_BYTES], bool *transposed)
{
    for (int i = last; i >= first; i--) {
        const tn_rename *r = &s->c->rename[i];
        if (r->load_only || !r->module || r->parts || r->pieces) continue;
        const int done = tn__renamed(r->module, r->file, name);
        if (done < 0)
            return tn_raise_false(TN_EINVAL, "tn_save: '%s' becomes too long with the rule for '%s'", name, r->module);
        if (done && r->transpose) *transposed = !*transposed;
    }
    return tn_error() == TN_OK;
}

/* True if loading with these rules undoes the transposition that saving applied. It may not when two rules rename the
 * name, a general one and a special one listed before it; a square matrix would then be loaded wrongly without an
 * error. */
static bool loads_back(const save *s, const char *path, const char *in_file, bool transposed)
{
    char name[TN_PATH_BYTES];
    bool back = false;
    memcpy(name, in_file, strlen(in_file) + 1);
    for (int i = 0; i < s->c->renames; i++) {
        const tn_rename *r = &s->c->rename[i];
        const int        done = r->pieces ? 0 : tn__renamed(r->file, r->module, name);
        if (done < 0 || (done && !r->module)) return true; /* loading would skip it */
        if (done && r->transpose) back = !back;
    }
    if (strcmp(name, path) != 0 || back == transposed) return true;
    return tn_raise_false(
        TN_EINVAL,
        "tn_save: '%s' becomes '%s' %stransposed, but these rules would load it %stransposed; only one rule "
        "may rename it",
        path, in_file, transposed ? "" : "not ", back ? "" : "not ");
}

/* Writes t: the tensor at `path` in the module, or a part of it. `from` is its name after the rules after `last`. */
static bool put(const save *s, int last, const char *path, const char *from, bool transposed, tn_tensor *t)
{
    char name[TN_PATH_BYTES], full[2 * TN_PATH_BYTES];
    memcpy(name, from, strlen(from) + 1);
    if (!in_file(s, last, 0, name, &transposed)) return false;
    if (tn_ndim(t) == 2) {
        if (!loads_back(s, path, name, transposed)) return false;
        if (transposed) t = tn_transpose(t, 0, 1);
    }
    snprintf(full, sizeof full, "%s%s", s->c->prefix ? s->c->prefix : "", name);
    return tn_safetensors_put(s->w, full, t) == TN_OK;
}

/* The last rule by which a tensor is stored joined with others; part: its name after the rules after that. -1: none. */
static int joining(const save *s, const char *name, char part[TN_PATH_BYTES])
{
    for (int i = s->c->renames - 1; i >= 0; i--) {
        const tn_rename *r = &s->c->rename[i];
        bool             transposed = false;
        if (r->load_only || !r->pieces) continue;
        memcpy(part, name, strlen(name) + 1);
        if (in_file(s, s->c->renames - 1, i + 1, part, &transposed) && tn__renamed(r->module, r->file, part) == 1)
            return i;
    }
    return -1;
}

/* The module's tensor that is piece `piece` of the tensor that rule i names `in_file`, and the module that has it;
 * NULL: it does not exist. */
static tn_tensor *piece_named(const save *s, int i, const char *in_file, int piece, tn_module **within)
{
    const tn_rename *all = s->c->rename;
    for (int k = 0; k < s->c->renames; k++) {
        char name[TN_PATH_BYTES];
        if (all[k].pieces != all[i].pieces || all[k].piece != piece || strcmp(all[k].file, all[i].file) != 0) continue;
        memcpy(name, in_file, strlen(in_file) + 1);
        if (tn__renamed(all[k].file, all[k].module, name) != 1) continue;
        for (int later = k + 1; later < s->c->renames; later++)
            if (!all[later].pieces && all[later].module) (void)tn__renamed(all[later].file, all[later].module, name);
        const tn__slot *slot = tn__slot_within(s->m, name, within);
        if (slot && slot->tensor) return slot->tensor;
    }
    return NULL;
}

/* Writes the pieces of a joined tensor, of which rule i has the first. in: the joined tensor's name after the rules
 * from i on. */
static bool put_joined(const save *s, int i, const char *path, const char *in)
{
    const tn_rename *r = &s->c->rename[i];
    const int64_t    groups = r->groups > 1 ? r->groups : 1;
    tn_tensor       *t[TN__PIECES];
    char             name[TN_PATH_BYTES], full[2 * TN_PATH_BYTES];
    bool             transposed = false;
    int64_t          cols = 0;
    for (int k = 0; k < r->pieces; k++) {
        tn_module *within;
        tn_tensor *x = piece_named(s, i, in, k, &within);
        if (!x)
            return tn_raise_false(
                TN_EINVAL, "tn_save: '%s' is stored joined with others, but piece %d of '%s' is missing", path, k, in);
        if (tn_is_packed(x)) x = tn_unpack(x);
        if (x && (!tn_ndim(x) || tn_size(x, 0) % groups))
            return tn_raise_false(TN_ESHAPE, "tn_save: '%s' cannot be divided into %lld equal groups", path,
                                  (long long)groups);
        if (!k && tn_ndim(x) > 1) cols = tn_size(x, -1);
        t[k] = groups > 1 && tn_numel(x) ? tn_reshape(x, TN_SHAPE(groups, tn_numel(x) / groups)) : x;
    }
    tn_tensor *y = tn_cat_list(groups > 1, r->pieces, t);
    if (y && groups > 1) y = cols ? tn_reshape(y, TN_SHAPE(-1, cols)) : tn_reshape(y, TN_SHAPE(-1));
    memcpy(name, in, strlen(in) + 1);
    if (!y || !in_file(s, i - 1, 0, name, &transposed)) return false;
    snprintf(full, sizeof full, "%s%s", s->c->prefix ? s->c->prefix : "", name);
    return tn_safetensors_put(s->w, full, y) == TN_OK;
}

/* Writes one tensor of the module, whole or in the parts that the rules define. */
static bool put_all(const save *s, const char *name, tn_tensor *t)
{
    char part[TN_PATH_BYTES];
    bool parts = false;
    if (tn_is_packed(t) && (t = s->c->renames ? tn_unpack(t) : t) == NULL)
        return false; /* rules apply to unpacked matrices */
    for (int i = s->c->renames - 1; i >= 0; i--) {
        const tn_rename *r = &s->c->rename[i];
        if (r->load_only || !r->module || !r->parts) continue;
        bool transposed = r->transpose;
        memcpy(part, name, strlen(name) + 1);
        if (!in_file(s, s->c->renames - 1, i + 1, part, &transposed)) return false;
        if (tn__renamed(r->module, r->file, part) != 1) continue;
        if (!tn_ndim(t) || tn_size(t, 0) % r->parts)
            return tn_raise_false(TN_ESHAPE, "tn_save: '%s' cannot be divided into %d equal parts", name, r->parts);
        const int64_t rows = tn_size(t, 0) / r->parts;
        if (!put(s, i - 1, name, part, transposed, tn_narrow(t, 0, r->part * rows, rows))) return false;
        parts = true;
    }
    const int joined = parts ? -1 : joining(s, name, part);
    if (joined >= 0) return s->c->rename[joined].piece || put_joined(s, joined, name, part);
    return parts || put(s, s->c->renames - 1, name, name, false, t);
}

bool tn__saved_name(const tn_rename *rules, int n, const char *path, int part, char name[TN_PATH_BYTES], int *parts,
                    bool *transposed, const tn_rename **joined)
{
    const tn_save_args c = {.rename = rules, .renames = n};
    const save         s = {.c = &c};
    char               whole[TN_PATH_BYTES];
    *parts = 1, *transposed = false, *joined = NULL;
    for (int i = n - 1; i >= 0; i--) {
        const tn_rename *r = &rules[i];
        if (r->load_only || !r->module || !r->parts || (r->part != part && *parts > 1)) continue;
        snprintf(whole, sizeof whole, "%s", path);
        *transposed = r->transpose;
        if (!in_file(&s, n - 1, i + 1, whole, transposed)) return false;
        if (tn__renamed(r->module, r->file, whole) != 1) continue;
        *parts = r->parts;
        if (r->part != part) continue;
        memcpy(name, whole, sizeof whole);
        return in_file(&s, i - 1, 0, name, transposed);
    }
    *transposed = false;
    const int by = *parts > 1 ? -1 : joining(&s, path, whole);
    if (by >= 0) *joined = &rules[by];
    snprintf(name, TN_PATH_BYTES, "%s", by < 0 ? path : whole);
    return in_file(&s, by < 0 ? n - 1 : by - 1, 0, name, transposed);
}

tn_module *tn__joined_piece(tn_module *m, const tn_rename *rules, int n, const char *path, int piece)
{
    const tn_save_args c = {.rename = rules, .renames = n};
    const save         s = {.c = &c, .m = m};
    char               in[TN_PATH_BYTES];
    tn_module         *within = NULL;
    const int          by = joining(&s, path, in);
    return by >= 0 && piece_named(&s, by, in, piece, &within) ? within : NULL;
}

/* Adds a second name of a stored tensor to the metadata, as safetensors.torch.save_model does. */
static bool add_alias(const save *s, const char *name, const char *stored)
{
    char a[2 * TN_PATH_BYTES], b[2 * TN_PATH_BYTES], from[TN_PATH_BYTES], to[TN_PATH_BYTES];
    bool transposed = false;
    memcpy(from, name, strlen(name) + 1), memcpy(to, stored, strlen(stored) + 1);
    if (!in_file(s, s->c->renames - 1, 0, from, &transposed) || !in_file(s, s->c->renames - 1, 0, to, &transposed))
        return false;
    const char *prefix = s->c->prefix ? s->c->prefix : "";
    snprintf(a, sizeof a, "%s%s", prefix, from), snprintf(b, sizeof b, "%s%s", prefix, to);
    return !strcmp(a, b) || tn_safetensors_note(s->w, a, b) == TN_OK; /* rules may give both one name */
}

static bool put_names(const save *s, tn_module *m)
{
    bool ok = true;
    for (tn_each t = tn_module_each(m, TN_EACH_SAVED | (s->c->every_name ? TN_EACH_NAME : 0)); ok && tn_next(&t);)
        ok = (s->c->trained_only && t.parameter && !tn_needs_grad(t.tensor)) || put_all(s, t.name, t.tensor);
    if (s->c->every_name || s->c->trained_only) return ok;
    /* a parallel walk over first names only shows which names are second ones */
    tn_each first = tn_module_each(m, TN_EACH_SAVED);
    bool    more = tn_next(&first);
    for (tn_each every = tn_module_each(m, TN_EACH_SAVED | TN_EACH_NAME); ok && tn_next(&every);) {
        if (more && !strcmp(every.name, first.name)) {
            more = tn_next(&first);
            continue;
        }
        for (tn_each t = tn_module_each(m, TN_EACH_SAVED); tn_next(&t);)
            if (t.tensor == every.tensor) {
                ok = add_alias(s, every.name, t.name);
                break;
            }
    }
    return ok;
}

tn_status tn_save_run(void *m, tn_save_args c)
{
    save s = {.c = &c, .m = m, .w = c.writer};
    if (!tn_module_ready("tn_save", m) || !tn__renames_check("tn_save", c.rename, c.renames)) return tn_error();
    if (!c.path && !c.writer) return tn_raise(TN_EINVAL, "tn_save: .path and .writer are NULL; set one of them");
    if (!s.w && !(s.w = tn_safetensors_writer_new())) return tn_error();
    const tn_scope scope = tn_no_grad_begin();
    const bool     ok = put_names(&s, m);
    tn_scope_end(scope);
    const tn_status status = !ok || c.writer ? tn_error() : tn_safetensors_save(s.w, c.path);
    if (!c.writer) tn_safetensors_writer_free(s.w);
    return status;
}
