/* The table of findings: the check of each, and its remedy. */
#include "admin/findings/findings.h"

#include <ctype.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

enum {
    LOW_TIMES = 2, /* the reserve: less is low */
    MINUTE_MS = 60 * 1000
};
#define DAY_MS (INT64_C(24) * 60 * MINUTE_MS)

/* A text that ends early is better than none. */
__attribute__((format(printf, 2, 3))) static bool
finding_say(char text[FINDINGS_TEXT_MAX], const char *format, ...)
{
    va_list list;
    va_start(list, format);
    (void)vsnprintf(text, FINDINGS_TEXT_MAX, format, list);
    va_end(list);
    return true;
}

const char *
findings_age(int64_t ms, char out[FINDINGS_AGE_MAX])
{
    int64_t minutes = ms / MINUTE_MS, hours = minutes / 60;
    if (hours >= 2 * 24)
        snprintf(out, FINDINGS_AGE_MAX, "%" PRId64 " days", hours / 24);
    else if (minutes >= 2 * 60)
        snprintf(out, FINDINGS_AGE_MAX, "%" PRId64 " hours", hours);
    else
        snprintf(out, FINDINGS_AGE_MAX, "%" PRId64 " minutes", minutes);
    return out;
}

static bool
check_not_accepting(const struct finding_facts *f, char *text)
{
    return !f->health.accepting && !f->is_stopping &&
           finding_say(text, "new mail is refused for now: %s", f->health.reason);
}

static bool
is_low(int64_t free, int64_t reserve)
{
    return free >= 0 && reserve > 0 && free / LOW_TIMES < reserve;
}

static bool
check_disk_low(const struct finding_facts *f, char *text)
{
    const struct queue_health *h = &f->health;
    if (is_low(h->bytes_free, h->bytes_reserve))
        return finding_say(text,
                           "the spool has %" PRId64 " MiB free; below %" PRId64
                           " MiB new mail is refused",
                           h->bytes_free >> 20, h->bytes_reserve >> 20);
    return is_low(h->inodes_free, h->inodes_reserve) &&
           finding_say(text,
                       "the spool has %" PRId64 " inodes free; below %" PRId64
                       " new mail is refused",
                       h->inodes_free, h->inodes_reserve);
}

static bool
check_disk_unsafe(const struct finding_facts *f, char *text)
{
    return f->health.unsafe != NULL && f->health.unsafe[0] != '\0' &&
           finding_say(text, "%s", f->health.unsafe);
}

static bool
check_sync_blocking(const struct finding_facts *f, char *text)
{
    return f->health.sync_blocks &&
           finding_say(text, "this system does not sync in the background: all "
                             "sessions wait for each sync");
}

static bool
check_journal_full(const struct finding_facts *f, char *text)
{
    return f->health.journal_full &&
           finding_say(text, "the journal is full: new mail waits for the spool");
}

static bool
check_journal_damaged(const struct finding_facts *f, char *text)
{
    return f->health.damages > 0 &&
           finding_say(text,
                       "startup kept %u piece%s of the journal that it could not read",
                       f->health.damages, f->health.damages == 1 ? "" : "s");
}

static bool
check_corrupt(const struct finding_facts *f, char *text)
{
    return f->quarantined > 0 &&
           finding_say(text, "%zu message%s quarantined in corrupt/", f->quarantined,
                       f->quarantined == 1 ? " is" : "s are");
}

/* --- Mail and sites --------------------------------------------------------------- */

/* As few sites may be down by themselves, and mail that has reached one is proof. */
static bool
check_port_25_blocked(const struct finding_facts *f, char *text)
{
    const struct finding_sites *s = &f->sites;
    return !s->direct_greeted && s->silent >= FINDINGS_SILENT &&
           finding_say(text,
                       "%zu sites do not answer on port %u, and none ever has since "
                       "startup",
                       s->silent, (unsigned)s->smtp_port);
}

