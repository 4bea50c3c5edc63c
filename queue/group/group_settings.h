/* The settings of a group of hosts: `cluster` and those that begin with it. Pure. */
#ifndef QUEUE_GROUP_GROUP_SETTINGS_H
#define QUEUE_GROUP_GROUP_SETTINGS_H

#include "base/buffer.h"
#include "base/redis/redis.h"

enum {
    GROUP_NAME_MAX = 63, /* bytes of its name, of an egress */
    GROUP_HOST_MAX = REDIS_HOST_MAX,
    GROUP_HOSTS_MAX = 256,                 /* BANK_HOSTS_MAX */
    GROUP_ADDRESS_MAX = REDIS_HOST_MAX + 8 /* HOST:PORT */
};

/* As they are written. */
struct group_texts {
    struct text cluster, host, redis, redis_password, peers, egress, address;
    unsigned slice, slices; /* each slice is a host of its own: HOST.SLICE */
};

struct group_settings {
    char name[GROUP_NAME_MAX + 1]; /* "": there is no group */
    char host[GROUP_HOST_MAX + 1]; /* ours, in lower case */
    char egress[GROUP_NAME_MAX + 1];
    bool shares_addresses; /* else those where we log in alone */
    struct redis_place places[REDIS_PLACES_MAX];
    size_t place_count;                       /* 0: no Redis */
    char (*peers)[GROUP_HOST_MAX + 1];        /* names of the others, in lower case */
    char (*addresses)[GROUP_ADDRESS_MAX + 1]; /* of the peers, HOST:PORT */
    size_t peer_count;
    char address[GROUP_ADDRESS_MAX + 1]; /* where others reach us; "": not set */
    bool has_lead; /* all hosts are slices of this machine; one is the bank */
};

/* A name of the group, of a host or of an egress, in lower case. False: it is none, or does
 * not fit. */
bool group_name_read(struct text name, char *out, size_t size);
/* False with one line per error ("cluster_redis: ..."), without passwords. An unset
 * cluster is valid, and nothing else is read: slices are then a group of their own. */
bool group_settings_read(const struct group_texts *texts, struct group_settings *out,
                         struct buffer *errors);
/* Whether a server is asked by TLS. */
bool group_needs_tls(const struct group_settings *settings);
/* Forgets passwords, too. */
void group_settings_free(struct group_settings *settings);

#endif
