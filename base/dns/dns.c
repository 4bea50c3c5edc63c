/* DNS look-ups: the line of queries, and the name servers of the system.
 *
 * A query has one or two questions (dns_question.c), and is in one of three lines: queued,
 * asked (it may have channels), or again. At most DNS_OPEN_MAX have channels. Anyone can
 * make us look up names whose servers are silent; so while others wait, a query without an
 * answer gives up its channels after half a try, and asks anew behind them. `patience`
 * limits the whole time. Answers are posted: users may start and cancel queries, or free
 * struct dns, when they get the answer. */
#include "base/dns/dns.h"

#include "base/dns/dns_question.h"
#include "base/dns/dns_reply.h"
#include "base/dns/dns_servers.h"
#include "base/dns/dns_texts.h"
#include "base/disk/disk.h"
#include "base/loop/loop.h"
#include "base/memory.h"

#define CARES_NO_DEPRECATED /* only functions that both 1.18 and 1.34 have */
#include <ares.h>

#include <assert.h>
#include <errno.h>
#include <netdb.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <utlist.h>

enum {
    TRY_MS = 5000,
    TRIES = 3,
    PATIENCE_TRIES = 6, /* at most 6 * TRY_MS until the answer */
    TURN_PARTS = 2,     /* half of TRY_MS: then a query yields to a waiting one */
    RESOLV_CONF_MAX = 64 * 1024,
    TROUBLE_MAX = 240
};

static const char system_conf[] = "/etc/resolv.conf";

struct dns {
    struct loop *loop;
    ares_channel local;        /* for the system's hosts; asks no name server */
    struct dns_asker asker;    /* its servers are never none */
    const char *resolv_conf;   /* NULL: dns_servers counts */
    int64_t read_ms;           /* monotonic; of it */
    char trouble[TROUBLE_MAX]; /* with it; "": none */
    struct dns_texts *texts;
    struct dns_query *queued;       /* wait for channels... */
    struct dns_query *again;        /* ...behind these, for other ones */
    struct dns_query *asked;        /* have some, or need none; in their order */
    struct loop_timer turns;        /* runs while queries wait */
    size_t open;                    /* queries with channels; at most DNS_OPEN_MAX */
    void (*deliver)(void *context); /* answers a query, then the next one may ask */
};

struct dns_query {
    struct dns *dns;
    struct dns_query *prev, *next;
    char name[DNS_NAME_MAX];
    struct dns_answer *known; /* the answer is known without a question */
    char *texts;              /* of it */
    bool is_open;             /* may have channels; false: waits, or needs none */
    struct dns_query **line;  /* the list of struct dns that it is in */
    int64_t asked_ms;         /* monotonic */
    struct dns_question questions[2];
    size_t count, open;
    struct loop_task answering;
    struct loop_timer patience;
    dns_answered *done; /* NULL: cancelled or answered */
    void *context;
};

/* ---- the answer ---- */

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
    dns_question_read(&query->questions[0], &six);
    dns_question_read(&query->questions[1], &four);
    if (six.count + four.count > 0) {
        memset(out, 0, sizeof(*out));
        merge(query->dns->loop, &six, &four, out);
    } else if (four.status == DNS_TRY_AGAIN || six.status == DNS_NO_NAME) {
        *out = four;
    } else {
        *out = six;
    }
}

/* ---- name servers ---- */

static void
dns_say(const struct dns *dns, bool wrong, const char *text)
{
    if (dns->asker.said != NULL)
        dns->asker.said(dns->asker.said_context, wrong, text);
}

/* Other servers may say something else. */
static void
dns_forget_texts(struct dns *dns)
{
    dns_texts_free(&dns->texts);
    dns->texts = dns_texts_new();
}

/* The file cannot be used: the servers stay. */
static void
dns_complain(struct dns *dns, const char *what)
{
    char text[TROUBLE_MAX], servers[DNS_SERVERS_TEXT_MAX];
    (void)dns_servers_list(&dns->asker.servers, false, servers);
    snprintf(text, sizeof(text), "%.80s %.60s; asked is %.60s", dns->resolv_conf, what,
             servers);
    if (strcmp(text, dns->trouble) == 0)
        return;
    memcpy(dns->trouble, text, sizeof(text));
    dns_say(dns, true, text);
}

