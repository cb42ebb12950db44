/* nn_private.h — private declarations shared by the files of nn/. */
#ifndef TENON_NN_BASE_NN_PRIVATE_H
#define TENON_NN_BASE_NN_PRIVATE_H

#include "core/base/toolbox.h"
#include "nn/nn.h"

#include <string.h>

/* ---- the record of a module: stored before the module's struct, in the same block of memory -------------------- */

enum { TN__PARAMETER, TN__BUFFER, TN__CHILD, TN__KINDS }; /* in the order in which a walk visits them */
typedef struct {
    char      *name;
    tn_tensor *tensor;
    tn_module *child;
    uint8_t    what;
    bool       saved;  /* the tensor is part of the state dict */
    bool       rows;   /* a buffer with one row per row of the batch */
    bool       tied;   /* the tensor is registered in another slot, too */
    bool       weight; /* only tn_linear and tn_embedding read it; tn_quantize converts it */
} tn__slot;

typedef struct tn__hook {
    struct tn__hook *next;
    tn_before_hook   before; /* one of before and after is set; the other is NULL */
    tn_after_hook    after;
    void            *user;
} tn__hook;

typedef struct tn__array { /* the elements start TN__HEADER_BYTES bytes after the start of this header */
    struct tn__array *next;
    size_t            bytes; /* size of all elements */
} tn__array;

struct tn__base {
    size_t        bytes;  /* size of the whole block */
    tn_module    *owner;  /* the parent; NULL for a root */
    const char   *name;   /* the name in the owner: its slot's string, borrowed */
    int           refs;   /* one for the owner (for a root: the user), one for each tn_share */
    bool          built;  /* the constructor has finished */
    bool          broken; /* the constructor failed */
    tn__slot     *slot;
    int           slots, room;
    tn__hook     *hooks;
    _Atomic int   hooks_run; /* number of running tn_calls of the module, in all threads */
    tn__array    *arrays;
    tn_generator *generator;    /* the current generator when the module was created */
    tn_generator  began, ended; /* copies of its state at the start and at the end of the constructor */
    tn_module    *next;         /* list of modules to free, used by tn_free */
};

enum { TN__HEADER_BYTES = 64 }; /* the alignment of memory blocks; data after a header of this size is aligned, too */

/* True (and an error is raised) if m was freed already. */
bool tn__module_freed(const char *who, const tn_module *m);

static inline const char *tn__kind_name(const tn_module *m) { return m && m->kind->name ? m->kind->name : "module"; }

/* After a failure: resets g to `began` if g is still the current generator and has not been reseeded. */
void tn__restore_generator(const tn_generator *g, tn_generator began);

/* Return a slot, or NULL if not found. tn__slot_of: by its name in m itself. tn__slot_within: by a path through
 * children; sets *within to the module that has the slot or, if none has, to the last module on the path. */
tn__slot *tn__slot_of(const tn_module *m, const char *name);
tn__slot *tn__slot_within(tn_module *m, const char *path, tn_module **within);

/* Replaces each pointer equal to `old` in m's struct and arrays with `now`. */
void tn__rebind(tn_module *m, const void *old, void *now);

/* ---- names in files (rename.c) --------------------------------------------------------------------------------- */

/* tn__renamed: if pattern `from` matches the name, rewrites the name to pattern `to` (NULL: keeps it) and returns 1.
 * Returns 0 if it does not match, -1 if the new name is too long. tn__renames_check: false (raised) for invalid
 * rules. */
enum { TN__TENSOR_PARTS = 64 }; /* maximum number of parts of one tensor */
int  tn__renamed(const char *from, const char *to, char name[TN_PATH_BYTES]);
bool tn__renames_check(const char *who, const tn_rename *r, int n);

/* True if the pattern matches the whole name. A pattern has at most TN__MOST_STARS stars. */
enum { TN__MOST_STARS = 8 };
bool tn__name_matches(const char *pattern, const char *name);

/* ---- observers of running modules (look.c) ----------------------------------------------------------------------- */

/* True if this thread has active tn_looks. The functions below are called only then. */
static inline bool tn__look_active(void) { return __builtin_expect(tn__self.mode.look != 0, 0); }
/* Passes t to the looks that want it, which record it; returns t or the tensor by which a look replaces it. Its path is
 * the current module path, with `.part` appended unless part is NULL (a module's result). */
tn_tensor *tn__look(const char *part, tn_tensor *t);
tn_tensor *tn__look_result(const tn_frame *f, tn_tensor *y); /* the same for the result of a frame (forward.c) */
/* Whether a look wants that part of the current module: not at all, to record it, or to change it or get its
 * gradient. */
typedef enum { TN__NOT_WANTED = 0, TN__WANTED, TN__WANTED_TO_ACT } tn__wanted;
tn__wanted tn__look_wants(const char *part);

/* ---- for constructors and descriptions ------------------------------------------------------------------------- */

/* Sets *to to the shape given by the option .dim or .shape; false (raised) if both are set or a dim is below 1. */
bool tn__last_dims(const char *who, int64_t dim, tn_shape shape, tn_shape *to);

/* Writes the shape as a Python tuple, "(5, 3)", and returns `to`; 256 bytes are always enough. */
const char               *tn__tuple(tn_shape s, char *to, size_t size);
static inline const char *tn__python_bool(bool v) { return v ? "True" : "False"; }

#endif
