/* Collects the facts that findings judge. */
#include "admin/startup/parts.h"

#include "base/disk/disk.h"
#include "base/dns/dns.h"
#include "base/sandbox/sandbox.h"
#include "smtp/oauth/tokens.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

enum {
    APART_MANY = 1000, /* messages: counting them takes a while */
    APART_MANY_MS = 10 * 60 * 1000,
};

/* --- The settings ----------------------------------------------------------------- */

/* The route of mail that no other route takes: "* hold", or `relay = hold`. No domain
 * ends in .invalid (RFC 6761). */
static bool
part_findings_holds_rest(const struct route_table *routes)
{
    struct address any = {.local = TEXT(""), .domain = TEXT("any.invalid")};
    return route_find(routes, &any)->kind == TARGET_HOLD;
}

static void
part_findings_note_file(void *context, const char *path)
{
    struct daemon *d = context;
    struct part_findings_file *f = &d->findings.files[d->findings.file_count];
    if (d->findings.file_count < PART_FINDINGS_FILES_MAX && d->findings.here != NULL &&
        text_copy(f->path, sizeof(f->path), text_from(path)) &&
        disk_inspect(d->findings.here, path, &f->info) == 0)
        d->findings.file_count++;
}

static void
part_findings_note(struct daemon *d, const struct configuration *c)
{
    const struct options *o = &c->options;
    struct fault_world world = configuration_faults(c);
    faults_free(&d->findings.settled);
    d->findings.settled.when = FAULT_RUNNING;
    faults_judge(&d->findings.settled, &world);
    d->findings.settings =
        (struct finding_facts){.is_root = geteuid() == 0,
                               .settled = &d->findings.settled,
                               .holds_by_route = part_findings_holds_rest(c->routes),
                               .lifetime_ms = o->transport.lifetime_ms};
    d->findings.smtp_port = (uint16_t)o->delivery.smtp_port;
    d->findings.file_count = 0;
    settings_each_file(c->settings, part_findings_note_file, d);
}

/* --- Mail and sites --------------------------------------------------------------- */

enum { FINDINGS_MAIL_REST = 200 };

struct part_findings_walk {
    const struct sched *sched;
    struct finding_sites *sites;
    int64_t now_ms;
};

/* The first bytes of a long name say enough. */
static struct finding_site *
part_findings_keep(struct finding_site *worst, const struct sched_site *site,
                   int64_t since_ms)
{
    size_t mail = site->waiting + site->backlogged;
    if (mail <= worst->mail)
        return NULL;
    *worst = (struct finding_site){.since_ms = since_ms, .mail = mail};
    snprintf(worst->name, sizeof(worst->name), "%.*s", (int)sizeof(worst->name) - 1,
             site->key);
    return worst;
}

static void
part_findings_see_dead(struct part_findings_walk *w, const struct sched_site *site)
{
    const struct outcome *why = site->reason;
    int64_t since_ms = w->now_ms - site->dead_since_ms;
    if (site->dead_since_ms == 0 || site->bound == SCHED_BOUND_TOKEN)
        return;
    w->sites->silent += site->is_direct && site->dead_until_ms != 0 && why != NULL &&
                        strcmp(why->enhanced, "4.4.1") == 0;
    if (since_ms < FINDINGS_DEAD_MS)
        return;
    w->sites->dead++;
    struct finding_site *worst =
        part_findings_keep(&w->sites->worst_dead, site, since_ms);
    if (worst != NULL)
        (void)!text_copy(
            worst->why, sizeof(worst->why),
            text_before(text_from(why != NULL ? why->text : "it is probed"),
                        sizeof(worst->why) - 1));
}

/* Each waiting message counts as one transaction. */
static void
part_findings_see_slow(struct part_findings_walk *w, const struct sched_site *site)
{
    int64_t mail = (int64_t)(site->waiting + site->backlogged);
    if (site->rate == 0 || mail * 1000000 / site->rate < FINDINGS_SLOW_MS)
        return;
    w->sites->slow++;
    struct finding_site *worst = part_findings_keep(&w->sites->worst_slow, site,
                                                    w->now_ms - site->rate_since_ms);
    if (worst != NULL)
        snprintf(worst->why, sizeof(worst->why),
                 "%u messages in an hour; %zu recipients and %zu messages on disk wait",
                 (unsigned)((uint64_t)site->rate * 3600 / 1000), site->waiting,
                 site->backlogged);
}

