/* The checks of doctor, and their shared declarations. Internal to admin/doctor/. */
#ifndef ADMIN_DOCTOR_DOCTOR_INTERNAL_H
#define ADMIN_DOCTOR_DOCTOR_INTERNAL_H

#include "admin/doctor/doctor.h"
#include "mime/auth/dmarc.h"
#include "sched/route/provider_facts.h"

enum { DOCTOR_SEEN_MAX = 8, DOCTOR_NAME_MAX = 256 };

struct doctor;
/* False: an answer is missing; the results it has added are dropped, and it is run
 * again. */
typedef bool doctor_check(struct doctor *d, struct checklist *out, const char *subject);

struct doctor_task {
    doctor_check *run;
    char *subject;
    const struct inquiry_item *missing; /* without its answer it cannot go on */
};
struct doctor {
    const struct doctor_setup *setup;
    const struct options *options;
    struct inquiry *inquiry;
    struct checklist list;
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
/* The large receivers whose mail hosts are asked. */
struct doctor_receiver {
    const char *domain, *name;
};
extern const struct doctor_receiver doctor_receivers[];

void doctor_add_task(struct doctor *d, doctor_check *run, const char *subject);
/* False: wait. */
bool doctor_find_seen(struct doctor *d, struct doctor_seen *out);
/* Where mail of that domain leaves to, for a foreign recipient. */
const struct target *doctor_target(const struct doctor *d, const char *domain);
/* "FILE" or "the settings". */
const char *doctor_settings(const struct doctor *d);

/* Whether the record of a domain lets our mail pass, and its key signs: for the rules of
 * bulk senders. UNKNOWN: name servers do not say. */
enum doctor_rule { DOCTOR_RULE_BROKEN, DOCTOR_RULE_MET, DOCTOR_RULE_UNKNOWN };
/* False: wait. */
bool doctor_spf_passes(struct doctor *d, const char *domain, enum doctor_rule *out);
bool doctor_dkim_signs(struct doctor *d, const char *domain, enum doctor_rule *out);

void doctor_add_host_tasks(struct doctor *d);
void doctor_add_domain_tasks(struct doctor *d, const char *domain);
/* That somebody gets the mail for root and postmaster. */
void doctor_add_root_task(struct doctor *d);
void doctor_add_smarthost_tasks(struct doctor *d);
void doctor_add_local_tasks(struct doctor *d);
void doctor_add_list_tasks(struct doctor *d);
/* subject: an address, or a domain. */
void doctor_add_destination_task(struct doctor *d, const char *subject);
/* Records that this host may publish for senders of mail to that domain. */
void doctor_add_proof_task(struct doctor *d, const char *domain);
doctor_check doctor_check_spf, doctor_check_dkim, doctor_check_dmarc, doctor_check_mx;
doctor_check doctor_check_resolver, doctor_check_port, doctor_check_name,
    doctor_check_address, doctor_check_ptr;
void doctor_add_key_tasks(struct doctor *d);

#endif
