/* The rows of daemon_parts, and what parts ask each other. See
 * struct daemon_part. */
#ifndef ADMIN_STARTUP_PARTS_H
#define ADMIN_STARTUP_PARTS_H

#include "admin/startup/daemon.h"

/* --- part_base.c: what all others use ----------------------------------------------- */

/* Log, service manager, events, sockets and sandbox. The log comes before net and queue,
 * whose work at the end of a turn it writes; its own socket before the sandbox, which
 * makes no new ones. */
int part_base_start(struct daemon *d);
void part_base_reload(struct daemon *d, struct configuration *fresh);
void part_base_stop(struct daemon *d);
/* The trust, and resolv.conf as it is now; dns_servers stay until a restart. */
int part_dns_start(struct daemon *d);
void part_dns_reload(struct daemon *d, struct configuration *fresh);
void part_dns_stop(struct daemon *d);
/* Sockets that were passed for nothing are closed: a port that nobody answers would leave
 * its clients waiting. */
int part_passed_start(struct daemon *d);
/* The plan of the sandbox, and the check of new settings against it. */
int part_rights_start(struct daemon *d);
void part_rights_reload(struct daemon *d, struct configuration *fresh);

/* --- part_queue.c: mail on disk, and fragments -------------------------------------- */

int part_manager_start(struct daemon *d);
void part_manager_reload(struct daemon *d, struct configuration *fresh);
void part_manager_stop(struct daemon *d);
int part_fragments_start(struct daemon *d);
void part_fragments_reload(struct daemon *d, struct configuration *fresh);
void part_fragments_stop(struct daemon *d);

/* --- part_group.c: the hosts that share limits -------------------------------------- */

/* In the status: `group`. The answer to the question `cluster` has it, too, and there also
 * `sites`, those whose limits are shared, as site_view.h has them, at most 200:
 *   name, host, egress
 *   bank      up, away or none; server, why, away_ms (0: it is not away)
 *   hosts     name, state (member or lost), own; of the others reports (its own state:
 *             running, leaving, ...), version and address (HOST:PORT of its peer door), each
 *             "" if it does not say
 *   fallback_sites   sites that go on with this host's own part
 *   asks, asked_sites, failures   questions to the bank since startup
 *   namesake  another host has our name
 * The question cluster-forget {host} frees the part of one that will not come back. */
int part_group_start(struct daemon *d);
void part_group_reload(struct daemon *d, struct configuration *fresh);
void part_group_stop(struct daemon *d);
/* Answers to these questions, from now on. */
void part_group_answer(struct daemon *d);
/* Facts may point into the group. */
void part_group_find(const struct daemon *d, struct finding_facts *facts);
/* The connection of this process, if it is to the registry's server; else NULL. */
struct redis *part_group_redis(const struct daemon *d);
/* The siblings of the group, if there is one: a give_setup.siblings. */
void part_group_siblings(void *daemon,
                         bool (*each)(void *context, const struct sibling *s),
                         void *context);

enum { PART_CLUSTER_SITES = 100 };
/* One view of the hosts of a group: the description of this host, and the hosts that the
 * control socket asks when a request says "cluster": true.
 *
 * The question `summary`, which other hosts may ask, is answered by one object:
 *   version, uptime_s, accepting, reason, queue, oldest_ms, sessions   as in the status
 *   state      running, leaving, closing, emptying, giving, gone
 *   waiting    messages that are incoming, active or deferred
 *   busy       0 to 1, the mean of a minute; omitted where nobody measures it
 *   settings   digests by their names (settings_digest.h)
 *   group      as in the status; null: there is none
 *   sites      those with shared limits and most mail, at most PART_CLUSTER_SITES: site,
 *              limit, shared_tokens, lease_tokens, lease_sessions, sessions, busy, waiting,
 *              backlogged, bound */
int part_cluster_start(struct daemon *d);
/* Nobody is asked any more: before the peer door is closed. */
void part_cluster_stop(struct daemon *d);

/* --- part_copies.c: copies of mail in Redis ------------------------------------------ */

/* In the status: `copies`, absent without:
 *   server      that is used, or tried
 *   ready       copies are kept; else why says why not
 *   behind      messages that have no copy yet
 *   stored, removed, refused, losses     since startup */
