/* The draw of a seed: features, hops, clients, routes, and the amount of mail. */
#include "t/roof/world_internal.h"

#include "t/roof/app.h"
#include "t/roof/client.h"
#include "t/roof/dead.h"
#include "t/roof/editor.h"
#include "t/roof/engine.h"
#include "t/roof/fleet.h"
#include "t/roof/group.h"
#include "t/roof/law_age.h"
#include "t/roof/limits.h"
#include "t/roof/login.h"
#include "t/roof/mailbox.h"
#include "t/roof/model.h"
#include "t/roof/names.h"
#include "t/roof/policy.h"
#include "t/roof/returner.h"
#include "t/roof/roof.h"
#include "t/roof/secrecy.h"
#include "t/roof/siblings.h"
#include "t/roof/split.h"
#include "t/roof/token.h"
#include "t/roof/upgrade.h"
#include "t/sim/sim_dns.h"

#include <inttypes.h>

enum {
    DOMAINS = 6,
    MESSAGES_LEAST = 10,
    DOUBLINGS = 8,
    MESSAGES_MOST = 2000,
    FEW_UNDER_TLS = 60,
    MESSAGES_OF_ANY_SIZE = 100,
    RETURNS_RATE = 250, /* in a thousand, of the runs with one host */
    DAY_MESSAGES_LEAST = 500,
    DAY_DEAD_ADDRESSES = 100,
    UNDER_TLS = 600, /* in a thousand: features that need it */
    COPIED = 150 /* the same: runs in which all mail has a copy, or some a release */
};

/* The domains that mail is for, and the last one, to which reports go. */
static const char *const domains[DOMAINS + 1] = {
    "d0.test", "d1.test", "d2.test", "d3.test", "d4.test", "d5.test", MODEL_BACK,
};
static const char *targets[DOMAINS + 1] = {
    "smtp://10.0.1.0:25", "smtp://10.0.1.1:25", "lmtp://10.0.1.2:24", "mx", "mx",
    "lmtp://10.0.1.2:24", "smtp://10.0.1.7:25",
};

/* --- Hops, and the ways to them --- */

static void
fill_table(struct dns *dns)
{
    sim_dns_mx(dns, "d3.test", 10, "mx3a.test");
    sim_dns_mx(dns, "d3.test", 20, "mx3b.test");
    sim_dns_mx(dns, "d4.test", 10, "mx4.test");
    sim_dns_address(dns, "mx3a.test", "10.0.1.3");
    sim_dns_address(dns, "mx3b.test", "10.0.1.4");
    sim_dns_address(dns, "mx4.test", "10.0.1.5");
    sim_dns_address(dns, "mx4.test", "10.0.1.6");
    policy_fill_dns(dns);
    token_fill_dns(dns);
}

void
swarm_fill_dns(struct dns *dns)
{
    course.dns = dns;
    fill_table(dns);
}

void
swarm_draw_path(const struct net_address *to, struct network_path *out)
{
    *out = (struct network_path){.latency_ms = 1 + roof_below(20), .window = 64 * 1024};
    bool is_inner = course.with[WITH_GROUP] && (to->port == 4650 || to->port == 6379);
    if (!course.with[WITH_PATHS] || course.is_good || is_inner)
        return;
    if (!plan_takes("narrow", plan_next("narrow")))
        return;
    static const size_t windows[] = {1, 7, 100, 1500, 64 * 1024};
    if (roof_chance(300)) {
        out->latency_ms = roof_between(0, 400);
        out->bytes_a_ms = roof_chance(300) ? 50 : 0;
        out->window = windows[roof_below(5)];
        out->choppy = roof_chance(500);
    }
    /* a window of one octet and a long way would need years */
    if (out->window < 1000)
        out->latency_ms = roof_below(3);
}

