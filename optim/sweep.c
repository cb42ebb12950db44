/* sweep.c — one pass over the elements of many tensors, distributed over the threads as if they were one list. */
#include "optim/sweep.h"

#include "core/kernels/kernels.h"

enum { CHUNK = 16384 };

/* ---- allocation -------------------------------------------------------------------------------------------------- */

static size_t piece_bytes(const tn__sweep *w) { return (size_t)w->room * TN__SUMS * sizeof *w->piece; }

bool tn__sweep_init(tn__sweep *w, int64_t segments, int64_t elements)
{
    *w = (tn__sweep){.most = segments, .room = elements / CHUNK + 1 + segments};
    if ((w->segment = tn_mem_get((size_t)segments * sizeof *w->segment)) &&
        (w->from = tn_mem_get((size_t)segments * sizeof *w->from)) && (w->piece = tn_mem_get(piece_bytes(w))))
        return true;
    tn__sweep_free(w);
    return false;
}

bool tn__sweep_reserve(tn__sweep *w, int64_t segments, int64_t elements)
{
    tn__sweep more;
    if (segments <= w->most && elements / CHUNK + 1 + segments <= w->room) return true;
    if (!tn__sweep_init(&more, 2 * segments, elements)) return false;
    tn__sweep_free(w);
    *w = more;
    return true;
}

void tn__sweep_free(tn__sweep *w)
{
    tn_mem_put(w->segment, (size_t)w->most * sizeof *w->segment);
    tn_mem_put(w->from, (size_t)w->most * sizeof *w->from);
    tn_mem_put(w->piece, piece_bytes(w));
    *w = (tn__sweep){0};
}

void tn__sweep_clear(tn__sweep *w) { w->count = w->total = 0; }

tn__segment *tn__sweep_add(tn__sweep *w, tn_dtype dt, int64_t n, void *p, void *g)
{
    tn__segment *s = w->segment + w->count;
    *s = (tn__segment){.n = n, .dtype = dt, .p = p, .g = g};
    w->from[w->count++] = w->total;
    w->total += n;
    return s;
}

/* ---- running ----------------------------------------------------------------------------------------------------- */

static void run_piece(const tn__segment *s, const tn__sweep_pass *k, int64_t at, int64_t n, double sum[TN__SUMS])
{
    if (s->dtype == TN_BF16) {
        tn__sweep_bf16(s, k, at, n, sum);
        return;
    }
    const int64_t size = s->dtype == TN_F64 ? (int64_t)sizeof(double) : (int64_t)sizeof(float);
    char *const   p = s->p ? (char *)s->p + at * size : NULL;
    (s->dtype == TN_F64 ? k->f64 : k->f32)(s, at, n, p, s->g ? (char *)s->g + at * size : NULL, sum);
    if (s->copy && k->flags & TN__WRITES_P) tn__kernels()->to_bf16(n, s->copy + at, (const float *)(const void *)p);
}

/* The index of the segment with element `at` of the list. */
static int64_t segment_at(const tn__sweep *w, int64_t at)
{
    int64_t low = 0, high = w->count;
    while (high - low > 1) {
        const int64_t middle = low + (high - low) / 2;
        if (w->from[middle] <= at) low = middle;
        else high = middle;
    }
    return low;
}

typedef struct {
    const tn__sweep *w;
    tn__sweep_pass   k;
} job;

/* From one piece to the next, the chunk index, the segment index or both increase by one, so their sum is the index of
 * the piece. Moments of a weight without gradients decay to denormals, on which arithmetic is about 100 times slower;
 * therefore denormals are treated as 0 here. */
static void run_chunks(int64_t from, int64_t to, void *user)
{
    const job       *j = user;
    const tn__sweep *w = j->w;
    const uint64_t   before = tn__denormals_off();
    for (int64_t c = from; c < to; c++) {
        int64_t       at = c * CHUNK;
        const int64_t end = w->total - at < CHUNK ? w->total : at + CHUNK;
        for (int64_t s = segment_at(w, at); at < end; s++) {
            const tn__segment *segment = w->segment + s;
            const int64_t local = at - w->from[s], n = segment->n - local < end - at ? segment->n - local : end - at;
            double        sum[TN__SUMS] = {0};
            run_piece(segment, &j->k, local, n, sum);
            memcpy(w->piece + (c + s) * TN__SUMS, sum, sizeof sum);
            at += n;
        }
    }
    tn__denormals_restore(before);
}

void tn__sweep_run(tn__sweep *w, tn__sweep_pass k)
{
    if (!w->total) return;
    job j = {w, k};
    tn_parallel_for((w->total - 1) / CHUNK + 1, 1, run_chunks, &j);
    for (int64_t s = 0; s < w->count; s++) {
        tn__segment *segment = w->segment + s;
        for (int i = 0; i < TN__SUMS; i++) {
            double sum = 0;
            for (int64_t c = w->from[s] / CHUNK; c <= (w->from[s] + segment->n - 1) / CHUNK; c++) {
                const double piece = w->piece[(c + s) * TN__SUMS + i];
                sum = k.flags & TN__LARGEST ? tn__larger(sum, piece) : sum + piece;
            }
            segment->sum[i] = sum;
        }
    }
}
