/* The life of a message as JSON, from its lines in the history.
 *
 *   id, time_ms     of the message; id is null for a line without one
 *   sender, message_id, size, recipients
 *                   as far as they are known
 *   state           delivered, partly (some recipients), waiting, bounced, expired,
 *                   held, removed, refused, given (a fragment: to its message or host);
 *                   of other lines their type
 *   ended           whether nothing is left of it
 *   events          type, time_ms, and recipient, original_recipient, sender, relay, tls,
 *                   dkim, code, enhanced, class, text, hint, delay_ms, client, helo,
 *                   user, uid, mechanism, size, recipients, message_id, other (the
 *                   notification, or what it is about) ..., as the line has them;
 *                   unknown keys as text
 *   more            events that were left out, if any
 *
 * Texts have bytes of peers escaped as in the log. */
#ifndef ADMIN_HISTORY_LIFE_H
#define ADMIN_HISTORY_LIFE_H

#include "base/id.h"

#include <jansson.h>

/* lines: whole ones. id all 0: a line without a message. */
json_t *life_make(struct id id, struct text lines, size_t more);
/* Whether nothing is left of the message after that event. */
bool life_ends(const json_t *event);
/* An event; NULL: not a line of the history. */
json_t *life_event(struct text line);

#endif
