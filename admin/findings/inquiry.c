/* A table of questions with their answers, and a line of those that wait. */
#include "admin/findings/inquiry.h"

#include "admin/findings/greeting.h"
#include "base/buffer.h"
#include "base/memory.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <uthash.h>

enum { TURN_MS = 200, TLSA_TEXTS_MAX = 16 * 1024 };

struct inquiry_item {
    struct inquiry *inquiry;
    enum inquiry_kind kind;
    struct dns_query *query;
    struct greeting *greeting;
    bool is_running;
    struct inquiry_answer *answer; /* NULL: none yet */
    struct inquiry_item *next;     /* in the line */
    UT_hash_handle hh;
    char key[]; /* a letter for the kind in front */
};

struct inquiry {
    struct inquiry_settings settings;
    struct inquiry_item *items;
    struct inquiry_item *first, **last; /* those that wait */
    size_t running, bytes;
    int64_t begin_ms, end_ms;
    bool has_news, is_cut;
    /* Name servers: an answer has come; INQUIRY_ROOT has failed; they are silent. */
    bool has_heard, has_failed, is_dead;
    const struct inquiry_item *missing;
};

/* --- Answers ------------------------------------------------------------------------ */

static size_t
inquiry_size(const struct spf_answer *d)
{
    size_t size = 0;
    for (size_t i = 0; i < d->count; i++) {
        size += d->texts != NULL ? sizeof(*d->texts) + d->texts[i].length : 0;
        size += d->hosts != NULL ? sizeof(*d->hosts) + d->hosts[i].length + 1 : 0;
        size += d->addresses != NULL ? sizeof(*d->addresses) : 0;
    }
    return size + d->count * sizeof(unsigned);
}

static const struct text *
inquiry_copy_texts(const struct text *from, size_t count, char **at, char **octets)
{
    struct text *list = (struct text *)(void *)*at;
    for (size_t i = 0; i < count; i++) {
        memcpy(*octets, from[i].at, from[i].length);
        list[i] = text_of(*octets, from[i].length);
        *octets += from[i].length + 1;
    }
    *at += count * sizeof(*list);
    return list;
}

/* Into one allocation. */
static struct inquiry_answer *
inquiry_copy(const struct inquiry_answer *from)
{
    const struct spf_answer *d = &from->data;
    size_t lists = d->count * (2 * sizeof(struct text) + sizeof(struct net_address) +
                               sizeof(unsigned));
    struct inquiry_answer *copy =
        memory_new(sizeof(*copy) + lists + inquiry_size(d) + d->count + 1);
    char *at = (char *)(copy + 1), *octets = at + lists;
    *copy = *from;
    if (d->texts != NULL)
        copy->data.texts = inquiry_copy_texts(d->texts, d->count, &at, &octets);
    if (d->hosts != NULL)
        copy->data.hosts = inquiry_copy_texts(d->hosts, d->count, &at, &octets);
    if (d->addresses != NULL && d->count > 0) {
        memcpy(at, d->addresses, d->count * sizeof(*d->addresses));
        copy->data.addresses = (const struct net_address *)(void *)at;
        at += d->count * sizeof(*d->addresses);
    }
    if (from->preferences != NULL && d->count > 0) {
        memcpy(at, from->preferences, d->count * sizeof(unsigned));
        copy->preferences = (const unsigned *)(void *)at;
    }
    return copy;
}

/* Each would take as long to find that out again. One that refuses some questions is
 * not silent. */
static void
inquiry_see_silence(struct inquiry_item *item, const struct inquiry_answer *answer)
{
    struct inquiry *q = item->inquiry;
    struct inquiry_item *other, *next;
    bool failed = answer->status == DNS_TRY_AGAIN;
    q->has_heard |= item->kind < INQUIRY_DNS && !failed;
    q->has_failed |= item->kind == INQUIRY_ROOT && failed;
    if (q->is_dead || q->has_heard || !q->has_failed || item->kind >= INQUIRY_DNS ||
        loop_monotonic_ms(q->settings.loop) - q->begin_ms < INQUIRY_DEAD_MS)
        return;
    q->is_dead = true;
    HASH_ITER (hh, q->items, other, next) {
        if (other->kind >= INQUIRY_DNS || other->answer != NULL)
            continue;
        if (other->query != NULL)
            dns_cancel(&other->query);
        inquiry_answered(other, answer);
    }
}

void
inquiry_answered(struct inquiry_item *item, const struct inquiry_answer *answer)
{
    struct inquiry *q = item->inquiry;
    struct inquiry_answer much = {.status = DNS_TRY_AGAIN,
                                  .reason = "there are too many answers"};
    if (item->answer != NULL)
        return;
    q->bytes += inquiry_size(&answer->data);
    if (q->bytes > INQUIRY_BYTES_MAX) {
        q->is_cut = true;
        answer = &much;
    }
    item->answer = inquiry_copy(answer);
    item->answer->data.found = answer->status == DNS_FOUND       ? SPF_RECORDS
                               : answer->status == DNS_TRY_AGAIN ? SPF_UNKNOWN
                                                                 : SPF_VOID;
    q->running -= item->is_running;
    item->is_running = false;
    q->has_news = true;
    inquiry_see_silence(item, answer);
}

