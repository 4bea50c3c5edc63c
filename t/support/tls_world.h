/* Common parts of the tests of TLS: certificates that openssl has just made, and two
 * sides that shake hands over loopback. */
#ifndef T_SUPPORT_TLS_WORLD_H
#define T_SUPPORT_TLS_WORLD_H

#include "base/disk/disk.h"
#include "base/tls/tls.h"
#include "t/support/net_world.h"

#include <ftw.h>

struct secrets {
    char directory[64];
    struct tls *tls;
};

int tls_remove_one(const char *path, const struct stat *status, int type, struct FTW *walk);

void remove_all(const char *directory);

void make_secrets(struct secrets *k);

void drop_secrets(struct secrets *k);

/* One of a few static paths, by turns. */
const char * tls_path_of(const struct secrets *k, const char *name, const char *suffix);

/* names: of pairs, with spaces between. */
struct tls_server * server_of(const struct secrets *k, const char *names);

struct tls_client * client_of(const struct secrets *k, const char *anchors);

struct net_tls as_server(struct tls_server *server);

struct net_tls as_client(struct tls_client *client, enum tls_level level, const char *host);

/* Both sides, implicit TLS, until both are through or one has failed. */
void shake_hands(struct world *w, struct tls_server *server, const struct net_tls *client);

/* Both sides are closed and gone. */
void part(struct world *w);

/* A world with a server of these certificates, and a client that verifies it as `host`. */
struct tls_sides {
    struct world *world;
    struct tls_server *server;
    struct tls_client *client;
    struct net_tls calling;
};

struct tls_sides tls_sides_start(const struct secrets *k, const char *names,
                               const char *anchors, const char *host);

void tls_sides_finish(struct tls_sides *p);

#endif
