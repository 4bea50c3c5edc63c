/* A question to name servers: c-ares carries one try, our own code walks the servers.
 *
 * c-ares calls back into question_on_reply() only, which copies and posts. What the reply
 * means is judged in a later turn (question_settle()), where the channel can be
 * destroyed and the next server be asked. */
#include "base/dns/dns_question.h"

#include "base/memory.h"

#define CARES_NO_DEPRECATED /* only functions that both 1.18 and 1.34 have */
#include <ares.h>

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <utlist.h>

enum {
    REPLY_MAX = 8 * 1024, /* octets kept of a reply; the answer section comes first */
    LONG_REPLY_MAX = UINT16_MAX, /* of one to TXT and TLSA */
    AUTHENTIC =
        0x20, /* AD in octet 3: asks for the same in the reply (RFC 6840 §5.7) */
    DOUBLED_MAX = 6, /* times that a time-out doubles */
    EDNS_SIZE = 1232 /* fits one IPv6 packet */
};
enum { RCODE_NO_ERROR = 0, RCODE_NO_NAME = 3 };

static_assert(REPLY_MAX <= sizeof(struct dns_answer), "the promise of dns.h");

struct dns_socket {
    struct dns_question *question;
    int descriptor; /* c-ares opens and closes it */
    struct loop_watch *watch;
    struct dns_socket *prev, *next;
};

/* ---- the answer ---- */

bool
dns_asker_is_trusted(const struct dns_asker *asker)
{
    return asker->trust == DNS_TRUST_AUTO ? asker->servers.vouched
                                          : asker->trust == DNS_TRUST_YES;
}

static struct text
tried_reply(const struct dns_tried *tried)
{
    return text_of(tried->bytes, tried->length);
}

/* The response code of a reply, -1: no reply, or none that has one. */
static int
tried_rcode(const struct dns_tried *tried)
{
    return tried->code == ARES_SUCCESS ? dns_reply_code(tried_reply(tried)) : -1;
}

/* The name itself, or the alias that it has led to. */
static const char *
question_asks(const struct dns_question *q)
{
    return q->aliases > 0 ? q->alias : q->name;
}

/* A sentence that says who did not help, and how: what has to be looked at is the
 * network, the name server or the domain. */
static void
question_explain(const struct dns_question *q, struct dns_answer *answer)
{
    static const char *const codes[] = {"",         "FORMERR", "SERVFAIL",
                                        "NXDOMAIN", "NOTIMP",  "REFUSED"};
    int rcode = tried_rcode(&q->best);
    char server[NET_ADDRESS_TEXT_MAX], what[NET_ADDRESS_TEXT_MAX + 80], said[32];
    snprintf(said, sizeof(said), "error %d", rcode);
    if (rcode > 0 && rcode < (int)(sizeof(codes) / sizeof(codes[0])))
        snprintf(said, sizeof(said), "%s", codes[rcode]);
    dns_server_name(&q->best.by, server);
    if (q->best.by.family == NET_NONE)
        snprintf(what, sizeof(what), "%s",
                 q->best.code == ARES_ETIMEOUT ? "no name server has answered in time"
                                               : ares_strerror(q->best.code));
    else if (rcode > 0)
        snprintf(what, sizeof(what), "the name server %s answered %s", server, said);
    else if (q->best.code == ARES_SUCCESS || q->best.code == ARES_EBADRESP)
        snprintf(what, sizeof(what), "the answer of name server %s is malformed",
                 server);
    else if (q->best.code == ARES_ETIMEOUT)
        snprintf(what, sizeof(what), "the name server %s does not answer", server);
    else
        snprintf(what, sizeof(what), "the name server %s cannot be reached", server);
    dns_answer_explain(answer, DNS_TRY_AGAIN, "%s for the %s of %.100s", what,
                       dns_kind(q->type)->lookup, question_asks(q));
}

/* The name is not there, or has no such record; of an alias the one at its end, which is
 * the one to be looked at. */
