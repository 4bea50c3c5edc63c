/* link: t/sim/dns.c */
/* link: t/sim/clock.c */
/* link: t/sim/delivery_world.c */
/* Deliveries on random walks over real sockets: hosts that refuse, break TLS, hang up
 * at any moment, with messages of all kinds over kept connections, reloads, and ends.
 * Nobody gets two verdicts (the manager's stand-in sees to it), no content is damaged,
 * no host hears another one's password, and no line of the log shows one. */
#include "base/crypto/base64.h"
#include "sched/route/target.h"
#include "t/sim/delivery_world.h"
#include "t/support/tls_world.h"

enum { WALKS = 12, MAILS = 6, SESSIONS = 6, TURNS = 400, LINES = 12000 };

static struct secrets secrets;
static uint64_t seed;
static const char header[] = "Subject: x\r\n\r\n",
                  line[] = "gr\xc3\xbc\xc3\x9f\r\n.dot\r\n";
static const char passwords[] = "127.0.0.2 joe joes-Zw9xQ\n127.0.0.3 ann anns-Zw9xQ\n";
static char joes[64], anns[64];      /* what they say */
static struct buffer raw, converted; /* the content, as hosts get it */
static struct {
    unsigned sent, converted, raw, cut, secured, logged_in, reloaded, freed;
} seen;

static unsigned
chance(unsigned below)
{
    seed = seed * UINT64_C(6364136223846793005) + 1442695040888963407;
    return (unsigned)((seed >> 33) % below);
}

static void
set_content(size_t lines)
{
    size_t at = (size_t)snprintf(spool.content, CONTENT_MAX, "%s", header);
    for (size_t i = 0; i < lines; i++, at += sizeof(line) - 1)
        memcpy(spool.content + at, line, sizeof(line) - 1);
    spool.length = at;
}

/* The input of a host that takes 8-bit content, and of one that does not. */
static void
learn(struct buffer *to, bool eight_bit, size_t lines)
{
    static const struct host_rule seven_bit[] = {
        {"EHLO", "250-host\r\n250 PIPELINING\r\n", 0, 0},
        {NULL,   NULL,                             0, 0}
    };
    struct bed b;
    bed_start(&b);
    set_content(lines);
    b.a.rules = eight_bit ? NULL : seven_bit;
    add_mail(&b, "u@x.test");
    b.manager.envelopes[0]->eight_bit = true;
    run(&b, "x.test");
    buffer_init(to, HOST_BYTES_MAX);
    host_must(buffer_add(to, buffer_text(&b.a.content)));
    bed_stop(&b);
}

/* Every message that the host has heard, be it a part, is one of the two. */
static void
check_content(const struct host *h)
{
    static const char start[] = "Received: x\r\n";
    struct text left = buffer_text(&h->content);
    while (left.length > 0) {
        const char *next =
            memmem(left.at + 1, left.length - 1, start, sizeof(start) - 1);
        struct text one =
            text_before(left, next ? (size_t)(next - left.at) : left.length);
        bool is_raw = text_starts(buffer_text(&raw), one);
        bool is_converted = text_starts(buffer_text(&converted), one);
        if (!is_raw && !is_converted)
            printf("# damaged: '%.*s'\n", TEXT_ARGS(text_before(one, 300)));
        host_must(is_raw || is_converted);
        seen.raw += one.length == raw.length;
        seen.converted += one.length == converted.length && !is_raw;
        seen.cut += one.length < converted.length && one.length < raw.length;
        left = text_after(left, one.length);
    }
}

static const char *
one_of(const char *const *list, unsigned count)
{
    return list[chance(count)];
}

