/* TLS without a socket: files that are read, names, and two sessions whose records pass
 * through memory, where they can be watched and spoilt. */
#include "base/tls/tls_internal.h"

#include "base/tls/tls_session.h"
#include "t/support/tls_world.h"

/* One direction of records. */
struct pipe_end {
    struct buffer *from, *to;
    bool cut;          /* nothing more will come */
    int broken;        /* a negative errno */
    struct buffer all; /* ever sent */
};

struct duel {
    struct buffer there, back;
    struct pipe_end client_end, server_end;
    struct tls_session *client, *server;
};

static ssize_t
pipe_receive(void *context, char *to, size_t size)
{
    struct pipe_end *e = context;
    size_t got = e->from->length < size ? e->from->length : size;

    if (e->broken)
        return e->broken;
    if (!got)
        return e->cut ? 0 : -EAGAIN;
    memcpy(to, e->from->at, got);
    buffer_take(e->from, got);
    return (ssize_t)got;
}

static bool
pipe_send(void *context, struct text records)
{
    struct pipe_end *e = context;

    return buffer_add(&e->all, records) && buffer_add(e->to, records);
}

static struct duel *
duel_new(struct tls_server *server, struct tls_client *client,
         const struct tls_client_options *options)
{
    struct duel *d = memory_new(sizeof(*d));
    struct tls_pipe pipe = {pipe_receive, pipe_send, NULL};

    buffer_init(&d->there, 1 << 20);
    buffer_init(&d->back, 1 << 20);
    d->client_end = (struct pipe_end){.from = &d->back, .to = &d->there};
    d->server_end = (struct pipe_end){.from = &d->there, .to = &d->back};
    buffer_init(&d->client_end.all, 1 << 20);
    buffer_init(&d->server_end.all, 1 << 20);
    pipe.context = &d->client_end;
    d->client = tls_session_call(client, options, &pipe);
    pipe.context = &d->server_end;
    d->server = tls_session_serve(server, TLS_MAIL, &pipe);
    return d;
}

static void
duel_free(struct duel **duel)
{
    struct duel *d = *duel;

    tls_session_free(&d->client);
    tls_session_free(&d->server);
    buffer_free(&d->there);
    buffer_free(&d->back);
    buffer_free(&d->client_end.all);
    buffer_free(&d->server_end.all);
    free(d);
    *duel = NULL;
}

/* Both through. */
static bool
duel_shake(struct duel *d)
{
    enum progress client = PROGRESS_MORE, server = PROGRESS_MORE;

    for (int i = 0; i < 10; i++) {
        client = tls_session_shake(d->client);
        server = tls_session_shake(d->server);
    }
    return client == PROGRESS_DONE && server == PROGRESS_DONE;
}

/* The input of `to` from the other, "" for nothing yet. */
static const char *
heard(struct tls_session *to, char *out, size_t size)
{
    ssize_t got = tls_session_read(to, out, size - 1);

    out[got > 0 ? got : 0] = '\0';
    return out;
}

static struct tls_client_options
wish_of(enum tls_level level, const char *host)
{
    return (struct tls_client_options){.level = level, .host = text_from(host)};
}

