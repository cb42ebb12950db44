/* command.c — PROGRAM export: writes a model as one C file, and prints its name. */
#include "export.h"

export_options export_asked;

int export_main(int count, char **operands)
{
    (void)count, (void)operands;
    if (export_this(&export_asked)) printf("%s\n", export_asked.out);
    return program_end();
}
