/* A host that takes content slowly, in virtual time, on a real socket: it has its time,
 * but no session for ever. */
/* link: t/sim/clock.c */
/* link: t/sim/delivery_world.c */
/* link: t/sim/dns.c t/sim/loop.c */
#include "smtp/delivery/delivery.h"

#include "t/sim/delivery_world.h"
#include "t/sim/sim.h"

#include <errno.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

/* An LMTP server behind a Unix socket, whose buffer in the kernel is small and known. */
struct peer {
    char directory[40], path[80];
    int listener, link;
    int64_t rate; /* bytes of content that it reads in a second */
    bool in_content;
    char line[4096];
    size_t length;
    int64_t heard;
};

static void
peer_start(struct peer *p, int64_t rate)
{
    struct sockaddr_un name = {.sun_family = AF_UNIX};
    *p = (struct peer){.directory = "/tmp/petrel-t-XXXXXX", .link = -1, .rate = rate};
    host_must(mkdtemp(p->directory) != NULL);
    snprintf(p->path, sizeof(p->path), "%s/lmtp", p->directory);
    text_copy(name.sun_path, sizeof(name.sun_path), text_from(p->path));
    p->listener = socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    host_must(p->listener >= 0 &&
              bind(p->listener, (struct sockaddr *)&name, sizeof(name)) == 0 &&
              listen(p->listener, 5) == 0);
}

static void
peer_stop(struct peer *p)
{
    if (p->link >= 0)
        close(p->link);
    close(p->listener);
    unlink(p->path);
    rmdir(p->directory);
}

static void
peer_say(struct peer *p, const char *reply)
{
    host_must(send(p->link, reply, strlen(reply), MSG_NOSIGNAL) >= 0 || errno == EPIPE);
}

static void
peer_line(struct peer *p, struct text line)
{
    if (p->in_content) {
        p->in_content = !text_equal(line, TEXT("."));
        if (!p->in_content)
            peer_say(p, "250 2.0.0 ok\r\n");
    } else if (text_starts(line, TEXT("LHLO"))) {
        peer_say(p, "250-host\r\n250 PIPELINING\r\n");
    } else if (text_starts(line, TEXT("DATA"))) {
        p->in_content = true;
        peer_say(p, "354 go\r\n");
    } else {
        peer_say(p, "250 2.0.0 ok\r\n");
    }
}

/* One second of its life. */
static void
peer_live(struct peer *p)
{
    char bytes[4096];
    int64_t left = p->in_content ? p->rate : (int64_t)sizeof(bytes);
    if (p->link < 0) {
        p->link = accept4(p->listener, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);
        if (p->link >= 0)
            peer_say(p, "220 slow\r\n");
    }
    while (p->link >= 0 && left > 0) {
        size_t size = left < (int64_t)sizeof(bytes) ? (size_t)left : sizeof(bytes);
        ssize_t got = recv(p->link, bytes, size, 0);
        if (got <= 0)
            return;
        left -= got;
        p->heard += got;
        for (ssize_t i = 0; i < got; i++) {
            host_must(p->length < sizeof(p->line));
            p->line[p->length++] = bytes[i];
            if (bytes[i] == '\n') {
                peer_line(p, text_of(p->line, p->length - 2));
                p->length = 0;
            }
        }
    }
}

/* Seconds until the session is over, with a message of size bytes. */
static int
seconds(struct bed *b, struct peer *p, size_t size, int at_most)
{
    for (size_t i = 0; i < size; i++)
        spool.content[i] = i % 71 == 69 ? '\r' : i % 71 == 70 ? '\n' : 'x';
    spool.length = size;
    b->target.kind = TARGET_LMTP;
    text_copy(b->target.path, sizeof(b->target.path), text_from(p->path));
    add_mail(b, "u@local.test");
    delivery_open(b->delivery, place(b), &b->target, "");
    for (int s = 0; s < at_most; s++) {
        for (int i = 0; i < 4; i++) {
            sim_loop_poll(b->loop);
            loop_turn(b->loop, 0);
        }
        peer_live(p);
        sim_loop_advance(b->loop, 1000);
        if (b->manager.ended > 0)
            return s;
    }
    return at_most;
}

static int
deliver(int64_t rate_min, int64_t peer_rate, double scale, size_t size, const char *want)
{
    struct bed b;
    struct peer p;
    bed_start(&b);
    struct delivery_settings settings = b.settings;
    settings.data_rate_min = rate_min;
    struct tls *tls = b.tls;
    char error[200];
    settings.tls = tls_client_new(tls, NULL, error, sizeof(error));
    delivery_reload(b.delivery, &settings);
    b.target.timeout_scale = scale;
    peer_start(&p, peer_rate);
    int lasted = seconds(&b, &p, size, 4000);
    printf("# at least %d, takes %d B/s: %d s, %lld bytes\n", (int)rate_min,
           (int)peer_rate, lasted, (long long)p.heard);
    is_settled(&b, want, "what becomes of it");
    peer_stop(&p);
    bed_stop(&b);
    return lasted;
}

