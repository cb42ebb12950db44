/* report_module.c — a figure of a module, box by box: a box for each module in it, inside the box of its owner. Equal
 * modules of a list (layers.0, layers.1, ...) are one box, with their number. */
#include "extras/report/report_private.h"
#include "nn/nn.h"

#include <string.h>

enum { BOXES = 400, ROW = 20, PAD = 6, INDENT = 12 };

typedef struct {
    tn_string   path; /* the module's path */
    const char *name; /* its end, below the owner's path */
    tn_module  *module;
    int         owner, times; /* index of the box around it, -1: none; number of equal modules */
    int         top, end;     /* pixels */
} box;

typedef struct {
    int n;
    box box[BOXES];
} boxes;

/* True if `path` is below `owner`. */
static bool is_below(const char *path, const char *owner)
{
    const size_t n = strlen(owner);
    return !n || (!strncmp(path, owner, n) && path[n] == '.');
}

/* The box of layers.0 if this is layers.1, layers.2, ... of the same kind and size; -1: none. */
static int first_of_list(const boxes *b, const tn_each *e, const char *name)
{
    const char  *number = strrchr(name, '.') ? strrchr(name, '.') + 1 : name;
    const size_t before = (size_t)(number - name) + strlen(e->name) - strlen(name);
    if (!(*number >= '0' && *number <= '9') || !strcmp(number, "0")) return -1;
    for (int i = b->n - 1; i > 0; i--)
        if (!strncmp(b->box[i].path.at, e->name, before) && !strcmp(b->box[i].path.at + before, "0"))
            return b->box[i].module->kind == e->module->kind && tn_count(b->box[i].module) == tn_count(e->module) ? i
                                                                                                                  : -1;
    return -1;
}

/* Collects the boxes of m. False: raised. */
static bool collect(tn_module *m, boxes *b)
{
    char skipped[TN_PATH_BYTES] = "."; /* its parts are not drawn */
    int  owner = -1;
    for (tn_each e = tn_modules(m); tn_next(&e);) {
        if (is_below(e.name, skipped)) continue;
        while (owner > 0 && !is_below(e.name, b->box[owner].path.at)) owner = b->box[owner].owner;
        const char *name = owner > 0 ? e.name + strlen(b->box[owner].path.at) + 1 : e.name;
        const int   first = first_of_list(b, &e, name);
        if (first >= 0) {
            b->box[first].times++;
            snprintf(skipped, sizeof skipped, "%s", e.name);
            continue;
        }
        if (b->n == BOXES)
            return tn_raise_false(TN_EINVAL, "tn_report_module: the module has more than %d parts", BOXES);
        box *to = &b->box[b->n];
        to->module = e.module, to->owner = owner, to->times = 1;
        if (tn_string_add(&to->path, tn_text_of(e.name)) != TN_OK) return tn_string_free(&to->path), false;
        to->name = to->path.at + (name - e.name);
        owner = b->n++;
    }
    return true;
}

static int depth_of(const boxes *b, int i)
{
    int depth = 0;
    while ((i = b->box[i].owner) >= 0) depth++;
    return depth;
}

/* Sets the top and the end of each box. Returns the height of all. */
static int place(boxes *b)
{
    int y = 0;
    for (int i = 0, before = -1; i < b->n; before = i++) {
        for (int k = before; k >= 0 && k != b->box[i].owner; k = b->box[k].owner) /* boxes that end here */
            if (b->box[k].end == 0) b->box[k].end = y += PAD;
        b->box[i].top = y, y += ROW;
    }
    for (int k = b->n - 1; k >= 0; k = b->box[k].owner)
        if (b->box[k].end == 0) b->box[k].end = y += PAD;
    return y;
}

static void put_box(tn_report *r, const boxes *b, int i, int width)
{
    const box *x = &b->box[i];
    const int  left = INDENT * depth_of(b, i), end = x->end - PAD / 2;
    tn__report_put(
        r, "<rect class=\"f\" stroke=\"currentColor\" x=\"%d\" y=\"%d\" width=\"%d\" height=\"%d\" rx=\"4\"/>\n",
        left + 1, x->top + 1, width - 2 * left - 2, end - x->top);
    tn__report_put(r, "<text x=\"%d\" y=\"%d\">", left + 8, x->top + 15);
    tn__report_text(r, *x->name ? x->name : "");
    tn__report_put(r, *x->name ? ": %s" : "%s", x->module->kind->name);
    if (x->times > 1) tn__report_put(r, " × %d", x->times);
    tn__report_put(r, "<tspan class=\"d\" dx=\"8\">%lld</tspan></text>\n", (long long)tn_count(x->module));
}

tn_status tn_report_module(tn_report *r, const char *title, void *module)
{
    tn_module *m = module;
    size_t     mark;
    if (!tn__report_begin(r, "tn_report_module", m, &mark)) return tn_error();
    boxes *b = tn_mem_get(sizeof *b);
    if (b && collect(m, b)) {
        const int height = place(b);
        int64_t   width = 0;
        for (int i = 0; i < b->n; i++)
            width = tn__report_most(width,
                                    7 * (int64_t)(strlen(b->box[i].name) + strlen(b->box[i].module->kind->name) + 14) +
                                        2 * INDENT * depth_of(b, i));
        tn__report_svg(r, title, "Each box is a module, in the box of its owner, with its number of parameters",
                       (double)width, height + 2);
        for (int i = 0; i < b->n; i++) put_box(r, b, i, (int)width);
        tn__report_put(r, "</svg></figure>\n");
    }
    for (int i = 0; b && i < b->n; i++) tn_string_free(&b->box[i].path);
    tn_mem_put(b, sizeof *b);
    return tn__report_end(r, mark);
}