static void
question_explain_nothing(const struct dns_question *q, enum dns_status status,
                         struct dns_answer *answer)
{
    char alias[DNS_NAME_MAX];
    uint32_t ttl_s;
    bool no_name = status == DNS_NO_NAME;
    const char *has_no = no_name ? "does not exist (NXDOMAIN)" : "has no ";
    const char *record = no_name ? "" : dns_kind(q->type)->record;
    bool is_alias = dns_reply_alias(tried_reply(&q->best), q->type, alias, &ttl_s);
    answer->is_alias = is_alias || q->aliases > 0;
    if (q->endless)
        dns_answer_explain(answer, status,
                           "%.100s is an alias that leads nowhere: a loop, or more "
                           "than %d aliases",
                           q->name, DNS_ALIASES_MAX);
    else if (answer->is_alias)
        dns_answer_explain(answer, status, "%.50s is an alias of %.50s, which %s%s",
                           q->name, is_alias ? alias : q->alias, has_no, record);
    else
        dns_answer_explain(answer, status, "%.100s %s%s", q->name, has_no, record);
}

static bool
question_read_reply(struct dns_question *q, struct dns_answer *answer)
{
    if (q->type == DNS_TYPE_TXT && q->joined == NULL)
        q->joined = memory_new(q->best.length);
    return dns_reply_read(tried_reply(&q->best), !q->best.cut, q->type, q->joined,
                          answer);
}

void
dns_question_read(struct dns_question *q, struct dns_answer *answer)
{
    int rcode = tried_rcode(&q->best);
    memset(answer, 0, sizeof(*answer));
    if (q->best.code == ARES_EBADNAME || rcode == RCODE_NO_NAME)
        question_explain_nothing(q, DNS_NO_NAME, answer);
    else if (rcode != RCODE_NO_ERROR || !question_read_reply(q, answer))
        question_explain(q, answer);
    else if (answer->count > 0)
        answer->status = DNS_FOUND;
    else
        question_explain_nothing(q, DNS_NO_DATA, answer);
    if (strcmp(answer->canonical, q->name) == 0)
        answer->canonical[0] = '\0';
    if (q->aliases > 0 && q->alias_ttl_s < answer->ttl_s)
        answer->ttl_s = q->alias_ttl_s;
    /* Both: the servers, or the trust in them, may have changed meanwhile. */
    answer->secure = answer->status != DNS_TRY_AGAIN && q->trusted &&
                     dns_asker_is_trusted(q->asker) && !q->unproved &&
                     dns_reply_is_authentic(tried_reply(&q->best));
}

/* ---- a channel ---- */

/* Called by c-ares: copies the reply and posts, no more. */
static void
question_on_reply(void *context, int code, int timeouts, unsigned char *bytes,
                  int length)
{
    struct dns_question *q = context;
    (void)timeouts;
    if (code == ARES_EDESTRUCTION)
        return;
    q->now.code = code;
    if (length > 0) {
        bool is_long = q->type == DNS_TYPE_TXT || q->type == DNS_TYPE_TLSA;
        int kept_max = is_long ? LONG_REPLY_MAX : REPLY_MAX;
        q->now.cut = length > kept_max;
        q->now.length = (size_t)(q->now.cut ? kept_max : length);
        q->now.bytes = memory_new(q->now.length);
        memcpy(q->now.bytes, bytes, q->now.length);
    }
    loop_post(q->asker->loop, &q->settling, q->settling.run, q);
}

/* Lets c-ares handle its time-outs, and asks for the next one. After every call that
 * changes its state; never inside its callbacks. */
static void
question_attend(void *context)
{
    struct dns_question *q = context;
    struct loop *loop = q->asker->loop;
    struct timeval wait;
    ares_process_fd(q->channel, ARES_SOCKET_BAD, ARES_SOCKET_BAD);
    if (ares_timeout(q->channel, NULL, &wait) == NULL)
        loop_timer_stop(loop, &q->timer);
    else
        /* Rounded up: a timer that fires too early would find nothing to do, again and
         * again. */
        loop_timer_start(loop, &q->timer,
                         (int64_t)wait.tv_sec * 1000 + (wait.tv_usec + 999) / 1000,
                         question_attend, q);
}

