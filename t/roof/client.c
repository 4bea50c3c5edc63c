/* Clients of SMTP. */
#include "t/roof/client.h"

#include "base/memory.h"
#include "t/roof/engine.h"
#include "t/roof/injector.h"
#include "t/roof/law_adoption.h"
#include "t/roof/login.h"
#include "t/roof/peer.h"
#include "t/roof/plan.h"
#include "t/roof/poster.h"
#include "t/roof/secrecy.h"
#include "t/roof/split.h"

#include <assert.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    HOLD_SIZE = 32,
    COMMAND_SIZE = 256,
    CHUNK = 3000,
    SMALL = 2000,
    MOST_OF_SMALL = 10,
    WAIT_MS = 20 * 60 * 1000
};

enum expected {
    OF_GREETING,
    OF_EHLO,
    OF_STARTTLS,
    OF_AUTH,
    OF_MAIL,
    OF_RCPT,
    OF_DATA,
    OF_CHUNK,
    OF_END,
    OF_QUIT
};

struct client {
    struct peer peer;
    unsigned first, count, done; /* messages */
    unsigned host;               /* of a group */
    unsigned given, given_end;   /* fragments of its only message */
    bool pipelines, chunks;
    enum {
        TLS_NOT,
        TLS_BY_COMMAND,
        TLS_AT_ONCE,
        TLS_WITH_A_COMMAND_BEFORE_IT, /* behind STARTTLS in cleartext */
        TLS_NONE_BEHIND_IT,
        TLS_WAYS
    } tls;
    /* it may not relay otherwise */
    enum {
        AUTH_NOT,
        AUTH_PLAIN,
        AUTH_PLAIN_LATER,
        AUTH_LOGIN,
        AUTH_NEVER,
        AUTH_WAYS
    } auth;
    bool knows_password, logged_in;
    unsigned user, words; /* words of AUTH that were said */
    struct client_step {
        enum expected what;
        unsigned rcpt;
    } steps[MODEL_RCPTS_MAX + 16]; /* whose reply is awaited */
    unsigned step_first, step_count;
    bool refused; /* something of the message */
    bool any_rcpt;
    unsigned rcpt_next;
    size_t end_at; /* of the output: the end of the message is behind it; 0: not yet */
    bool quits;
    struct roof_timer patience;
};

static struct client_manners manners;
static uint64_t hold_chance, requires_chance;
static unsigned open_count, host_count;

void
client_set_hosts(unsigned count)
{
    host_count = count;
}

void
client_set_manners(const struct client_manners *m)
{
    manners = *m;
    hold_chance = roof_fork("holds");
    requires_chance = roof_fork("requires");
}

unsigned
clients_open(void)
{
    return open_count + posters_open();
}

static struct model_message *
message_of(const struct client *c)
{
    return model_at(c->first + c->done);
}

static struct text
content_of(const struct client *c)
{
    struct model_message *m = message_of(c);
    if (m->split != NULL)
        return buffer_text(&m->split->contents[m->split->given[c->given]]);
    return buffer_text(&m->content);
}

static void
expect(struct client *c, enum expected what, unsigned rcpt)
{
    assert(c->step_count < MODEL_RCPTS_MAX + 16);
    unsigned at = (c->step_first + c->step_count++) % (MODEL_RCPTS_MAX + 16);
    c->steps[at] = (struct client_step){what, rcpt};
}

static void
command(struct client *c, enum expected what, unsigned rcpt, const char *line)
{
    expect(c, what, rcpt);
    peer_say(&c->peer, text_from(line));
}

/* Its time counts from the acceptance, which is later. */
static void
draw_hold(struct model_message *m, char out[HOLD_SIZE])
{
    out[0] = '\0';
    m->release_ms = 0;
    if (manners.hold == 0 || !plan_takes("hold", m->number) ||
        roof_below_of(&hold_chance, 1000) >= manners.hold)
        return;
    unsigned s = 1 + roof_below_of(&hold_chance, CLIENT_HOLD_MS / SECOND_MS);
    snprintf(out, HOLD_SIZE, " HOLDFOR=%u", s);
    m->release_ms = roof_now_ms() + s * SECOND_MS;
    roof_note("client: m%u is to be delivered in %u s", m->number, s);
}