TEST(names)
{
    static const struct {
        const char *pattern, *host;
        bool matches;
    } cases[] = {
        {"mail.example.net", "mail.example.net",          true },
        {"Mail.Example.NET", "mAIL.eXAMPLE.net",          true },
        {"mail.example.net", "mail.example.net.",         true },
        {"mail.example.net", "mail.example.ne",           false},
        {"mail.example.net", "xmail.example.net",         false},
        {"example.net",      "mail.example.net",          false},
        {"*.example.net",    "mail.example.net",          true },
        {"*.example.net",    "MAIL.EXAMPLE.NET.",         true },
        {"*.example.net",    "xn--bcher-kva.example.net", true },
        {"*.example.net",    "example.net",               false},
        {"*.example.net",    ".example.net",              false},
        {"*.example.net",    "a.b.example.net",           false},
        {"*.example.net",    "mail.example.org",          false},
        {"*.net",            "example.net",               false}, /* a whole top-level domain */
        {"*",                "example",                   false},
        {"*",                "*",                         true }, /* nobody is called that */
        {"*.",               "a.",                        false},
        {"m*.example.net",   "mail.example.net",          false},
        {"*l.example.net",   "mail.example.net",          false},
        {"mail.*.net",       "mail.example.net",          false},
        {"",                 "mail.example.net",          false},
        {"",                 "",                          false},
        {"mail.example.net", "",                          false},
        {".",                ".",                         true },
        {"*.example.net",    "..example.net",             false},
    };

    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        printf("# '%s' '%s'\n", cases[i].pattern, cases[i].host);
        ok(tls_name_matches(text_from(cases[i].pattern), text_from(cases[i].host)) ==
           cases[i].matches);
    }
    ok_named(!tls_name_matches(text_of("mail.example.net\0.evil.org", 26),
                               TEXT("mail.example.net")),
             "a NUL ends nothing");
    ok_named(!tls_name_matches(TEXT("mail.example.net"),
                               text_of("mail.example.net\0.evil.org", 26)),
             "on either side");
}

TEST(version)
{
    ok(strncmp(tls_version(), "mbedTLS ", 8) == 0);
    printf("# %s\n", tls_version());
}

/* The error of a server of one pair, without the directory; "" when there is none. */
static const char *
server_error(const struct secrets *k, const char *certificate, const char *key)
{
    static char error[TLS_ERROR_MAX];
    struct tls_pair pair = {tls_path_of(k, certificate, ""), tls_path_of(k, key, "")};
    struct tls_server *server;
    char *place;

    error[0] = '\0';
    server = tls_server_new(k->tls, &pair, 1, error, sizeof(error));
    ok_named(!server == !!error[0], "either a server or an error");
    ok_named(!strchr(error, '\n'), "of one line");
    tls_server_free(&server);
    while ((place = strstr(error, k->directory)))
        memmove(place, place + strlen(k->directory) + 1,
                strlen(place + strlen(k->directory) + 1) + 1);
    return error;
}

static void
add_name(void *context, const char *name)
{
    strcat(context, name);
    strcat(context, " ");
}

static void
test_server_files(const struct secrets *k)
{
    struct tls_server *server;

    is_string(server_error(k, "good.pem", "good.key"), "", "a pair");
    is_string(server_error(k, "rsa.pem", "rsa.key"), "", "of RSA");
    is_string(server_error(k, "good-both.pem", "good-both.pem"), "", "in one file");
    is_string(server_error(k, "good.pem", "rsa.key"),
              "the key in rsa.key is not that of the certificate in good.pem",
              "a wrong key");
    is_string(server_error(k, "missing.pem", "good.key"),
              "cannot read missing.pem: No such file or directory", "no certificate");
    is_string(server_error(k, "good.pem", "missing.key"),
              "cannot read missing.key: No such file or directory", "no key");
    is_string(server_error(k, "good.key", "good.key"), "no certificate in good.key",
              "a key for a certificate");
    is_string(server_error(k, "good.pem", "good.pem"),
              "good.pem: has no private key (tls_key, or key= of a route, names the file of the key; unset: "
              "it is in that of the certificate)",
              "a certificate for a key");
    is_string(server_error(k, "good.pem", "locked.key"),
              "locked.key: the key has a passphrase; remove it: openssl pkey -in KEY "
              "-out NEW",
              "a locked key");
    is_string(server_error(k, "usage.pem", "usage.key"),
              "the certificate in usage.pem is not for servers", "a client's");
    is_string(server_error(k, "empty", "good.key"), "cannot read empty: Is a directory",
              "a directory");
    is_string(server_error(k, "anchors/README", "good.key"),
              "no certificate in anchors/README", "junk");
    server = server_of(k, "good expired");
    struct tls_certificate own;
    ok_named(tls_server_certificate(server, 1, &own), "its second certificate");
    is_number(own.until_ms, 1612325106000, "its end");
    ok_named(strstr(own.name, ".") != NULL, own.name);
    is_number(own.from_ms, 1577836800000, "its beginning");
    char names[200] = "";
    tls_server_each_name(server, 0, add_name, names);
    is_string(names, "mail.example.net mx.example.net 127.0.0.1 ::1 ", "all names of the first");
    tls_server_each_name(server, 2, add_name, names);
    tls_server_free(&server);
    server = server_of(k, "common");
    names[0] = '\0';
    tls_server_each_name(server, 0, add_name, names);
    is_string(names, "common.example.net ", "where there are none, the common one");
    ok_named(!tls_server_certificate(server, 2, &own), "there are two");
    tls_server_free(&server);
    ok(server == NULL);
    tls_server_free(&server);
}

