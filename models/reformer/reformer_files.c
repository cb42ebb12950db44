/* reformer_files.c — loads and saves Reformer in Hugging Face's directory format; weights have the same names. */
#include "models/reformer/reformer_private.h"

#include <string.h>

tn_reformer *tn_reformer_load(const char *dir)
{
    tn__reformer_stored s = {.c = {TN_REFORMER_DEFAULTS}};
    char                path[1024];
    if (!tn_hf_config_read(dir, tn__reformer_table(), &s)) return NULL;
    tn_reformer_config *c = &s.c;
    if (s.axial && !c->axial[0]) c->axial[0] = c->axial[1] = 64, c->axial_dim[0] = 64, c->axial_dim[1] = 192;
    if (!s.axial) c->axial[0] = c->axial[1] = 0;
    c->layers = (int64_t)strlen(s.kinds), c->kinds = s.kinds;
    tn_safetensors *f = tn__weights_open(dir, path);
    const int64_t   inner = c->dim * (3 * c->heads * c->head_dim + 2 * c->ff);
    const int64_t   positions = s.axial ? 0 : c->positions * c->dim;
    tn_reformer    *m = NULL;
    const tn_scope  blank = tn__blank_begin();
    if (f && tn__has_elements(f, path, 3 * c->vocab * c->dim + positions + c->layers * inner))
        m = tn_reformer_create(*c);
    tn_scope_end(blank);
    return tn__model_read(m, f, path, f ? tn__reformer_table_of(f) : tn__reformer_table());
}

tn_status tn__reformer_save_as(tn_reformer *m, const char *to, const tn__gguf_options *gguf)
{
    tn__reformer_stored s = {.c = m->config, .axial = m->axial[0] != NULL};
    memcpy(s.kinds, m->kinds, sizeof s.kinds);
    return tn__hf_write_as(m, to, tn__reformer_table(), &s, gguf);
}
tn_status tn_reformer_save(tn_reformer *m, const char *dir)
{
    return tn_ready(m) ? tn__reformer_save_as(m, dir, NULL) : tn_error();
}
