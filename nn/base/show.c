/* show.c — prints modules: as PyTorch does, and as a table of names, shapes, counts and bytes. */
#include "nn/base/nn_private.h"

static bool show_describe(const tn_module *m, char *text, size_t size)
{
    text[0] = 0;
    const tn__c_locale plain = tn__c_locale_begin();
    if (m->kind->describe) m->kind->describe(m, text, size);
    tn__c_locale_end(plain);
    text[size - 1] = 0;
    return *text != 0;
}

static void indent(FILE *to, int depth)
{
    for (int i = 0; i < depth; i++) fputs("  ", to);
}

static bool has_children(const tn_module *m)
{
    for (int i = 0; i < m->base->slots; i++)
        if (m->base->slot[i].child) return true;
    return false;
}

/*     Sequential(
 *       (0): Linear(in_features=1, out_features=32, bias=True)
 *     )                                                            */
void tn_module_print(FILE *to, void *module)
{
    char text[512];
    int  depth = 0;
    if (!to || !module) return;
    for (tn_each e = tn_module_each(module, TN_EACH_MODULE | TN_EACH_NAME);;) {
        const bool more = tn_next(&e);
        for (; depth > (more ? e.depth_ : 0); depth--) indent(to, depth - 1), fputs(")\n", to);
        if (!more) return;
        const bool described = show_describe(e.module, text, sizeof text), open = has_children(e.module);
        const int  above = e.depth_ - 1;
        indent(to, e.depth_);
        if (above >= 0)
            fprintf(to, "(%s): ",
                    e.level_[above].m->base->slot[(e.level_[above].at - 1) % e.level_[above].m->base->slots].name);
        fprintf(to, "%s(", tn__kind_name(e.module));
        if (open) {
            fputc('\n', to);
            if (described) indent(to, e.depth_ + 1), fprintf(to, "%s\n", text);
            depth = e.depth_ + 1;
        } else {
            fprintf(to, "%s)\n", text);
        }
    }
}

/* ---- the table ------------------------------------------------------------------------------------------------- */

static int64_t bytes_of(const tn_tensor *t) { return tn_numel(t) * (int64_t)tn_dtype_size(tn_dtype_of(t)); }

/* "4.0 KiB" */
static const char *bytes_text(int64_t n, char *to, size_t size)
{
    static const char *const unit[] = {"B", "KiB", "MiB", "GiB", "TiB"};
    int                      u = 0;
    int64_t                  tenths = n * 10;
    for (; tenths >= 10240 && u < 4; u++) tenths = (tenths + 512) / 1024;
    if (u) snprintf(to, size, "%lld.%lld %s", (long long)(tenths / 10), (long long)(tenths % 10), unit[u]);
    else snprintf(to, size, "%lld B", (long long)n);
    return to;
}

void tn_module_summary(FILE *to, void *m)
{
    int     width = 4;
    int64_t count = 0, frozen = 0, buffers = 0, bytes = 0;
    char    shape[192], size[32], name[TN_PATH_BYTES + 16];
    if (!to || !m) return;
    for (tn_each e = tn_module_each(m, TN_EACH_PARAMETER | TN_EACH_BUFFER); tn_next(&e);) {
        const int n = (int)strlen(e.name) + (e.parameter ? 0 : 9);
        if (n > width) width = n < 60 ? n : 60;
    }
    fprintf(to, "%-*s  %-4s  %-20s %14s %12s\n", width, "name", "type", "shape", "elements", "bytes");
    for (tn_each e = tn_module_each(m, TN_EACH_PARAMETER | TN_EACH_BUFFER); tn_next(&e);) {
        const int64_t n = tn_numel(e.tensor);
        const bool    fixed = e.parameter && !tn_needs_grad(e.tensor);
        snprintf(name, sizeof name, "%s%s", e.name, e.parameter ? "" : " (buffer)");
        fprintf(to, "%-*s  %-4s  %-20s %14lld %12s%s\n", width, name, tn_dtype_name(tn_dtype_of(e.tensor)),
                tn_shape_text(tn_shape_of(e.tensor), shape, sizeof shape), (long long)n,
                bytes_text(bytes_of(e.tensor), size, sizeof size), fixed ? "  frozen" : "");
        bytes += bytes_of(e.tensor);
        if (e.parameter) count += n, frozen += fixed ? n : 0;
        else buffers += n;
    }
    fprintf(to, "%s: %lld parameters (%lld frozen), %lld elements in buffers, %s\n", tn__kind_name(m), (long long)count,
            (long long)frozen, (long long)buffers, bytes_text(bytes, size, sizeof size));
}
