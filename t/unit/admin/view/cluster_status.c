/* All hosts on one page: the table, what differs, the sums of shared sites, exit codes. */
#include "admin/view/cluster_status.h"

#include "admin/view/status.h"
#include "t/support/command_world.h"
#include "t/support/must.h"
#include "t/support/tap.h"

#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <sysexits.h>
#include <unistd.h>

#define GROUP(bank, away, why, hosts) "{\"name\":\"mail\",\"bank\":\"" bank "\",\"server\":\"redis://r:6379\",\"away_ms\":" away ",\"why\":\"" why "\",\"asks\":70,\"failures\":2,\"fallback_sites\":" away ",\"hosts\":[" hosts "]}"
#define ONE "{\"host\":\"relay1\",\"version\":\"0.1.0\",\"uptime_s\":7200,\"accepting\":true,\"reason\":\"\",\"oldest_ms\":0,\"state\":\"running\",\"waiting\":120,\"busy\":0.25," \
    "\"sessions\":{\"in\":3,\"out\":20},\"settings\":{\"routes\":\"aaaa\",\"dane\":\"dddd\"},\"group\":" GROUP("up", "0", "", "{\"name\":\"relay9\",\"state\":\"lost\"}") "," \
    "\"sites\":[{\"site\":\"mx.a.test\",\"limit\":20,\"shared_tokens\":83,\"lease_tokens\":50,\"lease_sessions\":12,\"sessions\":11,\"busy\":10,\"waiting\":100,\"backlogged\":7,\"bound\":\"lease\"}]}\n"
#define TWO "{\"host\":\"relay2\",\"version\":\"0.1.1\",\"uptime_s\":60,\"accepting\":true,\"reason\":\"\",\"oldest_ms\":0,\"state\":\"running\",\"waiting\":5," \
    "\"sessions\":{\"in\":1,\"out\":2},\"settings\":{\"routes\":\"bbbb\",\"dane\":\"dddd\"},\"group\":" GROUP("away", "81000", "no answer in time", "") "," \
    "\"sites\":[{\"site\":\"mx.a.test\",\"limit\":20,\"shared_tokens\":83,\"lease_tokens\":30,\"lease_sessions\":8,\"sessions\":8,\"busy\":8,\"waiting\":900,\"backlogged\":0,\"bound\":\"lease\"}," \
    "{\"site\":\"mx.b.test\",\"limit\":0,\"lease_sessions\":4,\"sessions\":4,\"busy\":4,\"waiting\":2000,\"backlogged\":0}]}\n"
#define LEAVES "{\"host\":\"relay4\",\"version\":\"0.1.1\",\"uptime_s\":60,\"accepting\":false,\"reason\":\"it is leaving\",\"oldest_ms\":0,\"state\":\"leaving\",\"waiting\":0,\"sessions\":{},\"settings\":{\"routes\":\"bbbb\"},\"group\":null,\"sites\":[]}\n"
#define SILENT "{\"trouble\":\"no answer for 2 s\",\"host\":\"relay3\"}\n"
#define END "{\"ok\":true,\"end\":true,\"next\":null,\"hosts\":3,\"silent\":0}\n"

static struct command_world world;

static int
answered(const char *line, const char *answers)
{
    pid_t daemon = command_world_daemon(&world, answers);
    int code = run(status_command, line);
    must(waitpid(daemon, NULL, 0) == daemon);
    return code;
}

static void
prints(const char *part)
{
    if (!ok_named(strstr(world.output, part) != NULL, part))
        printf("# %s\n", world.output);
}

