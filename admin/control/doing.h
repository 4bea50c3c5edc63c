/* The current activity of a session, for the operator. */
#ifndef ADMIN_CONTROL_DOING_H
#define ADMIN_CONTROL_DOING_H

#include "base/buffer.h"
#include "queue/manager/activity.h"

#include <jansson.h>

/* The caller's:
 *   doing          "looking_up", "connecting", "greeting" (connected; none has come),
 *                  "handshake" (of TLS), "reply" (is waited for), "content" (is sent),
 *                  "preparing" (content is examined, or a login), "idle",
 *                  "storing" (Maildirs are written)
 *   since_ms       since the epoch
 *   what           what is looked up; the command whose reply is waited for; the
 *                  directory of the Maildirs; or ""
 *   remote         "host[ip]:port", or ""
 *   this_message   it carries the message that was asked about
 *   scheme         a URL with that one may be meant: "smtps"; mostly not there */
json_t *doing_make(const struct activity *activity);

/* "connected to mx.test[192.0.2.1]:465, no greeting for 40 s (does this port need
 * smtps://?)" */
void doing_explain(const json_t *doing, int64_t now_ms, struct buffer *out);

#endif
