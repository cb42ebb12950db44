/* test_gemm_tails.c — products read and write nothing outside their operands: each operand is adjacent to an
 * inaccessible page, after it or before it, for every size from 0 to 130. Elements are checked by sample; test_gemm.c
 * checks all of them, and the gaps between them. */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE /* MAP_ANONYMOUS */
#endif
#include "tests/common/gemm_reference.h"

#include <sys/mman.h>
#include <unistd.h>

enum { MOST = 130, REGIONS = 3 };

static struct {
    char  *begin;
    size_t bytes;
} region[REGIONS];

static void map_regions(void)
{
    const size_t page = (size_t)sysconf(_SC_PAGESIZE);
    for (int r = 0; r < REGIONS; r++) {
        const size_t bytes = ((MOST + 4) * (MOST + 8) * sizeof(double) + page - 1) / page * page;
        char        *all = mmap(NULL, bytes + 2 * page, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        ck_assert(all != MAP_FAILED);
        ck_assert_int_eq(mprotect(all + page, bytes, PROT_READ | PROT_WRITE), 0);
        region[r].begin = all + page, region[r].bytes = bytes;
    }
}

static void unmap_regions(void)
{
    const size_t page = (size_t)sysconf(_SC_PAGESIZE);
    for (int r = 0; r < REGIONS; r++) munmap(region[r].begin - page, region[r].bytes + 2 * page);
}
AROUND_TESTS(map_regions, unmap_regions);

static matrix placed(int r, bool at_end, tn_dtype dt, int64_t rows, int64_t cols, int layout)
{
    matrix m;
    set_layout(&m, dt, rows, cols, layout);
    const size_t bytes = (size_t)m.count * tn__dtype_bytes(dt);
    ck_assert_uint_le(bytes, region[r].bytes);
    m.data = region[r].begin + (at_end ? region[r].bytes - bytes : 0);
    fill(&m);
    return m;
}

static void check_sample(const tn__kernel_table *t, tn_dtype dt, bool at_end, int64_t m, int64_t n, int64_t k,
                         int layouts)
{
    const matrix  a = placed(0, at_end, dt, m, k, layouts & 1 ? COLUMNS : ROWS);
    const matrix  b = placed(1, at_end, dt, k, n, layouts & 2 ? COLUMNS : ROWS);
    const matrix  c = placed(2, at_end, dt, m, n, layouts & 4 ? COLUMNS : ROWS);
    tn__gemm_call g = call_of(t, 1, &a, &b, 0, &c);
    if (!tn__gemm_run(&g)) ck_abort_msg("%s", tn_error_message());
    if (m == 0 || n == 0) return;
    const int64_t is[] = {0, m - 1, pick(m)}, js[] = {n - 1, 0, pick(n)};
    for (int i = 0; i < 3; i++) expect(same(at(&c, is[i], js[i]), expected(fused(t), 1, &a, &b, 0, &c, is[i], js[i])));
}

TEST_EACH(tails, ISAS)
{
    static const tn_dtype   types[] = {TN_F32, TN_F64, TN_BF16};
    const tn__kernel_table *t = tn__kernels_of(isas[_i]);
    if (!t) return;
    for (int64_t s = 0; s <= MOST; s += s >= 20 && tn_test_slow() ? 3 : 1) { /* the guards need no sanitizer */
        for (int x = 0; x < 3 * 2 * 8; x++) {
            const tn_dtype dt = types[x % 3];
            const bool     end = x / 3 % 2;
            const int      layouts = x / 6;
            if (same_below(t, dt)) continue;
            if (s % 4 == layouts % 4 || s < 20) check_sample(t, dt, end, s, s, s, layouts);
            check_sample(t, dt, end, 1, s, 1 + pick(40), layouts);
            check_sample(t, dt, end, s, 1, 1 + pick(40), layouts);
            check_sample(t, dt, end, 1, 1 + pick(40), s, layouts);
            check_sample(t, dt, end, 1 + pick(20), 1 + pick(70), s, layouts);
            check_sample(t, dt, end, s, 1 + pick(70), 1 + pick(20), layouts);
            check_sample(t, dt, end, 1 + pick(20), s, 1 + pick(20), layouts);
        }
    }
}
