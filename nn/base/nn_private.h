/* nn_private.h — what the files of nn/ share and users do not see. Stands on the public headers of core and autograd.
 * */
#ifndef TENON_NN_BASE_NN_PRIVATE_H
#define TENON_NN_BASE_NN_PRIVATE_H

#include "core/base/toolbox.h"
#include "nn/nn.h"

#include <string.h>

/* ---- the record of a module: it lies in front of the module's struct, in one block of memory ------------------- */

enum { TN__PARAMETER, TN__BUFFER, TN__CHILD, TN__KINDS }; /* also the order in which a walk meets them */
typedef struct {
    char      *name;
    tn_tensor *tensor;
    tn_module *child;
    uint8_t    what;
    bool       saved;  /* of a buffer: it belongs to the state dict */
    bool       rows;   /* of a buffer: one for each of the batch */
    bool       tied;   /* the tensor has another place, too         */
    bool       weight; /* only products and tables read it: tn_quantize may turn it */
} tn__slot;

typedef struct tn__hook {
    struct tn__hook *next;
    tn_before_hook   before; /* one of the two */
    tn_after_hook    after;
    void            *user;
} tn__hook;

typedef struct tn__array { /* the elements stand TN__FRONT bytes behind it */
    struct tn__array *next;
    size_t            bytes; /* of the elements */
} tn__array;

struct tn__base {
    size_t        bytes;  /* of the whole block */
    tn_module    *owner;  /* whose child it is, and ... */
    const char   *name;   /* ... under which name: the slot's own string */
    int           refs;   /* by the owner (or the user, for a root) and by those who share it */
    bool          built;  /* the constructor is over */
    bool          broken; /* it ran into an error    */
    tn__slot     *slot;
    int           slots, room;
    tn__hook     *hooks;
    _Atomic int   hooks_run; /* calls of the module that are under way, of any thread */
    tn__array    *arrays;
    tn_generator *generator;    /* in use when the module was made, where it stood then, */
    tn_generator  began, ended; /* and when it was built                                 */
    tn_module    *next;         /* for tn_free: the list of modules to be freed */
};

enum { TN__FRONT = 64 }; /* memory is aligned to it, so what stands behind a header of this size is, too */

/* Was m freed before? Raises. */
bool tn__module_gone(const char *who, const tn_module *m);

static inline const char *tn__kind_name(const tn_module *m) { return m && m->kind->name ? m->kind->name : "module"; }

/* After a failure: what was drawn from g since then is given back, if g is still in use and was not seeded anew. */
void tn__draws_back(const tn_generator *g, tn_generator began);

/* The slot of that name in m itself, or NULL. With `within`, a path into children: *within becomes the module found. */
tn__slot *tn__slot_of(const tn_module *m, const char *name);
tn__slot *tn__slot_within(tn_module *m, const char *path, tn_module **within);

/* In m's struct and arrays, what points to `old` points to `now`. */
void tn__rebind(tn_module *m, const void *old, void *now);

/* ---- names in files (rename.c) --------------------------------------------------------------------------------- */

/* If pattern `from` matches name, makes it what `to` says (NULL: leaves it) and returns 1; 0 if not; -1 if it gets too
 * long. And: are the rules in order? If not, raises. */
enum { TN__TENSOR_PARTS = 64 }; /* of one tensor, at most */
int  tn__renamed(const char *from, const char *to, char name[TN_PATH_BYTES]);
bool tn__renames_check(const char *who, const tn_rename *r, int n);

/* Does the whole name match a pattern of such parts, of which at most so many are stars? */
enum { TN__MOST_STARS = 8 };
bool tn__name_matches(const char *pattern, const char *name);

/* ---- looking inside (look.c) ------------------------------------------------------------------------------------- */

/* Does anybody watch this thread's modules? Else nothing below is called. */
static inline bool tn__looked(void) { return __builtin_expect(tn__self.mode.look != 0, 0); }
/* t, which goes by the module path so far and, if it is none of the module's results, the part's name behind it: noted
 * by those who want it. What their edits make of it takes its place. */
tn_tensor *tn__look(const char *part, tn_tensor *t);
tn_tensor *tn__look_result(const tn_frame *f, tn_tensor *y); /* y leaves the frame of a module (forward.c) */
/* Does anybody want that part of the module: at all, and to change it or to have its gradient? */
typedef enum { TN__NOT_WANTED = 0, TN__WANTED, TN__WANTED_TO_ACT } tn__wanted;
tn__wanted tn__look_wants(const char *part);

/* ---- for constructors and descriptions ------------------------------------------------------------------------- */

bool tn__last_dims(const char *who, int64_t dim, tn_shape shape, tn_shape *to); /* .dim or .shape */

/* "(5, 3)": Python's tuple, into a buffer; 256 bytes always suffice. */
const char               *tn__tuple(tn_shape s, char *to, size_t size);
static inline const char *tn__python_bool(bool v) { return v ? "True" : "False"; }

#endif
