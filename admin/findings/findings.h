/* Findings: faults that the running daemon keeps, each with a remedy in one sentence.
 *
 * The daemon looks every ten seconds, and for each request, since its sender may have
 * just changed something: it collects facts, and the rows of FAULT_RUNNING judge them
 * (faults.h). Rows of FAULT_BY_EVENT follow events instead. The beginning of an error
 * or a warning is the event `trouble`, its end `recovered`. The same code and subject
 * again within the hour is shown but not reported again. A finding never changes the
 * behaviour of the daemon. */
#ifndef ADMIN_FINDINGS_FINDINGS_H
#define ADMIN_FINDINGS_FINDINGS_H

#include "admin/findings/faults.h"
#include "base/loop/loop.h"
#include "base/event/event.h"
#include "queue/queue_operator.h"

#include <jansson.h>

enum {
    FINDINGS_MAX = 64, /* at a time; further ones wait for space */
    FINDINGS_LOOK_MS = 10 * 1000,
    FINDINGS_FRESH_MS = 1000,           /* a request gets findings that are not older */
    FINDINGS_QUIET_MS = 60 * 60 * 1000, /* before the same is reported again */
    FINDINGS_SUBJECT_MAX = FAULTS_OBJECT_MAX,
    FINDINGS_AGE_MAX = 40,
    FINDINGS_NAMED_MAX = 24,
    FINDINGS_NAMED_TEXT_MAX = 320,
    FINDINGS_TEXT_MAX = 1024,
    FINDINGS_REMEDY_MAX = 640,
    FINDINGS_DEAD_MS = 2 * 60 * 1000,
    FINDINGS_CLOGGED_MS = 5 * 60 * 1000, /* as Postfix's qmgr_clog_warn_time */
    FINDINGS_SLOW_MS = 10 * 60 * 1000,   /* for all that waits, at a learnt rate */
    FINDINGS_SILENT = 5,                 /* sites */
    FINDINGS_STUCK_MS = 15 * 60 * 1000,  /* of events */
    FINDINGS_OLD_MS = 60 * 60 * 1000,
    FINDINGS_HELD_DAYS = 7,
    FINDINGS_EXPIRES_PERCENT = 80, /* of the lifetime */
    FINDINGS_CERTIFICATE_DAYS = 14,
    FINDINGS_RECENT_MS = 10 * 60 * 1000, /* an event is shown for this time */
    FINDINGS_JUMP_MS = 60 * 60 * 1000,   /* ... for the wall clock, which is set once */
    FINDINGS_COPY_MS = 24 * 60 * 60 * 1000 /* ... for a copy that failed */
};

/* The sites with waiting mail. */
struct finding_sites {
    size_t dead;         /* they have not worked for FINDINGS_DEAD_MS */
    size_t clogged;      /* mail has waited on disk for FINDINGS_CLOGGED_MS */
    size_t slow;         /* mail needs FINDINGS_SLOW_MS at the learnt rate */
    size_t silent;       /* found by MX, and nobody answers there */
    bool direct_greeted; /* a site found by MX has greeted since startup */
    uint16_t smtp_port;
    /* That with most mail: its name, for how long, why. */
    struct finding_site {
        char name[FINDINGS_SUBJECT_MAX], why[FINDINGS_SUBJECT_MAX];
        int64_t since_ms; /* duration */
        size_t mail;
    } worst_dead, worst_clogged, worst_slow;
};

/* The facts that the checks judge. Strings are borrowed until the look ends; "" or
 * NULL: there is no fault. */
struct finding_facts {
    struct queue_health health;
    size_t held, quarantined; /* messages in hold/ and corrupt/ */
    /* Ages, 0: there is none: the oldest mail that is not held, the oldest that waits
     * for anything but its receiver's 4yz reply, the oldest held. */
    int64_t oldest_ms, behind_ms, held_ms;
    int64_t lifetime_ms;               /* 0: mail is tried once */
    char behind[FINDINGS_SUBJECT_MAX]; /* its id, and why it waits */
    char behind_id[ID_LENGTH + 1];
    struct finding_sites sites;
    unsigned sandbox_refused;
    bool is_stopping; /* on purpose: it accepts nothing */
    bool history_paused, registry_down;
    const char *bank_away;   /* of the group: why it does not answer */
    size_t bank_sites;       /* that go on with our own part meanwhile */
    const char *copies_away; /* why no copies are kept */
    bool copies_required;
    uint64_t copies_behind, copies_losses; /* messages; times */
    bool copies_namesake;                  /* another host has our name, or our spool */
    uint64_t copies_unreadable;
    const char *copies_unreadable_at; /* the last: its field and key */
    bool holds_by_route; /* a route holds the mail that no other route takes */
    struct event_keeping events;
    struct faults named;          /* see findings_name(); the look frees them */
    const struct faults *settled; /* of the settings; NULL: none */
    bool is_root, open_relay, auth_cleartext, reload_refused;
    uint64_t log_lost; /* lines since startup, if some were lost recently; else 0 */
    /* Our certificate that expires first, and the time left. */
    const char *certificate;
    int64_t certificate_ms;
    const char *auth_trouble;        /* Dovecot cannot be asked about logins */
    const char *certificate_trouble; /* new files that cannot be used */
    int64_t slow_us;                 /* a recent turn of the loop */
    const char *slow_part;
    int64_t jump_ms; /* of the wall clock, recently */
    bool namesake;   /* another host of the registry has used our name recently */
    size_t fragments;
    int64_t fragments_ms;     /* the age of the oldest that waits for others */
    const char *name_servers; /* their fault, or that of resolv.conf */
    const char *sandbox_missing;
    const char *changed_settings; /* a file */
    const char *copy_failed_to;   /* `copy_to`: recently; else NULL */
    uint64_t copies_failed;       /* since startup */
};

struct findings_setup {
    struct loop *loop;
    struct event_hub *events;
    void (*collect)(void *context, struct finding_facts *facts); /* facts are zeroed */
    void *context;
};

struct findings;
/* The first look comes with the first turn. */
struct findings *findings_new(const struct findings_setup *setup);
void findings_free(struct findings **findings);
/* Now: something has changed. */
void findings_look(struct findings *findings);
/* Whether a finding of the code holds. findings may be NULL. */
bool findings_has(const struct findings *findings, const char *code);
size_t findings_count(const struct findings *findings);
/* Without hints. findings may be NULL. */
size_t findings_count_wrong(const struct findings *findings);
/* A duration: long ones in hours, longer ones in days. Returns out. */
const char *findings_age(int64_t ms, char out[FINDINGS_AGE_MAX]);
/* The remedy with its hole filled, quoted for a shell; an object that cannot be quoted
 * leaves the word of the hole. Returns out. */
const char *findings_remedy(const char *remedy, const char *object,
                            char out[FINDINGS_REMEDY_MAX]);
/* Adds a named fault to the facts: a finding by its code and its subject. One too many
 * is omitted. Its remedy is about the subject, or about the object: words for a command
 * line. */
void findings_name(struct finding_facts *facts, const char *code, const char *subject,
                   const char *text);
void findings_name_object(struct finding_facts *facts, const char *code,
                          const char *subject, const char *text, const char *object);
/* An array of {code, severity, since_ms, subject, text, remedy}: errors, then warnings,
 * then hints. Looks, unless it has within FINDINGS_FRESH_MS. The caller frees it.
 * context: the findings. */
json_t *findings_json(void *context);

#endif
