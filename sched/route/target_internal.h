/* What the files target*.c share. Nobody else includes this. */
#ifndef SCHED_TARGET_INTERNAL_H
#define SCHED_TARGET_INTERNAL_H

#include "sched/route/target.h"

/* Of a scheme with a host behind it. */
struct target_scheme {
    struct text name;
    enum target_kind kind;
    uint16_t port;
    enum target_tls tls;
    bool implicit;
    bool promised; /* its name says TLS: ?tls= cannot take that back */
};

struct target_parser {
    struct target *target;
    char *problem;
    const struct target_scheme *scheme; /* NULL: mx, or without a host */
    uint16_t names;                     /* bytes of path that names take; 0: none yet */
};

/* For a return statement: always false. */
bool target_complain(struct target_parser *p, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

/* [user@]host[:port], the first of a list or one more. */
bool target_add_host(struct target_parser *p, struct text t, uint16_t port,
                     bool is_first);
/* Whether a password would go over a network. */
bool target_has_distant_user(const struct target *t);

#endif