struct hop_mood
swarm_draw_mood(bool reports)
{
    struct hop_mood m = {.reply_ms = roof_chance(300) ? roof_between(0, 200) : 0};
    unsigned how_bad = 1 + roof_below(200);
    if (course.with[WITH_TLS] && !course.is_good) {
        unsigned *const ends[] = {&m.tls_refused, &m.tls_broken, &m.tls_cut,
                                  &m.tls_strange};
        for (size_t i = 0; i < sizeof(ends) / sizeof(*ends); i++)
            if (roof_chance(300))
                *ends[i] = roof_below(400);
    }
    if (course.with[WITH_AUTH] && !course.is_good) {
        unsigned *const ends[] = {&m.auth_refused, &m.auth_later, &m.auth_closed,
                                  &m.auth_surplus};
        for (size_t i = 0; i < sizeof(ends) / sizeof(*ends); i++)
            if (roof_chance(300))
                *ends[i] = roof_below(300);
    }
    if (course.with[WITH_DOUBLE] && !course.is_good) {
        m.twice = !reports && roof_chance(300) ? roof_below(100) : 0;
        m.early = roof_chance(400) ? roof_below(300) : 0;
    }
    if (!course.with[WITH_MOODS] || course.is_good)
        return m;
    unsigned *const rates[] = {&m.greeting, &m.mail,    &m.rcpt,     &m.data, &m.end,
                               &m.cut,      &m.cut_end, &m.idle_cut, &m.late, &m.close};
    for (size_t i = 0; i < sizeof(rates) / sizeof(*rates); i++)
        if (roof_chance(400))
            *rates[i] = roof_below(how_bad);
    m.never = reports ? 0 : roof_below(300);
    m.late_ms = roof_chance(200) ? 20 * MINUTE_MS : 5 * SECOND_MS;
    m.grey_ms = !reports && roof_chance(200) ? roof_between(1, 10) * MINUTE_MS : 0;
    return m;
}

/* At the hops that have a route of their own. */
static void
begin_login(unsigned hop)
{
    static const int domains_of[HOPS] = {0, 1, -1, -1, -1, -1, -1, DOMAINS};
    if (domains_of[hop] < 0 || !roof_chance(700))
        return;
    hop_set_login(course.hops[hop], hop, (unsigned)domains_of[hop], roof_chance(300));
    editor_log_in((unsigned)domains_of[hop], hop);
}

/* On a narrow path the end of a session takes its time. */
static bool
can_judge_windows(void)
{
    static const enum feature blurring[] = {WITH_TLS, WITH_RELAY, WITH_SLICES,
                                            WITH_PATHS, WITH_GROUP};
    for (size_t i = 0; i < sizeof(blurring) / sizeof(*blurring); i++)
        if (course.with[blurring[i]])
            return false;
    return true;
}

void
swarm_make_hops(void)
{
    static const struct {
        const char *name, *ip;
        unsigned port;
        bool lmtp, pipelining, chunking;
    } rows[HOPS] = {
        {"hop0", "10.0.1.0", 25, false, true,  true },
        {"hop1", "10.0.1.1", 25, false, false, false},
        {"hop2", "10.0.1.2", 24, true,  true,  false},
        {"hop3", "10.0.1.3", 25, false, true,  false},
        {"hop4", "10.0.1.4", 25, false, true,  true },
        {"hop5", "10.0.1.5", 25, false, true,  false},
        {"hop6", "10.0.1.6", 25, false, true,  false},
        {"back", "10.0.1.7", 25, false, true,  false},
    };
    for (unsigned i = 0; i < HOPS; i++) {
        course.hops[i] = hop_new(rows[i].name, rows[i].ip, rows[i].port, rows[i].lmtp,
                                 rows[i].pipelining, rows[i].chunking);
        plan_enter("temper", i);
        struct hop_mood m = swarm_draw_mood(i == HOPS - 1);
        plan_leave();
        if (!plan_takes("temper", i))
            m = (struct hop_mood){0};
        hop_set_mood(course.hops[i], &m);
        if (course.with[WITH_TLS])
            hop_set_tls(course.hops[i], roof_chance(800));
        if (course.with[WITH_REQUIRES])
            hop_set_requires(course.hops[i], 700);
        if (course.with[WITH_LIMITS] && i < 2)
            hop_set_route(course.hops[i], i);
        if (i < 2 && can_judge_windows())
            hop_judge_window(course.hops[i], i);
        if (course.with[WITH_AUTH] &&
            !course.with[WITH_RELAY]) /* which has no password */
            begin_login(i);
        if (course.with[WITH_TOKENS] && i == 0)
            hop_set_token(course.hops[i], 0);
        if (course.with[WITH_DSN] && roof_chance(400))
            hop_set_dsn(course.hops[i]);
        if (roof_breaks("in time") || roof_breaks("truth"))
            hop_set_weather(course.hops[i], HOP_REFUSES);
    }
}

