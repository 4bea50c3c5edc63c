/* Collects the facts that findings judge. */
#include "admin/startup/findings_wiring.h"

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
findings_wiring_holds_rest(const struct route_table *routes)
{
    struct address any = {.local = TEXT(""), .domain = TEXT("any.invalid")};
    return route_find(routes, &any)->kind == TARGET_HOLD;
}

static void
findings_wiring_note_file(void *context, const char *path)
{
    struct findings_wiring *w = context;
    struct findings_file *f = &w->files[w->file_count];
    if (w->file_count < FINDINGS_FILES_MAX && w->here != NULL &&
        text_copy(f->path, sizeof(f->path), text_from(path)) &&
        disk_inspect(w->here, path, &f->info) == 0)
        w->file_count++;
}

static void
findings_wiring_note(struct findings_wiring *w, const struct configuration *c)
{
    const struct options *o = &c->options;
    struct fault_world world = {
        .options = o, .settings = c->settings, .routes = c->routes};
    faults_free(&w->settled);
    w->settled.when = FAULT_RUNNING;
    faults_judge(&w->settled, &world);
    w->settings =
        (struct finding_facts){.is_root = geteuid() == 0,
                               .settled = &w->settled,
                               .holds_by_route = findings_wiring_holds_rest(c->routes),
                               .lifetime_ms = o->transport.lifetime_ms};
    w->smtp_port = (uint16_t)o->delivery.smtp_port;
    w->file_count = 0;
    settings_each_file(c->settings, findings_wiring_note_file, w);
}

/* --- Mail and sites --------------------------------------------------------------- */

enum { FINDINGS_MAIL_REST = 200 };

struct findings_mail_walk {
    const struct sched *sched;
    struct finding_sites *sites;
    int64_t now_ms;
};

/* The first bytes of a long name say enough. */
static struct finding_site *
findings_mail_keep(struct finding_site *worst, const struct sched_site *site,
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
findings_mail_see_dead(struct findings_mail_walk *w, const struct sched_site *site)
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
        findings_mail_keep(&w->sites->worst_dead, site, since_ms);
    if (worst != NULL)
        (void)!text_copy(
            worst->why, sizeof(worst->why),
            text_before(text_from(why != NULL ? why->text : "it is probed"),
                        sizeof(worst->why) - 1));
}

/* Each waiting message counts as one transaction. */
static void
findings_mail_see_slow(struct findings_mail_walk *w, const struct sched_site *site)
{
    int64_t mail = (int64_t)(site->waiting + site->backlogged);
    if (site->rate == 0 || mail * 1000000 / site->rate < FINDINGS_SLOW_MS)
        return;
    w->sites->slow++;
    struct finding_site *worst = findings_mail_keep(&w->sites->worst_slow, site,
                                                    w->now_ms - site->rate_since_ms);
    if (worst != NULL)
        snprintf(worst->why, sizeof(worst->why),
                 "%u messages in an hour; %zu recipients and %zu messages on disk wait",
                 (unsigned)((uint64_t)site->rate * 3600 / 1000), site->waiting,
                 site->backlogged);
}

