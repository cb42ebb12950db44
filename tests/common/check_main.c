/* check_main.c — the main, the fixture and the temporary files of every Check program. See check_main.h. */
#define _GNU_SOURCE
#include "tests/common/check_main.h"

#include "core/core.h"
#include "tests/common/faults.h"
#include "tests/common/process.h"
#include <ftw.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* ---- selection of tests: C libraries pass the arguments to a constructor, so that main can be main(void) ---- */

static int    asked;
static char **names;

__attribute__((constructor)) static void remember(int argc, char **argv)
{
#ifdef _WIN32 /* its C library has variables for them */
    argc = __argc, argv = __argv;
#endif
    asked = argc > 1 ? argc - 1 : 0;
    names = argv + 1;
}

bool tn_test_wanted(const char *name)
{
    for (int i = 0; i < asked; i++)
        if (strstr(name, names[i])) return true;
    return !asked;
}

bool tn_test_slow(void) { return getenv("TENON_TEST_SLOW") != NULL; }
bool tn_test_whole(void)
{
    const char *config = getenv("TENON_CONFIG");
    return config && !strcmp(config, "full") && !tn_test_slow();
}

void tn_test_locale(void)
{
    const char *name = getenv("TENON_TEST_LOCALE");
    if (setlocale(LC_ALL, name ? name : "C")) return;
    fprintf(stderr, "there is no locale %s\n", name);
    exit(EXIT_FAILURE);
}

/* ---- files ---- */

typedef struct text {
    struct text *next;
    char         s[];
} text;

static text *paths;
static char  folder[PATH_MAX];

static const char *joined(const char *in, const char *name)
{
    size_t size = strlen(in) + strlen(name) + 2;
    text  *t = malloc(sizeof *t + size);
    if (!t) exit(EXIT_FAILURE);
    snprintf(t->s, size, "%s/%s", in, name);
    for (const text *old = paths; old; old = old->next) {
        if (strcmp(old->s, t->s) != 0) continue;
        free(t);
        return old->s;
    }
    t->next = paths;
    paths = t;
    return t->s;
}

const char *tn_test_data(const char *name) { return joined(TENON_TEST_DATA, name); }

const char *tn_test_file(const char *name)
{
    if (!*folder) {
        const char *base = getenv("TMPDIR");
        snprintf(folder, sizeof folder, "%s/tenon-test-XXXXXX", base && *base ? base : "/tmp");
        if (!mkdtemp(folder)) {
            perror(folder);
            exit(EXIT_FAILURE);
        }
    }
    return joined(folder, name);
}

void tn_test_unsummed(const char *dir)
{
    char path[1100];
    snprintf(path, sizeof path, "%s/SHA256SUMS", dir);
    unlink(path);
}

static int remove_one(const char *path, const struct stat *st, int kind, struct FTW *where)
{
    (void)st, (void)kind, (void)where;
    return remove(path);
}

static void remove_all(const char *path) { nftw(path, remove_one, 8, FTW_DEPTH | FTW_PHYS); }

const char *tn_test_new_file(const char *name)
{
    const char *path = tn_test_file(name);
    remove_all(path);
    return path;
}

const char *tn_test_folder(const char *name)
{
    const char *path = tn_test_file(name);
    mkdir(path, 0777);
    return path;
}

const char *tn_test_in(const char *dir, const char *name) { return joined(dir, name); }

static void forget_files(void)
{
    if (*folder) remove_all(folder);
    *folder = 0;
    while (paths) {
        text *next = paths->next;
        free(paths);
        paths = next;
    }
}

/* ---- the fixture ---- */

static tn_scope   around;
static int64_t    alive;
static tn_process process;

static void begin(void)
{
    tn_clear_error();
    tn_set_threads(0);
    tn_use_generator(NULL);
    tn_seed(0);
    alive = tn_memory_now().tensors;
    around = tn_scope_begin();
    tn_process_now(&process);
}

/* Restores the state before it checks anything, so that a failing test does not affect the next one. */
static void end(void)
{
    static char left[sizeof((tn_error_state *)0)->text + 100];
    snprintf(left, sizeof left, "%s", tn_error_message());
    tn_status error = tn_error();
    tn_clear_error();
    tn_scope_end(around);
    int64_t    more = tn_memory_now().tensors - alive;
    tn_process now;
    tn_process_now(&now);
    const char *other = tn_process_differs(&process, &now);
    ck_assert_msg(!other, "the test, or what it called, has changed %s", other);
    ck_assert_msg(error == TN_OK, "the test left an error behind: %s: %s", tn_status_name(error), left);
    ck_assert_msg(more == 0, "the test left %lld tensors alive", (long long)more);
}

/* ---- the tests, which register themselves before main ---- */

typedef struct {
    const TTest *test;
    int          from, to, how;
    SFun         begin, end;
} entry;

static entry *entries; /* without a test: what tn_test_around was given */
static int    count;

static void append(entry e)
{
    entries = realloc(entries, (size_t)(count + 1) * sizeof *entries);
    if (!entries) exit(EXIT_FAILURE);
    entries[count++] = e;
}
void tn_test_around(SFun first, SFun last) { append((entry){NULL, 0, 0, 0, first, last}); }
void tn_test_add(const TTest *test, int from, int to, int how) { append((entry){test, from, to, how, NULL, NULL}); }

/* The entries in the order of the file, tests only. */
static void sort(void)
{
    entry now = {0};
    int   n = 0;
#ifdef _WIN32 /* where the last constructor of a file is called first */
    for (int i = 0, k = count - 1; i < k; i++, k--) now = entries[i], entries[i] = entries[k], entries[k] = now;
    now = (entry){0};
#endif
    for (int i = 0; i < count; i++) {
        if (!entries[i].test) now = entries[i];
        else entries[n] = entries[i], entries[n].begin = now.begin, entries[n++].end = now.end;
    }
    count = n;
}

static void add(Suite *s, const entry *e)
{
    TCase *c = tcase_create(e->test->name);
    if (!(e->how & TN_TEST_BARE)) {
        tcase_add_checked_fixture(c, begin, end);
        tcase_add_checked_fixture(c, e->begin, e->end);
    }
    _tcase_add_test(c, e->test, 0, 0, e->from, e->to);
    suite_add_tcase(s, c);
}

/* A run without any test fails. */
int main(void)
{
    tn_test_locale();
    sort();
    Suite *s = suite_create(count ? entries[0].test->file : "tests");
    for (int first = TN_TEST_FIRST; first >= 0; first -= TN_TEST_FIRST)
        for (int i = 0; i < count; i++)
            if ((entries[i].how & TN_TEST_FIRST) == first && tn_test_wanted(entries[i].test->name)) add(s, &entries[i]);
    SRunner *r = srunner_create(s);
    srunner_set_fork_status(r, CK_NOFORK);
    srunner_run_all(r, CK_NORMAL);
    int run = srunner_ntests_run(r), failed = srunner_ntests_failed(r);
    srunner_free(r);
    free(entries);
    forget_files();
    if (tn_faults_of_memory() || tn_faults_of_files())
        printf("faults: %lld allocations and %lld calls on files were made to fail\n", (long long)tn_faults_of_memory(),
               (long long)tn_faults_of_files());
    if (!run) fprintf(stderr, "no test of that name\n");
    return run && !failed ? EXIT_SUCCESS : EXIT_FAILURE;
}
