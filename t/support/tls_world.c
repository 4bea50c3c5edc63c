/* Common parts of the tests of TLS. */
#include "t/support/tls_world.h"

int
tls_remove_one(const char *path, const struct stat *status, int type, struct FTW *walk)
{
    (void)status, (void)type, (void)walk;
    return remove(path);
}

void
remove_all(const char *directory)
{
    nftw(directory, tls_remove_one, 8, FTW_DEPTH | FTW_PHYS);
}

void
make_secrets(struct secrets *k)
{
    char command[200], error[TLS_ERROR_MAX] = "";

    strcpy(k->directory, "/tmp/petrel-tls-XXXXXX");
    if (!mkdtemp(k->directory))
        abort();
    snprintf(command, sizeof(command), "sh t/support/tls_certificates.sh %s", k->directory);
    if (system(command) != 0) {
        printf("Bail out! no certificates: is openssl there?\n");
        exit(1);
    }
    k->tls = tls_new(error, sizeof(error));
    if (!k->tls)
        abort();
}

void
drop_secrets(struct secrets *k)
{
    tls_free(&k->tls);
    remove_all(k->directory);
}

const char *
tls_path_of(const struct secrets *k, const char *name, const char *suffix)
{
    static char paths[8][128];
    static unsigned next;
    char *path = paths[next++ % 8];

    snprintf(path, sizeof(paths[0]), "%s/%s%s", k->directory, name, suffix);
    return path;
}

struct tls_server *
server_of(const struct secrets *k, const char *names)
{
    struct text rest = text_from(names), name;
    char paths[8][2][128], error[TLS_ERROR_MAX] = "";
    struct tls_pair pairs[8];
    struct tls_server *server;
    size_t count = 0;

    while (text_word(&rest, " ", &name)) {
        snprintf(paths[count][0], 128, "%s/%.*s.pem", k->directory, TEXT_ARGS(name));
        snprintf(paths[count][1], 128, "%s/%.*s.key", k->directory, TEXT_ARGS(name));
        pairs[count].certificate = paths[count][0];
        pairs[count].key = paths[count][1];
        count++;
    }
    server = tls_server_new(k->tls, pairs, count, error, sizeof(error));
    if (!server) {
        printf("# %s\n", error);
        abort();
    }
    return server;
}

struct tls_client *
client_of(const struct secrets *k, const char *anchors)
{
    char error[TLS_ERROR_MAX] = "";
    struct tls_client *client = tls_client_new(
        k->tls, anchors ? tls_path_of(k, anchors, "") : NULL, error, sizeof(error));

    if (!client) {
        printf("# %s\n", error);
        abort();
    }
    return client;
}

struct net_tls
as_server(struct tls_server *server)
{
    return (struct net_tls){.server = server};
}

struct net_tls
as_client(struct tls_client *client, enum tls_level level, const char *host)
{
    return (struct net_tls){
        .client = client, .options = {.level = level, .host = text_from(host)}
    };
}

void
shake_hands(struct world *w, struct tls_server *server, const struct net_tls *client)
{
    struct net_tls serving = as_server(server);

    connect_client(w);
    until(w, w->server.connection);
    w->calling = true;
    net_start_tls(w->server.connection, &serving);
    net_start_tls(w->client.connection, client);
    w->calling = false;
    until(w, (strchr(w->client.told, 'S') && strchr(w->server.told, 'S')) ||
                 strchr(w->client.told, 'F'));
}

void
part(struct world *w)
{
    net_close(&w->client.connection);
    net_close(&w->server.connection);
    until(w, net_connections(w->net) == 0);
    forget(&w->client);
    forget(&w->server);
    buffer_clear(&w->client.got);
    buffer_clear(&w->server.got);
}

struct tls_sides
tls_sides_start(const struct secrets *k, const char *names, const char *anchors,
               const char *host)
{
    struct tls_sides p = {.world = start("127.0.0.1:0"),
                         .server = server_of(k, names),
                         .client = client_of(k, anchors)};

    p.calling = as_client(p.client, TLS_LEVEL_VERIFY, host);
    return p;
}

void
tls_sides_finish(struct tls_sides *p)
{
    part(p->world);
    tls_server_free(&p->server);
    tls_client_free(&p->client);
    net_finish(p->world);
}
