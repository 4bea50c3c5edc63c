/* Health of server addresses, and the order in which they are tried.
 *
 * Addresses are known apart from sites: a server that fails is avoided in each session
 * of each site that has it, while the site's other servers keep it alive. Those not
 * reported longest are forgotten first. */
#include "sched/limits/host.h"

#include "base/memory.h"
#include "sched/limits/limits_internal.h"
#include "sched/limits/retry.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>
#include <uthash.h>
#include <utlist.h>

enum { SERVICE_SHARE = 4, FAILURES_MAX = 1000 };

#define SERVICE_MAX_MS INT64_C(3600000)
#define WEIGHT_ONE     INT64_C(1000000000000)

struct host {
    UT_hash_handle hh;
    struct host *prev, *next;
    int64_t until_ms, service_us, good_at_ms; /* as in host_view; service_us -1 =
                                               * none */
    unsigned failures;
    char address[];
};

struct hosts {
    struct host *by_address;
    struct host *oldest; /* longest unreported first */
};

struct hosts *
hosts_new(void)
{
    return memory_new(sizeof(struct hosts));
}

static void
host_drop(struct hosts *hosts, struct host *h)
{
    HASH_DEL(hosts->by_address, h);
    DL_DELETE(hosts->oldest, h);
    free(h);
}

void
hosts_free(struct hosts **hosts)
{
    if (*hosts == NULL)
        return;
    while ((*hosts)->oldest != NULL)
        host_drop(*hosts, (*hosts)->oldest);
    free(*hosts);
    *hosts = NULL;
}

size_t
hosts_count(const struct hosts *hosts)
{
    return HASH_COUNT(hosts->by_address);
}

static struct host *
host_find(const struct hosts *hosts, struct text address)
{
    struct host *h;
    HASH_FIND(hh, hosts->by_address, address.at, address.length, h);
    return h;
}

static struct host *
host_insert(struct hosts *hosts, struct text address)
{
    if (hosts_count(hosts) >= HOSTS_MAX)
        host_drop(hosts, hosts->oldest);
    struct host *h = memory_new(sizeof(*h) + address.length + 1);
    text_copy(h->address, address.length + 1, address);
    h->service_us = -1;
    HASH_ADD_KEYPTR(hh, hosts->by_address, h->address, address.length, h);
    DL_APPEND(hosts->oldest, h);
    return h;
}

/* The host of the address, made if missing, moved to the end of the reported ones. */
static struct host *
host_report(struct hosts *hosts, struct text address)
{
    assert(address.length > 0 && address.length <= HOSTS_ADDRESS_MAX);
    struct host *h = host_find(hosts, address);
    if (h == NULL)
        return host_insert(hosts, address);
    DL_DELETE(hosts->oldest, h);
    DL_APPEND(hosts->oldest, h);
    return h;
}

static int64_t
host_clip(int64_t value, int64_t low, int64_t high)
{
    return value < low ? low : value > high ? high : value;
}

void
hosts_good(struct hosts *hosts, int64_t now_ms, struct text address, int64_t service_ms)
{
    struct host *h = host_report(hosts, address);
    int64_t service_us = host_clip(service_ms, 0, SERVICE_MAX_MS) * 1000;
    if (h->service_us < 0)
        h->service_us = service_us;
    else
        h->service_us += (service_us - h->service_us) / SERVICE_SHARE;
    h->good_at_ms = now_ms;
    h->until_ms = 0;
    h->failures = 0;
}

static bool
is_forgiven(const struct host *h, int64_t now_ms)
{
    return h->failures <= HOSTS_SLIPS && h->until_ms == 0 && h->good_at_ms != 0 &&
           now_ms - h->good_at_ms <= HOSTS_FRESH_MS;
}

void
hosts_bad(struct hosts *hosts, int64_t now_ms, struct text address, uint64_t *random)
{
    struct host *h = host_report(hosts, address);
    /* Sessions that were opened before the hold fail one after the other; together they
     * are one failure. */
    if (now_ms < h->until_ms)
        return;
    h->failures += h->failures < FAILURES_MAX;
    if (is_forgiven(h, now_ms))
        return;
    /* Forgiven failures do not lengthen the first hold. */
    if (h->until_ms == 0)
        h->failures = 1;
    int64_t hold = HOSTS_HOLD_MIN_MS;
    for (unsigned i = 1; i < h->failures && hold < HOSTS_HOLD_MAX_MS; i++)
        hold *= 2;
    hold = hold > HOSTS_HOLD_MAX_MS ? HOSTS_HOLD_MAX_MS : hold;
    h->until_ms = now_ms + retry_jitter_ms(hold, random);
}

