/* checkpoint_private.h — private declarations of checkpoint*.c and crc.c. */
#ifndef TENON_OPTIM_CHECKPOINT_PRIVATE_H
#define TENON_OPTIM_CHECKPOINT_PRIVATE_H

#include "optim/schedule_private.h"
#include "optim/ema.h"

enum { TN__NAME_ROOM = TN_PATH_BYTES + 64 };
#define TN__RECORD "tenon.checkpoint" /* metadata key of the JSON; the key of its CRC-32 is TN__RECORD ".crc32" */

struct tn_checkpoint_file {
    tn_safetensors *tensors;
    tn_json        *record;
    char            path[168]; /* for messages */
};

/* ---- CRC-32 (crc.c) ---------------------------------------------------------------------------------------------- */

/* Sets crc[i] to the CRC-32 of t[i]'s elements as stored in a file; skips t[i] == NULL. All t[i] are contiguous. */
void tn__crc_tensors(int64_t n, tn_tensor *const *t, uint32_t *crc);
void tn__crc_text(uint32_t crc, char to[9]); /* "cbf43926" */
void tn__crc_of_text(const char *text, char to[9]);

/* True for a parameter that is saved as its checksum only (.trained_only). */
static inline bool tn__is_frozen(const tn_each *e) { return e->parameter && !tn_needs_grad(e->tensor); }
/* The CRC-32 of one tensor, as text. False: raised. */
bool tn__crc_of_tensor(tn_tensor *t, char to[9]);

/* ---- mismatches, collected for one message ----------------------------------------------------------------------- */

typedef struct {
    int64_t missing, unexpected, other;
    char    first_missing[200], first_unexpected[200], first_other[400];
} tn__mismatches;
void tn__mismatch_missing(tn__mismatches *m, const char *name);
void tn__mismatch_unexpected(tn__mismatches *m, const char *name);
void tn__mismatch_other(tn__mismatches *m, const char *fmt, ...) TN_PRINTF(2, 3);
/* True if there are no mismatches; else raises "tn_checkpoint_restore: 'a' holds another <what>: 2 names missing (…),
 * …". */
bool tn__mismatch_none(const tn__mismatches *m, const char *path, const char *what, const char *others);

/* ---- data other than tensors (checkpoint_write.c) ---------------------------------------------------------------- */

void tn__record_optimizer(tn_json_writer *w, const char *key, const tn_optimizer *o);
/* True if the record fits the optimizer; then applying it cannot fail. False: raised. keep: keep o's options. */
bool tn__optimizer_fits(const tn_optimizer *o, const tn_json *record, const char *path, bool keep);
void tn__optimizer_apply(tn_optimizer *o, const tn_json *record, bool keep);
void tn__record_generator(tn_json_writer *w, const tn_generator *g);
void tn__generator_apply(tn_generator *g, const tn_json *record);

#endif
