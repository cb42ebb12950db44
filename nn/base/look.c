/* look.c — tn_look: records results and parts of modules while they run, and may change them.
 *
 * mode.look of the thread is the number of active looks (scopes restore it like all modes); `watching` contains these
 * looks, the innermost last. A forward tests mode.look, which is 0 most of the time, and calls tn__look only if it is
 * not 0. */
#include "nn/base/look_private.h"
#include "nn/base/nn_private.h"
#include "nn/base/state_private.h"
#include "nn/look.h"

enum { MOST = 8 };
static _Thread_local tn_look *watching[MOST]; /* elements 0 … mode.look - 1 are in use */

typedef struct {
    char          *path;
    bool           grad;
    tn_look_change change;
    void          *user;
} want;

typedef struct {
    char      *path;
    tn_tensor *t, *grad; /* both with a reference (tn_keep) */
    bool       wants_grad;
    int64_t    times;
} note;

struct tn_look {
    want  *want;
    note  *note;
    size_t wants, notes, want_room, note_room;
};

/* ---- creating, clearing, freeing --------------------------------------------------------------------------------- */

tn_look *tn_look_new(void)
{
    if (tn__blocked()) return NULL;
    return tn__mem_zeroed(sizeof(tn_look));
}

void tn_look_clear(tn_look *l)
{
    for (size_t i = 0; l && i < l->notes; i++) {
        tn__strfree(l->note[i].path);
        tn_drop(l->note[i].t), tn_drop(l->note[i].grad);
    }
    if (l) l->notes = 0;
}

void tn_look_free(tn_look *l)
{
    if (!l) return;
    tn_look_clear(l);
    for (size_t i = 0; i < l->wants; i++) tn__strfree(l->want[i].path);
    for (int i = 0; i < MOST; i++)
        if (watching[i] == l) watching[i] = NULL; /* its scope may still be open */
    tn__mem_put(l->want, l->want_room * sizeof *l->want);
    tn__mem_put(l->note, l->note_room * sizeof *l->note);
    tn__mem_put(l, sizeof *l);
}

/* Makes room for one more element of `size` bytes in the array; false: raised. */
static bool grow(void **array, size_t *room, size_t used, size_t size)
{
    if (used < *room) return true;
    const size_t more = *room ? 2 * *room : 16;
    if (!tn__mem_grow(array, *room * size, more * size)) return false;
    *room = more;
    return true;
}

tn_status tn_look_request_run(tn_look *l, tn_look_request_args a)
{
    if (tn__blocked()) return tn_error();
    if (!l || !a.path) return tn_raise(TN_EINVAL, "tn_look_request: the %s is NULL", l ? "path" : "look");
    void *wants = l->want;
    if (strlen(a.path) >= TN_PATH_BYTES)
        return tn_raise(TN_EINVAL, "tn_look_request: the path is too long; it must have less than %d bytes",
                        TN_PATH_BYTES);
    const char *twice = strstr(a.path, "**");
    if (twice && strstr(twice + 2, "**"))
        return tn_raise(TN_EINVAL, "tn_look_request: '%s' has more than one **", a.path);
    int stars = 0;
    for (const char *c = a.path; *c; c++) stars += *c == '*';
    if (stars > TN__MOST_STARS)
        return tn_raise(TN_EINVAL, "tn_look_request: '%.80s' has more than %d stars", a.path, TN__MOST_STARS);
    char *path = tn__strdup(a.path);
    if (!path) return tn_error();
    if (!grow(&wants, &l->want_room, l->wants, sizeof *l->want)) return tn__strfree(path), tn_error();
    l->want = wants;
    l->want[l->wants++] = (want){path, a.grad, a.change, a.user};
    return TN_OK;
}

tn_scope tn_look_begin(tn_look *l)
{
    const tn_scope s = tn_scope_begin();
    if (tn__blocked()) return s;
    if (!l) tn_raise(TN_EINVAL, "tn_look_begin: the look is NULL");
    else if (tn__self.mode.look >= MOST)
        tn_raise(TN_ESTATE, "tn_look_begin: %d looks are already active, the maximum; end their scopes", MOST);
    else watching[tn__self.mode.look++] = l;
    return s;
}

/* ---- while modules run ------------------------------------------------------------------------------------------- */

/* Writes the current module path with the part's name. False if it is too long, so that no look can want it. */
static bool path_of(const char *part, char path[TN_PATH_BYTES])
{
    const int depth = tn__self.path_depth;
    size_t    at = 0;
    if (depth > TN__PATH_MAX) return false;
    for (int i = 0; i <= depth; i++) {
        const char *name = i < depth ? tn__self.path[i] : part;
        if (!name) continue;
        const size_t n = strlen(name);
        if (at + n + 2 > TN_PATH_BYTES) return false;
        if (at) path[at++] = '.';
        memcpy(path + at, name, n);
        at += n;
    }
    path[at] = 0;
    return true;
}

tn__wanted tn__look_wants(const char *part)
{
    char       path[TN_PATH_BYTES];
    tn__wanted w = TN__NOT_WANTED;
    if (!path_of(part, path)) return w;
    for (int k = 0; k < tn__self.mode.look; k++)
        for (size_t i = 0; watching[k] && i < watching[k]->wants; i++) {
            const want *x = &watching[k]->want[i];
            if (!tn__name_matches(x->path, path)) continue;
            if (x->change || x->grad) return TN__WANTED_TO_ACT;
            w = TN__WANTED;
        }
    return w;
}

