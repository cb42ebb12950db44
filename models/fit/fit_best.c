/* fit_best.c — best.safetensors: the weights of the best validation, loaded at the end of a run. Its metadata contains
 * a checksum of all names and bytes, to detect damage before loading, and the step: a run killed between this file and
 * its checkpoint resumes before that step. Of a module with adapters the file has what is trained. */
#include "models/fit/fit_private.h"

static const char note[] = "tenon.fnv1a", step_note[] = "tenon.step";

/* The sum over all tensors, in any order, of each one's FNV-1a over name, shape and bytes. False: raised. */
static bool sum_of(const tn_safetensors *f, char to[17])
{
    uint64_t sum = 0;
    for (int64_t i = 0; i < tn_safetensors_count(f) && tn_error() == TN_OK; i++) {
        const tn_scope   s = tn_scope_begin();
        const char      *name = tn_safetensors_at(f, i).name;
        const tn_tensor *t = tn_safetensors_get_at(f, i);
        uint64_t         h = tn__fnv1a(TN__FNV1A, name, strlen(name) + 1);
        if (t) {
            for (int d = 0; d < tn_ndim(t); d++) h = tn__fnv1a_i64(h, tn_size(t, d));
            sum += tn__fnv1a(h, tn_data(t), (size_t)tn_numel(t) * tn_dtype_size(tn_dtype_of(t)));
        }
        tn_scope_end(s);
    }
    snprintf(to, 17, "%016llx", (unsigned long long)sum);
    return tn_error() == TN_OK;
}

/* The checksum covers the file's content, so the file is first written without it, in memory. */
bool tn__fit_best_save(void *module, const char *path, int64_t step)
{
    char                   sum[17], at[24];
    const tn_scope         s = tn_scope_begin();
    tn_safetensors_writer *w = tn_safetensors_writer_new();
    const tn_save_args     a = {.writer = w, .trained_only = tn_module_has_lora(module)};
    const bool             put = w && tn_save_run(module, a) == TN_OK;
    const tn_tensor       *bytes = put ? tn_safetensors_write(w) : NULL;
    tn_safetensors        *f = bytes ? tn_safetensors_read(tn_data(bytes), (size_t)tn_numel(bytes)) : NULL;
    snprintf(at, sizeof at, "%lld", (long long)step);
    (void)(f && sum_of(f, sum) && tn_safetensors_note(w, note, sum) == TN_OK &&
           tn_safetensors_note(w, step_note, at) == TN_OK && tn_safetensors_save(w, path) == TN_OK);
    tn_safetensors_close(f);
    tn_safetensors_writer_free(w);
    tn_scope_end(s);
    return tn_error() == TN_OK;
}

bool tn__fit_best_load(void *module, const char *path, int64_t step)
{
    char            sum[17], at[24];
    tn_safetensors *f = tn_safetensors_open(path);
    const char     *should = tn_safetensors_metadata(f, note), *of = tn_safetensors_metadata(f, step_note);
    snprintf(at, sizeof at, "%lld", (long long)step);
    if (f && of && strcmp(of, at) != 0)
        tn_raise(TN_EFORMAT,
                 "tn_fit: '%.200s' has the weights of step %.20s, but the best value of this run is of step %s: an "
                 "earlier run was killed before its checkpoint; the model has the weights of the last step",
                 path, of, at);
    if (f && tn_error() == TN_OK && sum_of(f, sum) && should && strcmp(sum, should) != 0)
        tn_raise(TN_EFORMAT,
                 "tn_fit: '%.200s' is damaged: its checksum is %s, expected %.16s; the model has the weights of the "
                 "last step, unset .restore_best to accept them",
                 path, sum, should);
    tn_safetensors_close(f);
    const tn_load_args a = {.path = path, .allow_missing = tn_module_has_lora(module)}; /* the frozen parameters */
    return tn_error() == TN_OK && tn_load_run(module, a) == TN_OK;
}

void tn__fit_best_sums(void *module, tn__run_entry *to)
{
    tn_json *state = tn_checkpoint_state(.module = module, .trained_only = tn_module_has_lora(module));
    uint64_t sums[3];
    tn__record_sums(state, module, sums); /* of ranks, only checkpoints have the rows of all */
    to->sums[0] = sums[0];
    tn_json_free(state);
}
