/* llama_private.h — shared by the files of models/llama. */
#ifndef TENON_MODELS_LLAMA_LLAMA_PRIVATE_H
#define TENON_MODELS_LLAMA_LLAMA_PRIVATE_H

#include "models/files/hf_config.h"
#include "models/llama.h"

extern const tn_class tn__llama_class;

/* The config as stored in config.json. */
typedef struct {
    tn_llama_config c;
    const char     *architecture, *scaling;
    bool            attention_bias, mlp_bias, use_sliding_window;
    int64_t         window, max_window_layers, trained;
    double          low, high;
    tn_hf_layers    layers;
    int64_t         padding; /* pad_token_id as in the file: below 0 it counts from the end */
    tn_token_ids    begin, end;
} tn__llama_stored;
const tn_hf_files *tn__llama_table(void); /* without the rules for the weights */

/* Fills in defaults; raises for invalid values. */
bool tn__llama_complete(const char *who, tn_llama_config *c);
/* Reads config.json into *s, whose .c is complete; fills *s for writing one. False: raised. */
bool tn__llama_config_read(const tn__hf_source *source, tn__llama_stored *s);
bool tn__llama_config_write(const tn_llama_config *c, const char *dir, tn__llama_stored *s);

void *tn__llama_load(const tn__hf_source *s);

/* m is not NULL. Saves to a directory, or if gguf is not NULL to a GGUF file. */
tn_status tn__llama_save_as(tn_llama *m, const char *to, const tn__gguf_options *gguf);

#endif
