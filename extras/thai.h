/* thai.h — Thai text as WangchanBERTa expects it. Part of extras.h: include that.
 *
 *     tn_string s = {0};
 *     if (tn_string_add_thai(&s, tn_text_of("GOOD  day")) == TN_OK) puts(s.at);   // "good<_>day"
 *     tn_string_free(&s); */
#ifndef TENON_EXTRAS_THAI_H
#define TENON_EXTRAS_THAI_H

#include "../data/text.h"

TN_C_BEGIN_

/* Appends Thai text as WangchanBERTa expects it: in lower case, HTML decoded, without the marks between a bracket and a
 * word, each run of spaces as "<_>", four or more equal characters as one. The authors' rules that need a dictionary
 * are missing: they remove repeated words and separate joined emoji. Of HTML's named characters only XML's are
 * decoded. */
TN_API tn_status tn_string_add_thai(tn_string *s, tn_text text);

TN_C_END_
#endif
