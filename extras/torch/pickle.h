/* pickle.h — the part of Python's pickle that is used by state dicts of PyTorch (pickle.c). Nothing in a file is
 * executed: it is parsed into values. Private. */
#ifndef TENON_EXTRAS_TORCH_PICKLE_H
#define TENON_EXTRAS_TORCH_PICKLE_H

#include "core/files/io.h"

typedef enum {
    TN__PY_NONE,
    TN__PY_BOOL,
    TN__PY_INT,
    TN__PY_FLOAT,
    TN__PY_STRING, /* text, n bytes */
    TN__PY_TUPLE,  /* the nodes from first on; also of list, dict */
    TN__PY_LIST,
    TN__PY_DICT,
    TN__PY_GLOBAL,  /* n: one of TN__PY_… below */
    TN__PY_STORAGE, /* first: its persistent id, a tuple */
    TN__PY_TENSOR,  /* first: the arguments of _rebuild_tensor_v2, a tuple */
    TN__PY_MARK
} tn__py_kind;
enum { TN__PY_DICT_CLASS, TN__PY_REBUILD, TN__PY_PARAMETER, TN__PY_TYPE /* storages: TN__PY_TYPE + element */ };

typedef struct {
    tn__py_kind kind;
    int32_t     first, last; /* nodes; -1: none */
    int64_t     n;
    const char *text;
} tn__py_value;
typedef struct {
    int32_t key, value, next; /* key -1: not of a dict */
} tn__py_node;

enum { TN__PY_MOST = 4000000 /* maximum values, nodes, stack entries, memo entries */ };
typedef struct {
    const char          *label;
    const unsigned char *p;
    size_t               n, at;
    int64_t              size;   /* size of the whole file; p has its first n bytes */
    bool                 short_; /* reading stopped at the end of p's bytes, not of the file; nothing is raised */
    tn__py_value        *value;
    tn__py_node         *node;
    int32_t             *stack, *memo;
    int64_t              values, nodes, stacked, value_room, node_room, stack_room, memo_room;
} tn__pickle;

/* Reads one pickle at `at`: returns the index of its value; -1: short_, or raised. Earlier values stay. */
int64_t tn__pickle_next(tn__pickle *p);
void    tn__pickle_free(tn__pickle *p);
/* The i-th item of a tuple or list; -1: none. */
int32_t tn__pickle_item(const tn__pickle *p, int32_t of, int64_t i);

#endif
