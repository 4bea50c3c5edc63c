/* Keeps the connection to Dovecot's authentication server, and its requests. */
#include "smtp/session/dovecot_auth.h"

#include "base/breaker.h"
#include "base/log/log.h"
#include "base/loop/loop.h"
#include "base/memory.h"
#include "smtp/access/dovecot_line.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <utlist.h>

enum { TROUBLE_MAX = 256 };

enum dovecot_state {
    DOVECOT_AWAY,   /* no path, or a pause before the next attempt */
    DOVECOT_GREETS, /* connects, and exchanges versions */
    DOVECOT_READY
};

struct dovecot_auth {
    struct loop *loop;
    struct net *net;
    struct log *log;
    char path[NET_PATH_MAX];
    enum dovecot_state state;
    struct net_connection *connection;
    struct loop_timer timer; /* of the pause, or of the handshake */
    struct breaker breaker;
    struct dovecot_request *requests;
    size_t request_count;
    uint32_t last_number;
    unsigned mechanisms, greeted; /* greeted: those of this handshake */
    unsigned lines;               /* of the handshake */
    bool has_version;
    int64_t heard_ms; /* the last answer, monotonic */
    char trouble[TROUBLE_MAX];
};

struct dovecot_request {
    struct dovecot_auth *auth;
    struct dovecot_request *prev, *next;
    uint32_t number;
    struct buffer line; /* until it is sent */
    bool sent, waits;   /* waits: for an answer */
    int64_t asked_ms;   /* monotonic */
    struct loop_timer late;
    struct loop_task failing;
    dovecot_answered *answered;
    void *context;
};

static void dovecot_connect(void *context);

/* --- Requests --------------------------------------------------------------------- */

static void
dovecot_answer(struct dovecot_request *r, enum dovecot_answer answer, struct text text)
{
    loop_timer_stop(r->auth->loop, &r->late);
    loop_unpost(r->auth->loop, &r->failing);
    r->waits = false;
    r->answered(r->context, answer, text);
}

static void
dovecot_request_fail(void *context)
{
    dovecot_answer(context, DOVECOT_ANSWER_TEMPORARY, TEXT(""));
}

/* Each leaves the list, or stays without waiting. */
static void
dovecot_fail_all(struct dovecot_auth *a)
{
    struct dovecot_request *r;
    DL_FOREACH (a->requests, r)
        if (r->waits)
            loop_post(a->loop, &r->failing, dovecot_request_fail, r);
}

static void
dovecot_send(struct dovecot_request *r)
{
    if (r->auth->state != DOVECOT_READY || r->line.length == 0)
        return;
    net_send(r->auth->connection, buffer_text(&r->line));
    buffer_forget(&r->line);
    r->sent = true;
}

static void
dovecot_send_all(struct dovecot_auth *a)
{
    struct dovecot_request *r;
    DL_FOREACH (a->requests, r)
        dovecot_send(r);
}

static struct dovecot_request *
dovecot_find(struct dovecot_auth *a, uint32_t number)
{
    struct dovecot_request *r;
    DL_FOREACH (a->requests, r)
        if (r->number == number && r->sent && r->waits)
            return r;
    return NULL;
}

/* --- The connection --------------------------------------------------------------- */

/* The pause is short behind a connection that has worked: Dovecot is restarted. */
static void
dovecot_lose(struct dovecot_auth *a, const char *why)
{
    bool was_well = a->trouble[0] == '\0';
    if (a->connection != NULL)
        net_abort(&a->connection);
    a->state = DOVECOT_AWAY;
    loop_timer_stop(a->loop, &a->timer);
    dovecot_fail_all(a);
    snprintf(a->trouble, sizeof(a->trouble), "%.100s: %.120s", a->path, why);
    if (was_well)
        log_say(a->log, LOG_LEVEL_WARNING, "smtpd", NULL,
                "auth: %s; until it is back logins get 454", a->trouble);
    loop_timer_start(a->loop, &a->timer, breaker_failed(&a->breaker), dovecot_connect,
                     a);
}

