/* Converts one value of a setting from text to the caller's field. */
#ifndef BASE_SETTINGS_SETTINGS_VALUE_H
#define BASE_SETTINGS_SETTINGS_VALUE_H

#include "base/buffer.h"
#include "base/settings/settings.h"

/* Converts text into the field of target that row describes; strings point into text
 * itself. False: the text is invalid, the field unchanged, and a reason of at most 256
 * bytes added to why. */
bool settings_value_set(const struct setting *row, char *text, void *target,
                        struct buffer *why);

/* The row that has exactly this key; NULL if none. */
const struct setting *settings_find(const struct setting *rows, struct text key);

/* The row with the nearest key, at most two edits away (letters added, left out,
 * replaced or swapped; fewer for short keys); NULL if none. */
const struct setting *settings_guess(const struct setting *rows, struct text key);
/* The row whose key has the longest common start with this one, of four characters at
 * least, or NULL: a hint where settings_guess() finds nothing. */
const struct setting *settings_nearest(const struct setting *rows, struct text key);

/* Whether Kubernetes sets a variable PREFIX_KEY for a service petrel, or petrel-smtp:
 * such a variable is nobody's error. */
bool settings_is_of_kubernetes(struct text key);

/* credential:NAME as a word of a value, also @credential:NAME and KEY=@credential:NAME:
 * the file of that name that the service manager passes, in $CREDENTIALS_DIRECTORY
 * (LoadCredential= of systemd). Pure.
 *
 * Whether a word of the value is one. */
bool settings_credential_is_in(struct text value);
/* Copies the value, each such word replaced by its path. directory: NULL if the variable
 * is not set. NULL, or the error: a part of a sentence. */
const char *settings_credential_expand(struct text value, const char *directory,
                                       struct buffer *out)
    __attribute__((warn_unused_result));
/* Expands a string on the heap in place; nothing of the old one stays in memory, since it may
 * have secrets. */
const char *settings_credential_replace(char **value, const char *directory)
    __attribute__((warn_unused_result));

#endif
