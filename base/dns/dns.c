/* DNS look-ups: c-ares on the loop; our own code parses the replies.
 *
 * A query is in one of three lines: queued, asked (it may have a channel), or again. At
 * most DNS_OPEN_MAX have a channel. Anyone can make us look up names whose servers are
 * silent; so while others wait, a query without an answer gives up its channel after
 * half a try, and asks anew behind them. `patience` limits the whole time. c-ares calls
 * back into on_reply() only, which copies and posts: users may start and cancel queries,
 * or free struct dns, when they get the answer. */
#include "base/dns/dns.h"

#include "base/dns/dns_reply.h"
#include "base/dns/dns_servers.h"
#include "base/dns/dns_texts.h"
#include "base/disk/disk.h"
#include "base/loop/loop.h"
#include "base/memory.h"

#define CARES_NO_DEPRECATED /* only functions that both 1.18 and 1.34 have */
#include <ares.h>

#include <assert.h>
#include <netdb.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <utlist.h>

enum {
    TRY_MS = 5000,
    TRIES = 3,
    PATIENCE_TRIES = 6,   /* at most 6 * TRY_MS until the answer */
    TURN_PARTS = 2,       /* half of TRY_MS: then a query yields to a waiting one */
    REPLY_MAX = 8 * 1024, /* octets kept of a reply; the answer section comes first */
    LONG_REPLY_MAX = UINT16_MAX, /* of one to TXT and TLSA */
    AUTHENTIC =
        0x20, /* AD in octet 3: asks for the same in the reply (RFC 6840 §5.7) */
    RESOLV_CONF_MAX = 64 * 1024,
    EDNS_SIZE = 1232 /* fits one IPv6 packet */
};

static_assert(REPLY_MAX <= sizeof(struct dns_answer), "the promise of dns.h");

struct dns_socket {
    struct dns_query *query;
    int descriptor; /* c-ares opens and closes it */
    struct loop_watch *watch;
    struct dns_socket *prev, *next;
};

struct dns {
    struct loop *loop;
    ares_channel local;         /* for the system's files; asks no name server */
    struct dns_servers servers; /* never empty */
    enum dns_trust trust;
    struct dns_texts *texts;
    int64_t try_ms;
    int tries;
    struct dns_query *queued;       /* wait for a channel... */
    struct dns_query *again;        /* ...behind these, for another one */
    struct dns_query *asked;        /* have one, or need none; in their order */
    struct loop_timer turns;        /* runs while queries wait */
    size_t open;                    /* channels; at most DNS_OPEN_MAX */
    void (*deliver)(void *context); /* answers a query, then the next one may ask */
};

/* One question of c-ares, which points here until it has called back. */
struct question {
    struct dns_query *query;
    enum dns_type type;
    int code; /* c-ares' */
    bool answered;
    bool cut; /* bytes are only a part of the reply */
    char *bytes;
    size_t length;
    char *joined; /* texts of bytes */
};

/* Each query has its own channel: c-ares 1.18 sends all concurrent queries of a
 * channel from one port, and restarts all of them when one TCP connection fails. */
struct dns_query {
    struct dns *dns;
    struct dns_query *prev, *next;
    char name[DNS_NAME_MAX];
    struct dns_answer *known; /* the answer is known without a question */
    char *texts;              /* of it */
    ares_channel channel;     /* NULL: waits for one, or needs none */
    struct dns_socket *sockets;
    struct loop_timer timer; /* the next time-out of c-ares */
    struct dns_query **line; /* the list of struct dns that it is in */
    int64_t asked_ms;        /* monotonic */
    struct question questions[2];
    size_t count, open;
    struct loop_task answering;
    struct loop_timer patience;
    dns_answered *done; /* NULL: cancelled or answered */
    void *context;
};

/* ---- the answer ---- */

static void __attribute__((format(printf, 3, 4)))
explain(struct dns_answer *answer, enum dns_status status, const char *format, ...)
{
    va_list list;
    va_start(list, format);
    answer->status = status;
    answer->reason[0] = '\0';
    if (status != DNS_FOUND)
        vsnprintf(answer->reason, sizeof(answer->reason), format, list);
    va_end(list);
}