/* Notifications may leave without it. */
static bool
draw_requires(const struct client *c, struct model_message *m)
{
    m->requires_tls = manners.requires > 0 && c->peer.secured && !m->is_null &&
                      m->split == NULL && plan_takes("requires", m->number) &&
                      roof_below_of(&requires_chance, 1000) < manners.requires;
    if (m->requires_tls)
        roof_note("client: m%u requires TLS", m->number);
    return m->requires_tls;
}

static void
say_mail(struct client *c)
{
    char sender[MODEL_ADDRESS_MAX], line[COMMAND_SIZE], hold[HOLD_SIZE];
    model_sender_address(message_of(c), sender);
    draw_hold(message_of(c), hold);
    snprintf(line, sizeof(line), "MAIL FROM:<%s>%s%s%s\r\n", sender,
             message_of(c)->wants_header ? " RET=HDRS" : "", hold,
             draw_requires(c, message_of(c)) ? " REQUIRETLS" : "");
    command(c, OF_MAIL, 0, line);
}

static void
say_rcpt(struct client *c, unsigned index)
{
    char address[MODEL_ADDRESS_MAX], original[MODEL_ORIGINAL_MAX], line[COMMAND_SIZE];
    const struct model_message *m = message_of(c);
    model_given_address(m, index, address);
    model_rcpt_original(&m->rcpts[index], original);
    snprintf(line, sizeof(line), "RCPT TO:<%s>%s%s\r\n", address, model_notify_words(m),
             original);
    command(c, OF_RCPT, index, line);
}

static void
say_content(struct client *c)
{
    struct text rest = content_of(c), line;
    struct buffer all;
    bool fits = true;
    buffer_init(&all, 16 << 20);
    while (rest.length > 0) {
        text_cut(&rest, '\n', &line);
        if (text_starts(line, TEXT(".")))
            fits = buffer_add_byte(&all, '.') && fits;
        fits = buffer_add(&all, line) && buffer_add_byte(&all, '\n') && fits;
    }
    fits = buffer_add(&all, TEXT(".\r\n")) && fits;
    assert(fits);
    expect(c, OF_END, 0);
    /* before it is sent: it may be cut within the call */
    peer_add(&c->peer, buffer_text(&all));
    c->end_at = peer_last(&c->peer);
    peer_send(&c->peer);
    buffer_free(&all);
}

static void
say_chunks(struct client *c)
{
    struct text rest = content_of(c);
    char line[COMMAND_SIZE];
    while (rest.length > 0 && c->peer.end != NULL) {
        struct text chunk = text_before(rest, 1 + roof_below(2 * CHUNK));
        rest = text_after(rest, chunk.length);
        bool last = rest.length == 0;
        snprintf(line, sizeof(line), "BDAT %zu%s\r\n", chunk.length,
                 last ? " LAST" : "");
        expect(c, last ? OF_END : OF_CHUNK, 0);
        peer_say(&c->peer, text_from(line));
        peer_add(&c->peer, chunk);
        if (last)
            c->end_at = peer_last(&c->peer);
        peer_send(&c->peer);
    }
}

static void
begin_message(struct client *c)
{
    while (c->done < c->count && message_of(c)->is_omitted)
        c->done++;
    if (c->done == c->count) {
        c->quits = true;
        command(c, OF_QUIT, 0, "QUIT\r\n");
        return;
    }
    const struct model_message *m = message_of(c);
    c->refused = c->any_rcpt = false;
    c->rcpt_next = 0;
    c->end_at = 0;
    say_mail(c);
    if (!c->pipelines)
        return;
    while (c->rcpt_next < model_given(m) && c->peer.end != NULL)
        say_rcpt(c, c->rcpt_next++);
    if (!c->chunks && c->peer.end != NULL)
        command(c, OF_DATA, 0, "DATA\r\n");
}

static void
end_message(struct client *c, bool good, struct text line)
{
    struct model_message *m = message_of(c);
    size_t id = text_find_last(line, ' ');
    if (m->split != NULL) {
        split_ended(m, c->given++, good ? MODEL_ACKED : MODEL_REFUSED);
        c->done += c->given == c->given_end;
        begin_message(c);
        return;
    }
    struct text name = id != TEXT_NONE ? text_after(line, id + 1) : TEXT("");
    if (good) {
        engine_acked(name);
        law_adoption_acked(c->host);
        model_acked(m, name);
    } else if (m->state == MODEL_UNSENT) {
        m->state = engine_may_return(line) ? MODEL_MAYBE : MODEL_REFUSED;
    }
    c->done++;
    begin_message(c);
}

