/* The rules that keep browsers of others out: which requests are answered at all, before
 * any key is asked for.
 *
 * Pure. A page of a foreign site, or a name that was made to point at us (DNS
 * rebinding), makes a browser send requests here. Each request names a host that cannot
 * belong to others; an origin that a browser reports must be ours; and requests for data
 * or acts need a field that no foreign page can send without a preflight, which is
 * refused. */
#ifndef ADMIN_HTTP_HTTP_ACCESS_H
#define ADMIN_HTTP_HTTP_ACCESS_H

#include "base/http/http.h"

struct http_names {
    struct text hostname;
    struct text more; /* the list of `http_names` */
    bool no_key;      /* what is asked for needs none: names that a neighbour may claim
                         (one label, .local, .lan ...) must be listed */
};

enum http_area {
    HTTP_AREA_OPEN, /* the page's files, health and metrics */
    HTTP_AREA_MAIL, /* submission: with a key in every request, which its route demands */
    HTTP_AREA_DATA /* everything else */
};

/* 0, or the status of the refusal; *why is one sentence then. */
unsigned http_access_host(const struct http_reader *request,
                          const struct http_names *names, const char **why)
    __attribute__((warn_unused_result));
unsigned http_access_origin(const struct http_reader *request,
                            const struct http_names *names, struct text path,
                            const char **why) __attribute__((warn_unused_result));
unsigned http_access_fields(const struct http_reader *request, enum http_area area,
                            const char **why) __attribute__((warn_unused_result));

/* The token of "Authorization: Bearer TOKEN"; at is NULL when there is none. */
struct text http_access_bearer(const struct http_reader *request);
/* The value of a cookie; at is NULL when there is none. */
struct text http_access_cookie(const struct http_reader *request, struct text name);

#endif
