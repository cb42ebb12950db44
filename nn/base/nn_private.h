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

typedef struct tn__array { /* the elements start TN__HEADER_BYTES bytes after the start of this header */
    struct tn__array *next;
    size_t            bytes; /* size of all elements */
} tn__array;

struct tn__base {
    size_t           bytes;  /* size of the whole block */
    tn_module       *owner;  /* the parent; NULL for a root */
    const char      *name;   /* the name in the owner: its slot's string, borrowed */
    int              refs;   /* one for the owner (for a root: the user), one for each tn_share */
    bool             built;  /* the constructor has finished */
    bool             broken; /* the constructor failed */
    tn__slot        *slot;
    int              slots, room;
    struct tn__hook *hooks;     /* see hooks.h */
    _Atomic int      hooks_run; /* number of running tn_calls of the module, in all threads */
    tn__array       *arrays;
    tn_generator    *generator;    /* the current generator when the module was created */
    tn_generator     began, ended; /* copies of its state at the start and at the end of the constructor */
    tn_module       *next;         /* list of modules to free, used by tn_free */
};

enum { TN__HEADER_BYTES = 64 }; /* the alignment of memory blocks; data after a header of this size is aligned, too */

static inline const char *tn__kind_name(const tn_module *m) { return m && m->kind->name ? m->kind->name : "module"; }

/* The base of a freed module points here, so that a use after free is recognised while the block keeps its contents. */
extern const struct tn__base tn__freed_base;
/* True (and an error is raised) if m was freed already. `who` names the public function in messages, here and below. */
bool tn__module_freed(const char *who, const tn_module *m);
/* After a failure: resets g to `began` if g is still the current generator and has not been reseeded. */
void tn__restore_generator(const tn_generator *g, tn_generator began);

/* ---- registering (module.c) ------------------------------------------------------------------------------------ */

/* True if something may be registered in m. If not, marks m as broken if it is under construction. */
bool tn__may_register(const char *who, tn_module *m);
/* Adds an empty slot of that name, which the caller fills at once. On failure returns NULL (raised) and breaks m. */
tn__slot *tn__new_slot(const char *who, tn_module *m, const char *name);
/* Registers c as a child of m; does not change c's reference count. On failure returns false (raised) and breaks m. */
bool tn__register_child(const char *who, tn_module *m, const char *name, tn_module *c);
/* After an error: marks a module under construction as broken; a finished module stays unchanged. Returns NULL. */
void *tn__mark_broken(tn_module *m);

/* Checks of the above (names.c, build_checks.c); false: raised. */
bool tn__class_fits(const tn_class *kind);
bool tn__name_fits(const char *who, const tn_module *m, const char *name);
bool tn__child_fits(const char *who, const tn_module *m, const char *name, tn_module *c);
/* True if m is c or inside c. Sets *deepest to the number of levels of c's tree. */
bool tn__contains(tn_module *c, const tn_module *m, int *deepest);

/* Return a slot, or NULL if not found. tn__slot_of: by its name in m itself. tn__slot_within: by a path through
 * children; sets *within to the module that has the slot or, if none has, to the last module on the path. */
tn__slot *tn__slot_of(const tn_module *m, const char *name);
tn__slot *tn__slot_within(tn_module *m, const char *path, tn_module **within);

/* Removes and frees a child; pointers to it in m's struct stay. (register.c) */
void tn__remove_child(tn_module *m, const char *name);

/* Replaces each pointer equal to `old` in m's struct and arrays with `now` (register.c). */
void tn__rebind(tn_module *m, const void *old, void *now);
bool tn__points_to(const tn_module *m, const void *p); /* true if m's struct or arrays contain the pointer p */

/* ---- for constructors and descriptions ------------------------------------------------------------------------- */

/* Sets *to to the shape given by the option .dim or .shape; false (raised) if both are set or a dim is below 1. */
bool tn__last_dims(const char *who, int64_t dim, tn_shape shape, tn_shape *to);

/* Writes the shape as a Python tuple, "(5, 3)", and returns `to`; 256 bytes are always enough. */
const char               *tn__tuple(tn_shape s, char *to, size_t size);
static inline const char *tn__python_bool(bool v) { return v ? "True" : "False"; }

/* Packing (quantize.c). weight: a matrix; weights: all that tn_weight registered and that are not packed, all or none.
 * done, after weights were packed: they become buffers, the rest is frozen, and the module is in eval mode. */
tn_tensor *tn__pack_weight(const char *who, tn_tensor *t, tn_tensor *(*pack)(const tn_tensor *));
tn_status  tn__pack_weights(const char *who, tn_module *m, tn_tensor *(*pack)(const tn_tensor *));
void       tn__packed_done(tn_module *m);

bool tn__any_hooks(const void *module); /* true if the module or one inside it has a hook (hooks.c) */

#endif
