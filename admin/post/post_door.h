/* Mail by HTTP: POST /v1/messages, and GET /v1/messages/ID. The front door of admin/post/.
 *
 * A message comes whole (message/rfc822, its envelope in fields or in the query), or as an
 * object of JSON of which it is made. It goes the way of a client of SMTP that has logged
 * in (smtp/session/session_post.h), while it comes; what must wait for a later member of the object
 * waits in a file. Nothing is sent unless every recipient is accepted. doc/submission.md
 * has the interface. */
#ifndef ADMIN_POST_POST_DOOR_H
#define ADMIN_POST_POST_DOOR_H

#include "admin/answer/questions.h"
#include "admin/http/http_exchange.h"
#include "admin/post/post_keys.h"
#include "base/loop/loop.h"
#include "smtp/session/session.h"

#define POST_PATH "/v1/messages"

enum {
    POST_RECIPIENTS_MAX = 1000,
    POST_REFUSED_MAX = 50 /* recipients that an error lists */
};

struct post_door;

struct post_setup {
    struct loop *loop;
    struct session_host *host;
    struct manager *manager;
    struct questions *questions;
    struct log *log;
    const char *records; /* the file of post_records.h, below the spool; copied */
    bool has_journal;    /* without it no idempotency keys */
    /* Why no mail is accepted; NULL: it is. */
    const char *(*leaves)(void *context);
    void *context;
};

struct post_door *post_door_new(const struct post_setup *setup);
/* No message is under way. */
void post_door_free(struct post_door **door);
/* keys: the caller's use becomes the door's; NULL: there are none, and no door. */
void post_door_set_keys(struct post_door *door, struct post_keys *keys);
/* An http_server_settings.key. */
const char *post_door_key(struct post_door *door, struct text token);

/* Routes. */
void post_door_post(struct post_door *door, struct http_exchange *exchange);
void post_door_show(struct post_door *door, struct http_exchange *exchange);

#endif
