/* The scripts by which a host owns copies, finds lost ones, and takes them.
 *
 * KEYS[1] is the hash of owners: HOST:IDENTITY of a spool, and who owns its copies, "HOST RUN":
 * RUN is a number of that run of the daemon, so a clone of a spool is another owner. ARGV[1] is
 * who asks, ARGV[2] HOST:IDENTITY of the copies. But for the first two scripts another owner,
 * or none, is the error "FENCED OWNER", and nothing is done. */
#ifndef QUEUE_COPIES_ADOPTION_SCRIPTS_H
#define QUEUE_COPIES_ADOPTION_SCRIPTS_H

#include <stdbool.h>

struct adoption_script {
    const char *text;
    /* Behind the owners: beats, copies, adopted, and l, the list of chunks of a message. */
    const char *keys;
    bool must_last; /* the answer waits for the disks */
};

/* KEYS: owners, beats. ARGV[3]: a number that is another one at each call, or "": a goodbye. The
 * answer is a line for each owner: HOST:IDENTITY HOST RUN NUMBER, where NUMBER is the owner's
 * last one, or "-". */
extern const struct adoption_script adoption_script_beat;
/* KEYS: owners, copies, beats, adopted. ARGV[3], ARGV[4]: owner ("": none) and number, as a beat
 * has shown them. Unless they are the same still: FENCED. Else ARGV[1] is the owner. The answer
 * is the number of the last batch ("-": none), and how many of these copies another host had
 * adopted, plus one if these were all. */
extern const struct adoption_script adoption_script_claim;
/* KEYS: owners, a hash. ARGV: who, name, cursor, count. The answer is the next cursor, 0 at the
 * end, and for each message its id and the first word of its field: the batch of a copy, or of
 * adopted ones HOST/ID, where it is now. */
extern const struct adoption_script adoption_script_page, adoption_script_page_adopted;
/* KEYS: owners, copies, chunks. ARGV: who, name, id, "form" or "content", offset, size. The
 * answer is that part of it, shorter at its end. */
extern const struct adoption_script adoption_script_piece;
/* KEYS: owners, copies, adopted, chunks. ARGV: who, name, id, HOST/ID, number. The message is
 * there, durably, so its copy goes. number: of the batch of that copy, or "" if that was asked
 * before. The answer: "ours"; or nothing is done: "theirs", another owner has it, will, or had
 * it; "nobody's". */
extern const struct adoption_script adoption_script_taken;
/* KEYS: owners, copies, adopted, beats. ARGV: who, name, seconds, heir. All copies are taken, or
 * the answer is "more": nobody owns them, and for these seconds it is known where they are now;
 * also that there were none, which is no loss of the server. Those that are left are the heir's,
 * who says nothing: others may claim them. "": ours still. */
extern const struct adoption_script adoption_script_done;
/* KEYS: owners, adopted. ARGV: who, name, seconds. What others have adopted has ended at its host:
 * for these seconds only those that have it may ask. */
extern const struct adoption_script adoption_script_forget;

#endif
