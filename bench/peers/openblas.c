/* openblas.c — OpenBLAS as a contender: cblas_sgemm and cblas_dgemm; a batch is a parallel loop over one-threaded
 * calls. OPENBLAS_CORETYPE, which `bench kernels` sets, selects its kernels. */
#include "bench/peers/peer.h"

#include <cblas.h>
#include <omp.h>

static peer_job    job;
static const void *a, *b;
static void       *c;

static void one(int64_t i)
{
    enum CBLAS_TRANSPOSE ta = job.ta ? CblasTrans : CblasNoTrans, tb = job.tb ? CblasTrans : CblasNoTrans;
    const blasint        m = (blasint)job.m, n = (blasint)job.n, k = (blasint)job.k;
    const blasint        lda = job.ta ? m : k, ldb = job.tb ? k : n;
    const int64_t        at = i * job.m * job.k, bt = i * job.k * job.n, ct = i * job.m * job.n;
    if (peer_is_gemm(&job, "f32"))
        cblas_sgemm(CblasRowMajor, ta, tb, m, n, k, 1, (const float *)a + at, lda, (const float *)b + bt, ldb, 0,
                    (float *)c + ct, n);
    else
        cblas_dgemm(CblasRowMajor, ta, tb, m, n, k, 1, (const double *)a + at, lda, (const double *)b + bt, ldb, 0,
                    (double *)c + ct, n);
}

static bool run(void)
{
    if (job.batch == 1) return one(0), true;
#pragma omp parallel for num_threads(job.threads)
    for (int64_t i = 0; i < job.batch; i++) one(i);
    return true;
}

static const char *prepare(const peer_job *j, peer_work *w)
{
    const bool f32 = peer_is_gemm(j, "f32");
    if (!f32 && !peer_is_gemm(j, "f64")) return "only f32 and f64 products are supported";
    job = *j;
    const int64_t bytes = f32 ? 4 : 8;
    a = peer_array(0, j->batch * j->m * j->k, bytes, false);
    b = peer_array(1, j->batch * j->k * j->n, bytes, false);
    c = peer_array(2, j->batch * j->m * j->n, bytes, false);
    if (!a || !b || !c) return "out of memory";
    openblas_set_num_threads(j->threads);
    omp_set_num_threads(j->threads); /* for the loop over a batch and for OpenBLAS itself */
    w->run = run;
    return NULL;
}

int main(void) { return peer_main(openblas_get_config(), prepare); }