static void
dns_take_servers(struct dns *dns, const struct dns_servers *fresh)
{
    char text[DNS_SERVERS_TEXT_MAX + 120], servers[DNS_SERVERS_TEXT_MAX];
    bool is_other = dns_servers_replace(&dns->asker.servers, fresh);
    if (is_other)
        dns_forget_texts(dns);
    if (!is_other && dns->trouble[0] == '\0')
        return;
    dns->trouble[0] = '\0';
    (void)dns_servers_list(fresh, false, servers);
    snprintf(text, sizeof(text), "name servers are now those of %.80s: %s",
             dns->resolv_conf, servers);
    dns_say(dns, false, text);
}

/* The whole file each time: whoever replaces it, and however, there is nothing else that
 * would have to be kept and could be wrong. */
static void
dns_read_system(struct dns *dns)
{
    struct dns_servers fresh;
    char *content = NULL, why[80];
    size_t length = 0;
    int error = disk_read_regular(dns->resolv_conf, RESOLV_CONF_MAX, &content, &length);
    dns->read_ms = loop_monotonic_ms(dns->loop);
    dns_servers_init(&fresh);
    if (error == 0)
        dns_servers_read(&fresh, text_of(content, length));
    free(content);
    if (error == -ENOENT) {
        dns_complain(dns, "is missing");
    } else if (error != 0) {
        snprintf(why, sizeof(why), "cannot be read: %s", strerror(-error));
        dns_complain(dns, why);
    } else if (fresh.count == 0) {
        dns_complain(dns, "names no name server that can be used");
    } else {
        dns_take_servers(dns, &fresh);
    }
}

static void
dns_follow(struct dns *dns)
{
    int64_t passed_ms = loop_monotonic_ms(dns->loop) - dns->read_ms;
    if (dns->resolv_conf != NULL && passed_ms >= DNS_FOLLOW_MS)
        dns_read_system(dns);
}

/* ---- lines ---- */

static void
dns_enter_line(struct dns_query *query, struct dns_query **line)
{
    query->line = line;
    DL_APPEND(*line, query);
}

static void
on_question_done(void *context)
{
    struct dns_query *query = context;
    assert(query->open > 0);
    if (--query->open == 0)
        loop_post(query->dns->loop, &query->answering, query->dns->deliver, query);
}

/* Questions that were answered before the query gave way are not asked again. */
static void
dns_ask(struct dns_query *query)
{
    struct dns *dns = query->dns;
    query->asked_ms = loop_monotonic_ms(dns->loop);
    query->is_open = true;
    query->open = 0;
    dns->open++;
    dns_enter_line(query, &dns->asked);
    for (size_t i = 0; i < query->count; i++) {
        if (query->questions[i].answered)
            continue;
        query->open++;
        dns_question_ask(&query->questions[i]);
    }
    if (query->open == 0)
        loop_post(dns->loop, &query->answering, dns->deliver, query);
}

static void
dns_close(struct dns_query *query)
{
    for (size_t i = 0; i < query->count; i++)
        dns_question_stop(&query->questions[i]);
    assert(!query->is_open || query->dns->open > 0);
    query->dns->open -= query->is_open;
    query->is_open = false;
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
    return dns->asker.try_ms / TURN_PARTS - passed_ms;
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
        for (size_t i = 0; i < query->count; i++)
            dns_question_yield(&query->questions[i]);
        dns_close(query);
        dns_enter_line(query, &dns->again);
    }
    dns_admit(dns);
}

static void
release_query(void *object)
{
    struct dns_query *query = object;
    for (size_t i = 0; i < query->count; i++)
        dns_question_free(&query->questions[i]);
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
    dns_close(query);
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
        dns_question_read(&query->questions[0], &answer);
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
    dns_question_init(&query->questions[query->count++], &query->dns->asker,
                      query->name, type, on_question_done, query);
}

