/* The client machine on random walks: any host, any cut, two messages at a time. Each
 * recipient gets one verdict, or none if no reply to its MAIL came; every end has an
 * outcome; nothing that TLS is demanded for is said in clear, nothing that was said
 * before TLS counts after it, and no reply brings a secret into a verdict. */
#include "smtp/client/client.h"

#include "t/support/client_walk_peer.h"

enum {
    WALKS = TAP_ADDRESS_SANITIZER ? 12000 : 40000,
    STEPS = 600,
    MAILS = 5,
    RCPTS = 4
};

static const struct reply_outcome_peer where = {"mx[192.0.2.1]", "mx[192.0.2.1]:25", 25};

struct client_transaction {
    struct envelope *envelope;
    unsigned indexes[RCPTS];
    size_t count;
    unsigned verdicts[RCPTS];
};

struct walk {
    struct peer peer;
    struct client *client;
    struct client_settings settings;
    struct client_login login;
    struct client_transaction transactions[MAILS];
    unsigned sent, done; /* of transactions: those between are in the machine */
    bool over, secure_due, preparing, converted, in_content, may_be_early;
    struct text prefix, left; /* of the content */
    unsigned step;
};

/* Counts over all walks, to prove that each of these was walked through. */
static struct {
    unsigned ready, kept, host, early, bdat, converted, delivered, secured, logged_in;
} seen;

static unsigned
chance(struct walk *w, unsigned below)
{
    return peer_chance(&w->peer, below);
}

/* --- Mail ------------------------------------------------------------------------- */

static const char content[] =
    "Subject: x\r\n\r\n.\r\n..\r\nline\r\n\377bare\nlf\rcr\0nul";

static void
make_letter(struct walk *w, struct client_transaction *l)
{
    static const char *const addresses[] = {"a@x.example", "b@x.example",
                                            "\303\270@x.example", "evil\r\nRSET@x"};
    static const char *const originals[] = {"", "rfc822;b+2B@x", "utf-8;\303\270@x"};
    struct envelope *e = l->envelope = envelope_new();
    bool clean = chance(w, 2);
    l->count = 1 + chance(w, RCPTS);
    for (unsigned i = 0; i < l->count; i++) {
        l->indexes[i] = (unsigned)l->count - 1 - i;
        bool added = envelope_add(e, text_from(addresses[chance(w, clean ? 2 : 4)]),
                                  chance(w, 16), text_from(originals[chance(w, 3)]));
        walk_must(added, "room", "");
    }
    e->sender = chance(w, 4) ? TEXT("s@me.example") : TEXT("");
    e->prefix = TEXT("Received: x\r\n");
    e->ret = (enum envelope_return)chance(w, 3);
    e->envelope_id = chance(w, 2) ? TEXT("id+2B") : TEXT("");
    e->binary = chance(w, 4) == 0;
    e->eight_bit = e->binary || chance(w, 3) == 0;
    e->utf8 = chance(w, 4) == 0;
    e->content_size = chance(w, 8) ? (int64_t)sizeof(content) - 1 : 0;
    if (chance(w, 10) == 0)
        e->prefix = TEXT("");
}

static void
send_letter(struct walk *w)
{
    struct client_transaction *l = &w->transactions[w->sent++];
    make_letter(w, l);
    struct client_mail mail = {
        .envelope = l->envelope, .indexes = l->indexes, .count = l->count};
    client_send(w->client, &mail);
}

static void
settled(const struct walk *w, const struct client_transaction *l, unsigned want)
{
    for (size_t i = 0; i < l->count; i++)
        walk_must(l->verdicts[i] == want, "one verdict for each", w->peer.last);
}

static void
on_verdict(struct walk *w, const struct client_event *event)
{
    walk_must(w->done < w->sent, "a verdict for no mail", w->peer.last);
    struct client_transaction *l = &w->transactions[w->done];
    const struct outcome *o = event->outcome;
    walk_must(event->which < l->count && o->enhanced[0] != '\0', "verdict", o->text);
    walk_must(strcmp(o->remote, where.remote) == 0, "about the host", o->remote);
    walk_must(!peer_shows_secret(&w->peer, o->text), "a secret in a verdict", o->text);
    walk_must(l->verdicts[event->which]++ == 0, "two verdicts for one", o->text);
    seen.delivered += o->verdict == VERDICT_DELIVERED;
}