/* c-ares' code for the reply. */
static int
read_reply(struct question *question, struct dns_answer *answer)
{
    static const int codes[] = {ARES_SUCCESS,   ARES_EFORMERR, ARES_ESERVFAIL,
                                ARES_ENOTFOUND, ARES_ENOTIMP,  ARES_EREFUSED};
    struct text reply = text_of(question->bytes, question->length);
    int code = dns_reply_code(reply);
    if (code != 0)
        return code > 0 && code < (int)(sizeof(codes) / sizeof(codes[0]))
                   ? codes[code]
                   : ARES_EBADRESP;
    if (question->type == DNS_TYPE_TXT && question->joined == NULL)
        question->joined = memory_new(question->length);
    if (!dns_reply_read(reply, !question->cut, question->type, question->joined,
                        answer))
        return ARES_EBADRESP;
    return answer->count > 0 ? ARES_SUCCESS : ARES_ENODATA;
}

static void
read_question(struct question *question, struct dns_answer *answer)
{
    const char *name = question->query->name;
    int code = question->code;
    memset(answer, 0, sizeof(*answer));
    if (code == ARES_SUCCESS)
        code = read_reply(question, answer);
    if (code == ARES_SUCCESS)
        answer->status = DNS_FOUND;
    else if (code == ARES_ENODATA)
        explain(answer, DNS_NO_DATA, "%.100s has no %s", name,
                dns_kind(question->type)->record);
    else if (code == ARES_ENOTFOUND || code == ARES_EBADNAME)
        explain(answer, DNS_NO_NAME, "%.100s does not exist (NXDOMAIN)", name);
    else
        explain(answer, DNS_TRY_AGAIN, "%s look-up of %.80s: %.50s",
                dns_kind(question->type)->lookup, name, ares_strerror(code));
    if (strcmp(answer->canonical, question->query->name) == 0)
        answer->canonical[0] = '\0';
    answer->secure = answer->status != DNS_TRY_AGAIN &&
                     dns_is_trusted(question->query->dns) &&
                     dns_reply_is_authentic(text_of(question->bytes, question->length));
}

static void
merge(struct loop *loop, struct dns_answer *six, struct dns_answer *four,
      struct dns_answer *out)
{
    dns_answer_shuffle(loop, six);
    dns_answer_shuffle(loop, four);
    dns_answer_merge(six, four, out);
}

/* Without an address the milder answer counts: a family that could not be looked up may
 * have one, and a name that is known for one type exists. */
static void
read_addresses(struct dns_query *query, struct dns_answer *out)
{
    struct dns_answer six, four;
    read_question(&query->questions[0], &six);
    read_question(&query->questions[1], &four);
    if (six.count + four.count > 0) {
        memset(out, 0, sizeof(*out));
        merge(query->dns->loop, &six, &four, out);
    } else if (four.status == DNS_TRY_AGAIN || six.status == DNS_NO_NAME) {
        *out = four;
    } else {
        *out = six;
    }
}

/* ---- a channel ---- */

/* Called by c-ares: copies the reply and posts, no more. */
static void
on_reply(void *context, int code, int timeouts, unsigned char *bytes, int length)
{
    struct question *question = context;
    struct dns_query *query = question->query;
    (void)timeouts;
    assert(query->open > 0);
    query->open--;
    if (code == ARES_EDESTRUCTION || query->done == NULL)
        return; /* its channel is being destroyed */
    question->answered = true;
    question->code = code;
    if (length > 0) {
        bool is_long =
            question->type == DNS_TYPE_TXT || question->type == DNS_TYPE_TLSA;
        int kept_max = is_long ? LONG_REPLY_MAX : REPLY_MAX;
        question->cut = length > kept_max;
        question->length = (size_t)(question->cut ? kept_max : length);
        question->bytes = memory_new(question->length);
        memcpy(question->bytes, bytes, question->length);
    }
    if (query->open == 0)
        loop_post(query->dns->loop, &query->answering, query->dns->deliver, query);
}

