/* own_register.c — added to the objects of a program, registers the custom type of examples/own_family.c before main:
 * the program then opens, measures, continues and serves models of that type. For own.sh. */
#include <stddef.h>

static int own_main(void); /* of the example, which trains and saves a model; not called here */
#define main own_main
#include "../../../examples/own_family.c"
#undef main

__attribute__((constructor)) static void add_family(void)
{
    (void)own_main;
    (void)tn_family_register(&family); /* the program reports an error */
}
