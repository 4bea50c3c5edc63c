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
