/* The setting dkim_keys: a table or a directory, its errors, and whose key is found. */
#include "smtp/trust/dkim_keys.h"

#include "t/support/dkim_kit.h"
#include "t/support/tap.h"

#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

static char folder[] = "/tmp/petrel-keys-XXXXXX";

static void
make_file(const char *name, struct text content)
{
    char path[200];
    snprintf(path, sizeof(path), "%s/%s", folder, name);
    FILE *f = fopen(path, "w");
    ok(f != NULL && fwrite(content.at, 1, content.length, f) == content.length);
    if (f != NULL)
        ok(fclose(f) == 0 && chmod(path, 0600) == 0);
}

static void
make_key(const char *name)
{
    const char *why;
    struct buffer pem;
    struct sign_random *r = sign_random_new();
    buffer_init(&pem, SIGN_FILE_MAX);
    ok(sign_key_make(r, SIGN_RSA, 1024, &pem, &why));
    make_file(name, buffer_text(&pem));
    buffer_free(&pem);
    sign_random_free(&r);
}

/* %s in the setting is the folder. */
static struct dkim_keys *
read_setting(const char *pattern, struct buffer *errors)
{
    char setting[2000];
    size_t used = 0;
    for (const char *at = pattern; *at != '\0' && used + 100 < sizeof(setting); at++)
        if (*at == '@')
            used += (size_t)snprintf(setting + used, 100, "%s", folder);
        else
            setting[used++] = *at;
    buffer_init(errors, 10000);
    return dkim_kit_read(text_of(setting, used), errors);
}

static void
is_error(const char *setting, const char *words)
{
    struct buffer errors;
    struct dkim_keys *keys = read_setting(setting, &errors);
    ok_named(keys == NULL, setting);
    ok_named(buffer_add_byte(&errors, '\0') && strstr(errors.at, words) != NULL,
             errors.at);
    ok(strncmp(errors.at, "dkim_keys: ", 11) == 0);
    dkim_keys_free(&keys);
    buffer_free(&errors);
}

static void
is_found(const struct dkim_keys *keys, const char *domain, const char *want)
{
    size_t count;
    char got[200] = "";
    const struct dkim_key *k = dkim_keys_find(keys, text_from(domain), &count);
    for (size_t i = 0; i < count; i++)
        snprintf(got + strlen(got), sizeof(got) - strlen(got), "%s%s/%s",
                 i > 0 ? "," : "", k[i].domain, k[i].selector);
    is_string(got, want, domain);
}

TEST(table)
{
    struct buffer errors;
    struct dkim_keys *keys =
        read_setting("Example.ORG s1 @/a\n\n  deep.example.org\td1 @/b  \n"
                     "example.org s2 @/b\nxn--bcher-kva.test s @/a",
                     &errors);
    is_text(buffer_text(&errors), TEXT(""), "no errors");
    ok(keys != NULL && keys->count == 4);
    if (keys == NULL)
        return;
    is_found(keys, "example.org", "example.org/s1,example.org/s2");
    is_found(keys, "x.y.example.org", "example.org/s1,example.org/s2");
    is_found(keys, "EXAMPLE.org", "example.org/s1,example.org/s2");
    is_found(keys, "deep.example.org", "deep.example.org/d1");
    is_found(keys, "x.deep.example.org", "deep.example.org/d1");
    is_found(keys, "notexample.org", "");
    is_found(keys, "org", "");
    is_found(keys, "", "");
    is_found(keys, ".", "");
    is_found(keys, "example.org.", "");
    dkim_keys_free(&keys);
    ok_named(keys == NULL, "freed");
    buffer_free(&errors);
    keys = read_setting(" \n ", &errors);
    ok_named(keys == NULL && errors.length == 0, "an empty setting is none");
    buffer_free(&errors);
}

TEST(directory)
{
    struct buffer errors;
    char path[200];
    snprintf(path, sizeof(path), "%s/keys", folder);
    ok(mkdir(path, 0700) == 0);
    is_error("@/keys", "no file SELECTOR._domainkey.DOMAIN.pem is in");
    make_file("keys/readme", TEXT("x"));
    make_key("keys/s1._domainkey.example.org.pem");
    make_key("keys/s.2._domainkey.other.test.pem");
    struct dkim_keys *keys = read_setting("@/keys", &errors);
    ok(keys != NULL && keys->count == 2);
    if (keys != NULL) {
        is_found(keys, "example.org", "example.org/s1");
        is_found(keys, "other.test", "other.test/s.2");
    }
    dkim_keys_free(&keys);
    buffer_free(&errors);
    make_file("keys/odd.pem", TEXT("x"));
    is_error("@/keys", "'odd.pem': name it SELECTOR._domainkey.DOMAIN.pem");
    snprintf(path, sizeof(path), "%s/keys/odd.pem", folder);
    ok(unlink(path) == 0);
    make_file("keys/s._domainkey.pem", TEXT("x"));
    is_error("@/keys", "dkim_keys: ");
    snprintf(path, sizeof(path), "%s/keys/s._domainkey.pem", folder);
    ok(unlink(path) == 0);
    make_file("keys/._domainkey.x.test.pem", TEXT("x"));
    is_error("@/keys", "is not a selector");
}

TEST(errors)
{
    make_file("bad", TEXT("-----BEGIN PRIVATE KEY-----\nMAAA\n-----END PRIVATE KEY-----"));
    is_error("@/nowhere", "cannot read the directory");
    is_error("a.test s", "write DOMAIN SELECTOR PATH");
    is_error("a.test s @/a more", "write DOMAIN SELECTOR PATH");
    is_error("a.test s @/missing", "No such file");
    is_error("a.test s @/bad", "damaged");
    is_error("a..test s @/a", "is not a domain");
    is_error("[1.2.3.4] s @/a", "is not a domain");
    is_error("a.test s/1 @/a", "is not a selector");
    is_error("a.test -s @/a", "is not a selector");
    is_error("a.test s @/a\nA.test S @/b", "is there twice");
    is_error("a.test 1 @/a\na.test 2 @/a\na.test 3 @/a\na.test 4 @/a\na.test 5 @/a",
             "more than 4 keys for 'a.test'");
    is_error("a.test s @/a\nb.test s", "write DOMAIN");
}

int
main(void)
{
    ok(mkdtemp(folder) != NULL);
    make_key("a");
    make_key("b");
    tap_tests("");
    char command[200];
    snprintf(command, sizeof(command), "rm -r %s", folder);
    ok(system(command) == 0);
    return done();
}