static const char *
client_error(const struct secrets *k, const char *anchors)
{
    static char error[TLS_ERROR_MAX];
    struct tls_client *client;

    error[0] = '\0';
    client = tls_client_new(k->tls, tls_path_of(k, anchors, ""), error, sizeof(error));
    ok_named(!client == !!error[0], "either a client or an error");
    tls_client_free(&client);
    ok(client == NULL);
    return error;
}

static void
test_client_files(const struct secrets *k)
{
    char text[200];

    is_string(client_error(k, "ca.pem"), "", "a file");
    is_string(client_error(k, "both.pem"), "", "of several");
    is_string(client_error(k, "anchors"), "", "a directory, with links and junk");
    snprintf(text, sizeof(text), "no certificates in the directory %s/empty",
             k->directory);
    is_string(client_error(k, "empty"), text, "an empty directory");
    snprintf(text, sizeof(text), "cannot read %s/missing: No such file or directory",
             k->directory);
    is_string(client_error(k, "missing"), text, "nothing");
    snprintf(text, sizeof(text), "no certificate in %s/good.key", k->directory);
    is_string(client_error(k, "good.key"), text, "no certificate");
}

static void
test_talk(const struct secrets *k)
{
    struct tls_server *server = server_of(k, "good");
    struct tls_client *client = client_of(k, "ca.pem");
    struct tls_client_options options = wish_of(TLS_LEVEL_VERIFY, "mail.example.net");
    struct duel *d = duel_new(server, client, &options);
    char out[100];

    ok_named(tls_session_shake(d->server) == PROGRESS_MORE, "the server waits");
    is_number(d->back.length, 0, "in silence");
    is_string(tls_session_facts(d->server).cipher, "", "no cipher yet");
    is_string(tls_session_facts(d->client).version, "", "no version");
    ok(!tls_session_facts(d->client).is_verified && !tls_session_has_more(d->client));
    ok_named(duel_shake(d), "then hands are shaken");
    ok(tls_session_facts(d->client).is_verified && !tls_session_facts(d->server).is_verified);
    ok_named(tls_session_write(d->client, TEXT("hello there")), "a word");
    ok_named(!memmem(d->client_end.all.at, d->client_end.all.length, "hello", 5),
             "nobody can read it");
    is_string(heard(d->server, out, 6), "hello", "but the other");
    ok_named(tls_session_has_more(d->server), "who has more");
    is_string(heard(d->server, out, sizeof(out)), " there", "of it");
    ok(!tls_session_has_more(d->server));
    is_number(tls_session_read(d->server, out, 5), -EAGAIN, "and then no more");
    ok(tls_session_write(d->server, TEXT("")));
    tls_session_end(d->client);
    is_number(tls_session_read(d->server, out, 5), 0, "the end");
    ok(tls_session_has_more(d->server));
    ok(buffer_add(&d->there, TEXT("NOOP\r\n")));
    is_number(tls_session_read(d->server, out, 5), 0, "stays the end");
    is_number(d->there.length, 6, "nothing is read behind it");
    is_string(tls_session_error(d->server), "", "which is no error");
    duel_free(&d);
    tls_server_free(&server);
    tls_client_free(&client);
}

