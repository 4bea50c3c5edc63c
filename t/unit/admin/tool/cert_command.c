/* Refusals of petrel cert, and the names of its files; t/e2e/cert.t has the rest. */
#include "admin/tool/cert_command.h"

#include "t/support/command_world.h"
#include "t/support/tap.h"

#include <string.h>
#include <sysexits.h>
#include <unistd.h>

static struct command_world world;

static void
makes(const char *names, const char *pem, const char *key)
{
    char line[400], path[300];
    snprintf(line, sizeof(line), "--out %s %s", world.folder, names);
    is_printed(run(cert_command, line), 0, "Clients that verify certificates refuse it");
    ok(strstr(world.output, pem) && strstr(world.output, key) && strstr(world.output, "petrel reload"));
    snprintf(path, sizeof(path), "%s/%s", world.folder, pem);
    ok_named(access(path, R_OK) == 0, path);
    is_refused(run(cert_command, line), EX_CANTCREAT, "File exists; remove it, or replace it with --force");
    snprintf(line, sizeof(line), "--force --out %s %s", world.folder, names);
    is_printed(run(cert_command, line), 0, "tls_certificate = ");
}

int
main(void)
{
    static const char *const wrong[] = {"a..b", "a_b=c.test", "a,b", "*", "*.", "*.*.test", "1.2.3.4.5/8", "IPv6:::1", "2001:db8::zz"};
    command_world_begin(&world, "cert_command");
    is_refused(run(cert_command, ""), EX_USAGE, "usage: petrel cert [--out DIRECTORY] [--force] [--ecdsa] NAME...");
    is_refused(run(cert_command, "--out"), EX_USAGE, "usage: ");
    is_refused(run(cert_command, "--what a.test"), EX_USAGE, "usage: ");
    for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++)
        is_refused(run(cert_command, wrong[i]), EX_DATAERR, "not a name; write mail.example.org");
    makes("mail.example.org", "mail.example.org.pem", "mail.example.org.key");
    makes("*.example.org 192.0.2.1", "_.example.org.pem", "_.example.org.key");
    makes("2001:db8::1", "2001-db8--1.pem", "2001-db8--1.key");
    is_refused(run(cert_command, "--out /nonexistent/x a.test"), EX_CANTCREAT, "make the directory");
    command_world_end(&world);
    return done();
}
