/* pattern.h — the regular expressions of Python that adapter_config.json selects layers with; for extras/peft. */
#ifndef TENON_EXTRAS_PEFT_PATTERN_H
#define TENON_EXTRAS_PEFT_PATTERN_H

#include <stdbool.h>

/* re.fullmatch of Python for ASCII: literals, ".", sets, \d \w \b and escaped signs, groups, "|", and the quantifiers
 * * + ? {m,n}, also lazy. 1: matches; 0: does not; -1: the pattern has other syntax or needs too many steps. */
int tn__pattern_matches(const char *pattern, const char *text);

/* True if the pattern has no sign of a regular expression but ".". */
bool tn__pattern_is_plain(const char *pattern);

#endif
