/* queue/group/group_lead.c: slices of one process, as the lock is of a handle. The slice
 * with the bank, the questions to it, the end of one, and a slice with the bank, or a
 * client at its socket, that says odd things or nothing. */
#include "queue/group/group_lead.h"

#include "base/disk/disk.h"
#include "base/log/log.h"
#include "queue/group/group_internal.h"
#include "t/support/folder.h"
#include "t/support/net_world.h"

enum { SLICES = 4, LONG_MS = 60000 };

static const struct group_ask question = {
    "a", {.burst = 1, .limit = 2, .weight = 1, .had = -1, .need = 1, .chance = 0.5, .hosts = 4}};
static struct disk *disk;
static struct log *log_;
static char folder[64];

struct slice {
    struct group_engine engine;
    struct group_asker asker;
    unsigned ready, failed, answers;
    struct bank_grant grant;
    char why[200], refused[200];
};

static void
on_ready(void *context)
{
    struct slice *s = context;
    s->ready++;
}

static void
on_failed(void *context, const char *why)
{
    struct slice *s = context;
    s->failed++;
    snprintf(s->why, sizeof(s->why), "%s", why);
}

static void
on_granted(void *context, const struct bank_grant *grants, const char *refused)
{
    struct slice *s = context;
    s->answers++;
    s->grant = grants != NULL ? *grants : (struct bank_grant){.tokens = -1};
    snprintf(s->refused, sizeof(s->refused), "%s", grants != NULL ? "" : refused);
}

static void
slice_start(struct world *w, struct slice *s, unsigned number, int64_t patience_ms)
{
    char error[200];
    *s = (struct slice){.ready = 0};
    struct group_lead_setup setup = {.loop = w->loop,
                                     .net = w->net,
                                     .log = log_,
                                     .disk = disk,
                                     .spool = folder,
                                     .slice = number,
                                     .slices = SLICES,
                                     .patience_ms = patience_ms};
    s->engine = group_lead_new(&setup, error, sizeof(error));
    if (s->engine.kind == NULL)
        abort();
    s->asker = (struct group_asker){
        .connection = {.ready = on_ready, .failed = on_failed, .context = s}, .granted = on_granted};
    s->engine.kind->join(s->engine.bank, &s->asker);
}

static void
slice_end(struct slice *s)
{
    s->engine.kind->leave(s->engine.bank, &s->asker);
    s->engine.kind->free(s->engine.bank);
}

static bool
may_ask(const struct slice *s)
{
    return s->engine.kind->is_ready(s->engine.bank);
}

static void
ask(struct slice *s, const struct group_ask *asks, size_t count)
{
    s->engine.kind->ask(s->engine.bank, asks, count);
}

static void
ask_grant(struct world *w, struct slice *s)
{
    unsigned before = s->answers;
    ask(s, &question, 1);
    ok_named(s->answers == before, "an answer comes later");
    until(w, s->answers > before);
    ok_named(s->grant.tokens == 0 && s->grant.sessions == 1 && s->grant.counted == 1 && s->grant.unmet == 0 && s->grant.left_us > 0, "the answer of an empty bank");
}

static const char *
place(const struct slice *s)
{
    static char out[REDIS_URL_MAX];
    s->engine.kind->place(s->engine.bank, out);
    return out;
}

static void
test_two(struct world *w)
{
    struct slice one, two;
    slice_start(w, &one, 1, LONG_MS);
    until(w, may_ask(&one));
    slice_start(w, &two, 0, LONG_MS);
    until(w, may_ask(&two));
    ok_named(one.ready == 1 && two.ready == 1, "both may ask");
    is_string(place(&one), "slice 1", "the first one has the bank");
    is_string(place(&two), "slice 1", "the other one asks it");
    ask_grant(w, &one);
    ask_grant(w, &two);
    ok_named(one.engine.kind->beat == NULL && one.engine.kind->part == NULL, "all slices are always members");
    struct group_ask odd = question;
    odd.question.burst = 0;
    ask(&one, &odd, 1);
    until(w, one.answers == 2);
    is_string(one.refused, "an odd question", "its own question is checked, too");
    ask(&one, &question, 1);
    one.engine.kind->fail(one.engine.bank, "a reason");
    is_string(one.why, "a reason", "one gives up");
    until(w, one.ready == 2);
    ok_named(one.answers == 2, "what it asked has no answer, but it may ask again");
    ask(&two, &odd, 1);
    until(w, two.failed == 1);
    is_string(two.why, "the slice with the bank has gone", "an odd question ends the connection");
    until(w, two.ready == 2);
    ask(&two, &question, 1);
    slice_end(&one);
    until(w, two.ready == 3);
    is_number(two.failed, 2, "the slice with the bank goes");
    is_string(two.why, "the slice with the bank has gone", "which is noticed");
    is_number(two.answers, 1, "what was asked has no answer");
    is_string(place(&two), "slice 0", "the other one has the bank now");
    ask_grant(w, &two);
    slice_end(&two);
}

