/* Other hosts of a group in this process: sibling_calls that answer from a script, from a
 * second daemon's service, never, or not to the end. */
#ifndef T_SUPPORT_SIBLINGS_MEMORY_H
#define T_SUPPORT_SIBLINGS_MEMORY_H

#include "admin/control/fan_out.h"
#include "admin/control/sibling_ask.h"

enum { MEMORY_HOSTS_MAX = GROUP_HOSTS_MAX };

struct memory_host {
    const char *name;
    bool has_no_address, is_lost;
    /* One of these; none: it hangs. */
    struct control_service *service;
    const char *answer; /* lines, each with its LF */
    const char *(*answers)(const struct memory_host *host, const char *line);
    const char *breaks; /* with that trouble behind the answer */
    /* The input. */
    unsigned asked, ignored;
    char line[2000];
};

struct siblings_memory {
    struct loop *loop; /* of the asking host */
    struct memory_host hosts[MEMORY_HOSTS_MAX];
    size_t count;
    struct sibling_calls calls;
    struct cluster_hosts who;
    struct memory_question *questions;
};

/* own: our name. Then `who` is complete. */
void siblings_memory_begin(struct siblings_memory *m, struct loop *loop, const char *own);
struct memory_host *siblings_memory_add(struct siblings_memory *m, const char *name);
/* Questions that nobody has answered or ignored. */
unsigned siblings_memory_open(const struct siblings_memory *m);

#endif
