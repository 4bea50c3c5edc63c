/* The common part of all registries: pending claims, time limits, a breaker, hosts'
 * names.
 *
 * A claim goes through the lists of the registry: `waiting` (a place has to be asked),
 * `asked` (the reply of Redis has not come; a directory answers within the call),
 * `answered`, and `telling` while its turn runs. done is called in a turn of its own,
 * never within registry_claim(), so a caller need not expect its answer there.
 * `waiting` and `asked` are in the order of their time limits: on_late() examines the
 * first of each.
 *
 * With any answer of a registry, or none, a claim is answered in time: at the latest as
 * `unavailable`, and then the host works alone. */
#include "defrag/registry/registry.h"

#include "base/memory.h"
#include "defrag/registry/registry_internal.h"

#include <assert.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <utlist.h>

/* registry_dir.c writes the name before numbers, with a space between them: so a name
 * has none. */
bool
registry_is_host(struct text name)
{
    return redis_is_name(name);
}

static const char *
registry_place_read_place(struct text setting, struct registry_place *place)
{
    if (text_equal(setting, TEXT("local")))
        return NULL;
    if (text_starts(setting, TEXT("dir:"))) {
        struct text path = text_after(setting, 4);
        place->kind = REGISTRY_DIR;
        if (!text_starts(path, TEXT("/")) || text_has_control(path))
            return "behind dir: there must be an absolute path";
        return text_copy(place->path, sizeof(place->path), path) ? NULL : "a long path";
    }
    place->kind = REGISTRY_REDIS;
    if (!redis_is_url(setting))
        return "it must be local, dir:/path, redis://host or rediss://host";
    return redis_place_parse(setting, &place->redis);
}

/* No error quotes the setting: it may have a password. */
bool
registry_parse(struct text setting, struct registry_place *place, char *error,
               size_t error_size)
{
    *place = (struct registry_place){.kind = REGISTRY_LOCAL};
    const char *wrong = setting.length >= REGISTRY_SETTING_MAX
                            ? "it is too long"
                            : registry_place_read_place(setting, place);
    if (wrong != NULL)
        snprintf(error, error_size, "%s", wrong);
    return wrong == NULL;
}

bool
registry_configure(struct text setting, struct text password,
                   struct registry_place *place, char *error, size_t error_size)
{
    const char *wrong = NULL;
    if (!registry_parse(setting, place, error, error_size))
        return false;
    /* defrag_registry is not a secret: `petrel check` would print the password. */
    if (place->redis.password[0] != '\0')
        wrong = "write the password in defrag_registry_password_file or "
                "defrag_registry_password, not here";
    else if (password.length > 0 && place->kind != REGISTRY_REDIS)
        wrong = "only Redis has a password (defrag_registry_password)";
    else if (password.length == 0 && place->redis.user[0] != '\0')
        wrong = "a user needs defrag_registry_password";
    else if (!text_copy(place->redis.password, sizeof(place->redis.password), password))
        wrong = "defrag_registry_password is longer than 256 bytes";
    if (wrong != NULL)
        snprintf(error, error_size, "%s", wrong);
    return wrong == NULL;
}

void
registry_place_text(const struct registry_place *place, char out[REGISTRY_SETTING_MAX])
{
    switch (place->kind) {
    case REGISTRY_LOCAL:
        snprintf(out, REGISTRY_SETTING_MAX, "local");
        break;
    case REGISTRY_DIR:
        snprintf(out, REGISTRY_SETTING_MAX, "dir:%.*s", REGISTRY_SETTING_MAX - 5,
                 place->path);
        break;
    case REGISTRY_REDIS:
        redis_place_text(&place->redis, out);
        break;
    }
}

/* A directory blocks its caller: one slow answer is enough. */
static const struct breaker dir_breaker = {
    .failures_max = 1, .pause_ms = 5000, .pause_max_ms = 300000};

static bool
registry_is_open(const struct registry *r)
{
    return r->redis != NULL ? !redis_is_up(registry_redis_connection(r->redis))
                            : breaker_is_open(&r->breaker);
}

static struct registry_claim **
list_of(struct registry *r, const struct registry_claim *claim)
{
    switch ((enum registry_claim_state)claim->state) {
    case CLAIM_WAITING:
        return &r->waiting;
    case CLAIM_ASKED:
        return &r->asked;
    case CLAIM_ANSWERED:
        return &r->answered;
    case CLAIM_TELLING:
        return &r->telling;
    case CLAIM_IDLE:
        break;
    }
    return NULL;
}