static bool
check_site_dead(const struct finding_facts *f, char *text)
{
    const struct finding_site *worst = &f->sites.worst_dead;
    char age[FINDINGS_AGE_MAX];
    if (f->sites.dead == 0)
        return false;
    findings_age(worst->since_ms, age);
    if (f->sites.dead == 1)
        return finding_say(text, "%s has not worked for %s, and mail waits: %s",
                           worst->name, age, worst->why);
    return finding_say(text,
                       "%zu sites have not worked for 15 minutes, and mail waits; most "
                       "for %s (%s): %s",
                       f->sites.dead, worst->name, age, worst->why);
}

static bool
check_site_clogs(const struct finding_facts *f, char *text)
{
    const struct finding_site *worst = &f->sites.worst_clogged;
    char age[FINDINGS_AGE_MAX];
    return f->sites.clogged > 0 &&
           finding_say(text, "mail for %s has waited on disk for %s: %s", worst->name,
                       findings_age(worst->since_ms, age), worst->why);
}

static bool
check_site_slow(const struct finding_facts *f, char *text)
{
    const struct finding_site *worst = &f->sites.worst_slow;
    char age[FINDINGS_AGE_MAX];
    return f->sites.slow > 0 &&
           finding_say(text, "%s has asked us to slow down for %s: %s", worst->name,
                       findings_age(worst->since_ms, age), worst->why);
}

static bool
check_mail_old(const struct finding_facts *f, char *text)
{
    char age[FINDINGS_AGE_MAX];
    return f->behind_ms >= FINDINGS_OLD_MS &&
           finding_say(text, "mail has waited for %s: %s",
                       findings_age(f->behind_ms, age), f->behind);
}

static bool
check_expires_soon(const struct finding_facts *f, char *text)
{
    char age[FINDINGS_AGE_MAX];
    return f->lifetime_ms > 0 &&
           f->oldest_ms >= f->lifetime_ms / 100 * FINDINGS_EXPIRES_PERCENT &&
           f->oldest_ms >= FINDINGS_OLD_MS &&
           finding_say(text,
                       "the oldest message has waited for %s, and is returned in %s",
                       findings_age(f->oldest_ms, age),
                       f->lifetime_ms > f->oldest_ms
                           ? findings_age(f->lifetime_ms - f->oldest_ms,
                                          (char[FINDINGS_AGE_MAX]){0})
                           : "a moment");
}

static bool
check_held_long(const struct finding_facts *f, char *text)
{
    char age[FINDINGS_AGE_MAX];
    return f->held_ms >= (int64_t)FINDINGS_HELD_DAYS * 24 * 60 * MINUTE_MS &&
           finding_say(text, "the oldest held message came %s ago",
                       findings_age(f->held_ms, age));
}

static bool
check_history_paused(const struct finding_facts *f, char *text)
{
    return f->history_paused &&
           finding_say(text, "the history pauses: the spool is too full");
}

static bool
check_log_lost(const struct finding_facts *f, char *text)
{
    return f->log_lost > 0 &&
           finding_say(text,
                       "%" PRIu64 " line%s of the log %s lost since startup, some of "
                       "them recently",
                       f->log_lost, f->log_lost == 1 ? "" : "s",
                       f->log_lost == 1 ? "was" : "were");
}

/* --- Certificates ----------------------------------------------------------------- */

static bool
check_certificate_expires(const struct finding_facts *f, char *text)
{
    char age[FINDINGS_AGE_MAX];
    return f->certificate != NULL && f->certificate_ms > 0 &&
           f->certificate_ms <= FINDINGS_CERTIFICATE_DAYS * DAY_MS &&
           finding_say(text, "the certificate of %s expires in %s", f->certificate,
                       findings_age(f->certificate_ms, age));
}

static bool
check_certificate_expired(const struct finding_facts *f, char *text)
{
    char age[FINDINGS_AGE_MAX];
    return f->certificate != NULL && f->certificate_ms <= 0 &&
           finding_say(text, "the certificate of %s expired %s ago", f->certificate,
                       findings_age(-f->certificate_ms, age));
}

static bool
check_certificate_mismatch(const struct finding_facts *f, char *text)
{
    return f->certificate_trouble != NULL &&
           finding_say(text,
                       "the new files are not used, the old certificates stay: %s",
                       f->certificate_trouble);
}

/* --- The process ------------------------------------------------------------------ */

