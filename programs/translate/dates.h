/* dates.h — random dates in five languages and in ISO 8601. The same seed gives the same dates on every machine. One
 * day in ten is held out: it never occurs in a training set. */
#ifndef TENON_PROGRAMS_TRANSLATE_DATES_H
#define TENON_PROGRAMS_TRANSLATE_DATES_H

#include <stdbool.h>
#include <stdint.h>

enum { DATE_TEXT = 64 };
void date_pair(uint64_t seed, uint64_t number, bool held_out, char text[DATE_TEXT], char iso[DATE_TEXT]);

#endif
