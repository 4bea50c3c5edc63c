/* Questions to the running daemon that need no waiting: one table, for the control
 * socket and for HTTP.
 *
 * A question is an object with the member `command`, an answer one with `ok`: but for
 * the status, which is as status.h has it. The questions are those of
 * control_server.h. */
#ifndef ADMIN_ANSWER_QUESTIONS_H
#define ADMIN_ANSWER_QUESTIONS_H

#include "queue/manager/manager.h"

#include <jansson.h>

struct questions;
struct sandbox;
struct tokens;

struct questions *questions_new(struct loop *loop, struct manager *manager);
void questions_free(struct questions **questions);

/* The caller frees the answer. NULL: it comes later, see control_server_answer(). */
json_t *questions_answer(struct questions *questions, const json_t *request);
/* The answer to a question of that name without further members. */
json_t *questions_ask(struct questions *questions, const char *command);
/* A message as listing.h has it, with its state, or held; is_why: with the answer to the
 * question of that name as `why`. The caller's. */
json_t *questions_listing(struct questions *questions, const struct envelope *envelope,
                          bool is_why);
/* {"ok": false, "error": why} */
json_t *questions_refuse(const char *why);

/* The sessions in, for the status; without it there are none. */
void questions_on_count(struct questions *questions,
                        size_t (*count)(void *context, bool *stressed), void *context);
/* A part of the status with that name, made anew for each answer; NULL: there is none
 * now. */
enum { QUESTIONS_PARTS = 16 };
void questions_on_part(struct questions *questions, const char *name,
                       json_t *(*make)(void *context), void *context);
/* A question with that name, of parts that this room does not know. answer: as
 * questions_answer(). */
enum { QUESTIONS_MORE = 32 };
void questions_on(struct questions *questions, const char *name,
                  json_t *(*answer)(void *context, const json_t *request),
                  void *context);
/* An array of findings, made anew for each answer: for the question of that name, and the
 * status. */
void questions_on_findings(struct questions *questions, json_t *(*make)(void *context),
                           void *context);
/* State of the sandbox for the status, which omits it otherwise. */
void questions_on_sandbox(struct questions *questions, const struct sandbox *sandbox);
/* The accounts of `oauth` for the status; NULL: there are none. They live longer. */
void questions_on_tokens(struct questions *questions, struct tokens *tokens);
/* tokens_look(), if there are accounts: a retry is requested. */
void questions_look_for_tokens(struct questions *questions);

/* The accounts of `oauth` and their tokens. The caller's: an array of objects
 *   host, port (0: any), user
 *   state     "ready", "asked" (the provider is being asked), "failed"
 *   until_ms  when a token that is ready ends
 *   reason    why the last request failed, and what to do; omitted without trouble
 * Empty if tokens is NULL. */
json_t *questions_accounts(const struct tokens *tokens);

/* The sets of fragments that wait: at most count, oldest first, but for the first `from` of
 * them; an empty array at the end. Between two calls sets come and go. A set:
 *
 *   set          its name in the log
 *   sender       null: not known now
 *   recipient    one of them
 *   recipients, messages, bytes
 *   have, missing  arrays of numbers: at most 100 each, those up to 1000
 *   have_count, total  numbers; total null: not known
 *   since_ms, until_ms
 *   owner        the host that reassembles it, in words
 *   reassembling
 *
 * The envelope of one message of each is read. */
json_t *questions_fragments(struct manager *manager, size_t from, size_t count);

#endif
