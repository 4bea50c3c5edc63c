/* Commands that are one question: what is asked, what is printed, and the exit code. The
 * daemon is a process that has its answers ready. */
#include "admin/command/daemon_command.h"

#include "t/support/folder.h"
#include "t/support/must.h"
#include "t/support/tap.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <sysexits.h>
#include <unistd.h>

static char folder[60], path[100];

/* Reads one line and sends the answer; the line stays in folder/asked. */
static pid_t
daemon_start(const char *answer)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    int door = socket(AF_UNIX, SOCK_STREAM, 0);
    snprintf(address.sun_path, sizeof(address.sun_path), "%s", path);
    unlink(path);
    must(bind(door, (struct sockaddr *)&address, sizeof(address)) == 0 && listen(door, 1) == 0);
    pid_t child = fork();
    if (child == 0) {
        char line[4096], name[150];
        snprintf(name, sizeof(name), "%s/asked", folder);
        int peer = accept(door, NULL, NULL), out = open(name, O_WRONLY | O_CREAT | O_TRUNC, 0600);
        ssize_t got = read(peer, line, sizeof(line));
        (void)!write(out, line, got > 0 ? (size_t)got : 0);
        (void)!write(peer, answer, strlen(answer));
        (void)!read(peer, line, 1); /* until it goes */
        _exit(0);
    }
    must(child > 0);
    close(door);
    return child;
}

static const char *
content(const char *file)
{
    static char text[4][8192];
    static int next;
    char name[150], *out = text[next++ % 4];
    snprintf(name, sizeof(name), "%s/%s", folder, file);
    int in = open(name, O_RDONLY);
    ssize_t got = in < 0 ? 0 : read(in, out, sizeof(text[0]) - 1);
    out[got > 0 ? got : 0] = '\0';
    if (in >= 0)
        close(in);
    return out;
}

/* Runs it with both streams in folder/said; words by spaces. */
static int
run(const char *command)
{
    char words[200], name[150], *arguments[10];
    int count = 0;
    struct options options = {.control = path};
    snprintf(words, sizeof(words), "%s", command);
    for (char *word = strtok(words, " "); word != NULL; word = strtok(NULL, " "))
        arguments[count++] = word;
    snprintf(name, sizeof(name), "%s/said", folder);
    fflush(stdout);
    int file = open(name, O_WRONLY | O_CREAT | O_TRUNC | O_APPEND, 0600), out = dup(1), error = dup(2);
    must(file >= 0 && dup2(file, 1) == 1 && dup2(file, 2) == 2);
    int code = daemon_command(count, arguments, &options);
    fflush(stdout);
    must(dup2(out, 1) == 1 && dup2(error, 2) == 2);
    close(out);
    close(error);
    close(file);
    return code;
}

