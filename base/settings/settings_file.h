/* The syntax of a settings file: logical lines of `key = value`. */
#ifndef BASE_SETTINGS_SETTINGS_FILE_H
#define BASE_SETTINGS_SETTINGS_FILE_H

#include "base/buffer.h"

struct settings_line {
    struct text key;
    struct text value; /* continued lines are joined by LF; until the next call */
    size_t number;     /* of the line with the key, from 1 */
    const char *error; /* NULL, or the error; then key and value are unset */
};

struct settings_file {
    struct text rest;
    size_t number;
    struct buffer value;
};

/* content is borrowed until settings_file_end(). LF and CRLF, with or without a byte
 * order mark. */
void settings_file_start(struct settings_file *f, struct text content);
/* False at the end. */
bool settings_file_next(struct settings_file *f, struct settings_line *line);
void settings_file_end(struct settings_file *f);

#endif
