/* Other names of settings: those that Petrel had before, and Postfix's.
 *
 * A name of Postfix is accepted where each value that both know means the same to both;
 * otherwise it is refused with a line that gives the form here. */
#ifndef ADMIN_SETTINGS_SYNONYMS_H
#define ADMIN_SETTINGS_SYNONYMS_H

#include "base/settings/settings.h"

extern const struct setting_synonym synonyms_rows[];

#endif
