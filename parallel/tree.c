/* tree.c — the tree along which gradients are added; it depends only on the number of shards. */
#include "parallel/parallel_private.h"

static tn__branch first_child(tn__branch b) { return (tn__branch){b.lo, b.lo + (b.hi - b.lo + 1) / 2}; }

tn__branch tn__branch_parent(int shards, tn__branch b)
{
    tn__branch p = {0, 0}, at = {0, shards};
    while (at.hi - at.lo > b.hi - b.lo) {
        const tn__branch one = first_child(at);
        p = at;
        at = b.lo < one.hi ? one : (tn__branch){one.hi, at.hi};
    }
    return p;
}

/* The largest branch that starts at leaf lo and ends at or before hi. */
static tn__branch largest(int shards, int lo, int hi)
{
    tn__branch at = {0, shards};
    while (at.lo < lo || at.hi > hi) {
        const tn__branch one = first_child(at);
        at = lo < one.hi ? one : (tn__branch){one.hi, at.hi};
    }
    return at;
}

int tn__branches(int shards, int lo, int hi, tn__branch to[TN__BRANCHES])
{
    int n = 0;
    for (; lo < hi && n < TN__BRANCHES; lo = to[n++].hi) to[n] = largest(shards, lo, hi);
    return n;
}