/* --- The swarm --- */

static void
begin_tls(void)
{
    static const struct text names[] = {
        TEXT("10.0.1.0"),    TEXT("10.0.1.1"),     TEXT("10.0.1.2"),
        TEXT("10.0.1.3"),    TEXT("10.0.1.4"),     TEXT("10.0.1.5"),
        TEXT("10.0.1.6"),    TEXT("10.0.1.7"),     TEXT("mx3a.test"),
        TEXT("mx3b.test"),   TEXT("mx4.test"),     TEXT(POLICY_HOST_3),
        TEXT(POLICY_HOST_4), TEXT(TOKEN_PROVIDER),
    };
    secrecy_begin(names, sizeof(names) / sizeof(*names));
    editor_begin_tls();
}

static void
begin_tokens(void)
{
    editor_add(TOKEN_SETTINGS);
    editor_log_in_by_token(0);
    token_begin(!course.with[WITH_CLOCKS] && !course.with[WITH_OPERATOR] &&
                !course.with[WITH_SLICES] && !course.with[WITH_PATHS]);
}

static void
begin_policies(void)
{
    editor_begin_policies();
    policy_begin(course.with[WITH_CLOCKS] || course.with[WITH_DISKS]);
}

static bool
is_listed(struct text list, const char *name)
{
    struct text word;
    while (list.length > 0) {
        text_cut(&list, ',', &word);
        if (text_equal(word, text_from(name)))
            return true;
    }
    return false;
}

/* Those with which mail is not as plain as the audit needs it, or that displace others:
 * where each is as likely as any other, most runs are about none of them. */
static const enum feature special[] = {
    WITH_TLS,      WITH_RELAY,     WITH_SLICES, WITH_HOOK,  WITH_AUTH,     WITH_ALIASES,
    WITH_MAILDIRS, WITH_FRAGMENTS, WITH_LIMITS, WITH_GROUP, WITH_POLICIES, WITH_TOKENS};
enum { SPECIAL = sizeof(special) / sizeof(*special) };

/* One run in three has no special feature, one has one of them or two, and one has any. */
static void
make_dense(bool with[FEATURES])
{
    bool kept[FEATURES] = {0};
    uint64_t own = roof_fork("dense");
    unsigned kind = roof_below_of(&own, 3);
    enum feature first = special[roof_below_of(&own, SPECIAL)],
                 second = special[roof_below_of(&own, SPECIAL)];
    bool has_second = roof_below_of(&own, 2) == 0;
    if (kind == 0)
        return;
    if (kind == 1) {
        kept[second] = has_second;
        kept[first] = true;
        kept[WITH_TLS] |= kept[WITH_POLICIES] || kept[WITH_TOKENS];
    }
    for (size_t i = 0; i < SPECIAL; i++)
        with[special[i]] = kept[special[i]];
}

/* Few features, deep: what needs several conditions at once comes too seldom by chance
 * (doc/dev/hacking.md). Those that no other feature blurs are audited. */
static const char *const themes[] = {
    "mood,inject",
    "mood,sts,tls,stop,mx",
    "mood",
    "mood,oauth,tls",
    "mood,inject,kill,operator",
    "group",
    "mood,stop,cut",
    "mood,alias,disk,pace,stop",
    "mood",
    "kill,cut,mood,weather,path,tls,slice,http,webhook",
};
enum { THEMES = sizeof(themes) / sizeof(*themes), GROUP_THEME = 5, GROUP_THEMES = 3 };
/* That of groups is one of these, in turn. */
static const char *const group_themes[GROUP_THEMES] = {
    "group,redis,mood,kill,stop", "group,mood,clock,stop", "group,redis,mood"};