/* A host's manners, anew for some connections. */
static void
make_rules(struct host_rule rules[HOST_RULES], bool is_joes)
{
    static const char *const ehlo[] = {
        "250-host\r\n250-PIPELINING\r\n250-AUTH PLAIN\r\n250 STARTTLS\r\n",
        "250-host\r\n250-PIPELINING\r\n250-8BITMIME\r\n250 STARTTLS\r\n",
        "250-host\r\n250-PIPELINING\r\n250-AUTH PLAIN LOGIN\r\n250-SIZE 0\r\n250 "
        "LIMITS RCPTMAX=2 "
        "MAILMAX=2\r\n",
        "250-host\r\n250-AUTH PLAIN\r\n250 SIZE 100\r\n",
        "250 host\r\n",
        "421 no\r\n"};
    static const char *const refusals[] = {"550 5.1.1 no\r\n", "451 4.3.0 later\r\n",
                                           "421 4.3.2 bye\r\n", "junk\r\n", NULL};
    const char *const answers[] = {
        "235 2.7.0 welcome\r\n",
        "235 2.7.0 welcome\r\n",
        is_joes ? "535 5.7.8 what is joes-Zw9xQ?\r\n" : "535 5.7.8 anns-Zw9xQ\r\n",
        is_joes ? "421 4.7.0 joes-Zw9xQ\r\n" : "421 no, anns-Zw9xQ\r\n",
        "454 4.7.0 later\r\n",
        NULL};
    static const char *const starts[] = {"MAIL", "RCPT TO:<b", "DATA",
                                         ".",    "RSET",       "RCPT"};
    struct host_rule *r = rules;
    for (unsigned i = 0; i < 3; i++) {
        unsigned from = chance(4);
        *r++ = (struct host_rule){"EHLO", one_of(ehlo, 6), from, from + 1 + chance(3)};
    }
    *r++ = (struct host_rule){"EHLO", one_of(ehlo, 5), 0, 0};
    *r++ =
        (struct host_rule){"STARTTLS", chance(4) ? "220 go\r\n" : "454 no\r\n", 0, 0};
    *r++ = (struct host_rule){"AUTH", one_of(answers, chance(2) ? 2 : 6), 0, 0};
    for (unsigned i = 0; i < 4; i++) {
        unsigned from = chance(5);
        *r++ = (struct host_rule){one_of(starts, 6), one_of(refusals, 5), from,
                                  from + 1 + chance(2)};
    }
    *r = (struct host_rule){0};
}

static void
add_any_mail(struct bed *b)
{
    static const char *const rcpts[] = {"a@x.test", "b@x.test a@x.test", "b@x.test",
                                        "c@x.test b@x.test a@x.test", "evil\rRSET@x"};
    add_mail(b, one_of(rcpts, chance(3) ? 4 : 5));
    struct envelope *e = b->manager.envelopes[b->manager.count - 1];
    e->eight_bit = chance(2);
    e->content_crc ^= chance(12) == 0;
}

static void
disturb(struct bed *b)
{
    struct host *h = chance(2) ? &b->a : &b->b;
    struct host_link *l = &h->links[chance(HOST_LINKS)];
    if (l->connection == NULL)
        return;
    if (chance(2))
        host_hang_up(l);
    else
        net_send(l->connection, TEXT("421 4.3.2 bye\r\n"));
}

static struct secrets *
read_passwords(void)
{
    struct buffer mistakes;
    buffer_init(&mistakes, 1000);
    struct secrets *s = secrets_new(text_from(passwords), &mistakes);
    host_must(s != NULL);
    return s;
}

/* As mta.c does it: the old ones are gone at once. */
static void
reload(struct bed *b, struct secrets **old)
{
    char error[200];
    struct secrets *fresh = read_passwords();
    b->settings.secrets = fresh;
    b->settings.tls =
        chance(2) ? tls_client_new(b->tls, bed_anchors, error, sizeof(error)) : NULL;
    delivery_reload(b->delivery, &b->settings);
    b->settings.tls = NULL;
    secrets_free(old);
    *old = fresh;
    seen.reloaded++;
}

/* True: all of it has gone, or we have ended. */
static bool
one_session(struct bed *b, unsigned calm, struct secrets **logins)
{
    unsigned before = b->manager.ended;
    delivery_open(b->delivery, place(b), &b->target, "x.test");
    for (unsigned i = 0; i < TURNS && b->manager.ended == before; i++) {
        loop_turn(b->loop, 1);
        clock_pass(5);
        host_must(spool.at_work.time_ms == 0);
        if (b->manager.hidden > 0 && chance(4) == 0)
            b->manager.hidden--;
        if (chance(calm) == 0)
            disturb(b);
        if (chance(calm) == 0)
            reload(b, logins);
        if (chance(4 * calm) == 0) {
            delivery_drain(b->delivery);
            delivery_free(&b->delivery);
            seen.freed++;
            return true;
        }
    }
    seen.secured += b->manager.tls[0] != '\0';
    return b->manager.taken == b->manager.count;
}

