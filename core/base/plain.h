/* plain.h — texts for people in which 1.5 is 1.5, whatever the process's locale says. Part of toolbox.h. */
#ifndef TENON_CORE_BASE_PLAIN_H
#define TENON_CORE_BASE_PLAIN_H

/* What this thread formats in between has C's locale. Another thread, and the process, see nothing of it. */
typedef struct {
    void *locale; /* of the thread before */
} tn__plain;
tn__plain tn__plain_begin(void);
void      tn__plain_end(tn__plain was);

#endif
