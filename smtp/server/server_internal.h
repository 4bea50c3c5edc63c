/* Declarations that server*.c and transaction.c share. No other file includes this. */
#ifndef SMTP_SERVER_SERVER_INTERNAL_H
#define SMTP_SERVER_SERVER_INTERNAL_H

#include "base/event/event.h"
#include "smtp/server/server.h"
#include "smtp/server/transaction.h"

/* --- server.c --------------------------------------------------------------- */

/* The only function that sets the stage. */
void server_enter(struct server *s, enum server_stage stage);

/* The only end of a transaction; does nothing without one. An open draft requests
 * DISCARD. */
void server_end_transaction(struct server *s);

/* Writes and logs a refusal. Counts it as an error of an untrusted client, for others
 * only if the command is wrong; this may end the session. Always SERVER_GO_ON. */
enum server_action server_refuse(struct server *s, const struct refusal *r);
void server_refuse_with(struct server *s, int code, const char *enhanced,
                        const char *text);

/* Refuses a recipient beyond the limit. The client sends to it later (RFC 5321
 * §4.5.3.1.10), so the first SERVER_EXCESS_RECIPIENTS since its last message are not
 * errors. */
enum server_action server_refuse_excess(struct server *s, const struct refusal *r);
/* A login failed. False: the error limit is reached, and the session is closed. */
bool server_login_is_error(struct server *s);

/* server_refuse() with a formatted text. */
void server_refuse_format(struct server *s, int code, const char *enhanced,
                          const char *format, ...)
    __attribute__((format(printf, 4, 5)));

/* Counts a junk command, which does not advance a transaction. False: the limit is
 * reached, and the session is closed. */
bool server_idles(struct server *s);

/* Refuses the content with server_answers() replies; ends the transaction. */
void server_refuse_content(struct server *s, int code, const char *enhanced,
                           const char *text);

/* Writes the last reply; ends transaction and session. */
void server_close_with(struct server *s, const struct refusal *r);

/* A command begins: the verb as sent, in any case. */
void server_count_verb(struct server *s, struct text verb);
/* A login failed. Reported before its delayed reply: the client may not wait for that. */
void server_tell_denied(struct server *s, const struct refusal *r);
/* While events are kept: the envelope of the transaction gets Message-ID and tag. */
void server_note_names(const struct server *s, struct envelope *e);

/* --- server_auth.c ------------------------------------------------------------ */

bool server_offers_auth(const struct server *s);
/* "PLAIN LOGIN ..." */
const char *server_mechanisms(const struct server *s);
/* The command AUTH. */
enum server_action server_auth(struct server *s, struct text args);
/* True: the input is AUTH or one of its lines, which may be longer than others. */
bool server_is_login(const struct server *s, struct text input);
/* The part of a command that may be logged: of AUTH only the mechanism. */
struct text server_shown(struct text line);
/* A line of the client within AUTH. */
enum server_action server_login_line(struct server *s, struct text line);
/* The only end of AUTH; does nothing without one. */
void server_end_login(struct server *s);
/* The user name, proven or only sent; "" without one. mechanism may be NONE. */
const char *server_user(const struct server *s, enum sasl_mechanism *mechanism);

/* --- server_command.c --------------------------------------------------------- */

/* One line from the client, without its CRLF. */
enum server_action server_command(struct server *s, struct text line);

/* Refuses a chunk: its bytes are skipped, not read as commands, and its transaction ends,
 * because the message would be incomplete. */
void server_refuse_chunk(struct server *s, uint64_t size, int code,
                         const char *enhanced, const char *text);

#endif
