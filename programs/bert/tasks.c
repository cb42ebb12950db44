/* tasks.c — the tasks of bert tune: their defaults, and the command that uses a model tuned for each. */
#include "tune.h"

#include <string.h>

static const tune_task tasks[] = {
    {"classify", "accuracy", TN_TASK_CLASSIFICATION, TN_LABELLED_TEXTS, 128, 32,
     "bert classify --model %s \"What a day.\"", "text-classification"},
    {"pairs", "accuracy", TN_TASK_CLASSIFICATION, TN_LABELLED_TEXTS, 128, 32,
     "printf 'It rains.\\tIt is wet.\\n' | bert classify --model %s", "text-classification"},
    {"tag", "f1", TN_TASK_TOKEN_CLASSIFICATION, TN_LABELLED_WORDS, 128, 32,
     "bert tag --model %s \"Ada lives in London .\"", "token-classification"},
    {"answer", "f1", TN_TASK_QUESTION_ANSWERING, TN_LABELLED_ANSWERS, 384, 16,
     "printf 'Who sat?\\tThe cat sat.\\n' | bert answer --model %s", "question-answering"},
    {"choose", "accuracy", TN_TASK_MULTIPLE_CHOICE, TN_LABELLED_CHOICES, 128, 16,
     "printf 'She sat\\tdown.\\tblue.\\n' | bert choose --model %s", "multiple-choice"}};
enum { TASKS = sizeof tasks / sizeof *tasks };

const tune_task *tune_task_of(const char *name)
{
    const char *names[TASKS], *near;
    for (int i = 0; i < TASKS; i++) {
        if (!strcmp(name, tasks[i].name)) return &tasks[i];
        names[i] = tasks[i].name;
    }
    near = program_nearest(name, TASKS, names);
    program_usage("unknown task '%s'%s%s; expected classify, pairs, tag, answer or choose", name,
                  near ? "; did you mean " : "", near ? near : "");
    return NULL;
}
