/* resume.h — the options of a run are saved in its run.json, so that --resume alone continues it.
 *
 *     "options": {"of": "bert train", "folder": "/data", "words": ["--text=book.txt", "--batch=16"],
 *                 "files": [{"option": "text", "path": "book.txt", "sum": "af63bd4c8601b7df"}]}
 *
 * "words" are the options that were given, each with its value, and the operands; "folder" is the working folder, to
 * which paths are relative; "sum" is the FNV-1a hash of a file, which shows which file differs. A run whose state is in
 * a checkpoint file saves them in a file of that name and .json. */
#ifndef TENON_PROGRAMS_COMMON_RESUME_H
#define TENON_PROGRAMS_COMMON_RESUME_H

#include "options.h"

/* Puts the member "options" of the command that runs. Nothing if it has no option with RESUME_FOLDER or RESUME_FILE.
 * sums: also hash the files, which are read. */
void resume_put(tn_json_writer *w, bool sums);
/* Keeps the options that are set and the operands for resume_put, before the command changes its variables. */
void resume_keep(void);
/* If the flag --resume is set: sets the options that are saved and not on the command line. Returns 0; after a message,
 * an exit code: options that differ are named with both values. */
int resume_restore(void);
/* "bert train --out FOLDER --resume", which resumes a run. */
const char *resume_command(const char *folder, char to[1200]);
/* Saves a file with only the member "options". False: raised. */
bool resume_save(const char *path);
/* Makes `train` the command that runs, and sets its options to those that the file, a run.json, contains. Returns 0,
 * also if an error is set; after a message, an exit code. */
int resume_open(const command *train, const char *path);
/* Raises an error that names all missing files and folders of the options that are set. False: raised. */
bool resume_find_files(void);
/* Raises an error that names the first file that is not the run's, by its contents. False: raised. */
bool resume_same_files(void);

#endif