static struct dns_query *
query_start(struct dns_query *query)
{
    struct dns *dns = query->dns;
    dns_follow(dns);
    /* Posted, too: an answer never comes before the function that asks has returned. */
    if (query->known != NULL) {
        dns_enter_line(query, &dns->asked);
        loop_post(dns->loop, &query->answering, dns_deliver, query);
    } else {
        dns_enter_line(query, &dns->queued);
        loop_timer_start(dns->loop, &query->patience,
                         dns->asker.try_ms * PATIENCE_TRIES, dns_deliver, query);
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
    dns_answer_explain(known_new(query), DNS_NO_NAME, "not a valid host name");
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

/* ---- public ---- */

/* All options are given, so that c-ares does not read resolv.conf, too. */
static int
open_local(struct dns *dns)
{
    struct in_addr unasked = {.s_addr = htonl(INADDR_LOOPBACK)};
    char lookups[] = "f";
    struct ares_options options = {
        .ndots = 1, .servers = &unasked, .nservers = 1, .lookups = lookups};
    return ares_init_options(&dns->local, &options,
                             ARES_OPT_NDOTS | ARES_OPT_SERVERS | ARES_OPT_LOOKUPS |
                                 ARES_OPT_DOMAINS | ARES_OPT_SORTLIST);
}

static void
release_dns(void *object)
{
    struct dns *dns = object;
    dns_texts_free(&dns->texts);
    free(dns);
}

const char *
dns_version(void)
{
    return ares_version(NULL);
}

/* servers: NULL: those of resolv_conf. */
static struct dns *
dns_make(struct loop *loop, const struct dns_servers *servers, const char *resolv_conf,
         char *error, size_t error_size)
{
    static const struct net_address here = {
        .family = NET_IPV4, .ip = {127, 0, 0, 1},
             .port = DNS_SERVER_PORT
    };
    struct dns *dns = memory_new(sizeof(*dns));
    dns->loop = loop;
    dns->deliver = dns_deliver;
    dns->turns.fire = take_turns;
    dns->resolv_conf = resolv_conf;
    dns->asker = (struct dns_asker){.loop = loop, .try_ms = TRY_MS, .tries = TRIES};
    dns_servers_init(&dns->asker.servers);
    dns->texts = dns_texts_new();
    int code = ares_library_init(ARES_LIB_INIT_ALL);
    if (code == ARES_SUCCESS && (code = open_local(dns)) != ARES_SUCCESS)
        ares_library_cleanup();
    if (code != ARES_SUCCESS) {
        snprintf(error, error_size, "c-ares: %s", ares_strerror(code));
        release_dns(dns);
        return NULL;
    }
    if (servers != NULL) {
        dns->asker.servers = *servers;
    } else {
        (void)dns_servers_add(&dns->asker.servers, &here);
        dns_read_system(dns);
    }
    return dns;
}

struct dns *
dns_new(struct loop *loop, struct text servers, char *error, size_t error_size)
{
    struct dns_servers list;
    dns_servers_init(&list);
    if (!dns_servers_parse(&list, servers, error, error_size))
        return NULL;
    return list.count > 0 ? dns_make(loop, &list, NULL, error, error_size)
                          : dns_make(loop, NULL, system_conf, error, error_size);
}

struct dns *
dns_new_following(struct loop *loop, const char *resolv_conf, char *error,
                  size_t error_size)
{
    return dns_make(loop, NULL, resolv_conf, error, error_size);
}

void
dns_listen(struct dns *dns, dns_said *said, void *context)
{
    dns->asker.said = said;
    dns->asker.said_context = context;
    if (dns->trouble[0] != '\0')
        dns_say(dns, true, dns->trouble);
}

void
dns_reload(struct dns *dns)
{
    if (dns->resolv_conf != NULL)
        dns_read_system(dns);
}

bool
dns_trouble(struct dns *dns, char *out, size_t size)
{
    char dead[DNS_SERVERS_TEXT_MAX];
    dns_follow(dns);
    if (dns->trouble[0] != '\0') {
        snprintf(out, size, "%s", dns->trouble);
        return true;
    }
    size_t count = dns_servers_list(&dns->asker.servers, true, dead);
    snprintf(out, size, "%zu of %zu name servers %s not answer: %s", count,
             dns->asker.servers.count, count == 1 ? "does" : "do", dead);
    return count > 0;
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
    dns->asker.try_ms = try_ms;
    dns->asker.tries = tries;
}

void
dns_set_trust(struct dns *dns, enum dns_trust trust)
{
    bool before = dns_is_trusted(dns);
    dns->asker.trust = trust;
    if (before != dns_is_trusted(dns))
        dns_forget_texts(dns);
}

bool
dns_is_trusted(const struct dns *dns)
{
    return dns_asker_is_trusted(&dns->asker);
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
    dns_answer_explain(known_new(query), DNS_NO_DATA,
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
