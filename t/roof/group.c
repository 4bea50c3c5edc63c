/* Hosts that share limits, and take each other's mail. */
#include "t/roof/group.h"

#include "t/roof/dead.h"
#include "t/roof/audit_internal.h"
#include "t/roof/editor.h"
#include "t/roof/group_moves.h"
#include "t/roof/group_wire.h"
#include "t/roof/law_adoption.h"
#include "t/roof/law_group.h"
#include "t/roof/model.h"
#include "t/roof/operator.h"
#include "t/roof/plan.h"
#include "t/roof/redis.h"
#include "t/roof/siblings.h"

#include <assert.h>
#include <inttypes.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    NAME_MAX = 16,
    WARNINGS_MAX = 16, /* of three others, with some that are back meanwhile */
    OPTIONS_MAX = 80,
    GIVING_MS = 150 * SECOND_MS, /* a message is settled, when a drain is cancelled */
    OPEN_MS = 140 * SECOND_MS,   /* until both hosts agree who has it */
    RELEASE_MS = 3 * MINUTE_MS,
    AWAY_MAX_MS = 15 * MINUTE_MS,
    LAST_MESSAGES = 4,
    LAST_MS = HOUR_MS,
    FORGOTTEN_MS = 70 * MINUTE_MS, /* sites without mail, which ask no more */
    TRIED_MS = 5 * MINUTE_MS,      /* a bank that has refused a question */
    STEP_WITHIN_MS = 2 * SECOND_MS,
    SILENT_MS = 500, /* the answer is lost, and the next question is not */
    DRAIN_MAX_MS = 10 * MINUTE_MS
};

static struct {
    unsigned count; /* with the first host */
    bool is_good, hands_over, has_redis, has_registry;
    bool is_calm; /* no host goes, or gives its queue */
    struct group_host {
        struct host *host;
        struct member *member; /* NULL: of the first host */
        char name[NAME_MAX], wire_name[NAME_MAX];
        struct group_wire *wire; /* to it */
        int64_t gives_until_ms, warned_ms;
        int warnings;
        struct roof_timer passing;
    } hosts[GROUP_MEMBERS_MAX];
    unsigned rate_a_minute;
    char lines[GROUP_LINES_MAX], options[LAW_GROUP_SITES][OPTIONS_MAX];
    struct roof_timer release, back, step;
    void (*steps)(void); /* when the first host gives mail next, or NULL */
    unsigned losing;     /* answers to the next gifts of the first host */
    struct member *away;
    bool has_answered;
} group;

static unsigned
draw(unsigned limit)
{
    return fleet_draw(limit);
}

void
group_settle(bool with[FEATURES], bool is_asked)
{
    static const enum feature others[] = {WITH_RELAY,   WITH_SLICES,  WITH_HOOK,
                                          WITH_ALIASES, WITH_AUTH,    WITH_MAILDIRS,
                                          WITH_TLS,     WITH_LIMITS,  WITH_POLICIES,
                                          WITH_TOKENS,  WITH_REQUIRES};
    uint64_t own = roof_fork("settle group");
    if (with[WITH_REDIS] && is_asked)
        with[WITH_GROUP] = true;
    if (!is_asked && roof_below_of(&own, 2) == 0)
        with[WITH_GROUP] = false;
    with[WITH_REDIS] = with[WITH_REDIS] && with[WITH_GROUP];
    for (size_t i = 0; i < sizeof(others) / sizeof(*others); i++)
        with[others[i]] = with[others[i]] && !with[WITH_GROUP];
}

unsigned
group_count(void)
{
    return group.count;
}

bool
group_has_redis(void)
{
    return group.has_redis;
}

const struct host *
group_host(unsigned index)
{
    return group.hosts[index].host;
}

/* --- Mail that may come twice ------------------------------------------------------ */

static bool
gives(const struct group_host *g)
{
    bool leaves = group.hands_over && g->host->running && g->host->leaves;
    return leaves || roof_now_ms() < g->gives_until_ms;
}

