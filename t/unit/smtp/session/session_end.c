/* smtp/session: how it goes on, or ends, when something else is under way: AUTH, TLS,
 * replies that nobody reads. Over pipes, in virtual time. */
/* link: t/sim/loop.c */
#include "smtp/session/session.h"

#include "base/log/log.h"
#include "base/log/log_internal.h"
#include "base/loop/loop.h"
#include "base/memory.h"
#include "smtp/session/auth_gate.h"
#include "base/event/event.h"
#include "t/support/sasl_kit.h"
#include "t/sim/sim.h"

#include <fcntl.h>
#include <poll.h>
#include <stdlib.h>
#include <unistd.h>

#define WRONG "AUTH PLAIN AHVzZXIAcGVuY2lt\r\n"

enum { PIPE_SIZE = 4096, UNREAD = 8 * 1024 /* then a session pauses */ };

enum { NO_QUEUE_SIZE = 64 * 1024 }; /* zeros */

struct world {
    struct loop *loop;
    struct net *net;
    struct log *log;
    struct event_hub *events;
    struct buffer lines, heard;
    struct session_host host;
    void *no_queue;
    struct net_connection *connection; /* the session's: valid while it lasts */
    int to, from, far[2];
};

static char directory[] = "/tmp/petrel-end-XXXXXX";

static void
must(bool good, const char *what)
{
    if (good)
        return;
    printf("Bail out! %s\n", what);
    exit(1);
}

static struct tls_server *
certified(void)
{
    char command[600], file[100], error[TLS_ERROR_MAX];
    snprintf(file, sizeof(file), "%s/both.pem", directory);
    snprintf(
        command, sizeof(command),
        "openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes "
        "-subj /CN=x -keyout %s/key -out %s/certificate 2>/dev/null && "
        "cat %s/key %s/certificate >%s",
        directory, directory, directory, directory, file);
    must(system(command) == 0, "no certificate");
    struct tls_pair pair = {file, file};
    struct tls *tls = tls_new(error, sizeof(error));
    struct tls_server *server = tls_server_new(tls, &pair, 1, error, sizeof(error));
    must(server != NULL, error);
    tls_free(&tls);
    return server;
}

static void
be_ready(struct world *w, int fd)
{
    struct pollfd asked = {.fd = fd, .events = POLLIN | POLLOUT};
    (void)poll(&asked, 1, 0);
    sim_loop_ready(w->loop, fd,
                   (asked.revents & ~POLLOUT ? LOOP_READ : 0) |
                       (asked.revents & POLLOUT ? LOOP_WRITE : 0));
}

static void
settle(struct world *w)
{
    for (int i = 0; i < 4; i++) {
        be_ready(w, w->far[0]);
        be_ready(w, w->far[1]);
        loop_turn(w->loop, 0);
    }
}

static void
pass(struct world *w, int64_t ms)
{
    sim_loop_advance(w->loop, ms);
    settle(w);
}

static void
world_start(struct world *w, bool tls)
{
    static const struct session_options device = {.legacy = true, .starttls = true};
    int in[2], out[2];
    memset(w, 0, sizeof(*w));
    w->loop = sim_loop_new(1);
    w->no_queue = memory_new(NO_QUEUE_SIZE);
    w->log = log_new(w->loop, LOG_STYLE_PETREL, LOG_LEVEL_INFO);
    w->events = event_hub_new(w->log);
    buffer_init(&w->lines, 1 << 20);
    buffer_init(&w->heard, 1 << 20);
    log_capture(w->log, &w->lines);
    w->net = net_new(w->loop);
    struct session_rules *rules = memory_new(sizeof(*rules));
    rules->users = 1;
    rules->accounts = kit_users("user:" KIT_KEYS "\n");
    rules->tls = tls ? certified() : NULL;
    rules->server = (struct server_rules){
        .hostname = rules->hostname, .recipient_limit = 10, .users = rules->accounts};
    rules->idle_timeout_ms = rules->patience.command_ms = 3000;
    rules->handshake_timeout_ms = 2000;
    strcpy(rules->hostname, "mx.example.org");
    /* Nothing is stored: a queue without a spool will do. */
    w->host = (struct session_host){
        .loop = w->loop, .events = w->events, .log = w->log, .rules = rules, .queue = w->no_queue};
    session_host_start(&w->host);
    must(pipe2(in, O_NONBLOCK) == 0 && pipe2(out, O_NONBLOCK) == 0, "no pipes");
    must(fcntl(out[1], F_SETPIPE_SZ, PIPE_SIZE) == PIPE_SIZE, "a small pipe");
    w->to = in[1];
    w->from = out[0];
    w->far[0] = in[0];
    w->far[1] = out[1];
    w->connection = net_adopt(w->net, in[0], out[1], (net_happened *)abort, w);
    session_start(&w->host, w->connection, &device, NULL);
    settle(w);
}