/* One answer may take long; if others come the server is well. */
static void
dovecot_request_late(void *context)
{
    struct dovecot_request *r = context;
    if (r->auth->state == DOVECOT_READY && r->auth->heard_ms < r->asked_ms)
        dovecot_lose(r->auth, "it does not answer");
    else
        dovecot_request_fail(r);
}

static void
dovecot_handshake_late(void *context)
{
    dovecot_lose(context, "it does not greet");
}

static void
dovecot_begin(struct dovecot_auth *a)
{
    if (a->greeted == 0)
        log_say(a->log, LOG_LEVEL_WARNING, "smtpd", NULL,
                "auth: %s offers none of PLAIN, XOAUTH2, OAUTHBEARER "
                "(auth_mechanisms of Dovecot): nobody can log in",
                a->path);
    if (a->trouble[0] != '\0')
        log_say(a->log, LOG_LEVEL_INFO, "smtpd", NULL, "auth: %s is back", a->path);
    a->mechanisms = a->greeted;
    a->trouble[0] = '\0';
    a->state = DOVECOT_READY;
    loop_timer_stop(a->loop, &a->timer);
    breaker_good(&a->breaker);
    dovecot_send_all(a);
}

static void
dovecot_note_mechanism(struct dovecot_auth *a, struct text name)
{
    static const enum sasl_mechanism passed[] = {SASL_PLAIN, SASL_XOAUTH2,
                                                 SASL_OAUTHBEARER};
    for (size_t i = 0; i < sizeof(passed) / sizeof(*passed); i++)
        if (text_equal_nocase(name, text_from(sasl_name(passed[i]))))
            a->greeted |= 1U << passed[i];
}

/* NULL, or what is wrong with the line. */
static const char *
dovecot_greet(struct dovecot_auth *a, const struct dovecot_line *line)
{
    if (++a->lines > DOVECOT_HANDSHAKE_LINES)
        return "it greets without an end";
    switch (line->verb) {
    case DOVECOT_VERSION:
        a->has_version = line->number == 1;
        return a->has_version ? NULL : "it has another version of the protocol";
    case DOVECOT_MECH:
        dovecot_note_mechanism(a, line->data);
        return NULL;
    case DOVECOT_DONE:
        if (!a->has_version)
            return "it is not Dovecot's authentication server";
        dovecot_begin(a);
        return NULL;
    case DOVECOT_OTHER:
        return NULL;
    case DOVECOT_BROKEN:
    case DOVECOT_OK:
    case DOVECOT_CONTINUE:
    case DOVECOT_FAIL:
        break;
    }
    return "it is not Dovecot's authentication server";
}

/* An answer that nobody awaits is of a client that has gone. */
static const char *
dovecot_take_answer(struct dovecot_auth *a, const struct dovecot_line *line)
{
    struct dovecot_request *r = dovecot_find(a, line->number);
    if (r != NULL)
        a->heard_ms = loop_monotonic_ms(a->loop);
    switch (line->verb) {
    case DOVECOT_OK:
        if (r != NULL)
            dovecot_answer(r, DOVECOT_ANSWER_OK, text_from(line->user));
        return NULL;
    case DOVECOT_CONTINUE:
        if (r != NULL)
            dovecot_answer(r, DOVECOT_ANSWER_CONTINUE, line->data);
        return NULL;
    case DOVECOT_FAIL:
        if (r != NULL)
            dovecot_answer(
                r, line->temporary ? DOVECOT_ANSWER_TEMPORARY : DOVECOT_ANSWER_FAILED,
                TEXT(""));
        return NULL;
    case DOVECOT_BROKEN:
        return "it sent a line that is broken";
    case DOVECOT_OTHER:
    case DOVECOT_VERSION:
    case DOVECOT_MECH:
    case DOVECOT_DONE:
        break;
    }
    return NULL;
}

