/* credential:NAME as a word of a value, also @credential:NAME and KEY=@credential:NAME:
 * the file of that name that the service manager passes, in $CREDENTIALS_DIRECTORY
 * (LoadCredential= of systemd). Pure. */
#ifndef BASE_SETTINGS_CREDENTIAL_H
#define BASE_SETTINGS_CREDENTIAL_H

#include "base/buffer.h"

/* Whether a word of the value is one. */
bool credential_is_in(struct text value);
/* Copies the value, each such word replaced by its path. directory: NULL if the variable
 * is not set. NULL, or the error: a part of a sentence. */
const char *credential_expand(struct text value, const char *directory,
                              struct buffer *out) __attribute__((warn_unused_result));
/* The same in place, of a string on the heap; nothing of the old one stays in memory, since
 * it may have secrets. */
const char *credential_replace(char **value, const char *directory)
    __attribute__((warn_unused_result));

#endif
