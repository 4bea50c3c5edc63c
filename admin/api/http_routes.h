/* The table of paths and their answers. */
#ifndef ADMIN_API_HTTP_ROUTES_H
#define ADMIN_API_HTTP_ROUTES_H

#include "admin/control/health.h"
#include "admin/answer/questions.h"
#include "admin/answer/trial.h"
#include "admin/http/http_exchange.h"
#include "admin/api/live.h"
#include "admin/metrics/metrics.h"
#include "admin/metrics/series.h"
#include "admin/post/post_door.h"

struct http_routes {
    struct loop *loop;
    struct log *log;
    struct manager *manager;
    struct questions *questions;
    struct metrics *metrics; /* NULL: no place has them */
    const struct health *health;
    struct live *live;
    struct series *series;
    struct trials *trials;  /* NULL: no test messages */
    struct post_door *post; /* NULL: no mail */
    bool show_subjects;     /* to those who may operate */
};

/* context is a struct http_routes: see http_server_settings. */
void http_routes_answer(void *context, struct http_exchange *exchange);

#endif