static void
dovecot_read(struct dovecot_auth *a)
{
    const char *why = NULL;
    while (why == NULL && a->connection != NULL) {
        struct text input = net_input(a->connection);
        size_t end = text_find(input, '\n');
        struct dovecot_line line;
        if (input.length > DOVECOT_LINE_MAX &&
            (end == TEXT_NONE || end > DOVECOT_LINE_MAX))
            why = "it sent a line that is too long";
        else if (end == TEXT_NONE)
            return;
        if (why != NULL)
            break;
        dovecot_line_read(text_before(input, end), &line);
        why = a->state == DOVECOT_GREETS ? dovecot_greet(a, &line)
                                         : dovecot_take_answer(a, &line);
        /* The answer was borrowed from the input, and may have ended the connection. */
        if (a->connection != NULL)
            net_consume(a->connection, end + 1);
    }
    if (why != NULL)
        dovecot_lose(a, why);
}

static void
dovecot_on_event(void *context, enum net_event event)
{
    struct dovecot_auth *a = context;
    char why[TROUBLE_MAX];
    switch (event) {
    case NET_INPUT:
        dovecot_read(a);
        break;
    case NET_ENDED:
        dovecot_lose(a, "it closed the connection");
        break;
    case NET_FAILED:
    case NET_TIMED_OUT:
        snprintf(why, sizeof(why), "%s", net_error(a->connection));
        dovecot_lose(a, why);
        break;
    case NET_CONNECTED:
    case NET_DRAINED:
    case NET_SECURED:
        break;
    }
}

/* Dovecot takes no second connection with the number of a process that has one, and
 * processes in containers have the same: so the number is from chance. */
static void
dovecot_connect(void *context)
{
    struct dovecot_auth *a = context;
    struct net_address to = {.family = NET_UNIX};
    char hello[80];
    text_copy(to.path, sizeof(to.path), text_from(a->path));
    a->state = DOVECOT_GREETS;
    a->greeted = a->lines = 0;
    a->has_version = false;
    a->connection = net_connect(a->net, &to, NULL, dovecot_on_event, a);
    snprintf(hello, sizeof(hello), "VERSION\t1\t1\nCPID\t%u\n",
             (unsigned)(loop_random(a->loop) % 0x7ffffffe) + 1);
    net_send(a->connection, text_from(hello));
    loop_timer_start(a->loop, &a->timer, DOVECOT_HANDSHAKE_MS, dovecot_handshake_late,
                     a);
}

struct dovecot_auth *
dovecot_auth_new(struct loop *loop, struct net *net, struct log *log)
{
    struct dovecot_auth *a = memory_new(sizeof(*a));
    a->loop = loop;
    a->net = net;
    a->log = log;
    a->breaker = (struct breaker){.failures_max = 2,
                                  .retry_ms = DOVECOT_RETRY_MS / 4,
                                  .pause_ms = DOVECOT_RETRY_MS,
                                  .pause_max_ms = DOVECOT_RETRY_MAX_MS};
    a->mechanisms = 1U << SASL_PLAIN;
    return a;
}

void
dovecot_auth_use(struct dovecot_auth *a, const char *path)
{
    if (strcmp(a->path, path) == 0)
        return;
    if (a->connection != NULL)
        net_abort(&a->connection);
    loop_timer_stop(a->loop, &a->timer);
    dovecot_fail_all(a);
    a->state = DOVECOT_AWAY;
    a->trouble[0] = '\0';
    breaker_good(&a->breaker);
    snprintf(a->path, sizeof(a->path), "%s", path);
    if (path[0] == '\0')
        return;
    /* Not now: at startup we are root here, and the next connection is made by the
     * daemon's user. */
    a->state = DOVECOT_GREETS;
    loop_timer_start(a->loop, &a->timer, 0, dovecot_connect, a);
}

void
dovecot_auth_free(struct dovecot_auth **auth)
{
    struct dovecot_auth *a = *auth;
    *auth = NULL;
    if (a == NULL)
        return;
    dovecot_auth_use(a, "");
    assert(a->requests == NULL); /* session_host_stop() has ended their sessions */
    loop_release(a->loop, free, a);
}

const unsigned *
dovecot_auth_mechanisms(const struct dovecot_auth *a)
{
    return &a->mechanisms;
}

