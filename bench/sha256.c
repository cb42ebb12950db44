/* sha256.c — SHA-256 of the weights of a module, to check that two runs ended with the same bits. */
#include "core/base/checksums.h"
#include "bench/bench.h"

void bench_sha256(void *module, char hex[65])
{
    tn__sha256 s = tn__sha256_begin();
    for (tn_each p = tn_module_each(module, TN_EACH_PARAMETER); tn_next(&p);)
        tn__sha256_put(&s, tn_data(p.tensor), (size_t)tn_numel(p.tensor) * tn_dtype_size(tn_dtype_of(p.tensor)));
    tn__sha256_end(&s, hex);
}