/* first: the end of the one that is under way; the others are not given. */
static void
end_fragments(struct client *c, enum model_state first)
{
    for (; c->given < c->given_end; first = MODEL_REFUSED)
        split_ended(message_of(c), c->given++, first);
}

/* MAIL or all RCPTs were refused. */
static void
give_up_message(struct client *c)
{
    struct model_message *m = message_of(c);
    if (m->split != NULL)
        end_fragments(c, MODEL_REFUSED);
    else if (m->state == MODEL_UNSENT)
        m->state = MODEL_REFUSED;
    c->done = c->count; /* the next one would need RSET */
    begin_message(c);
}

static void
after_rcpts(struct client *c)
{
    const struct model_message *m = message_of(c);
    if (c->rcpt_next < model_given(m) && !c->pipelines) {
        say_rcpt(c, c->rcpt_next++);
        return;
    }
    if (!c->any_rcpt) {
        if (!c->pipelines || c->chunks)
            give_up_message(c);
    } else if (c->chunks) {
        say_chunks(c);
    } else if (!c->pipelines) {
        command(c, OF_DATA, 0, "DATA\r\n");
    }
}

static void
say_starttls(struct client *c)
{
    command(c, OF_STARTTLS, 0,
            c->tls == TLS_WITH_A_COMMAND_BEFORE_IT ? "STARTTLS\r\nNOOP\r\n"
                                                   : "STARTTLS\r\n");
}

static void
begin_tls(struct client *c)
{
    if (c->tls == TLS_NONE_BEHIND_IT && c->first % 2 == 0)
        peer_close(&c->peer);
    else if (c->tls == TLS_NONE_BEHIND_IT)
        peer_say(&c->peer, TEXT("EHLO in.clear.test\r\n"));
    else
        peer_start_tls(&c->peer, NULL, secrecy_client());
}

static void
client_on_secured(void *context)
{
    struct client *c = context;
    if (c->tls != TLS_AT_ONCE)
        command(c, OF_EHLO, 0, "EHLO client.test\r\n");
}

static void
say_auth(struct client *c)
{
    static const char *const verbs[] = {
        [AUTH_PLAIN] = "AUTH PLAIN ",
        [AUTH_PLAIN_LATER] = "AUTH PLAIN",
        [AUTH_LOGIN] = "AUTH LOGIN",
    };
    char line[COMMAND_SIZE], word[LOGIN_WORD_MAX] = "";
    c->words = 0;
    if (c->auth == AUTH_PLAIN)
        login_word('c', c->user, LOGIN_PLAIN, c->knows_password, word);
    snprintf(line, sizeof(line), "%s%s\r\n", verbs[c->auth], word);
    command(c, OF_AUTH, 0, line);
}

static void
say_auth_word(struct client *c)
{
    char line[COMMAND_SIZE], word[LOGIN_WORD_MAX];
    enum login_part part = c->auth != AUTH_LOGIN ? LOGIN_PLAIN
                           : c->words == 0       ? LOGIN_USER
                                                 : LOGIN_PASSWORD;
    c->words++;
    login_word('c', c->user, part, c->knows_password, word);
    snprintf(line, sizeof(line), "%s\r\n", word);
    command(c, OF_AUTH, 0, line);
}

static void
take_auth(struct client *c, struct text line)
{
    if (text_starts(line, TEXT("334"))) {
        say_auth_word(c);
        return;
    }
    c->logged_in = text_starts(line, TEXT("235"));
    roof_note("client: c%u: %.3s", c->user, line.at);
    if (c->logged_in && !c->knows_password)
        roof_break("truth", NULL, "a wrong password is taken");
    if (c->logged_in)
        begin_message(c);
    else
        give_up_message(c);
}

/* TLS comes before the greeting. */
static void
client_on_connected(void *context)
{
    struct client *c = context;
    if (c->tls != TLS_AT_ONCE)
        return;
    begin_tls(c);
    peer_go_on(&c->peer);
}