/* --- A slice with the bank that is none ------------------------------------------- */

/* The answer of a liar: a frame of this form, with that many grants. */
struct said {
    uint64_t form, count;
    int tokens;
    const char *text; /* in place of it; NULL: nothing */
};

struct liar {
    struct world *world;
    struct net_connection *connection;
    const struct said *greeting, *answer;
    int frames;
};

static void
liar_say(struct liar *l, const struct said *said)
{
    const struct group_frame frame = {said->form, said->count};
    const struct bank_grant grant = {.tokens = said->tokens};
    if (said->form != 0)
        net_send(l->connection, text_of(&frame, sizeof(frame)));
    for (uint64_t i = 0; i < said->count && i < 2; i++)
        net_send(l->connection, text_of(&grant, sizeof(grant)));
    if (said->text != NULL)
        net_send(l->connection, text_from(said->text));
}

static void
liar_on_event(void *context, enum net_event event)
{
    struct liar *l = context;
    if (event == NET_FAILED || event == NET_ENDED) {
        net_abort(&l->connection);
        return;
    }
    size_t left = net_input(l->connection).length;
    if (left < sizeof(struct group_frame) || (l->frames > 0 && left < sizeof(struct group_frame) + sizeof(question)))
        return;
    net_consume(l->connection, left);
    liar_say(l, l->frames++ == 0 ? l->greeting : l->answer);
}

static void
liar_on_accept(void *context, struct net_connection *connection)
{
    struct liar *l = context;
    net_abort(&l->connection);
    l->connection = connection;
    l->frames = 0;
    net_attach(connection, liar_on_event, l);
}

static void
test_liar(struct world *w)
{
#define FORM GROUP_FRAME_FORM
    static const char unknown[] = "the slice with the bank says what", nothing[] = "an answer to nothing";
    static const struct {
        struct said greeting, answer;
        const char *why;
    } rows[] = {
        {{0, 0, 0, NULL},                         {0, 0, 0, NULL},       "no answer in time"},
        {{0, 0, 0, "{\"answer\":\"\"}\n"},         {0, 0, 0, NULL},       unknown            }, /* version 1 */
        {{FORM + 1, 0, 0, NULL},                  {0, 0, 0, NULL},       unknown            },
        {{FORM, GROUP_ASK_MAX + 1, 0, NULL},      {0, 0, 0, NULL},       unknown            },
        {{FORM, 1, 0, NULL},                      {0, 0, 0, NULL},       nothing            },
        {{FORM, 0, 0, "x"},                       {0, 0, 0, NULL},       unknown            },
        {{FORM, 0, 0, NULL},                      {FORM, 0, 0, NULL},    nothing            },
        {{FORM, 0, 0, NULL},                      {FORM, 2, 0, NULL},    nothing            },
        {{FORM, 0, 0, NULL},                      {0, 0, 0, "\n"},       unknown            },
        {{FORM, 0, 0, NULL},                      {FORM, 1, -1, NULL},   "an odd answer of" },
        {{FORM, 0, 0, NULL},                      {FORM, 1, 1, "more"},  unknown            },
    };
    char error[200];
    struct net_address at = {.family = NET_UNIX};
    snprintf(at.path, sizeof(at.path), "%s/lock/bank.sock.0256-0511", folder);
    for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
        struct liar liar = {w, NULL, &rows[i].greeting, &rows[i].answer, 0};
        struct net_listener *listener =
            net_listen(w->net, &at, 0600, liar_on_accept, &liar, error, sizeof(error));
        int lock = disk_lock(disk, "lock/bank", 0, 1);
        if (listener == NULL || lock < 0 ||
            disk_write_at(disk, lock, 0, TEXT("0256-0511\n")) < 0)
            abort();
        struct slice s;
        slice_start(w, &s, 0, i > 0 ? LONG_MS : 0);
        until(w, may_ask(&s) || s.failed > 0);
        if (may_ask(&s))
            ask(&s, &question, 1);
        until(w, s.failed > 0);
        ok_named(strncmp(s.why, rows[i].why, strlen(rows[i].why)) == 0, s.why);
        until(w, s.failed >= 3 || s.ready > 1);
        ok_named(s.engine.kind->is_up(s.engine.bank) == (s.failed < 3),
                 "after three times it is away");
        net_listener_free(&listener);
        net_abort(&liar.connection);
        disk_close_file(disk, lock);
        s.ready = 0;
        until(w, s.ready > 0);
        is_string(place(&s), "slice 0", "its lock is free: the other one is the bank");
        slice_end(&s);
    }
}

