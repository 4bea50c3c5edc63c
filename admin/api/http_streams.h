/* Answers that are streams: of the history, of a test message, and of all events. */
#ifndef ADMIN_API_HTTP_STREAMS_H
#define ADMIN_API_HTTP_STREAMS_H

#include "admin/api/http_routes.h"

/* GET /api/trace: a search in the history, an answer in pieces. */
void http_trace(const struct http_routes *routes, struct http_exchange *exchange);
/* POST /api/test: the lines of trial.h. */
void http_test(const struct http_routes *routes, struct http_exchange *exchange);
/* GET /events: the live stream (live.h). */
void http_events(const struct http_routes *routes, struct http_exchange *exchange);

#endif
