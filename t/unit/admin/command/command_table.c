/* The table of commands: its rows are whole, usage and help have all of them, and a word
 * that is none of them is answered with the nearest. */
#include "admin/command/command_table.h"

#include "t/support/command_world.h"
#include "t/support/tap.h"

#include <string.h>
#include <sysexits.h>

static struct command_world world;

static int
help(int count, char **arguments, const struct options *options)
{
    (void)options;
    return command_help(count, arguments);
}

static int
refuse(int count, char **arguments, const struct options *options)
{
    (void)options;
    return command_refuse(count > 0 ? arguments[0] : "");
}

static int
refuse_all(int count, char **arguments, const struct options *options)
{
    (void)count, (void)arguments, (void)options;
    return command_refuse_all();
}

TEST(rows)
{
    size_t rows = 0;
    for (const struct command_row *row = command_rows(); row->name != NULL; row++) {
        bool runs = row->kind == COMMAND_OPTIONS || row->kind == COMMAND_BARE;
        ok(command_find(row->name) == row); /* no name stands twice */
        ok(row->about[0] != '\0' && strlen(row->about) <= 66 && strchr(row->about, '\n') == NULL);
        ok((row->run != NULL) == runs);
        ok(strncmp(row->example, "petrel ", 7) == 0 && strstr(row->example, row->name) != NULL);
        ok(row->help[0] == '\0' || row->help[strlen(row->help) - 1] == '\n');
        rows++;
    }
    ok(rows >= 17);
    ok(command_find("") == NULL && command_find("que") == NULL && command_find("queues") == NULL);
}

TEST(help)
{
    char name[40], line[100];
    is_printed(run(help, ""), 0, "usage: petrel [-c FILE] [-o KEY=VALUE]... [COMMAND]\n");
    for (const struct command_row *row = command_rows(); row->name != NULL; row++) {
        run(help, "");
        snprintf(line, sizeof(line), "\n  %-10s %s\n", row->name, row->about);
        ok(strstr(world.output, line) != NULL);
        snprintf(name, sizeof(name), "%s", row->name);
        snprintf(line, sizeof(line), "usage: petrel %s", row->name);
        is_printed(run(help, name), 0, line);
        ok(strstr(world.output, row->about) && strstr(world.output, row->example));
    }
    is_printed(run(help, "queue"), 0, "--queue maildrop|incoming|active|deferred|defrag|hold|corrupt\n");
    is_refused(run(help, "queue ls"), EX_USAGE, "usage: petrel help [COMMAND | SETTING]\n");
    is_printed(run(help, "relay_from"), 0, "relay_from = 127.0.0.0/8, ::1\n  List of networks");
    is_printed(run(help, "myhostname"), 0, "hostname =\n  Name in the banner");
    is_printed(run(help, "home_mailbox"), 0, "home_mailbox: a setting of Postfix; write local = ");
    is_refused(run(help, "relay_frm"), EX_USAGE, "petrel: relay_frm: unknown setting (did you mean 'relay_from'?)\n");
    is_refused(run(help, "sttus"), EX_USAGE, "petrel: sttus: unknown command (did you mean 'status'?);");
}

TEST(wants)
{
    static char queue[] = "queue", flag[] = "--help", ls[] = "ls", frob[] = "frob", letter[] = "-h", complete[] = "complete", dashes[] = "--";
    char *about_queue[] = {queue, flag, ls}, *no_command[] = {frob, flag}, *verb[] = {queue, ls};
    char *about_ls[] = {queue, ls, letter}, *about_frob[] = {queue, frob, flag}, *completes[] = {complete, dashes, letter};
    ok(command_wants_help(2, about_queue));
    ok(!command_wants_help(1, about_queue) && !command_wants_help(3, about_queue) && !command_wants_help(0, NULL));
    ok(!command_wants_help(2, no_command) && !command_wants_help(2, verb));
    ok(command_wants_help(3, about_ls) && !command_wants_help(3, about_frob) && !command_wants_help(3, completes));
}

TEST(unknown)
{
    char longest[200];
    is_refused(run(refuse, "quue"), EX_USAGE, "petrel: quue: unknown command (did you mean 'queue'?); `petrel help` lists all\n");
    is_refused(run(refuse, "frobnicate"), EX_USAGE, "petrel: frobnicate: unknown command; `petrel help` lists all\n");
    is_refused(run(refuse, "top"), EX_USAGE, "petrel: top: no longer a command; `petrel status --watch` shows");
    is_refused(run(refuse, "mime"), EX_USAGE, "petrel: mime: no longer a command; the source has it");
    is_refused(run(refuse, "simulate"), EX_USAGE, "petrel: simulate: no longer a command; scenarios of ");
    memset(longest, 'x', sizeof(longest) - 1);
    longest[sizeof(longest) - 1] = '\0';
    is_refused(run(refuse, longest), EX_USAGE, "xxx: unknown command;");
    ok(strlen(world.errors) < 140);
    is_refused(run(refuse_all, ""), EX_USAGE, "usage: petrel [-c FILE]");
}

int
main(void)
{
    command_world_begin(&world, "command_table");
    tap_tests("");
    command_world_end(&world);
    return done();
}
