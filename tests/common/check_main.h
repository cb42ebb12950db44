/* check_main.h — what every Check program of Tenon shares.
 *
 *     #include "tests/common/check_main.h"
 *
 *     START_TEST(one_and_one) { ck_assert_int_eq(1 + 1, 2); } END_TEST
 *
 *     int main(void)
 *     {
 *         Suite *s = suite_create("sums");
 *         TCase *c = tn_tcase(s, "small");
 *         tcase_add_test(c, one_and_one);
 *         return tn_check_main(s);
 *     }
 *
 * Run with arguments, only the tests are run whose name contains one of them: build/bin/tests/test_sums one_and.
 * Tests run in one process, without fork: gcc's OpenMP hangs in a child forked after a parallel region. */
#ifndef TENON_TESTS_COMMON_CHECK_MAIN_H
#define TENON_TESTS_COMMON_CHECK_MAIN_H

#include <check.h>
#include <stdbool.h>

/* Check writes the place of every assertion that holds into a pipe, for the parent of a child that crashes. Nothing
 * forks here, and a crash has a sanitizer's trace; the writes are up to a third of a test's time. */
#define _mark_point(file, line) ((void)0)

/* Runs the suite, prints the failures and returns the exit status of the program. A run of no test at all fails. */
int tn_check_main(Suite *s);

/* A case in s whose tests each start in a fresh scope with no standing error, and fail if they leave an error or a live
 * tensor behind, or the process other than it was (process.h). TENON_TEST_LOCALE: the locale of the whole program. */
TCase *tn_tcase(Suite *s, const char *name);

/* "golden/x.safetensors" as a path in the project's tests folder; and a name in a folder of this run's own, which is
 * removed at the end. Both live until the program ends. */
const char *tn_test_data(const char *name);
const char *tn_test_file(const char *name);
const char *tn_test_new_file(const char *name);            /* nothing of that name is there any more */
const char *tn_test_folder(const char *name);              /* there is a folder of that name */
const char *tn_test_in(const char *dir, const char *name); /* "dir/name", which lives as long */

/* What is written to a saved model's folder now is meant so: removes its SHA256SUMS. */
void tn_test_unsummed(const char *dir);

/* Is this AddressSanitizer's or ThreadSanitizer's build? */
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define TN_TEST_SANITIZED 1
#elif defined(__has_feature)
#define TN_TEST_SANITIZED (__has_feature(address_sanitizer) || __has_feature(thread_sanitizer))
#else
#define TN_TEST_SANITIZED 0
#endif

/* True where a program runs ten times slower than usual (valgrind, an emulator): tests of mere size make themselves
 * smaller. Never a reason to check less. */
bool tn_test_slow(void);
/* True in tests/run --full, where it does not run slower: a test of many alike may then do all of them. */
bool tn_test_whole(void);

/* Brings back the program's locale behind a test that has set one. */
void tn_test_locale(void);

/* Is the test asked for on the command line? */
bool tn_test_wanted(const char *name);

#undef tcase_add_test
#undef tcase_add_loop_test
#define tcase_add_test(c, test) tcase_add_loop_test(c, test, 0, 1)
#define tcase_add_loop_test(c, test, from, to) \
    (tn_test_wanted(#test) ? _tcase_add_test((c), (test), 0, 0, (from), (to)) : (void)0)

#endif
