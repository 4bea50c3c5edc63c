/* Common parts of the tests of registries. */
#include "base/log/log_internal.h"
#include "t/support/registry_kit.h"

static void
on_recovered(void *context, bool is_empty)
{
    struct world *w = context;
    w->recovered++;
    w->emptied += is_empty;
}

void
registry_world_open(struct world *w)
{
    *w = (struct world){.loop = loop_new()};
    buffer_init(&w->said, 1 << 20);
    w->log = log_new(w->loop, LOG_STYLE_PETREL, LOG_LEVEL_DEBUG);
    log_capture(w->log, &w->said);
}

void
world_connect(struct world *w)
{
    char error[256];
    w->net = net_new(w->loop);
    w->dns = dns_new(w->loop, TEXT("127.0.0.1:1"), error, sizeof(error));
    if (w->dns == NULL)
        abort();
}

struct breaker *
breaker_of(struct registry *r)
{
    return r->redis != NULL ? &registry_redis_connection(r->redis)->breaker
                            : &r->breaker;
}

void
registry_be_patient(struct registry *r, int64_t ms)
{
    r->patience_ms = ms;
    if (r->redis != NULL)
        registry_redis_connection(r->redis)->patience_ms = ms;
}

struct registry *
registry_of(struct world *w, const char *host, const char *setting, char error[256])
{
    struct registry_setup setup = {.loop = w->loop,
                                   .log = w->log,
                                   .net = w->net,
                                   .dns = w->dns,
                                   .tls = w->tls,
                                   .host = host,
                                   .recovered = on_recovered,
                                   .context = w};
    struct registry_place place;
    if (!registry_parse(text_from(setting), &place, error, 256))
        return NULL;
    struct registry *r = registry_new(&setup, &place, error, 256);
    /* No answer is to be late since the machine is busy with other things; and what
     * has failed is tried again at once. */
    if (r != NULL)
        registry_be_patient(r, PATIENCE_MS);
    if (r != NULL && breaker_of(r)->retry_ms > 0)
        breaker_of(r)->retry_ms = 1;
    return r;
}

void
registry_world_start(struct world *w, const char *host, const char *setting)
{
    char error[256] = "";
    registry_world_open(w);
    if (text_starts(text_from(setting), TEXT("redis")))
        world_connect(w);
    w->registry = registry_of(w, host, setting, error);
    if (w->registry == NULL) {
        printf("Bail out! %s\n", error);
        exit(1);
    }
}

void
registry_world_end(struct world *w)
{
    registry_free(&w->registry);
    if (w->net != NULL) {
        dns_free(&w->dns);
        net_free(&w->net);
    }
    log_free(&w->log);
    loop_free(&w->loop);
    buffer_free(&w->said);
}

bool
has_said(const struct world *w, const char *words)
{
    char *all = text_string(buffer_text(&w->said));
    bool found = strstr(all, words) != NULL;
    free(all);
    return found;
}

int64_t
now_of(const struct world *w)
{
    return loop_monotonic_ms(w->loop);
}

void
on_told(void *context, enum registry_answer answer, const char *host)
{
    struct told *t = context;
    t->times++;
    t->answer = answer;
    snprintf(t->host, sizeof(t->host), "%s", host);
}

void
key_from(unsigned number, unsigned char key[REGISTRY_KEY_SIZE])
{
    char name[32];
    snprintf(name, sizeof(name), "key %u", number);
    digest_plain(text_from(name), key);
}

void
claim_start(struct world *w, struct told *t, unsigned number, int64_t ttl_ms)
{
    unsigned char key[REGISTRY_KEY_SIZE];
    key_from(number, key);
    memset(t, 0, sizeof(*t));
    registry_claim(w->registry, &t->claim, key, ttl_ms, on_told, t);
    if (t->times != 0)
        ok_named(false, "an answer from within a claim");
}

const char *
told_text(const struct told *t)
{
    if (t->times != 1)
        return t->times == 0 ? "nothing" : "more than once";
    switch (t->answer) {
    case REGISTRY_OWN:
        return "own";
    case REGISTRY_OTHER:
        return t->host;
    case REGISTRY_UNAVAILABLE:
        break;
    }
    return "unavailable";
}

const char *
claim_for(struct world *w, unsigned number, int64_t ttl_ms)
{
    static struct told t;
    claim_start(w, &t, number, ttl_ms);
    until(w, t.times > 0);
    return told_text(&t);
}

const char *
claim(struct world *w, unsigned number)
{
    return claim_for(w, number, 3600000);
}

const char *
sure_for(struct world *w, unsigned number, int64_t ttl_ms)
{
    const char *told = claim_for(w, number, ttl_ms);
    for (int i = 0; i < 10 && strcmp(told, "unavailable") == 0; i++) {
        until(w, registry_is_up(w->registry));
        told = claim_for(w, number, ttl_ms);
    }
    return told;
}

const char *
sure(struct world *w, unsigned number)
{
    return sure_for(w, number, 3600000);
}

void
close_key(struct world *w, unsigned number, int64_t memory_ms)
{
    unsigned char key[REGISTRY_KEY_SIZE];
    key_from(number, key);
    registry_close(w->registry, key, memory_ms);
}

void
pass_ms(struct world *w, int64_t ms)
{
    until_ms(w, ms, false);
}

static int
remove_entry(const char *path, const struct stat *status, int type, struct FTW *walk)
{
    (void)status, (void)type, (void)walk;
    return remove(path);
}

void
remove_tree(const char *directory)
{
    nftw(directory, remove_entry, 8, FTW_DEPTH | FTW_PHYS);
}

void
registry_make_home(char home[64])
{
    folder_make(home, 64, "registry");
}