static void
set_target(struct bed *b)
{
    char list[200], problem[TARGET_PROBLEM_MAX];
    struct transport_params base;
    unsigned port = b->settings.smtp_port;
    if (chance(2))
        return;
    transport_params_default(&base);
    snprintf(list, sizeof(list), "smtp://joe@127.0.0.2:%u|ann@127.0.0.3:%u", port, port);
    host_must(target_parse(text_from(list), 25, &base, &b->target, problem));
}

static void
check_secrets(const struct bed *b)
{
    host_must(!has(&b->a.commands, anns) && !has(&b->b.commands, joes));
    host_must(!has(&b->lines, "Zw9xQ") && !has(&b->lines, anns) &&
              !has(&b->lines, joes));
    host_must(strstr(b->manager.trouble.text, "Zw9xQ") == NULL);
    seen.logged_in += has(&b->a.commands, joes) + has(&b->b.commands, anns);
}

static void
walk(uint64_t number)
{
    struct bed b;
    struct host_rule a[HOST_RULES], z[HOST_RULES];
    seed = number;
    bed_start(&b);
    struct secrets *logins = read_passwords();
    struct tls_server *server = chance(4) ? server_of(&secrets, "good") : NULL;
    set_content(LINES);
    make_rules(a, true);
    make_rules(z, false);
    b.a.rules = a;
    b.b.rules = z;
    b.a.tls = b.b.tls = server;
    b.a.tls_breaks = b.b.tls_breaks = server == NULL;
    set_target(&b);
    b.settings.secrets = logins;
    b.target.tls = (enum target_tls)chance(3);
    b.target.timeout_scale = 0.01;
    b.settings.reuse_idle_ms = chance(2) ? 1 : 100;
    delivery_reload(b.delivery, &b.settings);
    for (unsigned i = 0; i < MAILS; i++)
        add_any_mail(&b);
    b.manager.hidden = chance(MAILS);
    unsigned calm = chance(2) ? 1000 : 20;
    for (unsigned i = 0; i < SESSIONS && !one_session(&b, calm, &logins); i++)
        continue;
    check_content(&b.a);
    check_content(&b.b);
    check_secrets(&b);
    for (size_t i = 0; b.manager.verdicts.length > 0 && i < b.manager.verdicts.length;
         i++)
        seen.sent += text_starts(text_after(buffer_text(&b.manager.verdicts), i),
                                 TEXT(" sent "));
    bed_stop(&b);
    tls_server_free(&server);
    secrets_free(&logins);
}

static void
encode(char to[64], struct text said)
{
    struct buffer b;
    buffer_init(&b, 63);
    host_must(base64_encode(said, &b));
    text_copy(to, 64, buffer_text(&b));
    buffer_free(&b);
}

int
main(int count, char **arguments)
{
    uint64_t from = count > 1 ? strtoull(arguments[1], NULL, 10) : 1;
    uint64_t walks = count > 2 ? strtoull(arguments[2], NULL, 10) : WALKS;
    setvbuf(stdout, NULL, _IOLBF, BUFSIZ);
    spool.content = memory_new(CONTENT_MAX);
    encode(joes, TEXT("\0joe\0joes-Zw9xQ"));
    encode(anns, TEXT("\0ann\0anns-Zw9xQ"));
    make_secrets(&secrets);
    learn(&raw, true, LINES);
    learn(&converted, false, LINES);
    ok_named(!text_equal(buffer_text(&raw), buffer_text(&converted)), "two forms");
    for (uint64_t i = from; i < from + walks; i++) {
        if (count > 1)
            printf("# %" PRIu64 "\n", i);
        walk(i);
    }
    printf("# sent %u, raw %u, converted %u, cut %u, secured %u, logged in %u, "
           "reloaded %u, "
           "freed %u\n",
           seen.sent, seen.raw, seen.converted, seen.cut, seen.secured, seen.logged_in,
           seen.reloaded, seen.freed);
    ok_named(seen.sent > 0 && seen.raw > 0, "all was walked through");
    buffer_free(&raw);
    buffer_free(&converted);
    drop_secrets(&secrets);
    free(spool.content);
    return done();
}