int part_copies_start(struct daemon *d);
json_t *part_copies_status(void *daemon);  /* NULL: there are none */
void part_copies_answer(struct daemon *d); /* that, in the status */
void part_copies_find(const struct daemon *d, struct finding_facts *facts);
void part_copies_stop(struct daemon *d);

/* --- part_adoption.c: copies of hosts that are lost ---------------------------------- */

/* Above the peer door's row. Questions: cluster-adopt {host}. */
int part_adoption_start(struct daemon *d);
void part_adoption_reload(struct daemon *d, struct configuration *fresh);
void part_adoption_stop(struct daemon *d);
void part_adoption_on_fenced(void *context, const char *owner);

/* --- part_peer.c: the door for the hosts of a group --------------------------------- */

/* Takes mail of other hosts, or of their copies: once. */
void part_peer_take_mail(struct daemon *d);
/* The identity of the spool, as the user to whom that belongs. */
int part_identity_start(struct daemon *d);
/* In the status: `peer`, absent without a secret:
 *   address    where others reach us; "": they cannot
 *   spool      the identity of our spool
 *   accepted, named, pushed_out, turned_away     connections since startup (peer.h) */
int part_peer_start(struct daemon *d);
void part_peer_reload(struct daemon *d, struct configuration *fresh);
/* Says goodbye; then the modules that take mail and answer questions end. */
void part_peer_stop(struct daemon *d);

/* --- part_delivery.c: the way of mail out ------------------------------------------- */

/* The certificates that next hops are verified by: in the configuration, until delivery
 * takes them. */
int part_anchors_start(struct daemon *d);
/* Delivery, policies of MTA-STS, and Maildirs. */
int part_delivery_start(struct daemon *d);
void part_delivery_reload(struct daemon *d, struct configuration *fresh);
void part_delivery_stop(struct daemon *d);
/* Names the policies of MTA-STS that cannot be fetched. */
void part_sts_find(const struct daemon *d, struct finding_facts *facts);
/* The smarthosts, for status, readiness and metrics. */
int part_upstreams_start(struct daemon *d);
void part_upstreams_reload(struct daemon *d, struct configuration *fresh);
void part_upstreams_stop(struct daemon *d);
/* False: upstreams are no condition of readiness. */
bool part_upstreams_check(const struct daemon *d, struct health_check *check);

/* --- part_tokens.c: the accounts of `oauth` ------------------------------------------ */

/* Nothing is made before there is an account. */
int part_tokens_start(struct daemon *d);
void part_tokens_reload(struct daemon *d, struct configuration *fresh);
void part_tokens_stop(struct daemon *d); /* after delivery, which asks for tokens */
/* Requests for tokens that are under way may end within grace_ms. False: there is none,
 * and done will not be called. */
bool part_tokens_drain(struct daemon *d, int64_t grace_ms, void (*done)(void *daemon))
    __attribute__((warn_unused_result));

/* --- part_records.c: history, and events for programs -------------------------------- */

enum { PART_HISTORY_SIZE_LEAST = 256 * 1024 };
int part_history_start(struct daemon *d);
void part_history_reload(struct daemon *d, struct configuration *fresh);
void part_history_pause(struct daemon *d); /* lines go nowhere any more */
void part_history_stop(struct daemon *d);
int part_events_start(struct daemon *d);
void part_events_reload(struct daemon *d, struct configuration *fresh);
void part_events_pause(struct daemon *d); /* nothing is posted any more */
void part_events_stop(struct daemon *d);  /* the last ones are written */

/* --- part_listener.c: mail in ------------------------------------------------------- */

int part_listener_start(struct daemon *d);
void part_listener_reload(struct daemon *d, struct configuration *fresh);
void part_listener_stop(struct daemon *d);

/* --- part_certificates.c: the files of certificates ---------------------------------- */