static void
test_spoilt(const struct secrets *k)
{
    struct tls_server *server = server_of(k, "good");
    struct tls_client *client = client_of(k, "ca.pem");
    struct tls_client_options options = wish_of(TLS_LEVEL_VERIFY, "mail.example.net");
    struct duel *d = duel_new(server, client, &options);
    char out[100];

    ok(duel_shake(d));
    ok(tls_session_write(d->client, TEXT("pay 100 to Alice")));
    d->there.at[d->there.length - 20] ^= 1;
    is_number(tls_session_read(d->server, out, sizeof(out)), -EPROTO, "a flipped bit");
    is_string(tls_session_error(d->server),
              "TLS: Verification of the message MAC failed", "is found");
    is_number(tls_session_read(d->server, out, sizeof(out)), -EPROTO, "for ever");
    ok_named(!tls_session_write(d->server, TEXT("x")), "and nothing is written");
    ok(tls_session_has_more(d->server) && !tls_session_facts(d->server).is_verified);
    while (tls_session_read(d->client, out, sizeof(out)) == -EAGAIN && d->back.length)
        continue;
    is_string(tls_session_error(d->client), "TLS: the peer broke off: bad_record_mac",
              "the other hears of it");
    duel_free(&d);

    d = duel_new(server, client, &options);
    ok(duel_shake(d));
    d->server_end.cut = true;
    is_number(tls_session_read(d->server, out, sizeof(out)), -ECONNRESET, "a cut");
    is_string(tls_session_error(d->server),
              "TLS: the peer ended the connection without close_notify", "is no end");
    d->client_end.broken = -ETIMEDOUT;
    is_number(tls_session_read(d->client, out, sizeof(out)), -ETIMEDOUT, "a failure");
    ok_named(strncmp(tls_session_error(d->client), "TLS: ", 5) == 0 && strcmp(tls_session_error(d->client) + 5, strerror(ETIMEDOUT)) == 0, "of the pipe");
    duel_free(&d);

    d = duel_new(server, client, &options);
    d->client_end.cut = true;
    ok(tls_session_shake(d->client) == PROGRESS_BAD);
    is_string(tls_session_error(d->client),
              "TLS: the peer ended the connection in the handshake", "hung up on");
    d->server_end.to = &d->server_end.all; /* a full pipe */
    d->server_end.all.limit = 10;
    ok(tls_session_shake(d->server) == PROGRESS_BAD);
    is_string(tls_session_error(d->server), "TLS: No buffer space available", "full");
    duel_free(&d);
    tls_server_free(&server);
    tls_client_free(&client);
}

/* A handshake with a bit flipped in the first flight of one side; true when there is no
 * such place any more. */
static bool
spoil_at(struct tls_server *server, struct tls_client *client, bool of_client,
         size_t at, int *through)
{
    struct tls_client_options options = wish_of(TLS_LEVEL_VERIFY, "mail.example.net");
    struct duel *d = duel_new(server, client, &options);
    struct buffer *flight = of_client ? &d->there : &d->back;
    bool beyond;

    tls_session_shake(d->client);
    if (!of_client)
        tls_session_shake(d->server);
    beyond = at >= flight->length;
    if (!beyond) {
        flight->at[at] ^= 0x20;
        *through += duel_shake(d);
    }
    duel_free(&d);
    return beyond;
}

