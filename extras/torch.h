/* torch.h — reads the state dicts that PyTorch's torch.save wrote. Part of extras.h: include that.
 *
 *     tn_safetensors *f = tn_torch_open("pytorch_model.bin");
 *     if (f) weight = tn_safetensors_get(f, "encoder.weight");
 *     tn_safetensors_close(f); */
#ifndef TENON_EXTRAS_TORCH_H
#define TENON_EXTRAS_TORCH_H

#include "../core/files.h"

TN_C_BEGIN_

/* Opens what torch.save wrote of a state dict, pytorch_model.bin: today's zip format and the older one. A pickle is a
 * program: only the part that state dicts of plain tensors need is read, nothing is run, and any other name in it is an
 * error. Checkpoints that hold a state dict as "state_dict", "model_state_dict" or "model" are read, too. After
 * tn_extras_register, a model's directory may have its weights in pytorch_model.bin. */
TN_API tn_safetensors *tn_torch_open(const char *path);
TN_API tn_safetensors *tn_torch_read(const void *data, size_t bytes); /* borrows data until it is closed */

TN_C_END_
#endif
