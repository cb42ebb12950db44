/* inputs.h — recognises inputs that are no text or no model, before anything is read: a PDF, a compressed
 * file, images; the name of a model on the Hugging Face Hub, the folder above a model, a pointer of git-lfs. */
#ifndef TENON_PROGRAMS_COMMON_INPUTS_H
#define TENON_PROGRAMS_COMMON_INPUTS_H

#include <stdbool.h>

/* Checks the options and operands that name texts and models. False: raised, with what to do. Another file or
 * folder that does not exist is left to the command. */
bool inputs_check(void);

#endif