static bool
any_gives(void)
{
    for (unsigned i = 0; i < group.count; i++)
        if (gives(&group.hosts[i]))
            return true;
    return false;
}

static struct group_host *
group_host_of(const struct host *h)
{
    unsigned i = 0;
    while (group.hosts[i].host != h)
        i++;
    return &group.hosts[i];
}

/* A host that cannot be reached is named once (doc/peer-door.md), for each of the four
 * connections to it. */
static void
judge_warning(struct group_host *g, struct text line)
{
    if (roof_now_ms() - g->warned_ms > MINUTE_MS) {
        g->warned_ms = roof_now_ms();
        g->warnings = 0;
    }
    if (++g->warnings > WARNINGS_MAX)
        roof_break("truth", NULL,
                   "%s warns of others more often than %d times a minute: "
                   "%.*s",
                   g->name, WARNINGS_MAX, TEXT_ARGS(line));
}

static void
on_step(void *context)
{
    (void)context;
    if (!group.is_good && group.steps != NULL)
        group.steps();
    group.steps = NULL;
}

static void
on_passing(void *context)
{
    struct group_host *taker = context;
    group_wire_become_good(taker->wire);
}

/* It is lent: the taker has it, and the giver hears nothing of that. */
static void
step_within(struct group_host *taker, struct text line)
{
    static const char taken[] = ": from=relay0, was=";
    bool steps = group.steps != NULL && !group.is_good;
    if ((!steps && group.losing == 0) ||
        memmem(line.at, line.length, taken, sizeof(taken) - 1) == NULL)
        return;
    group_wire_silence(taker->wire);
    if (steps) {
        roof_timer_start(&group.step, STEP_WITHIN_MS, on_step, NULL);
        return;
    }
    group.losing--;
    roof_timer_start(&taker->passing, SILENT_MS, on_passing, taker);
}

void
group_lose_answers(unsigned count)
{
    group.losing = count;
}

void
group_step_within(void (*step)(void))
{
    group.steps = step;
}

static void
group_on_line(const struct host *h, struct text line)
{
    struct group_host *g = group_host_of(h);
    unsigned number = (unsigned)(g - group.hosts);
    group_moves_line(g->name, line);
    law_adoption_line(number, line);
    siblings_line(number, line);
    step_within(g, line);
    if (g->member != NULL)
        dead_log_line((unsigned)(g - group.hosts), line);
    if (text_starts(line, TEXT("peer: warning: ")) || roof_breaks("warnings"))
        judge_warning(g, line);
}

/* After a kill there are others: a message may be durable, and no line says that it was
 * taken; or given, and its end is not durable. Fragments on their way to another host are
 * likewise. */
static void
group_host_ended(struct host *h, int64_t window_ms)
{
    struct group_host *g = group_host_of(h);
    model_host_ended(window_ms);
    if (!h->in_order && (any_gives() || fleet.plan.fragments))
        model_given_twice(OPEN_MS);
    group_moves_ended(g->name);
    law_adoption_ended((unsigned)(g - group.hosts));
    g->gives_until_ms = 0;
}

static void
group_member_ended(struct member *m, int64_t window_ms)
{
    group_host_ended(m->host, window_ms);
    dead_host_ended((unsigned)(group_host_of(m->host) - group.hosts), window_ms / 4);
}

void
group_first_ended(int64_t window_ms)
{
    group_host_ended(&host, window_ms);
}

/* --- Settings --------------------------------------------------------------------- */

void
group_on_settings(struct text content)
{
    for (unsigned i = 1; i < group.count; i++)
        host_write_settings(group.hosts[i].host, content);
}

static void
add_line(const char *name, const char *value)
{
    size_t used = strlen(group.lines);
    int size = snprintf(group.lines + used, sizeof(group.lines) - used, "%s = %s\n",
                        name, value);
    assert(size > 0 && (size_t)size < sizeof(group.lines) - used);
}