/* In the place of those, where a seed has this rest. */
enum { DRILL_MESSAGES = 5 };
static const struct {
    unsigned every, rest;
    const char *theme;
} rare_themes[] = {
    {64,  37,  "engine,mood,kill,stop,inject"},
    {64,  53,  "engine,mood,kill,stop,inject"},
    {64,  49,  "engine,mood"                 },
    {64,  21,  "engine,lost,mood"            },
    {64,  25,  "mood,drill"                  },
    {64,  33,  "mood,drill"                  },
    {64,  57,  "mood,drill"                  },
    {64,  27,  "group,redis,mood"            },
    {64,  39,  "group,mood,clock,stop"       },
    {64,  59,  "group,mood,clock,stop"       },
    {64,  35,  "http,post,mood,cut"          },
    {64,  55,  "mood,inject,cut,disk"        },
    {128, 105, "webhook,operator,mood,pace"  },
    {64,  3,   "engine,mood"                 },
    {128, 125, "group,redis,mood"            },
    {64,  31,  "http,post,mood,kill"         },
    {64,  29,  "sibling,mood"                },
    {64,  63,  "sibling,mood,kill,stop"      },
    {128, 77,  "group,mood,clock,stop"       },
};

/* Every second run has a theme; NULL: this one has none. */
static const char *
theme_of(const struct wishes *wishes)
{
    if (wishes->only != NULL || !course.is_dense || wishes->seed % 2 == 0)
        return NULL;
    if (!plan_takes("theme", 0))
        return NULL;
    for (size_t i = 0; i < sizeof(rare_themes) / sizeof(*rare_themes); i++)
        if (wishes->seed % rare_themes[i].every == rare_themes[i].rest)
            return rare_themes[i].theme;
    uint64_t turn = wishes->seed / 2;
    return turn % THEMES == GROUP_THEME ? group_themes[turn / THEMES % GROUP_THEMES]
                                        : themes[turn % THEMES];
}

/* All that people take a provider for, together, beside what goes wrong in a day. */
static const enum feature day_features[] = {
    WITH_RELOADS, WITH_KILLS, WITH_CUTS,     WITH_STOPS,   WITH_MOODS,
    WITH_WEATHER, WITH_HOOK,  WITH_COPIES,   WITH_APP,     WITH_RETURNS,
    WITH_DEAD,    WITH_POSTS, WITH_RELEASES, WITH_VISITORS};

static void
add_features_of_day(void)
{
    for (size_t i = 0;
         course.with[WITH_DAY] && i < sizeof(day_features) / sizeof(*day_features); i++)
        course.with[day_features[i]] = true;
}

/* In a thousand. */
static unsigned
rate_of(enum feature feature, unsigned permille)
{
    switch ((unsigned)feature) {
    case WITH_POLICIES:
    case WITH_TOKENS:
    case WITH_REQUIRES:
        return UNDER_TLS;
    case WITH_COPIES:
    case WITH_RELEASES:
        return COPIED;
    case WITH_RETURNS:
        return RETURNS_RATE;
    case WITH_DAY:
    case WITH_ENGINE:
    case WITH_LOST_DISK:
    case WITH_SIBLINGS:
    case WITH_DRILL:
        return 0;
    default:
        return permille;
    }
}

/* The first ones share a stream, which kept seeds have drawn from since they were found;
 * each later one has its own, so that it changes nothing of the others. */