static void
test_spoilt_handshake(const struct secrets *k)
{
    enum { HEADER = 5 }; /* of a record; its version counts for nothing */
    struct tls_server *server = server_of(k, "good");
    int through = 0, tries = 0;

    for (int of_client = 0; of_client < 2; of_client++)
        for (size_t at = HEADER;; at += 19, tries++) {
            struct tls_client *client = client_of(k, "ca.pem");
            bool beyond = spoil_at(server, client, of_client, at, &through);

            tls_client_free(&client);
            if (beyond)
                break;
        }
    ok_named(tries > 40, "a bit flipped at many places of a handshake");
    is_number(through, 0, "is found at each");
    tls_server_free(&server);
}

/* Bytes come one by one. */
static void
test_drops(const struct secrets *k)
{
    struct tls_server *server = server_of(k, "good");
    struct tls_client *client = client_of(k, "ca.pem");
    struct tls_client_options options = wish_of(TLS_LEVEL_VERIFY, "mail.example.net");
    struct duel *d = duel_new(server, client, &options);
    struct buffer hello;
    enum progress result = PROGRESS_MORE;

    buffer_init(&hello, 1 << 16);
    tls_session_shake(d->client);
    ok(buffer_add(&hello, buffer_text(&d->there)));
    d->there.length = 0;
    for (size_t i = 0; i < hello.length && result == PROGRESS_MORE; i++) {
        is_number(d->back.length, 0, "no answer to a part of a hello");
        ok(buffer_add_byte(&d->there, hello.at[i]));
        result = tls_session_shake(d->server);
    }
    ok(result == PROGRESS_MORE && d->back.length > 0);
    ok(duel_shake(d));
    buffer_free(&hello);
    duel_free(&d);
    tls_server_free(&server);
    tls_client_free(&client);
}

/* One session with host; whether it was resumed. */
static bool
meet(struct tls_server *server, struct tls_client *client, const char *host)
{
    struct tls_client_options options = wish_of(TLS_LEVEL_NONE, host);
    struct duel *d = duel_new(server, client, &options);
    bool resumed;
    char out[10];

    if (!duel_shake(d))
        abort();
    tls_session_read(d->client, out, sizeof(out)); /* the ticket, in TLS 1.3 */
    resumed = tls_session_facts(d->client).is_resumed;
    duel_free(&d);
    return resumed;
}

static void
test_memory_of_sessions(const struct secrets *k)
{
    struct tls_server *server = server_of(k, "good");
    struct tls_client *client = client_of(k, "ca.pem");
    char host[40];
    int resumed = 0;

    ok_named(!meet(server, client, "host0.example"), "a stranger");
    ok_named(meet(server, client, "HOST0.example"), "is known when it comes again");
    ok_named(!meet(server, client, ""), "nobody");
    ok_named(!meet(server, client, ""), "is never known");
    for (int i = 1; i <= TLS_SESSIONS_MAX; i++) {
        snprintf(host, sizeof(host), "host%d.example", i);
        resumed += meet(server, client, host);
    }
    is_number(resumed, 0, "many strangers");
    ok_named(!meet(server, client, "host0.example"), "drive out the oldest");
    ok_named(meet(server, client, "host100.example"), "and no other");
    tls_server_free(&server);
    tls_client_free(&client);
}

/* The result of a session whose peer must prove itself by that record. */
static const char *
meet_by_record(struct tls_server *server, struct tls_client *client, enum tls_level level,
               const struct tls_dane_record *record, bool *resumed)
{
    static char out[TLS_ERROR_MAX];
    char bytes[16];
    struct text names[1] = {TEXT("mail.example.net")};
    struct tls_client_options options = {.level = level,
                                         .host = names[0],
                                         .dane = record,
                                         .dane_count = 1,
                                         .dane_names = names,
                                         .dane_name_count = 1};
    struct duel *d = duel_new(server, client, &options);
    bool good = duel_shake(d);
    if (good) {
        tls_session_write(d->server, TEXT("ticket")); /* of TLS 1.3 */
        heard(d->client, bytes, sizeof(bytes));
    }
    *resumed = good && tls_session_facts(d->client).is_resumed;
    snprintf(out, sizeof(out), "%s", tls_session_error(d->client));
    if (good && tls_session_facts(d->client).is_dane)
        snprintf(out, sizeof(out), "proven");
    duel_free(&d);
    return out;
}