/* The same on all hosts. */
static void
write_lines(bool joins_fragments)
{
    char peers[200] = "", doors[200] = "";
    for (unsigned i = 0; i < group.count; i++) {
        snprintf(peers + strlen(peers), sizeof(peers) - strlen(peers),
                 "%srelay%u=10.0.3.%u:4650", i > 0 ? ", " : "", i, 1 + i);
        snprintf(doors + strlen(doors), sizeof(doors) - strlen(doors),
                 "%srelay%u=10.0.0.%u:25", i > 0 ? ", " : "", i, i > 0 ? 10 + i : 1);
    }
    add_line("cluster", "mail");
    add_line("cluster_redis", group.has_redis ? redises_urls() : "none");
    add_line("cluster_peers", peers);
    add_line("cluster_secret", "0123456789abcdef0123456789abcdef");
    if (group.has_redis && redises_password()[0] != '\0')
        add_line("cluster_redis_password", redises_password());
    if (group.hands_over)
        add_line("stop", "hand_over");
    if (joins_fragments)
        add_line("defrag_peers", doors);
    group.has_registry = joins_fragments && group.has_redis && draw(5) > 0;
    if (group.has_registry) {
        add_line("defrag_registry", redises_first_url());
        if (redises_password()[0] != '\0')
            add_line("defrag_registry_password", redises_password());
    }
    editor_add(group.lines);
}

static void
write_overrides(unsigned i)
{
    struct group_host *g = &group.hosts[i];
    unsigned last = i > 0 ? 10 + i : 1;
    snprintf(g->host->overrides[3], HOST_OVERRIDE_SIZE,
             "listen = 10.0.0.%u:25, 10.0.0.%u:4650?peer", last, last);
    snprintf(g->host->overrides[4], HOST_OVERRIDE_SIZE, "cluster_host = %s", g->name);
    snprintf(g->host->overrides[5], HOST_OVERRIDE_SIZE,
             "cluster_address = 10.0.3.%u:4650", 1 + i);
    snprintf(g->host->overrides[6], HOST_OVERRIDE_SIZE, "defrag_host = %s=10.0.0.%u",
             g->name, last);
}

static void
add_host(unsigned i)
{
    static const char *const names[GROUP_MEMBERS_MAX] = {"", "relay1", "relay2",
                                                         "relay3"};
    struct group_host *g = &group.hosts[i];
    char ip[16];
    snprintf(g->name, sizeof(g->name), "relay%u", i);
    snprintf(g->wire_name, sizeof(g->wire_name), "way%u", i);
    snprintf(ip, sizeof(ip), "10.0.0.%u", 10 + i);
    g->host = &host;
    if (i > 0) {
        g->member = fleet_add(names[i], ip, NULL);
        g->member->ended = group_member_ended;
        g->host = g->member->host;
    }
    struct net_address at =
                           {
                               .family = NET_IPV4, .ip = {10, 0, 3, 0},
                                    .port = 4650
    },
                       to = {.family = NET_IPV4, .ip = {10, 0, 0, 1}, .port = 4650};
    at.ip[3] = (unsigned char)(1 + i);
    to.ip[3] = (unsigned char)(i > 0 ? 10 + i : 1);
    g->wire = group_wire_new(g->wire_name, &at, &to, group_moves_unheard, g->name);
    write_overrides(i);
}

void
group_begin(bool has_faults, bool joins_fragments)
{
    group.count = 2 + draw(GROUP_MEMBERS_MAX - 1);
    group.hands_over = draw(2) == 0;
    group.is_calm = draw(joins_fragments ? 2 : 5) == 0;
    group.has_redis = has_faults || draw(5) > 0;
    if (group.has_redis)
        redises_begin(has_faults);
    for (unsigned i = 0; i < group.count; i++)
        add_host(i);
    write_lines(joins_fragments);
    host.is_shared = true;
    hosts_on_line(group_on_line);
    for (unsigned i = 1; i < group.count; i++)
        fleet_start(group.hosts[i].member, draw(3) * SECOND_MS);
    roof_note("group: %u hosts%s%s", group.count, group.has_redis ? ", with Redis" : "",
              group.hands_over ? ", that hand over at a stop" : "");
}

