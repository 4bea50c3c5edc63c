/* `petrel doctor`: why mail might not arrive, with remedies.
 *
 * This host, its name servers, the records of the domains that mail is sent from,
 * smarthosts and certificates are examined as receivers see them. A judge asks
 * (inquiry.h), and adds its results to a list (faults.h), with a remedy and the record
 * to paste. Nothing is changed, and neither daemon nor root is needed. The two sides of
 * SMTP are not known here: the caller hands over functions that need them. */
#ifndef ADMIN_FINDINGS_DOCTOR_H
#define ADMIN_FINDINGS_DOCTOR_H

#include "admin/findings/faults.h"
#include "admin/findings/inquiry.h"
#include "admin/settings/accounts.h"
#include "admin/settings/options.h"
#include "base/tls/tls.h"

enum { DOCTOR_DOMAINS_MAX = 1000, DOCTOR_ARGUMENTS_MAX = 1000, DOCTOR_HOSTS_MAX = 100 };

/* A key that signs; texts are borrowed. */
struct doctor_key {
    const char *domain, *selector;
    const char *kind; /* "rsa", "ed25519" */
    unsigned bits;
    struct text public; /* p= in base64 */
};

/* verdict of an answer to INQUIRY_LOGIN, whose key is the number of
 * doctor_host_at(); DNS_TRY_AGAIN: there is none. reason: the reply, or the TLS of a
 * good one. */
enum doctor_login {
    DOCTOR_LOGIN_GOOD,
    DOCTOR_LOGIN_DOWN,
    DOCTOR_LOGIN_REFUSED,
    DOCTOR_LOGIN_SENDER,
    DOCTOR_LOGIN_TOKEN,
    DOCTOR_LOGIN_RECIPIENT /* of INQUIRY_WAY alone */
};

/* INQUIRY_WAY: whether a host takes mail for a subject. Its key is HOST and SUBJECT with
 * a space between, HOST "-" for the smarthost of the route; the verdict is a doctor_login,
 * reason the reply, texts are these. */
enum {
    DOCTOR_WAY_TLS,
    DOCTOR_WAY_WHERE,
    DOCTOR_WAY_DEMAND,
    DOCTOR_WAY_INSECURE,
    DOCTOR_WAY_REQUIRETLS /* "": not offered */
};

/* INQUIRY_POLICY: the MTA-STS policy of a domain; the key is DOMAIN and HOST; the verdict
 * is this. DNS_NO_DATA: it has none, or it cannot be fetched. */
enum doctor_policy {
    DOCTOR_POLICY_NAMES,   /* the host is among those that it permits */
    DOCTOR_POLICY_TESTING, /* it is not, in mode testing */
    DOCTOR_POLICY_FORBIDS,
    DOCTOR_POLICY_EMPTY /* mode none */
};

struct doctor_setup {
    const struct options *options;
    const struct route_table *routes;
    const struct accounts *accounts;
    const struct rewrites *rewrites; /* NULL: none */
    struct aliases *aliases;         /* NULL: none, or they could not be read */
    bool has_secrets;                /* else keys and passwords could not be read */
    const char *file;                /* of the settings, for remedies */
    struct doctor_key *keys;
    size_t key_count;
    struct inquiry_source login, way, policy;
    /* Asks the servers of `copies`: 0 good, or why. NULL: there are none. */
    int (*copies)(void *context, char *why, size_t size);
    void *copies_context;
    const char *sender; /* of mail that is handed over for a try: MAIL FROM */
    const struct tls_client *anchors; /* NULL: there are none */
    struct loop *loop;
    struct net *net;
    struct dns *dns, *validating;
};

/* The request on the command line. */
struct doctor_request {
    bool json, blocklists;
    int count;
    char **subjects; /* domains and addresses */
};
/* False: a usage line has been printed. */
bool doctor_read_request(int count, char **arguments, struct doctor_request *out);

/* Prints. 0, or 1: there is an error. */
int doctor_run(const struct doctor_setup *setup, const struct doctor_request *request);

/* Where mail for "local@domain", or for anybody at "domain", goes to. */
const struct target *doctor_route(const struct doctor_setup *setup,
                                  const char *subject);

/* A host of a target. */
struct doctor_host {
    const struct target *target;
    size_t at;
};
/* The hosts of the routes, each once: those that we log in to, or the others. False:
 * there is none of that number. */
bool doctor_host_at(const struct route_table *routes, bool logs_in, size_t number,
                    struct doctor_host *out);

#endif