enum { PART_TLS_LOOK_MS = 60 * 1000, PART_TLS_SETTLED_MS = 5 * 1000 };
/* The files of tls_certificate and tls_key are watched, and new ones taken up. Each
 * minute the state of every file is asked for. Files that have changed and are the same
 * five seconds later are read. If all of them parse, fit each other and are valid now,
 * they serve connections that do not have TLS yet, and the event `certificate` says so.
 * Otherwise the old ones stay, part_tls_trouble() says why, and the files are read again
 * each minute. Started as the daemon's user. */
int part_tls_start(struct daemon *d);
void part_tls_stop(struct daemon *d);
/* Before the listener reads the files of the settings. */
void part_tls_note(struct daemon *d, const struct listener_settings *settings);
/* The reason for which the files are not used as they are now; NULL: they are. */
const char *part_tls_trouble(const struct daemon *d);
/* The file of the certificate with that index of tls_server_certificate(); "": none. */
const char *part_tls_file(const struct daemon *d, size_t index);
/* The same for the files that routes name: cert= and key=, each pair by itself. */
int part_hop_tls_start(struct daemon *d);
void part_hop_tls_reload(struct daemon *d, struct configuration *fresh);
void part_hop_tls_stop(struct daemon *d);

/* --- part_aliases.c ------------------------------------------------------------------ */

enum { PART_ALIASES_EVERY_MS = 10 * 1000 };
/* Takes table and files of the configuration: gives the table of aliases and the secrets
 * of SRS to the code that expands. The files are read again when they have changed, some
 * lines in each turn, and the secret until it can be read. Until the new table is
 * complete the old one counts. */
int part_aliases_start(struct daemon *d);
void part_aliases_reload(struct daemon *d, struct configuration *fresh);
/* The files are not watched any more. */
void part_aliases_stop(struct daemon *d);
/* After the manager and the listener, which use them. */
void part_aliases_free(struct daemon *d);

/* --- part_control.c: the control socket ---------------------------------------------- */

/* The socket, and what its clients have others do: ETRN's flush, and test messages. */
int part_control_start(struct daemon *d);
void part_control_reload(struct daemon *d, struct configuration *fresh);
void part_control_stop(struct daemon *d);
/* Questions beyond those of control_server.h, each a line of JSON:
 *   health      see admin/control/health.h
 *   log-level   {level, for_ms}: level for that time (0: until a reload); without level
 *               nothing changes. Answered by level, configured, until_ms (since 1970;
 *               0: not limited)
 *   lockouts    the clients that are locked out: count, and lockouts (client, times,
 *               until_ms), latest failure first, at most LOCKOUTS_SHOWN
 *   unlock      {clients}: their failures are forgotten. Answered by clients: for each
 *               client, locked
 *   site        {name}: sites (site_view_find()), site, the first of them, and failed, the
 *               last failed conversation there:
 *               begun_ms, relay, cut, lines (at_ms, from: we, they or note, text); null:
 *               there is none
 *   canary      a canary to each smarthost now (smarthost_health_ask()): asked, how many; and
 *               upstreams as in the status, from before
 *   series      what HTTP's /api/series has, counted since the first question if HTTP has
 *               no page
 *   reload      answered when it is done: ok, restart (settings that wait for one); or
 *               errors
 * Two parts of the status:
 *   listeners     address, kind (smtp, submission, lmtp, http, control, peer), tls (none,
 *                 starttls, tls, secret), sessions (open connections), accepted
 *                 (connections since startup)
 *   certificates  file, names (at most PART_NAMES_MAX), name_count, not_before_ms,
 *                 not_after_ms, days_left (negative: it has expired), valid (by its dates)
 */
enum { PART_NAMES_MAX = 20 };
int part_answers_start(struct daemon *d);
/* The daemon stops: no reload will end. */
void part_answers_stop(struct daemon *d);
/* A reload has ended; the log has the level of the settings. errors: of the reload,
 * borrowed; NULL: it is in force, restart names the settings that are not. */
void part_answers_reloaded(struct daemon *d, const json_t *errors, const char *restart);
/* A health.look: the conditions of `ready_when`. */
size_t part_answers_look(void *daemon, struct health_check checks[HEALTH_CHECKS_MAX]);
/* A status of struct notify: "accepting mail; 3 waiting, oldest 2 min; 1 finding".
 * Hints do not count. */