void
group_begin_sites(struct hop *const *hops, const bool with[FEATURES])
{
    for (unsigned i = 0; i < LAW_GROUP_SITES && group.count > 0; i++) {
        struct law_group_limits limits = {
            .rate_a_minute = 6 + draw(draw(2) > 0 ? 60 : 600),
            .burst = 1 + draw(5),
            .sessions = 1 + draw(8),
            .hosts = group.count,
            .has_bank = group.has_redis,
            .is_forgiven =
                (with[WITH_CLOCKS] && with[WITH_REDIS]) || with[WITH_SIBLINGS],
            .is_slow = with[WITH_PATHS]};
        snprintf(group.options[i], OPTIONS_MAX, "rate=%u/m,burst=%u&concurrency=%u",
                 limits.rate_a_minute, limits.burst, limits.sessions);
        if (group.rate_a_minute == 0 || limits.rate_a_minute < group.rate_a_minute)
            group.rate_a_minute = limits.rate_a_minute;
        editor_pin_route(i, group.options[i]);
        hop_set_shared(hops[i], i);
        law_group_begin(i, &limits);
    }
}

bool
group_joins(const bool with[FEATURES])
{
    static const enum feature apart[] = {
        WITH_RELOADS, WITH_KILLS, WITH_CUTS,  WITH_STOPS, WITH_OPERATOR,
        WITH_CLOCKS,  WITH_DISKS, WITH_PATHS, WITH_REDIS, WITH_LIMITS};
    for (size_t i = 0; i < sizeof(apart) / sizeof(*apart); i++)
        if (with[apart[i]])
            return false;
    return with[WITH_FRAGMENTS] &&
           (group.count == 0 || (group.is_calm && group.has_registry));
}

int64_t
group_pace_ms(void)
{
    if (group.count == 0)
        return 0;
    return MINUTE_MS * group.count * 5 / 4 / group.rate_a_minute;
}

/* --- Trouble ---------------------------------------------------------------------- */

static void
begin_drain(struct group_host *g)
{
    char line[120], to[40] = "";
    int64_t wait_ms = SECOND_MS + roof_between_of(&fleet.chance, 0, DRAIN_MAX_MS);
    if (!g->host->running || g->host->leaves)
        return;
    if (draw(3) == 0)
        snprintf(to, sizeof(to), ",\"to\":\"relay%u\"", draw(group.count));
    snprintf(line, sizeof(line), "{\"command\":\"drain\",\"wait_ms\":%" PRId64 "%s%s}",
             wait_ms, to, draw(8) == 0 && to[0] == '\0' ? ",\"keep\":true" : "");
    g->gives_until_ms = INT64_MAX;
    operator_tell(g->host, line);
}

static void
cancel_drain(struct group_host *g)
{
    if (!g->host->running || g->host->leaves || g->gives_until_ms != INT64_MAX)
        return;
    g->gives_until_ms = roof_now_ms() + GIVING_MS;
    operator_tell(g->host, "{\"command\":\"drain\",\"cancel\":true}");
}

static void
come_back(void *context)
{
    struct member *m = group.away;
    (void)context;
    group.away = NULL;
    if (m == NULL)
        return;
    m->is_away = false;
    fleet_start(m, 0);
}

/* It answers until its last session has ended. */
static void
ask_leaving(const struct host *h)
{
    static const char *const questions[] = {"{\"command\":\"drain\",\"progress\":true}",
                                            "{\"command\":\"drain\",\"cancel\":true}",
                                            "{\"command\":\"drain\",\"wait_ms\":5000}",
                                            "{\"command\":\"status\"}"};
    operator_tell(h, questions[draw(4)]);
}