/* Lets c-ares handle its time-outs, and asks for the next one. After every call that
 * changes its state; never inside its callbacks. */
static void
attend(void *context)
{
    struct dns_query *query = context;
    struct loop *loop = query->dns->loop;
    struct timeval wait;
    ares_process_fd(query->channel, ARES_SOCKET_BAD, ARES_SOCKET_BAD);
    if (ares_timeout(query->channel, NULL, &wait) == NULL)
        loop_timer_stop(loop, &query->timer);
    else
        /* Rounded up: a timer that fires too early would find nothing to do, again and
         * again. */
        loop_timer_start(loop, &query->timer,
                         (int64_t)wait.tv_sec * 1000 + (wait.tv_usec + 999) / 1000,
                         attend, query);
}

static void
dns_on_ready(void *context, int events)
{
    struct dns_socket *s = context;
    struct dns_query *query = s->query;
    int descriptor = s->descriptor;
    ares_process_fd(query->channel,
                    (events & LOOP_READ) != 0 ? descriptor : ARES_SOCKET_BAD,
                    (events & LOOP_WRITE) != 0 ? descriptor : ARES_SOCKET_BAD);
    attend(query);
}

/* c-ares may close a socket within dns_on_ready() of it: hence loop_release(). */
static void
on_socket(void *context, ares_socket_t descriptor, int readable, int writable)
{
    struct dns_query *query = context;
    struct loop *loop = query->dns->loop;
    struct dns_socket *s;
    int events = (readable ? LOOP_READ : 0) | (writable ? LOOP_WRITE : 0);
    DL_SEARCH_SCALAR(query->sockets, s, descriptor, descriptor);
    if (s == NULL && events != 0) {
        s = memory_new(sizeof(*s));
        s->query = query;
        s->descriptor = descriptor;
        s->watch = loop_watch_new(loop, descriptor, events, dns_on_ready, s);
        DL_APPEND(query->sockets, s);
    } else if (s != NULL && events != 0) {
        loop_watch_set(s->watch, events);
    } else if (s != NULL) {
        loop_watch_free(&s->watch);
        DL_DELETE(query->sockets, s);
        loop_release(loop, free, s);
    }
}

/* All options are given, so that c-ares opens no file: resolv.conf may have been
 * replaced by one outside the sandbox's rules. */
static int
open_channel(struct dns_query *query)
{
    struct dns *dns = query->dns;
    struct in_addr replaced = {.s_addr = htonl(INADDR_LOOPBACK)};
    char lookups[] = "b";
    struct ares_options options = {.flags = ARES_FLAG_EDNS,
                                   .ednspsz = EDNS_SIZE,
                                   .timeout = (int)dns->try_ms,
                                   .tries = dns->tries,
                                   .ndots = 1,
                                   .servers = &replaced,
                                   .nservers = 1,
                                   .lookups = lookups,
                                   .sock_state_cb = on_socket,
                                   .sock_state_cb_data = query};
    int mask = ARES_OPT_FLAGS | ARES_OPT_EDNSPSZ | ARES_OPT_TIMEOUTMS | ARES_OPT_TRIES |
               ARES_OPT_NDOTS | ARES_OPT_SERVERS | ARES_OPT_LOOKUPS | ARES_OPT_DOMAINS |
               ARES_OPT_SORTLIST | ARES_OPT_SOCK_STATE_CB;
    int code;
#ifdef ARES_OPT_QUERY_CACHE /* off: the name server has one */
    mask |= ARES_OPT_QUERY_CACHE;
#endif
#ifdef ARES_OPT_UDP_MAX_QUERIES /* a port for A, another one for AAAA */
    mask |= ARES_OPT_UDP_MAX_QUERIES;
    options.udp_max_queries = 1;
#endif
#ifdef ARES_FLAG_DNS0x20
    options.flags |= ARES_FLAG_DNS0x20;
#endif
    code = ares_init_options(&query->channel, &options, mask);
    if (code != ARES_SUCCESS) {
        query->channel = NULL;
        return code;
    }
    dns->open++;
    return ares_set_servers_ports_csv(query->channel, dns->servers.spelt.at);
}

