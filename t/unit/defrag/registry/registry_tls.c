/* defrag/registry/registry_redis.c, how it gets to a real Redis: names by our own door, one
 * address after the other, and TLS that is verified. */
/* link: t/sim/dns.c */
#include "t/sim/sim_dns.h"

#include "base/tls/tls.h"
#include "t/support/registry_kit_redis.h"

struct secrets {
    struct tls *tls;
    struct tls_client *client, *other; /* clients that trust the CA, another one */
};

static void
meet(struct world *w, const char *scheme, const char *host, const struct server *s,
     struct tls_client *client)
{
    char setting[128], error[256];
    snprintf(setting, sizeof(setting), "%s://%s:%u", scheme, host, s->port);
    registry_world_open(w);
    world_connect(w);
    sim_dns_address(w->dns, "mail.example.net", "127.0.0.1");
    sim_dns_address(w->dns, "other.example.net", "127.0.0.1");
    /* The second of these is Redis'. */
    sim_dns_address(w->dns, "two.example.net", "::1");
    sim_dns_address(w->dns, "two.example.net", "127.0.0.1");
    sim_dns_address(w->dns, "nobody.example.net", "127.0.0.9");
    sim_dns_status(w->dns, "fails.example.net", DNS_TRY_AGAIN);
    w->tls = client;
    w->registry = registry_of(w, "a.example", setting, error);
    if (w->registry == NULL)
        abort();
}

static void
works(const char *scheme, const char *host, const struct server *s,
      struct tls_client *client)
{
    FIXTURE(world, w, meet, registry_world_end, scheme, host, s, client);
    is_string(sure(&w, 1), "own", host);
    ok_named(sim_dns_questions(w.dns) > 0, "... its name was looked up by our door");
    is_string(sure(&w, 2), "own", "... and works");
}

static void
fails(const char *scheme, const char *host, const struct server *s,
      struct tls_client *client, int64_t patience_ms, const char *why)
{
    char line[256];
    FIXTURE(world, w, meet, registry_world_end, scheme, host, s, client);
    registry_be_patient(w.registry, patience_ms);
    breaker_of(w.registry)->retry_ms = 1;
    is_string(claim(&w, 1), "unavailable", why);
    until(&w, !registry_is_up(w.registry));
    snprintf(line, sizeof(line),
             "the registry %s://%s:%u/0 does not answer, this host "
             "works alone: ",
             scheme, host, s->port);
    ok_named(has_said(&w, line), "... is told");
    ok_named(has_said(&w, why), "... with the reason");
    if (!has_said(&w, why))
        printf("# %.*s\n", (int)w.said.length, buffer_text(&w.said).at);
    is_number(registry_counts(w.registry).own, 0, "... and owns nothing");
}

static void
test_names(const struct server *s)
{
    works("redis", "mail.example.net", s, NULL);
    works("redis", "two.example.net", s, NULL);
    fails("redis", "nobody.example.net", s, NULL, PATIENCE_MS, "Connection refused");
    fails("redis", "no.example.net", s, NULL, PATIENCE_MS, "no.example.net");
    fails("redis", "fails.example.net", s, NULL, PATIENCE_MS, "fails.example.net");
}

static void
start_with(struct server *s, const char *certificate, const char *clients)
{
    char extra[1024];
    snprintf(extra, sizeof(extra),
             "port 0\ntls-port %u\ntls-cert-file %s/%s.pem\ntls-key-file %s/%s.key\n"
             "tls-ca-cert-file %s/ca.pem\ntls-auth-clients %s\n",
             s->port, s->home, certificate, s->home, certificate, s->home, clients);
    if (!registry_redis_server_start(s, extra)) {
        printf("Bail out! this Redis knows no TLS\n");
        exit(1);
    }
}

static void
test_tls(struct server *s, const struct secrets *k)
{
    start_with(s, "good", "no");
    works("rediss", "mail.example.net", s, k->client);
    works("rediss", "127.0.0.1", s, k->client);
    fails("rediss", "other.example.net", s, k->client, PATIENCE_MS,
          "TLS: certificate does not name other.example.net");
    fails("rediss", "mail.example.net", s, k->other, PATIENCE_MS,
          "TLS: unknown issuer");
    fails("redis", "mail.example.net", s, NULL, PATIENCE_MS, "alone: ");
    server_stop(s);
    start_with(s, "expired", "no");
    fails("rediss", "mail.example.net", s, k->client, PATIENCE_MS,
          "TLS: certificate has expired");
    server_stop(s);
    start_with(s, "good", "yes");
    fails("rediss", "mail.example.net", s, k->client, PATIENCE_MS, "alone: ");
    server_stop(s);
}

int
main(void)
{
    struct server s = {.port = free_port()};
    struct secrets k;
    char command[128], path[128], error[TLS_ERROR_MAX];
    registry_make_home(s.home);
    if (*redis_version() == '\0' || !registry_redis_server_start(&s, "")) {
        printf("1..0 # SKIP %s\n", *redis_version() == '\0'
                                       ? "built without hiredis"
                                       : "no redis-server here (Debian: redis-tools)");
        remove_tree(s.home);
        return 0;
    }
    snprintf(command, sizeof(command), "sh t/support/tls_certificates.sh %s", s.home);
    if (system(command) != 0)
        abort();
    k.tls = tls_new(error, sizeof(error));
    snprintf(path, sizeof(path), "%s/ca.pem", s.home);
    k.client = tls_client_new(k.tls, path, error, sizeof(error));
    snprintf(path, sizeof(path), "%s/other-ca.pem", s.home);
    k.other = tls_client_new(k.tls, path, error, sizeof(error));
    if (k.client == NULL || k.other == NULL)
        abort();
    test_names(&s);
    fails("rediss", "mail.example.net", &s, k.client, 20, "TLS: no handshake in time");
    server_stop(&s);
    test_tls(&s, &k);
    tls_client_free(&k.client);
    tls_client_free(&k.other);
    tls_free(&k.tls);
    remove_tree(s.home);
    return done();
}
