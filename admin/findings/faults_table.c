/* The table of faults, and the judges of the running daemon, which ask its facts. */
#include "admin/findings/faults_internal.h"

#include "admin/findings/doctor_internal.h"
#include "admin/findings/findings.h"

#include <inttypes.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

enum { LOW_TIMES = 2 /* the reserve: less is low */ };
#define DAY_MS (INT64_C(24) * 60 * 60 * 1000)

/* --- Members ---------------------------------------------------------------------- */

static const void *
judge_member(const struct fault_world *w, const struct faults *out)
{
    return (const char *)w->facts + out->row->fact;
}

static bool
judge_flag(const struct fault_world *w, struct faults *out)
{
    return *(const bool *)judge_member(w, out);
}

/* A string that is neither NULL nor empty: the end of the sentence. */
static bool
judge_words(const struct fault_world *w, struct faults *out)
{
    const char *words = *(const char *const *)judge_member(w, out);
    const char *before = out->row->sentence != NULL ? out->row->sentence : "";
    if (words != NULL && words[0] != '\0')
        faults_found(out, "%s%s", before, words);
    return false;
}

/* --- The queue -------------------------------------------------------------------- */

static bool
judge_not_accepting(const struct fault_world *w, struct faults *out)
{
    const struct finding_facts *f = w->facts;
    return !f->health.accepting && !f->is_stopping &&
           faults_found(out, "new mail is refused for now: %s", f->health.reason);
}

static bool
is_low(int64_t free, int64_t reserve)
{
    return free >= 0 && reserve > 0 && free / LOW_TIMES < reserve;
}

static bool
judge_disk_low(const struct fault_world *w, struct faults *out)
{
    const struct finding_facts *f = w->facts;
    const struct queue_health *h = &f->health;
    if (is_low(h->bytes_free, h->bytes_reserve))
        return faults_found(out,
                            "the spool has %" PRId64 " MiB free; below %" PRId64
                            " MiB new mail is refused",
                            h->bytes_free >> 20, h->bytes_reserve >> 20);
    return is_low(h->inodes_free, h->inodes_reserve) &&
           faults_found(out,
                        "the spool has %" PRId64 " inodes free; below %" PRId64
                        " new mail is refused",
                        h->inodes_free, h->inodes_reserve);
}

static bool
judge_journal_damaged(const struct fault_world *w, struct faults *out)
{
    const struct finding_facts *f = w->facts;
    return f->health.damages > 0 &&
           faults_found(out,
                        "startup kept %u piece%s of the journal that it could not read",
                        f->health.damages, f->health.damages == 1 ? "" : "s");
}

static bool
judge_corrupt(const struct fault_world *w, struct faults *out)
{
    const struct finding_facts *f = w->facts;
    return f->quarantined > 0 &&
           faults_found(out, "%zu message%s quarantined in corrupt/", f->quarantined,
                        f->quarantined == 1 ? " is" : "s are");
}

/* --- Mail and sites --------------------------------------------------------------- */

/* As few sites may be down by themselves, and mail that has reached one is proof. */
static bool
judge_port_25_blocked(const struct fault_world *w, struct faults *out)
{
    const struct finding_facts *f = w->facts;
    const struct finding_sites *s = &f->sites;
    return !s->direct_greeted && s->silent >= FINDINGS_SILENT &&
           faults_found(out,
                        "%zu sites do not answer on port %u, and none ever has since "
                        "startup",
                        s->silent, (unsigned)s->smtp_port);
}

static bool
judge_site_dead(const struct fault_world *w, struct faults *out)
{
    const struct finding_sites *s = &w->facts->sites;
    const struct finding_site *worst = &s->worst_dead;
    char age[FINDINGS_AGE_MAX];
    if (s->dead == 0)
        return false;
    findings_age(worst->since_ms, age);
    if (s->dead == 1)
        faults_found(out, "%s has not worked for %s, and mail waits: %s", worst->name,
                     age, worst->why);
    else
        faults_found(out,
                     "%zu sites have not worked for 2 minutes, and mail waits; most "
                     "for %s (%s): %s",
                     s->dead, worst->name, age, worst->why);
    return faults_about(out, worst->name);
}

static bool
judge_site_clogs(const struct fault_world *w, struct faults *out)
{
    const struct finding_site *worst = &w->facts->sites.worst_clogged;
    char age[FINDINGS_AGE_MAX];
    if (w->facts->sites.clogged == 0)
        return false;
    faults_found(out, "mail for %s has waited on disk for %s: %s", worst->name,
                 findings_age(worst->since_ms, age), worst->why);
    return faults_about(out, worst->name);
}

