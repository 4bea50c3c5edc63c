/* Smarthosts that we log in to, and the tokens that they want. */
#include "admin/doctor/doctor_internal.h"

#include "admin/control/format_time.h"
#include "smtp/oauth/oauth_file.h"
#include "base/disk/disk.h"
#include "base/memory.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { PLAIN_HOST_MAX = 255 + 8 };

/* --- Which ---------------------------------------------------------------------------- */

struct host_walk {
    doctor_host_met *each;
    void *context;
    size_t number;
    struct met_host {
        struct text host, user;
        uint16_t port;
    } met[DOCTOR_HOSTS_MAX];
};

static void
walk_target(void *context, const struct target *target)
{
    struct host_walk *w = context;
    if (target->kind != TARGET_SMTP)
        return;
    for (size_t at = 0; at < target_host_count(target); at++) {
        const struct target_host host = target_host(target, at);
        bool known = host.user.length == 0;
        for (size_t i = 0; i < w->number && !known; i++)
            known = text_equal_nocase(w->met[i].host, host.host) &&
                    text_equal(w->met[i].user, host.user) &&
                    w->met[i].port == host.port;
        if (known || w->number == DOCTOR_HOSTS_MAX)
            continue;
        w->met[w->number] = (struct met_host){host.host, host.user, host.port};
        w->each(w->context, w->number++, target, at);
    }
}

void
doctor_each_host(const struct route_table *routes, doctor_host_met *each, void *context)
{
    struct host_walk walk = {.each = each, .context = context};
    route_each_target(routes, walk_target, &walk);
}

/* --- smarthost.login ------------------------------------------------------------------ */

struct found_host {
    size_t wanted;
    const struct target *target;
    size_t at;
};

static void
find_host(void *context, size_t number, const struct target *target, size_t at)
{
    struct found_host *f = context;
    if (number == f->wanted) {
        f->target = target;
        f->at = at;
    }
}

static void
advise_login(struct doctor *d, struct checklist *out, const struct target_host *host,
             const char *subject)
{
    const struct provider_facts *f = provider_facts_find(host->host);
    checklist_remedy(out,
                     "Correct the user in relay or routes, and the password in "
                     "relay_password or auth_passwords, of %s.",
                     doctor_settings(d));
    if (f != NULL && f->user[0] != '\0')
        checklist_remedy(out, " The user for %s is: %s.", f->name, f->user);
    if (f != NULL && (strcmp(f->name, "Gmail") == 0 || strcmp(f->name, "Yahoo") == 0))
        checklist_remedy(out, " %s takes an app password, or OAuth2.", f->name);
    if (f != NULL && strcmp(f->name, "Microsoft 365") == 0)
        checklist_remedy(out,
                         " Microsoft 365 ends passwords: set oauth, then run petrel "
                         "oauth login %s.",
                         subject);
}

static void
judge_login(struct doctor *d, struct checklist *out, const char *subject,
            const struct target_host *host, const struct inquiry_answer *a)
{
    const char *code = "smarthost.login";
    switch ((enum doctor_login)a->verdict) {
    case DOCTOR_LOGIN_GOOD:
        checklist_add(out, code, CHECK_OK, subject, "it accepts the login (%s)",
                      a->reason[0] != '\0' ? a->reason : "no TLS");
        return;
    case DOCTOR_LOGIN_DOWN:
        checklist_add(out, code, CHECK_ERROR, subject,
                      "no mail can be handed to it: %s", a->reason);
        checklist_remedy(
            out,
            "See that host, port and scheme in relay or routes of %s are "
            "those of its manual (submission:// is port 587 with STARTTLS, "
            "submissions:// port 465), and that no firewall blocks them.",
            doctor_settings(d));
        return;
    case DOCTOR_LOGIN_REFUSED:
    case DOCTOR_LOGIN_TOKEN:
        checklist_add(out, code, CHECK_ERROR, subject, "it refuses the login: %s",
                      a->reason);
        advise_login(d, out, host, subject);
        return;
    case DOCTOR_LOGIN_RECIPIENT: /* none is asked */
    case DOCTOR_LOGIN_SENDER:
        checklist_add(out, code, CHECK_ERROR, subject,
                      "it accepts the login, but refuses our sender: %s", a->reason);
        checklist_remedy(
            out,
            "Set rewrite in %s to an address that the account may send as: "
            "rewrite = * ADDRESS, or local ADDRESS for this host's own "
            "mail.",
            doctor_settings(d));
        return;
    }
    checklist_add(out, code, CHECK_WARNING, subject, "it was not asked: %s", a->reason);
    checklist_remedy(out, "Try again.");
}

/* subject: the number. */
static bool
check_login(struct doctor *d, struct checklist *out, const char *number)
{
    uint64_t wanted = 0;
    char subject[TARGET_HOST_MAX + 300];
    (void)text_number(text_from(number), DOCTOR_HOSTS_MAX, &wanted);
    struct found_host f = {.wanted = (size_t)wanted};
    doctor_each_host(d->setup->routes, find_host, &f);
    const struct inquiry_answer *a = inquiry_ask(d->inquiry, INQUIRY_LOGIN, number);
    if (a == NULL || f.target == NULL)
        return f.target == NULL;
    const struct target_host host = target_host(f.target, f.at);
    snprintf(subject, sizeof(subject), "%.*s %.*s", TEXT_ARGS(host.host),
             TEXT_ARGS(text_before(host.user, 200)));
    if (a->status == DNS_TRY_AGAIN) {
        checklist_add(out, "smarthost.login", CHECK_ERROR, subject, "%s", a->reason);
        checklist_remedy(out, "See that no firewall blocks its port, and try again.");
    } else {
        judge_login(d, out, subject, &host, a);
    }
    return true;
}

