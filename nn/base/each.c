/* each.c — the walk over a module's tensors or modules.
 *
 * The tn_each struct contains the whole state of a walk. A walk allocates nothing, may stop at any point, and several
 * may run at once. It visits a module's parameters first, then its buffers, then its children, each in the order of
 * registration, as in PyTorch. Whether a tied tensor or a shared module was visited before is determined by a second
 * walk from the start, which allocates nothing either; tied tensors and shared modules are few. */
#include "nn/base/nn_private.h"

tn_each tn_module_each(void *m, int what)
{
    tn_each e;
    if (m && tn__module_freed("tn_module_each", m)) m = NULL;
    memset(&e, 0, offsetof(tn_each, level_));
    e.what_ = what, e.depth_ = m ? 0 : -1;
    e.level_[0].m = m, e.level_[0].at = -1, e.level_[0].length = 0;
    return e;
}

/* True if `other`, whose current depth is `depth`, is at the same place as e. */
static bool same_place(const tn_each *other, int depth, const tn_each *e)
{
    if (depth != e->depth_) return false;
    for (int i = 0; i <= depth; i++)
        if (other->level_[i].m != e->level_[i].m || other->level_[i].at != e->level_[i].at) return false;
    return true;
}

/* True if the walk visits tensor t, or if t is NULL module m, before the place of e. (A walk that has visited a module
 * is already one level inside it; e has not entered m.) */
static bool came_before(const tn_each *e, const tn_tensor *t, const tn_module *m)
{
    tn_each other =
        tn_module_each(e->level_[0].m, TN_EACH_NAME | (t ? TN_EACH_PARAMETER | TN_EACH_BUFFER : TN_EACH_MODULE));
    while (tn_next(&other) && !same_place(&other, other.depth_ - !t, e))
        if (t ? other.tensor == t : other.module == m) return true;
    return false;
}

static bool tensor_came_before(tn_each *e, const tn__slot *s)
{
    const int room = (int)(sizeof e->tie_ / sizeof *e->tie_);
    if (!s->tied && e->nties_ <= room) {
        for (int i = 0; i < e->nties_; i++)
            if (e->tie_[i] == s->tensor) return true;
        return false;
    }
    if (came_before(e, s->tensor, NULL)) return true;
    if (s->tied && e->nties_ <= room) {
        if (e->nties_ < room) e->tie_[e->nties_] = s->tensor;
        e->nties_++;
    }
    return false;
}

static bool wanted(int what, const tn__slot *s)
{
    if (what & TN_EACH_MODULE) return false;
    return (s->what == TN__PARAMETER && what & TN_EACH_PARAMETER) || (s->what == TN__BUFFER && what & TN_EACH_BUFFER) ||
           (s->saved && what & TN_EACH_SAVED);
}

/* Appends a part's name to the path of the current module; returns the new length, or -1 (raised). */
static int put_name(tn_each *e, const char *name)
{
    const int    length = e->level_[e->depth_].length, dot = length > 0;
    const size_t n = strlen(name);
    if ((size_t)(length + dot) + n >= sizeof e->name) {
        tn_raise(TN_EINVAL, "the path '%.40s...%s' is longer than %d bytes", e->name, name, TN_PATH_BYTES - 1);
        return -1;
    }
    if (dot) e->name[length] = '.';
    memcpy(e->name + length + dot, name, n + 1);
    return length + dot + (int)n;
}

static bool end(tn_each *e)
{
    e->depth_ = -1, e->tensor = NULL, e->module = NULL, e->name[0] = 0;
    return false;
}

bool tn_next(tn_each *e)
{
    if (!tn__not_null("tn_next", "the walk", e)) return false;
    while (e->depth_ >= 0) {
        const int  d = e->depth_;
        tn_module *m = e->level_[d].m;
        if (!m) return end(e); /* not from tn_module_each */
        const struct tn__base *b = m->base;
        if (e->level_[d].at < 0) { /* the root */
            e->level_[d].at = 0, e->name[0] = 0;
            if (!(e->what_ & TN_EACH_MODULE)) continue;
            e->module = m;
            return true;
        }
        if (e->level_[d].at >= TN__KINDS * b->slots) {
            e->depth_--;
            continue;
        }
        const int       at = e->level_[d].at++;
        const tn__slot *s = &b->slot[at % b->slots];
        if (s->what != at / b->slots) continue;
        if (s->tensor) {
            if (!wanted(e->what_, s)) continue;
            if (!(e->what_ & TN_EACH_NAME) && tensor_came_before(e, s)) continue;
            if (put_name(e, s->name) < 0) return end(e);
            e->tensor = s->tensor, e->module = m, e->parameter = s->what == TN__PARAMETER, e->saved = s->saved;
            e->rows = s->rows;
            return true;
        }
        if (!(e->what_ & TN_EACH_NAME) && s->child->base->refs > 1 && came_before(e, NULL, s->child)) continue;
        const int length = put_name(e, s->name);
        if (length < 0) return end(e);
        if (d + 1 >= TN_MAX_DEPTH)
            return tn_raise(TN_EINVAL, "'%s' is nested more than %d modules deep", e->name, TN_MAX_DEPTH), end(e);
        e->level_[d + 1].m = s->child, e->level_[d + 1].at = 0, e->level_[d + 1].length = length;
        e->depth_++;
        if (!(e->what_ & TN_EACH_MODULE)) continue;
        e->module = s->child;
        return true;
    }
    return end(e);
}
