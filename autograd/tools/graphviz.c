/* graphviz.c — writes the tape as a graph: ops as boxes, leaves as ellipses, arrows from inputs to results. */
#include "autograd/tape/history.h"

#include <inttypes.h>

/* Text inside a quoted string of the dot language. */
static void quoted(FILE *to, const char *s)
{
    for (; *s; s++) {
        if (*s == '"' || *s == '\\') fputc('\\', to);
        if ((unsigned char)*s >= ' ') fputc(*s, to);
    }
}

static void leaf(FILE *to, const tn_tensor *t)
{
    char text[192];
    fprintf(to, "  t%" PRIxPTR " [shape=ellipse, label=\"", (uintptr_t)t);
    if (t->name) quoted(to, t->name), fputs("\\n", to);
    fprintf(to, "%s %s\"];\n", tn_dtype_name(t->dtype), tn_shape_text(t->l.shape, text, sizeof text));
}

tn_status tn_tape_dot(FILE *to, tn_tensor *root)
{
    if (tn__blocked()) return tn__self.error;
    if (!to || !root) return tn_raise(TN_EINVAL, "tn_tape_dot: the file or the tensor is NULL");
    if (tn__tape.running)
        return tn_raise(TN_ESTATE, "tn_tape_dot: a backward is running; call this before or after it");
    if (!tn__up_to_date(root, "tn_tape_dot", "the tensor", -1)) return tn__self.error;
    const uint64_t mark = ++tn__tape.runs;
    tn__node      *todo = root->node ? tn__node_of(root) : NULL;
    if (todo && todo->thread != tn__thread_id())
        return tn_raise(TN_ESTATE, "tn_tape_dot: the tape belongs to another thread");
    fputs("digraph tape {\n  rankdir=TB;\n  node [shape=box, fontname=\"sans-serif\"];\n", to);
    if (todo) todo->run = mark, todo->next = NULL;
    else leaf(to, root);
    while (todo) {
        tn__node *n = todo;
        todo = n->next;
        fprintf(to, "  n%" PRIu64 " [label=\"", n->seq);
        quoted(to, n->op->name);
        fputs("\"];\n", to);
        for (int i = 0; i < n->nin; i++) {
            const tn__edge *e = &n->edge[i];
            char            text[192];
            tn_shape_text(n->shape[i], text, sizeof text);
            if (e->leaf) {
                leaf(to, e->leaf); /* written once for each use: one name is one ellipse to Graphviz */
                fprintf(to, "  t%" PRIxPTR " -> n%" PRIu64 ";\n", (uintptr_t)e->leaf, n->seq);
            } else if (e->node) {
                fprintf(to, "  n%" PRIu64 " -> n%" PRIu64 " [label=\"%s\"];\n", e->node->seq, n->seq, text);
                /* nodes of another thread must not be marked */
                if (e->node->thread != n->thread || e->node->run == mark) continue;
                e->node->run = mark, e->node->next = todo;
                todo = e->node;
            }
        }
    }
    fputs("}\n", to);
    return ferror(to) ? tn_raise(TN_EIO, "tn_tape_dot: could not write") : TN_OK;
}
