/* The bank and its script for Redis give the same answers. ASKS=n. */
#include "sched/limits/bank.h"
#include "t/support/must.h"
#include "t/support/registry_kit_redis.h"

#include <netinet/tcp.h>

#define START_US INT64_C(1700000000000000)

enum { ASKS_DEFAULT = 100000, SITES = 50, HOSTS = 30, BATCH = 50, NUMBERS = 5 };

/* A host's memory of a site. */
struct memory {
    int64_t asked;
    int counted, before, tokens;
};

static struct memory memories[SITES][HOSTS];
static uint64_t state = 1;

static unsigned
any(unsigned below)
{
    state = state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return (unsigned)(state >> 33) % below;
}

static struct bank_question
question_make(unsigned site, struct memory *m, int64_t period)
{
    static const double intervals[] = {1,       1000, 142857.142857142857, 60000, 3e7,
                                       1e6 / 3, 0};
    bool again = m->asked == period;
    if (!again)
        m->before = m->asked == period - 1 ? m->counted : 0;
    /* Sometimes a host has other settings than the rest. */
    unsigned kind = any(100) == 0 ? any(40) : site;
    return (struct bank_question){.interval_us = intervals[kind % 7],
                                  .burst = 1 + (int)(kind % 3) * 10,
                                  .limit = (int)(kind * 7 % 40),
                                  .want = (int)any(any(3) ? 10 : 3000),
                                  .weight = 1 + (int)any(any(2) ? 3 : 1000),
                                  .again = again,
                                  .back = (int)any((unsigned)m->tokens + 1),
                                  .before = m->before,
                                  .had = again ? m->counted : -1,
                                  .open = (int)any((unsigned)m->counted + 2),
                                  .need = (int)any(any(2) ? 3 : 40),
                                  .chance = any(1000000) / 1e6,
                                  .hosts = HOSTS};
}

struct batch {
    int64_t now_us;
    char keys[BATCH][16];
    struct bank_question questions[BATCH];
    struct bank_grant grants[BATCH];
};

static FILE *
redis_connect(unsigned port)
{
    struct sockaddr_in name = {.sin_family = AF_INET,
                               .sin_port = htons((uint16_t)port)};
    name.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    int fd = socket(AF_INET, SOCK_STREAM, 0);
    must(connect(fd, (struct sockaddr *)&name, sizeof(name)) == 0);
    int on = 1;
    must(setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on)) == 0);
    return fdopen(fd, "r+");
}

static void
put(FILE *redis, const char *words)
{
    fprintf(redis, "$%zu\r\n%s\r\n", strlen(words), words);
}

static void
put_number(FILE *redis, double number)
{
    char words[40];
    snprintf(words, sizeof(words), "%.17g", number);
    put(redis, words);
}

static void
put_question(FILE *redis, const struct bank_question *q)
{
    const double numbers[] = {q->interval_us, q->burst, q->limit, q->want,
                              q->weight,      q->again, q->back,  q->before,
                              q->had,         q->open,  q->need,  q->chance};
    for (size_t i = 0; i < sizeof(numbers) / sizeof(numbers[0]); i++)
        put_number(redis, numbers[i]);
}

static void
put_batch(FILE *redis, const struct batch *b)
{
    fprintf(redis, "*%d\r\n", 3 + BATCH + 4 + BATCH * 12);
    put(redis, "EVAL");
    put(redis, bank_script);
    put_number(redis, BATCH);
    for (int i = 0; i < BATCH; i++)
        put(redis, b->keys[i]);
    put_number(redis, BANK_PERIOD_US);
    put(redis, "3600000");
    put_number(redis, HOSTS);
    put_number(redis, (double)b->now_us);
    for (int i = 0; i < BATCH; i++)
        put_question(redis, &b->questions[i]);
    fflush(redis);
}

/* False: an error, which is printed. */
static bool
get_number(FILE *redis, char kind, int64_t *number)
{
    char line[256] = "";
    if (fgets(line, sizeof(line), redis) == NULL || line[0] != kind) {
        printf("# Redis: %s\n", line);
        return false;
    }
    *number = strtoll(line + 1, NULL, 10);
    return true;
}

