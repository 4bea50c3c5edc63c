/* Names whose mail goes to the recipients of a message: g5@here.test for those of m5. */
#ifndef T_ROOF_NAMES_H
#define T_ROOF_NAMES_H

#include "t/roof/model.h"

#define NAMES_FILE "/etc/petrel/aliases"

/* Draws some of the messages, whose recipients must be known before, and writes the file. */
void names_begin(unsigned permille);
/* The same members in another form: other names in between, members twice, other order. */
void names_edit(void);
void names_address(const struct model_message *m, char out[MODEL_ADDRESS_MAX]);

#endif