static bool
judge_site_slow(const struct fault_world *w, struct faults *out)
{
    const struct finding_site *worst = &w->facts->sites.worst_slow;
    char age[FINDINGS_AGE_MAX];
    if (w->facts->sites.slow == 0)
        return false;
    faults_found(out, "%s has asked us to slow down for %s: %s", worst->name,
                 findings_age(worst->since_ms, age), worst->why);
    return faults_about(out, worst->name);
}

static bool
judge_mail_old(const struct fault_world *w, struct faults *out)
{
    const struct finding_facts *f = w->facts;
    char age[FINDINGS_AGE_MAX];
    if (f->behind_ms < FINDINGS_OLD_MS)
        return false;
    faults_found(out, "mail has waited for %s: %s", findings_age(f->behind_ms, age),
                 f->behind);
    return faults_about(out, f->behind_id);
}

static bool
judge_expires_soon(const struct fault_world *w, struct faults *out)
{
    const struct finding_facts *f = w->facts;
    char age[FINDINGS_AGE_MAX];
    return f->lifetime_ms > 0 &&
           f->oldest_ms >= f->lifetime_ms / 100 * FINDINGS_EXPIRES_PERCENT &&
           f->oldest_ms >= FINDINGS_OLD_MS &&
           faults_found(out,
                        "the oldest message has waited for %s, and is returned in %s",
                        findings_age(f->oldest_ms, age),
                        f->lifetime_ms > f->oldest_ms
                            ? findings_age(f->lifetime_ms - f->oldest_ms,
                                           (char[FINDINGS_AGE_MAX]){0})
                            : "a moment");
}

static bool
judge_held_long(const struct fault_world *w, struct faults *out)
{
    const struct finding_facts *f = w->facts;
    char age[FINDINGS_AGE_MAX];
    return f->held_ms >= FINDINGS_HELD_DAYS * DAY_MS &&
           faults_found(out, "the oldest held message came %s ago",
                        findings_age(f->held_ms, age));
}

static bool
judge_log_lost(const struct fault_world *w, struct faults *out)
{
    const struct finding_facts *f = w->facts;
    return f->log_lost > 0 &&
           faults_found(out,
                        "%" PRIu64 " line%s of the log %s lost since startup, some of "
                        "them recently",
                        f->log_lost, f->log_lost == 1 ? "" : "s",
                        f->log_lost == 1 ? "was" : "were");
}

static bool
judge_copies_failed(const struct fault_world *w, struct faults *out)
{
    const struct finding_facts *f = w->facts;
    if (f->copy_failed_to == NULL)
        return false;
    faults_found(out,
                 "%" PRIu64 " cop%s for the addresses of copy_to failed since startup, "
                 "the last one for <%s>",
                 f->copies_failed, f->copies_failed == 1 ? "y" : "ies",
                 f->copy_failed_to);
    return faults_about(out, f->copy_failed_to);
}

/* --- Certificates ----------------------------------------------------------------- */

static bool
judge_certificate_expires(const struct fault_world *w, struct faults *out)
{
    const struct finding_facts *f = w->facts;
    char age[FINDINGS_AGE_MAX];
    return f->certificate != NULL && f->certificate_ms > 0 &&
           f->certificate_ms <= FINDINGS_CERTIFICATE_DAYS * DAY_MS &&
           faults_found(out, "the certificate of %s expires in %s", f->certificate,
                        findings_age(f->certificate_ms, age));
}

static bool
judge_certificate_expired(const struct fault_world *w, struct faults *out)
{
    const struct finding_facts *f = w->facts;
    char age[FINDINGS_AGE_MAX];
    return f->certificate != NULL && f->certificate_ms <= 0 &&
           faults_found(out, "the certificate of %s expired %s ago", f->certificate,
                        findings_age(-f->certificate_ms, age));
}

/* --- The process ------------------------------------------------------------------ */

static bool
judge_loop_slow(const struct fault_world *w, struct faults *out)
{
    const struct finding_facts *f = w->facts;
    return f->slow_us > 0 &&
           faults_found(out,
                        "a turn of the loop took %" PRId64 " ms, in which nothing else "
                        "ran; most of it: %s",
                        f->slow_us / 1000, f->slow_part);
}

