/* POST /api/test: a test message is sent and followed, a line for each event. */
#ifndef ADMIN_HTTP_HTTP_TEST_H
#define ADMIN_HTTP_HTTP_TEST_H

#include "admin/http/http_routes.h"

void http_test(const struct http_routes *routes, struct http_exchange *exchange);

#endif
