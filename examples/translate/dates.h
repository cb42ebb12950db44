/* dates.h — dates as people write them in several languages, and as ISO 8601 has them. The same seed gives the same
 * dates everywhere. One day in ten is held out: it is never in what a model learns from. */
#ifndef TENON_EXAMPLES_TRANSLATE_DATES_H
#define TENON_EXAMPLES_TRANSLATE_DATES_H

#include <stdbool.h>
#include <stdint.h>

enum { DATE_TEXT = 64 };
void date_pair(uint64_t seed, uint64_t number, bool held, char text[DATE_TEXT], char iso[DATE_TEXT]);

#endif