static void
part_findings_see(void *context, const struct sched_site *site)
{
    struct part_findings_walk *w = context;
    if (site->waiting + site->backlogged == 0)
        return;
    part_findings_see_dead(w, site);
    part_findings_see_slow(w, site);
    int64_t since_ms = w->now_ms - site->crowded_since_ms;
    if (site->crowded_since_ms == 0 || since_ms < FINDINGS_CLOGGED_MS)
        return;
    w->sites->clogged++;
    struct finding_site *worst =
        part_findings_keep(&w->sites->worst_clogged, site, since_ms);
    if (worst != NULL)
        snprintf(
            worst->why, sizeof(worst->why),
            "%zu messages there, %zu recipients in memory, %d sessions, window %d; "
            "bound: %s",
            site->backlogged, site->waiting, site->sessions, site->window,
            sched_bound_word(site->bound));
}

/* Few sites have troubles. */
static void
part_findings_glance(void *context, const struct sched_glance *site)
{
    struct part_findings_walk *w = context;
    if (site->fails || site->is_crowded || site->is_slowed)
        sched_look(w->sched, site->site, part_findings_see, w);
}

static void
part_findings_walk(struct daemon *d)
{
    struct part_findings *f = &d->findings;
    const struct sched *sched = manager_sched(d->manager);
    struct part_findings_walk w = {
        .sched = sched, .sites = &f->sites, .now_ms = loop_now_ms(d->loop)};
    int64_t start_us = loop_clock_us();
    if (start_us < f->rest_us)
        return;
    f->sites = (struct finding_sites){.direct_greeted =
                                          sched_count(sched).direct_greetings > 0};
    sched_glance(sched, part_findings_glance, &w);
    int64_t end_us = loop_clock_us();
    f->rest_us = end_us + FINDINGS_MAIL_REST * (end_us - start_us);
}

/* With a clock that was set back, no mail is old. */
static int64_t
part_findings_age(int64_t birth_ms, int64_t now_ms)
{
    return birth_ms > 0 && birth_ms < now_ms ? now_ms - birth_ms : 0;
}

static void
part_findings_name_refuser(void *context, const char *receiver, const char *what)
{
    findings_name(context, "receiver_refuses_us", receiver, what);
}

static void
part_findings_name_lost(void *context, const char *host, const char *what)
{
    findings_name(context, "reports_lost", host, what);
}

static void
part_findings_name_pause(void *context, const char *target, int64_t left_ms)
{
    char text[FINDINGS_NAMED_TEXT_MAX], age[FINDINGS_AGE_MAX];
    snprintf(text, sizeof(text),
             "the account has reached its limit there: mail waits, and is tried again "
             "in %s",
             findings_age(left_ms, age));
    findings_name(context, "quota_used_up", target, text);
}

static void
part_findings_see_suppression(const struct daemon *d, struct finding_facts *facts)
{
    const struct suppression *s = manager_suppression(d->manager);
    if (s != NULL && suppression_count(s).is_full)
        findings_name(facts, "suppress_full", "suppress_limit",
                      "the list of suppressed addresses is full: others are tried "
                      "again after they have bounced");
}

void
part_findings_see_mail(struct daemon *d, struct finding_facts *facts)
{
    struct manager_oldest oldest;
    int64_t now_ms = loop_now_ms(d->loop);
    manager_find_oldest(d->manager, &oldest);
    facts->oldest_ms = part_findings_age(oldest.birth_ms, now_ms);
    facts->behind_ms = part_findings_age(oldest.behind_ms, now_ms);
    if (facts->behind_ms >= FINDINGS_OLD_MS) {
        char id[ID_LENGTH + 1];
        id_format(oldest.behind, id);
        (void)!text_copy(facts->behind_id, sizeof(facts->behind_id), text_from(id));
        const char *why = manager_reason(d->manager, oldest.behind, 0);
        snprintf(facts->behind, sizeof(facts->behind), "%s, %.*s", id,
                 (int)sizeof(facts->behind) - ID_LENGTH - 4,
                 why[0] != '\0' ? why : "not yet tried");
    }
    part_findings_walk(d);
    facts->sites = d->findings.sites;
    sched_quota_pauses(manager_sched(d->manager), part_findings_name_pause, facts);
    manager_refusers(d->manager, part_findings_name_refuser, facts);
    manager_lost_reports(d->manager, part_findings_name_lost, facts);
    part_findings_see_suppression(d, facts);
}

