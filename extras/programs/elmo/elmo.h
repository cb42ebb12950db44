/* elmo.h — the commands of elmo, and the declarations they share. */
#ifndef TENON_EXTRAS_PROGRAMS_ELMO_ELMO_H
#define TENON_EXTRAS_PROGRAMS_ELMO_ELMO_H

#include "programs/common/texts.h"
#include "programs/common/train.h"

extern const command train_command, embed_command, tag_command, info_command;

/* A growing list of lines; the text they point to is borrowed. */
typedef struct {
    tn_text *line;
    int64_t  count, room;
} text_lines;
bool lines_add(text_lines *l, tn_text line); /* false: an error is set */
void lines_free(text_lines *l);

#endif
