/* check_main.h — the runner and the fixture of every Check program of Tenon.
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
 * Arguments select the tests whose name contains one of them: build/bin/tests/test_sha256sums one_and.
 * Tests run in one process, without fork, so that sanitizers and valgrind see all of them. */
#ifndef TENON_TESTS_COMMON_CHECK_MAIN_H
#define TENON_TESTS_COMMON_CHECK_MAIN_H

#include <check.h>
#include <stdbool.h>

/* Check writes the position of every passed assertion to a pipe, for the parent of a child that crashes. These tests do
 * not fork, and sanitizers print a trace of a crash; the writes take up to a third of a test's time. */
#define _mark_point(file, line) ((void)0)

/* Runs the suite, prints the failures and returns the exit status of the program. A run without any test fails. */
int tn_check_main(Suite *s);

/* Adds a case to s. Each of its tests starts in a new scope without an error, and fails if it leaves an error or a live
 * tensor, or changes the state of the process (process.h). TENON_TEST_LOCALE sets the locale of the program. */
TCase *tn_tcase(Suite *s, const char *name);

/* tn_test_data: the path of "golden/x.safetensors" in the project's tests folder. tn_test_file: the path of a file in a
 * temporary folder of this run, which is deleted at the end. All paths are valid until the program ends. */
const char *tn_test_data(const char *name);
const char *tn_test_file(const char *name);
const char *tn_test_new_file(const char *name);            /* also deletes an existing file or folder of that name */
const char *tn_test_folder(const char *name);              /* also creates the folder */
const char *tn_test_in(const char *dir, const char *name); /* "dir/name" */

/* Removes SHA256SUMS of a saved model's folder, so that a test can change its files. */
void tn_test_unsummed(const char *dir);

/* 1 in a build with ThreadSanitizer; 1 in a build with it or with AddressSanitizer. */
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#ifdef __SANITIZE_THREAD__
#define TN_TEST_TSAN 1
#else
#define TN_TEST_TSAN 0
#endif
#define TN_TEST_SANITIZED 1
#elif defined(__has_feature)
#define TN_TEST_TSAN __has_feature(thread_sanitizer)
#define TN_TEST_SANITIZED (__has_feature(address_sanitizer) || __has_feature(thread_sanitizer))
#else
#define TN_TEST_TSAN 0
#define TN_TEST_SANITIZED 0
#endif
/* 1 if freed memory is kept for reuse; 0 in a build with TENON_CACHE=OFF, as those with sanitizers. */
#ifdef TENON_CACHE
#define TN_TEST_CACHE TENON_CACHE
#else
#define TN_TEST_CACHE 1
#endif
/* 1 in a build with AddressSanitizer, which forbids reading freed memory and reports it itself. */
#define TN_TEST_ASAN (TN_TEST_SANITIZED && !TN_TEST_TSAN)

/* True if programs run ten times slower than usual (valgrind, an emulator): use smaller sizes in tests of large inputs,
 * but do not skip checks. */
bool tn_test_slow(void);
/* True in tests/run --full, unless tn_test_slow: a test with many similar cases may then run all of them. */
bool tn_test_whole(void);

/* Restores the program's locale after a test that has changed it. */
void tn_test_locale(void);

/* Returns true if the command line selects the test. */
bool tn_test_wanted(const char *name);

#undef tcase_add_test
#undef tcase_add_loop_test
#define tcase_add_test(c, test) tcase_add_loop_test(c, test, 0, 1)
#define tcase_add_loop_test(c, test, from, to) \
    (tn_test_wanted(#test) ? _tcase_add_test((c), (test), 0, 0, (from), (to)) : (void)0)

#endif
