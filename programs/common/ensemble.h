/* ensemble.h — several translation models that decode together: a token's probability is the mean of theirs. */
#ifndef TENON_PROGRAMS_COMMON_ENSEMBLE_H
#define TENON_PROGRAMS_COMMON_ENSEMBLE_H

#include <tenon/extras.h>

enum { ENSEMBLE_MOST = 8 };

/* A decoding for tn_generate of n models, at most ENSEMBLE_MOST, with the same target tokens. It borrows them. NULL:
 * raised. */
tn_decoding *ensemble_decoding(int n, tn_seq2seq *const *models, tn_tensor *source, int64_t beams, int64_t length);

#endif
