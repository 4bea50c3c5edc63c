/* The scripts that Redis runs for copies.
 *
 * Each begins with COPIES_FENCE: KEYS[1] is the hash of owners, KEYS[2] the hash of copies,
 * ARGV[1] the name of the host that asks, ARGV[2] HOST:IDENTITY of KEYS[2]. Another owner, or
 * none any more, since all was adopted: the error "FENCED OWNER", and nothing is done. */
#ifndef QUEUE_COPIES_COPIES_SCRIPTS_H
#define QUEUE_COPIES_COPIES_SCRIPTS_H

#define COPIES_FENCED "FENCED " /* an error reply that has this word */
#define COPIES_FENCE                                                                   \
    "local owner = redis.call('HGET', KEYS[1], ARGV[2])\n"                             \
    "if not owner and redis.call('EXISTS', KEYS[2] .. ':adopted') == 1 then\n"         \
    "  owner = 'somebody'\n"                                                           \
    "end\n"                                                                            \
    "if owner and owner ~= ARGV[1] then\n"                                             \
    "  return redis.error_reply('" COPIES_FENCED "' .. owner)\n"                       \
    "end\n"

/* A batch. ARGV[3]: its number; then operations:
 *   M ID FORM      replaces the envelope, if there is one, but the number of the batch that
 *                  stored it stays; else the answer names ID
 *   C ID CONTENT   the whole content
 *   L ID AT CHUNK  the chunk with that number of the content, from 0 on; S puts them in its place
 *   P ID AT PART   a part of an envelope, from 0 on; S or M without FORM takes them
 *   S ID FORM      the envelope: from now on it is a copy
 *   E ID           ends it
 * The owner is written if there is none. A number that is not above that of the last batch: the
 * error "STALE", and nothing is done: it comes late, from a connection that has ended. The
 * answer is the number of the batch before ("":
 * none), of this one (other than ARGV[3]: there was no memory for it), and IDs that were
 * missing, with spaces between them. Each operation may be repeated. */
extern const char copies_script_store[];
#define COPIES_STALE "STALE" /* an error reply that has this word */
/* The end of a run, behind its last batch: without any copy there is no owner. The number stays,
 * for a later one must be larger. */
extern const char copies_script_farewell[];

#endif