static bool
check_loop_slow(const struct finding_facts *f, char *text)
{
    return f->slow_us > 0 &&
           finding_say(text,
                       "a turn of the loop took %" PRId64 " ms, in which nothing else "
                       "ran; most of it: %s",
                       f->slow_us / 1000, f->slow_part);
}

static bool
check_clock_jumped(const struct finding_facts *f, char *text)
{
    char age[FINDINGS_AGE_MAX];
    bool back = f->jump_ms < 0;
    return f->jump_ms != 0 &&
           finding_say(text, "the clock was set %s by %s", back ? "back" : "ahead",
                       findings_age(back ? -f->jump_ms : f->jump_ms, age));
}

/* --- Fragments and settings ------------------------------------------------------- */

static bool
check_namesake(const struct finding_facts *f, char *text)
{
    return f->namesake &&
           finding_say(text, "another host uses the name of this host in the registry "
                             "of fragments");
}

static bool
check_fragments_stuck(const struct finding_facts *f, char *text)
{
    char age[FINDINGS_AGE_MAX];
    return f->fragments > 0 && f->fragments_ms >= FINDINGS_OLD_MS &&
           finding_say(text,
                       "%zu fragment%s for others, the oldest for %s: parts of a "
                       "message have not come",
                       f->fragments, f->fragments == 1 ? " waits" : "s wait",
                       findings_age(f->fragments_ms, age));
}

static bool
check_hold_by_route(const struct finding_facts *f, char *text)
{
    return f->holds_by_route && f->held > 0 &&
           finding_say(text,
                       "%zu message%s held, because a route holds mail that no other "
                       "route takes",
                       f->held, f->held == 1 ? " is" : "s are");
}

static bool
check_registry_down(const struct finding_facts *f, char *text)
{
    return f->registry_down &&
           finding_say(text, "the registry of fragments does not answer: this host "
                             "reassembles alone");
}

static bool
check_bank_away(const struct finding_facts *f, char *text)
{
    return f->bank_away != NULL &&
           finding_say(
               text,
               "the bank of the group does not answer (%s): %zu sites go on with "
               "this host's own part of the limits",
               f->bank_away, f->bank_sites);
}

static bool
check_name_servers(const struct finding_facts *f, char *text)
{
    return f->name_servers != NULL && finding_say(text, "%s", f->name_servers);
}

static bool
check_sandbox_missing(const struct finding_facts *f, char *text)
{
    return f->sandbox_missing != NULL && f->sandbox_missing[0] != '\0' &&
           finding_say(text, "the sandbox lacks: %s", f->sandbox_missing);
}

static bool
check_sandbox_refused(const struct finding_facts *f, char *text)
{
    return f->sandbox_refused > 0 &&
           finding_say(text, "the sandbox has refused %u system call%s",
                       f->sandbox_refused, f->sandbox_refused == 1 ? "" : "s");
}

static bool
check_running_as_root(const struct finding_facts *f, char *text)
{
    return f->is_root && finding_say(text, "the daemon runs as root");
}

static bool
check_hostname_odd(const struct finding_facts *f, char *text)
{
    return f->hostname != NULL && f->hostname[0] != '\0' &&
           finding_say(text, "%s", f->hostname);
}

static bool
check_open_relay(const struct finding_facts *f, char *text)
{
    return f->open_relay &&
           finding_say(text,
                       "relay_from allows nearly every address to send mail anywhere");
}

static bool
check_secrets_readable(const struct finding_facts *f, char *text)
{
    return f->readable_secret != NULL && f->readable_secret[0] != '\0' &&
           finding_say(text, "%s can be read by all users", f->readable_secret);
}

static bool
check_auth_cleartext(const struct finding_facts *f, char *text)
{
    return f->auth_cleartext &&
           finding_say(text, "clients may log in without TLS: others on the way can "
                             "read their passwords");
}

static bool
check_events_stuck(const struct finding_facts *f, char *text)
{
    const struct event_keeping *e = &f->events;
    char age[FINDINGS_AGE_MAX];
    if (!e->stopped && e->failing_ms < FINDINGS_STUCK_MS)
        return false;
    findings_age(e->failing_ms, age);
    return finding_say(text,
                       "the receiver of events has taken none for %s (%s), and %" PRIu64
                       " KiB wait",
                       age, e->why, (e->pending_bytes + 1023) / 1024);
}

