/* TLS with a peer that is not ours: openssl calls us, and is called. */
#include "base/net/net.h"

#include "t/support/tls_world.h"

#include <mbedtls/version.h>

/* The output of openssl so far. */
static const char *
said(const struct secrets *k, char *to, size_t size)
{
    FILE *f = fopen(tls_path_of(k, "said", ""), "r");
    size_t got = f ? fread(to, 1, size - 1, f) : 0;

    to[got] = '\0';
    if (f)
        fclose(f);
    return to;
}

static void
run(const struct secrets *k, const char *input, const char *command)
{
    char line[1000];

    unlink(tls_path_of(k, "said", ""));
    snprintf(line, sizeof(line),
             "cd %s && ((%s) 2>/dev/null | openssl %s) >said 2>&1 &", k->directory,
             input, command);
    if (system(line) != 0)
        abort();
}

/* Shell: waits for touch() of this name, for a minute at least. */
#define AWAIT(name)                                                                    \
    "for i in $(seq 1200); do [ -e " name " ] && break; sleep 0.05; done; "

static void
touch(const struct secrets *k, const char *name)
{
    FILE *f = fopen(tls_path_of(k, name, ""), "w");

    if (!f || fclose(f) != 0)
        abort();
}

static const struct {
    const char *options;
    bool good;
    const char *says;
} callers[] = {
    {"-servername one.example.org",                                             true,  "exact"              },
    {"-tls1_2",                                                                 true,  "TLSv1.2"            },
    {"-tls1_2 -cipher ECDHE-ECDSA-CHACHA20-POLY1305",                           true,  "CHACHA20"           },
    {"-tls1_2 -servername rsa.example.net -cipher ECDHE-RSA-AES256-GCM-SHA384", true,
     "AES256-GCM"                                                                                           },
    {"-servername rsa.example.net -curves X25519",                              true,  "X25519"             },
    {"-servername rsa.example.net -curves P-384",                               true,  "384 bits"           },
    {"-tls1_2 -no_ticket",                                                      true,  "TLSv1.2"            },
    {"-alpn smtp",                                                              true,  "ALPN protocol: smtp"},
    {"-tls1",                                                                   false, "alert"              },
    {"-tls1_1",                                                                 false, "alert"              },
    {"-tls1_2 -cipher AES128-GCM-SHA256 -servername rsa.example.net",           false, "alert"              },
    {"-tls1_2 -cipher DHE-RSA-AES128-GCM-SHA256 -servername rsa.example.net",   false,
     "alert"                                                                                                },
    {"-tls1_2 -cipher ECDHE-ECDSA-AES128-SHA256",                               false, "alert"              },
    {"-tls1_2 -cipher ECDHE-ECDSA-AES128-SHA",                                  false, "alert"              },
    {"-alpn http/1.1",                                                          false, "alert"              },
};

static void
test_callers(const struct secrets *k)
{
    struct tls_server *server = server_of(k, "good exact rsa");
    struct net_tls serving = as_server(server);
    char input[200], enough[20], command[400], out[20000];

    for (size_t i = 0; i < sizeof(callers) / sizeof(callers[0]); i++) {
        struct world *w = start("127.0.0.1:0");

        printf("# s_client %s\n", callers[i].options);
        snprintf(command, sizeof(command),
                 "s_client -connect 127.0.0.1:%u -CAfile ca.pem %s "
                 "-cipher 'ALL:@SECLEVEL=0'",
                 net_where(w)->port, callers[i].options);
        if (strstr(callers[i].options, "-cipher"))
            *strstr(command, " -cipher 'ALL") = '\0';
        snprintf(enough, sizeof(enough), "enough-%zu", i);
        snprintf(input, sizeof(input), "echo EHLO openssl; " AWAIT("%s"), enough);
        run(k, input, command);
        until(w, w->server.connection);
        net_start_tls(w->server.connection, &serving);
        net_send(w->server.connection, TEXT("220 petrel\r\n"));
        until(w, strpbrk(w->server.told, "IF") &&
                     strstr(said(k, out, sizeof(out)), callers[i].says));
        said(k, out, sizeof(out));
        ok((strchr(w->server.told, 'S') != NULL) == callers[i].good);
        ok_named(strstr(out, callers[i].says) != NULL, callers[i].says);
        if (callers[i].good) {
            until(w, strstr(said(k, out, sizeof(out)), "220 petrel"));
            ok_named(strstr(out, "220 petrel") != NULL, "hears us");
            ok_named(strstr(out, "Verify return code: 0 (ok)") ||
                         strstr(out, "Verification: OK"),
                     "and believes us");
            until(w, w->server.got.length);
            is_text(buffer_text(&w->server.got), TEXT("EHLO openssl\n"), "we hear it");
            touch(k, enough);
            until(w, strchr(w->server.told, 'E'));
            is_string(w->server.told, "SIE", "to its close_notify");
        } else {
            printf("# %s\n", net_error(w->server.connection));
        }
        touch(k, enough);
        net_abort(&w->server.connection);
        net_finish(w);
    }
    tls_server_free(&server);
}

