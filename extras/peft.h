/* peft.h — adapters of nn/lora.h in the files of Hugging Face's PEFT: adapter_config.json, adapter_model.safetensors.
 * Part of extras.h: include that.
 *
 *     tn_peft_save(model, "adapter");   // PeftModel.from_pretrained(base, "adapter") reads it
 *     tn_peft_load(net, "adapter");     // adds the adapters to a model of the same sizes, with the same results
 *
 * The results are PEFT's, or an error names the member of adapter_config.json that is not supported: DoRA, aLoRA, KaSA
 * and other variants, initialisations that change the base model (PiSSA, OLoRA, CorDA, LoftQ), unknown members, and
 * layers that are in the file although target_modules, exclude_modules, modules_to_save or layers_to_transform leave
 * them out: PEFT would ignore these. Rejected, too, is an embedding of modules_to_save that another part of the model
 * shares, such as a tied output layer: PEFT changes a copy of it in one place.
 *
 * The names of layers are those of Hugging Face's directories; of a custom module without tn_class.names, its own.
 * Each expert (Mixtral, Qwen3-MoE) has adapters of its own: PEFT 0.21 reads them if gates and ups both have some, and
 * writes others, of the parameters in which transformers 5 joins the experts (target_parameters), which are errors. */
#ifndef TENON_EXTRAS_PEFT_H
#define TENON_EXTRAS_PEFT_H

#include "../nn/nn.h"

TN_C_BEGIN_

typedef struct tn_peft_save_args {
    int         zero_;
    const char *task; /* PEFT's task_type, as "SEQ_CLS"; NULL: "CAUSAL_LM" for a language model, else none */
    const char *base; /* the model's path or name, base_model_name_or_path; NULL: none */
    int         end_;
} TN_KEYWORDS_ONLY tn_peft_save_args;
/* Writes the adapters, and the other parameters that are not frozen (tn_lora's .trained), to an existing directory. */
TN_API tn_status tn_peft_save_run(void *m, const char *dir, tn_peft_save_args a) TN_CHECKED;
/* Adds the directory's adapters to m, which tn_lora_merge merges, and reads the other parameters in it. If m has
 * adapters, they must be on the same layers. An error, for example for adapters of another model, changes nothing. */
TN_API tn_status tn_module_peft_load(void *m, const char *dir);

TN_C_END_
#define tn_peft_save(m, ...) TN_CALL_(tn_peft_save_run(TN_ANY_MODULE_(m), TN_PEFT_SAVE_(__VA_ARGS__, TN_END_)))
#define TN_PEFT_SAVE_(dir, ...) dir, TN_FILLED_(tn_peft_save_args, TN_NO_DEFAULTS_, __VA_ARGS__)
#define tn_peft_load(m, dir) tn_module_peft_load(TN_ANY_MODULE_(m), dir)

#endif