/* --- Content ---------------------------------------------------------------------- */

static void
start_content(struct walk *w)
{
    const struct envelope *e = w->transactions[w->done].envelope;
    w->in_content = true;
    w->prefix = e->prefix;
    w->left = text_of(content, (size_t)e->content_size);
    seen.bdat +=
        w->peer.chunk_left > 0 || text_starts(text_from(w->peer.last), TEXT("BDAT"));
    seen.converted += w->converted;
}

static void
give_content(struct walk *w)
{
    struct text *from = w->prefix.length > 0 ? &w->prefix : &w->left;
    struct text piece = text_before(*from, 1 + chance(w, 40));
    if (chance(w, 30) == 0) {
        struct outcome damaged =
            outcome_make(VERDICT_DEFERRED, BLAME_MESSAGE, 0, "4.3.0", "damaged");
        text_copy(damaged.remote, sizeof(damaged.remote), text_from(where.remote));
        client_abandon(w->client, &damaged);
        w->in_content = false;
        return;
    }
    if (piece.length > 0) {
        client_content(w->client, w->converted ? TEXT("=\r\n") : piece);
        *from = text_after(*from, piece.length);
        return;
    }
    w->in_content = w->converted = false;
    client_content_end(w->client);
}

static void
prepare(struct walk *w)
{
    enum downgrade_verdict verdict = (enum downgrade_verdict)chance(w, 4);
    w->preparing = false;
    (void)client_way(w->client);
    w->converted = verdict == DOWNGRADE_CONVERTIBLE;
    client_prepared(w->client, verdict, "it is signed", 500 + chance(w, 1000), 0);
}

/* --- Events ----------------------------------------------------------------------- */

static void
on_ready(struct walk *w)
{
    const struct peer *p = &w->peer;
    unsigned mails = p->offers & OFFERS_LIMITS ? p->mails : 0;
    walk_must(p->secure || w->settings.tls < TARGET_TLS_ENCRYPT, "ready in clear", "");
    walk_must(w->settings.login == NULL || p->auth_heard, "ready without AUTH", "");
    walk_must(client_limits(w->client).mails == mails || p->naughty > 0,
              "limits of before TLS", p->last);
    seen.ready++;
    seen.logged_in += w->settings.login != NULL;
}

static void
on_end(struct walk *w, const struct client_event *event)
{
    bool is_heard = event->end == CLIENT_END_MAIL;
    walk_must(w->done + 1 >= w->sent, "over", w->peer.last);
    walk_must(event->outcome != NULL && event->outcome->text[0] != '\0',
              "an end without an outcome", w->peer.last);
    walk_must(is_heard || event->outcome->verdict == VERDICT_DEFERRED, "good end",
              event->outcome->text);
    walk_must(event->end != CLIENT_END_KEPT || w->sent > 1, "kept", w->peer.last);
    if (w->done < w->sent)
        settled(w, &w->transactions[w->done], is_heard);
    else
        walk_must(event->end == CLIENT_END_IDLE || event->end == CLIENT_END_HOST,
                  "no mail", w->peer.last);
    walk_must(!peer_shows_secret(&w->peer, event->outcome->text), "a secret in the end",
              event->outcome->text);
    seen.kept += event->end == CLIENT_END_KEPT;
    seen.host += event->end == CLIENT_END_HOST && w->sent > 0;
    w->over = true;
}