/* One of the others goes for a while. */
static void
go_away(void)
{
    struct member *m = group.hosts[1 + draw(group.count - 1)].member;
    if (group.away != NULL || !m->host->running)
        return;
    group.away = m;
    m->is_away = true;
    roof_note("%s: is to go for a while", m->host->name);
    host_terminate(m->host);
    ask_leaving(m->host);
    roof_timer_start(&group.back,
                     roof_between_of(&fleet.chance, SECOND_MS, AWAY_MAX_MS), come_back,
                     NULL);
}

static const struct model_message *
draw_message(void)
{
    const struct model_message *m = model_at(draw(model_count()));
    return m->state == MODEL_ACKED && m->id[0] != '\0' ? m : NULL;
}

/* A command for all hosts, to any of them. */
static void
tell_all(struct group_host *g)
{
    static const char *const words[] = {"retry", "hold", "release", "show"};
    static const char *const questions[] = {
        "{\"command\":\"status\",\"cluster\":true}",
        "{\"command\":\"list\",\"cluster\":true}",
        "{\"command\":\"drain\",\"progress\":true}"};
    const struct model_message *m = draw_message();
    char line[200];
    unsigned kind = draw(6);
    if (!g->host->running)
        return;
    if (m == NULL || kind > 3) {
        operator_tell(g->host, questions[draw(3)]);
        return;
    }
    model_forget_waits();
    if (kind == 3)
        snprintf(line, sizeof(line),
                 "{\"command\":\"show\",\"cluster\":true,\"id\":\"%s\"}", m->id);
    else
        snprintf(line, sizeof(line),
                 "{\"command\":\"%s\",\"cluster\":true,\"ids\":[\"%s\"]}", words[kind],
                 m->id);
    operator_tell(g->host, line);
}

void
group_act(void)
{
    struct group_host *g = &group.hosts[draw(group.count)];
    switch (group.is_calm ? 5 + draw(3) : draw(8)) {
    case 0:
    case 1:
        begin_drain(g);
        break;
    case 2:
    case 3:
        for (unsigned i = 0; i < group.count; i++)
            if (draw(3) > 0)
                cancel_drain(&group.hosts[i]);
        break;
    case 4:
        go_away();
        break;
    case 5:
    case 6:
        group_wire_act(g->wire, &fleet.chance);
        break;
    default:
        tell_all(g);
        break;
    }
}

void
group_reload_all(void)
{
    for (unsigned i = 1; i < group.count; i++)
        host_reload(group.hosts[i].host);
}

/* Held mail that moved meanwhile, too. */
static void
on_release(void *context)
{
    (void)context;
    operator_release_all();
    roof_timer_start(&group.release, RELEASE_MS, on_release, NULL);
}

void
group_become_good(void)
{
    if (group.count == 0)
        return;
    group.is_good = true;
    for (unsigned i = 0; i < group.count; i++) {
        group_wire_become_good(group.hosts[i].wire);
        if (group.hosts[i].gives_until_ms == INT64_MAX)
            cancel_drain(&group.hosts[i]);
    }
    roof_timer_stop(&group.back);
    come_back(NULL);
    redises_become_good();
    roof_timer_start(&group.release, RELEASE_MS, on_release, NULL);
}

/* --- One view --------------------------------------------------------------------- */

static void
judge_bank(const json_t *line, const char *name)
{
    const json_t *said = json_object_get(json_object_get(line, "group"), "bank");
    const char *bank = json_string_value(said), *want = "none";
    if (group.has_redis)
        want = redises_are_good() ? "up" : "away";
    if (bank == NULL || strcmp(bank, want) != 0)
        roof_break("truth", NULL, "status --cluster says at %s: bank %s, which is %s",
                   name, bank != NULL ? bank : "?", want);
}

