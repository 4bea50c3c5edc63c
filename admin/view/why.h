/* `petrel queue why`: everything that keeps a message from being delivered now. */
#ifndef ADMIN_VIEW_WHY_H
#define ADMIN_VIEW_WHY_H

#include "base/buffer.h"
#include "queue/manager/activity.h"
#include "queue/manager/manager.h"

#include <jansson.h>

/* Adds to the daemon's answer about a message (place, due_ms, attempts; see
 * control.h):
 *   loading        it is being read from the disk
 *   backlogged     its site wakes it when it lives, if that is before due_ms
 *   excess         its site has more than its share of the active set: that wakes it
 *   draining       no delivery begins: petrel drain, or a stop
 *   lacks_room     the active set has no room for its recipients, or for mail before it
 *   ahead          due messages that are loaded before it
 *   active, active_limit, active_recipients, active_recipient_limit, sessions,
 *   delivery_session_limit
 *                  of the daemon
 *   expires_ms     the first open recipient fails then; not there: none does
 *   hops           by next hop: destination, open (recipients; of them waiting, taken,
 *                  deferred while it is active), expires_ms; if anything is known of it
 *                  now: site as in site_view.h, sessions as why_session() has them (ten
 *                  at most, those that carry the message first), sessions_more
 *   hops_more      next hops beyond those */
void why_add(json_t *answer, struct manager *manager, struct id id);

/* listing as of listing.h; its "why" is the daemon's answer, and is not there when no
 * daemon runs. */
void why_print(const json_t *listing, int64_t now_ms);
/* Without the facts of the message: only why it waits. */
void why_print_now(const json_t *listing, int64_t now_ms);

/* The current activity of a session. The caller's:
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
json_t *why_session(const struct activity *activity);

/* "connected to mx.test[192.0.2.1]:465, no greeting for 40 s (does this port need
 * smtps://?)" */
void why_explain_session(const json_t *doing, int64_t now_ms, struct buffer *out);

#endif
