/* DNS look-ups: c-ares on the loop; our own code parses the replies.
 *
 * A query is in one of three lines: queued, asked (it may have a channel), or again. At
 * most DNS_OPEN_MAX have a channel. Anyone can make us look up names whose servers are
 * silent; so while others wait, a query without an answer gives up its channel after
 * half a try, and asks anew behind them. `patience` limits the whole time. c-ares calls
 * back into on_reply() only, which copies and posts: users may start and cancel
 * queries, or free struct dns, when they get the answer. */
#include "base/dns/dns.h"

#include "base/buffer.h"
#include "base/dns/dns_internal.h"
#include "base/dns/dns_reply.h"
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
    SERVERS_MAX = 16,
    SERVER_PORT = 53,
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
    ares_channel local;    /* for the system's files; asks no name server */
    struct buffer servers; /* for c-ares; never empty */
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
};

/* Each query has its own channel: c-ares 1.18 sends all concurrent queries of a
 * channel from one port, and restarts all of them when one TCP connection fails. */
struct dns_query {
    struct dns *dns;
    struct dns_query *prev, *next;
    char name[DNS_NAME_MAX];
    struct dns_answer *known; /* the answer is known without a question */
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

static void
read_question(const struct question *question, struct dns_answer *answer)
{
    const char *name = question->query->name;
    int code = question->code;
    memset(answer, 0, sizeof(*answer));
    /* c-ares returns ENODATA also when a server answers with an unknown error code. */
    if ((code == ARES_SUCCESS || code == ARES_ENODATA) &&
        !dns_reply_read(text_of(question->bytes, question->length), !question->cut,
                        question->type, answer))
        code = ARES_EBADRESP;
    else if (code == ARES_SUCCESS && answer->count == 0)
        code = ARES_ENODATA;
    if (code == ARES_SUCCESS)
        answer->status = DNS_FOUND;
    else if (code == ARES_ENODATA)
        explain(answer, DNS_NO_DATA, "%.100s has no %s", name,
                question->type == DNS_TYPE_MX ? "MX record" : "address");
    else if (code == ARES_ENOTFOUND || code == ARES_EBADNAME)
        explain(answer, DNS_NO_NAME, "%.100s does not exist (NXDOMAIN)", name);
    else
        explain(answer, DNS_TRY_AGAIN, "%s look-up of %.80s: %.50s",
                question->type == DNS_TYPE_MX ? "MX" : "Address", name,
                ares_strerror(code));
}

/* Each address is first at times: several hosts behind a name share the load. */
static void
dns_shuffle(struct loop *loop, struct net_address *addresses, size_t count)
{
    for (size_t i = count; i > 1; i--) {
        size_t other = (size_t)(loop_random(loop) % i);
        struct net_address saved = addresses[i - 1];
        addresses[i - 1] = addresses[other];
        addresses[other] = saved;
    }
}

/* Families alternate, IPv6 first; random order within each. */
static void
merge(struct loop *loop, struct dns_answer *six, struct dns_answer *four,
      struct dns_answer *out)
{
    dns_shuffle(loop, six->addresses, six->count);
    dns_shuffle(loop, four->addresses, four->count);
    out->status = DNS_FOUND;
    for (size_t i = 0; out->count < DNS_ADDRESS_MAX; i++) {
        if (i >= six->count && i >= four->count)
            break;
        if (i < six->count)
            out->addresses[out->count++] = six->addresses[i];
        if (i < four->count && out->count < DNS_ADDRESS_MAX)
            out->addresses[out->count++] = four->addresses[i];
    }
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
        out->ttl_s = four.count == 0 || (six.count > 0 && six.ttl_s < four.ttl_s)
                         ? six.ttl_s
                         : four.ttl_s;
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
        question->cut = length > REPLY_MAX;
        question->length = question->cut ? REPLY_MAX : (size_t)length;
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
    return ares_set_servers_ports_csv(query->channel, dns->servers.at);
}

static void
dns_enter_line(struct dns_query *query, struct dns_query **line)
{
    query->line = line;
    DL_APPEND(*line, query);
}

/* Questions that were answered before the query gave way are not asked again. */
static void
dns_ask(struct dns_query *query)
{
    struct dns *dns = query->dns;
    int code = open_channel(query);
    query->asked_ms = loop_monotonic_ms(dns->loop);
    dns_enter_line(query, &dns->asked);
    for (size_t i = 0; i < query->count;
         i++) /* before asking: c-ares may answer immediately */
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
            ares_query(query->channel, query->name, DNS_CLASS_IN,
                       (int)query->questions[i].type, on_reply, &query->questions[i]);
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
    for (size_t i = 0; i < query->count; i++)
        free(query->questions[i].bytes);
    free(query->known);
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

/* RFC 6761 §6.3: never asked outside. */
static bool
is_localhost(const char *name)
{
    struct text t = text_from(name);
    return text_equal(t, TEXT("localhost")) || text_ends_nocase(t, TEXT(".localhost"));
}

/* The system's hosts file counts before name servers. */
static void
look_here(struct dns_query *query)
{
    static const unsigned char one[16] = {[15] = 1}, loopback[4] = {127, 0, 0, 1};
    struct dns_answer six = {0}, four = {0};
    add_from_hosts(query, AF_INET6, &six);
    add_from_hosts(query, AF_INET, &four);
    if (six.count + four.count == 0 && is_localhost(query->name)) {
        dns_answer_add(&six, NET_IPV6, one, sizeof(one));
        dns_answer_add(&four, NET_IPV4, loopback, sizeof(loopback));
    }
    if (six.count + four.count > 0)
        merge(query->dns->loop, &six, &four, known_new(query));
}

/* ---- name servers ---- */

static bool
add_server(struct dns *dns, const char *spelt)
{
    return buffer_format(&dns->servers, "%s%s", dns->servers.length > 0 ? "," : "",
                         spelt);
}

/* In the spelling that all versions of c-ares understand. */
static bool
take_server(struct dns *dns, struct text word)
{
    struct net_address address;
    char spelt[NET_ADDRESS_TEXT_MAX];
    if (net_address_parse_ip(word, &address))
        address.port = SERVER_PORT;
    else if (!net_address_parse(word, SERVER_PORT, &address))
        return false;
    if (address.family == NET_UNIX || address.port == 0)
        return false;
    net_address_format(&address, spelt);
    return add_server(dns, spelt);
}

static bool
take_servers(struct dns *dns, struct text servers, char *error, size_t error_size)
{
    struct text word;
    int count = 0;
    while (text_word(&servers, ", \t\r\n", &word)) {
        if (++count > SERVERS_MAX) {
            snprintf(error, error_size, "more than %d name servers", SERVERS_MAX);
            return false;
        }
        if (!take_server(dns, word)) {
            snprintf(error, error_size, "name server '%.*s' is not address[:port]",
                     TEXT_ARGS(word));
            return false;
        }
    }
    return true;
}

/* From resolv.conf, read now; later the sandbox may forbid it. */
static int
take_servers_of_system(struct dns *dns)
{
    struct ares_addr_port_node *list = NULL;
    int code = ares_get_servers_ports(dns->local, &list), count = 0;
    for (struct ares_addr_port_node *s = list; s != NULL; s = s->next) {
        struct net_address a = {.family = s->family == AF_INET6 ? NET_IPV6 : NET_IPV4};
        char spelt[NET_ADDRESS_TEXT_MAX];
        a.port = s->udp_port > 0 ? (uint16_t)s->udp_port : SERVER_PORT;
        memcpy(a.ip, &s->addr, a.family == NET_IPV6 ? 16 : 4);
        net_address_format(&a, spelt);
        if (++count <= SERVERS_MAX && !add_server(dns, spelt))
            code = ARES_ENOMEM;
    }
    ares_free_data(list);
    return code;
}

static int
open_local(struct dns *dns)
{
    struct ares_options options = {.flags = ARES_FLAG_EDNS};
    int code = ares_init_options(&dns->local, &options, ARES_OPT_FLAGS);
    if (code != ARES_SUCCESS || dns->servers.length > 0)
        return code;
    code = take_servers_of_system(dns);
    if (code == ARES_SUCCESS && dns->servers.length == 0)
        code = ARES_ENODATA;
    if (code != ARES_SUCCESS)
        ares_destroy(dns->local);
    return code;
}

static void
release_dns(void *object)
{
    struct dns *dns = object;
    buffer_free(&dns->servers);
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
    buffer_init(&dns->servers, (size_t)SERVERS_MAX * NET_ADDRESS_TEXT_MAX);
    if (!take_servers(dns, servers, error, error_size)) {
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
    DL_FOREACH_SAFE (d->queued, query, next) {
        dns_let_go(query);
    }
    DL_FOREACH_SAFE (d->again, query, next) {
        dns_let_go(query);
    }
    DL_FOREACH_SAFE (d->asked, query, next) {
        dns_let_go(query);
    }
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

struct dns_query *
dns_find_mx(struct dns *dns, const char *name, dns_answered *done, void *context)
{
    struct dns_query *query = query_new(dns, done, context);
    if (dns_take_name(query, name))
        add_question(query, DNS_TYPE_MX);
    return query_start(query);
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

void
dns_cancel(struct dns_query **query)
{
    struct dns_query *q = *query;
    *query = NULL;
    if (q != NULL && q->done != NULL)
        dns_let_go(q);
}