static void
question_on_ready(void *context, int events)
{
    struct dns_socket *s = context;
    struct dns_question *q = s->question;
    int descriptor = s->descriptor;
    ares_process_fd(q->channel,
                    (events & LOOP_READ) != 0 ? descriptor : ARES_SOCKET_BAD,
                    (events & LOOP_WRITE) != 0 ? descriptor : ARES_SOCKET_BAD);
    question_attend(q);
}

static bool
is_stream(int descriptor)
{
    int kind = 0;
    socklen_t size = sizeof(kind);
    return getsockopt(descriptor, SOL_SOCKET, SO_TYPE, &kind, &size) == 0 &&
           kind == SOCK_STREAM;
}

/* c-ares may close a socket within question_on_ready() of it: hence loop_release(). */
static void
question_on_socket(void *context, ares_socket_t descriptor, int readable, int writable)
{
    struct dns_question *q = context;
    struct loop *loop = q->asker->loop;
    struct dns_socket *s;
    int events = (readable ? LOOP_READ : 0) | (writable ? LOOP_WRITE : 0);
    DL_SEARCH_SCALAR(q->sockets, s, descriptor, descriptor);
    if (s == NULL && events != 0) {
        s = memory_new(sizeof(*s));
        s->question = q;
        s->descriptor = descriptor;
        s->watch = loop_watch_new(loop, descriptor, events, question_on_ready, s);
        DL_APPEND(q->sockets, s);
        q->by_tcp = q->by_tcp || is_stream(descriptor);
    } else if (s != NULL && events != 0) {
        loop_watch_set(s->watch, events);
    } else if (s != NULL) {
        loop_watch_free(&s->watch);
        DL_DELETE(q->sockets, s);
        loop_release(loop, free, s);
    }
}

static int64_t
question_time_out_ms(const struct dns_question *q)
{
    int64_t most_ms = INT32_MAX >> DOUBLED_MAX;
    int64_t try_ms = q->asker->try_ms < most_ms ? q->asker->try_ms : most_ms;
    return try_ms << (q->round < DOUBLED_MAX ? q->round : DOUBLED_MAX);
}

/* All options are given, so that c-ares opens no file. With NOCHECKRESP it hands over
 * replies that carry an error, rather than "could not contact DNS servers". */
static int
question_open(struct dns_question *q, const struct net_address *server)
{
    struct in_addr replaced = {.s_addr = htonl(INADDR_LOOPBACK)};
    char lookups[] = "b", spelt[NET_ADDRESS_TEXT_MAX];
    struct ares_options options = {.flags = ARES_FLAG_EDNS | ARES_FLAG_NOCHECKRESP,
                                   .ednspsz = EDNS_SIZE,
                                   .timeout = (int)question_time_out_ms(q),
                                   .tries = 1,
                                   .ndots = 1,
                                   .servers = &replaced,
                                   .nservers = 1,
                                   .lookups = lookups,
                                   .sock_state_cb = question_on_socket,
                                   .sock_state_cb_data = q};
    int mask = ARES_OPT_FLAGS | ARES_OPT_EDNSPSZ | ARES_OPT_TIMEOUTMS | ARES_OPT_TRIES |
               ARES_OPT_NDOTS | ARES_OPT_SERVERS | ARES_OPT_LOOKUPS | ARES_OPT_DOMAINS |
               ARES_OPT_SORTLIST | ARES_OPT_SOCK_STATE_CB;
#ifdef ARES_OPT_QUERY_CACHE /* off: the name server has one */
    mask |= ARES_OPT_QUERY_CACHE;
#endif
#ifdef ARES_FLAG_DNS0x20
    options.flags |= ARES_FLAG_DNS0x20;
#endif
    int code = ares_init_options(&q->channel, &options, mask);
    if (code != ARES_SUCCESS) {
        q->channel = NULL;
        return code;
    }
    net_address_format(server, spelt);
    return ares_set_servers_ports_csv(q->channel, spelt);
}