static void
draw_features(const struct wishes *wishes)
{
    const char *only = wishes->only, *theme;
    unsigned permille = 100 + roof_below(600);
    for (enum feature i = 0; i < FEATURES; i++) {
        uint64_t own = roof_fork(feature_names[i]);
        unsigned rate = rate_of(i, permille);
        bool drawn = i < FEATURES_OF_ONE_STREAM ? roof_chance(permille)
                                                : roof_random_of(&own) % 1000 < rate;
        drawn = only != NULL ? is_listed(text_from(only), feature_names[i]) : drawn;
        course.with[i] = drawn;
    }
    add_features_of_day();
    course.is_dense = plan_takes("dense", 0);
    theme = theme_of(wishes);
    if (only == NULL && course.is_dense && theme == NULL)
        make_dense(course.with);
    if (theme != NULL)
        for (enum feature i = 0; i < FEATURES; i++)
            course.with[i] = is_listed(text_from(theme), feature_names[i]);
    for (enum feature i = 0; i < FEATURES; i++)
        course.with[i] = course.with[i] && plan_takes("with", i);
    /* what needs TLS costs no run that has none */
    if (only == NULL && !course.with[WITH_TLS])
        course.with[WITH_POLICIES] = course.with[WITH_TOKENS] =
            course.with[WITH_REQUIRES] = false;
    course.with[WITH_TLS] = course.with[WITH_TLS] || course.with[WITH_AUTH] ||
                            course.with[WITH_POLICIES] || course.with[WITH_TOKENS] ||
                            course.with[WITH_REQUIRES];
    /* the reader looks into Maildirs of the first host; a slice has its own fragments;
     * the relay has no way for reports to names */
    if (course.with[WITH_RELAY])
        course.with[WITH_REQUIRES] = course.with[WITH_POLICIES] =
            course.with[WITH_TOKENS] = course.with[WITH_MAILDIRS] =
                course.with[WITH_FRAGMENTS] = course.with[WITH_ALIASES] = false;
    if (course.with[WITH_SLICES])
        course.with[WITH_FRAGMENTS] = false;
    /* a relay copies, too; of fragments each has a copy */
    if (course.with[WITH_RELAY] || course.with[WITH_FRAGMENTS])
        course.with[WITH_COPIES] = false;
    /* Maildirs have the same domain; the relay has all mail; fragments need an option */
    if (course.with[WITH_RELAY] || course.with[WITH_MAILDIRS] ||
        course.with[WITH_FRAGMENTS])
        course.with[WITH_APP] = false;
    /* another host of ours would tag the mail once more; a clock that is set may make a tag
     * too old */
    static const enum feature others[] = {WITH_RELAY,  WITH_GROUP,    WITH_SLICES,
                                          WITH_CLOCKS, WITH_UPGRADES, WITH_FRAGMENTS};
    for (size_t i = 0; i < sizeof(others) / sizeof(*others); i++)
        course.with[WITH_RETURNS] &= !course.with[others[i]];
    /* fragments have no model of what expires, clocks that are set no ages, and another host
     * of a group may expire what the log of the first began */
    if (course.with[WITH_FRAGMENTS] || course.with[WITH_CLOCKS])
        course.with[WITH_AGES] = course.with[WITH_RELEASES] = false;
    /* the keys of a slice, or of a host of a group, are its own; an older version knows none;
     * a clock that is ahead by a day forgets them */
    if (!course.with[WITH_VISITORS] || course.with[WITH_SLICES] ||
        course.with[WITH_GROUP] || course.with[WITH_UPGRADES] ||
        course.with[WITH_CLOCKS])
        course.with[WITH_POSTS] = false;
    siblings_settle(course.with);
    group_settle(course.with, only != NULL || theme != NULL);
    /* an operator may release mail at any host, and the log of the first is read */
    if (course.with[WITH_GROUP])
        course.with[WITH_RELEASES] = false;
    /* seeds that were found before several daemons had one list keep their course */
    if (course.with[WITH_RELAY] ||
        ((course.with[WITH_SLICES] || course.with[WITH_GROUP]) && only == NULL))
        course.with[WITH_DEAD] = false;
}

static void
begin_fleet(uint64_t seed)
{
    struct fleet_plan plan = {.seed = seed,
                              .relay = course.with[WITH_RELAY],
                              .slices = course.with[WITH_SLICES],
                              .group = course.with[WITH_GROUP],
                              .redis = course.with[WITH_REDIS],
                              .fragments = course.with[WITH_FRAGMENTS],
                              .hook = course.with[WITH_HOOK],
                              .visitors = course.with[WITH_VISITORS],
                              .posts = course.with[WITH_POSTS],
                              .paths = course.with[WITH_PATHS],
                              .clocks = course.with[WITH_CLOCKS],
                              .kills = course.with[WITH_KILLS],
                              .cuts = course.with[WITH_CUTS],
                              .stops = course.with[WITH_STOPS],
                              .reloads = course.with[WITH_RELOADS],
                              .disks = course.with[WITH_DISKS],
                              .domains = domains,
                              .targets = targets,
                              .domain_count = DOMAINS + 1,
                              .used = course.domain_count,
                              .fill_dns = fill_table};
    fleet_begin(&plan);
}