static bool
check_reload_refused(const struct finding_facts *f, char *text)
{
    return f->reload_refused &&
           finding_say(text, "the last reload was refused: the old settings stay");
}

static bool
check_settings_changed(const struct finding_facts *f, char *text)
{
    return f->changed_settings != NULL && f->changed_settings[0] != '\0' &&
           finding_say(text, "%s has changed since it was read", f->changed_settings);
}

/* It has no facts of its own: the facts name its subjects. */
static bool
check_named(const struct finding_facts *f, char *text)
{
    (void)f;
    (void)text;
    return false;
}

/* --- The objects of remedies ------------------------------------------------------ */

static const char *
object_dead(const struct finding_facts *f)
{
    return f->sites.worst_dead.name;
}

static const char *
object_clogged(const struct finding_facts *f)
{
    return f->sites.worst_clogged.name;
}

static const char *
object_slow(const struct finding_facts *f)
{
    return f->sites.worst_slow.name;
}

static const char *
object_behind(const struct finding_facts *f)
{
    return f->behind_id;
}

static const char *
object_secret(const struct finding_facts *f)
{
    return f->readable_secret;
}

/* The word for it in the remedy, and where it comes from; NULL: the object of a named
 * finding, or the subject of an event. */
static const struct finding_hole {
    const char *code, *word;
    const char *(*object)(const struct finding_facts *facts);
} finding_holes[] = {
    {"oauth_refused",       "HOST USER", NULL          },
    {"dkim_failed",         "DOMAIN",    NULL          },
    {"receiver_refuses_us", "RECEIVER",  NULL          },
    {"sts_unreachable",     "DOMAIN",    NULL          },
    {"site_dead",           "SITE",      object_dead   },
    {"site_clogs",          "SITE",      object_clogged},
    {"site_slow",           "SITE",      object_slow   },
    {"mail_old",            "ID",        object_behind },
    {"secrets_readable",    "FILE",      object_secret },
};

