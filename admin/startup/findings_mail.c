/* Collects the facts about mail and sites. */
#include "admin/startup/findings_mail.h"

#include <stdio.h>
#include <string.h>

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
