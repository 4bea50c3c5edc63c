/* The judges of settings, for the table. Internal to admin/findings/. */
#ifndef ADMIN_FINDINGS_FAULTS_INTERNAL_H
#define ADMIN_FINDINGS_FAULTS_INTERNAL_H

#include "admin/findings/faults.h"

fault_judge faults_judge_names, faults_judge_hostname, faults_judge_source,
    faults_judge_secrets, faults_judge_spool_path, faults_judge_slices,
    faults_judge_bounces, faults_judge_bursts, faults_judge_units, faults_judge_targets,
    faults_judge_required, faults_judge_hidden_routes, faults_judge_hidden_rewrites,
    faults_judge_fragments, faults_judge_accounts, faults_judge_quotas,
    faults_judge_copies, faults_judge_suppression, faults_judge_events,
    faults_judge_group, faults_judge_cores, faults_judge_unreadable;

/* One line about a bad hostname, on a system of that name (NULL: unknown); "": it is
 * good. Returns out. */
enum { FAULTS_HOSTNAME_MAX = 512 };
const char *faults_hostname(const char *hostname, const char *system_name,
                            char out[FAULTS_HOSTNAME_MAX]);
/* Whether a host with that number of cores has space for more slices. */
bool faults_find_cores(int64_t slices, int cores, struct faults *out);

#endif