void part_answers_describe(void *daemon, char out[NOTIFY_STATUS_MAX]);
/* The sessions of a listener, and whether there are nearly too many of them. */
size_t part_answers_sessions(void *listener, bool *stressed);

/* --- part_drain.c --------------------------------------------------------------------- */

/* `petrel drain`: takes the daemon out of service, and back.
 *
 *   running    mail comes and goes
 *   leaving    readiness fails; mail is accepted for drain_delay more, because load
 *              balancers lag
 *   emptying   if requested: clients get 421 4.3.2 after their transaction, deliveries go
 *              on, and deferred mail is due now and every 10 s, until none is left but
 *              held mail, quarantined mail and fragments, or the time is over
 *   closing    clients get 421 4.3.2; no session out begins, and those that run end, at
 *              the latest after drain_timeout
 *   giving     in a group: the queue goes to siblings, until nothing is left that they
 *              could take and no client sends any more, or the time is over
 *   gone       closed until SIGTERM, or until the drain is cancelled; what is left is
 *              given by another one
 *
 * Questions of the control socket:
 *   drain      {wait_ms, empty, to, keep}: begins, or {cancel}: ends, or {progress}:
 *              neither. to: the siblings that get the queue, else all; keep: nobody does.
 *              Answered by state, left (the messages by place, as `queue` of the status),
 *              sessions_in, sessions_out; and once the queue is given: given (messages
 *              that others have taken), refused and local (that stay), why (nobody takes
 *              mail now) */
int part_drain_start(struct daemon *d);
/* The queue can be given: there is a peer door. */
bool part_drain_has_siblings(const struct daemon *d);
/* SIGTERM with `stop = hand_over`: drains and gives the queue to siblings, for wait_ms at
 * most; one that has gone gives what is left once more. gone is called once, in a later
 * turn; immediately if nothing is given. */
void part_drain_hand_over(struct daemon *d, int64_t wait_ms,
                          void (*gone)(void *daemon));
/* The daemon stops: progress is still answered, and nothing else. */
void part_drain_stop(struct daemon *d);
/* The reason for which no mail should come, for health, status and log; NULL: it is
 * running. */
const char *part_drain_reason(const struct daemon *d);
/* The state as other hosts know it: running, leaving, ... */
const char *part_drain_word(const struct daemon *d);

/* --- part_http.c --------------------------------------------------------------------- */

/* Nothing is made unless `http` is set, or a client of the control socket asks for it. */
int part_http_start(struct daemon *d);
void part_http_reload(struct daemon *d, struct configuration *fresh);
void part_http_stop(struct daemon *d);
void part_http_refused(struct daemon *d); /* the reload */

/* --- part_findings.c: what is wrong --------------------------------------------------- */

int part_findings_start(struct daemon *d);
void part_findings_reload(struct daemon *d, struct configuration *fresh);
void part_findings_refused(struct daemon *d); /* the reload */
void part_findings_stop(struct daemon *d);
/* Fills the members about waiting mail, of `sites` all but the port. A walk through very
 * many sites takes a two hundredth of the time at most. */
void part_findings_see_mail(struct daemon *d, struct finding_facts *facts);
/* tls: the certificates in force; NULL: none. Facts may point into the daemon. */
void part_findings_see_process(struct daemon *d, const struct tls_server *tls,
                               const struct manager_fragments *fragments,
                               struct finding_facts *facts);

/* --- reload.c: with thousands of keys one turn would be too long for the others ------ */

/* Reads all settings anew. A reload under way is given up. If one turn is enough, done
 * comes within this call. */
void reload_begin(struct reload *r, const struct options_sources *sources);
/* The new settings with the certificates that next hops are verified by, if all can be
 * used; the caller frees them. NULL: they cannot, which the log says. running: those in
 * use; a file that has been emptied since is refused; NULL: none. */
struct configuration *reload_end(struct reload *r, const struct settings *running,
                                 const struct sandbox *sandbox);
/* The lines that the log got of the last reload_end(), borrowed; NULL: it was good. */
const json_t *reload_errors(const struct reload *r);
/* Gives up a reload under way, and forgets errors. */
void reload_stop(struct reload *r);

#endif
