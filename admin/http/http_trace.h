/* GET /api/trace: a search in the history, an answer in pieces. */
#ifndef ADMIN_HTTP_HTTP_TRACE_H
#define ADMIN_HTTP_HTTP_TRACE_H

#include "admin/http/http_routes.h"

void http_trace(const struct http_routes *routes, struct http_exchange *exchange);

#endif