static void
findings_mail_see(void *context, const struct sched_site *site)
{
    struct findings_mail_walk *w = context;
    if (site->waiting + site->backlogged == 0)
        return;
    findings_mail_see_dead(w, site);
    findings_mail_see_slow(w, site);
    int64_t since_ms = w->now_ms - site->crowded_since_ms;
    if (site->crowded_since_ms == 0 || since_ms < FINDINGS_CLOGGED_MS)
        return;
    w->sites->clogged++;
    struct finding_site *worst =
        findings_mail_keep(&w->sites->worst_clogged, site, since_ms);
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
findings_mail_glance(void *context, const struct sched_glance *site)
{
    struct findings_mail_walk *w = context;
    if (site->fails || site->is_crowded || site->is_slowed)
        sched_look(w->sched, site->site, findings_mail_see, w);
}

static void
findings_mail_walk_sites(struct findings_mail *mail, const struct sched *sched,
                         int64_t now_ms)
{
    struct findings_mail_walk w = {
        .sched = sched, .sites = &mail->sites, .now_ms = now_ms};
    int64_t start_us = loop_clock_us();
    if (start_us < mail->rest_us)
        return;
    mail->sites = (struct finding_sites){.direct_greeted =
                                             sched_count(sched).direct_greetings > 0};
    sched_glance(sched, findings_mail_glance, &w);
    int64_t end_us = loop_clock_us();
    mail->rest_us = end_us + FINDINGS_MAIL_REST * (end_us - start_us);
}

/* With a clock that was set back, no mail is old. */
static int64_t
findings_mail_age(int64_t birth_ms, int64_t now_ms)
{
    return birth_ms > 0 && birth_ms < now_ms ? now_ms - birth_ms : 0;
}

static void
findings_mail_name_refuser(void *context, const char *receiver, const char *what)
{
    findings_name(context, "receiver_refuses_us", receiver, what);
}

static void
findings_mail_name_lost(void *context, const char *host, const char *what)
{
    findings_name(context, "reports_lost", host, what);
}

static void
findings_mail_name_pause(void *context, const char *target, int64_t left_ms)
{
    char text[FINDINGS_NAMED_TEXT_MAX], age[FINDINGS_AGE_MAX];
    snprintf(text, sizeof(text),
             "the account has reached its limit there: mail waits, and is tried again "
             "in %s",
             findings_age(left_ms, age));
    findings_name(context, "quota_used_up", target, text);
}

void
findings_mail_collect(struct findings_mail *mail, struct manager *manager,
                      int64_t now_ms, struct finding_facts *facts)
{
    struct manager_oldest oldest;
    manager_find_oldest(manager, &oldest);
    facts->oldest_ms = findings_mail_age(oldest.birth_ms, now_ms);
    facts->behind_ms = findings_mail_age(oldest.behind_ms, now_ms);
    if (facts->behind_ms >= FINDINGS_OLD_MS) {
        char id[ID_LENGTH + 1];
        id_format(oldest.behind, id);
        (void)!text_copy(facts->behind_id, sizeof(facts->behind_id), text_from(id));
        const char *why = manager_reason(manager, oldest.behind, 0);
        snprintf(facts->behind, sizeof(facts->behind), "%s, %.*s", id,
                 (int)sizeof(facts->behind) - ID_LENGTH - 4,
                 why[0] != '\0' ? why : "not yet tried");
    }
    findings_mail_walk_sites(mail, manager_sched(manager), now_ms);
    facts->sites = mail->sites;
    sched_quota_pauses(manager_sched(manager), findings_mail_name_pause, facts);
    manager_refusers(manager, findings_mail_name_refuser, facts);
    manager_lost_reports(manager, findings_mail_name_lost, facts);
}

/* --- The process, its certificates, its fragments --------------------------------- */

static bool
findings_daemon_grows(struct findings_growth *growth, uint64_t count, int64_t now_ms)
{
    if (count > growth->count)
        growth->until_ms = now_ms + FINDINGS_RECENT_MS;
    growth->count = count;
    return now_ms < growth->until_ms;
}

static void
findings_daemon_see_certificates(struct findings_daemon *d,
                                 const struct tls_server *tls,
                                 struct finding_facts *facts)
{
    struct tls_certificate one;
    for (size_t i = 0; tls != NULL && tls_server_certificate(tls, i, &one); i++)
        if (facts->certificate == NULL || one.until_ms < d->certificate.until_ms) {
            d->certificate = one;
            facts->certificate = d->certificate.name;
            facts->certificate_ms = one.until_ms - loop_now_ms(d->loop);
        }
}

static void
findings_daemon_see_loop(const struct findings_daemon *d, struct finding_facts *facts)
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
findings_daemon_collect(struct findings_daemon *d, const struct tls_server *tls,
                        const struct manager_fragments *fragments,
                        struct finding_facts *facts)
{
    int64_t now_ms = loop_monotonic_ms(d->loop);
    uint64_t lost = log_counts(d->log)->lost;
    facts->log_lost = findings_daemon_grows(&d->lost, lost, now_ms) ? lost : 0;
    facts->namesake =
        findings_daemon_grows(&d->namesakes, fragments->namesakes, now_ms);
    facts->fragments = fragments->messages;
    if (fragments->oldest_ms > 0)
        facts->fragments_ms = loop_now_ms(d->loop) - fragments->oldest_ms;
    findings_daemon_see_certificates(d, tls, facts);
    findings_daemon_see_loop(d, facts);
}

/* --- Logins and keys of delivery --------------------------------------------------- */

/* A provider that cannot be reached is no refusal: it is asked again soon. */
static void
findings_wiring_name_account(void *context, const struct tokens_view *view)
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
findings_wiring_name_key(void *context, const char *name, const char *domain,
                         const char *why)
{
    findings_name_object(context, "dkim_failed", name, why, domain);
}

static void
findings_wiring_see_logins(const struct daemon *daemon, struct finding_facts *facts)
{
    if (daemon->tokens.tokens != NULL)
        tokens_each(daemon->tokens.tokens, findings_wiring_name_account, facts);
    delivery_each_key_trouble(daemon->delivery, findings_wiring_name_key, facts);
}

/* --- A look ----------------------------------------------------------------------- */

static const char *
find_changed(const struct findings_wiring *w)
{
    for (size_t i = 0; i < w->file_count; i++) {
        const struct findings_file *f = &w->files[i];
        struct disk_info info;
        if (disk_inspect(w->here, f->path, &info) == 0 &&
            (info.changed_ms != f->info.changed_ms || info.size != f->info.size))
            return f->path;
    }
    return NULL;
}

/* Two directories are read: where they are large, seldom. */
static void
count_apart(struct findings_wiring *w)
{
    int64_t now_ms = loop_monotonic_ms(w->loop);
    bool are_many = w->apart.held + w->apart.quarantined > APART_MANY;
    if (are_many && !w->apart.is_partial && now_ms - w->apart_ms < APART_MANY_MS)
        return;
    w->apart = queue_count_apart(manager_queue(w->manager));
    w->apart_ms = now_ms;
}

/* A findings_setup.collect. */
static void
findings_wiring_collect(void *context, struct finding_facts *facts)
{
    struct findings_wiring *w = context;
    const struct sandbox_state *sandbox = sandbox_get_state(w->sandbox);
    *facts = w->settings;
    count_apart(w);
    facts->health = queue_health(manager_queue(w->manager));
    facts->held = w->apart.held;
    facts->quarantined = w->apart.quarantined;
    facts->held_ms = w->apart.oldest_held_ms != 0
                         ? loop_now_ms(w->loop) - w->apart.oldest_held_ms
                         : 0;
    findings_mail_collect(&w->mail, w->manager, loop_now_ms(w->loop), facts);
    part_sts_find(w->context, facts);
    struct manager_fragments fragments = {0};
    (void)manager_fragments(w->manager, &fragments);
    findings_wiring_see_logins(w->context, facts);
    findings_daemon_collect(&w->daemon, listener_tls(w->listener), &fragments, facts);
    facts->open_relay = listener_is_open_relay(w->listener);
    facts->auth_cleartext = listener_takes_cleartext(w->listener);
    facts->certificate_trouble = part_tls_trouble(w->context);
    facts->sites.smtp_port = w->smtp_port;
    facts->is_stopping = w->is_draining(w->context);
    facts->events = event_hub_keeping(w->events);
    facts->history_paused = history_state(w->history).paused;
    facts->registry_down = w->registry != NULL && !registry_is_up(w->registry);
    part_group_find(w->context, facts);
    if (dns_trouble(w->dns, w->name_servers, sizeof(w->name_servers)))
        facts->name_servers = w->name_servers;
    facts->sandbox_missing = sandbox->entered ? sandbox->missing : "";
    facts->sandbox_refused = sandbox_refused();
    facts->changed_settings = find_changed(w);
}

void
findings_wiring_start(struct findings_wiring *w, const struct configuration *c)
{
    if (disk_open(&w->here, ".", false) != 0)
        w->here = NULL;
    findings_wiring_note(w, c);
    w->daemon.loop = w->loop;
    w->daemon.log = w->log;
    w->findings =
        findings_new(&(struct findings_setup){.loop = w->loop,
                                              .events = w->events,
                                              .collect = findings_wiring_collect,
                                              .context = w});
    questions_on_findings(w->questions, findings_json, w->findings);
}

void
findings_wiring_reload(struct findings_wiring *w, const struct configuration *c)
{
    if (c != NULL)
        findings_wiring_note(w, c);
    else
        w->settings.reload_refused = true;
    findings_look(w->findings);
}

void
findings_wiring_stop(struct findings_wiring *w)
{
    findings_free(&w->findings);
    faults_free(&w->settled);
    if (w->here != NULL)
        disk_close(&w->here);
}
