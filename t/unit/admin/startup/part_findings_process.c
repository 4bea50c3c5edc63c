/* The facts about the process, its certificates and its fragments: when they begin, and that they end by themselves. */
#include "admin/startup/parts.h"

#include "base/log/log.h"
/* link: t/sim/clock.c */
#include "t/sim/clock.h"
#include "t/support/tls_world.h"

#include <fcntl.h>
#include <unistd.h>

static struct loop *loop;
static struct log *log_of;
static struct manager_fragments fragments;
static struct daemon daemon_of;

static struct finding_facts
look(const struct tls_server *tls)
{
    struct finding_facts facts = {0};
    part_findings_see_process(&daemon_of, tls, &fragments, &facts);
    return facts;
}

static void
pass(int64_t ms)
{
    clock_pass(ms);
    clock_step(ms); /* the wall clock passes with the other one */
    clock_turn(loop);
}

static void
burn(void *context)
{
    (void)context;
    clock_pass(260);
}

TEST(loop)
{
    struct loop_timer timer = {0};
    struct finding_facts f = look(NULL);
    ok_named(f.slow_us == 0 && f.jump_ms == 0, "nothing is wrong with the loop");
    loop_timer_start(loop, &timer, 1, burn, NULL);
    pass(5);
    f = look(NULL);
    ok_named(f.slow_us >= 260000, "a turn that took too long");
    is_string(f.slow_part, "timers and long work", "and what it did");
    pass(FINDINGS_RECENT_MS - 1000);
    ok_named(look(NULL).slow_us > 0, "for ten minutes");
    pass(2000);
    ok_named(look(NULL).slow_us == 0, "then it is over");
    clock_step(-2 * 3600 * 1000);
    pass(1);
    ok_named(look(NULL).jump_ms < -7100 * 1000, "the clock was set back");
    pass(FINDINGS_JUMP_MS - 1000);
    ok_named(look(NULL).jump_ms != 0, "for an hour");
    pass(2000);
    ok_named(look(NULL).jump_ms == 0, "then it is over");
}

TEST(log)
{
    int ends[2];
    char read_back[65536];
    int kept = dup(2);
    is_number(look(NULL).log_lost, 0, "no line is lost");
    if (pipe(ends) != 0)
        abort();
    dup2(ends[1], 2);
    struct log *full = log_new(loop, LOG_STYLE_PETREL, LOG_LEVEL_INFO);
    daemon_of.log = full;
    for (int i = 0; i < 40000; i++)
        log_say(full, LOG_LEVEL_INFO, "p", NULL, "a line that nobody reads: %d, and some more to fill the space", i);
    loop_turn(loop, 0);
    uint64_t lost = look(NULL).log_lost;
    ok_named(lost > 0, "lines are lost that nobody reads");
    fcntl(ends[0], F_SETFL, O_NONBLOCK);
    for (int i = 0; i < 200; i++) {
        (void)!read(ends[0], read_back, sizeof(read_back));
        clock_turn(loop);
    }
    is_number((int64_t)look(NULL).log_lost, (int64_t)lost, "and stay known when it is read again");
    pass(FINDINGS_RECENT_MS);
    is_number((int64_t)look(NULL).log_lost, 0, "ten minutes later it is over");
    daemon_of.log = log_of;
    log_free(&full);
    dup2(kept, 2);
    close(kept);
    close(ends[0]);
    close(ends[1]);
}

TEST(fragments)
{
    struct finding_facts f = look(NULL);
    ok_named(f.fragments == 0 && f.fragments_ms == 0 && !f.namesake, "no fragments");
    fragments = (struct manager_fragments){.messages = 3, .oldest_ms = loop_now_ms(loop) - 5000, .namesakes = 1};
    f = look(NULL);
    ok_named(f.fragments == 3 && f.fragments_ms == 5000 && f.namesake, "some, and another host of our name");
    pass(FINDINGS_RECENT_MS);
    ok_named(!look(NULL).namesake, "which is not seen again");
    fragments.namesakes++;
    ok_named(look(NULL).namesake, "and then it is");
    fragments = (struct manager_fragments){0};
}

TEST(certificates)
{
    FIXTURE(secrets, k, make_secrets, drop_secrets);
    struct tls_server *server = server_of(&k, "good expired");
    struct finding_facts f = look(NULL);
    ok_named(f.certificate == NULL, "no certificate");
    f = look(server);
    ok_named(f.certificate != NULL && f.certificate[0] != '\0', "the first that expires");
    ok_named(f.certificate_ms < 0, "has expired");
    tls_server_free(&server);
    server = server_of(&k, "good");
    f = look(server);
    ok_named(f.certificate != NULL && f.certificate_ms > 0, "another one is good");
    tls_server_free(&server);
}

int
main(void)
{
    clock_stop();
    loop = loop_new();
    log_of = log_new(loop, LOG_STYLE_PETREL, LOG_LEVEL_INFO);
    daemon_of = (struct daemon){.loop = loop, .log = log_of};
    tap_tests("");
    log_free(&log_of);
    loop_free(&loop);
    clock_go();
    return done();
}