static bool
judge_clock_jumped(const struct fault_world *w, struct faults *out)
{
    const struct finding_facts *f = w->facts;
    char age[FINDINGS_AGE_MAX];
    bool back = f->jump_ms < 0;
    return f->jump_ms != 0 &&
           faults_found(out, "the clock was set %s by %s", back ? "back" : "ahead",
                        findings_age(back ? -f->jump_ms : f->jump_ms, age));
}

/* --- Fragments and settings ------------------------------------------------------- */

static bool
judge_fragments_stuck(const struct fault_world *w, struct faults *out)
{
    const struct finding_facts *f = w->facts;
    char age[FINDINGS_AGE_MAX];
    return f->fragments > 0 && f->fragments_ms >= FINDINGS_OLD_MS &&
           faults_found(out,
                        "%zu fragment%s for others, the oldest for %s: parts of a "
                        "message have not come",
                        f->fragments, f->fragments == 1 ? " waits" : "s wait",
                        findings_age(f->fragments_ms, age));
}

static bool
judge_hold_by_route(const struct fault_world *w, struct faults *out)
{
    const struct finding_facts *f = w->facts;
    return f->holds_by_route && f->held > 0 &&
           faults_found(out,
                        "%zu message%s held, because a route holds mail that no other "
                        "route takes",
                        f->held, f->held == 1 ? " is" : "s are");
}

static bool
judge_copies_away(const struct fault_world *w, struct faults *out)
{
    const struct finding_facts *f = w->facts;
    return f->copies_away != NULL &&
           faults_found(out, "no copies of mail can be kept (%s): %s", f->copies_away,
                        f->copies_required ? "new mail is refused"
                                           : "mail has one copy");
}

static bool
judge_copies_behind(const struct fault_world *w, struct faults *out)
{
    const struct finding_facts *f = w->facts;
    return f->copies_behind > 0 &&
           faults_found(out, "%" PRIu64 " message%s no copy yet", f->copies_behind,
                        f->copies_behind == 1 ? " has" : "s have");
}

static bool
judge_copies_namesake(const struct fault_world *w, struct faults *out)
{
    return w->facts->copies_namesake &&
           faults_found(out, "another host that lives has the name of this one, or a "
                             "clone of its spool");
}

static bool
judge_copies_unreadable(const struct fault_world *w, struct faults *out)
{
    uint64_t count = w->facts->copies_unreadable;
    return count > 0 &&
           faults_found(
               out, "%" PRIu64 " cop%s in Redis cannot be read; the last is %s", count,
               count == 1 ? "y" : "ies", w->facts->copies_unreadable_at);
}

static bool
judge_copies_lost(const struct fault_world *w, struct faults *out)
{
    const struct finding_facts *f = w->facts;
    return f->copies_losses > 0 &&
           faults_found(out,
                        "the server of copies has lost copies %" PRIu64
                        " time%s since startup; all mail was copied again",
                        f->copies_losses, f->copies_losses == 1 ? "" : "s");
}

static bool
judge_bank_away(const struct fault_world *w, struct faults *out)
{
    const struct finding_facts *f = w->facts;
    return f->bank_away != NULL &&
           faults_found(
               out,
               "the bank of the group does not answer (%s): %zu sites go on with "
               "this host's own part of the limits",
               f->bank_away, f->bank_sites);
}

static bool
judge_sandbox_refused(const struct fault_world *w, struct faults *out)
{
    const struct finding_facts *f = w->facts;
    return f->sandbox_refused > 0 &&
           faults_found(out, "the sandbox has refused %u system call%s",
                        f->sandbox_refused, f->sandbox_refused == 1 ? "" : "s");
}

static bool
judge_events_stuck(const struct fault_world *w, struct faults *out)
{
    const struct finding_facts *f = w->facts;
    const struct event_keeping *e = &f->events;
    char age[FINDINGS_AGE_MAX];
    if (!e->stopped && e->failing_ms < FINDINGS_STUCK_MS)
        return false;
    findings_age(e->failing_ms, age);
    return faults_found(
        out,
        "the receiver of events has taken none for %s (%s), and %" PRIu64 " KiB wait",
        age, e->why, (e->pending_bytes + 1023) / 1024);
}

static bool
judge_settings_changed(const struct fault_world *w, struct faults *out)
{
    const struct finding_facts *f = w->facts;
    return f->changed_settings != NULL && f->changed_settings[0] != '\0' &&
           faults_found(out, "%s has changed since it was read", f->changed_settings);
}

/* --- The table -------------------------------------------------------------------- */