/* The file says what no slice is. */
static void
test_file(struct world *w)
{
    static const char *const lines[] = {"", "\n", "0000-1023\n", "0256-0511 \n", "x"};
    for (size_t i = 0; i < sizeof(lines) / sizeof(*lines); i++) {
        (void)!disk_unlink(disk, "lock/bank");
        int lock = disk_lock(disk, "lock/bank", 0, 1);
        struct slice s;
        if (disk_write_at(disk, lock, 0, text_from(lines[i])) < 0)
            abort();
        slice_start(w, &s, 3, LONG_MS);
        until(w, s.failed > 0);
        is_string(s.why, "no slice has the bank yet", lines[i]);
        disk_close_file(disk, lock);
        until(w, s.ready > 0);
        slice_end(&s);
    }
}

/* --- Clients that are no slices ---------------------------------------------------- */

static int
visit(unsigned slice)
{
    struct sockaddr_un name = {.sun_family = AF_UNIX};
    int fd = socket(AF_UNIX, SOCK_STREAM, 0);
    snprintf(name.sun_path, sizeof(name.sun_path), "%s/lock/bank.sock.%s", folder,
             slice == 1 ? "0256-0511" : "0512-0767");
    if (connect(fd, (struct sockaddr *)&name, sizeof(name)) < 0)
        abort();
    return fd;
}

/* The bytes that come for these: as many as there are, or the end. */
static const char *
said(struct world *w, int fd, const void *bytes, size_t size)
{
    static char out[500];
    if (send(fd, bytes, size, MSG_NOSIGNAL) < 0)
        return "(reset)";
    until(w, is_readable(fd));
    return raw_read(fd, out, sizeof(out));
}

static bool
is_greeted(struct world *w, int fd)
{
    const struct group_frame frame = {GROUP_FRAME_FORM, 0};
    return memcmp(said(w, fd, &frame, sizeof(frame)), &frame, sizeof(frame)) == 0;
}

static void
test_pieces(struct world *w)
{
    const struct group_frame frame = {GROUP_FRAME_FORM, 1};
    char bytes[sizeof(frame) + sizeof(question)];
    int fd = visit(1);
    memcpy(bytes, &frame, sizeof(frame));
    memcpy(bytes + sizeof(frame), &question, sizeof(question));
    for (size_t i = 0; i + 1 < sizeof(bytes); i++) {
        (void)!send(fd, &bytes[i], 1, MSG_NOSIGNAL);
        loop_turn(w->loop, 1);
    }
    ok_named(!is_readable(fd), "a question that is not whole");
    ok_named(memcmp(said(w, fd, &bytes[sizeof(bytes) - 1], 1), &frame, sizeof(frame)) == 0, "the last byte of it");
    close(fd);
}

static void
test_odd_clients(struct world *w)
{
    static const char *const texts[] = {"\n", "EHLO x\r\n", "{\"ask\":[]}\n" /* version 1 */};
    struct {
        struct group_frame frame;
        struct group_ask ask;
    } frames[] = {{{GROUP_FRAME_FORM + 1, 0}, question},
                  {{GROUP_FRAME_FORM, GROUP_ASK_MAX + 1}, question},
                  {{GROUP_FRAME_FORM, UINT64_MAX}, question},
                  {{GROUP_FRAME_FORM, 1}, question}};
    frames[3].ask.question.chance = -1;
    for (size_t i = 0; i < 3; i++) {
        int fd = visit(1);
        ok_named(said(w, fd, texts[i], strlen(texts[i]))[0] == '(', texts[i]);
        close(fd);
    }
    for (size_t i = 0; i < 4; i++) {
        int fd = visit(1);
        ok_named(said(w, fd, &frames[i], sizeof(frames[i]))[0] == '(', "an odd frame");
        close(fd);
    }
    int fd = visit(2);
    until(w, is_readable(fd));
    char out[10];
    ok_named(raw_read(fd, out, sizeof(out))[0] == '(', "a slice without the bank hangs up");
    close(fd);
}

