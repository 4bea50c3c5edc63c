/* smtp/session and its parts, by chance: clients of every kind say anything, cut
 * anywhere, under settings that change, until the end comes in one of three ways. Not
 * about single answers but about properties that always hold.
 *
 * Arguments: how many walks, the first seed. */
/* link: t/sim/loop.c */
/* link: t/sim/disk.c */
/* link: t/sim/disk_world.c */
#include "queue/queue_operator.h"
#include "smtp/session/session.h"

#include "t/support/listener_world.h"
#include "t/support/sasl_kit.h"
#include "t/sim/sim.h"
#include "t/sim/sim_disk.h"

#include <poll.h>

enum {
    WALKS = 14,
    STEPS = 500,
    PEERS = 10,
    DESCRIPTORS = 200,
    ACKED_MAX = 2000,
    TALKERS_MAX = 1000,
    GRACE_MS = 30000,
    SILENCE_MS = 2 * 3600 * 1000
};

/* How an address listens, and what that means. */
static const struct kind {
    const char *options;
    bool proxy, tls, required, legacy;
    bool promises; /* a reload without TLS or users is refused */
} kinds[] = {
    {"",                                    false, false, false, false, false},
    {"?proxy",                              true,  false, false, false, false},
    {"?proxy&lmtp",                         true,  false, false, false, false},
    {"?proxy&profile=legacy",               true,  false, false, true,  false},
    {"?proxy",                              true,  false, false, false, false},
    {"?tls",                                false, true,  false, false, true },
    {"?proxy&tls",                          true,  true,  false, false, true },
    {"?proxy&auth=required",                true,  false, true,  false, true },
    {"?proxy&profile=legacy&auth=required", true,  false, true,  true,  true },
};
enum { KINDS = sizeof(kinds) / sizeof(kinds[0]), QUIET_KINDS = 5 };

struct peer {
    struct walk *walk;
    struct net_connection *connection; /* NULL: nobody */
    const struct kind *kind;
    unsigned number;
    bool relays;  /* by its address */
    bool over;    /* only leaving is left */
    bool patient; /* says nothing before it is answered */
    bool sure;    /* does what it has begun */
    bool deaf;
    bool calling; /* TLS was begun */
    bool secured;
    bool spoken; /* since */
    bool fresh;  /* secured by STARTTLS, and nothing said since */
    bool user;
    struct buffer pending, heard;
};

struct walk {
    struct world w;
    struct net *net; /* of the clients */
    uint64_t random;
    bool promises;
    struct peer peers[PEERS];
    unsigned numbers;
    bool may[TALKERS_MAX]; /* by number: relay, perhaps */
    char acked[ACKED_MAX][32];
    size_t acked_count, stored_count, found_count;
    unsigned drained;
    char why[200]; /* what was wrong first */
};

static char directory[] = "/tmp/petrel-walk-XXXXXX";
static char certificate[100], key[100], users_path[100], others_path[100];

