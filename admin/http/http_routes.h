/* What is answered at which path: a table. */
#ifndef ADMIN_HTTP_HTTP_ROUTES_H
#define ADMIN_HTTP_HTTP_ROUTES_H

#include "admin/control/questions.h"
#include "admin/http/http_exchange.h"
#include "admin/http/metrics.h"

enum { HTTP_CHECKS_MAX = 8 };

/* A condition of readiness. */
struct http_check {
    const char *name;
    bool good;
    char why[160]; /* when not */
};

struct http_routes {
    struct loop *loop;
    struct log *log;
    struct manager *manager;
    struct questions *questions;
    struct metrics *metrics; /* NULL: no place has them */
    /* Fills the conditions of readiness, and returns their number. */
    size_t (*checks)(void *context, struct http_check checks[HTTP_CHECKS_MAX]);
    void *context;
};

/* context is a struct http_routes: see http_server_settings. */
void http_routes_answer(void *context, struct http_exchange *exchange);

#endif
