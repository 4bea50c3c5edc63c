/* The settings of second copies in Redis: `copies` and those that begin with it. Pure. */
#ifndef QUEUE_COPIES_COPIES_SETTINGS_H
#define QUEUE_COPIES_COPIES_SETTINGS_H

#include "base/buffer.h"
#include "base/redis/redis.h"
#include "queue/group/group_settings.h"

enum { COPIES_REPLICAS_MAX = 9 };

/* As they are written; a section of the options. */
struct copies_options {
    char *copies, *password;
    bool required;
    int64_t replicas, message_max, adopt_after_ms; /* adopt_after_ms: 0: never */
};

struct copies_settings {
    struct redis_place places[REDIS_PLACES_MAX];
    size_t place_count; /* 0: there are no copies, and nothing else counts */
    bool required;      /* 451 while there can be no copy */
    unsigned replicas;  /* that must have it, beside the server itself */
    int64_t message_max, adopt_after_ms;
    char group[GROUP_NAME_MAX + 1]; /* the name of the group, or "" */
    char host[GROUP_HOST_MAX + 1];  /* ours, in lower case; of slices HOST.SLICE */
    unsigned slices;                /* 0 or 1: there are none */
};

/* host: the name of this host, as `cluster_host` has it, without the slice. False with one
 * line per error ("copies: ..."), without passwords. */
bool copies_settings_read(const struct copies_options *options,
                          const struct group_settings *group, struct text host,
                          unsigned slice, unsigned slices, struct copies_settings *out,
                          struct buffer *errors);
/* Whether a server is asked by TLS. */
bool copies_need_tls(const struct copies_settings *settings);
/* Forgets passwords, too. */
void copies_settings_forget(struct copies_settings *settings);

#endif
