/* vectors.h — the commands of the program vectors, and the functions that they share. */
#ifndef TENON_EXTRAS_PROGRAMS_VECTORS_VECTORS_H
#define TENON_EXTRAS_PROGRAMS_VECTORS_VECTORS_H

#include "programs/common/options.h"

extern const char *vectors_file, *format_name; /* --vectors, --format */
#define FORMATS "text|glove|binary|fasttext|safetensors"
#define VECTORS \
    OPTION_TEXT("vectors", 0, "FILE", &vectors_file, "file of word vectors", .required = true), VECTORS_FORMAT
#define VECTORS_FORMAT \
    OPTION_TEXT("format", 0, "FORMAT", &format_name, "format of the file (default: detected)", .choices = FORMATS)

#define TO_FORMAT(option_, to_, file_)                                        \
    OPTION_TEXT(option_, 0, "FORMAT", to_,                                    \
                "output format (default: by the name of " file_               \
                ": .bin binary, .safetensors safetensors, other names text)", \
                .choices = FORMATS)

tn_vectors_format format_of(const char *name); /* NULL: TN_VECTORS_ANY */
tn_vectors       *load_vectors(void);          /* reads the file of --vectors; NULL: an error is set */
bool may_create(const char *path, bool force); /* false: the file exists and force is not set; an error is set */
/* Writes v in the format of this name; NULL: by the name of the file. */
tn_status save_vectors(const tn_vectors *v, const char *path, const char *format);
/* Checks that the file that --name writes is not one of the texts. Returns 0 or the exit code of program_usage. */
int     check_not_text(const char *name, const char *path, const option_list *text);
int64_t find_word(const tn_vectors *v, const char *word); /* index of the word; -1: unknown, an error is set */

/* A skip-thought model (thoughts.c). */
typedef struct {
    tn_skip_thought *net;
    tn_tokenizer    *tokens;
    tn_vectors      *vectors; /* borrowed, for words that the model does not know; may be NULL */
    double          *map;     /* from word vectors to embeddings: [dimension of vectors, dimension of net] */
} thoughts;
bool thoughts_open(thoughts *t, const char *dir, tn_vectors *vectors); /* false: an error is set */
bool thoughts_sentence(const thoughts *t, tn_text line, float *to);    /* writes config.hidden values */
void thoughts_close(thoughts *t);

extern const option train_options[], phrases_options[], near_options[], analogy_options[], similarity_options[],
    sentence_options[], paraphrases_options[], plot_options[], project_options[], convert_options[], info_options[];
int run_train(int count, char **operands);
int run_phrases(int count, char **operands);
int run_neighbours(int count, char **operands);
int run_analogy(int count, char **operands);
int run_similarity(int count, char **operands);
int run_sentence(int count, char **operands);
int run_paraphrases(int count, char **operands);
int run_plot(int count, char **operands);
int run_project(int count, char **operands);
int run_convert(int count, char **operands);
int run_info(int count, char **operands);

#endif