static void
take_reply(struct client *c, const struct client_step *step, struct text line)
{
    bool good = line.at[0] == '2' || line.at[0] == '3';
    switch (step->what) {
    case OF_GREETING:
        if (!good)
            peer_close(&c->peer);
        else
            command(c, OF_EHLO, 0, "EHLO client.test\r\n");
        break;
    case OF_EHLO:
        if (c->tls != TLS_NOT && c->peer.tls == NULL)
            say_starttls(c);
        else if (c->auth != AUTH_NOT && c->auth != AUTH_NEVER)
            say_auth(c);
        else
            begin_message(c);
        break;
    case OF_STARTTLS:
        if (good)
            begin_tls(c);
        else if (c->auth != AUTH_NOT)
            give_up_message(c);
        else
            begin_message(c);
        break;
    case OF_AUTH:
        take_auth(c, line);
        break;
    case OF_MAIL:
        c->refused = !good;
        if (good && !c->pipelines)
            say_rcpt(c, c->rcpt_next++);
        else if (!good && !c->pipelines)
            give_up_message(c);
        break;
    case OF_RCPT:
        model_given_accepted(message_of(c), step->rcpt, good);
        c->any_rcpt = c->any_rcpt || good;
        if (good && c->auth != AUTH_NOT && !c->logged_in && !message_of(c)->is_aliased)
            roof_break("bounds", NULL, "m%u may be relayed for a stranger",
                       message_of(c)->number);
        if (step->rcpt + 1 == model_given(message_of(c)) || !c->pipelines)
            after_rcpts(c);
        break;
    case OF_DATA:
        if (good)
            say_content(c);
        else
            give_up_message(c);
        break;
    case OF_CHUNK:
        break;
    case OF_END:
        end_message(c, good, line);
        break;
    case OF_QUIT:
        peer_close(&c->peer);
        break;
    }
}

static bool
client_on_line(void *context, struct text line)
{
    struct client *c = context;
    if (line.length < 3 || (line.length > 3 && line.at[3] == '-'))
        return true;
    if (c->step_count == 0 || text_starts(line, TEXT("421"))) {
        peer_close(&c->peer);
        return true;
    }
    struct client_step step = c->steps[c->step_first];
    c->step_first = (c->step_first + 1) % (MODEL_RCPTS_MAX + 16);
    c->step_count--;
    take_reply(c, &step, line);
    return true;
}

/* Its message may be in the queue if its end was sent. */
static void
client_on_over(void *context)
{
    struct client *c = context;
    roof_timer_stop(&c->patience);
    for (; c->done < c->count; c->done++) {
        struct model_message *m = message_of(c);
        if (m->is_omitted)
            continue;
        bool ended = c->end_at > 0 && c->peer.sent >= c->end_at;
        if (m->split != NULL) {
            end_fragments(c, ended ? MODEL_MAYBE : MODEL_REFUSED);
            continue;
        }
        if (m->state == MODEL_UNSENT)
            m->state = ended ? MODEL_MAYBE : MODEL_REFUSED;
        if (m->state == MODEL_MAYBE)
            roof_note("client: m%u ended without a reply", m->number);
        c->end_at = 0;
    }
    open_count--;
    roof_timer_start(&c->patience, 0, free, c); /* its caller may be at work */
}

static void
client_on_impatience(void *context)
{
    struct client *c = context;
    peer_cut(&c->peer, PEER_RESET);
}

static void
draw_dsn(struct model_message *m)
{
    if (roof_chance(manners.dsn))
        m->notify = NOTIFY_OF_SUCCESS + roof_below(3);
    m->has_original = roof_chance(manners.dsn);
    m->wants_header = roof_chance(manners.dsn);
}

static void
draw_split(struct model_message *m)
{
    m->rcpt_count = 1;
    m->is_null = false;
    m->notify = NOTIFY_AS_USUAL;
    split_draw(m);
}

static void
draw_message(struct model_message *m, bool is_alone)
{
    unsigned kind = roof_below(100);
    unsigned rcpts = kind < 60 ? 1 : kind < 90 ? 1 + roof_below(6) : 1 + roof_below(60);
    size_t size = kind % 10 < 7   ? roof_below(600)
                  : kind % 10 < 9 ? roof_below(9000)
                                  : roof_below(300 * 1000);
    if (manners.small) {
        rcpts = kind < 95 ? 1 : 1 + rcpts % MOST_OF_SMALL;
        size %= SMALL;
    }
    m->is_null = roof_chance(manners.null_sender);
    m->notify = roof_chance(manners.notify)
                    ? (enum model_notify)(1 + roof_below(NOTIFY_OF_FAILURE))
                    : NOTIFY_AS_USUAL;
    if (m->is_aliased)
        return;
    model_draw(m, plan_takes("recipients", m->number) ? rcpts : 1,
               plan_takes("size", m->number) ? size : 0);
    if (manners.split > 0 && is_alone && roof_chance(manners.split) &&
        plan_takes("split", m->number))
        draw_split(m);
    else if (manners.dsn > 0 && plan_takes("dsn", m->number))
        draw_dsn(m);
}

