/* page.h — what a training leaves for its reader: the member "run" of run.json, report.html, and README.md, a model
 * card in the layout of Hugging Face.
 *
 *     "run": {"command": "gpt train --text book.txt --out book", "date": "2026-11-26T09:00:00Z", "texts": ["book.txt"],
 *             "parameters": 3221504, "vocabulary": 8000, "epochs": 2.5, "seconds": 61.2,
 *             "score": {"name": "validation loss", "value": 3.21, "step": 500}}
 *
 * Date and texts are those of the start, also if the run is resumed; "seconds" adds up over its parts, and the commands
 * are joined by " && ", those that lengthened the run. */
#ifndef TENON_PROGRAMS_COMMON_PAGE_H
#define TENON_PROGRAMS_COMMON_PAGE_H

#include "options.h"

typedef struct {
    const char        *folder, *title;
    const char        *score;   /* name of the validation's value; NULL: the loss */
    bool               rising;  /* larger scores are better */
    bool               live;    /* the run continues: an open page is loaded again and again */
    const option_list *compare; /* log.csv of other runs, for the curves; NULL: none */
    double             unigram; /* the loss of a guess by the tokens' frequencies, drawn as a line; 0: not known */
    /* For the card: a command to try, and its pipeline_tag (NULL: none); a line of C that opens the model (NULL:
     * tn_model_open; "": none). %s is the folder. */
    const char *next, *tag, *load;
} run_page;

bool run_check(const option_list *compare); /* before anything is created: false: raised, one of them is not a log */
/* What the start of a run knows. */
typedef struct {
    double  parameters, epochs;
    int64_t vocabulary; /* 0: none */
} run_start;
/* Writes "run" at the start. A resumed run keeps what it has; if it is longer now, the command that resumes it is added
 * to the command. False: raised. */
bool run_begin(const char *folder, const run_start *s, bool longer);
/* Adds the time and the score at the end, or when the run stops. False: raised. */
bool run_end(const run_page *p, double seconds);
/* Adds the top of the page: a result and the facts of run.json. value NULL: the validation's best value. */
bool run_summary(tn_report *r, const run_page *p, const char *value, const char *caption);
bool run_curves(tn_report *r, const run_page *p); /* loss, with a choice of scales; score; learning rate */
/* "book: Training of a language model": tells the tabs of a browser apart. */
const char *run_title(const run_page *p, char to[400]);
bool        run_write(const run_page *p); /* folder/report.html; false: raised */
bool        run_card(const run_page *p);  /* folder/README.md, unless another one exists; false: raised */

/* "gpt write --model 'my book'" from "write --model %s"; NULL: "". The folder is quoted for a shell where needed. */
void run_line(const char *format, const char *folder, tn_string *to);

#endif
