/* Controls of the stand-in for base/dns/dns.h (t/sim/dns.c), beyond that header.
 *
 * Names are answered from a table. A name that is not in it does not exist; one that
 * has only other kinds of records answers DNS_NO_DATA. IP literals and localhost
 * answer as always. Addresses come IPv6 and IPv4 by turns, but within a family as they
 * were added. */
#ifndef T_SIM_SIM_DNS_H
#define T_SIM_SIM_DNS_H

#include "base/dns/dns.h"

enum { SIM_DNS_DELAY_MS = 20, SIM_DNS_TTL_S = 300 };

/* Adds one record; host "" is the null MX. */
void sim_dns_mx(struct dns *dns, const char *name, unsigned preference,
                const char *host);
void sim_dns_address(struct dns *dns, const char *name, const char *ip);
/* All of its records. */
void sim_dns_forget(struct dns *dns, const char *name);
/* text and data are kept, not copied. parameters: 311 is "3 1 1". */
void sim_dns_text(struct dns *dns, const char *name, const char *text);
/* For each name that is not in the table; NULL: none. */
void sim_dns_text_any(struct dns *dns, const char *text);
/* In place of the texts that it had. */
void sim_dns_text_change(struct dns *dns, const char *name, const char *text);
void sim_dns_tlsa(struct dns *dns, const char *name, unsigned parameters,
                  struct text data);
void sim_dns_host(struct dns *dns, const char *ip, const char *host);
/* The name is an alias: its addresses are those of that one, and are secure if the name is; the CNAME record if
 * `secure`. */
void sim_dns_alias(struct dns *dns, const char *name, const char *of, bool secure);
/* The question for its CNAME record is not answered. */
void sim_dns_alias_fails(struct dns *dns, const char *name);
/* Answers about the name have been validated; DNS_TRUST_YES makes it secure. */
void sim_dns_secure(struct dns *dns, const char *name, bool secure);
/* From now on all kinds of question answer this, for any content of the table;
 * DNS_FOUND gives the table back. DNS_NO_DATA without records is a name that only
 * exists. */
void sim_dns_status(struct dns *dns, const char *name, enum dns_status status);
/* Later questions take this long. */
void sim_dns_delay(struct dns *dns, int64_t delay_ms);
/* Whether questions are in line, since too many others are under way. */
void sim_dns_busy(struct dns *dns, bool is_busy);
/* Asked so far, cancelled ones included. */
size_t sim_dns_questions(const struct dns *dns);

#endif
