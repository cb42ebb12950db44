/* parameter.c — see parameter.h. */
#include "extras/peft/parameter.h"

#include <string.h>

tn__peft_parameter tn__peft_parameters(void *m)
{
    return (tn__peft_parameter){.names = tn_module_lora_layers(m),
                                .each = tn_module_each(m, TN_EACH_PARAMETER | TN_EACH_BUFFER)};
}

bool tn__peft_next(tn__peft_parameter *p)
{
    char name[TN_PATH_BYTES];
    bool transposed;
    if (!p->each.tensor || p->part + 1 >= p->parts) {
        do
            if (!tn_next(&p->each)) return false;
        while (!p->each.parameter || strstr(p->each.name, "lora.") || tn_is_packed(p->each.tensor));
        p->part = -1;
    }
    p->part++;
    if (!tn_lora_name(&p->names, p->each.name, p->part, name, &p->parts, &transposed, &p->pieces)) return false;
    snprintf(p->name, sizeof p->name, TN__PEFT_PREFIX "%s", name);
    p->tensor = p->each.tensor;
    if (p->parts > 1) {
        const int64_t rows = tn_size(p->tensor, 0) / p->parts;
        p->tensor = tn_narrow(p->tensor, 0, p->part * rows, rows);
    }
    if (transposed && tn_ndim(p->tensor) == 2) p->tensor = tn_transpose(p->tensor, 0, 1);
    return tn_error() == TN_OK;
}

/* Raises for a parameter that files join with others. */
static bool is_whole(const tn__peft_parameter *p)
{
    if (!p->pieces) return true;
    return tn_raise_false(TN_EUNSUPPORTED,
                          "tn_peft: '%s' is trained completely, but it is one of %d that files join as '%s', which is "
                          "not supported; adapt it instead (.names of tn_lora)",
                          p->each.name, p->pieces, p->name + sizeof TN__PEFT_PREFIX - 1);
}

/* Raises for a parameter that the model uses in a second place, as the output layer uses a tied embedding: PEFT makes a
 * copy of the module that is trained, and the other place keeps its weight. */
static bool has_one_place(void *m, const tn__peft_parameter *p)
{
    char      other[TN__PEFT_NAME] = "";
    const int names = TN_EACH_PARAMETER | TN_EACH_NAME;
    for (tn_each e = tn_module_each(m, names); !*other && tn_next(&e);)
        if (e.tensor == p->each.tensor && strcmp(e.name, p->each.name) != 0)
            snprintf(other, sizeof other, "%s", e.name);
    const bool tied = ((tn_module *)m)->kind->lm && strcmp(p->each.module->kind->name, "Embedding") == 0;
    if (!*other && tied && tn_lm_info_of(m).out == p->each.tensor) snprintf(other, sizeof other, "the output layer");
    if (!*other || tn_error() != TN_OK) return tn_error() == TN_OK;
    return tn_raise_false(TN_EUNSUPPORTED,
                          "tn_peft: '%s' is trained completely (modules_to_save), but its weight is also that of %s, "
                          "where PEFT would use the weight of the base model; freeze it, or untie the two",
                          p->name + sizeof TN__PEFT_PREFIX - 1, other);
}

bool tn__peft_trains(void *m, const tn__peft_parameter *p) { return is_whole(p) && has_one_place(m, p); }
