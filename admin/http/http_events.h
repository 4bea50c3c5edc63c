/* GET /events: events as they happen. */
#ifndef ADMIN_HTTP_HTTP_EVENTS_H
#define ADMIN_HTTP_HTTP_EVENTS_H

#include "admin/http/http_routes.h"

void http_events(const struct http_routes *routes, struct http_exchange *exchange);

#endif
