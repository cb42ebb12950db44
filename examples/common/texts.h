/* texts.h — text files as numbers, and tokenizers of characters and of words. */
#ifndef TENON_EXAMPLES_COMMON_TEXTS_H
#define TENON_EXAMPLES_COMMON_TEXTS_H

#include "options.h"

/* Added to `to`: all of the files, folders (what is in them, sorted by name, and in their folders) and "-", one after
 * the other. False: raised, also where there is nothing in them. */
bool texts_read(const option_list *files, tn_string *to);
/* For the check of a training: may these be learned from and measured on, or, without `valid`, so much of the text
 * (NaN: the usual part is put in)? 0, or program_usage. */
int texts_check(const tn_world *w, const option_list *text, const option_list *valid, double *part, double usual);
/* Raises if there is nothing to measure on, though there are files of it. */
bool texts_held(const option_list *valid, int64_t held, const char *least);
/* Added to `to`; a special token that the text spells becomes one unless literal. */
bool texts_encode(const tn_tokenizer *t, tn_text text, bool literal, tn_ids *to);
/* A tokenizer of bytes whose pieces are the characters of a text: no merges but those inside of them. */
tn_tokenizer *texts_characters(tn_text text);
/* A tokenizer of words between white space: the most frequent so many of a text, all others <unk>; and <eos>, which
 * texts_lines puts at the end of each line. texts_are_words: is it such a one? */
tn_tokenizer *texts_words(tn_text text, int64_t most);
bool          texts_are_words(const tn_tokenizer *t);
bool          texts_lines(tn_text text, tn_string *to); /* added to `to`; false: an error stands */

/* The next word of a line, from *at on, as texts_words has them: tn_is_space is between words. False: there
 * is none. */
bool texts_word(tn_text line, size_t *at, tn_text *word);
/* The same of a line of columns, where all of ASCII's white space is between words: a word may have other in it. */
bool texts_column(tn_text line, size_t *at, tn_text *word);

/* For JSON, which can hold nothing else: U+FFFD in place of what is not UTF-8. NULL: raised; the caller frees it. */
char *texts_valid(const char *text);
void  texts_put(tn_json_writer *w, const char *key, const char *text); /* tn_json_put_string of that */

#endif
