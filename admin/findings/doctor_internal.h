/* The judges of doctor, and their shared declarations. Internal to admin/findings/. */
#ifndef ADMIN_FINDINGS_DOCTOR_INTERNAL_H
#define ADMIN_FINDINGS_DOCTOR_INTERNAL_H

#include "admin/findings/doctor.h"
#include "mime/auth/dmarc.h"
#include "sched/route/provider_facts.h"

enum { DOCTOR_SEEN_MAX = 8, DOCTOR_NAME_MAX = 256 };

struct doctor_task {
    const struct fault_row *row;
    char *subject;
    const struct inquiry_item *missing; /* without its answer it cannot go on */
};
struct doctor {
    const struct doctor_setup *setup;
    const struct options *options;
    struct inquiry *inquiry;
    struct faults list;
    struct doctor_task *tasks; /* those that are left */
    size_t task_count, task_capacity;
    char (*domains)[DOCTOR_NAME_MAX];
    size_t domain_count, domains_omitted;
    bool is_direct; /* mail of one of the domains leaves by MX */
    bool is_proven; /* the TLSA records of this host are being examined */
};

/* Addresses of this host as receivers see them. */
struct doctor_seen {
    struct net_address list[DOCTOR_SEEN_MAX];
    size_t count;
    bool is_published;               /* no host has said: the addresses of hostname */
    bool is_unpublished;             /* ... which cannot be looked up */
    size_t reached, silent, unknown; /* receivers */
    char trouble[600];               /* of the last that is silent */
};

/* A judge of the table, about a subject. */
void doctor_add_task(struct doctor *d, fault_judge *judge, const char *subject);
/* False: wait. */
bool doctor_find_seen(struct doctor *d, struct doctor_seen *out);
/* Where mail of that domain leaves to, for a foreign recipient. */
const struct target *doctor_target(const struct doctor *d, const char *domain);
/* "FILE" or "the settings". */
const char *doctor_settings(const struct doctor *d);

/* Name servers do not say: "its MX records" of the subject cannot be looked up. */
void doctor_say_unknown(struct faults *out, const char *subject, const char *what,
                        const char *reason);

/* Whether the record of a domain lets our mail pass, and its key signs: for the rules of
 * bulk senders. UNKNOWN: name servers do not say. */
enum doctor_rule { DOCTOR_RULE_BROKEN, DOCTOR_RULE_MET, DOCTOR_RULE_UNKNOWN };
/* False: wait. */
bool doctor_spf_passes(struct doctor *d, const char *domain, enum doctor_rule *out);

/* Judges of this host. Their subjects are words for it, but for that of the name. */
fault_judge doctor_judge_resolver, doctor_judge_port, doctor_judge_address,
    doctor_judge_indirect, doctor_judge_name, doctor_judge_ptr,
    doctor_judge_certificates, doctor_judge_copies, doctor_judge_queue,
    doctor_judge_blocklists, doctor_judge_tokens;
/* Judges of a domain that mail is sent from, ... */
fault_judge doctor_judge_spf, doctor_judge_dkim, doctor_judge_dmarc, doctor_judge_mx;
/* ... or whose mail this host takes: the records that prove its TLS, and, of the first
 * one, the readers of mail for root and postmaster. */
fault_judge doctor_judge_proof, doctor_judge_tlsa, doctor_judge_policy,
    doctor_judge_root;
/* The judge of an address or a domain that mail is sent to. */
fault_judge doctor_judge_destination;
/* Judges of a smarthost: the subject is its number, or HOST:PORT. */
fault_judge doctor_judge_login, doctor_judge_no_login;

#endif