/* --- A kept connection in virtual time -------------------------------------------- */

/* A kept connection in virtual time: only mail and the end of its time wake it. */

enum { KEPT_MS = 60000 };

static void
exchange(struct bed *b, const char *want)
{
    for (int i = 0; i < 10000 && !has(&b->manager.verdicts, want); i++) {
        sim_loop_poll(b->loop);
        loop_turn(b->loop, 1);
    }
    ok_named(has(&b->manager.verdicts, want), want);
}

/* The first message is sent; a second one, not yet to be seen, waits. */
static void
keep(struct bed *b)
{
    bed_start(b);
    b->settings.reuse_idle_ms = KEPT_MS;
    delivery_reload(b->delivery, &b->settings);
    add_mail(b, "u@x.test");
    add_mail(b, "v@x.test");
    b->manager.hidden = 1;
    delivery_open(b->delivery, place(b), &b->target, "x.test");
    exchange(b, "u@x.test sent");
}

static void
test_pause(void)
{
    struct bed b;
    keep(&b);
    uint64_t before = sim_loop_turns(b.loop);
    sim_loop_advance(b.loop, KEPT_MS / 2);
    is_number((long)(sim_loop_turns(b.loop) - before), 1,
              "no turn but the one in which the test ends the wait");
    b.manager.hidden = 0;
    loop_turn(b.loop, 0);
    is_number(b.manager.taken, 2, "mail is taken in the turn that brings it");
    exchange(&b, "v@x.test sent");
    before = sim_loop_turns(b.loop);
    sim_loop_advance(b.loop, KEPT_MS - 1);
    is_number(b.manager.ended, 0, "the time begins anew");
    is_number((long)(sim_loop_turns(b.loop) - before), 1, "nothing happens in it");
    sim_loop_advance(b.loop, 1);
    is_number(b.manager.ended, 1, "then the session ends");
    is_number(b.a.connections, 1, "it was one connection");
    bed_stop(&b);
}

static void
test_last_moment(void)
{
    struct bed b;
    keep(&b);
    sim_loop_advance(b.loop, KEPT_MS - 1);
    b.manager.hidden = 0;
    loop_turn(b.loop, 1);
    is_number(b.manager.taken, 2, "mail at the end of the time is taken");
    is_number(b.manager.ended, 0, "over the same connection");
    bed_stop(&b);
}

static void
test_reload(void)
{
    struct bed b;
    keep(&b);
    sim_loop_advance(b.loop, 5000);
    b.settings.reuse_idle_ms = 8000;
    delivery_reload(b.delivery, &b.settings);
    sim_loop_advance(b.loop, 2999);
    is_number(b.manager.ended, 0, "a new time counts from when it became idle");
    sim_loop_advance(b.loop, 1);
    is_number(b.manager.ended, 1, "and ends the session");
    bed_stop(&b);
}

static void
delivery_idle_tests(void)
{
    spool.content = memory_new(CONTENT_MAX);
    test_pause();
    test_last_moment();
    test_reload();
    free(spool.content);
}


int
main(void)
{
    static const char sent[] = "u@local.test sent 2.0.0 none\n";
    static const char slow[] = "u@local.test deferred 4.4.2 site\n";
    spool.content = memory_new(CONTENT_MAX);
    /* Every kilobyte that it takes begins the time-out of three minutes anew. */
    int lasted = deliver(0, 2000, 1, 1500000, sent);
    ok_named(lasted >= 740 && lasted <= 800, "any rate: as long as it likes");
    lasted = deliver(1000, 2000, 1, 1500000, sent);
    ok_named(lasted >= 740 && lasted <= 800, "a slow line that is fast enough");
    lasted = deliver(4000, 2000, 1, 1500000, slow);
    ok_named(lasted >= 360 && lasted <= 370, "one that is not has six minutes");
    lasted = deliver(4000, 2000, 2, 3000000, slow);
    ok_named(lasted >= 720 && lasted <= 735, "times the route's scale");
    lasted = deliver(4000, 1000000, 1, 3000000, sent);
    ok_named(lasted < 60, "nobody else is touched");
    lasted = deliver(4000, 1500, 1, 400000, sent);
    ok_named(lasted < 350, "nor a small message");
    free(spool.content);
    delivery_idle_tests();
    return done();
}
