/* The stand-in for base/http/http_call.h (link t/sim/http_call.c): canned responses by URL, a few ms later. */
#ifndef T_SIM_SIM_HTTP_H
#define T_SIM_SIM_HTTP_H

#include "base/http/http_call.h"

enum { SIM_HTTP_DELAY_MS = 20 };

/* Replaces what it has for the URL; "*": for all that have none of their own. A URL without an answer cannot be reached by TCP. */
void sim_http_answer(struct http_caller *caller, const char *url, unsigned status, const char *type,
                     const char *body);
/* It is reached, and fails. */
void sim_http_fail(struct http_caller *caller, const char *url, const char *error);
void sim_http_forget(struct http_caller *caller);
/* Later calls take this long. */
void sim_http_delay(struct http_caller *caller, int64_t delay_ms);
/* Started so far; and what the last one asked for. */
unsigned sim_http_calls(const struct http_caller *caller);
const char *sim_http_url(const struct http_caller *caller);
const struct http_call_options *sim_http_options(const struct http_caller *caller);
/* The same: what it sent. Borrowed until the next call. */
struct text sim_http_fields(const struct http_caller *caller);
struct text sim_http_body(const struct http_caller *caller);
/* Hears of each call as it is answered; status 0: it fails. */
void sim_http_on_answer(struct http_caller *caller,
                        void (*answered)(void *context, unsigned status, struct text body),
                        void *context);

/* Calls wait in line while set, and begin when it ends. */
void sim_http_hold(struct http_caller *caller, bool holds);
/* Calls fail like this one: no space is left in line. */
void sim_http_refuse(struct http_caller *caller, bool refuses);

#endif