static void
dns_enter_line(struct dns_query *query, struct dns_query **line)
{
    query->line = line;
    DL_APPEND(*line, query);
}

/* c-ares 1.18 sends the id as it is given. */
static void
ask_question(struct question *question)
{
    struct dns_query *query = question->query;
    unsigned short id = (unsigned short)loop_random(query->dns->loop);
    unsigned char *packet = NULL;
    int size = 0;
    int code = ares_create_query(query->name, DNS_CLASS_IN, (int)question->type, id, 1,
                                 &packet, &size, EDNS_SIZE);
    if (code == ARES_SUCCESS) {
        packet[3] |= AUTHENTIC;
        ares_send(query->channel, packet, size, on_reply, question);
        ares_free_string(packet);
    } else {
        on_reply(question, code, 0, NULL, 0);
    }
}

/* Questions that were answered before the query gave way are not asked again. */
static void
dns_ask(struct dns_query *query)
{
    struct dns *dns = query->dns;
    int code = open_channel(query);
    query->asked_ms = loop_monotonic_ms(dns->loop);
    dns_enter_line(query, &dns->asked);
    for (size_t i = 0; i < query->count; i++) /* c-ares may answer immediately */
        query->open += code == ARES_SUCCESS && !query->questions[i].answered;
    if (query->open == 0) {
        for (size_t i = 0; i < query->count; i++)
            if (!query->questions[i].answered)
                query->questions[i].code = code;
        loop_post(dns->loop, &query->answering, dns->deliver, query);
        return;
    }
    for (size_t i = 0; i < query->count; i++)
        if (!query->questions[i].answered)
            ask_question(&query->questions[i]);
    attend(query);
}

/* Never inside a callback of c-ares. */
static void
close_channel(struct dns_query *query)
{
    struct dns *dns = query->dns;
    loop_timer_stop(dns->loop, &query->timer);
    if (query->channel == NULL)
        return;
    ares_destroy(query->channel); /* calls back for open questions, closes sockets */
    query->channel = NULL;
    assert(query->open == 0 && query->sockets == NULL && dns->open > 0);
    dns->open--;
}

/* ---- queries ---- */

static struct dns_query *
first_waiting(const struct dns *dns)
{
    return dns->queued != NULL ? dns->queued : dns->again;
}

/* The oldest query in flight; NULL: each is about to be answered. */
static struct dns_query *
longest_out(const struct dns *dns)
{
    struct dns_query *query;
    DL_FOREACH (dns->asked, query)
        if (query->open > 0)
            return query;
    return NULL;
}

static int64_t
turn_left_ms(const struct dns *dns, const struct dns_query *query)
{
    int64_t passed_ms = loop_monotonic_ms(dns->loop) - query->asked_ms;
    return dns->try_ms / TURN_PARTS - passed_ms;
}

static void
dns_admit(struct dns *dns)
{
    struct dns_query *query;
    while ((query = first_waiting(dns)) != NULL && dns->open < DNS_OPEN_MAX) {
        DL_DELETE(*query->line, query);
        dns_ask(query);
    }
    /* While others wait, the oldest query gives way when its turn is over. */
    query = query != NULL ? longest_out(dns) : NULL;
    if (query != NULL)
        loop_timer_start(dns->loop, &dns->turns, turn_left_ms(dns, query),
                         dns->turns.fire, dns);
    else
        loop_timer_stop(dns->loop, &dns->turns);
}

/* Names with silent servers must not delay other queries, however many there are. A
 * partial answer is kept. */
static void
take_turns(void *context)
{
    struct dns *dns = context;
    struct dns_query *query;
    size_t fresh, others;
    DL_COUNT(dns->queued, query, fresh);
    DL_COUNT(dns->again, query, others);
    for (size_t wanted = fresh + others; wanted > 0; wanted--) {
        query = longest_out(dns);
        if (query == NULL || turn_left_ms(dns, query) > 0)
            break;
        DL_DELETE(*query->line, query);
        close_channel(query);
        dns_enter_line(query, &dns->again);
    }
    dns_admit(dns);
}