/* --- Questions ---------------------------------------------------------------------- */

/* Into bytes; those that do not fit are omitted. */
static size_t
inquiry_spell_tlsa(const struct dns_answer *from, struct buffer *bytes,
                   struct text *texts)
{
    size_t ends[DNS_TLSA_MAX], count = 0, start = 0;
    for (size_t i = 0; i < from->count && count < DNS_TLSA_MAX; i++) {
        const struct dns_tlsa *r = &from->tlsa[i];
        bool fits = buffer_format(bytes, "%u %u %u ", (unsigned)r->usage,
                                  (unsigned)r->selector, (unsigned)r->matching);
        for (size_t at = 0; at < r->data.length; at++)
            fits = fits && buffer_format(bytes, "%02x",
                                         (unsigned)(unsigned char)r->data.at[at]);
        if (!fits)
            break;
        ends[count++] = bytes->length;
    }
    for (size_t i = 0; i < count; start = ends[i++])
        texts[i] = text_of(bytes->at + start, ends[i] - start);
    return count;
}

static void
inquiry_on_tlsa(void *context, const struct dns_answer *from)
{
    struct inquiry_item *item = context;
    struct inquiry_answer answer = {.status = from->status, .secure = from->secure};
    struct text texts[DNS_TLSA_MAX];
    struct buffer bytes;
    item->query = NULL;
    buffer_init(&bytes, TLSA_TEXTS_MAX);
    snprintf(answer.reason, sizeof(answer.reason), "%s", from->reason);
    answer.data.texts = texts;
    if (from->status == DNS_FOUND)
        answer.data.count = inquiry_spell_tlsa(from, &bytes, texts);
    inquiry_answered(item, &answer);
    buffer_free(&bytes);
}

static void
inquiry_on_dns(void *context, const struct dns_answer *from)
{
    struct inquiry_item *item = context;
    struct inquiry_answer answer = {.status = from->status, .secure = from->secure};
    struct text texts[DNS_MX_MAX];
    unsigned preferences[DNS_MX_MAX];
    item->query = NULL;
    answer.data.count = from->status == DNS_FOUND ? from->count : 0;
    snprintf(answer.reason, sizeof(answer.reason), "%s", from->reason);
    for (size_t i = 0; i < answer.data.count && i < DNS_MX_MAX; i++) {
        if (item->kind == INQUIRY_MX) {
            texts[i] = text_from(from->mx[i].host);
            preferences[i] = from->mx[i].preference;
        } else if (item->kind == INQUIRY_HOSTS || item->kind == INQUIRY_ALIAS) {
            texts[i] = text_from(from->hosts[i]);
        }
    }
    if (item->kind == INQUIRY_TEXTS)
        answer.data.texts = from->texts;
    else if (item->kind == INQUIRY_ADDRESSES)
        answer.data.addresses = from->addresses;
    else
        answer.data.hosts = texts;
    if (item->kind == INQUIRY_MX)
        answer.preferences = preferences;
    inquiry_answered(item, &answer);
}

static void
inquiry_on_greeting(void *context, bool good, const char *text)
{
    struct inquiry_item *item = context;
    struct inquiry_answer answer = {.status = good ? DNS_FOUND : DNS_TRY_AGAIN};
    struct text words = text_from(text);
    if (good) {
        answer.data.texts = &words;
        answer.data.count = 1;
    } else {
        snprintf(answer.reason, sizeof(answer.reason), "%s", text);
    }
    inquiry_answered(item, &answer);
}

static void
inquiry_start_greeting(struct inquiry_item *item, const struct net_address *to)
{
    const struct inquiry_settings *s = &item->inquiry->settings;
    struct net_address from;
    bool bound = bind_address_for(&s->bind, to->family, &from);
    item->greeting = greeting_new(s->loop, s->net, to, bound ? &from : NULL,
                                  s->hostname, inquiry_on_greeting, item);
}

static void
inquiry_start(struct inquiry_item *item)
{
    struct inquiry *q = item->inquiry;
    const struct inquiry_settings *s = &q->settings;
    const char *name = item->key + 1;
    struct net_address address = {0};
    item->is_running = true;
    q->running++;
    switch (item->kind) {
    case INQUIRY_MX:
        item->query = dns_find_mx(s->dns, name, inquiry_on_dns, item);
        return;
    case INQUIRY_ADDRESSES:
        item->query = dns_find_published(s->dns, DNS_PUBLISHED_ADDRESSES, name,
                                         inquiry_on_dns, item);
        return;
    case INQUIRY_ALIAS:
        item->query = dns_find_alias(s->dns, name, inquiry_on_dns, item);
        return;
    case INQUIRY_ROOT:
        item->query = dns_find_published(s->validating, DNS_PUBLISHED_ROOT, name,
                                         inquiry_on_dns, item);
        return;
    case INQUIRY_HOSTS:
        if (net_address_parse_ip(text_from(name), &address))
            item->query = dns_find_hosts(s->dns, &address, inquiry_on_dns, item);
        return;
    case INQUIRY_TEXTS:
        item->query = dns_find_texts(s->dns, name, inquiry_on_dns, item);
        return;
    case INQUIRY_TLSA:
        item->query = dns_find_tlsa(s->validating, name, inquiry_on_tlsa, item);
        return;
    case INQUIRY_GREETING:
        if (net_address_parse(text_from(name), 0, &address))
            inquiry_start_greeting(item, &address);
        return;
    case INQUIRY_LOGIN:
    case INQUIRY_WAY:
    case INQUIRY_POLICY:
    case INQUIRY_KINDS:
        break;
    }
    s->sources[item->kind].start(s->sources[item->kind].context, item, name);
}