static void
take_event(struct walk *w, const struct client_event *event)
{
    walk_must(!w->over, "an event after the end", w->peer.last);
    if (w->peer.loud)
        printf("# event %d %zu\n", (int)event->kind, event->which);
    switch (event->kind) {
    case CLIENT_SECURE:
        walk_must(w->peer.given == w->peer.taken && !w->peer.secure, "TLS behind more",
                  w->peer.last);
        w->secure_due = true;
        return;
    case CLIENT_READY:
        on_ready(w);
        return;
    case CLIENT_PREPARE:
        w->preparing = true;
        return;
    case CLIENT_VERDICT:
        on_verdict(w, event);
        return;
    case CLIENT_LATER:
        walk_must(event->outcome->verdict == VERDICT_DEFERRED, "later", w->peer.last);
        on_verdict(w, event);
        return;
    case CLIENT_CONTENT:
        start_content(w);
        return;
    case CLIENT_EARLY:
        w->may_be_early = true;
        seen.early++;
        return;
    case CLIENT_DONE:
        settled(w, &w->transactions[w->done++], 1);
        w->may_be_early = w->converted = false;
        return;
    case CLIENT_PROBED:
        return; /* it never probes */
    case CLIENT_OVER:
        on_end(w, event);
        return;
    }
}

static void
pump(struct walk *w)
{
    struct client_event event;
    struct peer *p = &w->peer;
    for (bool more = true; more;) {
        size_t before = p->given - p->taken;
        struct text input =
            before > 0 ? text_of(p->says.at + p->taken, before) : TEXT("");
        more = client_next(w->client, &input, &event);
        p->taken += before - input.length;
        peer_hear(p, client_output(w->client));
        if (more)
            take_event(w, &event);
    }
}

/* --- Steps ------------------------------------------------------------------------ */

static void
begin_tls(struct walk *w)
{
    struct peer *p = &w->peer;
    w->secure_due = false;
    /* Input in cleartext is dropped; a peer that greets does so now. */
    buffer_clear(&p->says);
    p->given = p->taken = p->owed_end = 0;
    p->offers = 0;
    if (chance(w, 10) == 0) {
        client_insecure(w->client, "TLS: no");
        return;
    }
    p->secure = true;
    seen.secured++;
    client_secured(w->client);
    if (w->settings.tls_implicit)
        peer_say(p, "220 host\r\n");
}

static void
break_off(struct walk *w)
{
    struct outcome stop =
        outcome_make(VERDICT_DEFERRED, BLAME_MESSAGE, 0, "4.3.2", "stop");
    text_copy(stop.remote, sizeof(stop.remote), text_from(where.remote));
    switch (chance(w, 3)) {
    case 0:
        client_lost(w->client);
        return;
    case 1:
        client_timed_out(w->client);
        return;
    default:
        client_abandon(w->client, &stop);
    }
}

/* False: there is nothing left to do but to wait for the host. */
static bool
act(struct walk *w)
{
    struct peer *p = &w->peer;
    if (w->secure_due)
        begin_tls(w);
    else if (client_is_working(w->client))
        client_work(w->client);
    else if (w->preparing && chance(w, 2))
        prepare(w);
    else if (w->in_content && chance(w, 2))
        give_content(w);
    else if (w->may_be_early && w->sent < MAILS && client_has_space(w->client) &&
             chance(w, 2))
        send_letter(w);
    else if (p->given < p->says.length)
        p->given += chance(w, 4) ? p->says.length - p->given
                                 : 1 + chance(w, (unsigned)(p->says.length - p->given));
    else if (w->done == w->sent && w->sent < MAILS && client_has_space(w->client))
        send_letter(w);
    else
        return w->preparing || w->in_content;
    return true;
}

static void
walk_go(struct walk *w)
{
    while (!w->over && w->step++ < STEPS) {
        pump(w);
        if (w->over)
            break;
        bool acted = act(w);
        if (!acted && w->done == w->sent && w->sent == MAILS)
            client_quit(w->client);
        if (!acted)
            walk_must(client_timeout_ms(w->client) > 0 || w->done == w->sent,
                      "it hangs", w->peer.last);
        if (!acted || chance(w, 150) == 0)
            break_off(w);
        if (w->preparing || w->in_content) { /* not after the end */
            pump(w);
            w->preparing = w->preparing && !w->over;
            w->in_content = w->in_content && !w->over;
        }
    }
    if (!w->over)
        client_lost(w->client);
    pump(w);
    walk_must(w->over && (w->peer.heard.length == 0 || w->peer.in_data), "over",
              w->peer.last);
}

