/* replay.c — runs a fuzz target over files and folders of files, without libFuzzer, and over no bytes: every build
 * tests all inputs that fuzzing has found. A missing folder counts as empty. */
#define _GNU_SOURCE
#include <dirent.h>
#include <errno.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static int runs;

static int run_file(const char *path)
{
    FILE *f = fopen(path, "rb");
    if (!f) return perror(path), 1;
    uint8_t *data = NULL;
    size_t   size = 0, room = 0, got = 1;
    while (got) {
        if (size == room) data = realloc(data, room = 2 * room + 4096);
        if (!data) return fclose(f), 1;
        size += got = fread(data + size, 1, room - size, f);
    }
    fclose(f);
    uint8_t *exact = malloc(size ? size : 1); /* so that a sanitizer detects reading one byte too many */
    if (exact && data) LLVMFuzzerTestOneInput(memcpy(exact, data, size), size), runs++;
    free(exact);
    free(data);
    return !exact;
}

static int run(const char *path)
{
    struct dirent **list;
    int             n = scandir(path, &list, NULL, alphasort), failed = 0;
    if (n < 0 && errno == ENOTDIR) return run_file(path);
    for (int i = 0; i < n; i++) {
        char inner[4096];
        if (*list[i]->d_name != '.')
            failed |= (size_t)snprintf(inner, sizeof inner, "%s/%s", path, list[i]->d_name) >= sizeof inner ||
                      run_file(inner);
        free(list[i]);
    }
    if (n >= 0) free(list);
    return failed;
}

int main(int argc, char **argv)
{
    int failed = 0;
    LLVMFuzzerTestOneInput((const uint8_t *)"", 0);
    for (int i = 1; i < argc; i++) failed |= run(argv[i]);
    printf("%d inputs\n", runs);
    return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
