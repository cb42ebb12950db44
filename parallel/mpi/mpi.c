/* mpi.c — the transport for MPI: the only file that uses MPI, in a separate library (tenon::mpi), so that programs with
 * one process need no MPI. Includes only Tenon's public headers.
 *
 * Each function calls the non-blocking form of a collective and waits for it with pauses of up to 0.1 ms. With more
 * ranks than cores, a waiting rank so leaves the core to a computing one. */
#define _GNU_SOURCE /* nanosleep */
#include "parallel/parallel.h"

#include <mpi.h>
#include <string.h>
#include <time.h>

typedef struct {
    MPI_Comm comm;
    bool     started; /* this world called MPI_Init_thread */
} ranks;

static tn_status check(int code, const char *what)
{
    char text[MPI_MAX_ERROR_STRING + 1] = "";
    int  length = 0;
    if (code == MPI_SUCCESS) return TN_OK;
    MPI_Error_string(code, text, &length);
    return tn_raise(TN_EIO, "MPI: %s failed: %s; another rank may have ended", what, text);
}

static tn_status finish(MPI_Request *request, int code, const char *what)
{
    enum { SPINS = 2000, MOST_NS = 100000 };
    long ns = 1000;
    int  done = 0;
    for (int i = 0; code == MPI_SUCCESS && !done; i++) {
        code = MPI_Test(request, &done, MPI_STATUS_IGNORE);
        if (done || i < SPINS) continue;
        nanosleep(&(struct timespec){.tv_nsec = ns}, NULL);
        if (ns < MOST_NS) ns *= 2;
    }
    return check(code, what);
}

static tn_status mpi_gather(void *user, const void *mine, void *all, int bytes)
{
    const ranks *r = user;
    MPI_Request  q = MPI_REQUEST_NULL;
    return finish(&q, MPI_Iallgather(mine, bytes, MPI_BYTE, all, bytes, MPI_BYTE, r->comm, &q), "MPI_Iallgather");
}

static tn_status mpi_broadcast(void *user, void *data, int bytes, int from)
{
    const ranks *r = user;
    MPI_Request  q = MPI_REQUEST_NULL;
    return finish(&q, MPI_Ibcast(data, bytes, MPI_BYTE, from, r->comm, &q), "MPI_Ibcast");
}

static tn_status mpi_swap(void *user, const void *out, const int *out_bytes, const int *out_at, void *in,
                          const int *in_bytes, const int *in_at)
{
    const ranks *r = user;
    MPI_Request  q = MPI_REQUEST_NULL;
    const int    code = MPI_Ialltoallv(out, out_bytes, out_at, MPI_BYTE, in, in_bytes, in_at, MPI_BYTE, r->comm, &q);
    return finish(&q, code, "MPI_Ialltoallv");
}

static tn_status mpi_sum(void *user, void *data, int count, bool f64)
{
    const ranks *r = user;
    MPI_Request  q = MPI_REQUEST_NULL;
    const int    code = MPI_Iallreduce(MPI_IN_PLACE, data, count, f64 ? MPI_DOUBLE : MPI_FLOAT, MPI_SUM, r->comm, &q);
    return finish(&q, code, "MPI_Iallreduce");
}

/* Finalises MPI if this world has started it. */
static void mpi_free(void *user)
{
    ranks *r = user;
    int    over = 0;
    MPI_Finalized(&over);
    if (!over && r->comm != MPI_COMM_NULL) MPI_Comm_free(&r->comm);
    if (!over && r->started) MPI_Finalize();
    tn_mem_put(r, sizeof *r);
}

/* True if all ranks are on one machine (share memory). */
static bool one_machine(const ranks *r, int size)
{
    MPI_Comm near = MPI_COMM_NULL;
    int      n = 0;
    if (check(MPI_Comm_split_type(r->comm, MPI_COMM_TYPE_SHARED, 0, MPI_INFO_NULL, &near), "MPI_Comm_split_type"))
        return false;
    MPI_Comm_size(near, &n);
    MPI_Comm_free(&near);
    return n == size;
}

tn_world *tn_world_mpi(const void *communicator)
{
    if (tn_error() != TN_OK) return NULL;
    int    begun = 0, over = 0, level;
    ranks *r = tn_mem_get(sizeof *r);
    if (!r) return NULL;
    tn_transport t = {
        .size = 1, .user = r, .gather = mpi_gather, .broadcast = mpi_broadcast, .swap = mpi_swap, .sum = mpi_sum};
    r->comm = MPI_COMM_NULL;
    t.free = mpi_free;
    MPI_Finalized(&over);
    MPI_Initialized(&begun);
    if (over) {
        tn_raise(TN_ESTATE, "tn_world_mpi: MPI is finalised already and cannot be initialised again");
    } else if (!begun) {
        r->started = check(MPI_Init_thread(NULL, NULL, MPI_THREAD_SERIALIZED, &level), "MPI_Init_thread") == TN_OK;
    }
    MPI_Comm from = MPI_COMM_WORLD;
    if (communicator) memcpy(&from, communicator, sizeof from);
    if (tn_error() == TN_OK) check(MPI_Comm_dup(from, &r->comm), "MPI_Comm_dup");
    if (tn_error() != TN_OK) {
        mpi_free(r);
        return NULL;
    }
    MPI_Comm_set_errhandler(r->comm, MPI_ERRORS_RETURN);
    MPI_Comm_rank(r->comm, &t.rank);
    MPI_Comm_size(r->comm, &t.size);
    t.near = one_machine(r, t.size);
    return tn_world_from_transport(t);
}
