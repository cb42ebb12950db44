/* activations.c — Hugging Face's names of activations. */
#include "models/files/hf_config.h"

#include <string.h>

static const struct {
    const char    *name;
    tn_hf_function run;
} activations[] = {
    {"gelu", tn_gelu},           {"gelu_python", tn_gelu},
    {"gelu_new", tn_gelu_tanh},  {"gelu_pytorch_tanh", tn_gelu_tanh},
    {"gelu_fast", tn_gelu_tanh}, {"relu", tn_relu},
    {"silu", tn_silu},           {"swish", tn_silu},
    {"tanh", tn_tanh},
};
static int activation(const char *name)
{
    const int n = (int)(sizeof activations / sizeof *activations);
    for (int i = 0; name && i < n; i++)
        if (!strcmp(name, activations[i].name)) return i;
    return -1;
}
tn_hf_function tn_hf_activation(const char *name)
{
    const int i = activation(name);
    return i < 0 ? NULL : activations[i].run;
}
const char *tn__activation_name(const char *name)
{
    const int i = activation(name);
    return i < 0 ? NULL : activations[i].name;
}