static struct host_view
host_view_of(const struct host *h, int64_t now_ms)
{
    struct host_view v = {.state = HOST_UNKNOWN, .service_ms = -1};
    if (h == NULL)
        return v;
    v.state = now_ms < h->until_ms ? HOST_HELD
              : h->failures > 0    ? HOST_SUSPECT
                                   : HOST_OK;
    v.until_ms = h->until_ms;
    if (h->service_us >= 0)
        v.service_ms = (h->service_us + 500) / 1000;
    v.good_at_ms = h->good_at_ms;
    v.failures = h->failures;
    return v;
}

struct host_view
hosts_find(const struct hosts *hosts, int64_t now_ms, struct text address)
{
    return host_view_of(host_find(hosts, address), now_ms);
}

/* A random number below limit, by the generator of retries: a tenth of ten times as
 * much. */
static int64_t
chance(int64_t limit, uint64_t *random)
{
    int64_t base = (limit - 1) * 10;
    return limit <= 1 ? 0 : retry_jitter_ms(base, random) - base;
}

static void
swap(size_t *a, size_t *b)
{
    size_t old = *a;
    *a = *b;
    *b = old;
}

/* At least a millisecond, so that every weight is bounded. */
static int64_t
host_weight(const struct host *h, int64_t fastest_us)
{
    int64_t us = h == NULL || h->service_us < 0 ? fastest_us : h->service_us;
    return WEIGHT_ONE / (us < 1000 ? 1000 : us);
}

/* Draws the addresses one after the other, with weights by speed. A fixed order would
 * send all mail to the fastest and learn nothing of the others; a new address counts as
 * fast as the fastest, so that it is tried. hosts[i] belongs to the address of order[i],
 * or is NULL. */
static void
host_shuffle(struct host *const *known, size_t *order, size_t count, uint64_t *random)
{
    int64_t fastest = SERVICE_MAX_MS * 1000, sum = 0;
    for (size_t i = 0; i < count; i++) {
        const struct host *h = known[order[i]];
        if (h != NULL && h->service_us >= 0 && h->service_us < fastest)
            fastest = h->service_us;
    }
    for (size_t i = 0; i < count; i++)
        sum += host_weight(known[order[i]], fastest);
    for (size_t i = 0; i + 1 < count; i++) {
        int64_t drawn = chance(sum, random);
        size_t chosen = i;
        while (chosen + 1 < count &&
               drawn >= host_weight(known[order[chosen]], fastest))
            drawn -= host_weight(known[order[chosen++]], fastest);
        swap(&order[i], &order[chosen]);
        sum -= host_weight(known[order[i]], fastest);
    }
}

/* Appends the members from..to with that state; returns their number. */
static size_t
host_gather(struct host *const *known, int64_t now_ms, size_t from, size_t to,
            enum host_state low, enum host_state high, size_t *order)
{
    size_t count = 0;
    for (size_t i = from; i < to; i++) {
        enum host_state state = host_view_of(known[i], now_ms).state;
        if (state >= low && state <= high)
            order[count++] = i;
    }
    return count;
}

static void
sort_held(struct host *const *known, size_t *order, size_t count)
{
    for (size_t i = 1; i < count; i++)
        for (size_t j = i;
             j > 0 && known[order[j]]->until_ms < known[order[j - 1]]->until_ms; j--)
            swap(&order[j], &order[j - 1]);
}

void
hosts_order(const struct hosts *hosts, int64_t now_ms, const struct text *addresses,
            const int *groups, size_t count, uint64_t *random, size_t *order)
{
    struct host **known = memory_array(count + 1, sizeof(*known));
    size_t done = 0, end;
    for (size_t i = 0; i < count; i++)
        known[i] = host_find(hosts, addresses[i]);
    /* Within a preference (RFC 5321 §5.1) by health; held addresses of all preferences
     * come last, the one whose hold ends first before the others: a session must have
     * something to try. */
    for (size_t from = 0; from < count; from = end) {
        for (end = from + 1; end < count && groups[end] == groups[from]; end++)
            continue;
        assert(end == count || groups[end] > groups[from]);
        size_t usable =
            host_gather(known, now_ms, from, end, HOST_UNKNOWN, HOST_OK, order + done);
        host_shuffle(known, order + done, usable, random);
        done += usable;
        size_t doubtful = host_gather(known, now_ms, from, end, HOST_SUSPECT,
                                      HOST_SUSPECT, order + done);
        host_shuffle(known, order + done, doubtful, random);
        done += doubtful;
    }
    size_t held =
        host_gather(known, now_ms, 0, count, HOST_HELD, HOST_HELD, order + done);
    sort_held(known, order + done, held);
    assert(done + held == count);
    free(known);
}

void
hosts_shift(struct hosts *hosts, int64_t delta_ms)
{
    struct host *h;
    DL_FOREACH (hosts->oldest, h) {
        if (h->until_ms != 0)
            h->until_ms += delta_ms;
        if (h->good_at_ms != 0)
            h->good_at_ms += delta_ms;
    }
}
