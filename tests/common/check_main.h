/* check_main.h — the tests of a Check program of Tenon, and their runner.
 *
 *     #include "tests/common/check_main.h" // and with it errors.h, bits.h and the usual headers of C
 *
 *     TEST(one_and_one) { ck_assert_int_eq(1 + 1, 2); }
 *     TEST_EACH(small_numbers, 10) { ck_assert_int_le(_i, 9); }
 *
 * A test needs no list and no main: each registers itself, and all run in the order of the file.
 * Arguments select the tests whose name contains one of them: build/bin/tests/test_sha256sums one_and.
 * Tests run in one process, without fork, so that sanitizers and valgrind see all of them. */
#ifndef TENON_TESTS_COMMON_CHECK_MAIN_H
#define TENON_TESTS_COMMON_CHECK_MAIN_H

#include <check.h>

#include "tests/common/bits.h"
#include "tests/common/errors.h"

#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>

/* Check writes the position of every passed assertion to a pipe, for the parent of a child that crashes. These tests do
 * not fork, and sanitizers print a trace of a crash; the writes take up to a third of a test's time. */
#define _mark_point(file, line) ((void)0)

/* TEST runs once, TEST_EACH n times with _i from 0 to n - 1, TEST_ROWS once for each element of an array. n may be
 * computed. Each run starts in a new scope without an error, and fails if it leaves an error or a live tensor, or
 * changes the state of the process (process.h). BARE_TESTs run without that, outside any scope, because they change the
 * allocator. TENON_TEST_LOCALE sets the locale of the program. */
#define TEST(name) TN_TEST(name, 0, 1, 0)
#define TEST_EACH(name, n) TN_TEST(name, 0, n, 0)
#define TEST_ROWS(name, rows) TN_TEST(name, 0, (int)(sizeof(rows) / sizeof *(rows)), 0)
#define BARE_TEST(name) TN_TEST(name, 0, 1, TN_TEST_BARE)
#define BARE_TEST_EACH(name, n) TN_TEST(name, 0, n, TN_TEST_BARE)
/* Runs before the other tests of the file: a test that needs a process without threads. */
#define FIRST_TEST(name) TN_TEST(name, 0, 1, TN_TEST_FIRST)
enum { TN_TEST_BARE = 1, TN_TEST_FIRST = 2 };
#define TN_TEST(name, from, to, how)                                        \
    static void                              name##_test(int _i);           \
    __attribute__((constructor)) static void name##_add(void)               \
    {                                                                       \
        static const TTest test = {#name, name##_test, __FILE__, __LINE__}; \
        tn_test_add(&test, from, to, how);                                  \
    }                                                                       \
    static void name##_test(int _i CK_ATTRIBUTE_UNUSED)
/* Calls begin before and end after each test that follows in the file, up to the next AROUND_TESTS, except bare tests.
 * Both may be NULL. */
#define AROUND_TESTS(begin, end) TN_AROUND(begin, end, __LINE__)
#define TN_AROUND(begin, end, line) TN_AROUND_AT(begin, end, line)
#define TN_AROUND_AT(begin, end, line)                                                               \
    __attribute__((constructor)) static void around_##line(void) { tn_test_around((begin), (end)); } \
    struct tn_test_nothing

void tn_test_add(const TTest *test, int from, int to, int how);
void tn_test_around(SFun begin, SFun end);

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

#endif