static void
draw_limits(void)
{
    static const enum feature blurring[] = {WITH_MOODS, WITH_PATHS,  WITH_CLOCKS,
                                            WITH_KILLS, WITH_CUTS,   WITH_DISKS,
                                            WITH_RELAY, WITH_SLICES, WITH_DOUBLE};
    limits_begin(DOMAINS + 1);
    for (size_t i = 0; i < sizeof(blurring) / sizeof(*blurring); i++)
        if (course.with[blurring[i]])
            limits_forgive();
}

/* With logins a refusal of the account is reported early; an attempt waits for its copy. */
static void
begin_ages(void)
{
    static const enum feature blurring[] = {WITH_CLOCKS,  WITH_DISKS, WITH_FRAGMENTS,
                                            WITH_AUTH,    WITH_GROUP, WITH_COPIES,
                                            WITH_RELEASES};
    uint64_t own = roof_fork("ages");
    law_age_begin(course.with[WITH_AGES]);
    for (size_t i = 0; i < sizeof(blurring) / sizeof(*blurring); i++)
        if (course.with[blurring[i]])
            law_age_forgive();
    if (course.with[WITH_AGES]) {
        int64_t notify_ms = roof_between_of(&own, 1, 20) * MINUTE_MS;
        int64_t life_ms = roof_between_of(&own, 10, 120) * MINUTE_MS;
        editor_begin_ages(life_ms, notify_ms);
    }
}

static void
draw_manners_of_features(struct client_manners *m)
{
    m->auth = course.with[WITH_AUTH] ? 100 + roof_below(600) : 0;
    if (course.with[WITH_FRAGMENTS]) {
        m->split = 200 + roof_below(600);
        editor_add_option(SPLIT_OPTIONS);
    }
    if (course.with[WITH_LIMITS])
        draw_limits();
    m->requires = course.with[WITH_REQUIRES] ? 400 : 0;
    m->hold = course.with[WITH_RELEASES] ? 300 : 0;
    m->dsn = course.with[WITH_DSN] ? 100 + roof_below(900) : 0;
}

/* Aliases and logins. */
static void
begin_names(void)
{
    if (course.with[WITH_ALIASES]) {
        names_begin(100 + roof_below(600));
        editor_add("local_domains = here.test\naliases = " NAMES_FILE "\n");
    }
    if (course.with[WITH_AUTH]) {
        static const char *const hops[] = {"10.0.1.0", "10.0.1.1", "10.0.1.2",
                                           "10.0.1.3", "10.0.1.4", "10.0.1.5",
                                           "10.0.1.6", "10.0.1.7"};
        login_begin(hops, HOPS);
        editor_begin_logins();
    }
}

/* From 10 to 2,000: each doubling is as likely as any other. */
static unsigned
draw_messages(void)
{
    uint64_t own = roof_fork("messages");
    int64_t least = MESSAGES_LEAST << roof_below_of(&own, DOUBLINGS);
    int64_t messages = roof_between_of(&own, least, 2 * least - 1);
    return messages < MESSAGES_MOST ? (unsigned)messages : MESSAGES_MOST;
}

/* Bursts take no time: mail comes in half of the span. */
static void
draw_day(struct client_manners *m)
{
    uint64_t own = roof_fork("day");
    course.span_ms = 2 * 24 * HOUR_MS;
    if (!plan_takes("many", 0))
        return;
    course.messages =
        (unsigned)roof_between_of(&own, DAY_MESSAGES_LEAST, MESSAGES_MOST);
    m->small = true;
}

