/* The outcome of a POST, by its response or its failure. Pure. */
#ifndef QUEUE_POSTER_POSTER_REPLY_H
#define QUEUE_POSTER_POSTER_REPLY_H

#include "base/http/http_call.h"
#include "base/outcome.h"
#include "sched/route/route.h"

/* A delay that the application asks for with a deferral is obeyed within the bounds of
 * reply_class_delay_ms(), as one that a server of SMTP asks for in words. */
struct outcome poster_reply_judge(const struct target *target,
                                  const struct http_result *result, int64_t now_ms);

#endif