static void
test_dane(const struct secrets *k)
{
    struct tls_server *server = server_of(k, "self");
    struct tls_client *client = client_of(k, NULL);
    struct tls_dane_record record = {3, 1, 1, {0}}, other = {3, 1, 1, TEXT("12345678901234567890123456789012")};
    unsigned char digest[DIGEST_SIZE];
    mbedtls_x509_crt self;
    bool resumed;

    mbedtls_x509_crt_init(&self);
    ok(mbedtls_x509_crt_parse_file(&self, tls_path_of(k, "self", ".pem")) == 0);
    digest_plain(text_of(self.pk_raw.p, self.pk_raw.len), digest);
    record.data = text_of(digest, sizeof(digest));
    is_string(meet_by_record(server, client, TLS_LEVEL_NONE, &record, &resumed), "proven",
              "a record proves a certificate that nobody has signed");
    ok(!resumed);
    is_string(meet_by_record(server, client, TLS_LEVEL_NONE, &other, &resumed),
              "TLS: no TLSA record matches the certificate", "another record does not, even though a session could be resumed");
    is_string(meet_by_record(server, client, TLS_LEVEL_NONE, &record, &resumed), "proven", "the same record again");
    ok_named(resumed, "resumes the session that it has proven");
    is_string(meet_by_record(server, client, TLS_LEVEL_VERIFY, &record, &resumed), "TLS: certificate is self-signed",
              "a record does not replace what the route demands");
    other.matching = 7;
    is_string(meet_by_record(server, client, TLS_LEVEL_NONE, &other, &resumed), "", "a record that is not usable demands nothing");
    ok_named(!resumed, "and resumes nothing that it has not begun");
    mbedtls_x509_crt_free(&self);
    tls_server_free(&server);
    tls_client_free(&client);
}

/* --- Certificates of clients ------------------------------------------------------- */

static struct tls_pair
own_pair(const struct secrets *k, const char *name, char certificate[300], char key[300])
{
    snprintf(certificate, 300, "%s", tls_path_of(k, name, ".pem"));
    snprintf(key, 300, "%s", tls_path_of(k, name, ".key"));
    return (struct tls_pair){certificate, key};
}

static void
take_own(const struct secrets *k, struct tls_client *client, const char *name)
{
    char certificate[300], key[300], error[TLS_ERROR_MAX] = "";
    struct tls_pair pair = own_pair(k, name, certificate, key);
    struct tls_client *with = tls_client_read_own(client, &pair, error, sizeof(error));
    ok_named(with != NULL, error[0] != '\0' ? error : name);
    tls_client_take_own(client, &with);
}

/* The verdict on a client with that certificate; NULL: without one. */
static const char *
judged(const struct secrets *k, struct tls_server *server, struct tls_client *client, const char *name, bool *resumed)
{
    static char out[TLS_CLIENT_TEXT_MAX];
    char certificate[300], key[300], bytes[16];
    struct tls_client_options options = wish_of(TLS_LEVEL_NONE, "mail.example.net");
    if (name != NULL)
        options.own = own_pair(k, name, certificate, key);
    struct duel *d = duel_new(server, client, &options);
    bool good = duel_shake(d);
    if (good) {
        tls_session_write(d->server, TEXT("ticket"));
        heard(d->client, bytes, sizeof(bytes));
    }
    *resumed = good && tls_session_facts(d->client).is_resumed;
    snprintf(out, sizeof(out), "%s", good ? "" : tls_session_error(d->client));
    enum tls_client_standing standing = tls_session_judge_client(d->server, server, out);
    if (good && standing != TLS_CLIENT_KNOWN)
        snprintf(out, sizeof(out), "%s", standing == TLS_CLIENT_UNKNOWN ? "unknown" : "anonymous");
    duel_free(&d);
    return out;
}