static void
release_query(void *object)
{
    struct dns_query *query = object;
    for (size_t i = 0; i < query->count; i++) {
        free(query->questions[i].bytes);
        free(query->questions[i].joined);
    }
    free(query->known);
    free(query->texts);
    free(query);
}

/* Ends the query. Never inside a callback of c-ares. */
static void
dns_let_go(struct dns_query *query)
{
    struct dns *dns = query->dns;
    assert(query->done != NULL);
    query->done = NULL;
    loop_unpost(dns->loop, &query->answering);
    loop_timer_stop(dns->loop, &query->patience);
    close_channel(query);
    DL_DELETE(*query->line, query);
    loop_release(dns->loop, release_query, query);
    dns_admit(dns);
}

static void
dns_deliver(void *context)
{
    struct dns_query *query = context;
    dns_answered *done = query->done;
    struct dns_answer answer;
    if (query->known != NULL)
        answer = *query->known;
    else if (query->count == 1)
        read_question(&query->questions[0], &answer);
    else
        read_addresses(query, &answer);
    answer.unasked = dns_is_in_line(query);
    if (query->known == NULL && query->questions[0].type == DNS_TYPE_TXT)
        dns_texts_keep(query->dns->texts, query->name, &answer,
                       loop_monotonic_ms(query->dns->loop));
    dns_let_go(query);
    /* Last, since it may end in dns_free(). */
    done(query->context, &answer);
}

static struct dns_query *
query_new(struct dns *dns, dns_answered *done, void *context)
{
    struct dns_query *query = memory_new(sizeof(*query));
    assert(done != NULL);
    query->dns = dns;
    query->done = done;
    query->context = context;
    return query;
}

/* Without a reply the query ends, at the latest by its patience, as timed out. */
static void
add_question(struct dns_query *query, enum dns_type type)
{
    query->questions[query->count++] =
        (struct question){.query = query, .type = type, .code = ARES_ETIMEOUT};
}

static struct dns_query *
query_start(struct dns_query *query)
{
    struct dns *dns = query->dns;
    /* Posted, too: an answer never comes before the function that asks has returned. */
    if (query->known != NULL) {
        dns_enter_line(query, &dns->asked);
        loop_post(dns->loop, &query->answering, dns_deliver, query);
    } else {
        dns_enter_line(query, &dns->queued);
        loop_timer_start(dns->loop, &query->patience, dns->try_ms * PATIENCE_TRIES,
                         dns_deliver, query);
        dns_admit(dns);
    }
    return query;
}

static struct dns_answer *
known_new(struct dns_query *query)
{
    query->known = memory_new(sizeof(*query->known));
    return query->known;
}

/* False, with the answer known, when such a name cannot exist. */
static bool
dns_take_name(struct dns_query *query, const char *name)
{
    if (dns_host_copy(query->name, text_from(name)))
        return true;
    explain(known_new(query), DNS_NO_NAME, "not a valid host name");
    return false;
}

/* ---- addresses that are known here ---- */

static void
add_from_hosts(struct dns_query *query, int family, struct dns_answer *answer)
{
    struct hostent *host = NULL;
    if (ares_gethostbyname_file(query->dns->local, query->name, family, &host) !=
        ARES_SUCCESS)
        return;
    for (char **ip = host->h_addr_list; *ip != NULL; ip++)
        dns_answer_add(answer, family == AF_INET6 ? NET_IPV6 : NET_IPV4, *ip,
                       (size_t)host->h_length);
    ares_free_hostent(host);
}