static void
inquiry_start_waiting(struct inquiry *q)
{
    while (q->first != NULL && q->running < INQUIRY_RUNNING_MAX) {
        struct inquiry_item *item = q->first;
        q->first = item->next;
        if (q->first == NULL)
            q->last = &q->first;
        if (item->answer == NULL)
            inquiry_start(item);
    }
}

const struct inquiry_answer *
inquiry_ask(struct inquiry *q, enum inquiry_kind kind, const char *key)
{
    static const struct inquiry_answer over = {
        .status = DNS_TRY_AGAIN,
        .data = {.found = SPF_UNKNOWN},
        .reason = "no time is left, or too much was asked"};
    static const struct inquiry_answer silent = {.status = DNS_TRY_AGAIN,
                                                 .data = {.found = SPF_UNKNOWN},
                                                 .reason =
                                                     "the name servers do not answer"};
    char full[INQUIRY_KEY_MAX];
    struct inquiry_item *item;
    snprintf(full, sizeof(full), "%c%s", 'a' + (int)kind, key);
    text_lower(full, kind < INQUIRY_DNS ? strlen(full) : 0);
    HASH_FIND_STR(q->items, full, item);
    if (item != NULL) {
        q->missing = item->answer == NULL ? item : q->missing;
        return item->answer;
    }
    if (q->is_dead && kind < INQUIRY_DNS)
        return &silent;
    if (HASH_COUNT(q->items) >= INQUIRY_ITEMS_MAX ||
        loop_monotonic_ms(q->settings.loop) >= q->end_ms) {
        q->is_cut = true;
        return &over;
    }
    item = memory_new(sizeof(*item) + strlen(full) + 1);
    item->inquiry = q;
    item->kind = kind;
    memcpy(item->key, full, strlen(full) + 1);
    HASH_ADD_STR(q->items, key, item);
    *q->last = item;
    q->last = &item->next;
    q->missing = item;
    inquiry_start_waiting(q);
    return NULL;
}

const struct inquiry_item *
inquiry_missing(struct inquiry *q)
{
    const struct inquiry_item *missing = q->missing;
    q->missing = NULL;
    return missing;
}

bool
inquiry_is_answered(const struct inquiry_item *item)
{
    return item->answer != NULL;
}

/* --- Time --------------------------------------------------------------------------- */

static void
inquiry_give_up(struct inquiry *q)
{
    struct inquiry_item *item, *next;
    struct inquiry_answer late = {.status = DNS_TRY_AGAIN};
    snprintf(late.reason, sizeof(late.reason), "no answer within %d s",
             INQUIRY_MS / 1000);
    HASH_ITER (hh, q->items, item, next) {
        if (item->answer != NULL)
            continue;
        dns_cancel(&item->query);
        greeting_free(&item->greeting);
        q->is_cut = true;
        inquiry_answered(item, &late);
    }
    q->first = NULL;
    q->last = &q->first;
}

bool
inquiry_wait(struct inquiry *q)
{
    q->has_news = false;
    while (!q->has_news) {
        inquiry_start_waiting(q);
        if (q->running == 0)
            return false;
        loop_turn(q->settings.loop, TURN_MS);
        if (loop_monotonic_ms(q->settings.loop) >= q->end_ms)
            inquiry_give_up(q);
    }
    inquiry_start_waiting(q);
    return true;
}

bool
inquiry_is_cut(const struct inquiry *q)
{
    return q->is_cut;
}

struct inquiry *
inquiry_new(const struct inquiry_settings *settings)
{
    struct inquiry *q = memory_new(sizeof(*q));
    q->settings = *settings;
    q->last = &q->first;
    q->begin_ms = loop_monotonic_ms(settings->loop);
    q->end_ms = q->begin_ms + INQUIRY_MS;
    return q;
}

void
inquiry_free(struct inquiry **inquiry)
{
    struct inquiry *q = *inquiry;
    struct inquiry_item *item, *next;
    *inquiry = NULL;
    if (q == NULL)
        return;
    HASH_ITER (hh, q->items, item, next) {
        HASH_DEL(q->items, item);
        dns_cancel(&item->query);
        greeting_free(&item->greeting);
        free(item->answer);
        free(item);
    }
    free(q);
}