static const struct finding_row finding_rows[] = {
    {"not_accepting",        FINDING_ERROR,   check_not_accepting,
     "Look at the reason, and remove its cause: mail is accepted again by itself."    },
    {"disk_low",             FINDING_WARNING, check_disk_low,
     "Free space on the file system of the spool, or give it more."                   },
    {"disk_unsafe",          FINDING_ERROR,   check_disk_unsafe,
     "Set `spool` to a directory on a disk whose file system keeps synced data (ext4 "
     "without fast_commit, xfs), and restart: its mail has to be moved there."        },
    {"sync_blocking",        FINDING_HINT,    check_sync_blocking,
     "Put the spool on a local file system (ext4, xfs) of a kernel with AIO."         },
    {"journal_full",         FINDING_WARNING, check_journal_full,
     "Wait, or use a faster disk if this lasts: mail comes faster than it is filed."  },
    {"journal_damaged",      FINDING_ERROR,   check_journal_damaged,
     "Check the disk, look at the pieces in corrupt/ of the spool, and restart: "
     "`systemctl restart petrel`."                                                    },
    {"corrupt",              FINDING_ERROR,   check_corrupt,
     "Look at them with `petrel queue ls --queue corrupt`; `petrel queue rm --queue "
     "corrupt` removes them."                                                         },
    {"history_paused",       FINDING_WARNING, check_history_paused,
     "Free space on the file system of the spool: the history goes on by itself."     },
    {"log_lost",             FINDING_WARNING, check_log_lost,
     "See that standard error or syslog is read and has space, or log less "
     "(`log_level`)."                                                                 },
    {"certificate_expires",  FINDING_WARNING, check_certificate_expires,
     "Renew it: new files are used a minute after they are there."                    },
    {"certificate_expired",  FINDING_ERROR,   check_certificate_expired,
     "Renew it: clients that verify do not connect; new files are used a minute after "
     "they are there."                                                                },
    {"certificate_mismatch", FINDING_ERROR,   check_certificate_mismatch,
     "Replace the files: each key must fit its certificate, which must be valid now, "
     "and "
     "`user` must be able to read both; they are then used within two minutes."       },
    {"upstream_down",        FINDING_ERROR,   NULL,
     "Apply the remedy that the reason names; if it names none, check the host, its "
     "port and the network between. Mail waits until it answers."                     },
    {"login_refused",        FINDING_ERROR,   NULL,
     "Correct the user or the password of this smarthost, then `petrel reload`; "
     "`petrel doctor` tries it."                                                      },
    {"oauth_refused",        FINDING_ERROR,   check_named,
     "Log in anew with `petrel oauth login HOST USER`, or repair the account at "
     "its provider."                                                                  },
    {"dkim_failed",          FINDING_WARNING, check_named,
     "Publish the record that `petrel doctor DOMAIN` prints; make a new key if it "
     "cannot sign."                                                                   },
    {"sender_refused",       FINDING_ERROR,   NULL,
     "Allow this sender at the smarthost, or rewrite it to one that may send there."  },
    {"reports_lost",         FINDING_ERROR,   check_named,
     "If it refuses MAIL FROM:<>, set `bounce_sender` to an address that may send "
     "there; "
     "else follow its reply."                                                         },
    {"receiver_refuses_us",  FINDING_WARNING, check_named,
     "Correct what the text names; `petrel doctor` looks for it, and `petrel trace "
     "RECEIVER` has the replies."                                                     },
    {"quota_used_up",        FINDING_WARNING, check_named,
     "Wait, mail goes on by itself; `quota=` of the route keeps below the limit."     },
    {"sts_unreachable",      FINDING_WARNING, check_named,
     "See whether this host reaches mta-sts.DOMAIN by HTTPS; `?sts=no` ignores it."   },
    {"port_25_blocked",      FINDING_ERROR,   check_port_25_blocked,
     "Ask your provider to open port 25, or send through a smarthost (`relay`)."      },
    {"site_dead",            FINDING_WARNING, check_site_dead,
     "See `petrel status --site SITE`; it is tried by itself, and with `petrel queue "
     "retry --all` now."                                                              },
    {"site_clogs",           FINDING_WARNING, check_site_clogs,
     "See its bound in `petrel status --site SITE`: its limits, its rate, its speed." },
    {"site_slow",            FINDING_WARNING, check_site_slow,
     "The rate doubles in each minute without a refusal; `petrel queue retry "
     "--forget-limits SITE` ends it now."                                             },
    {"mail_old",             FINDING_WARNING, check_mail_old,
     "See the cause, and until when it waits, with `petrel queue why ID`."            },
    {"expires_soon",         FINDING_WARNING, check_expires_soon,
     "Repair the cause (`petrel queue ls --older 1h` has it), or raise "
     "`maximal_queue_lifetime`."                                                      },
    {"held_long",            FINDING_HINT,    check_held_long,
     "Look at it with `petrel queue ls --queue hold`; then `petrel queue release "
     "--queue hold` or `petrel queue rm --queue hold`."                               },
    {"hold_by_route",        FINDING_WARNING, check_hold_by_route,
     "Say where mail goes with `petrel init --force`, `relay` or `routes`, then "
     "`systemctl restart petrel` and `petrel queue release --queue hold`."            },
    {"loop_slow",            FINDING_HINT,    check_loop_slow,
     "Look for a slow disk, a busy machine or swapping; report it as a bug otherwise."},
    {"clock_jumped",         FINDING_WARNING, check_clock_jumped,
     "Run a time service that slews the clock (chrony): times of retries follow it."  },
    {"namesake",             FINDING_ERROR,   check_namesake,
     "Set `defrag_host` to another name on one of the two hosts, and restart it."     },
    {"fragments_stuck",      FINDING_WARNING, check_fragments_stuck,
     "Wait for the parts, or deliver those that are there with `petrel queue release "
     "--queue defrag`."                                                               },
    {"registry_down",        FINDING_WARNING, check_registry_down,
     "Check the server that defrag_registry names, and the network between."          },
    {"bank_away",            FINDING_WARNING, check_bank_away,
     "Check the servers that cluster_redis names, and the network between; of slices, "
     "restart the one that `petrel cluster` names if it hangs."                       },
    {"name_servers",         FINDING_WARNING, check_name_servers,
     "Correct /etc/resolv.conf, which is then read again, or set `dns_servers`; "
     "restart if the sandbox does not let it be read."                                },
    {"sandbox_missing",      FINDING_HINT,    check_sandbox_missing,
     "Use a kernel with Landlock and seccomp, and a build with libseccomp."           },
    {"sandbox_refused",      FINDING_WARNING, check_sandbox_refused,
     "Restart the daemon if settings name new files; report it as a bug otherwise."   },
    {"running_as_root",      FINDING_HINT,    check_running_as_root,
     "Set `user`: root is then given up after the ports are bound."                   },
    {"hostname_odd",         FINDING_WARNING, check_hostname_odd,
     "Set `hostname` to a full name that has an address in DNS."                      },
    {"open_relay",           FINDING_ERROR,   check_open_relay,
     "Limit `relay_from` to your networks, and remove `allow_open_relay`."            },
    {"secrets_readable",     FINDING_WARNING, check_secrets_readable,
     "Make the file readable to its owner only: `chmod 600 FILE`."                    },
    {"auth_cleartext",       FINDING_WARNING, check_auth_cleartext,
     "Set `tls_certificate` and `tls_key`, and remove `auth_cleartext`."              },
    {"events_stuck",         FINDING_WARNING, check_events_stuck,
     "Repair the receiver that `events` names, or name another and reload."           },
    {"reload_refused",       FINDING_WARNING, check_reload_refused,
     "Correct the errors that `petrel check` names, then `petrel reload`."            },
    {"settings_changed",     FINDING_HINT,    check_settings_changed,
     "Use the new settings with `petrel reload`; `petrel check` examines them before."},
};

