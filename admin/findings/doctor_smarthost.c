/* Smarthosts that we log in to, and the tokens that they want. */
#include "admin/findings/doctor_internal.h"

#include "base/format_time.h"
#include "smtp/oauth/oauth_file.h"
#include "base/disk/disk.h"
#include "base/memory.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* --- Which ---------------------------------------------------------------------------- */

struct host_walk {
    bool logs_in;
    size_t count;
    struct doctor_host met[DOCTOR_HOSTS_MAX];
};

static void
walk_target(void *context, const struct target *target)
{
    struct host_walk *w = context;
    for (size_t at = 0; target->kind == TARGET_SMTP && at < target_host_count(target);
         at++) {
        const struct target_host host = target_host(target, at);
        bool known = (host.user.length > 0) != w->logs_in;
        for (size_t i = 0; i < w->count && !known; i++) {
            const struct target_host met = target_host(w->met[i].target, w->met[i].at);
            known = text_equal_nocase(met.host, host.host) &&
                    text_equal(met.user, host.user) && met.port == host.port;
        }
        if (!known && w->count < DOCTOR_HOSTS_MAX)
            w->met[w->count++] = (struct doctor_host){target, at};
    }
}

bool
doctor_host_at(const struct route_table *routes, bool logs_in, size_t number,
               struct doctor_host *out)
{
    struct host_walk walk = {.logs_in = logs_in};
    route_each_target(routes, walk_target, &walk);
    if (number < walk.count)
        *out = walk.met[number];
    return number < walk.count;
}

/* --- smarthost.login ------------------------------------------------------------------ */

static void
advise_login(struct doctor *d, struct faults *out, const struct target_host *host,
             const char *subject)
{
    const struct provider_facts *f = provider_facts_find(host->host);
    faults_remedy(out,
                  "Correct the user in relay or routes, and the password in "
                  "relay_password or auth_passwords, of %s.",
                  doctor_settings(d));
    if (f != NULL && f->user[0] != '\0')
        faults_remedy(out, " The user for %s is: %s.", f->name, f->user);
    if (f != NULL && (strcmp(f->name, "Gmail") == 0 || strcmp(f->name, "Yahoo") == 0))
        faults_remedy(out, " %s takes an app password, or OAuth2.", f->name);
    if (f != NULL && strcmp(f->name, "Microsoft 365") == 0)
        faults_remedy(out,
                      " Microsoft 365 ends passwords: set oauth, then run petrel "
                      "oauth login %s.",
                      subject);
}

static void
judge_login(struct doctor *d, struct faults *out, const char *subject,
            const struct target_host *host, const struct inquiry_answer *a)
{
    switch ((enum doctor_login)a->verdict) {
    case DOCTOR_LOGIN_GOOD:
        faults_add(out, FAULT_OK, subject, "it accepts the login (%s)",
                   a->reason[0] != '\0' ? a->reason : "no TLS");
        return;
    case DOCTOR_LOGIN_DOWN:
        faults_add(out, FAULT_ERROR, subject, "no mail can be handed to it: %s",
                   a->reason);
        faults_remedy(out,
                      "See that host, port and scheme in relay or routes of %s are "
                      "those of its manual (submission:// is port 587 with STARTTLS, "
                      "submissions:// port 465), and that no firewall blocks them.",
                      doctor_settings(d));
        return;
    case DOCTOR_LOGIN_REFUSED:
    case DOCTOR_LOGIN_TOKEN:
        faults_add(out, FAULT_ERROR, subject, "it refuses the login: %s", a->reason);
        advise_login(d, out, host, subject);
        return;
    case DOCTOR_LOGIN_RECIPIENT: /* none is asked */
    case DOCTOR_LOGIN_SENDER:
        faults_add(out, FAULT_ERROR, subject,
                   "it accepts the login, but refuses our sender: %s", a->reason);
        faults_remedy(out,
                      "Set rewrite in %s to an address that the account may send as: "
                      "rewrite = * ADDRESS, or local ADDRESS for this host's own "
                      "mail.",
                      doctor_settings(d));
        return;
    }
    faults_add(out, FAULT_WARNING, subject, "it was not asked: %s", a->reason);
    faults_remedy(out, "Try again.");
}