static void
asks(void)
{
    static const struct {
        const char *command, *answer, *asked;
        int code; const char *said;
    } rows[] = {
        {"reload", "{\"ok\":true,\"restart\":\"\"}\n", "{\"command\":\"reload\"}\n", 0, "settings reloaded\n"},
        {"reload", "{\"seen\":0}\n{\"seen\":0}\n{\"ok\":true,\"restart\":\"listen, user\"}\n", "{\"command\":\"reload\"}\n", 0,
         "settings reloaded; without effect before a restart: listen, user\n"},
        {"reload", "{\"ok\":false,\"error\":\"x\",\"errors\":[\"a\",\"b\"]}\n", "{\"command\":\"reload\"}\n", EX_CONFIG,
         "petrel reload: a\npetrel reload: b\n"},
        {"reload", "{\"ok\":false,\"error\":\"the daemon stops\"}\n", "{\"command\":\"reload\"}\n", EX_CONFIG, "petrel reload: the daemon stops\n"},
        {"reload", "nonsense\n", "{\"command\":\"reload\"}\n", EX_UNAVAILABLE, "petrel reload: the daemon closed the connection\n"},
        {"log-level", "{\"ok\":true,\"level\":\"info\",\"configured\":\"info\",\"until_ms\":0}\n", "{\"command\":\"log-level\"}\n", 0, "info\n"},
        {"log-level debug", "{\"ok\":true,\"level\":\"debug\",\"configured\":\"info\",\"until_ms\":0}\n",
         "{\"command\":\"log-level\",\"level\":\"debug\",\"for_ms\":3600000}\n", 0, "debug until the settings are reloaded, then info\n"},
        {"log-level debug --for 2m", "{\"ok\":true,\"level\":\"debug\",\"configured\":\"info\",\"until_ms\":1}\n",
         "{\"command\":\"log-level\",\"level\":\"debug\",\"for_ms\":120000}\n", 0, "debug until now, then info\n"},
        {"log-level x", "{\"ok\":false,\"error\":\"no\"}\n", "{\"command\":\"log-level\",\"level\":\"x\",\"for_ms\":3600000}\n", EX_DATAERR, "petrel log-level: no\n"},
        {"health", "{\"ok\":true,\"ready\":true,\"checks\":[]}\n", "{\"command\":\"health\"}\n", 0, "ready\n"},
        {"health", "{\"ok\":true,\"ready\":false,\"checks\":[{\"name\":\"a\",\"ok\":false,\"why\":\"b\"},{\"name\":\"c\",\"ok\":true},{\"name\":\"d\",\"ok\":false,\"why\":\"e\"}]}\n",
         "{\"command\":\"health\"}\n", 1, "not ready: a: b; d: e\n"},
        {"health --live", "{\"ok\":true,\"ready\":false,\"checks\":[]}\n", "{\"command\":\"health\"}\n", 0, "ok\n"},
        {"health", "{\"ok\":false,\"error\":\"no\"}\n", "{\"command\":\"health\"}\n", 1, "petrel health: no\n"},
        {"unlock", "{\"ok\":true,\"count\":0,\"lockouts\":[]}\n", "{\"command\":\"lockouts\"}\n", 0, "no client is locked out\n"},
        {"unlock", "{\"ok\":true,\"count\":3,\"lockouts\":[{\"client\":\"192.0.2.1\",\"until_ms\":1,\"times\":2}]}\n", "{\"command\":\"lockouts\"}\n", 0,
         "192.0.2.1 until now, lockout 2\nand 2 more\n"},
        {"unlock a b", "{\"ok\":true,\"clients\":[{\"client\":\"a\",\"locked\":true},{\"client\":\"b\",\"locked\":false}]}\n",
         "{\"command\":\"unlock\",\"clients\":[\"a\",\"b\"]}\n", 0, "a may log in again\nb was not locked out\n"},
        {"unlock x", "{\"ok\":false,\"error\":\"no\"}\n", "{\"command\":\"unlock\",\"clients\":[\"x\"]}\n", EX_DATAERR, "petrel unlock: no\n"},
        {"cluster", "{\"ok\":true,\"group\":null}\n", "{\"command\":\"cluster\"}\n", 0, "this host is in no group: cluster is not set\n"},
        {"cluster", "{\"ok\":true,\"group\":{\"name\":\"mail\",\"egress\":\"own\",\"hosts\":[{\"name\":\"a\",\"state\":\"lost\",\"own\":false,\"reports\":\"leaving\",\"version\":\"0.1.0\",\"address\":\"\"},{\"name\":\"b\",\"state\":\"member\",\"own\":true}],"
         "\"bank\":\"away\",\"server\":\"redis://r:6379/0\",\"why\":\"refused\",\"away_ms\":81000,\"asks\":7,\"asked_sites\":9,\"failures\":1,\"fallback_sites\":2,\"namesake\":true,"
         "\"sites\":[{\"site\":\"s\",\"shared_tokens\":50,\"lease_tokens\":9,\"lease_sessions\":2,\"waiting\":4,\"bound\":\"lease_rate\"}]}}\n",
         "{\"command\":\"cluster\"}\n", 0,
         "group  mail, egress own\nhost   a  lost, leaving, 0.1.0\nhost   b  member, this one\n       another host has this name: each needs its own cluster_host\n"
         "bank   away, redis://r:6379/0; for 81 s: refused\nasks   7 for 9 sites, 1 without an answer\nparts  2 sites go on with the part of this host\n"
         "site   s  9 of 50 transactions in 5 s,  2 sessions, 4 waiting, bound lease_rate\n"},
        {"cluster forget a", "{\"ok\":true}\n", "{\"command\":\"cluster-forget\",\"host\":\"a\"}\n", 0, "a is forgotten: its part is free\n"},
        {"cluster adopt a", "{\"ok\":true}\n", "{\"command\":\"cluster-adopt\",\"host\":\"a\"}\n", 0, "the mail of a is being adopted: petrel cluster says how far\n"},
        {"cluster forget x", "{\"ok\":false,\"error\":\"no\"}\n", "{\"command\":\"cluster-forget\",\"host\":\"x\"}\n", EX_DATAERR, "petrel cluster: no\n"},
        {"cluster remove x", "", "", EX_USAGE, "usage: petrel cluster [--json] | forget|adopt HOST\n"},
        {"drain --wait 0", "{\"ok\":true,\"state\":\"leaving\",\"left\":{\"active\":0,\"hold\":2,\"corrupt\":1},\"sessions_in\":1,\"sessions_out\":2}\n",
         "{\"command\":\"drain\",\"cancel\":false,\"empty\":false,\"keep\":false,\"to\":\"\",\"wait_ms\":0}\n", EX_TEMPFAIL, "leaving: 2 hold, 1 corrupt; sessions: 1 in, 2 out\n"},
        {"drain --empty --wait 1m", "{\"ok\":true,\"state\":\"gone\",\"left\":{\"active\":0},\"sessions_in\":0,\"sessions_out\":0}\n",
         "{\"command\":\"drain\",\"cancel\":false,\"empty\":true,\"keep\":false,\"to\":\"\",\"wait_ms\":60000}\n", 0, "gone: no messages; sessions: 0 in, 0 out\n"},
        {"drain --cancel", "{\"ok\":true,\"state\":\"running\"}\n", "{\"command\":\"drain\",\"cancel\":true,\"empty\":false,\"keep\":false,\"to\":\"\",\"wait_ms\":100000}\n", 0,
         "accepting and delivering mail again\n"},
        {"drain", "{\"ok\":false,\"error\":\"no\"}\n", "{\"command\":\"drain\",\"cancel\":false,\"empty\":false,\"keep\":false,\"to\":\"\",\"wait_ms\":100000}\n", EX_DATAERR, "petrel drain: no\n"},
        {"drain --to b,c --wait 5s",
         "{\"ok\":true,\"state\":\"gone\",\"left\":{\"corrupt\":1},\"sessions_in\":0,\"sessions_out\":0,\"given\":88,\"refused\":1,\"refusal\":\"c: not here\",\"local\":0,\"why\":\"b: 450 busy\"}\n",
         "{\"command\":\"drain\",\"cancel\":false,\"empty\":false,\"keep\":false,\"to\":\"b,c\",\"wait_ms\":5000}\n", EX_TEMPFAIL,
         "gone: 1 corrupt; given: 88; refused: 1 (c: not here); waiting: b: 450 busy; sessions: 0 in, 0 out\n"},
        {"drain --keep", "{\"ok\":true,\"state\":\"gone\",\"left\":{},\"sessions_in\":0,\"sessions_out\":0}\n",
         "{\"command\":\"drain\",\"cancel\":false,\"empty\":false,\"keep\":true,\"to\":\"\",\"wait_ms\":100000}\n", 0, "gone: no messages; sessions: 0 in, 0 out\n"},
        {"drain --to", "", "", EX_USAGE, "usage: petrel drain [--wait TIME] [--empty] [--to HOST,... | --keep] | --cancel\n"},
        {"drain --cancel --empty", "", "", EX_USAGE, "usage: petrel drain [--wait TIME] [--empty] [--to HOST,... | --keep] | --cancel\n"},
        {"drain --wait soon", "", "", EX_USAGE, "usage: petrel drain [--wait TIME] [--empty] [--to HOST,... | --keep] | --cancel\n"},
        {"reload now", "", "", EX_USAGE, "usage: petrel reload\n"},
        {"health now", "", "", 1, "usage: petrel health [--live]\n"},
        {"log-level debug --until 2m", "", "", EX_USAGE, "usage: petrel log-level [error|warning|info|debug [--for TIME]]\n"},
        {"log-level debug --for x", "", "", EX_USAGE, "usage: petrel log-level [error|warning|info|debug [--for TIME]]\n"},
        {"log-level debug 2m", "", "", EX_USAGE, "usage: petrel log-level [error|warning|info|debug [--for TIME]]\n"},
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        pid_t daemon = daemon_start(rows[i].answer);
        is_number(run(rows[i].command), rows[i].code, rows[i].command);
        must(waitpid(daemon, NULL, 0) == daemon);
        is_string(content("said"), rows[i].said, "what it prints");
        is_string(content("asked"), rows[i].asked, "what it asks");
    }
}

static void
no_daemon(void)
{
    unlink(path);
    is_number(run("reload"), EX_UNAVAILABLE, "no daemon");
    ok(strncmp(content("said"), "petrel reload: no daemon answers: ", 34) == 0);
    is_number(run("health"), 1, "nor is it healthy");
}

int
main(void)
{
    folder_make(folder, sizeof(folder), "daemon");
    snprintf(path, sizeof(path), "%.60s/control", folder);
    asks();
    no_daemon();
    folder_remove(folder);
    return done();
}
