/* texts.h — reads text files and encodes them as token ids; tokenizers of characters and of words. */
#ifndef TENON_PROGRAMS_COMMON_TEXTS_H
#define TENON_PROGRAMS_COMMON_TEXTS_H

#include "options.h"

/* The advice in every message about text that is not UTF-8. */
#define TEXTS_CONVERT "convert it, for example with iconv -f latin1 -t utf-8"

/* Appends the contents of all files to `to`: of files, of folders (recursively, sorted by name) and of "-", standard
 * input. False: raised, also if all are empty. */
bool texts_read(const option_list *files, tn_string *to);
/* Appends a text's token ids to `to`. Unless literal, the text of a special token becomes that token. */
bool texts_encode(const tn_tokenizer *t, tn_text text, bool literal, tn_ids *to);
/* A byte-level BPE tokenizer whose tokens are the bytes and the characters of a text. */
tn_tokenizer *texts_characters(tn_text text);
/* A tokenizer of words separated by white space: the `most` most frequent words of a text, with <unk> for all other
 * words and <eos>, which texts_lines adds to the end of each line. texts_are_words: is t such a tokenizer? */
tn_tokenizer *texts_words(tn_text text, int64_t most);
bool          texts_are_words(const tn_tokenizer *t);
bool          texts_lines(tn_text text, tn_string *to); /* appends to `to`; false: an error is set */

/* Lines of input that are not UTF-8: texts_line counts one of them, texts_warn_lines warns once of all. */
typedef struct {
    int64_t count, first; /* first: number of the first line */
} broken_lines;
void texts_line(broken_lines *b, int64_t number, tn_text line);
void texts_warn_lines(const broken_lines *b);

/* If the loss over this number of tokens is above that of a guess by the tokens' frequencies, says what that means. */
void texts_explain_loss(double loss, double unigram, int64_t tokens);

/* For debug: the lines of a text where `part`, which a tokenizer decoded, first occurs: "line 12"; "": nowhere. */
void texts_place(tn_text all, tn_text part, char place[64]);

/* The next word of a line from byte *at, which is advanced. tn_is_space separates words. False: no more. */
bool texts_word(tn_text line, size_t *at, tn_text *word);
/* The same for lines of columns: only ASCII white space separates words; a word may contain other white space. */
bool texts_column(tn_text line, size_t *at, tn_text *word);

/* A copy with U+FFFD in place of each invalid byte, because JSON must be UTF-8. The caller frees it. NULL: raised. */
char *texts_valid(const char *text);
void  texts_put(tn_json_writer *w, const char *key, const char *text); /* tn_json_put_string of that copy */

#endif
