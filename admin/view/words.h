/* Puts the members of a JSON object into words, by a template:
 *
 *   {name}           a string; a missing one is ""
 *   {#number}        a whole number; a missing one is 0
 *   {ms@until}       a time or an amount, in one of the forms of words.c; with @until_s and
 *                    its like the number is one of seconds
 *   {name%-34}       in a field of that width; {name%.200}: cut; as printf(3)
 *   [if:text|text]   the second text may be missing. `if` is a name (true, a string that is
 *                    not empty, or a number above 0), ?name (it is there), name=word,
 *                    or number>number
 *
 * A name is a path: {spool.path}, {names.0}. A number is a sum of names, of digits and of
 * `now`: {#count-1}, [until_ms>now:...]. Texts may hold values and choices. */
#ifndef ADMIN_VIEW_WORDS_H
#define ADMIN_VIEW_WORDS_H

#include "base/buffer.h"

#include <jansson.h>

enum { WORDS_MAX = 256 * 1024 }; /* enough for all texts of an answer */

/* Templates are our own: an invalid one is a defect. Beyond the limit of out the rest is
 * left out. */
void words_say(struct buffer *out, const char *template, const json_t *object,
               int64_t now_ms);
/* On standard output. */
void words_print(const char *template, const json_t *object, int64_t now_ms);
/* The same for each element. */
void words_print_all(const char *template, const json_t *array, int64_t now_ms);

#endif
