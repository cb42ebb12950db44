/* files.h — folders, names in them, and the time. */
#ifndef TENON_EXAMPLES_FILES_H
#define TENON_EXAMPLES_FILES_H

#include <tenon/tenon.h>

bool        make_folder(const char *path); /* with those above it; false: an error stands */
const char *in_folder(const char *folder, const char *name, char path[1024]);
bool        is_there(const char *path);
double      seconds_now(void); /* of a clock that is never set */

#endif