static void
ask(const struct secrets *k, struct tls_server *server)
{
    char path[300];
    struct buffer errors;
    mbedtls_x509_crt self;
    unsigned char digest[DIGEST_SIZE];
    char hex[2 * DIGEST_SIZE + 1];
    snprintf(path, sizeof(path), "%s/table", k->directory);
    mbedtls_x509_crt_init(&self);
    ok(mbedtls_x509_crt_parse_file(&self, tls_path_of(k, "expired", ".pem")) == 0);
    digest_plain(text_of(self.raw.p, self.raw.len), digest);
    mbedtls_x509_crt_free(&self);
    text_hex(digest, sizeof(digest), hex);
    FILE *file = fopen(path, "w");
    ok(file != NULL && fprintf(file, "%s old one\nca:%s/ca.pem MAIL.example.net 127.0.0.1\nca:%s/ca.pem common.example.net\n", hex, k->directory, k->directory) > 0);
    fclose(file);
    buffer_init(&errors, 4096);
    struct tls_clients *clients = tls_clients_read(path, &errors);
    is_text(buffer_text(&errors), TEXT(""), "the table");
    tls_server_ask(server, &clients);
    ok(clients == NULL);
    buffer_free(&errors);
}

static void
test_own(const struct secrets *k)
{
    struct tls_server *server = server_of(k, "good");
    struct tls_client *client = client_of(k, "ca.pem");
    bool resumed;
    take_own(k, client, "usage");
    take_own(k, client, "stranger");
    is_string(judged(k, server, client, "usage", &resumed), "anonymous", "nobody has asked");
    (void)judged(k, server, client, "usage", &resumed);
    ok_named(resumed, "a session of the certificate is resumed with it");
    (void)judged(k, server, client, "stranger", &resumed);
    ok_named(!resumed, "not with another one");
    (void)judged(k, server, client, NULL, &resumed);
    ok_named(!resumed, "nor without any");
    (void)judged(k, server, client, NULL, &resumed);
    ok_named(resumed, "that is resumed without any");
    take_own(k, client, "usage");
    (void)judged(k, server, client, "usage", &resumed);
    ok_named(!resumed, "files that are read anew have no session");
    is_string(judged(k, server, client, "future", &resumed), "TLS: our certificate for this host is not loaded", "a pair that is not known");
    struct tls_certificate c;
    ok(tls_client_certificate(client, 1, &c) && !tls_client_certificate(client, 2, &c));

    ask(k, server);
    is_string(judged(k, server, client, NULL, &resumed), "anonymous", "a client without a certificate");
    is_string(judged(k, server, client, "stranger", &resumed), "unknown", "of another authority");
    is_string(judged(k, server, client, "usage", &resumed), "MAIL.example.net", "below the authority, by its name in the table");
    is_string(judged(k, server, client, "usage", &resumed), "MAIL.example.net", "again");
    ok_named(!resumed, "without a ticket, which would have no certificate");
    take_own(k, client, "good");
    is_string(judged(k, server, client, "good", &resumed), "unknown", "for servers alone");
    take_own(k, client, "expired");
    is_string(judged(k, server, client, "expired", &resumed), "old one", "a fingerprint has no dates");
    take_own(k, client, "future");
    is_string(judged(k, server, client, "future", &resumed), "unknown", "below the authority they count");
    tls_server_free(&server);
    tls_client_free(&client);
}

int
main(void)
{
    struct secrets k;

    make_secrets(&k);
    tap_tests("");
    test_server_files(&k);
    test_client_files(&k);
    test_talk(&k);
    test_spoilt(&k);
    test_spoilt_handshake(&k);
    test_drops(&k);
    test_memory_of_sessions(&k);
    test_dane(&k);
    test_own(&k);
    drop_secrets(&k);
    return done();
}
