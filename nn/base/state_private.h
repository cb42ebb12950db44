/* state_private.h — names in files and their patterns, for state dicts and tn_look. Private to nn/. */
#ifndef TENON_NN_BASE_STATE_PRIVATE_H
#define TENON_NN_BASE_STATE_PRIVATE_H

#include "nn/state.h"

/* tn__renamed: if pattern `from` matches the name, rewrites the name to pattern `to` (NULL: keeps it) and returns 1.
 * Returns 0 if it does not match, -1 if the new name is too long. tn__renames_check: false (raised) for invalid
 * rules. */
enum { TN__TENSOR_PARTS = 64, TN__PIECES = 4 }; /* maximum number of parts of one tensor, and of joined tensors */
int  tn__renamed(const char *from, const char *to, char name[TN_PATH_BYTES]);
bool tn__renames_check(const char *who, const tn_rename *r, int n);

/* The name in files of the tensor `path`, or of part `part` of it if the rules divide it, and *parts, the number of its
 * parts (1: whole); *transposed: whether files have it transposed; *joined: the rule by which files join it with
 * others, then `name` is that of all together; NULL: none. False: raised. */
bool tn__saved_name(const tn_rename *rules, int n, const char *path, int part, char name[TN_PATH_BYTES], int *parts,
                    bool *transposed, const tn_rename **joined);
/* The module that has piece `piece` of the matrix in which files join the tensor `path`; NULL: it does not exist. */
tn_module *tn__joined_piece(tn_module *m, const tn_rename *rules, int n, const char *path, int piece);

/* True if the pattern matches the whole name. A pattern has at most TN__MOST_STARS stars. */
enum { TN__MOST_STARS = 8 };
bool tn__name_matches(const char *pattern, const char *name);

#endif
