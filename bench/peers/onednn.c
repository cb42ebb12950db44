/* onednn.c — oneDNN 2 as a contender: its matmul primitive on plain row-major memory, described by strides, so that one
 * case covers all layouts and batches. Primitive and memory objects are created once and not timed; a call is timed
 * including its wait. */
#include "bench/peers/peer.h"

#include <dnnl.h>
#include <omp.h>
#include <stdio.h>

static dnnl_engine_t    engine;
static dnnl_stream_t    stream;
static dnnl_primitive_t product;
static dnnl_exec_arg_t  arg[3];

static bool run(void)
{
    return dnnl_primitive_execute(product, stream, 3, arg) == dnnl_success && dnnl_stream_wait(stream) == dnnl_success;
}

/* Describes [batch, rows, cols]; transposed: column-major. */
static bool describe(dnnl_memory_desc_t *d, dnnl_data_type_t dt, const peer_job *j, int64_t rows, int64_t cols, bool t)
{
    dnnl_dims_t dims = {j->batch, rows, cols};
    dnnl_dims_t strides = {rows * cols, t ? 1 : cols, t ? rows : 1};
    const int   from = j->batch == 1; /* a single product has two dims */
    return dnnl_memory_desc_init_by_strides(d, 3 - from, dims + from, dt, strides + from) == dnnl_success;
}

static const char *prepare(const peer_job *j, peer_work *w)
{
    const bool f32 = peer_is_gemm(j, "f32");
    if (!f32 && !peer_is_gemm(j, "bf16")) return "only f32 and bf16 products are supported";
    for (int i = 0; i < 3; i++) {
        if (arg[i].memory) dnnl_memory_destroy(arg[i].memory);
        arg[i].memory = NULL;
    }
    if (product) dnnl_primitive_destroy(product);
    product = NULL;
    omp_set_num_threads(j->threads);

    const dnnl_data_type_t dt = f32 ? dnnl_f32 : dnnl_bf16;
    const int64_t          bytes = f32 ? 4 : 2;
    const int64_t          count[3] = {j->m * j->k, j->k * j->n, j->m * j->n};
    const int              name[3] = {DNNL_ARG_SRC, DNNL_ARG_WEIGHTS, DNNL_ARG_DST};
    dnnl_memory_desc_t     d[3];
    dnnl_matmul_desc_t     op;
    dnnl_primitive_desc_t  chosen;
    if (!describe(&d[0], dt, j, j->m, j->k, j->ta) || !describe(&d[1], dt, j, j->k, j->n, j->tb) ||
        !describe(&d[2], dt, j, j->m, j->n, false))
        return "this shape is not supported";
    if (dnnl_matmul_desc_init(&op, &d[0], &d[1], NULL, &d[2]) != dnnl_success ||
        dnnl_primitive_desc_create(&chosen, &op, NULL, engine, NULL) != dnnl_success)
        return "this product is not supported";
    const dnnl_status_t made = dnnl_primitive_create(&product, chosen);
    dnnl_primitive_desc_destroy(chosen);
    if (made != dnnl_success) return "out of memory";
    for (int i = 0; i < 3; i++) {
        void *data = peer_array(i, j->batch * count[i], bytes, !f32);
        arg[i].arg = name[i];
        if (!data || dnnl_memory_create(&arg[i].memory, &d[i], engine, data) != dnnl_success) return "out of memory";
    }
    w->run = run;
    return NULL;
}

int main(void)
{
    char                  name[64];
    const dnnl_version_t *v = dnnl_version();
    if (dnnl_engine_create(&engine, dnnl_cpu, 0) != dnnl_success ||
        dnnl_stream_create(&stream, engine, dnnl_stream_default_flags) != dnnl_success)
        return 1;
    snprintf(name, sizeof name, "oneDNN %d.%d.%d", v->major, v->minor, v->patch);
    return peer_main(name, prepare);
}
