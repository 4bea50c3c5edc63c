/* One value of a setting: from text to the caller's field, with a reason when not. */
#ifndef BASE_SETTINGS_VALUE_H
#define BASE_SETTINGS_VALUE_H

#include "base/settings/settings.h"

/* Converts text into the field of target that row describes; strings point into text
 * itself. False with the field unchanged and why (at most 256 bytes) added when it is
 * bad. */
bool settings_value_set(const struct setting *row, char *text, void *target,
                        struct buffer *why);

/* The row that has exactly this key; NULL if none. */
const struct setting *settings_find(const struct setting *rows, struct text key);

/* The row whose key is at most two slips away (letters added, left out, replaced or
 * swapped) and nearest; NULL if none. Short keys are given fewer. */
const struct setting *settings_guess(const struct setting *rows, struct text key);

#endif
