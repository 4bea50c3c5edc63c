/* The listeners and their certificates: two parts of the status.
 *
 *   listeners     address, kind (smtp, submission, lmtp, http, control, peer), tls (none,
 *                 starttls, tls, secret), sessions (open connections), accepted (connections
 *                 since startup)
 *   certificates  file, names (at most 20), name_count, not_before_ms, not_after_ms,
 *                 days_left (negative: it has expired), valid (by its dates) */
#ifndef ADMIN_STARTUP_LISTENING_H
#define ADMIN_STARTUP_LISTENING_H

#include "admin/control/control_server.h"
#include "admin/http/http_server.h"
#include "admin/startup/certificate_keeper.h"
#include "admin/startup/peer_wiring.h"
#include "smtp/session/listener.h"

enum { LISTENING_NAMES_MAX = 20 };

struct listening {
    /* Set by the owner. */
    struct loop *loop;
    const struct listener *listener;
    const struct control_server *control;
    struct http_server *const *http; /* it may begin and end later */
    const struct certificate_keeper *certificates;
    const struct peer_wiring *peer; /* NULL: there is no group */
};

void listening_start(struct listening *listening);

#endif