static void
registry_move(struct registry *r, struct registry_claim *claim,
              enum registry_claim_state to)
{
    struct registry_claim **list = list_of(r, claim);
    if (list != NULL)
        DL_DELETE(*list, claim);
    claim->state = (unsigned char)to;
    list = list_of(r, claim);
    if (list != NULL)
        DL_APPEND(*list, claim);
}

static void
on_tell(void *context)
{
    struct registry *r = context;
    struct registry_claim *claim;
    /* Answers from within done are reported in the next turn: a claim that is made anew
     * each time would keep this turn from ending. */
    assert(r->telling == NULL);
    DL_FOREACH (r->answered, claim)
        claim->state = CLAIM_TELLING;
    r->telling = r->answered;
    r->answered = NULL;
    /* From the head each time: done may cancel any other claim of the list. */
    while ((claim = r->telling) != NULL) {
        registry_move(r, claim, CLAIM_IDLE);
        claim->done(claim->context, claim->answer, claim->host);
    }
}

static void
answer_with(struct registry *r, struct registry_claim *claim,
            enum registry_answer answer, struct text host)
{
    assert(claim->state == CLAIM_WAITING || claim->state == CLAIM_ASKED ||
           claim->state == CLAIM_IDLE);
    bool fits = text_copy(claim->host, sizeof(claim->host), host);
    assert(fits);
    claim->answer = answer;
    switch (answer) {
    case REGISTRY_OWN:
        r->counts.own++;
        break;
    case REGISTRY_OTHER:
        r->counts.other++;
        break;
    case REGISTRY_UNAVAILABLE:
        r->counts.unavailable++;
        /* Its set is claimed later, when the registry answers again. */
        r->is_owing = true;
        break;
    }
    registry_move(r, claim, CLAIM_ANSWERED);
    loop_post(r->setup.loop, &r->tell, on_tell, r);
}

void
registry_answer(struct registry *r, struct registry_claim *claim,
                enum registry_answer answer)
{
    assert(answer != REGISTRY_OTHER);
    answer_with(r, claim, answer, TEXT(""));
}

/* The file or the value may have been written by anybody: a name that is not valid is
 * no answer. */
void
registry_answer_owner(struct registry *r, struct registry_claim *claim,
                      struct text owner)
{
    if (text_equal_nocase(owner, text_from(r->setup.host)))
        answer_with(r, claim, REGISTRY_OWN, TEXT(""));
    else if (registry_is_host(owner))
        answer_with(r, claim, REGISTRY_OTHER, owner);
    else
        answer_with(r, claim, REGISTRY_UNAVAILABLE, TEXT(""));
}

void
registry_asked(struct registry *r, struct registry_claim *claim)
{
    assert(claim->state == CLAIM_WAITING);
    registry_move(r, claim, CLAIM_ASKED);
}

void
registry_ask_again(struct registry *r)
{
    struct registry_claim *claim;
    DL_FOREACH (r->asked, claim)
        claim->state = CLAIM_WAITING;
    /* They are older, and their time limits do not start anew. */
    DL_CONCAT(r->asked, r->waiting);
    r->waiting = r->asked;
    r->asked = NULL;
}

static void
on_recover(void *context)
{
    struct registry *r = context;
    r->is_recovering = false;
    if (registry_is_open(r) || !r->is_owing)
        return; /* down again: later */
    r->is_owing = false;
    /* A place that fails again and again would otherwise be asked for all sets each
     * time. */
    r->recover_ms = loop_monotonic_ms(r->setup.loop) + REGISTRY_RECOVER_MS;
    if (r->setup.recovered != NULL)
        r->setup.recovered(r->setup.context, false);
}

void
registry_emptied(struct registry *r)
{
    char place[REGISTRY_SETTING_MAX];
    registry_place_text(&r->place, place);
    log_say(r->setup.log, LOG_LEVEL_INFO, "defrag", NULL,
            "the registry %s has forgotten this host, which claims its messages again",
            place);
    if (r->setup.recovered != NULL)
        r->setup.recovered(r->setup.context, true);
}

static void on_check_name(void *context);