static char base64[4][128];

static const char *
encoded(char out[128], struct text secret)
{
    struct buffer b;
    buffer_init(&b, 127);
    walk_must(base64_encode(secret, &b), "room", "");
    /* Its end, as no other line has it. */
    text_copy(out, 128, text_after(buffer_text(&b), b.length - 12));
    buffer_free(&b);
    return out;
}

static void
walk_settings(struct walk *w)
{
    struct client_settings *s = &w->settings;
    s->hostname = "me.example";
    s->peer = &where;
    s->lmtp = chance(w, 4) == 0;
    s->timeout_scale = 1;
    s->tls = (enum target_tls)chance(w, 4);
    s->tls_implicit = s->tls >= TARGET_TLS_ENCRYPT && chance(w, 3) == 0;
    s->tls_failed = s->tls == TARGET_TLS_NONE && chance(w, 2);
    w->login = (struct client_login){.credentials = {.user = TEXT("joe")},
                                     .allowed = ~0u,
                                     .may_be_clear = chance(w, 3) == 0,
                                     .remedy = "a file",
                                     .nonce = "fresh"};
    if (chance(w, 3) == 0)
        w->login.credentials.token = TEXT(WALK_TOKEN);
    else
        w->login.credentials.password = TEXT(WALK_PASSWORD);
    if (chance(w, 3) == 0)
        s->login = &w->login;
}

static void
walk(uint64_t seed, bool loud)
{
    struct walk w = {0};
    struct peer *p = &w.peer;
    static const unsigned naughty[] = {0, 0, 3, 15};
    p->random = seed;
    p->loud = loud;
    walk_settings(&w);
    p->settings = &w.settings;
    p->naughty = naughty[chance(&w, 4)];
    const char *secrets[6] = {"Zw9xQ",   "sesame",  base64[0],
                              base64[1], base64[2], base64[3]};
    memcpy(p->secrets, secrets, sizeof(secrets));
    buffer_init(&p->heard, PEER_BYTES_MAX);
    buffer_init(&p->says, PEER_BYTES_MAX);
    w.client = client_new(&w.settings);
    w.secure_due = w.settings.tls_implicit;
    if (!w.secure_due)
        peer_say(p, "%s", chance(&w, 30) ? "220 host\r\n" : "554 5.3.2 no\r\n");
    walk_go(&w);
    for (unsigned i = 0; i < w.sent; i++)
        envelope_free(&w.transactions[i].envelope);
    client_free(&w.client);
    buffer_free(&p->heard);
    buffer_free(&p->says);
}

int
main(int count, char **arguments)
{
    uint64_t seed = count > 1 ? strtoull(arguments[1], NULL, 10) : 1;
    uint64_t end = count > 2 ? seed + strtoull(arguments[2], NULL, 10) : seed + WALKS;
    setvbuf(stdout, NULL, _IOLBF, BUFSIZ);
    encoded(base64[0], TEXT("\0joe\0" WALK_PASSWORD));
    encoded(base64[1], TEXT(WALK_PASSWORD));
    encoded(base64[2], TEXT(WALK_TOKEN));
    encoded(base64[3], TEXT("user=joe\001auth=Bearer " WALK_TOKEN "\001\001"));
    for (; seed < end; seed++) {
        if (count > 1)
            printf("# %" PRIu64 "\n", seed);
        walk(seed, count > 2 && end == seed + 1);
    }
    printf(
        "# ready %u, kept %u, host %u, early %u, bdat %u, converted %u, delivered %u, "
        "secured %u, "
        "logged in %u\n",
        seen.ready, seen.kept, seen.host, seen.early, seen.bdat, seen.converted,
        seen.delivered, seen.secured, seen.logged_in);
    ok_named(seen.ready > 100 && seen.kept > 100 && seen.host > 100 &&
                 seen.early > 100 && seen.bdat > 100 && seen.converted > 100 &&
                 seen.delivered > 100 && seen.secured > 100 && seen.logged_in > 100,
             "one verdict for each recipient and no secret, whichever way it went");
    return done();
}