/* subject: the number. */
bool
doctor_judge_login(const struct fault_world *w, struct faults *out)
{
    struct doctor *d = w->doctor;
    struct doctor_host h;
    uint64_t wanted = 0;
    char subject[TARGET_HOST_MAX + 300];
    (void)text_number(text_from(w->subject), DOCTOR_HOSTS_MAX, &wanted);
    const struct inquiry_answer *a = inquiry_ask(d->inquiry, INQUIRY_LOGIN, w->subject);
    if (a == NULL || !doctor_host_at(d->setup->routes, true, (size_t)wanted, &h))
        return a != NULL;
    const struct target_host host = target_host(h.target, h.at);
    snprintf(subject, sizeof(subject), "%.*s %.*s", TEXT_ARGS(host.host),
             TEXT_ARGS(text_before(host.user, 200)));
    if (a->status == DNS_TRY_AGAIN) {
        faults_add(out, FAULT_ERROR, subject, "%s", a->reason);
        faults_remedy(out, "See that no firewall blocks its port, and try again.");
    } else {
        judge_login(d, out, subject, &host, a);
    }
    return true;
}

/* --- Smarthosts without a login ------------------------------------------------------- */

/* subject: HOST:PORT. */
bool
doctor_judge_no_login(const struct fault_world *w, struct faults *out)
{
    struct doctor *d = w->doctor;
    const char *subject = w->subject;
    struct text host = text_from(subject);
    const struct provider_facts *f =
        provider_facts_find(text_before(host, text_find_last(host, ':')));
    if (f == NULL) {
        faults_add(out, FAULT_OK, subject,
                   "not tried: no user is set for it, so mail is handed to it "
                   "without a login");
        return true;
    }
    faults_add(out, FAULT_WARNING, subject,
               "not tried: no user is set for it, and %s usually accepts mail only "
               "after a login",
               f->name);
    faults_remedy(out,
                  "In %s write the user into relay or routes: "
                  "submission://USER@%.*s, and set relay_password or "
                  "auth_passwords.",
                  doctor_settings(d),
                  TEXT_ARGS(text_before(host, text_find_last(host, ':'))));
    if (f->user[0] != '\0')
        faults_remedy(out, " The user for %s is: %s.", f->name, f->user);
    return true;
}

/* --- oauth.token ---------------------------------------------------------------------- */

static void
judge_token(struct doctor *d, struct faults *out, const struct oauth_account *a,
            const struct oauth_state *state)
{
    char subject[600], until[FORMAT_TIME_MAX];
    int64_t now_ms = loop_now_ms(d->setup->loop);
    snprintf(subject, sizeof(subject), "%.250s %.250s", a->host, a->user);
    bool has_way =
        state->refresh.length > 0 || a->grant == OAUTH_CLIENT || a->refresh[0] != '\0';
    if (state->access.length > 0 && state->expires_ms > now_ms)
        faults_add(out, FAULT_OK, subject, "there is a token until %s%s",
                   format_time_until(state->expires_ms, now_ms, until),
                   has_way ? ", which is renewed" : "");
    else if (has_way)
        faults_add(out, FAULT_OK, subject,
                   "there is no valid token now; the next login asks for one");
    if (has_way)
        return;
    if (state->access.length == 0 || state->expires_ms <= now_ms)
        faults_add(out, FAULT_ERROR, subject,
                   "nobody has logged in: there is no token, and no way to ask for "
                   "one");
    else
        faults_add(out, FAULT_WARNING, subject,
                   "the token cannot be renewed when it ends");
    faults_remedy(out, "Run this as root:\n    petrel oauth login %s", subject);
}

bool
doctor_judge_tokens(const struct fault_world *w, struct faults *out)
{
    struct doctor *d = w->doctor;
    const struct accounts *accounts = d->setup->accounts;
    struct disk *spool;
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
            faults_add(out, FAULT_WARNING, a->host,
                       "the file of its token cannot be read: %s: %s", path,
                       strerror(-result));
            faults_remedy(out, "Run it as root, or as the user of the daemon.");
        } else {
            judge_token(d, out, a, &state);
        }
        oauth_state_free(&state);
    }
    if (spool != NULL)
        disk_close(&spool);
    return true;
}
