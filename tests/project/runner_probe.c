/* runner_probe.c — tests that pass, fail, and leave things behind, for runner.sh to see what the runner says. */
#include "tests/common/check_main.h"

#include "core/core.h"
#include <fenv.h>

START_TEST(passes) { ck_assert_int_eq(tn_numel(tn_zeros(TN_SHAPE(2, 3))), 6); }
END_TEST

START_TEST(fails) { ck_assert_int_eq(tn_numel(tn_zeros(TN_SHAPE(2, 3))), 7); }
END_TEST

START_TEST(leaks) { tn_keep(tn_zeros(TN_SHAPE(2))); }
END_TEST

START_TEST(leaves_an_error) { tn_raise(TN_EINVAL, "probe: left behind"); }
END_TEST

START_TEST(rounds) { fesetround(FE_UPWARD); }
END_TEST

int main(void)
{
    Suite *s = suite_create("probe");
    TCase *c = tn_tcase(s, "probe");
    tcase_add_test(c, passes);
    tcase_add_test(c, fails);
    tcase_add_test(c, leaks);
    tcase_add_test(c, leaves_an_error);
    tcase_add_test(c, rounds);
    return tn_check_main(s);
}