static uint64_t
chance(struct walk *k)
{
    uint64_t mixed = k->random += UINT64_C(0x9e3779b97f4a7c15);
    mixed = (mixed ^ mixed >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
    mixed = (mixed ^ mixed >> 27) * UINT64_C(0x94d049bb133111eb);
    return mixed ^ mixed >> 31;
}

static unsigned
below(struct walk *k, unsigned end)
{
    return (unsigned)(chance(k) % end);
}

static bool
once_in(struct walk *k, unsigned times)
{
    return below(k, times) == 0;
}

static void
expect(struct walk *k, bool good, const char *what, const struct peer *p,
       struct text line)
{
    if (!good && k->why[0] == '\0')
        snprintf(k->why, sizeof(k->why), "%s: client %u at '%s', '%.*s'", what,
                 p == NULL ? 0 : p->number, p == NULL ? "" : p->kind->options,
                 (int)(line.length < 80 ? line.length : 80), line.at);
}

/* --- Time ------------------------------------------------------------------------- */

static void
tell_ready(struct walk *k)
{
    static struct pollfd all[DESCRIPTORS];
    for (int fd = 0; fd < DESCRIPTORS; fd++)
        all[fd] = (struct pollfd){.fd = fd < 3 ? -1 : fd, .events = POLLIN | POLLOUT};
    (void)poll(all, DESCRIPTORS, 0);
    for (int fd = 3; fd < DESCRIPTORS; fd++) {
        short seen = all[fd].revents;
        if ((seen & POLLNVAL) == 0 && seen != 0)
            sim_loop_ready(k->w.loop, fd,
                           (seen & ~POLLOUT ? LOOP_READ : 0) |
                               (seen & (POLLOUT | POLLERR) ? LOOP_WRITE : 0));
    }
}

static void
settle(struct walk *k)
{
    for (int i = 0; i < 4; i++) {
        tell_ready(k);
        loop_turn(k->w.loop, 0);
    }
}

static void
pass(struct walk *k, int64_t ms, int steps)
{
    for (int i = 0; i < steps; i++) {
        tell_ready(k);
        sim_loop_advance(k->w.loop, ms / steps);
    }
    settle(k);
}

/* --- Input of a client -------------------------------------------------------------- */

/* AUTH in clear is for old devices, and for a Unix socket without a proxy. */
static bool
may_auth(const struct peer *p)
{
    return p->secured || p->kind->legacy || !p->kind->proxy;
}

static void
hear_queued(struct peer *p, struct text line)
{
    struct walk *k = p->walk;
    expect(k, !p->kind->required || p->user, "taken without AUTH", p, line);
    if (k->acked_count < ACKED_MAX)
        text_copy(k->acked[k->acked_count++], sizeof(k->acked[0]),
                  text_after(line, sizeof("250 2.0.0 Ok: queued as ") - 1));
}

static struct tls_client *client;

/* Commands that were not sent yet are not sent in TLS either. */
static void
call_tls(struct peer *p)
{
    struct net_tls tls = {
        .client = client, .options = {.level = TLS_LEVEL_NONE, .host = TEXT("mx.example.org")}
    };
    if (!p->sure && once_in(p->walk, 10)) /* it never begins */
        return;
    p->calling = true;
    p->patient = false;
    buffer_clear(&p->pending);
    buffer_clear(&p->heard);
    net_start_tls(p->connection, &tls);
}

static void
hear_line(struct peer *p, struct text line)
{
    struct walk *k = p->walk;
    bool sized = line.length <= 510 || text_starts(line, TEXT("334 "));
    expect(k, line.length >= 4 && sized, "no reply", p, line);
    expect(k, text_is_ascii(line) && !text_has_control(line), "odd bytes", p, line);
    expect(k, line.at[0] >= '2' && line.at[0] <= '5', "no code", p, line);
    bool goodbye = text_starts(line, TEXT("421 "));
    expect(k, !p->fresh || goodbye, "an answer to clear text", p, line);
    if (text_starts(line, TEXT("250-AUTH")) || text_starts(line, TEXT("235 ")))
        expect(k, may_auth(p), "AUTH in clear", p, line);
    if (text_starts(line, TEXT("235 ")))
        p->user = true;
    if (text_starts(line, TEXT("250 2.0.0 Ok: queued as ")))
        hear_queued(p, line);
    p->patient = false;
}

/* True: TLS may begin. */
static bool
take_in(struct peer *p, struct text input)
{
    struct text rest, line;
    bool invited = false;
    if (!buffer_add(&p->heard, input)) {
        expect(p->walk, false, "too much", p, TEXT(""));
        buffer_clear(&p->heard);
    }
    rest = buffer_text(&p->heard);
    for (size_t at; (at = text_find(rest, '\n')) != TEXT_NONE;) {
        line = text_before(rest, at);
        expect(p->walk, line.length > 0 && line.at[line.length - 1] == '\r',
               "a bare LF", p, line);
        rest = text_after(rest, at + 1);
        if (line.length == 0)
            continue;
        line.length--;
        hear_line(p, line);
        invited = invited || text_starts(line, TEXT("220 2.0.0 go ahead"));
    }
    buffer_take(&p->heard, p->heard.length - rest.length);
    return invited && !p->calling;
}

static void
on_event(void *context, enum net_event event)
{
    struct peer *p = context;
    struct text input = net_input(p->connection);
    bool invited;
    switch (event) {
    case NET_INPUT:
        invited = take_in(p, input);
        net_consume(p->connection, input.length);
        if (invited)
            call_tls(p);
        break;
    case NET_SECURED:
        p->secured = true;
        p->user = false;
        p->fresh = !p->kind->tls && !p->spoken;
        break;
    case NET_ENDED:
        p->over = true;
        break;
    case NET_FAILED:
        p->over = true;
        if (p->calling && !p->kind->tls)
            expect(p->walk, strstr(net_error(p->connection), "does not speak TLS") == NULL,
                   "clear text where TLS was promised", p,
                   text_from(net_error(p->connection)));
        break;
    case NET_CONNECTED:
    case NET_DRAINED:
    case NET_TIMED_OUT:
        break;
    }
}

/* --- Output of a client ------------------------------------------------------------- */

/* # is the client's number, ~ NUL. */
static const char *const sayings[] = {
    "EHLO c#.example\r\n",
    "EHLO c#.example\r\n",
    "EHLO c#.example\r\n",
    "HELO c#.example\r\n",
    "LHLO c#.example\r\n",
    "MAIL FROM:<p#@b.example> SIZE=100\r\n",
    "MAIL FROM:<p#@b.example> BODY=BINARYMIME SMTPUTF8\r\n",
    "MAIL FROM:<>\r\n",
    "RCPT TO:<u@example.org>\r\n",
    "RCPT TO:<v@example.org>\r\n",
    "RCPT TO:<u@elsewhere.example>\r\n",
    "RCPT TO:<u@refused.example>\r\n",
    "DATA\r\n",
    "Subject: x\r\n\r\nbody\r\n..dot\r\n.\r\n",
    ".\r\n",
    "EHLO c#.example\r\nMAIL FROM:<p#@b.example>\r\nRCPT TO:<u@example.org>\r\nDATA\r\n"
    "Subject: x\r\n\r\nbody\r\n.\r\n",
    "EHLO c#.example\r\nMAIL FROM:<p#@b.example>\r\nRCPT TO:<u@elsewhere.example>\r\n"
    "DATA\r\nSubject: x\r\n\r\nbody\r\n.\r\n",
    "LHLO c#.example\r\nMAIL FROM:<p#@b.example>\r\nRCPT TO:<u@example.org>\r\n"
    "RCPT TO:<v@example.org>\r\nBDAT 8 LAST\r\nbody\r\n\r\n",
    "MAIL FROM:<p#@b.example>\r\nRCPT TO:<u@example.org>\r\nBDAT 6\r\nA: b\r\n"
    "BDAT 6 LAST\r\nbody\r\n",
    "BDAT 6\r\nNOOP\r\n",
    "BDAT 0 LAST\r\n",
    "BDAT 20000\r\nNOOP\r\n",
    "BDAT x\r\n",
    "RSET\r\n",
    "NOOP\r\n",
    "VRFY u\r\n",
    "ETRN node.example\r\n",
    "HELP\r\n",
    "XXXX\r\nXXXX\r\nXXXX\r\n",
    "NOOP\n",
    "\r\n",
    "NO~P\r\n",
    "QUIT\r\n",
    "STARTTLS now\r\n",
    "\x16\x03\x01 no TLS",
    "AUTH PLAIN AHVzZXIAcGVuY2lt\r\n",
    "AUTH PLAIN AHVzZXIAcGVuY2lt\r\nNOOP\r\n",
    "AUTH LOGIN\r\ndXNlcg==\r\ncGVuY2lt\r\n",
    "AUTH SCRAM-SHA-256 biwsbj11c2VyLHI9ck9wck5HZndFYmVSV2diTkVrcU8=\r\n",
    "AUTH PLAIN\r\n*\r\n",
    "AUTH PLAIN ===\r\n",
    "AUTH CRAM-MD5\r\n",
};

/* With the right password. */
#define RELAYED                                                                        \
    "AUTH PLAIN AHVzZXIAcGVuY2ls\r\nMAIL FROM:<p#@b.example>\r\n"                      \
    "RCPT TO:<u@elsewhere.example>\r\nDATA\r\nx\r\n.\r\n"
static const char *const passwords[] = {
    "AUTH PLAIN AHVzZXIAcGVuY2ls\r\n",
    RELAYED,
    "AUTH LOGIN dXNlcg==\r\ncGVuY2ls\r\n",
};

static void
want_to_say(struct peer *p, const char *saying)
{
    bool fits = true, bare = p->kind->legacy && once_in(p->walk, 2);
    for (const char *c = saying; *c != '\0' && fits; c++)
        if (*c == '#')
            fits = buffer_format(&p->pending, "%u", p->number);
        else if (*c != '\r' || !bare)
            fits = buffer_add_byte(&p->pending, *c == '~' ? '\0' : *c);
    expect(p->walk, fits, "too much to say", p, TEXT(""));
}

static void
utter(struct peer *p, size_t most)
{
    struct text some = text_before(buffer_text(&p->pending), most);
    if (some.length == 0 || p->over || p->connection == NULL)
        return;
    net_send(p->connection, some);
    buffer_take(&p->pending, some.length);
    p->spoken = p->spoken || p->calling;
    p->fresh = false;
}

/* Most wait for the answer; some say more, which nobody may take for theirs later. */
static void
ask_tls(struct peer *p)
{
    want_to_say(p, "EHLO c#.example\r\nSTARTTLS\r\n");
    if (once_in(p->walk, 3))
        want_to_say(p, "NOOP\r\nMAIL FROM:<evil@b.example>\r\nNOOP");
    utter(p, SIZE_MAX);
    p->patient = !once_in(p->walk, 8);
}

/* Takes or leaves what comes. */
static void
turn_ear(struct peer *p)
{
    if (p->over || (p->calling && !p->secured))
        return;
    p->deaf = !p->deaf;
    net_want_input(p->connection, !p->deaf);
}

/* More than its socket takes of replies that it does not read; then AUTH. */
static void
flood(struct peer *p)
{
    if (!p->deaf && !p->calling)
        turn_ear(p);
    for (int i = 0; i < 9000; i++)
        want_to_say(p, i % 50 == 0 ? "AUTH PLAIN AHVzZXIAcGVuY2lt\r\n" : "HELP\r\n");
}

static void
talk(struct peer *p)
{
    struct walk *k = p->walk;
    unsigned count = sizeof(sayings) / sizeof(sayings[0]);
    if (p->over || p->patient || p->connection == NULL || p->pending.length > 60000)
        return;
    if (p->pending.length > 0 && once_in(k, 2)) {
        utter(p, once_in(k, 2) ? SIZE_MAX : 1 + below(k, 40));
    } else if (!p->calling && once_in(k, 8)) {
        ask_tls(p);
    } else if (once_in(k, 10)) {
        k->may[p->number] = true;
        want_to_say(p, passwords[below(k, sizeof(passwords) / sizeof(passwords[0]))]);
    } else if (once_in(k, 40)) {
        flood(p);
    } else {
        want_to_say(p, sayings[below(k, count)]);
    }
}

/* --- Coming and going ---------------------------------------------------------------
 */

static void
be_announced(struct peer *p)
{
    static const char *const strangers[] = {
        "PROXY TCP4 192.0.2.1 198.51.100.1 40000 25\r\n",
        "PROXY TCP4 192.0.2.2 198.51.100.1 40000 25\r\n",
        "PROXY TCP6 2001:db8::7 2001:db8::1 40000 25\r\n",
        "PROXY UNKNOWN\r\n",
    };
    struct walk *k = p->walk;
    p->relays = once_in(k, 4);
    if (p->relays)
        want_to_say(p, "PROXY TCP4 10.0.0.7 198.51.100.1 40000 25\r\n");
    else
        want_to_say(p, strangers[below(k, 4)]);
    if (once_in(k, 20)) {
        buffer_clear(&p->pending);
        want_to_say(p, once_in(k, 2) ? "PROXY nobody\r\n" : "PROXY TC");
    }
    utter(p, SIZE_MAX);
}

static void
come(struct walk *k, struct peer *p)
{
    unsigned number = below(k, k->promises ? KINDS : QUIET_KINDS);
    struct net_address at = {.family = NET_UNIX};
    if (k->numbers + 1 == TALKERS_MAX)
        return;
    *p = (struct peer){.walk = k, .kind = &kinds[number], .number = ++k->numbers};
    buffer_init(&p->pending, 1 << 20);
    buffer_init(&p->heard, 1 << 20);
    snprintf(at.path, sizeof(at.path), "%s/%u", k->w.spool, number);
    p->relays = !p->kind->proxy;
    p->connection = net_connect(k->net, &at, NULL, on_event, p);
    if (p->kind->proxy)
        be_announced(p);
    k->may[p->number] = p->relays;
    if (p->kind->tls && !once_in(k, 10))
        call_tls(p);
}

static void
go(struct peer *p, bool politely)
{
    if (p->connection == NULL)
        return;
    if (politely)
        net_close(&p->connection);
    else
        net_abort(&p->connection);
    buffer_free(&p->pending);
    buffer_free(&p->heard);
}

/* --- The server ---------------------------------------------------------------------
 */

/* The files are read from the disk's stand-in. */
static void
copy_in(const char *path)
{
    struct disk *disk;
    char bytes[8192];
    FILE *from = fopen(path, "r");
    size_t got = from == NULL ? 0 : fread(bytes, 1, sizeof(bytes), from);
    dialog_must(got > 0 && fclose(from) == 0, path);
    dialog_must(disk_open(&disk, directory, true) == 0, "no directory");
    int file = disk_create(disk, path, 0600);
    dialog_must(file >= 0 && disk_write(disk, file, text_of(bytes, got)) == 0, path);
    disk_close_file(disk, file);
    disk_close(&disk);
}

static void
choose_settings(struct walk *k)
{
    static const int64_t delays[] = {0, 1000, 30000};
    struct listener_settings *s = &k->w.settings;
    bool tls = k->promises || !once_in(k, 4), auth = k->promises || !once_in(k, 4);
    s->tls_certificate = tls ? text_from(certificate) : TEXT("");
    s->tls_key = tls ? text_from(key) : TEXT("");
    s->auth_users = text_from(!auth ? "" : once_in(k, 4) ? others_path : users_path);
    s->relay_from = TEXT("10.0.0.0/8");
    s->sender_login = once_in(k, 5) ? TEXT("user user@example.org") : TEXT("");
    s->auth_failure_limit = (int)below(k, 4);
    s->server_tls_session_limit = (int)below(k, 4);
    s->message_size_limit = once_in(k, 3) ? 20 : 100000;
    s->recipient_limit = once_in(k, 3) ? 1 : 100;
    s->clients.sessions = once_in(k, 5) ? 3 : 50;
    s->clients.sessions_per_client = once_in(k, 5) ? 1 : 50;
    s->clients.each[CLIENT_USAGE_MESSAGE] = once_in(k, 4) ? TEXT("2/m") : TEXT("");
    s->check_helo = s->check_sender = once_in(k, 4);
    s->greet_delay_ms = once_in(k, 4) ? 2000 : 0;
    s->error_limit = once_in(k, 2) ? 4 : 20;
    s->soft_error_limit = (int)below(k, 4);
    s->error_delay_ms = delays[below(k, 3)];
    s->junk_limit = once_in(k, 3) ? 2 : 100;
    s->data_rate_min = once_in(k, 2) ? 0 : 100;
    s->idle_timeout_ms = once_in(k, 5) ? 3000 : 300000;
    s->handshake_timeout_ms = once_in(k, 5) ? 1000 : 20000;
    s->data_timeout_ms = once_in(k, 5) ? 2000 : 180000;
    s->etrn = once_in(k, 2) ? TEXT(".example") : TEXT("off");
}

static void
reload(struct walk *k)
{
    choose_settings(k);
    listener_reload(k->w.listener, k->w.routes, &k->w.settings);
    if (memmem(k->w.lines.at, k->w.lines.length, "old settings stay", 17) != NULL)
        expect(k, false, "a reload was refused", NULL, TEXT(""));
}

static void
start(struct walk *k, uint64_t seed)
{
    static const struct server_rules plain = {
        .size_limit = 100000, .recipient_limit = 100, .hop_limit = 50};
    static char listen[2000];
    size_t length = 0;
    *k = (struct walk){.random = seed, .promises = seed % 2 != 0};
    sim_disk_reset();
    copy_in(certificate);
    copy_in(key);
    copy_in(users_path);
    copy_in(others_path);
    sim_disk_set_syncing(DISK_SYNC_AIO, once_in(k, 2) ? 0 : 50);
    listener_world_start(&k->w, &plain, false, false);
    k->net = net_new(k->w.loop);
    for (unsigned i = 0; i < (k->promises ? KINDS : QUIET_KINDS); i++)
        length += (size_t)snprintf(listen + length, sizeof(listen) - length,
                                   "unix:%s/%u%s ", k->w.spool, i, kinds[i].options);
    listener_free(&k->w.listener);
    loop_turn(k->w.loop, 0);
    k->w.settings.listen = text_from(listen);
    choose_settings(k);
    k->w.listener =
        listener_new(k->w.loop, k->w.net, k->w.events, k->w.manager, k->w.routes,
                     &k->w.settings, k->w.error, sizeof(k->w.error));
    dialog_must(k->w.listener != NULL, k->w.error);
    listener_on_flush(k->w.listener, dialog_flush, &k->w);
}

/* --- The walk ------------------------------------------------------------------------
 */

static void
step(struct walk *k)
{
    static const int64_t waits[] = {1, 20, 300, 1500, 5000, 31000, 200000};
    struct peer *p = &k->peers[below(k, PEERS)];
    if (p->connection == NULL)
        come(k, p);
    else if (p->over || once_in(k, 60))
        go(p, once_in(k, 2));
    else if (once_in(k, 30))
        turn_ear(p);
    else
        talk(p);
    if (once_in(k, 60))
        reload(k);
    if (once_in(k, 6))
        pass(k, waits[below(k, 2 + below(k, 6))], 1);
    tell_ready(k);
    loop_turn(k->w.loop, 0);
}

static void
on_walk_drained(void *context)
{
    struct walk *k = context;
    k->drained++;
}

static void
drain(struct walk *k)
{
    listener_drain(k->w.listener, GRACE_MS, on_walk_drained, k);
    pass(k, GRACE_MS + 1000, 10);
    expect(k, k->drained == 1, "not drained once", NULL, TEXT(""));
    expect(k, listener_sessions(k->w.listener) == 0, "a session is left", NULL,
           TEXT(""));
}

/* A silent client is gone in the end, and so are its counts. */
static void
fall_silent(struct walk *k)
{
    struct peer *p = &k->peers[0];
    pass(k, SILENCE_MS, 300);
    expect(k, listener_sessions(k->w.listener) == 0, "a session outlives silence", NULL,
           TEXT(""));
    expect(k, net_connections(k->w.net) == 0, "a connection outlives silence", NULL,
           TEXT(""));
    k->w.settings.server_tls_session_limit = k->w.settings.clients.sessions = 1;
    k->w.settings.clients.sessions_per_client = 1;
    k->w.settings.tls_certificate = text_from(certificate);
    k->w.settings.tls_key = text_from(key);
    k->w.settings.auth_failure_limit = 0;
    listener_reload(k->w.listener, k->w.routes, &k->w.settings);
    do { /* until it is one without a proxy, which can be counted on */
        go(p, false);
        settle(k);
        come(k, p);
    } while (p->kind->proxy || p->kind->tls);
    p->sure = true;
    ask_tls(p);
    settle(k);
    expect(k, p->calling, "no room for one by TLS", p, buffer_text(&p->heard));
}

static bool
find(void *context, struct id id, enum queue_place place)
{
    struct walk *k = context;
    struct envelope *e = queue_load(manager_queue(k->w.manager), id);
    char name[32];
    uint64_t number = 0;
    (void)place;
    dialog_must(e != NULL, "cannot load");
    id_format(id, name);
    k->stored_count++;
    for (size_t i = 0, found = 0; i < k->acked_count && found == 0; i++)
        if (strcmp(k->acked[i], name) == 0)
            k->found_count += found = 1;
    struct text digits = text_before(e->sender, text_find(e->sender, '@'));
    if (text_starts(digits, TEXT("p")) &&
        text_number(text_after(digits, 1), TALKERS_MAX - 1, &number) && !k->may[number])
        for (unsigned i = 0; i < e->count; i++)
            expect(k, text_ends_nocase(e->recipients[i].address, TEXT("@example.org")),
                   "relayed for a stranger", NULL, e->sender);
    envelope_free(&e);
    return true;
}

/* The acknowledged ids: LMTP says an id more than once. */
static size_t
different(struct walk *k)
{
    size_t count = 0;
    for (size_t i = 0; i < k->acked_count; i++) {
        size_t before = 0;
        while (before < i && strcmp(k->acked[before], k->acked[i]) != 0)
            before++;
        count += before == i;
    }
    return count;
}

static size_t messages, heard_queued, secured;

static void
walk(uint64_t seed)
{
    static struct walk k;
    char name[80];
    start(&k, seed);
    for (int i = 0; i < STEPS && k.why[0] == '\0'; i++)
        step(&k);
    for (size_t i = 0; i < PEERS; i++)
        secured += k.peers[i].secured;
    if (seed % 3 == 0)
        drain(&k);
    else if (seed % 3 == 1)
        fall_silent(&k);
    else
        listener_free(&k.w.listener);
    settle(&k);
    pass(&k, 1000, 2);
    if (queue_each(manager_queue(k.w.manager), find, &k) != 0)
        expect(&k, false, "cannot list", NULL, TEXT(""));
    expect(&k, k.found_count == different(&k), "an acknowledged message is lost", NULL,
           TEXT(""));
    messages += k.stored_count;
    heard_queued += different(&k);
    for (size_t i = 0; i < PEERS; i++)
        go(&k.peers[i], false);
    net_free(&k.net);
    if (k.why[0] != '\0')
        printf("# %.*s\n", TEXT_ARGS(buffer_text(&k.w.lines)));
    listener_world_end(&k.w);
    snprintf(name, sizeof(name), "walk %" PRIu64 "%s", seed,
             k.promises ? "" : " (quiet)");
    if (!ok_named(k.why[0] == '\0', name))
        printf("# %s\n", k.why);
}

static void
write_file(char path[100], const char *name, const char *content)
{
    snprintf(path, 100, "%s/%s", directory, name);
    FILE *file = fopen(path, "w");
    dialog_must(file != NULL && fputs(content, file) >= 0 && fclose(file) == 0, path);
}

static void
make_files(void)
{
    char command[600], error[TLS_ERROR_MAX];
    dialog_must(mkdtemp(directory) != NULL, "no directory");
    snprintf(certificate, sizeof(certificate), "%s/good.pem", directory);
    snprintf(key, sizeof(key), "%s/good.key", directory);
    snprintf(
        command, sizeof(command),
        "openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes "
        "-subj /CN=mx.example.org -days 30 -keyout %s -out %s 2>%s/said || "
        "cat %s/said >&2",
        key, certificate, directory, directory);
    dialog_must(system(command) == 0, "no certificate");
    write_file(users_path, "users", "user:" KIT_KEYS "\n");
    write_file(others_path, "others", "other:" KIT_KEYS "\n");
    sim_disk_reset();
    copy_in(certificate);
    struct tls *tls = tls_new(error, sizeof(error));
    client = tls_client_new(tls, certificate, error, sizeof(error));
    dialog_must(client != NULL, error);
    tls_free(&tls);
}

int
main(int count, char **arguments)
{
    char command[100];
    uint64_t walks = count > 1 ? strtoull(arguments[1], NULL, 10) : WALKS;
    uint64_t first = count > 2 ? strtoull(arguments[2], NULL, 10) : 1;
    make_files();
    for (uint64_t seed = first; seed < first + walks; seed++)
        walk(seed);
    printf("# %zu messages, %zu acknowledged; %zu by TLS at the end\n", messages,
           heard_queued, secured);
    if (walks >= WALKS)
        ok_named(heard_queued > 0 && secured > 0, "mail goes through, and TLS works");
    tls_client_free(&client);
    snprintf(command, sizeof(command), "rm -rf %s", directory);
    return system(command) != 0 || done();
}