static void
add_login(void *context, size_t number, const struct target *target, size_t at)
{
    char key[24];
    (void)target;
    (void)at;
    snprintf(key, sizeof(key), "%zu", number);
    doctor_add_task(context, check_login, key);
}

/* --- Smarthosts without a login ------------------------------------------------------- */

/* subject: HOST:PORT. */
static bool
check_no_login(struct doctor *d, struct checklist *out, const char *subject)
{
    struct text host = text_from(subject);
    const struct provider_facts *f =
        provider_facts_find(text_before(host, text_find_last(host, ':')));
    if (f == NULL) {
        checklist_add(out, "smarthost.login", CHECK_OK, subject,
                      "not tried: no user is set for it, so mail is handed to it "
                      "without a login");
        return true;
    }
    checklist_add(out, "smarthost.login", CHECK_WARNING, subject,
                  "not tried: no user is set for it, and %s usually accepts mail only "
                  "after a login",
                  f->name);
    checklist_remedy(out,
                     "In %s write the user into relay or routes: "
                     "submission://USER@%.*s, and set relay_password or "
                     "auth_passwords.",
                     doctor_settings(d),
                     TEXT_ARGS(text_before(host, text_find_last(host, ':'))));
    if (f->user[0] != '\0')
        checklist_remedy(out, " The user for %s is: %s.", f->name, f->user);
    return true;
}

struct plain_walk {
    struct doctor *doctor;
    size_t number;
    char met[DOCTOR_HOSTS_MAX][PLAIN_HOST_MAX];
};

static void
add_no_login(void *context, const struct target *target)
{
    struct plain_walk *w = context;
    if (target->kind != TARGET_SMTP)
        return;
    for (size_t at = 0; at < target_host_count(target); at++) {
        const struct target_host host = target_host(target, at);
        char key[PLAIN_HOST_MAX];
        bool known = host.user.length > 0 || w->number == DOCTOR_HOSTS_MAX;
        snprintf(key, sizeof(key), "%.*s:%u", TEXT_ARGS(text_before(host.host, 255)),
                 (unsigned)host.port);
        for (size_t i = 0; i < w->number && !known; i++)
            known = strcmp(w->met[i], key) == 0;
        if (known)
            continue;
        memcpy(w->met[w->number++], key, sizeof(key));
        doctor_add_task(w->doctor, check_no_login, key);
    }
}

static void
doctor_add_plain_hosts(struct doctor *d)
{
    struct plain_walk *w = memory_new(sizeof(*w));
    w->doctor = d;
    route_each_target(d->setup->routes, add_no_login, w);
    free(w);
}

/* --- oauth.token ---------------------------------------------------------------------- */

static void
judge_token(struct doctor *d, struct checklist *out, const struct oauth_account *a,
            const struct oauth_state *state)
{
    const char *code = "oauth.token";
    char subject[600], until[FORMAT_TIME_MAX];
    int64_t now_ms = loop_now_ms(d->setup->loop);
    snprintf(subject, sizeof(subject), "%.250s %.250s", a->host, a->user);
    bool has_way =
        state->refresh.length > 0 || a->grant == OAUTH_CLIENT || a->refresh[0] != '\0';
    if (state->access.length > 0 && state->expires_ms > now_ms)
        checklist_add(out, code, CHECK_OK, subject, "there is a token until %s%s",
                      format_time_until(state->expires_ms, now_ms, until),
                      has_way ? ", which is renewed" : "");
    else if (has_way)
        checklist_add(out, code, CHECK_OK, subject,
                      "there is no valid token now; the next login asks for one");
    if (has_way)
        return;
    if (state->access.length == 0 || state->expires_ms <= now_ms)
        checklist_add(out, code, CHECK_ERROR, subject,
                      "nobody has logged in: there is no token, and no way to ask for "
                      "one");
    else
        checklist_add(out, code, CHECK_WARNING, subject,
                      "the token cannot be renewed when it ends");
    checklist_remedy(out, "Run this as root:\n    petrel oauth login %s", subject);
}

static bool
check_tokens(struct doctor *d, struct checklist *out, const char *subject)
{
    const struct accounts *accounts = d->setup->accounts;
    struct disk *spool;
    (void)subject;
    if (disk_open(&spool, d->options->spool, false) != 0)
        spool = NULL;
    for (size_t i = 0; i < accounts->count; i++) {
        const struct oauth_account *a = &accounts->list[i];
        char path[OAUTH_FILE_PATH_MAX];
        struct oauth_state state;
        int result = -ENOENT;
        oauth_state_init(&state);
        oauth_file_path(a, path);
        if (spool != NULL)
            result = oauth_file_read(spool, path, a, &state, NULL);
        if (result < 0 && result != -ENOENT) {
            checklist_add(out, "oauth.token", CHECK_WARNING, a->host,
                          "the file of its token cannot be read: %s: %s", path,
                          strerror(-result));
            checklist_remedy(out, "Run it as root, or as the user of the daemon.");
        } else {
            judge_token(d, out, a, &state);
        }
        oauth_state_free(&state);
    }
    if (spool != NULL)
        disk_close(&spool);
    return true;
}

void
doctor_add_smarthost_tasks(struct doctor *d)
{
    doctor_add_plain_hosts(d);
    if (!d->setup->has_secrets)
        return;
    doctor_each_host(d->setup->routes, add_login, d);
    doctor_add_task(d, check_tokens, "");
}
