/* The queue by HTTP: lists it, shows a message, and runs commands of an operator. A
 * long answer is a stream, some in each turn. */
#ifndef ADMIN_API_HTTP_QUEUE_H
#define ADMIN_API_HTTP_QUEUE_H

#include "admin/api/http_routes.h"

enum {
    HTTP_LIST_DEFAULT = 100,
    HTTP_LIST_MAX = 500 /* messages in an answer */
};

/* GET /api/queue: to, from, older, queue, q, limit, after. */
void http_queue_list(const struct http_routes *routes, struct http_exchange *exchange);
/* GET /api/queue/ID, and with /why, /message behind it. */
void http_queue_show(const struct http_routes *routes, struct http_exchange *exchange);
void http_queue_why(const struct http_routes *routes, struct http_exchange *exchange);
void http_queue_message(const struct http_routes *routes,
                        struct http_exchange *exchange);
/* POST /api/queue/VERB: a request of request.h without its command. */
void http_queue_act(const struct http_routes *routes, struct http_exchange *exchange);

#endif