/* Calls back for a question that is open, closes sockets. */
static void
question_close(struct dns_question *q)
{
    loop_timer_stop(q->asker->loop, &q->timer);
    loop_unpost(q->asker->loop, &q->settling);
    if (q->channel != NULL)
        ares_destroy(q->channel);
    q->channel = NULL;
    assert(q->sockets == NULL);
}

/* c-ares 1.18 sends the id as it is given. */
static void
question_send(struct dns_question *q)
{
    unsigned short id = (unsigned short)loop_random(q->asker->loop);
    unsigned char *packet = NULL;
    int size = 0;
    int code = ares_create_query(question_asks(q), DNS_CLASS_IN, (int)q->type, id, 1,
                                 &packet, &size, EDNS_SIZE);
    if (code != ARES_SUCCESS) {
        question_on_reply(q, code, 0, NULL, 0);
        return;
    }
    packet[3] |= AUTHENTIC;
    ares_send(q->channel, packet, size, question_on_reply, q);
    ares_free_string(packet);
    question_attend(q);
}

/* ---- the walk ---- */

static struct dns_server *
question_server(struct dns_question *q)
{
    struct dns_servers *servers = &q->asker->servers;
    return q->generation == servers->generation ? &servers->at[q->server] : NULL;
}

/* A list that has changed is walked anew. False: each server has had its tries. */
static bool
question_choose(struct dns_question *q)
{
    struct dns_servers *servers = &q->asker->servers;
    int64_t now_ms = loop_monotonic_ms(q->asker->loop);
    if (q->generation != servers->generation)
        q->asked = q->spent = 0;
    q->generation = servers->generation;
    q->server = dns_servers_next(servers, q->asked | q->spent, now_ms);
    if (q->server != SIZE_MAX)
        return true;
    q->asked = 0;
    q->server = dns_servers_next(servers, q->spent, now_ms);
    return q->server != SIZE_MAX && ++q->round < q->asker->tries;
}

static void
question_say(struct dns_question *q, bool wrong, const char *format)
{
    const struct dns_asker *asker = q->asker;
    char name[NET_ADDRESS_TEXT_MAX], text[NET_ADDRESS_TEXT_MAX + 100];
    if (asker->said == NULL)
        return;
    dns_server_name(&asker->servers.at[q->server].address, name);
    snprintf(text, sizeof(text), "name server %s %s", name, format);
    asker->said(asker->said_context, wrong, text);
}

/* Silence to one question proves nothing while others are answered: the name servers of
 * that domain may be silent. */
static void
question_blame(struct dns_question *q, bool silent)
{
    struct dns_server *server = question_server(q);
    if (server == NULL || q->by_tcp || (silent && server->answered_ms >= q->asked_ms))
        return;
    if (dns_server_failed(server, loop_monotonic_ms(q->asker->loop)))
        question_say(q, true,
                     silent ? "does not answer: it is asked last until it does"
                            : "cannot be reached: it is asked last until it answers");
}

static void
question_praise(struct dns_question *q)
{
    struct dns_server *server = question_server(q);
    if (server != NULL &&
        dns_server_answered(server, loop_monotonic_ms(q->asker->loop)))
        question_say(q, false, "answers again");
}

/* A server that has answered tells more than one that has not. */
static int
tried_rank(const struct dns_tried *tried)
{
    if (tried->by.family == NET_NONE)
        return 0;
    if (tried->code == ARES_ETIMEOUT)
        return 1;
    return tried->code == ARES_SUCCESS || tried->code == ARES_EBADRESP ? 3 : 2;
}

static void
question_keep_best(struct dns_question *q)
{
    if (tried_rank(&q->now) >= tried_rank(&q->best)) {
        free(q->best.bytes);
        q->best = q->now;
    } else {
        free(q->now.bytes);
    }
    q->now = (struct dns_tried){0};
}