void
registry_good(struct registry *r)
{
    char place[REGISTRY_SETTING_MAX];
    breaker_good(&r->breaker);
    if (r->is_away) {
        r->is_away = false;
        registry_place_text(&r->place, place);
        log_say(r->setup.log, LOG_LEVEL_INFO, "defrag", NULL,
                "the registry %s answers again", place);
        if (r->dir != NULL) /* it may be another directory */
            loop_timer_start(r->setup.loop, &r->name.check, 0, on_check_name, r);
    }
    if (r->is_owing && !r->is_recovering) {
        r->is_recovering = true;
        int64_t wait_ms = r->recover_ms - loop_monotonic_ms(r->setup.loop);
        loop_timer_start(r->setup.loop, &r->recover, wait_ms, on_recover, r);
    }
}

int64_t
registry_failed(struct registry *r, const char *why)
{
    char place[REGISTRY_SETTING_MAX];
    int64_t pause_ms = r->redis != NULL ? 0 : breaker_failed(&r->breaker);
    r->counts.failures++;
    if (!registry_is_open(r))
        return pause_ms;
    if (!r->is_away) {
        r->is_away = true;
        registry_place_text(&r->place, place);
        log_say(r->setup.log, LOG_LEVEL_WARNING, "defrag", NULL,
                "the registry %s does not answer, this host works alone: %s", place,
                why);
    }
    /* These would wait in vain: the pause is longer than a claim has time. */
    while (r->waiting != NULL)
        registry_answer(r, r->waiting, REGISTRY_UNAVAILABLE);
    return pause_ms;
}

static void
on_late(void *context)
{
    struct registry *r = context;
    int64_t now_ms = loop_monotonic_ms(r->setup.loop);
    if (r->asked != NULL && r->asked->due_ms <= now_ms)
        registry_redis_late(r->redis); /* leaves r->asked empty */
    while (r->waiting != NULL && r->waiting->due_ms <= now_ms)
        registry_answer(r, r->waiting, REGISTRY_UNAVAILABLE);
    const struct registry_claim *oldest = r->asked != NULL ? r->asked : r->waiting;
    if (oldest != NULL)
        loop_timer_start(r->setup.loop, &r->late, oldest->due_ms - now_ms, on_late, r);
}

/* --- Another host of our name ------------------------------------------------------
 *
 * Two processes with one name, a misconfiguration, would leave sets of both incomplete
 * in silence. Each run has a random number, its instance, which it keeps in the
 * registry under its name for NAME_TTL_MS and refreshes. The instance of another run
 * may be a remainder of this host's own last run, which was killed. Only an instance
 * that is refreshed after it was first seen is that of another live process. */

void
registry_name_ours(struct registry_name *n)
{
    *n->other = '\0';
}

static void
registry_name_warn(struct registry *r)
{
    char place[REGISTRY_SETTING_MAX];
    registry_place_text(&r->place, place);
    log_say(
        r->setup.log, LOG_LEVEL_WARNING, "defrag", NULL,
        "another process in the registry %s has the name %s: each host needs its own "
        "defrag_host, or messages are not reassembled",
        place, r->setup.host);
}

void
registry_name_other(struct registry *r, struct text instance, int64_t born_ms)
{
    struct registry_name *n = &r->name;
    int64_t now_ms = loop_monotonic_ms(r->setup.loop);
    if (!text_equal(instance, text_from(n->other))) {
        if (!text_copy(n->other, sizeof(n->other), instance))
            *n->other = '\0'; /* no instance has a number that long */
        n->seen_ms = now_ms;
        n->born_ms = born_ms;
        n->is_told = false;
    }
    /* Redis tells no time, but it removes keys that are not refreshed: an instance seen
     * for longer than that is refreshed. */
    bool is_alive = born_ms == 0 ? now_ms - n->seen_ms > NAME_TTL_MS + NAME_SLACK_MS
                                 : born_ms != n->born_ms;
    if (!is_alive || n->is_told || *n->other == '\0')
        return;
    n->is_told = true;
    r->counts.namesakes++;
    registry_name_warn(r);
}

static void
on_check_name(void *context)
{
    struct registry *r = context;
    loop_timer_start(r->setup.loop, &r->name.check, NAME_CHECK_MS, on_check_name, r);
    if (registry_is_open(r))
        return; /* at the next time */
    if (r->dir != NULL)
        registry_dir_check_name(r->dir);
    else
        registry_redis_check_name(r->redis);
}