/* How many answers differ; BATCH: Redis did not answer. */
static int
batch_compare(FILE *redis, const struct batch *b)
{
    int64_t count, n[NUMBERS];
    int differ = 0;
    put_batch(redis, b);
    if (!get_number(redis, '*', &count) || count != BATCH * NUMBERS)
        return BATCH;
    for (int i = 0; i < BATCH; i++) {
        for (int j = 0; j < NUMBERS; j++)
            if (!get_number(redis, ':', &n[j]))
                return BATCH;
        const struct bank_grant *g = &b->grants[i];
        if (n[0] == g->tokens && n[1] == g->sessions && n[2] == g->counted &&
            n[3] == g->unmet && n[4] == g->left_us)
            continue;
        if (differ++ == 0)
            printf("# %s: %d %d %d %d %" PRId64 " %" PRId64 " %" PRId64 " %" PRId64
                   " %" PRId64 " %" PRId64 "\n",
                   b->keys[i], g->tokens, g->sessions, g->counted, g->unmet, g->left_us,
                   n[0], n[1], n[2], n[3], n[4]);
    }
    return differ;
}

static void
batch_make(struct batch *b, struct bank *bank)
{
    int64_t period = b->now_us / BANK_PERIOD_US;
    for (int i = 0; i < BATCH; i++) {
        unsigned site = any(SITES);
        struct memory *m = &memories[site][any(HOSTS)];
        struct bank_question *q = &b->questions[i];
        *q = question_make(site, m, period);
        snprintf(b->keys[i], sizeof(b->keys[i]), "%u", site);
        b->grants[i] = bank_ask(bank, text_from(b->keys[i]), b->now_us, q);
        m->asked = period;
        m->counted = b->grants[i].counted;
        m->tokens = b->grants[i].tokens;
    }
}

/* The bank is forgotten by both after a rest. */
static void
batch_rest(FILE *redis, struct batch *b, int64_t *newest_us)
{
    int64_t none;
    fprintf(redis, "FLUSHALL\r\n");
    fflush(redis);
    must(get_number(redis, '+', &none));
    b->now_us = *newest_us += BANK_FORGET_US + any(BANK_PERIOD_US);
}

static void
test_equal(FILE *redis, long asks)
{
    static struct batch b = {.now_us = START_US};
    struct bank *bank = bank_new();
    long differ = 0, tokens = 0, sessions = 0;
    int64_t newest_us = START_US;
    for (long asked = 0; asked < asks; asked += BATCH) {
        b.now_us += any(BANK_PERIOD_US / 10);
        if (any(40) == 0)
            b.now_us += any(3 * BANK_PERIOD_US);
        if (any(100) == 0)
            b.now_us -= any(5 * BANK_PERIOD_US);
        newest_us = b.now_us > newest_us ? b.now_us : newest_us;
        if (any(200) == 0)
            batch_rest(redis, &b, &newest_us);
        batch_make(&b, bank);
        differ += batch_compare(redis, &b);
        for (int i = 0; i < BATCH; i++) {
            tokens += b.grants[i].tokens > 0;
            sessions += b.grants[i].sessions < b.questions[i].need;
        }
    }
    is_number(differ, 0, "every answer of the script is that of the bank");
    ok_named(tokens > asks / 20 && sessions > asks / 20,
             "of those that grant transactions, or fewer sessions than wanted, many");
    bank_free(&bank);
}

int
main(void)
{
    const char *asks = getenv("ASKS");
    struct server s = {.port = free_port()};
    folder_make(s.home, sizeof(s.home), "bank");
    if (!registry_redis_server_start(&s, "")) {
        printf("1..0 # SKIP no redis-server here (Debian: redis-tools)\n");
        folder_remove(s.home);
        return 0;
    }
    FILE *redis = redis_connect(s.port);
    must(redis != NULL);
    test_equal(redis, asks != NULL ? strtol(asks, NULL, 10) : ASKS_DEFAULT);
    fclose(redis);
    server_stop(&s);
    folder_remove(s.home);
    return done();
}
