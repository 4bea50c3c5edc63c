/* The descriptions of the other hosts of a group in Redis, pi:GROUP. Pure. */
#ifndef QUEUE_GROUP_GROUP_SIBLINGS_H
#define QUEUE_GROUP_GROUP_SIBLINGS_H

#include "queue/group/siblings.h"

enum { GROUP_INFO_MAX = 1024 /* bytes of the description of a host */ };

/* The description of this host. */
struct group_self {
    char address[GROUP_ADDRESS_MAX + 1]; /* HOST:PORT; "": nobody can call us */
    char spool[SIBLING_SPOOL_MAX + 1];
    char state[SIBLING_STATE_MAX + 1];
    char version[SIBLING_VERSION_MAX + 1];
    size_t waiting; /* messages */
};

struct group_sibling {
    char host[GROUP_HOST_MAX + 1];
    struct group_self self;
};

struct group_siblings { /* zeroed: nobody */
    struct group_sibling *all;
    size_t count;
};

/* JSON, with the number of the run, which tells namesakes apart. */
void group_siblings_write(const struct group_self *self, const char *run,
                          char out[GROUP_INFO_MAX]);
/* "HOST JSON" a line, at most GROUP_HOSTS_MAX: replaces all. Members of a line that are
 * not understood are empty: Redis is another machine. */
void group_siblings_read(struct group_siblings *s, struct text lines);
/* NULL: it says nothing. */
const struct group_self *group_siblings_find(const struct group_siblings *s,
                                             const char *host);
void group_siblings_free(struct group_siblings *s);

#endif