static void
world_end(struct world *w)
{
    session_host_stop(&w->host);
    free(w->no_queue);
    session_rules_release(&w->host.rules);
    net_free(&w->net);
    event_hub_free(&w->events);
    log_free(&w->log);
    loop_turn(w->loop, 0);
    loop_free(&w->loop);
    buffer_free(&w->lines);
    buffer_free(&w->heard);
    if (w->to >= 0)
        close(w->to);
    close(w->from);
}

static void
say(struct world *w, const char *line)
{
    must(write(w->to, line, strlen(line)) == (ssize_t)strlen(line), "cannot say it");
    settle(w);
}

static bool
hears(struct world *w, const char *what)
{
    char bytes[PIPE_SIZE];
    ssize_t got;
    while ((got = read(w->from, bytes, sizeof(bytes))) > 0) {
        must(buffer_add(&w->heard, text_of(bytes, (size_t)got)), "too much");
        settle(w);
    }
    return memmem(w->heard.at, w->heard.length, what, strlen(what)) != NULL;
}

/* Its answer would be one too many to keep. */
static void
read_nothing(struct world *w)
{
    say(w, "EHLO x\r\n");
    while (net_unsent(w->connection) <= UNREAD - 20)
        say(w, "NOOP\r\n");
    must(net_unsent(w->connection) <= UNREAD, "it is not asked any more");
}

/* A late answer to AUTH has nobody to go to. */
TEST(drained_while_logging_in)
{
    FIXTURE(world, w, world_start, world_end, false);
    read_nothing(&w);
    say(&w, WRONG);
    session_drain(&w.host);
    is_number(w.host.count, 0, "who does not read is not waited for");
    pass(&w, LOCKOUT_DELAY_MS + 1);
    ok(hears(&w, "421 4.3.2 shutting down"));
}

TEST(late_answer_takes_our_time)
{
    FIXTURE(world, w, world_start, world_end, false);
    pass(&w, 1500);
    say(&w, "EHLO x\r\n" WRONG);
    pass(&w, LOCKOUT_DELAY_MS);
    ok(hears(&w, "535"));
    pass(&w, 2900);
    ok_named(w.host.count == 1, "3 s for a command begin with our answer");
    pass(&w, 200);
    ok(hears(&w, "421 4.4.2") && w.host.count == 0);
}

TEST(gone_before_tls)
{
    FIXTURE(world, w, world_start, world_end, true);
    say(&w, "EHLO x\r\n" WRONG "STARTTLS\r\n");
    close(w.to);
    w.to = -1;
    settle(&w);
    is_number(w.host.count, 1, "it hears the answer first");
    pass(&w, LOCKOUT_DELAY_MS);
    ok(hears(&w, "535"));
    ok(hears(&w, "220 2.0.0") && w.host.count == 0);
    is_number(w.host.tls_count, 0, "and is not counted");
}

int
main(void)
{
    char command[100];
    must(mkdtemp(directory) != NULL, "no directory");
    tap_tests("");
    snprintf(command, sizeof(command), "rm -rf %s", directory);
    return system(command) != 0 || done();
}
