/* Policies of MTA-STS (RFC 8461) of the domains that mail goes to by MX: they come,
 * change, expire, are wrong or cannot be had. Under one in mode enforce that the host
 * has, mail comes only to the hosts that it names, and proven (the law "bounds"). */
#ifndef T_ROOF_POLICY_H
#define T_ROOF_POLICY_H

#include "base/dns/dns.h"
#include "t/roof/roof.h"

#define POLICY_SETTINGS "mta_sts_port = 8443\n"
/* Names of the certificate of hosts. */
#define POLICY_HOST_3 "mta-sts.d3.test"
#define POLICY_HOST_4 "mta-sts.d4.test"

enum { POLICY_DOMAINS = 5 }; /* mail is for so many of them, at least */

/* is_blurred: clocks are set or disks fail, so that a restart may forget any. */
void policy_begin(bool is_blurred);
/* Records of the policies, beside others. */
void policy_fill_dns(struct dns *dns);
/* Another policy, or another mood of a host. */
void policy_act(void);
/* No file of a policy can be had for now. */
void policy_leave(void);
/* All of them are right, or their hosts have gone for ever. */
void policy_become_good(void);
/* So long may mail have to wait then; 0: there are no policies. */
int64_t policy_wait_ms(void);
/* A line of the log of the first host, without time; and its start. */
void policy_line(struct text line);
void policy_start(void);
/* A recipient of this domain is named at a hop, on a connection of then. */
void policy_judge(unsigned domain, const char *hop, int64_t began_ms, bool is_proven);

#endif
