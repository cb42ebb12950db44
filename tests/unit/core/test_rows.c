/* test_rows.c — the kernels of the rows of softmax, norms and dropout: near the formula in f64, the same bits on every
 * instruction set, for every length of the last vector; nothing read or written outside the arrays. */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE /* MAP_ANONYMOUS */
#endif
#include "core/products/gemm.h"
#include "core/tensor/random.h"
#include "core/kernels/kernels.h"
#include "tests/common/check_main.h"

#include <sys/mman.h>
#include <unistd.h>

#define expect(truth, ...) ((truth) ? (void)0 : ck_abort_msg(__VA_ARGS__))

static const char *const isas[] = {"baseline", "avx2", "avx512"};
enum { ISAS = 3, MOST = 130, ROOMS = 8 };

/* ---- arrays that end at the end of memory, or start at its start ------------------------------------------------- */

static struct {
    char  *begin;
    size_t bytes;
} place[ROOMS];

static void map_places(void)
{
    const size_t page = (size_t)sysconf(_SC_PAGESIZE);
    for (int p = 0; p < ROOMS; p++) {
        char *all = mmap(NULL, 3 * page, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        ck_assert(all != MAP_FAILED);
        ck_assert_int_eq(mprotect(all + page, page, PROT_READ | PROT_WRITE), 0);
        place[p].begin = all + page, place[p].bytes = page;
    }
}
static void unmap_places(void)
{
    for (int p = 0; p < ROOMS; p++) munmap(place[p].begin - place[p].bytes, 3 * place[p].bytes);
}
AROUND_TESTS(map_places, unmap_places);
static void *room(int p, int64_t n, size_t size, bool front)
{
    memset(place[p].begin, 0x55, place[p].bytes);
    return place[p].begin + (front ? 0 : place[p].bytes - (size_t)n * size);
}
static bool untouched(int p, int64_t n, size_t size, bool front)
{
    const size_t at = front ? 0 : place[p].bytes - (size_t)n * size;
    for (size_t i = 0; i < place[p].bytes; i++)
        if ((i < at || i >= at + (size_t)n * size) && place[p].begin[i] != 0x55) return false;
    return true;
}

/* ---- one row through all kernels of a dtype ---------------------------------------------------------------------- */

enum { X, GY, W, B, Y, GX, GW, GB };
static const tn__dropped drop = {7, UINT64_MAX - 3, false, 0x5fffffffu, 1.6};

#define TN__TEMPLATE "tests/common/rows_case.h"
#include "core/real.h"

TEST(f32) { rows_f32(); }
TEST(f64) { rows_f64(); }

/* The words that dropout uses are Philox's, wherever a row starts; and many blocks at once equal single blocks. */
TEST(words)
{
    uint32_t all[4 * 300], one[4];
    for (int isa = 0; isa < ISAS; isa++) {
        const tn__kernel_table *t = tn__kernels_of(isas[isa]);
        if (!t) continue;
        for (int64_t blocks = 0; blocks < 300; blocks += blocks < 40 ? 1 : 83) {
            const uint64_t from = UINT64_MAX - 20 + (uint64_t)blocks;
            uint32_t      *to = blocks > 60 ? all : room(0, 4 * blocks, sizeof *to, false);
            t->philox(42, from, blocks, to);
            for (int64_t i = 0; i < blocks; i++) {
                tn__philox(42, from + (uint64_t)i, one);
                expect(!memcmp(one, to + 4 * i, sizeof one), "block %d of %d on %s", (int)i, (int)blocks, isas[isa]);
            }
            ck_assert(blocks > 60 || untouched(0, 4 * blocks, sizeof *to, false));
        }
    }
}