/* The system's hosts file counts before name servers. */
static void
look_here(struct dns_query *query)
{
    static const unsigned char one[16] = {[15] = 1}, loopback[4] = {127, 0, 0, 1};
    struct dns_answer six = {0}, four = {0};
    add_from_hosts(query, AF_INET6, &six);
    add_from_hosts(query, AF_INET, &four);
    if (six.count + four.count == 0 && dns_host_is_localhost(text_from(query->name))) {
        dns_answer_add(&six, NET_IPV6, one, sizeof(one));
        dns_answer_add(&four, NET_IPV4, loopback, sizeof(loopback));
    }
    if (six.count + four.count > 0)
        merge(query->dns->loop, &six, &four, known_new(query));
}

/* ---- name servers ---- */

/* From resolv.conf, read now; later the sandbox may forbid it. */
static int
take_servers_of_system(struct dns *dns)
{
    struct ares_addr_port_node *list = NULL;
    char *content = NULL;
    size_t length = 0;
    int code = ares_get_servers_ports(dns->local, &list);
    for (struct ares_addr_port_node *s = list; s != NULL; s = s->next) {
        struct net_address a = {.family = s->family == AF_INET6 ? NET_IPV6 : NET_IPV4};
        a.port = s->udp_port > 0 ? (uint16_t)s->udp_port : DNS_SERVER_PORT;
        memcpy(a.ip, &s->addr, a.family == NET_IPV6 ? 16 : 4);
        (void)dns_servers_add(&dns->servers, &a);
    }
    ares_free_data(list);
    if (disk_read_regular("/etc/resolv.conf", RESOLV_CONF_MAX, &content, &length) == 0)
        dns_servers_declare(&dns->servers, text_of(content, length));
    free(content);
    return code;
}

static int
open_local(struct dns *dns)
{
    struct ares_options options = {.flags = ARES_FLAG_EDNS};
    int code = ares_init_options(&dns->local, &options, ARES_OPT_FLAGS);
    if (code != ARES_SUCCESS || dns->servers.spelt.length > 0)
        return code;
    code = take_servers_of_system(dns);
    if (code == ARES_SUCCESS && dns->servers.spelt.length == 0)
        code = ARES_ENODATA;
    if (code != ARES_SUCCESS)
        ares_destroy(dns->local);
    return code;
}

static void
release_dns(void *object)
{
    struct dns *dns = object;
    buffer_free(&dns->servers.spelt);
    dns_texts_free(&dns->texts);
    free(dns);
}

/* ---- public ---- */

const char *
dns_version(void)
{
    return ares_version(NULL);
}

struct dns *
dns_new(struct loop *loop, struct text servers, char *error, size_t error_size)
{
    struct dns *dns = memory_new(sizeof(*dns));
    int code;
    dns->loop = loop;
    dns->try_ms = TRY_MS;
    dns->tries = TRIES;
    dns->deliver = dns_deliver;
    dns->turns.fire = take_turns;
    dns->texts = dns_texts_new();
    dns_servers_init(&dns->servers);
    if (!dns_servers_parse(&dns->servers, servers, error, error_size)) {
        release_dns(dns);
        return NULL;
    }
    code = ares_library_init(ARES_LIB_INIT_ALL);
    if (code == ARES_SUCCESS && (code = open_local(dns)) != ARES_SUCCESS)
        ares_library_cleanup();
    if (code != ARES_SUCCESS) {
        snprintf(error, error_size, "c-ares: %s", ares_strerror(code));
        release_dns(dns);
        return NULL;
    }
    return dns;
}

void
dns_free(struct dns **dns)
{
    struct dns *d = *dns;
    struct dns_query *query, *next;
    *dns = NULL;
    if (d == NULL)
        return;
    /* Those that wait first: otherwise dns_let_go() would let them ask. */
    struct dns_query **lines[] = {&d->queued, &d->again, &d->asked};
    for (size_t i = 0; i < 3; i++)
        DL_FOREACH_SAFE (*lines[i], query, next)
            dns_let_go(query);
    loop_timer_stop(d->loop, &d->turns);
    assert(d->open == 0);
    ares_destroy(d->local);
    ares_library_cleanup();
    loop_release(d->loop, release_dns, d);
}

void
dns_set_patience(struct dns *dns, int64_t try_ms, int tries)
{
    assert(try_ms > 0 && try_ms <= INT32_MAX && tries > 0);
    dns->try_ms = try_ms;
    dns->tries = tries;
}