/* --- The process, its certificates, its fragments --------------------------------- */

static bool
part_findings_grows(struct part_findings_growth *growth, uint64_t count, int64_t now_ms)
{
    if (count > growth->count)
        growth->until_ms = now_ms + FINDINGS_RECENT_MS;
    growth->count = count;
    return now_ms < growth->until_ms;
}

static void
part_findings_see_certificate(struct daemon *d, const struct tls_certificate *one,
                              struct finding_facts *facts)
{
    if (facts->certificate != NULL && one->until_ms >= d->findings.certificate.until_ms)
        return;
    d->findings.certificate = *one;
    facts->certificate = d->findings.certificate.name;
    facts->certificate_ms = one->until_ms - loop_now_ms(d->loop);
}

/* Those of the listener, and those for next hops. */
static void
part_findings_see_certificates(struct daemon *d, const struct tls_server *tls,
                               struct finding_facts *facts)
{
    struct tls_certificate one;
    for (size_t i = 0; tls != NULL && tls_server_certificate(tls, i, &one); i++)
        part_findings_see_certificate(d, &one, facts);
    for (size_t i = 0; d->client_tls != NULL &&
                       tls_client_certificate(*delivery_tls(d->delivery), i, &one);
         i++)
        part_findings_see_certificate(d, &one, facts);
}

static void
part_findings_see_loop(const struct daemon *d, struct finding_facts *facts)
{
    const struct loop_pace *pace = loop_pace(d->loop);
    int64_t now_ms = loop_monotonic_ms(d->loop);
    if (pace->slow_us > 0 && now_ms - pace->slow_ms < FINDINGS_RECENT_MS) {
        facts->slow_us = pace->slow_us;
        facts->slow_part = pace->slow_part;
    }
    if (pace->jump_by_ms != 0 && now_ms - pace->jump_ms < FINDINGS_JUMP_MS)
        facts->jump_ms = pace->jump_by_ms;
}

void
part_findings_see_process(struct daemon *d, const struct tls_server *tls,
                          const struct manager_fragments *fragments,
                          struct finding_facts *facts)
{
    int64_t now_ms = loop_monotonic_ms(d->loop);
    uint64_t lost = log_counts(d->log)->lost;
    facts->log_lost = part_findings_grows(&d->findings.lost, lost, now_ms) ? lost : 0;
    facts->namesake =
        part_findings_grows(&d->findings.namesakes, fragments->namesakes, now_ms);
    facts->fragments = fragments->messages;
    if (fragments->oldest_ms > 0)
        facts->fragments_ms = loop_now_ms(d->loop) - fragments->oldest_ms;
    part_findings_see_certificates(d, tls, facts);
    part_findings_see_loop(d, facts);
}

/* --- Logins and keys of delivery --------------------------------------------------- */

/* A provider that cannot be reached is no refusal: it is asked again soon. */
static void
part_findings_name_account(void *context, const struct tokens_view *view)
{
    char subject[2 * HTTP_URL_MAX], object[2 * HTTP_URL_MAX];
    const struct oauth_account *a = view->account;
    if (!view->refused)
        return;
    snprintf(subject, sizeof(subject), "%s at %s", a->user, a->host);
    snprintf(object, sizeof(object), "%s %s", a->host, a->user);
    findings_name_object(context, "oauth_refused", subject, view->trouble, object);
}

static void
part_findings_name_key(void *context, const char *name, const char *domain,
                       const char *why)
{
    findings_name_object(context, "dkim_failed", name, why, domain);
}

static void
part_findings_see_logins(const struct daemon *daemon, struct finding_facts *facts)
{
    if (daemon->tokens.tokens != NULL)
        tokens_each(daemon->tokens.tokens, part_findings_name_account, facts);
    signing_each_trouble(delivery_signing(daemon->delivery), part_findings_name_key,
                         facts);
}

/* --- A look ----------------------------------------------------------------------- */

