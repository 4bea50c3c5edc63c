/* The facts of certificate files: dates, names, chain, the digest of the key. */
#include "base/tls/tls_file.h"

#include "t/support/must.h"
#include "t/support/tap.h"

#include <unistd.h>

static char folder[4096];

static const char *
file(const char *name)
{
    static char path[5000];
    snprintf(path, sizeof(path), "%s/%s", folder, name);
    return path;
}

static bool
read_one(const char *name, const struct tls_client *anchors, struct tls_file *c)
{
    char error[TLS_ERROR_MAX] = "";
    bool good = tls_file_read(file(name), TEXT("mail.example.net"), anchors, c,
                                     error, sizeof(error));
    ok(good == (error[0] == '\0'));
    return good;
}

int
main(void)
{
    char command[6000], error[TLS_ERROR_MAX];
    struct tls_file c;
    snprintf(folder, sizeof(folder), "/tmp/tls-file-%d", (int)getpid());
    snprintf(command, sizeof(command), "sh t/support/tls_certificates.sh %s >/dev/null 2>&1", folder);
    must(system(command) == 0);
    struct tls *tls = tls_new(error, sizeof(error));
    must(tls != NULL);
    struct tls_client *anchors = tls_client_new(tls, file("ca.pem"), error, sizeof(error));
    must(anchors != NULL);
    ok(read_one("good.pem", anchors, &c));
    ok(c.names_host && c.is_whole && !c.is_own_issuer);
    is_string(c.name, "mail.example.net", "its name");
    is_number(c.begins_ms, INT64_C(1577836800000), "from 2020 on");
    is_number(c.expires_ms, INT64_C(2493072000000), "until 2049");
    is_number(strlen(c.key_digest), 64, "a digest");
    snprintf(command, sizeof(command),
             "test \"$(openssl x509 -in %s -noout -pubkey | openssl pkey -pubin -outform DER | sha256sum | cut -c1-64)\" = %s",
             file("good.pem"), c.key_digest);
    ok_named(system(command) == 0, "openssl has the same digest");
    ok(read_one("good.pem", NULL, &c) && !c.is_whole);
    ok(read_one("expired.pem", anchors, &c) && c.is_whole && c.names_host);
    is_number(c.expires_ms, INT64_C(1612325106000), "an end in the past");
    ok(read_one("stranger.pem", anchors, &c) && !c.is_whole);
    ok(read_one("self.pem", anchors, &c) && !c.is_whole && c.is_own_issuer);
    ok(read_one("wild.pem", anchors, &c) && !c.names_host);
    ok(read_one("common.pem", anchors, &c) && !c.names_host);
    ok(!read_one("good.key", anchors, &c));
    ok(!read_one("not-there.pem", anchors, &c));
    tls_client_free(&anchors);
    tls_free(&tls);
    snprintf(command, sizeof(command), "rm -r %s", folder);
    must(system(command) == 0);
    return done();
}
