/* Shared by target*.c. No other file includes this. */
#ifndef SCHED_ROUTE_TARGET_INTERNAL_H
#define SCHED_ROUTE_TARGET_INTERNAL_H

#include "sched/route/target.h"

/* A scheme that a host follows. */
struct target_scheme {
    struct text name;
    enum target_kind kind;
    uint16_t port;
    enum target_tls tls;
    bool implicit;
    bool promised; /* its name promises TLS: ?tls= cannot remove it */
};

struct target_parser {
    struct target *target;
    char *problem;
    const struct target_scheme *scheme; /* NULL: mx, or without a host */
    uint16_t names;                     /* bytes of path that names use; 0: none yet */
};

/* For a return statement: always false. */
bool target_complain(struct target_parser *p, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

/* Adds [user@]host[:port], the first of a list or a further one. */
bool target_add_host(struct target_parser *p, struct text t, uint16_t port,
                     bool is_first);
/* Adds it to the names in path. Its offset; 0: no space. */
uint16_t target_add_name(struct target_parser *p, struct text name);
/* Behind https:// or http://: [user@]host[:port][/path]. */
bool target_http_parse(struct target_parser *p, const struct target_scheme *scheme,
                       struct text rest);
/* True: it is an option for a web application. */
bool target_http_option(struct target_parser *p, struct text key, struct text value,
                        bool *good);
/* True: it is add_header or remove_header. */
bool target_fields_option(struct target_parser *p, struct text key, struct text value,
                          bool *good);
/* Percent-encoding (RFC 3986 §2.1). False: empty, badly encoded, or too long. */
bool target_decode(struct text t, char *to, size_t size, size_t *length);
/* "yes", "no". */
bool target_flag_parse(struct text value, bool *flag);
/* Whether a password would cross a network. */
bool target_has_distant_user(const struct target *t);

#endif
