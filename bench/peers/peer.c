/* peer.c — the main loop of a contender: reads jobs, prints times. */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE /* clock_gettime */
#endif
#include "bench/peers/peer.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

double peer_now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

bool peer_is_gemm(const peer_job *j, const char *dtype)
{
    return !strncmp(j->kernel, "gemm_", 5) && !strcmp(j->kernel + 5, dtype);
}

void *peer_array(int slot, int64_t count, int64_t bytes, bool bf16_bits)
{
    static void    *held[8];
    static uint64_t state = 0x9e3779b97f4a7c15u;
    free(held[slot]);
    size_t size = ((size_t)(count * bytes) + 4095) & ~(size_t)4095;
    if (!(held[slot] = aligned_alloc(4096, size))) return NULL;
    for (int64_t i = 0; i < count; i++) {
        state = state * 6364136223846793005u + 1442695040888963407u;
        float    f = (float)(state >> 40) / 8388608.0f - 1.0f;
        uint32_t u;
        memcpy(&u, &f, sizeof u);
        if (bf16_bits) ((uint16_t *)held[slot])[i] = (uint16_t)(u >> 16);
        else if (bytes == 8) ((double *)held[slot])[i] = (double)f;
        else ((float *)held[slot])[i] = f;
    }
    return held[slot];
}

/* Returns the next word of a line, terminated in place, and advances *line; "" at the end. */
static char *word(char **line)
{
    char *s = *line + strspn(*line, " \n"), *end = s + strcspn(s, " \n");
    *line = *end ? end + 1 : end;
    *end = 0;
    return s;
}

/* Parses a job. A size is "512x128x128", for a batch "64x128x128x64"; T in the layout means transposed. */
static bool parse(char *line, peer_job *j, double *seconds)
{
    *j = (peer_job){.batch = 1};
    snprintf(j->kernel, sizeof j->kernel, "%s", word(&line));
    snprintf(j->size, sizeof j->size, "%s", word(&line));
    snprintf(j->layout, sizeof j->layout, "%s", word(&line));
    j->threads = (int)strtol(word(&line), NULL, 10);
    *seconds = strtod(word(&line), NULL);
    const char *at = j->size;
    while (j->numbers < 4) {
        char *end;
        j->number[j->numbers++] = strtoll(at, &end, 10);
        if (end == at || (*end && *end != 'x')) return false;
        if (!*end) break;
        at = end + 1;
    }
    if (j->numbers >= 3) {
        const int64_t *d = j->number + (j->numbers - 3);
        j->m = d[0], j->n = d[1], j->k = d[2];
        if (j->numbers == 4) j->batch = j->number[0];
    }
    j->ta = j->layout[0] == 'T', j->tb = j->layout[0] && j->layout[1] == 'T';
    return j->threads > 0 && *seconds > 0;
}

/* The best time of a call, in seconds. Short calls are timed in groups, so that reading the clock has little effect. */
static double best_call(const peer_work *w, double seconds)
{
    enum { MOST = 1000 };
    double took = 0, best = INFINITY;
    for (int i = 0; i < 2; i++) { /* the second call runs with warm caches */
        if (w->before && !w->before()) return -1;
        double start = peer_now();
        if (!w->run()) return -1;
        took = peer_now() - start;
    }
    double fit = took > 0 ? 50e-6 / took : MOST, start = peer_now();
    int    calls = w->before || fit < 1 ? 1 : fit > MOST ? MOST : (int)fit;
    do {
        if (w->before && !w->before()) return -1;
        double from = peer_now();
        for (int i = 0; i < calls; i++)
            if (!w->run()) return -1;
        took = (peer_now() - from) / calls;
        if (took < best) best = took;
    } while (peer_now() - start < seconds);
    return best;
}

int peer_main(const char *name, peer_prepare *prepare)
{
    char        line[256], last[128] = "";
    peer_work   w = {0};
    const char *why = "no job yet";
    printf("ready %s\n", name);
    fflush(stdout);
    while (fgets(line, sizeof line, stdin)) {
        peer_job j;
        double   seconds = 0, best = -1;
        char     what[128];
        if (!parse(line, &j, &seconds)) {
            why = "not a job";
            last[0] = 0;
        } else {
            snprintf(what, sizeof what, "%s %s %s %d", j.kernel, j.size, j.layout, j.threads);
            if (strcmp(what, last) != 0) {
                w = (peer_work){.extra = -1};
                why = prepare(&j, &w);
                snprintf(last, sizeof last, "%s", what);
            }
            if (!why && (best = best_call(&w, seconds)) < 0) why = "it failed";
        }
        if (why) printf("no %s\n", why);
        else printf("ok %.3f %.3f\n", best * 1e9, w.extra);
        fflush(stdout);
    }
    return 0;
}
