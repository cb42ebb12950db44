/* posix.h — what the unit tests use of POSIX and macOS lacks. CMake includes it before each of their files; it does not
 * build those that `excluded` lists. */
#ifndef TENON_TESTS_COMMON_MACOS_POSIX_H
#define TENON_TESTS_COMMON_MACOS_POSIX_H

#include "core/system/system.h"

typedef struct {
    pthread_mutex_t lock;
    pthread_cond_t  all_came;
    unsigned        size, came, round;
} pthread_barrier_t;
static inline int tn__test_barrier(pthread_barrier_t *b, unsigned size)
{
    b->size = size, b->came = b->round = 0;
    return pthread_mutex_init(&b->lock, NULL) || pthread_cond_init(&b->all_came, NULL);
}
static inline int tn__test_meet(pthread_barrier_t *b)
{
    pthread_mutex_lock(&b->lock);
    const unsigned round = b->round;
    if (++b->came == b->size) b->came = 0, b->round++, pthread_cond_broadcast(&b->all_came);
    while (b->round == round) pthread_cond_wait(&b->all_came, &b->lock);
    return pthread_mutex_unlock(&b->lock);
}
#define pthread_barrier_init(b, how, size) tn__test_barrier(b, size)
#define pthread_barrier_wait(b) tn__test_meet(b)
#define pthread_barrier_destroy(b) (pthread_mutex_destroy(&(b)->lock) || pthread_cond_destroy(&(b)->all_came))

#endif
