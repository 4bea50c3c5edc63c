/* The queues of all hosts: what is asked, printed, and the exit code. The daemon is a process
 * that has its answers ready. */
#include "admin/command/cluster_queue.h"

#include "admin/command/command.h"
#include "t/support/command_world.h"
#include "t/support/must.h"
#include "t/support/tap.h"

#include <signal.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <sysexits.h>
#include <unistd.h>

#define ID    "01M8H4KQ7J-ZWR0RQV6"
#define OTHER "01M8H4KQ7K-353QJEAB"
#define END   "{\"ok\":true,\"end\":true,\"next\":null,\"hosts\":3,\"silent\":0}\n"
#define TORN  "{\"trouble\":\"no answer for 2 s\",\"host\":\"relay3\"}\n{\"ok\":true,\"end\":true,\"next\":null,\"hosts\":3,\"silent\":1}\n"
#define MAIL(host, id, place) "{\"queue_name\":\"" place "\",\"queue_id\":\"" id "\",\"arrival_time\":1700000000,\"message_size\":12,\"sender\":\"a@x.test\",\"recipients\":[{\"address\":\"b@y.test\",\"done\":false}],\"attempts\":1,\"due_time\":0,\"host\":\"" host "\"}\n"

static struct command_world world;

TEST(rows)
{
    static const struct {
        const char *command, *answers, *asked;
        int code;
        const char *output, *errors;
    } rows[] = {
        {"ls --cluster", MAIL("relay1", ID, "deferred") MAIL("relay2", OTHER, "active") END, "{\"command\":\"list\",\"limit\":10000,\"cluster\":true}\n", 0, "relay1     " ID " deferred", ""},
        {"ls --cluster", MAIL("relay2", OTHER, "active") END, "", 0, "relay2     " OTHER " active", ""},
        {"ls --cluster --to y.test", "{\"seen\":1}\n" END, "{\"command\":\"list\",\"to\":\"y.test\",\"limit\":10000,\"cluster\":true}\n", 0, "", "petrel queue: no message matches\n"},
        {"ls --cluster", MAIL("relay1", ID, "deferred") TORN, "", EX_TEMPFAIL, "<a@x.test> -> <b@y.test>", "petrel queue: relay3: no answer for 2 s\n"},
        {"ls --cluster", MAIL("relay1", ID, "deferred") "{\"ok\":true,\"end\":true,\"next\":\"" ID "\",\"hosts\":2,\"silent\":0}\n|" MAIL("relay1", OTHER, "deferred") END, "{\"command\":\"list\",\"limit\":10000,\"cluster\":true}\n{\"command\":\"list\",\"limit\":10000,\"after\":\"" ID "\",\"cluster\":true}\n", 0, "relay1     " OTHER, ""},
        {"ls --cluster --json", MAIL("relay1", ID, "deferred") TORN, "", EX_TEMPFAIL, "\"host\":\"relay1\"}\n{\"trouble\":\"no answer for 2 s\",\"host\":\"relay3\"}\n", ""},
        {"ls --cluster", "{\"queue_name\":\"corrupt\",\"queue_id\":\"" ID "\",\"reason\":\"torn\",\"host\":\"relay1\"}\n" END, "", 0, "relay1     " ID " corrupt  (torn) see corrupt/" ID ".note\n", ""},
        {"ls --cluster", "{\"ok\":false,\"error\":\"this host is in no group: cluster is not set\"}\n", "", EX_CONFIG, "", "petrel queue: this host is in no group: cluster is not set\n"},
        {"show --cluster " ID, MAIL("relay2", ID, "deferred") END, "{\"command\":\"show\",\"id\":\"" ID "\",\"why\":false,\"cluster\":true}\n", 0, "host:     relay2\nid:       " ID "\nqueue:    deferred\n", ""},
        {"show --cluster " ID, "{\"queue_name\":\"gone\",\"queue_id\":\"" ID "\",\"state\":\"given\",\"events\":[],\"given\":{\"host\":\"relay2\",\"id\":\"" OTHER "\",\"time_ms\":1700000000000},\"host\":\"relay1\"}\n" MAIL("relay2", OTHER, "active") END, "", 0,
         "given:    relay1 gave it to relay2, where it is " OTHER ", 2023-11-14 22:13:20Z", ""},
        {"show --cluster " ID, "{\"queue_name\":\"gone\",\"queue_id\":\"" ID "\",\"state\":\"delivered\",\"events\":[],\"host\":\"relay1\"}\n" END, "", EX_DATAERR, "host:     relay1\nid:       " ID "\nqueue:    gone: delivered\nhistory:\n", ""},
        {"show --cluster " ID, END, "", EX_DATAERR, "", "petrel queue: no host has that message: " ID "\n"},
        {"show --cluster " ID, TORN, "", EX_TEMPFAIL, "", "petrel queue: relay3: no answer for 2 s\npetrel queue: no host that answered has that message: " ID "\n"},
        {"show --cluster --json " ID, MAIL("relay2", ID, "deferred") END, "", 0, "\"host\":\"relay2\"}\n", ""},
        {"why --cluster " ID, MAIL("relay2", ID, "hold") END, "{\"command\":\"show\",\"id\":\"" ID "\",\"why\":true,\"cluster\":true}\n", 0, "host:     relay2\nid:       " ID "\nqueue:    hold: ", ""},
        {"why --cluster --to y.test", END, "", EX_USAGE, "", "petrel queue: show and why with --cluster need ids, no filter\n"},
        {"hold --cluster " ID " " OTHER, "{\"id\":\"" ID "\",\"ok\":true,\"code\":0,\"text\":\"held\",\"host\":\"relay2\"}\n{\"id\":\"" OTHER "\",\"ok\":false,\"code\":65,\"text\":\"no such message on any host\"}\n" END,
         "{\"command\":\"hold\",\"ids\":[\"" ID "\",\"" OTHER "\"],\"cluster\":true}\n", EX_DATAERR, "relay2     " ID " held\n", "petrel queue: " OTHER ": no such message on any host\n"},
        {"hold --cluster --json " ID, "{\"id\":\"" ID "\",\"ok\":true,\"code\":0,\"text\":\"held\",\"host\":\"relay2\"}\n" END, "", 0, "{\"queue_id\":\"" ID "\",\"action\":\"hold\",\"ok\":true,\"text\":\"held\",\"host\":\"relay2\"}\n", ""},
        {"hold --cluster " ID, "{\"id\":\"" ID "\",\"ok\":false,\"code\":256,\"text\":\"odd\",\"host\":\"relay2\"}\n" END, "", EX_SOFTWARE, "", "petrel queue: relay2: " ID ": odd\n"},
        {"hold --cluster " ID, "{\"id\":\"" ID "\",\"ok\":false,\"text\":\"odd\",\"host\":\"relay2\"}\n" END, "", EX_SOFTWARE, "", "petrel queue: relay2: " ID ": odd\n"},
        {"retry --cluster --all", TORN, "{\"command\":\"retry\",\"all\":true,\"cluster\":true}\n", EX_TEMPFAIL, "all that waits is due now on 2 hosts\n", "petrel queue: relay3: no answer for 2 s\n"},
        {"release --cluster --to y.test", END, "", 0, "", "petrel queue: nothing to do: no message matches, or none needs a change\n"},
        {"ls --cluster", "", "", EX_UNAVAILABLE, "", "petrel queue: the daemon closed the connection\n"},
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        pid_t daemon = command_world_daemon(&world, rows[i].answers);
        is_number(run(command_queue, rows[i].command), rows[i].code, rows[i].command);
        unlink(world.control);
        must(waitpid(daemon, NULL, 0) == daemon);
        if (!ok_named(strstr(world.output, rows[i].output) != NULL, "what it prints"))
            printf("# %s\n", world.output);
        is_string(world.errors, rows[i].errors, "what it complains of");
        if (rows[i].asked[0] != '\0')
            is_string(command_world_asked(&world), rows[i].asked, "what it asks");
    }
}

TEST(refusals)
{
    unlink(world.control);
    is_refused(run(command_queue, "rm --cluster --all"), EX_USAGE, "petrel queue: rm cannot be undone, so it is for one host at a time; run it there\n");
    is_refused(run(command_queue, "bounce --cluster " ID), EX_USAGE, "bounce cannot be undone");
    is_refused(run(command_queue, "cat --cluster " ID), EX_USAGE, "cat shows mail, which stays on its host");
    is_refused(run(command_queue, "shape --cluster"), EX_USAGE, "shape reads the spool");
    is_refused(run(command_queue, "hold --cluster"), EX_USAGE, "usage: ");
    is_refused(run(command_queue, "ls --cluster"), EX_UNAVAILABLE, "petrel queue: --cluster needs the daemon, and none answers: ");
}

int
main(void)
{
    command_world_begin(&world, "cluster_queue");
    must(mkdir(world.spool, 0700) == 0);
    tap_tests("");
    command_world_end(&world);
    return done();
}