static void
judge_line(const json_t *line, unsigned *seen)
{
    const char *name = json_string_value(json_object_get(line, "host"));
    const char *trouble = json_string_value(json_object_get(line, "trouble"));
    const char *state = json_string_value(json_object_get(line, "state"));
    json_int_t waiting = json_integer_value(json_object_get(line, "waiting"));
    for (unsigned i = 0; i < group.count && name != NULL; i++) {
        if (strcmp(group.hosts[i].name, name) != 0)
            continue;
        *seen |= 1U << i;
        if (siblings_is_gone(i))
            return;
        if (trouble != NULL || state == NULL || strcmp(state, "running") != 0)
            roof_break("truth", NULL, "status --cluster says of %s: %s", name,
                       trouble != NULL ? trouble
                       : state != NULL ? state
                                       : "no state");
        if (waiting != (roof_breaks("cluster status") ? 1 : 0))
            roof_break("truth", NULL,
                       "status --cluster says that %" JSON_INTEGER_FORMAT
                       " messages wait at %s",
                       waiting, name);
        judge_bank(line, name);
        return;
    }
    roof_break("truth", NULL, "status --cluster names '%s'", name != NULL ? name : "");
}

static void
group_hear_status(void *context, struct text answer, bool whole)
{
    struct text line;
    unsigned seen = 0;
    (void)context;
    group.has_answered = true;
    if (!whole)
        roof_break("truth", NULL, "no whole answer to status --cluster");
    while (answer.length > 0) {
        text_cut(&answer, '\n', &line);
        json_t *object = json_loadb(line.at, line.length, 0, NULL);
        bool is_sign = json_object_get(object, "seen") != NULL;
        if (json_object_get(object, "end") == NULL && line.length > 0 && !is_sign)
            judge_line(object, &seen);
        json_decref(object);
    }
    /* of one that left, and came back while it is away, nobody hears */
    bool knows_all = !group.has_redis || redises_are_good();
    for (unsigned i = 0; i < group.count; i++)
        seen |= siblings_is_gone(i) ? 1U << i : 0;
    if (knows_all && seen != (1U << group.count) - 1)
        roof_break("truth", NULL, "status --cluster does not name all hosts");
}

static void
group_hear_banks(void *context, struct text answer, bool whole)
{
    struct text line;
    (void)context;
    group.has_answered = true;
    while (whole && answer.length > 0) {
        text_cut(&answer, '\n', &line);
        json_t *object = json_loadb(line.at, line.length, 0, NULL);
        if (json_object_get(object, "group") != NULL)
            judge_bank(object, json_string_value(json_object_get(object, "host")));
        json_decref(object);
    }
}

/* Mail that comes later would ask it. */
static void
ask_banks(void)
{
    group.has_answered = false;
    operator_ask_of(group.hosts[0].host, "{\"command\":\"status\",\"cluster\":true}",
                    group_hear_banks, NULL);
    (void)world_run_for(MINUTE_MS, group_has_answered);
}

void
group_refuse_last(void)
{
    if (!group.has_redis || !redises_are_good())
        return;
    redises_forbid_scripts(true);
    for (unsigned i = 0; i < LAST_MESSAGES; i++)
        (void)audit_give(i % LAW_GROUP_SITES, 1);
    bool have_gone = audit_has_gone(LAST_MS);
    (void)world_run_for(FORGOTTEN_MS, NULL);
    redises_forbid_scripts(false);
    if (!have_gone) /* at its own part of a rate it may take long */
        (void)audit_has_gone(LAST_MS);
    (void)world_run_for(TRIED_MS, NULL);
    ask_banks();
}

/* That host, or the first if it is gone. */
static struct host *
present(unsigned number)
{
    return group.hosts[siblings_is_gone(number) ? 0 : number].host;
}

void
group_ask_status(void)
{
    group.has_answered = group.count == 0;
    if (group.count > 0)
        operator_ask_of(present(draw(group.count)),
                        "{\"command\":\"status\",\"cluster\":true}", group_hear_status,
                        NULL);
}

bool
group_has_answered(void)
{
    return group.has_answered;
}