const char *
dovecot_auth_trouble(const struct dovecot_auth *a)
{
    return a->trouble[0] != '\0' ? a->trouble : NULL;
}

/* --- Requests of clients ---------------------------------------------------------- */

static bool
dovecot_add_address(struct buffer *line, const char *ip_key, const char *port_key,
                    const struct net_address *address)
{
    char ip[NET_ADDRESS_TEXT_MAX];
    if (address == NULL || (address->family != NET_IPV4 && address->family != NET_IPV6))
        return true;
    net_address_ip(address, ip);
    return dovecot_line_add(line, ip_key, text_from(ip)) &&
           buffer_format(line, "\t%s=%u", port_key, (unsigned)address->port);
}

/* resp= must be the last. */
static bool
dovecot_write_request(struct dovecot_request *r, enum sasl_mechanism mechanism,
                      const struct dovecot_client *client, struct text response)
{
    struct buffer *line = &r->line;
    return buffer_format(line, "AUTH\t%u\t%s\tservice=smtp\tnologin", r->number,
                         sasl_name(mechanism)) &&
           (!client->secured || buffer_add(line, TEXT("\tsecured"))) &&
           dovecot_add_address(line, "lip", "lport", client->local) &&
           dovecot_add_address(line, "rip", "rport", client->remote) &&
           dovecot_line_add(line, "resp", response) && buffer_add_byte(line, '\n');
}

/* The answer to one that cannot be asked comes later, too. */
static void
dovecot_request_wait(struct dovecot_request *r)
{
    struct dovecot_auth *a = r->auth;
    r->waits = true;
    r->sent = false;
    r->asked_ms = loop_monotonic_ms(a->loop);
    loop_timer_start(a->loop, &r->late, DOVECOT_REQUEST_MS, dovecot_request_late, r);
    if (a->state == DOVECOT_AWAY)
        loop_post(a->loop, &r->failing, dovecot_request_fail, r);
    dovecot_send(r);
}

struct dovecot_request *
dovecot_request_new(struct dovecot_auth *a, enum sasl_mechanism mechanism,
                    const struct dovecot_client *client, struct text response,
                    dovecot_answered *answered, void *context)
{
    if (a->request_count >= DOVECOT_REQUESTS_MAX)
        return NULL;
    struct dovecot_request *r = memory_new(sizeof(*r));
    r->auth = a;
    r->number = ++a->last_number;
    r->answered = answered;
    r->context = context;
    buffer_init(&r->line, DOVECOT_LINE_MAX);
    DL_APPEND(a->requests, r);
    a->request_count++;
    /* One allocation: a buffer that grows leaves copies behind. */
    if (buffer_reserve(&r->line, DOVECOT_LINE_MAX) != NULL &&
        dovecot_write_request(r, mechanism, client, response))
        dovecot_request_wait(r);
    else
        dovecot_request_free(&r);
    return r;
}

bool
dovecot_request_go_on(struct dovecot_request *r, struct text response)
{
    buffer_forget(&r->line);
    bool fits =
        buffer_reserve(&r->line, DOVECOT_LINE_MAX) != NULL &&
        buffer_format(&r->line, "CONT\t%u\t%.*s\n", r->number, TEXT_ARGS(response));
    if (fits)
        dovecot_request_wait(r);
    return fits;
}

/* A client that has gone: the answer would come to nobody. */
void
dovecot_request_free(struct dovecot_request **request)
{
    struct dovecot_request *r = *request;
    *request = NULL;
    if (r == NULL)
        return;
    struct dovecot_auth *a = r->auth;
    char cancel[40];
    if (r->waits && r->sent && a->state == DOVECOT_READY) {
        snprintf(cancel, sizeof(cancel), "CANCEL\t%u\n", r->number);
        net_send(a->connection, text_from(cancel));
    }
    loop_timer_stop(a->loop, &r->late);
    loop_unpost(a->loop, &r->failing);
    DL_DELETE(a->requests, r);
    a->request_count--;
    buffer_forget(&r->line);
    loop_release(a->loop, free, r);
}