/* A judge, and the member of the facts that it asks. */
#define JUDGE(function) function, 0
#define FLAG(member)    judge_flag, offsetof(struct finding_facts, member)
#define WORDS(member)   judge_words, offsetof(struct finding_facts, member)
/* The judge above finds it, or its source names it. */
#define ELSEWHERE NULL, 0
/* The judge, or that above, has the words, and there is no remedy. */
#define SAYS(function) function, 0, NULL, NULL
#define SAID_ABOVE     NULL, 0, NULL, NULL

/* clang-format off */
static const struct fault_row fault_rows[] = {
    {"not_accepting", FAULT_ERROR, FAULT_RUNNING, JUDGE(judge_not_accepting), NULL,
     "Remove the cause: mail is then accepted again automatically, but "
     "after an error of the disk only by a restart."},
    {"disk_low", FAULT_WARNING, FAULT_RUNNING, JUDGE(judge_disk_low), NULL,
     "Free space on the file system of the spool, or give it more."},
    {"disk_unsafe", FAULT_ERROR, FAULT_RUNNING, WORDS(health.unsafe), NULL,
     "Set `spool` to a directory on a disk whose file system keeps synced data (ext4 "
     "without fast_commit, xfs), and restart: its mail has to be moved there."},
    {"sync_blocking", FAULT_HINT, FAULT_RUNNING, FLAG(health.sync_blocks),
     "this system does not sync in the background: all sessions wait for each sync",
     "Put the spool on a local file system (ext4, xfs) of a kernel with AIO."},
    {"journal_full", FAULT_WARNING, FAULT_RUNNING, FLAG(health.journal_full),
     "the journal is full: new mail waits for the spool",
     "Wait, or use a faster disk if this lasts: mail comes faster than it is filed."},
    {"journal_damaged", FAULT_ERROR, FAULT_RUNNING, JUDGE(judge_journal_damaged), NULL,
     "Check the disk, look at the pieces in corrupt/ of the spool, and restart: "
     "`systemctl restart petrel`."},
    {"corrupt", FAULT_ERROR, FAULT_RUNNING, JUDGE(judge_corrupt), NULL,
     "Look at them with `petrel queue ls --queue corrupt`; `petrel queue rm --queue "
     "corrupt` removes them."},
    {"history_paused", FAULT_WARNING, FAULT_RUNNING, FLAG(history_paused),
     "the history pauses: the spool is too full",
     "Free space on the file system of the spool: the history then continues."},
    {"log_lost", FAULT_WARNING, FAULT_RUNNING, JUDGE(judge_log_lost), NULL,
     "See that standard error or syslog is read and has space, or log less "
     "(`log_level`)."},
    {"certificate_expires", FAULT_WARNING, FAULT_RUNNING,
     JUDGE(judge_certificate_expires), NULL,
     "Renew it: new files are used a minute after they are there."},
    {"certificate_expired", FAULT_ERROR, FAULT_RUNNING,
     JUDGE(judge_certificate_expired), NULL,
     "Renew it: peers that verify refuse it; new files are used a minute after they "
     "are there."},
    {"certificate_mismatch", FAULT_ERROR, FAULT_RUNNING, WORDS(certificate_trouble),
     "the new files are not used, the old certificates stay: ",
     "Replace the files: each key must fit its certificate, which must be valid now, "
     "and `user` must be able to read both; they are then used within two minutes."},
    {"auth_down", FAULT_ERROR, FAULT_RUNNING, WORDS(auth_trouble),
     "nobody can log in, Dovecot cannot be asked: ",
     "See that Dovecot runs, and that its service auth has a unix_listener of the path in "
     "`auth` that `user` may write to (mode, user, group)."},
    {"upstream_down", FAULT_ERROR, FAULT_BY_EVENT, ELSEWHERE, NULL,
     "Apply the remedy that the reason names; if it names none, check the host, its "
     "port and the network between. Mail waits until it answers."},
    {"login_refused", FAULT_ERROR, FAULT_BY_EVENT, ELSEWHERE, NULL,
     "Correct the user or the password of this smarthost, then `petrel reload`; "
     "`petrel doctor` tries it."},
    {"oauth_refused", FAULT_ERROR, FAULT_RUNNING, ELSEWHERE, NULL,
     "Log in again with `petrel oauth login {HOST USER}`, or repair the account at "
     "its provider."},
    {"dkim_failed", FAULT_WARNING, FAULT_RUNNING, ELSEWHERE, NULL,
     "Publish the record that `petrel doctor {DOMAIN}` prints; make a new key if it "
     "cannot sign."},
    {"sender_refused", FAULT_ERROR, FAULT_BY_EVENT, ELSEWHERE, NULL,
     "Allow this sender at the smarthost, or set `rewrite` to one that may send there."},
    {"reports_lost", FAULT_ERROR, FAULT_RUNNING, ELSEWHERE, NULL,
     "If it refuses the sender, set `rewrite` for mail of this host, and `bounce_sender` "
     "for notifications (MAIL FROM:<>); else follow its reply."},
    {"receiver_refuses_us", FAULT_WARNING, FAULT_RUNNING, ELSEWHERE, NULL,
     "Correct what the text names; `petrel doctor` looks for it, and `petrel trace "
     "{RECEIVER}` has the replies."},
    {"quota_used_up", FAULT_WARNING, FAULT_RUNNING, ELSEWHERE, NULL,
     "Wait: mail continues when the limit allows it; `quota=` of the route stays below "
     "it."},
    {"suppress_full", FAULT_WARNING, FAULT_RUNNING, ELSEWHERE, NULL,
     "Raise `suppress_limit`, or remove some: `petrel suppress rm ADDRESS`."},
    {"sts_unreachable", FAULT_WARNING, FAULT_RUNNING, ELSEWHERE, NULL,
     "See whether this host reaches mta-sts.{DOMAIN} by HTTPS; `?sts=no` ignores it."},
    {"port_25_blocked", FAULT_ERROR, FAULT_RUNNING, JUDGE(judge_port_25_blocked), NULL,
     "Ask your provider to open port 25, or send through a smarthost (`relay`)."},
    {"site_dead", FAULT_WARNING, FAULT_RUNNING, JUDGE(judge_site_dead), NULL,
     "See `petrel status --site {SITE}`. It is tried again automatically; `petrel "
     "queue retry --all` tries it now."},
    {"site_clogs", FAULT_WARNING, FAULT_RUNNING, JUDGE(judge_site_clogs), NULL,
     "See its bound in `petrel status --site {SITE}`: its limits, its rate, its "
     "speed."},
    {"site_slow", FAULT_WARNING, FAULT_RUNNING, JUDGE(judge_site_slow), NULL,
     "The rate doubles in each minute without a refusal; `petrel queue retry "
     "--forget-limits {SITE}` ends it now."},
    {"mail_old", FAULT_WARNING, FAULT_RUNNING, JUDGE(judge_mail_old), NULL,
     "See the cause, and until when it waits, with `petrel queue why {ID}`."},
    {"expires_soon", FAULT_WARNING, FAULT_RUNNING, JUDGE(judge_expires_soon), NULL,
     "Repair the cause (`petrel queue ls --older 1h` has it), or raise "
     "`maximal_queue_lifetime`."},
    {"held_long", FAULT_HINT, FAULT_RUNNING, JUDGE(judge_held_long), NULL,
     "Look at it with `petrel queue ls --queue hold`; then `petrel queue release "
     "--queue hold` or `petrel queue rm --queue hold`."},
    {"hold_by_route", FAULT_WARNING, FAULT_RUNNING, JUDGE(judge_hold_by_route), NULL,
     "Say where mail goes with `petrel init --force`, `relay` or `routes`, then "
     "`systemctl restart petrel` and `petrel queue release --queue hold`."},
    {"copies_failed", FAULT_WARNING, FAULT_RUNNING, JUDGE(judge_copies_failed), NULL,
     "Repair the mailbox or its route: `petrel trace {RECEIVER}` has the replies. Copies "
     "that failed are not made again."},
    {"loop_slow", FAULT_HINT, FAULT_RUNNING, JUDGE(judge_loop_slow), NULL,
     "Look for a slow disk, a busy machine or swapping; report it as a bug otherwise."},
    {"clock_jumped", FAULT_WARNING, FAULT_RUNNING, JUDGE(judge_clock_jumped), NULL,
     "Run a time service that slews the clock (chrony): times of retries follow it."},
    {"namesake", FAULT_ERROR, FAULT_RUNNING, FLAG(namesake),
     "another host uses the name of this host in the registry of fragments",
     "Set `defrag_host` to another name on one of the two hosts, and restart it."},
    {"fragments_stuck", FAULT_WARNING, FAULT_RUNNING,
     JUDGE(judge_fragments_stuck), NULL,
     "Wait for the parts, or deliver those that are there with `petrel queue release "
     "--queue defrag`."},
    {"registry_down", FAULT_WARNING, FAULT_RUNNING, FLAG(registry_down),
     "the registry of fragments does not answer: this host reassembles alone",
     "Check the server that defrag_registry names, and the network between."},
    {"bank_away", FAULT_WARNING, FAULT_RUNNING, JUDGE(judge_bank_away), NULL,
     "Check the servers that cluster_redis names, and the network between; of "
     "slices, restart the one that `petrel cluster` names if it hangs."},
    {"copies_away", FAULT_ERROR, FAULT_RUNNING, JUDGE(judge_copies_away), NULL,
     "Check the servers that `copies` names, and the network between: `petrel doctor` "
     "asks them."},
    {"copies_behind", FAULT_WARNING, FAULT_RUNNING, JUDGE(judge_copies_behind), NULL,
     "Wait: they are copied, oldest first."},
    {"copies_namesake", FAULT_ERROR, FAULT_RUNNING, JUDGE(judge_copies_namesake), NULL,
     "Give each host its own cluster_host, and a spool of its own: a copied one keeps "
     "lock/identity."},
    {"copies_unreadable", FAULT_ERROR, FAULT_RUNNING, JUDGE(judge_copies_unreadable),
     NULL,
     "The log names each and says why. They stay in Redis, and keep no other mail "
     "waiting; a newer version may read them. One that nobody needs is removed by HDEL "
     "of redis-cli, with that key and field."},
    {"copies_lost", FAULT_WARNING, FAULT_RUNNING, JUDGE(judge_copies_lost), NULL,
     "Find out who has emptied the server of `copies`, or why its replica lacked the "
     "last batches: set copies_replicas."},
    {"name_servers", FAULT_WARNING, FAULT_RUNNING, WORDS(name_servers), NULL,
     "Correct /etc/resolv.conf, which is then read again, or set `dns_servers`; "
     "restart if the sandbox does not let it be read."},
    {"sandbox_missing", FAULT_HINT, FAULT_RUNNING, WORDS(sandbox_missing),
     "the sandbox lacks: ",
     "Use a kernel with Landlock and seccomp, and a build with libseccomp."},
    {"sandbox_refused", FAULT_WARNING, FAULT_RUNNING,
     JUDGE(judge_sandbox_refused), NULL,
     "Restart the daemon if settings name new files; report it as a bug otherwise."},
    {"running_as_root", FAULT_HINT, FAULT_RUNNING, FLAG(is_root),
     "the daemon runs as root",
     "Set `user`: root is then given up after the ports are bound."},
    {"setting_unknown", FAULT_WARNING, FAULT_READ, SAYS(faults_judge_names)},
    {"hostname_odd", FAULT_WARNING, FAULT_READ | FAULT_RUNNING,
     JUDGE(faults_judge_hostname), NULL,
     "Set `hostname` to a full name that has an address in DNS."},
    {"source_missing", FAULT_WARNING, FAULT_READ, SAYS(faults_judge_source)},
    {"open_relay", FAULT_ERROR, FAULT_RUNNING, FLAG(open_relay),
     "relay_from allows nearly every address to send mail anywhere",
     "Limit `relay_from` to your networks, and remove `allow_open_relay`."},
    {"secrets_readable", FAULT_WARNING, FAULT_READ | FAULT_RUNNING,
     JUDGE(faults_judge_secrets), NULL,
     "Make the file readable to its owner only: `chmod 600 {FILE}`."},
    {"auth_cleartext", FAULT_WARNING, FAULT_RUNNING, FLAG(auth_cleartext),
     "clients may log in without TLS: others on the way can read their passwords",
     "Set `tls_certificate` and `tls_key`, and remove `auth_cleartext`."},
    {"events_stuck", FAULT_WARNING, FAULT_RUNNING, JUDGE(judge_events_stuck), NULL,
     "Repair the receiver that `events` names, or name another and reload."},
    {"reload_refused", FAULT_WARNING, FAULT_RUNNING, FLAG(reload_refused),
     "the last reload was refused: the old settings stay",
     "Correct the errors that `petrel check` names, then `petrel reload`."},
    {"settings_changed", FAULT_HINT, FAULT_RUNNING, JUDGE(judge_settings_changed), NULL,
     "Use the new settings with `petrel reload`; `petrel check` examines them before."},
    /* Seen when the settings are read. */
    {"spool_relative", FAULT_WARNING, FAULT_READ, JUDGE(faults_judge_spool_path),
     "spool is not an absolute path: it depends on the directory in which the daemon "
     "is started", NULL},
    {"slices_multiply", FAULT_WARNING, FAULT_READ, SAYS(faults_judge_slices)},
    {"bounces_outlive", FAULT_WARNING, FAULT_READ, JUDGE(faults_judge_bounces),
     "bounce_queue_lifetime is longer than maximal_queue_lifetime, which ends "
     "bounces, too", NULL},
    {"recipients_burst", FAULT_WARNING, FAULT_READ, SAYS(faults_judge_bursts)},
    {"unit_missing", FAULT_WARNING, FAULT_READ, SAYS(faults_judge_units)},
    {"bind_missing", FAULT_WARNING, FAULT_READ, SAYS(faults_judge_targets)},
    {"port_tls", FAULT_WARNING, FAULT_READ, SAID_ABOVE},
    {"login_missing", FAULT_WARNING, FAULT_READ, SAID_ABOVE},
    {"web_unsigned", FAULT_WARNING, FAULT_READ, SAID_ABOVE},
    {"redirected", FAULT_WARNING, FAULT_READ, SAID_ABOVE},
    {"concurrency", FAULT_WARNING, FAULT_READ, SAID_ABOVE},
    {"requiretls_closed", FAULT_WARNING, FAULT_READ, JUDGE(faults_judge_required),
     "REQUIRETLS is offered to clients, but no route can carry such mail: "
     "give a route tls=encrypt or tls=verify, or leave dane or mta_sts on", NULL},
    {"notices_late", FAULT_WARNING, FAULT_READ, ELSEWHERE,
     "notices= has a time beyond the lifetime: mail is returned to its sender before",
     NULL},
    {"fragments_expire", FAULT_WARNING, FAULT_READ, ELSEWHERE,
     "half of notices= is longer than the lifetime: fragments that wait expire first",
     NULL},
    {"route_hidden", FAULT_WARNING, FAULT_READ, SAYS(faults_judge_hidden_routes)},
    {"rewrite_hidden", FAULT_WARNING, FAULT_READ, SAYS(faults_judge_hidden_rewrites)},
    {"fragments_alone", FAULT_WARNING, FAULT_READ, JUDGE(faults_judge_fragments),
     "defrag_registry is for several hosts, but defrag_peers names no other: "
     "fragments of a set that another host owns are not reassembled", NULL},
    {"fragments_local", FAULT_WARNING, FAULT_READ, ELSEWHERE,
     "defrag_peers names other hosts, but defrag_registry is local: this host sends "
     "them no fragments", NULL},
    {"fragments_unwanted", FAULT_WARNING, FAULT_READ, ELSEWHERE,
     "defrag_registry is for several hosts, but no route says defragment=yes: this "
     "host waits for no fragments", NULL},
    {"fragments_sliced", FAULT_WARNING, FAULT_READ, ELSEWHERE,
     "slices do not share fragments while defrag_registry is local: a message whose "
     "fragments reach several slices is not reassembled", NULL},
    {"account_unused", FAULT_WARNING, FAULT_READ, SAYS(faults_judge_accounts)},
    {"copy_lost", FAULT_WARNING, FAULT_READ, SAYS(faults_judge_copies)},
    {"quotas_apart", FAULT_WARNING, FAULT_READ, SAYS(faults_judge_quotas)},
    {"suppress_apart", FAULT_WARNING, FAULT_READ, SAYS(faults_judge_suppression)},
    {"events_unsigned", FAULT_WARNING, FAULT_READ, JUDGE(faults_judge_events),
     "events_secret is not set: the receiver of events cannot know who sends them",
     NULL},
    {"events_secret_unused", FAULT_WARNING, FAULT_READ, ELSEWHERE,
     "events_secret is set, but events is not", NULL},
    {"cluster_unnamed", FAULT_WARNING, FAULT_READ, JUDGE(faults_judge_group),
     "settings of a group of hosts are there, but cluster, its name, is not set: no "
     "limit is shared", NULL},
    {"hand_over_alone", FAULT_WARNING, FAULT_READ, ELSEWHERE,
     "stop = hand_over gives the queue to nobody without cluster and cluster_secret: "
     "it stays here", NULL},
    {"cluster_alone", FAULT_WARNING, FAULT_READ, ELSEWHERE,
     "cluster is set without cluster_redis and cluster_peers: this host knows no "
     "other, and uses all of each limit", NULL},
    {"rate_delay_unshared", FAULT_WARNING, FAULT_READ, ELSEWHERE,
     "a rate delay is each host's own, also in a group: rate= is shared", NULL},
    {"cores_unused", FAULT_WARNING, FAULT_CHECK, SAYS(faults_judge_cores)},
    {"file_unreadable", FAULT_WARNING, FAULT_CHECK | FAULT_START,
     JUDGE(faults_judge_unreadable),
     "root cannot be regained: what follows is checked as `user`", NULL},
    /* Seen by receivers: those that others depend on stand first. */
    {"dns.resolver", FAULT_ERROR, FAULT_DOCTOR, SAYS(doctor_judge_resolver)},
    {"net.port25", FAULT_ERROR, FAULT_DOCTOR, SAYS(doctor_judge_port)},
    {"host.address", FAULT_WARNING, FAULT_DOCTOR, SAYS(doctor_judge_address)},
    {"host.address", FAULT_OK, FAULT_DOCTOR, SAYS(doctor_judge_indirect)},
    {"host.name", FAULT_ERROR, FAULT_DOCTOR, SAYS(doctor_judge_name)},
    {"host.ptr", FAULT_ERROR, FAULT_DOCTOR, SAYS(doctor_judge_ptr)},
    {"spf.record", FAULT_ERROR, FAULT_DOCTOR, SAYS(doctor_judge_spf)},
    {"dkim.key", FAULT_ERROR, FAULT_DOCTOR, SAYS(doctor_judge_dkim)},
    {"dmarc.record", FAULT_ERROR, FAULT_DOCTOR, SAYS(doctor_judge_dmarc)},
    {"mx.record", FAULT_ERROR, FAULT_DOCTOR, SAYS(doctor_judge_mx)},
    {"mx.record", FAULT_WARNING, FAULT_DOCTOR, SAYS(doctor_judge_root)},
    {"smarthost.login", FAULT_ERROR, FAULT_DOCTOR, SAYS(doctor_judge_login)},
    {"smarthost.login", FAULT_WARNING, FAULT_DOCTOR, SAYS(doctor_judge_no_login)},
    {"oauth.token", FAULT_ERROR, FAULT_DOCTOR, SAYS(doctor_judge_tokens)},
    {"tls.certificate", FAULT_ERROR, FAULT_DOCTOR, SAYS(doctor_judge_certificates)},
    {"tls.destination", FAULT_ERROR, FAULT_DOCTOR, SAYS(doctor_judge_destination)},
    {"tls.destination", FAULT_OK, FAULT_DOCTOR, SAYS(doctor_judge_proof)},
    {"tls.destination", FAULT_ERROR, FAULT_DOCTOR, SAYS(doctor_judge_tlsa)},
    {"tls.destination", FAULT_ERROR, FAULT_DOCTOR, SAYS(doctor_judge_policy)},
    {"list.blocked", FAULT_ERROR, FAULT_DOCTOR, SAYS(doctor_judge_blocklists)},
    {"copies.server", FAULT_ERROR, FAULT_DOCTOR, SAYS(doctor_judge_copies)},
    {"queue.health", FAULT_ERROR, FAULT_DOCTOR, SAYS(doctor_judge_queue)},
};
/* clang-format on */

const struct fault_row *
faults_row_at(size_t index)
{
    return index < sizeof(fault_rows) / sizeof(*fault_rows) ? &fault_rows[index] : NULL;
}

const struct fault_row *
faults_row(const char *code)
{
    const struct fault_row *row;
    for (size_t i = 0; (row = faults_row_at(i)) != NULL; i++)
        if (strcmp(row->code, code) == 0)
            return row;
    return NULL;
}

const struct fault_row *
faults_row_of(fault_judge *judge)
{
    const struct fault_row *row;
    for (size_t i = 0; (row = faults_row_at(i)) != NULL; i++)
        if (row->judge == judge)
            return row;
    return NULL;
}

void
faults_judge(struct faults *out, const struct fault_world *world)
{
    const struct fault_row *row;
    for (size_t i = 0; (row = faults_row_at(i)) != NULL; i++) {
        bool is_asked = (row->when & FAULT_READ) != 0 ? world->settings != NULL
                                                      : world->facts != NULL;
        if (row->judge == NULL || (row->when & out->when) == 0 || !is_asked)
            continue;
        out->row = row;
        if (row->judge(world, out))
            faults_found(out, "%s", row->sentence);
    }
}