const struct finding_row *
findings_row_at(size_t index)
{
    return index < sizeof(finding_rows) / sizeof(*finding_rows) ? &finding_rows[index]
                                                                : NULL;
}

bool
findings_row_is_named(const struct finding_row *row)
{
    return row->check == check_named;
}

/* --- Filling holes ---------------------------------------------------------------- */

/* NULL: the remedy has none. */
static const struct finding_hole *
findings_hole(const struct finding_row *row)
{
    for (size_t i = 0; i < sizeof(finding_holes) / sizeof(*finding_holes); i++)
        if (strcmp(finding_holes[i].code, row->code) == 0)
            return &finding_holes[i];
    return NULL;
}

/* False: an object that no shell would leave as it is, even within quotes. */
static bool
findings_quote(const char *object, char out[FINDINGS_SUBJECT_MAX + 80])
{
    struct text rest = text_from(object), word;
    size_t used = 0;
    out[0] = '\0';
    if (strpbrk(object, "'`") != NULL || object[0] == '-' || text_has_control(rest))
        return false;
    while (text_word(&rest, " ", &word)) {
        bool is_plain = true;
        for (size_t i = 0; i < word.length; i++)
            is_plain = is_plain && (isalnum((unsigned char)word.at[i]) ||
                                    strchr("._:@/+-,%=", word.at[i]) != NULL);
        const char *quote = is_plain ? "" : "'";
        int length =
            snprintf(out + used, FINDINGS_SUBJECT_MAX + 80 - used, "%s%s%.*s%s",
                     used > 0 ? " " : "", quote, TEXT_ARGS(word), quote);
        used += (size_t)length;
        if (used >= FINDINGS_SUBJECT_MAX + 80)
            return false;
    }
    return used > 0;
}

const char *
findings_remedy(const struct finding_row *row, const struct finding_facts *facts,
                const char *object, char out[FINDINGS_REMEDY_MAX])
{
    char quoted[FINDINGS_SUBJECT_MAX + 80];
    const struct finding_hole *hole = findings_hole(row);
    const char *at = hole != NULL ? strstr(row->remedy, hole->word) : NULL;
    if (hole != NULL && hole->object != NULL)
        object = hole->object(facts);
    if (at == NULL || !findings_quote(object, quoted))
        snprintf(out, FINDINGS_REMEDY_MAX, "%s", row->remedy);
    else
        snprintf(out, FINDINGS_REMEDY_MAX, "%.*s%s%s", (int)(at - row->remedy),
                 row->remedy, quoted, at + strlen(hole->word));
    return out;
}