/* The number of those that the plan does not omit. */
static unsigned
draw_messages(unsigned first, unsigned count)
{
    unsigned drawn = 0;
    for (unsigned i = first; i < first + count; i++) {
        model_at(i)->is_omitted = !plan_takes("mail", i);
        if (model_at(i)->is_omitted)
            continue;
        plan_enter("mail", i);
        draw_message(model_at(i), count == 1);
        plan_leave();
        drawn++;
    }
    return drawn;
}

static void
draw_login(struct client *c)
{
    c->auth = AUTH_PLAIN + roof_below(AUTH_WAYS - 1);
    c->user = roof_below(LOGIN_CLIENTS);
    c->knows_password = roof_chance(800);
    if (c->tls == TLS_NOT)
        c->tls = roof_chance(500) ? TLS_BY_COMMAND : TLS_AT_ONCE;
}

static void
draw_manners(struct client *c)
{
    bool is_plain = !plan_takes("manners", c->first);
    c->pipelines = roof_chance(manners.pipelining);
    c->chunks = roof_chance(manners.bdat);
    if (manners.tls > 0 && roof_chance(manners.tls) && !is_plain)
        c->tls = roof_chance(800) ? (roof_chance(700) ? TLS_BY_COMMAND : TLS_AT_ONCE)
                                  : 1 + roof_below(TLS_WAYS - 1);
    /* fragments of two users are of two messages */
    if (manners.auth > 0 && c->given_end == 0 && roof_chance(manners.auth) && !is_plain)
        draw_login(c);
    if (roof_chance(manners.slow) && !is_plain) {
        c->peer.piece = 1 + roof_below(2000);
        c->peer.pause_ms = roof_between(1, 300);
    }
    if (roof_chance(manners.cut) && !is_plain) {
        c->peer.cut_at =
            1 + roof_below(100 + 2 * (unsigned)message_of(c)->content.length);
        c->peer.cut_how = (enum peer_end)roof_below(PEER_ENDS);
    }
}

static void
begin_client(unsigned first, unsigned count, unsigned given, unsigned given_end)
{
    struct client *c = memory_new(sizeof(*c));
    c->first = first;
    c->count = count;
    c->given = given;
    c->given_end = given_end;
    c->peer = (struct peer){.connected = client_on_connected,
                            .line = client_on_line,
                            .on_secured = client_on_secured,
                            .over = client_on_over,
                            .context = c};
    draw_manners(c);
    struct net_address from =
                           {
                               .family = NET_IPV4, .ip = {10, 1, 0, 1}
    },
                       to = {.family = NET_IPV4, .ip = {10, 0, 0, 1}, .port = 25};
    if (c->auth != AUTH_NOT)
        from.ip[1] = 2; /* not of relay_from */
    to.port = c->tls == TLS_AT_ONCE ? 465 : 25;
    from.ip[3] = (unsigned char)(1 + roof_below(200));
    c->host = host_count > 0 ? roof_below(host_count) : 0;
    if (c->host > 0)
        to.ip[3] = (unsigned char)(10 + c->host); /* group.c */
    open_count++;
    expect(c, OF_GREETING, 0);
    roof_timer_start(&c->patience, WAIT_MS, client_on_impatience, c);
    peer_connect(&c->peer, &from, &to);
}

void
client_begin(unsigned first, unsigned count)
{
    bool injects = roof_chance(manners.injects);
    if (draw_messages(first, count) == 0)
        return;
    struct split *split = model_at(first)->split;
    if (split != NULL) {
        for (unsigned from = 0, end; from < split->given_count; from = end) {
            end = from + 1 + roof_below(split->given_count - from);
            begin_client(first, 1, from, end);
        }
        return;
    }
    if (posters_take(model_at(first))) {
        for (unsigned i = 0; i < count; i++)
            if (!model_at(first + i)->is_omitted)
                poster_begin(model_at(first + i));
        return;
    }
    if (!injects) {
        begin_client(first, count, 0, 0);
        return;
    }
    for (unsigned i = 0; i < count; i++)
        if (!model_at(first + i)->is_omitted)
            injector_run(model_at(first + i));
}