/* Copies, reports and refusals that come back, each with its settings. */
static void
begin_returns(void)
{
    if (course.with[WITH_ENGINE])
        engine_begin();
    if (course.with[WITH_SIBLINGS])
        siblings_begin();
    if (course.with[WITH_RELEASES])
        editor_add("future_release = 10m\n");
    if (course.with[WITH_COPIES]) {
        editor_add("copy_to = " MODEL_ARCHIVE "\n");
        model_copy();
    }
    if (course.with[WITH_RETURNS]) {
        returner_begin();
        editor_add(RETURNER_SETTINGS);
    }
    if (course.with[WITH_DEAD])
        dead_begin(domains, course.domain_count, course.with[WITH_DISKS]);
    if (course.with[WITH_DEAD] && course.with[WITH_GROUP])
        dead_begin_group(group_has_redis() && !course.with[WITH_PATHS]);
    if (course.with[WITH_DEAD] && course.with[WITH_SLICES])
        dead_begin_slices();
    if (course.with[WITH_DEAD] && course.with[WITH_DAY])
        dead_begin_day(DAY_DEAD_ADDRESSES);
    if (course.with[WITH_DEAD] && course.with[WITH_COPIES])
        dead_copy();
}

/* Its target may be another than a hop. */
static void
begin_last_domain(void)
{
    if (course.with[WITH_MAILDIRS]) {
        course.domain_count = DOMAINS;
        targets[DOMAINS - 1] = MAILBOX_TARGET;
        mailbox_begin(DOMAINS - 1);
    }
    if (course.with[WITH_APP]) {
        course.domain_count = DOMAINS;
        targets[DOMAINS - 1] = app_begin(!course.with[WITH_PATHS]);
    }
    if (course.with[WITH_APP] && course.with[WITH_DAY])
        app_begin_day();
}

void
swarm_draw(const struct wishes *wishes)
{
    static const unsigned most[] = {10, 40, 40, 150, 150, 400};
    static const int64_t spans_ms[] = {MINUTE_MS, 10 * MINUTE_MS, HOUR_MS, 5 * HOUR_MS};
    draw_features(wishes);
    course.messages = 5 + roof_below(most[roof_below(6)]);
    course.domain_count = 1 + roof_below(DOMAINS);
    course.span_ms = roof_between(MINUTE_MS, spans_ms[roof_below(4)]);
    struct client_manners manners = {
        .injects = course.with[WITH_INJECTORS] ? 500 : 0,
    };
    manners.pipelining = roof_below(1001);
    manners.bdat = roof_below(500);
    manners.slow = roof_below(300);
    manners.cut = roof_chance(500) ? roof_below(300) : 0;
    manners.null_sender = roof_below(100);
    manners.notify = roof_below(400);
    draw_manners_of_features(&manners);
    if (course.with[WITH_TLS]) {
        manners.tls = 100 + roof_below(900);
        if (course.messages > FEW_UNDER_TLS)
            course.messages = FEW_UNDER_TLS;
    }
    if (plan_takes("many", 0)) {
        course.messages = draw_messages();
        manners.small = course.messages > MESSAGES_OF_ANY_SIZE;
        if (manners.small) /* handshakes are most of the work */
            manners.tls /= 3;
    }
    if (course.with[WITH_DAY])
        draw_day(&manners);
    if (course.with[WITH_DRILL])
        course.messages = DRILL_MESSAGES;
    client_set_manners(&manners);
    if (course.with[WITH_POLICIES] && course.domain_count < POLICY_DOMAINS)
        course.domain_count = POLICY_DOMAINS;
    begin_last_domain();
    model_begin(course.messages);
    model_set_domains(domains, course.domain_count);
    if (course.with[WITH_UPGRADES])
        upgrade_begin();
    begin_fleet(wishes->seed);
    client_set_hosts(group_count());
    editor_on_write(group_on_settings);
    editor_begin(fleet_targets(), domains, DOMAINS + 1,
                 roof_chance(500) ? roof_below(300) : 0);
    begin_ages();
    if (course.with[WITH_TLS])
        begin_tls();
    if (course.with[WITH_POLICIES])
        begin_policies();
    if (course.with[WITH_TOKENS])
        begin_tokens();
    begin_names();
    begin_returns();
    for (enum feature i = 0; i < FEATURES; i++)
        if (course.with[i])
            roof_note("with: %s", feature_names[i]);
    if (group_joins(course.with))
        split_demand();
    roof_note("messages: %u, domains: %u, span: %" PRId64 " s", course.messages,
              course.domain_count, course.span_ms / 1000);
}
