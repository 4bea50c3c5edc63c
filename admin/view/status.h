/* `petrel status`: the state of the daemon on one page. */
#ifndef ADMIN_VIEW_STATUS_H
#define ADMIN_VIEW_STATUS_H

#include "admin/settings/options.h"
#include "base/sandbox/sandbox.h"
#include "queue/manager/manager.h"

#include <jansson.h>

/* The state of the daemon; the caller frees it:
 *   version, uptime_s, accepting, reason (why not; "" else), syncs
 *   spool     path, sync ("aio", or "blocking": all sessions wait for it), bytes_free,
 *             inodes_free (-1: unknown), bytes_reserve, inodes_reserve
 *   journal   segments (0: turned off), free_segments, messages, batches, full,
 *             damages (pieces that startup could not read)
 *   queue     incoming, active, deferred, hold, corrupt
 *   active_recipients  those of the messages in `active`, delivered ones too
 *   sessions  in, stress (nearly too many are in), out, idle
 *             (of out), busy (of out: carry mail)
 *   totals    stored, ended, quarantined, since startup
 *   limits    active_limit, active_recipient_limit, delivery_session_limit: the
 *             settings
 *   site_totals  sites, dead, destinations, waiting (recipients in memory), backlogged
 *             (messages on disk until their site is alive or has space for them)
 *   findings  what is wrong: code, severity (error, warning, hint), since_ms, subject,
 *             text, remedy (questions.c adds them)
 *   listeners, certificates  see admin/startup/parts.h (questions_on_part())
 *   quotas    as in quota_list.h: those used most (questions.c adds them)
 *   sites     as in site_view.h: the 20 with most mail, of those that have anything to
 *             tell; the command asks for all */
json_t *status_make(struct manager *manager, int64_t uptime_ms, size_t sessions_in,
                    bool is_stressed);

/* landlock (the ABI in force, 0: none), seccomp, missing (what the system lacks; "":
 * nothing), refused (system calls since the start). The daemon's is "sandbox". */
json_t *status_sandbox(const struct sandbox_state *state);

/* A few lines for people, and a table of the sites. */
void status_print(const json_t *status, int64_t now_ms);

/* `status [--sites | --site NAME] [--quotas | --cluster] [--json | --watch]`: a sysexits
 * code, EX_UNAVAILABLE when no daemon answers. --watch prints each second until a signal. */
int status_command(int count, char **arguments, const struct options *options);

#endif