static void
test_deaf_client(struct world *w)
{
    const struct group_frame frame = {GROUP_FRAME_FORM, 0};
    int fd = visit(1);
    bool gone = false;
    for (int i = 0; i < 1000000 && !gone; i++) {
        ssize_t sent = send(fd, &frame, sizeof(frame), MSG_DONTWAIT | MSG_NOSIGNAL);
        gone = sent < 0 && errno != EAGAIN;
        if (sent < 0)
            loop_turn(w->loop, 1);
    }
    ok_named(gone, "a client that does not read is cut off");
    close(fd);
}

static void
test_crowd(struct world *w)
{
    enum { MORE = 5 };
    struct rlimit limit = {4096, 4096};
    static int fds[LEAD_VISITORS_MAX + MORE];
    int ends = 0;
    if (setrlimit(RLIMIT_NOFILE, &limit) < 0)
        return;
    for (int i = 0; i < LEAD_VISITORS_MAX + MORE; i++) {
        fds[i] = visit(1);
        loop_turn(w->loop, 0);
    }
    for (int i = 0; i < 10; i++)
        loop_turn(w->loop, 1);
    for (int i = 0; i < LEAD_VISITORS_MAX + MORE; i++)
        ends += is_readable(fds[i]);
    is_number(ends, MORE, "a crowd has its limit");
    ok_named(is_greeted(w, fds[0]), "and who was there is answered");
    for (int i = 0; i < LEAD_VISITORS_MAX + MORE; i++)
        close(fds[i]);
}

static void
test_clients(struct world *w)
{
    struct slice one, two;
    struct stat status;
    char path[120];
    slice_start(w, &one, 1, LONG_MS);
    until(w, may_ask(&one));
    slice_start(w, &two, 2, LONG_MS);
    snprintf(path, sizeof(path), "%s/lock/bank.sock.0256-0511", folder);
    ok_named(stat(path, &status) == 0 && (status.st_mode & 07777) == 0600, "mode 0600");
    test_pieces(w);
    test_odd_clients(w);
    test_deaf_client(w);
    slice_end(&two);
    until(w, net_connections(w->net) == 0);
    is_number(net_connections(w->net), 0, "who goes is forgotten");
    test_crowd(w);
    int fd = visit(1);
    loop_turn(w->loop, 1);
    slice_end(&one);
    until(w, is_readable(fd));
    char out[10];
    ok_named(raw_read(fd, out, sizeof(out))[0] == '(', "at its end it hangs up");
    close(fd);
    ok_named(access(path, F_OK) < 0, "and takes its socket away");
}

static void
test_path(struct world *w)
{
    char error[200], far[150];
    memset(far, 'x', sizeof(far) - 1);
    far[sizeof(far) - 1] = '\0';
    struct group_lead_setup setup = {.loop = w->loop, .net = w->net, .spool = far, .slices = SLICES};
    ok_named(group_lead_new(&setup, error, sizeof(error)).kind == NULL && strstr(error, "is longer than") != NULL, "a path that is too long");
}

int
main(void)
{
    struct world *w = start(NULL);
    char lock[80];
    folder_make(folder, sizeof(folder), "lead");
    snprintf(lock, sizeof(lock), "%s/lock", folder);
    mkdir(lock, 0700);
    if (disk_open(&disk, folder, false) < 0)
        abort();
    log_ = log_new(NULL, LOG_STYLE_PETREL, LOG_LEVEL_ERROR);
    test_two(w);
    test_liar(w);
    test_file(w);
    test_clients(w);
    test_path(w);
    loop_turn(w->loop, 0);
    disk_close(&disk);
    log_free(&log_);
    net_finish(w);
    folder_remove(folder);
    return done();
}
