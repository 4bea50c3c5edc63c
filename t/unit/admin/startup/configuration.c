/* admin/startup/configuration.c: all settings checked together, and what the parts get. */
#include "admin/startup/configuration.h"

#include "t/support/tap.h"

static bool
has(const struct buffer *out, const char *words)
{
    return out->length > 0 &&
           memmem(out->at, out->length, words, strlen(words)) != NULL;
}

enum { GIVEN_MAX = 8, GIVEN_LENGTH = 60 };

/* Reads these settings; the errors, or "", are in out. */
static struct configuration *
read_these(const char *const *given, bool without_secrets, struct buffer *out)
{
    static char copies[GIVEN_MAX][GIVEN_LENGTH];
    char *settings[GIVEN_MAX + 1] = {NULL};
    for (size_t i = 0; i < GIVEN_MAX && given[i] != NULL; i++) {
        snprintf(copies[i], sizeof(copies[i]), "%s", given[i]);
        settings[i] = copies[i];
    }
    struct options_sources sources = {.overrides = settings,
                                      .without_secrets = without_secrets};
    buffer_clear(out);
    return configuration_read(&sources, out);
}

static void
test_errors(struct buffer *out)
{
    struct configuration *c = read_these(
        (const char *[]){"hostname=a b", "recipient_limit=many", NULL}, false, out);
    ok_named(c == NULL, "settings that cannot be read");
    ok_named(has(out, "hostname") && has(out, "recipient_limit"),
             "have a line for each error");
    c = read_these((const char *[]){"hostname=a.test", "listen=nowhere", "routes=* nowhere:",
                              "defrag_registry=what://x", "user=no-such-user", NULL},
                   false, out);
    ok_named(c == NULL, "values that only their part can judge");
    static const char *const keys[] = {"listen: ", "routes: ", "defrag_registry: ",
                                       "user: no such user: 'no-such-user'"};
    for (size_t i = 0; i < sizeof(keys) / sizeof(keys[0]); i++)
        ok_named(has(out, keys[i]), keys[i]);
    c = read_these((const char *[]){"hostname=a.test", "listen=nowhere",
                              "tls_key=/does/not/exist", "user=no-such-user", NULL},
                   true, out);
    ok_named(c != NULL, "a command without secrets does not ask for what it lacks");
    is_text(buffer_text(out), TEXT(""), "and says nothing");
    configuration_free(&c);
    ok_named(c == NULL, "freed");
    configuration_free(&c);
}

/* The password of a server has its place; one that nobody uses is a mistake. */
static void
test_borrowed(struct buffer *out)
{
    const char *given[] = {"hostname=a.test", "cluster=mail", "cluster_redis_password=x",
                           "defrag_registry=redis://r.test", NULL, NULL};
    if (*redis_version() == '\0')
        return;
    struct configuration *c = read_these(given, false, out);
    ok_named(c == NULL && has(out, "cluster_redis_password: not used, since the server is "
                                   "that of defrag_registry"),
             "a password for a server that is borrowed");
    configuration_free(&c);
    given[4] = "cluster_redis=redis://r.test";
    c = read_these(given, false, out);
    ok_named(c != NULL, "one for our own server is good");
    configuration_free(&c);
}

static void
test_parts(struct buffer *out)
{
    struct configuration *c = read_these(
        (const char *[]){"hostname=a.test", "listen=127.0.0.1:2525", "recipient_limit=7",
                   "auth_failure_limit=3", "routes=* smtp://b.test", "smtp_port=2526",
                   "client_session_rate=9/m", NULL},
        false, out);
    is_text(buffer_text(out), TEXT(""), "good settings");
    if (c == NULL)
        return;
    const struct listener_settings *in = &c->options.server;
    is_string(in->hostname, "a.test", "the listener gets its name,");
    is_text(in->listen, TEXT("127.0.0.1:2525"), "addresses,");
    is_number(in->recipient_limit, 7, "limits");
    is_text(in->clients.each[CLIENT_USAGE_SESSION], TEXT("9/m"), "and rates");
    is_number(c->options.delivery.smtp_port, 2526, "the client gets its port");
    is_string(c->options.delivery.hostname, "a.test", "and name");
    configuration_free(&c);
}

static void
test_anchors(struct buffer *out)
{
    char error[200] = "";
    struct configuration *c = read_these(
        (const char *[]){"hostname=a.test", "tls_ca=/does/not/exist", NULL}, false, out);
    if (c == NULL) {
        ok_named(has(out, "tls_ca"), "a file that is missing");
        return;
    }
    ok_named(!configuration_trust(c, NULL, error, sizeof(error)),
             "certificates that cannot be read");
    ok_named(strstr(error, "/does/not/exist") != NULL, "are named");
    configuration_free(&c);
}

int
main(void)
{
    struct buffer out;
    buffer_init(&out, CONFIGURATION_ERRORS_MAX);
    test_errors(&out);
    test_borrowed(&out);
    test_parts(&out);
    test_anchors(&out);
    buffer_free(&out);
    return done();
}
