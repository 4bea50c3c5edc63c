/* Damage to an envelope's form in todo/. */
#ifndef T_SUPPORT_ENVELOPE_DAMAGE_H
#define T_SUPPORT_ENVELOPE_DAMAGE_H

#include "base/buffer.h"
#include "queue/envelope/envelope.h"

/* With any byte changed it is not read. */
void envelope_damage_check(struct buffer *form, struct id id);

#endif