static const struct {
    const char *options, *host, *error; /* NULL: secured */
} called[] = {
    {"-cert good.pem -key good.key",                                           "mail.example.net", NULL               },
    {"-cert good.pem -key good.key -tls1_2",                                   "mx.example.net",   NULL               },
    {"-cert rsa.pem -key rsa.key -tls1_2 -cipher ECDHE-RSA-AES256-GCM-SHA384",
     "rsa.example.net",                                                                            NULL               },
    {"-cert good.pem -key good.key -no_ticket",                                "127.0.0.1",        NULL               },
    {"-cert good.pem -key good.key -num_tickets 10",                           "mail.example.net", NULL               },
    {"-cert usage.pem -key usage.key",                                         "mail.example.net", "Usage"            },
    {"-cert expired.pem -key expired.key",                                     "mail.example.net", "has expired on"   },
    {"-cert good.pem -key good.key",                                           "mail.example.org", "does not name"    },
    {"-cert good.pem -key good.key -tls1_1 -cipher ALL:@SECLEVEL=0",           "mail.example.net",
     "broke off"                                                                                                      },
    {"-cert rsa.pem -key rsa.key -tls1_2 -cipher AES128-GCM-SHA256",           "rsa.example.net",
     "handshake_failure"                                                                                              },
    {"-cert rsa.pem -key rsa.key -tls1_2 -cipher DHE-RSA-AES128-GCM-SHA256",
     "rsa.example.net",                                                                            "handshake_failure"},
    {"-cert good.pem -key good.key -tls1_2 -cipher ECDHE-ECDSA-AES128-SHA",
     "mail.example.net",                                                                           "handshake_failure"},
#if MBEDTLS_VERSION_NUMBER < 0x03060000
    {"-cert good.pem -key good.key -tls1_3",                                   "mail.example.net",
     "Petrel of Debian 13 has TLS 1.3"                                                                                },
#else
    /* a name without a session: one of TLS 1.2 would be offered alone */
    {"-cert good.pem -key good.key -tls1_3", "127.0.0.1", NULL},
#endif
    {"-nocert -tls1_2 -cipher aNULL:@SECLEVEL=0",                              "mail.example.net",
     "handshake_failure"                                                                                              },
};

/* Where s_server listens: it has said "ACCEPT 127.0.0.1:PORT". */
static struct net_address
wait_for_server(const struct secrets *k)
{
    struct net_address at = {0};
    char out[2000], *port = NULL;

    for (int i = 0; i < 6000 && !port; i++) {
        usleep(10000);
        port = strstr(said(k, out, sizeof(out)), "ACCEPT 127.0.0.1:");
        port = port && strchr(port, '\n') ? port : NULL;
    }
    if (port) {
        *strchr(port, '\n') = '\0';
        at = address(port + strlen("ACCEPT "));
    }
    return at;
}

static void
test_called(const struct secrets *k)
{
    struct tls_client *client = client_of(k, "ca.pem");
    char input[400], go[20], enough[20], command[400], out[20000];

    for (size_t i = 0; i < sizeof(called) / sizeof(called[0]); i++) {
        struct world *w = start(NULL);
        struct net_tls calling = as_client(client, TLS_LEVEL_VERIFY, called[i].host);
        struct net_address at;

        printf("# s_server %s\n", called[i].options);
        snprintf(command, sizeof(command), "s_server -accept 127.0.0.1:0 -naccept 1 %s",
                 called[i].options);
        snprintf(go, sizeof(go), "go-%zu", i);
        snprintf(enough, sizeof(enough), "done-%zu", i);
        snprintf(input, sizeof(input), AWAIT("%s") "echo 220 openssl; " AWAIT("%s"), go,
                 enough);
        run(k, input, command);
        at = wait_for_server(k);
        w->client.connection = net_connect(w->net, &at, NULL, on_event, &w->client);
        net_start_tls(w->client.connection, &calling);
        net_send(w->client.connection, TEXT("EHLO petrel\r\n"));
        until(w, strpbrk(w->client.told, "SF"));
        touch(k, go);
        is_string(w->client.told, called[i].error ? "CF" : "CS",
                  called[i].error ? called[i].error : "secured");
        printf("# %s\n", net_error(w->client.connection));
        if (called[i].error) {
            ok(strstr(net_error(w->client.connection), called[i].error) != NULL);
        } else {
            until(w, w->client.got.length);
            is_text(buffer_text(&w->client.got), TEXT("220 openssl\n"), "we hear it");
            until(w, strstr(said(k, out, sizeof(out)), "EHLO petrel"));
            ok_named(strstr(out, "EHLO petrel") != NULL, "it hears us");
            printf("# %s %s\n", net_tls_facts(w->client.connection).version,
                   net_tls_facts(w->client.connection).cipher);
        }
        touch(k, enough);
        net_close(&w->client.connection);
        until(w, net_connections(w->net) == 0);
        net_finish(w);
    }
    tls_client_free(&client);
}

int
main(void)
{
    struct secrets k;

    make_secrets(&k);
    test_callers(&k);
    test_called(&k);
    drop_secrets(&k);
    return done();
}
