/* containers.c — containers of modules: Sequential, ModuleList, ModuleDict. */
#include "nn/base/nn_private.h"

static tn_tensor *sequential_forward(void *self, tn_tensor *x)
{
    const tn_module *m = self;
    for (int i = 0; i < m->base->slots && x; i++)
        if (m->base->slot[i].child) x = tn_module_call(m->base->slot[i].child, x);
    return x;
}

static const tn_class sequential = {
    .size = sizeof(tn_class), .name = "Sequential", .bytes = sizeof(tn_sequential), .forward = sequential_forward};
static const tn_class list = {.size = sizeof(tn_class), .name = "ModuleList", .bytes = sizeof(tn_module_list)};
static const tn_class dict = {.size = sizeof(tn_class), .name = "ModuleDict", .bytes = sizeof(tn_module_dict)};

tn_sequential  *tn_sequential_new(void) { return tn_module_built(tn_module_create(&sequential)); }
tn_module_list *tn_module_list_new(void) { return tn_module_built(tn_module_create(&list)); }
tn_module_dict *tn_module_dict_new(void) { return tn_module_built(tn_module_create(&dict)); }

int64_t tn_module_length(void *module)
{
    const tn_module *m = module;
    int64_t          n = 0;
    for (int i = 0; m && i < m->base->slots; i++) n += m->base->slot[i].child != NULL;
    return n;
}

void *tn_module_append(void *m, void *child)
{
    char name[24];
    snprintf(name, sizeof name, "%lld", (long long)tn_module_length(m));
    return tn_module_child(m, name, child);
}

void *tn_module_at(void *module, int64_t i)
{
    const tn_module *m = module; /* only read, so it also works while an error is set */
    if (!m) return tn_raise_null(TN_EINVAL, "tn_at: the module is NULL");
    const int64_t n = tn_module_length(module), at = i < 0 ? i + n : i;
    if (at < 0 || at >= n)
        return tn_raise_null(TN_EINDEX, "tn_at: %lld is outside a %s of %lld", (long long)i, tn__kind_name(m),
                             (long long)n);
    int64_t passed = -1;
    for (int k = 0;; k++)
        if (m->base->slot[k].child && ++passed == at) return m->base->slot[k].child;
}
