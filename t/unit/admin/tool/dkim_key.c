/* `petrel dkim-key`: what it makes and prints, and what it refuses. */
#include "admin/tool/dkim_key.h"

#include "base/crypto/sign.h"
#include "t/support/command_world.h"
#include "t/support/tap.h"

#include <fcntl.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sysexits.h>
#include <unistd.h>

static struct command_world world;
static const char *setting; /* of dkim_keys */

static int
dkim_key(int count, char **arguments, const struct options *options)
{
    (void)options;
    struct options o = {.dkim_keys = (char *)(uintptr_t)setting};
    return dkim_key_command(count, arguments, &o);
}

static int
run_here(const char *format)
{
    char line[400];
    snprintf(line, sizeof(line), "%s --directory %s", format, world.folder);
    return run(dkim_key, line);
}

TEST(usage)
{
    static const char *const wrong[] = {"",
                                        "--show",
                                        "a.test s more",
                                        "a.test --bits",
                                        "a.test --bits 1000",
                                        "a.test --bits 1025",
                                        "a.test --bits 8192",
                                        "a.test --bits x",
                                        "a.test --bits 1024 --ed25519",
                                        "a.test --ed25519 --bits 1024",
                                        "a.test --directory",
                                        "a.test --odd x",
                                        "a.test -x"};
    for (size_t i = 0; i < sizeof(wrong) / sizeof(*wrong); i++)
        is_refused(run(dkim_key, wrong[i]), EX_USAGE, "usage: petrel dkim-key DOMAIN");
    is_refused(run(dkim_key, "a..test"), EX_DATAERR, "not a domain: a..test");
    is_refused(run(dkim_key, "[1.2.3.4]"), EX_DATAERR, "not a domain");
    is_refused(run(dkim_key, "a.test ../x"), EX_DATAERR, "not a selector");
    is_refused(run(dkim_key, "a.test a/b"), EX_DATAERR, "not a selector");
    is_refused(run(dkim_key, "a.test s --directory /dev/null/x/y"), EX_CANTCREAT,
               "Not a directory");
    is_refused(run_here("a.test none --show"), EX_NOINPUT, "No such file");
}

/* The strings of the zone record, joined, are the record for forms. */
static void
test_record(void)
{
    char joined[2000] = "";
    size_t used = 0, longest = 0;
    const char *at = strstr(world.output, "IN TXT ( \"");
    ok(at != NULL);
    if (at == NULL)
        return;
    const char *end = strchr(at, '\n');
    for (at = strchr(at, '"'); at != NULL && at < end; at = strchr(at + 1, '"')) {
        size_t length = strcspn(at + 1, "\"");
        memcpy(joined + used, at + 1, length);
        used += length;
        longest = length > longest ? length : longest;
        at += 1 + length;
    }
    joined[used] = '\n';
    ok_named(longest <= 255, "no string has more than 255 octets");
    ok_named(strstr(end, joined) != NULL, "both records are the same");
}

TEST(made)
{
    char path[200], content[4096] = "";
    struct stat info;
    is_printed(run_here("Example.ORG S1"), 0,
               "s1._domainkey.example.org. 3600 IN TXT ( \"v=DKIM1; k=rsa; p=");
    test_record();
    snprintf(path, sizeof(path), "%s/s1._domainkey.example.org.pem", world.folder);
    ok(strstr(world.output, path) != NULL);
    ok(stat(path, &info) == 0 && (info.st_mode & 07777) == 0600);
    FILE *f = fopen(path, "r");
    ok(f != NULL && fread(content, 1, sizeof(content) - 1, f) > 0);
    if (f != NULL)
        fclose(f);
    /* Behind the modulus, which the record has, too. */
    char *secret = content;
    for (int line = 0; line < 10; line++)
        secret = strchr(secret, '\n') + 1;
    secret[strcspn(secret, "\n")] = '\0';
    ok_named(strlen(secret) > 30 && strstr(world.output, secret) == NULL,
             "no line of the private key is printed");
    char *shown = strstr(world.output, "# Record");
    ok(shown != NULL);
    shown = text_string(text_from(shown));
    is_refused(run_here("example.org s1"), EX_CANTCREAT, "is not overwritten");
    is_printed(run_here("example.org s1 --show"), 0, shown);
    free(shown);
    is_printed(run_here("example.org --bits 1024"), 0, "p20");
    ok(truncate(path, 100) == 0);
    is_refused(run_here("example.org s1 --show"), EX_DATAERR, "damaged");
    ok_named(strstr(world.errors, secret) == NULL, "nor is it in an error");
}

TEST(ed25519)
{
    if (sign_ed25519_version()[0] == '\0') {
        is_refused(run_here("a.test ed --ed25519"), EX_UNAVAILABLE, "without libsodium");
        return;
    }
    ok(run_here("a.test ed --ed25519") == 0);
    ok(strstr(world.output, "v=DKIM1; k=ed25519; p=") != NULL);
    ok(strstr(world.errors, "warning: large receivers do not verify Ed25519") != NULL);
}

TEST(setting)
{
    setting = world.folder;
    is_printed(run(dkim_key, "b.test s --bits 1024"), 0, "dkim_keys names");
    setting = NULL;
    char line[300], wanted[600];
    struct stat info;
    snprintf(line, sizeof(line), "b.test s --bits 1024 --directory %s/new", world.folder);
    snprintf(wanted, sizeof(wanted), "#   dkim_keys = %s/new\n", world.folder);
    is_printed(run(dkim_key, line), 0, wanted);
    snprintf(line, sizeof(line), "%s/new", world.folder);
    ok_named(stat(line, &info) == 0 && (info.st_mode & 07777) == 0700,
             "a directory that is named is made, for its owner");
    snprintf(line, sizeof(line), "%s/new", world.folder);
    setting = line;
    is_printed(run(dkim_key, "c.test s --bits 1024"), 0, "dkim_keys names");
    snprintf(wanted, sizeof(wanted), "c.test s --show --directory %s", line);
    is_printed(run(dkim_key, wanted), 0, "dkim_keys names");
    setting = "a.test s /x\nb.test t /y";
    snprintf(wanted, sizeof(wanted), "d.test s --bits 1024 --directory %s", world.folder);
    is_printed(run(dkim_key, wanted), 0, "add this row and reload:\n#   dkim_keys = d.test s /");
    is_refused(run(dkim_key, "b.test s --show"), EX_NOINPUT, "No such file");
}

/* The daemon's user owns the directory, and root shows its keys. */
TEST(fifo)
{
    char path[300];
    snprintf(path, sizeof(path), "%s/pipe._domainkey.a.test.pem", world.folder);
    ok(mkfifo(path, 0600) == 0);
    int writer = open(path, O_RDWR | O_CLOEXEC);
    ok(writer >= 0);
    alarm(30); /* a wait for the writer would never end */
    is_refused(run_here("a.test pipe --show"), EX_NOINPUT, "it is not a regular file");
    alarm(0);
    close(writer);
}

int
main(void)
{
    command_world_begin(&world, "dkim-key");
    tap_tests("");
    command_world_end(&world);
    return done();
}