static void
question_try(struct dns_question *q)
{
    const struct net_address *server = &q->asker->servers.at[q->server].address;
    q->by_tcp = false;
    q->trusted = dns_asker_is_trusted(q->asker);
    q->asked_ms = loop_monotonic_ms(q->asker->loop);
    q->asked |= 1u << q->server;
    q->now.by = *server;
    int code = question_open(q, server);
    if (code == ARES_SUCCESS) {
        question_send(q);
        return;
    }
    q->now.by = (struct net_address){.family = NET_NONE};
    question_on_reply(q, code, 0, NULL, 0);
}

/* Not an answer, but the next server may have one. */
static bool
question_may_go_on(struct dns_question *q)
{
    int code = q->now.code, rcode = tried_rcode(&q->now);
    if (code == ARES_SUCCESS || code == ARES_EBADRESP) {
        question_praise(q);
        q->spent |= 1u << q->server;
        return rcode != RCODE_NO_ERROR && rcode != RCODE_NO_NAME;
    }
    if (code == ARES_EBADNAME || q->now.by.family == NET_NONE)
        return false;
    question_blame(q, code == ARES_ETIMEOUT);
    if (code != ARES_ETIMEOUT)
        q->spent |= 1u << q->server;
    return true;
}

static void
question_forget_best(struct dns_question *q)
{
    free(q->best.bytes);
    free(q->joined);
    q->best = (struct dns_tried){.code = ARES_ETIMEOUT};
    q->joined = NULL;
}

/* Asks for the name that an answer without a record leads to, and all servers again. False:
 * it leads nowhere. */
static bool
question_follow(struct dns_question *q)
{
    char alias[DNS_NAME_MAX];
    uint32_t ttl_s;
    struct text reply = tried_reply(&q->best);
    if (tried_rcode(&q->best) != RCODE_NO_ERROR || q->best.cut ||
        !dns_reply_alias(reply, q->type, alias, &ttl_s))
        return false;
    q->endless = q->aliases == DNS_ALIASES_MAX || strcmp(alias, q->name) == 0 ||
                 strcmp(alias, question_asks(q)) == 0;
    if (q->endless)
        return false;
    if (q->aliases++ == 0 || ttl_s < q->alias_ttl_s)
        q->alias_ttl_s = ttl_s;
    q->unproved = q->unproved || !q->trusted || !dns_reply_is_authentic(reply);
    memcpy(q->alias, alias, sizeof(q->alias));
    question_forget_best(q);
    q->asked = q->spent = 0;
    q->round = 0;
    return true;
}

/* The try is over. */
static void
question_conclude(struct dns_question *q)
{
    q->answered = !question_may_go_on(q);
    question_close(q);
    question_keep_best(q);
    if (q->answered && question_follow(q))
        q->answered = false;
}

static void
question_settle(void *context)
{
    struct dns_question *q = context;
    question_conclude(q);
    if (!q->answered && question_choose(q)) {
        question_try(q);
        return;
    }
    q->answered = true;
    q->done(q->context);
}

/* ---- public ---- */

void
dns_question_init(struct dns_question *q, struct dns_asker *asker, const char *name,
                  enum dns_type type, void (*done)(void *context), void *context)
{
    *q = (struct dns_question){.asker = asker,
                               .name = name,
                               .type = type,
                               .done = done,
                               .context = context,
                               .generation = asker->servers.generation,
                               .settling = {.run = question_settle},
                               .best = {.code = ARES_ETIMEOUT}};
}

void
dns_question_ask(struct dns_question *q)
{
    /* Each has yielded: they are asked again, without end; patience ends the query. */
    if (!question_choose(q)) {
        q->round = 0;
        q->spent = 0;
        (void)question_choose(q);
    }
    question_try(q);
}

void
dns_question_yield(struct dns_question *q)
{
    if (q->answered)
        return;
    if (!q->settling.queued)
        q->now.code = ARES_ETIMEOUT;
    question_conclude(q);
}

void
dns_question_stop(struct dns_question *q)
{
    question_close(q);
    free(q->now.bytes);
    q->now = (struct dns_tried){0};
}

void
dns_question_free(struct dns_question *q)
{
    free(q->now.bytes);
    free(q->best.bytes);
    free(q->joined);
}