static void
registry_name_start(struct registry *r)
{
    snprintf(r->name.instance, sizeof(r->name.instance), "%016" PRIx64,
             loop_random(r->setup.loop));
    loop_timer_start(r->setup.loop, &r->name.check, 0, on_check_name, r);
}

/* --- The whole ---------------------------------------------------------------------- */

struct registry *
registry_new(const struct registry_setup *setup, const struct registry_place *place,
             char *error, size_t error_size)
{
    struct registry *r = memory_new(sizeof(*r));
    assert(registry_is_host(text_from(setup->host)));
    r->setup = *setup;
    r->place = *place;
    r->patience_ms = REGISTRY_ANSWER_MS;
    switch (place->kind) {
    /* It never fails, but a breaker of zeros would count as open. */
    case REGISTRY_LOCAL:
        r->breaker = dir_breaker;
        break;
    case REGISTRY_DIR:
        r->breaker = dir_breaker;
        r->dir = registry_dir_new(r);
        break;
    case REGISTRY_REDIS:
        r->redis = registry_redis_new(r, error, error_size);
        if (r->redis == NULL)
            registry_free(&r);
        break;
    }
    if (r != NULL && place->kind != REGISTRY_LOCAL)
        registry_name_start(r);
    return r;
}

/* Claims are parts of their owners' structs: they are not freed here. */
static void
abandon(struct registry_claim *claims)
{
    while (claims != NULL) {
        struct registry_claim *claim = claims;
        DL_DELETE(claims, claim);
        claim->state = CLAIM_IDLE;
    }
}

void
registry_free(struct registry **registry)
{
    struct registry *r = *registry;
    if (r == NULL)
        return;
    loop_timer_stop(r->setup.loop, &r->name.check);
    registry_dir_free(&r->dir);
    registry_redis_free(&r->redis);
    abandon(r->waiting);
    abandon(r->asked);
    abandon(r->answered);
    abandon(r->telling);
    loop_unpost(r->setup.loop, &r->tell);
    loop_timer_stop(r->setup.loop, &r->late);
    loop_timer_stop(r->setup.loop, &r->recover);
    digest_forget(r->place.redis.password, sizeof(r->place.redis.password));
    free(r);
    *registry = NULL;
}

void
registry_claim(struct registry *r, struct registry_claim *claim,
               const unsigned char key[REGISTRY_KEY_SIZE], int64_t ttl_ms,
               registry_claimed *done, void *context)
{
    assert(claim->state == CLAIM_IDLE && ttl_ms > 0);
    memcpy(claim->key, key, REGISTRY_KEY_SIZE);
    claim->ttl_ms = ttl_ms;
    claim->done = done;
    claim->context = context;
    claim->due_ms = loop_monotonic_ms(r->setup.loop) + r->patience_ms;
    if (r->place.kind == REGISTRY_LOCAL) {
        registry_answer(r, claim, REGISTRY_OWN);
        return;
    }
    if (registry_is_open(r)) {
        registry_answer(r, claim, REGISTRY_UNAVAILABLE);
        return;
    }
    bool is_first = r->waiting == NULL && r->asked == NULL;
    registry_move(r, claim, CLAIM_WAITING);
    /* Otherwise the timer runs for an older claim, whose limit comes first. */
    if (is_first)
        loop_timer_start(r->setup.loop, &r->late, r->patience_ms, on_late, r);
    if (r->dir != NULL)
        registry_dir_claim(r->dir);
    else
        registry_redis_claim(r->redis);
}

void
registry_cancel(struct registry *r, struct registry_claim *claim)
{
    /* The reply still comes, and replies are matched by their order alone. */
    if (claim->state == CLAIM_ASKED)
        registry_redis_forget(r->redis, claim);
    registry_move(r, claim, CLAIM_IDLE);
}

void
registry_close(struct registry *r, const unsigned char key[REGISTRY_KEY_SIZE],
               int64_t memory_ms)
{
    assert(memory_ms >= 0);
    if (registry_is_open(r))
        return;
    if (r->dir != NULL)
        registry_dir_close(r->dir, key, memory_ms);
    else if (r->redis != NULL)
        registry_redis_close(r->redis, key, memory_ms);
}

bool
registry_is_up(const struct registry *r)
{
    return !registry_is_open(r);
}

struct registry_counts
registry_counts(const struct registry *r)
{
    return r->counts;
}