TEST(page)
{
    is_number(answered("--cluster", "{\"seen\":0}\n" ONE TWO SILENT END), EX_TEMPFAIL, "a host that does not answer");
    is_string(command_world_asked(&world), "{\"command\":\"status\",\"cluster\":true}\n", "what is asked");
    is_string(world.errors, "", "without an error");
    prints("group      mail: 3 hosts, 1 without an answer; messages waiting: 125\n");
    prints("warning    relay9 is lost: its part of the limits is kept for ten minutes; `petrel cluster forget relay9` frees it\n");
    prints("warning    routes differs: relay1 (aaaa); relay2 (bbbb)\n");
    ok_named(strstr(world.output, "dane") == NULL, "what is the same is not said");
    prints("warning    redis is away at relay2 for 1 min: no answer in time; 81000 sites at its own part\n"
           "redis      up at 1 of 2 hosts; asks 140, without an answer 4\n");
    prints("HOST    STATE    VERSION   UP            WAITING  OLDEST         IN   OUT   BUSY  ACCEPTING\n"
           "relay1  running  0.1.0     2 h 0 min         120  -               3    20   25 %  yes\n"
           "relay2  running  0.1.1     1 min               5  -               1     2      -  yes\n"
           "relay3  no answer for 2 s\n");
    prints("SHARED SITE                          GRANTED  OPEN  BUSY    IN 5 S  WAITING  BACKLOG  WHO WAITS\n"
           "mx.b.test                                  4     4     4         -     2000        0  relay2 2000\n"
           "mx.a.test                              20/20    19    18     80/83     1000        7  relay2 900, relay1 100\n");
}

TEST(codes)
{
    is_number(answered("--cluster", ONE TWO END), 0, "all answer and accept mail");
    is_number(answered("--cluster", ONE LEAVES END), EX_TEMPFAIL, "one accepts none");
    prints("no: it is leaving\n");
    is_number(answered("--cluster", "{\"ok\":false,\"error\":\"this host is in no group: cluster is not set\"}\n"), EX_CONFIG, "no group");
    is_string(world.errors, "petrel status: this host is in no group: cluster is not set\n", "why");
    unlink(world.control);
    is_number(run(status_command, "--cluster"), EX_UNAVAILABLE, "no daemon");
    ok(strncmp(world.errors, "petrel status: no daemon answers: ", 34) == 0);
    is_number(run(status_command, "--cluster --sites"), EX_USAGE, "sites are of one host");
}

TEST(json)
{
    is_number(answered("--cluster --json", ONE TWO SILENT END), EX_TEMPFAIL, "as JSON");
    json_t *status = json_loads(world.output, 0, NULL);
    const json_t *routes = json_object_get(json_object_get(status, "differing"), "routes");
    is_number((long)json_array_size(json_object_get(status, "hosts")), 3, "the hosts");
    is_number((long)json_object_size(json_object_get(status, "differing")), 1, "one setting differs");
    is_string(json_string_value(json_array_get(json_object_get(routes, "bbbb"), 0)), "relay2", "where");
    is_number((long)json_integer_value(json_object_get(json_array_get(json_object_get(status, "sites"), 1), "granted")), 20, "sums of sites");
    json_decref(status);
}

#define WILD(number) "{\"host\":\"relay8\",\"version\":\"0.1.0\",\"uptime_s\":" number ",\"accepting\":true,\"reason\":\"\",\"oldest_ms\":" number ",\"state\":\"running\",\"waiting\":" number "," \
    "\"sessions\":{\"in\":" number ",\"out\":" number "},\"settings\":{},\"group\":null," \
    "\"sites\":[{\"site\":\"mx.a.test\",\"limit\":" number ",\"lease_tokens\":" number ",\"sessions\":" number ",\"busy\":" number ",\"waiting\":" number ",\"backlogged\":" number "}]}\n"

/* Numbers that no host has do not overflow the sums. */
TEST(numbers)
{
    is_number(answered("--cluster", WILD("9223372036854775807") WILD("9223372036854775807") END), 0, "numbers without measure");
    prints("messages waiting: 2000000000000000\n");
    is_number(answered("--cluster", WILD("-9223372036854775808") WILD("-1") END), 0, "and negative ones");
    prints("messages waiting: 0\n");
}

int
main(void)
{
    command_world_begin(&world, "cluster_status");
    must(mkdir(world.spool, 0700) == 0);
    tap_tests("");
    command_world_end(&world);
    return done();
}