void
dns_set_trust(struct dns *dns, enum dns_trust trust)
{
    bool before = dns_is_trusted(dns);
    dns->trust = trust;
    if (before == dns_is_trusted(dns))
        return;
    dns_texts_free(&dns->texts);
    dns->texts = dns_texts_new();
}

bool
dns_is_trusted(const struct dns *dns)
{
    return dns->trust == DNS_TRUST_AUTO ? dns->servers.vouched
                                        : dns->trust == DNS_TRUST_YES;
}

static struct dns_query *
dns_find(struct dns *dns, const char *name, enum dns_type type, dns_answered *done,
         void *context)
{
    struct dns_query *query = query_new(dns, done, context);
    if (dns_take_name(query, name))
        add_question(query, type);
    return query_start(query);
}

struct dns_query *
dns_find_mx(struct dns *dns, const char *name, dns_answered *done, void *context)
{
    return dns_find(dns, name, DNS_TYPE_MX, done, context);
}

struct dns_query *
dns_find_texts(struct dns *dns, const char *name, dns_answered *done, void *context)
{
    struct dns_query *query = query_new(dns, done, context);
    struct dns_answer kept;
    if (dns_take_name(query, name)) {
        query->texts = dns_texts_find(dns->texts, query->name,
                                      loop_monotonic_ms(dns->loop), &kept);
        if (query->texts != NULL)
            *known_new(query) = kept;
        else
            add_question(query, DNS_TYPE_TXT);
    }
    return query_start(query);
}

struct dns_query *
dns_find_tlsa(struct dns *dns, const char *name, dns_answered *done, void *context)
{
    if (dns_is_trusted(dns))
        return dns_find(dns, name, DNS_TYPE_TLSA, done, context);
    struct dns_query *query = query_new(dns, done, context);
    explain(known_new(query), DNS_NO_DATA,
            "no TLSA record is asked for: the name servers are not trusted");
    return query_start(query);
}

struct dns_query *
dns_find_alias(struct dns *dns, const char *name, dns_answered *done, void *context)
{
    return dns_find(dns, name, DNS_TYPE_CNAME, done, context);
}

struct dns_query *
dns_find_hosts(struct dns *dns, const struct net_address *address, dns_answered *done,
               void *context)
{
    char name[DNS_NAME_MAX];
    dns_reverse_name(address, name);
    return dns_find(dns, name, DNS_TYPE_PTR, done, context);
}

struct dns_query *
dns_find_addresses(struct dns *dns, const char *name, dns_answered *done, void *context)
{
    struct dns_query *query = query_new(dns, done, context);
    struct net_address literal;
    if (net_address_parse_ip(text_from(name), &literal)) {
        struct dns_answer *known = known_new(query);
        known->addresses[known->count++] = literal;
    } else if (dns_take_name(query, name)) {
        look_here(query);
        add_question(query, DNS_TYPE_AAAA);
        add_question(query, DNS_TYPE_A);
    }
    return query_start(query);
}

struct dns_query *
dns_find_published(struct dns *dns, enum dns_published what, const char *name,
                   dns_answered *done, void *context)
{
    static const enum dns_type types[] = {DNS_TYPE_AAAA, DNS_TYPE_SOA};
    struct dns_query *query = query_new(dns, done, context);
    if (what == DNS_PUBLISHED_ROOT)
        query->name[0] = '.';
    if (what == DNS_PUBLISHED_ROOT || dns_take_name(query, name))
        add_question(query, types[what]);
    if (what == DNS_PUBLISHED_ADDRESSES && query->count == 1)
        add_question(query, DNS_TYPE_A);
    return query_start(query);
}

bool
dns_is_in_line(const struct dns_query *query)
{
    return query->line == &query->dns->queued;
}

void
dns_cancel(struct dns_query **query)
{
    struct dns_query *q = *query;
    *query = NULL;
    if (q != NULL && q->done != NULL)
        dns_let_go(q);
}