/* Records t under the path; replaces an earlier record of that path. */
static void put(tn_look *l, const char *path, tn_tensor *t, bool grad)
{
    size_t at = 0;
    while (at < l->notes && strcmp(l->note[at].path, path) != 0) at++;
    if (at == l->notes) {
        void *notes = l->note;
        if (!grow(&notes, &l->note_room, l->notes, sizeof *l->note)) return;
        l->note = notes;
        char *name = tn__strdup(path);
        if (!name) return;
        l->note[l->notes++] = (note){.path = name};
    }
    note *n = &l->note[at];
    tn_keep(t);
    tn_drop(n->t), tn_drop(n->grad);
    *n = (note){n->path, t, NULL, grad, n->times + 1};
}

/* Passes t through one look and returns the result. All matching wants apply their changes in order; the result is
 * recorded once. */
static tn_tensor *look(tn_look *l, const char *path, tn_tensor *t)
{
    bool wanted = false, grad = false;
    for (size_t i = 0; i < l->wants && tn_error() == TN_OK; i++) {
        const want x = l->want[i]; /* the change may add wants */
        if (!tn__name_matches(x.path, path)) continue;
        const uint16_t others = tn__self.mode.look;
        tn__self.mode.look = 0; /* modules called by the change are not observed */
        tn_tensor *other = x.change ? x.change(path, t, x.user) : NULL;
        tn__self.mode.look = others;
        if (other) t = other;
        wanted = true, grad = grad || x.grad;
    }
    if (!wanted || !t || tn_error() != TN_OK) return t;
    if (grad && tn_grad_enabled() && !tn_needs_grad(t)) t = tn_requires_grad(tn_detach(t));
    if (t) put(l, path, t, grad);
    return t;
}

tn_tensor *tn__look(const char *part, tn_tensor *t)
{
    char path[TN_PATH_BYTES];
    if (tn_error() != TN_OK || !path_of(part, path)) return t;
    for (int k = tn__self.mode.look; k-- > 0 && tn_error() == TN_OK;)
        if (watching[k]) t = look(watching[k], path, t);
    return t;
}

/* Passes a module's result to the looks once: in the frame that added the module's name to the path. */
tn_tensor *tn__look_result(const tn_frame *f, tn_tensor *y)
{
    return y && tn__self.path_depth > f->scope.path ? tn__look(NULL, y) : y;
}

/* ---- gradients and records --------------------------------------------------------------------------------------- */

tn_status tn_look_backward(tn_look *l, tn_tensor *loss, tn_tensor *seed)
{
    if (tn__blocked()) return tn_error();
    if (!l || !loss) return tn_raise(TN_EINVAL, "tn_look_backward: the %s is NULL", l ? "loss" : "look");
    int n = 0;
    for (size_t i = 0; i < l->notes; i++) n += l->note[i].wants_grad;
    if (!n) return tn_raise(TN_ESTATE, "tn_look_backward: no tensor wanted with .grad was recorded");
    const size_t   bytes = 2 * (size_t)n * sizeof(tn_tensor *);
    const tn_scope s = tn_scope_begin();
    tn_tensor    **wrt = tn__mem_zeroed(bytes), **grad = wrt ? wrt + n : NULL;
    if (!wrt) return tn_scope_end(s), tn_error();
    int k = 0;
    for (size_t i = 0; i < l->notes; i++)
        if (l->note[i].wants_grad) wrt[k++] = l->note[i].t;
    tn_grad_of_run((tn_grad_of_args){.root = loss, .count = n, .wrt = wrt, .grad = grad, .seed = seed});
    k = 0;
    for (size_t i = 0; i < l->notes && tn_error() == TN_OK; i++) {
        note *x = &l->note[i];
        if (!x->wants_grad) continue;
        tn_drop(x->grad);
        x->grad = grad[k] ? tn_keep(grad[k]) : NULL;
        k++;
    }
    tn__mem_put(wrt, bytes);
    tn_scope_end(s);
    return tn_error();
}

int64_t     tn_look_count(const tn_look *l) { return l ? (int64_t)l->notes : 0; }
const char *tn_look_name(const tn_look *l, int64_t i)
{
    return l && i >= 0 && i < (int64_t)l->notes ? l->note[i].path : NULL;
}

static const note *find(const char *who, const tn_look *l, const char *path)
{
    if (tn__blocked()) return NULL;
    if (!l || !path) return tn_raise_null(TN_EINVAL, "%s: the %s is NULL", who, l ? "path" : "look");
    for (size_t i = 0; i < l->notes; i++)
        if (!strcmp(l->note[i].path, path)) return &l->note[i];
    if (!l->notes)
        tn_raise(TN_EINDEX,
                 "%s: nothing was recorded; run the model inside the scope of tn_look_begin, and pass paths that it "
                 "has to tn_look_request",
                 who);
    else
        tn_raise(TN_EINDEX, "%s: '%s' was not recorded; recorded are %lld paths, from '%s' to '%s'", who, path,
                 (long long)l->notes, l->note[0].path, l->note[l->notes - 1].path);
    return NULL;
}

tn_tensor *tn_look_at(const tn_look *l, const char *path)
{
    const note *n = find("tn_look_at", l, path);
    return n ? n->t : NULL;
}

tn_tensor *tn_look_grad_at(const tn_look *l, const char *path)
{
    const note *n = find("tn_look_grad_at", l, path);
    if (n && !n->grad)
        tn_raise(TN_ESTATE, "tn_look_grad_at: '%s' has no gradient%s", path,
                 n->wants_grad ? ": call tn_look_backward first, or the loss does not depend on it"
                               : ": pass .grad = true to tn_look_request");
    return n ? n->grad : NULL;
}

int64_t tn_look_times(const tn_look *l, const char *path)
{
    const note *n = find("tn_look_times", l, path);
    return n ? n->times : 0;
}