static const char *
find_changed(const struct daemon *d)
{
    for (size_t i = 0; i < d->findings.file_count; i++) {
        const struct part_findings_file *f = &d->findings.files[i];
        struct disk_info info;
        if (disk_inspect(d->findings.here, f->path, &info) == 0 &&
            (info.changed_ms != f->info.changed_ms || info.size != f->info.size))
            return f->path;
    }
    return NULL;
}

/* Two directories are read: where they are large, seldom. */
static void
count_apart(struct daemon *d)
{
    int64_t now_ms = loop_monotonic_ms(d->loop);
    bool are_many = d->findings.apart.held + d->findings.apart.quarantined > APART_MANY;
    if (are_many && !d->findings.apart.is_partial &&
        now_ms - d->findings.apart_ms < APART_MANY_MS)
        return;
    d->findings.apart = queue_count_apart(manager_queue(d->manager));
    d->findings.apart_ms = now_ms;
}

static void
part_findings_see_copies(struct daemon *d, struct finding_facts *facts)
{
    struct manager_copied copied = manager_copied(d->manager);
    if (copied.failed == 0 ||
        loop_monotonic_ms(d->loop) - copied.failed_ms >= FINDINGS_COPY_MS)
        return;
    (void)text_copy(d->findings.copy_failed_to, sizeof(d->findings.copy_failed_to),
                    text_from(copied.failed_to));
    facts->copy_failed_to = d->findings.copy_failed_to;
    facts->copies_failed = copied.failed;
}

/* A findings_setup.collect. */
static void
part_findings_collect(void *context, struct finding_facts *facts)
{
    struct daemon *d = context;
    const struct sandbox_state *sandbox = sandbox_get_state(d->sandbox);
    *facts = d->findings.settings;
    count_apart(d);
    facts->health = queue_health(manager_queue(d->manager));
    facts->held = d->findings.apart.held;
    facts->quarantined = d->findings.apart.quarantined;
    facts->held_ms = d->findings.apart.oldest_held_ms != 0
                         ? loop_now_ms(d->loop) - d->findings.apart.oldest_held_ms
                         : 0;
    part_findings_see_mail(d, facts);
    part_sts_find(d, facts);
    struct manager_fragments fragments = {0};
    (void)manager_fragments(d->manager, &fragments);
    part_findings_see_logins(d, facts);
    part_findings_see_process(d, listener_tls(d->listener), &fragments, facts);
    part_findings_see_copies(d, facts);
    facts->open_relay = listener_is_open_relay(d->listener);
    facts->auth_cleartext = listener_takes_cleartext(d->listener);
    facts->auth_trouble = listener_auth_trouble(d->listener);
    facts->certificate_trouble = part_tls_trouble(d);
    facts->sites.smtp_port = d->findings.smtp_port;
    facts->is_stopping = daemon_is_leaving(d);
    facts->events = event_hub_keeping(d->events);
    facts->history_paused = history_state(d->history).paused;
    facts->registry_down =
        d->fragments.registry != NULL && !registry_is_up(d->fragments.registry);
    part_group_find(d, facts);
    part_copies_find(d, facts);
    if (dns_trouble(d->dns, d->findings.name_servers, sizeof(d->findings.name_servers)))
        facts->name_servers = d->findings.name_servers;
    facts->sandbox_missing = sandbox->entered ? sandbox->missing : "";
    facts->sandbox_refused = sandbox_refused();
    facts->changed_settings = find_changed(d);
}

int
part_findings_start(struct daemon *d)
{
    struct part_findings *f = &d->findings;
    if (disk_open(&f->here, ".", false) != 0)
        f->here = NULL;
    part_findings_note(d, d->configuration);
    f->findings =
        findings_new(&(struct findings_setup){.loop = d->loop,
                                              .events = d->events,
                                              .collect = part_findings_collect,
                                              .context = d});
    questions_on_findings(control_server_questions(d->control), findings_json,
                          f->findings);
    return 0;
}

void
part_findings_reload(struct daemon *d, struct configuration *fresh)
{
    part_findings_note(d, fresh);
    findings_look(d->findings.findings);
}

void
part_findings_refused(struct daemon *d)
{
    d->findings.settings.reload_refused = true;
    findings_look(d->findings.findings);
}

void
part_findings_stop(struct daemon *d)
{
    findings_free(&d->findings.findings);
    faults_free(&d->findings.settled);
    if (d->findings.here != NULL)
        disk_close(&d->findings.here);
}
