/* weights.c — converts a model's weights for inference. */
#include "weights.h"

#include <string.h>

weight_packer weights_packer(const char *type)
{
    static const struct {
        const char   *type;
        weight_packer pack;
    } all[] = {{"f16", tn_f16_pack}, {"q4_0", tn_q4_pack}, {"q8_0", tn_q8_pack}, {"int8", tn_int8_pack}};
    for (int i = 0; type && i < 4; i++)
        if (!strcmp(all[i].type, type)) return all[i].pack;
    return NULL;
}

bool weights_pack(void *module, const char *type)
{
    if (!type) type = "";
    if (!strcmp(type, "f16")) return tn_module_halve(module) == TN_OK;
    if (!strcmp(type, "q4_0")) return tn_quantize_run((tn_quantize_args){.module = module, .bits = 4}) == TN_OK;
    if (!strcmp(type, "q8_0")) return tn_module_quantize(module) == TN_OK;
    return strcmp(type, "int8") != 0 ||
           tn_quantize_run((tn_quantize_args){.module = module, .activations = true}) == TN_OK;
}

double weights_count(void *module)
{
    double n = (double)tn_module_count(module, false);
    for (tn_each b = tn_module_each(module, TN_EACH_BUFFER); tn_next(&b);) {
        if (!tn_is_packed(b.tensor)) continue;
        const tn_shape s = tn_weight_shape(b.tensor);
        n += (double)s.d[0] * (double)s.d[1];
    }
    return n;
}
