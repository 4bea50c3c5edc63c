/* The known members of the group: our own name is always among them. Pure.
 *
 * A member that the bank has not seen for 3 s is late: it may have been cut off.
 * A member was seen in the last 10 s, a lost one before that and has not said goodbye: it
 * may still use its part of the limits, so its part is kept for 10 minutes. A host's rank
 * among all of them says which part is its own without a bank. */
#ifndef QUEUE_GROUP_GROUP_MEMBERS_H
#define QUEUE_GROUP_GROUP_MEMBERS_H

#include "queue/group/group_settings.h"
#include "queue/group/siblings.h"

enum {
    GROUP_LATE_MS = 3 * 1000,  /* without a sign of it */
    GROUP_LOST_MS = 10 * 1000, /* likewise */
    GROUP_FORGET_MS = 10 * 60 * 1000,
    GROUP_FORGOTTEN_MAX = 16 /* unknown to the bank; beyond it the oldest is lost */
};

struct group_member {
    char name[GROUP_HOST_MAX + 1];
    int64_t seen_ms;       /* monotonic; of others */
    bool is_lost, is_late; /* late: not lost yet */
    bool is_listed;        /* in the list that is read */
};

struct group_members {
    struct group_member all[GROUP_HOSTS_MAX]; /* by name */
    size_t count;
    const char *own;   /* borrowed */
    int64_t heard_ms;  /* when the bank answered last */
    int64_t silent_ms; /* for which it did not, since the last list */
    size_t old;        /* hosts in that list, not seen for GROUP_LATE_MS */
    /* An operator has forgotten them, and the bank has not heard of it yet; oldest first. */
    char forgotten[GROUP_FORGOTTEN_MAX][GROUP_HOST_MAX + 1];
    size_t forgotten_count;
};

enum group_change { GROUP_CAME, GROUP_LOST, GROUP_BACK, GROUP_LEFT, GROUP_FORGOTTEN };
typedef void group_changed(void *context, const char *name, enum group_change change);

/* Our host alone. */
void group_members_init(struct group_members *m, const char *own, int64_t now_ms);
/* Adds a host that is not there, as if seen now, unless there are too many. */
void group_members_add(struct group_members *m, struct text name, int64_t now_ms);
/* Takes a host away; no list brings it back until the bank knows. False: it is not there,
 * or it is ours. */
bool group_members_forget(struct group_members *m, struct text name);
/* The bank knows of that which was forgotten first. */
void group_members_forgotten(struct group_members *m);
/* The bank answers. Longer silence does not count as the age of anybody: when the bank was
 * away, the others could not say that they are there. */
void group_members_hear(struct group_members *m, int64_t now_ms);
/* "NAME AGE NAME AGE ...": all that the bank has seen, at most GROUP_HOSTS_MAX, with the
 * time since then in ms; one that has left has the age "gone". One that is not in it is as
 * old as it was: a bank that was emptied makes nobody go. False, and nothing changes: it is
 * no such list. */
bool group_members_read(struct group_members *m, struct text list, int64_t now_ms,
                        group_changed *changed, void *context);
size_t group_members_lost(const struct group_members *m);
size_t group_members_late(const struct group_members *m);
size_t group_members_rank(const struct group_members *m);

/* The file lock/group: the group's name, then a name a line, then those that were
 * forgotten, each behind the word "forgotten". */
void group_members_write(const struct group_members *m, const char *group,
                         struct buffer *out);
/* Adds those of the file, if it is that of this group; all may be there. */
void group_members_recall(struct group_members *m, const char *group, struct text file,
                          int64_t now_ms);

/* The descriptions of the other hosts of a group in Redis, pi:GROUP. Pure. */
enum { GROUP_INFO_MAX = 1024 /* bytes of the description of a host */ };

/* The description of this host. */
struct group_self {
    char address[GROUP_ADDRESS_MAX + 1]; /* HOST:PORT; "": nobody can call us */
    char spool[SIBLING_SPOOL_MAX + 1];
    char state[SIBLING_STATE_MAX + 1];
    char version[SIBLING_VERSION_MAX + 1];
    size_t waiting;         /* messages */
    int64_t suppress_limit; /* 0: it suppresses nothing, or does not say it */
};

struct group_sibling {
    char host[GROUP_HOST_MAX + 1];
    struct group_self self;
};

struct group_siblings { /* zeroed: nobody */
    struct group_sibling *all;
    size_t count;
};

/* JSON, with the number of the run, which tells namesakes apart. */
void group_siblings_write(const struct group_self *self, const char *run,
                          char out[GROUP_INFO_MAX]);
/* "HOST JSON" a line, at most GROUP_HOSTS_MAX: replaces all. Members of a line that are
 * not understood are empty: Redis is another machine. */
void group_siblings_read(struct group_siblings *s, struct text lines);
/* NULL: it says nothing. */
const struct group_self *group_siblings_find(const struct group_siblings *s,
                                             const char *host);
void group_siblings_free(struct group_siblings *s);

#endif
