/* Inside of the disk's stand-in: the world that disk_world.c keeps, disk.c opens,
 * disk_copy.c copies and disk_cut.c cuts. */
#ifndef T_SIM_DISK_WORLD_H
#define T_SIM_DISK_WORLD_H

#include "t/sim/disk_bytes.h"
#include "t/sim/sim_disk.h"

#include <uthash.h>

enum { PATH_LIMIT = 2048, FIRST_HANDLE = 50000, SECTOR = 512, PROCESSES_MAX = 16 };

/* The bytes written into a page since it was synced; to == 0: none. */
struct dirt {
    uint16_t from, to;
    bool scattered; /* with gaps */
};

struct inode {
    enum disk_kind kind;
    unsigned mode, owner, links;
    int64_t changed_ms;
    struct bytes seen, kept;
    struct dirt *dirt; /* of the pages of seen */
    size_t dirt_count, dirty;
    bool named; /* a name of it is or was durable */
    bool mapped, marked;
    size_t worn;   /* this page, counted from 1, cannot be read; 0 = none */
    size_t pulled; /* FIFO */
    char *flat;    /* for sim_disk_content() */
    struct inode *copy;
    struct entry *name; /* the last that it got, if it is still there */
    struct inode *prev, *next;
};

/* A name; NULL = the name is not there in this version. world_file() after a change. */
struct entry {
    struct inode *seen, *kept;
    uint64_t group; /* names that change together: a rename's two */
    uint64_t hash;
    uint64_t number; /* in the order in which they were made */
    size_t parent_length;
    struct directory *in;
    bool is_listed, is_pending;
    struct entry *list_prev, *list_next, *pending_prev, *pending_next;
    UT_hash_handle hh;
    char path[];
};

/* The names of a directory that are in any version, the oldest first. */
struct directory {
    struct entry *list;
    UT_hash_handle hh;
    char path[];
};

struct handle {
    struct inode *inode;
    char *path; /* of a directory */
    bool open;
    unsigned process;
    unsigned lock_first, lock_count;
};

struct world {
    struct entry *entries;
    struct directory *directories;
    struct entry *pending; /* names that differ in the two versions */
    struct inode *inodes;
    struct handle *handles;
    size_t handle_count;
    uint64_t calls, fail_at, die_at;
    uint64_t boot;             /* each process has its own */
    uint64_t groups;           /* given out */
    uint64_t names;            /* made */
    uint64_t changes, settled; /* what may be one; as it was at sim_disk_settle() */
    int fail_with, failing, syncs_fail_with;
    unsigned syncs_failing;
    bool dead, failed;
    int64_t now_ms;
    unsigned user;
    unsigned process; /* whose calls come now */
    struct disk_space space;
    struct disk_traits nature;
    bool sync_blocks, cold;
    int64_t sync_ms, sync_spread_ms;
    uint64_t sync_chance;
    struct last_write {
        struct inode *inode; /* NULL: synced since */
        size_t from, to;
    } last;
    void (*changed)(void *context);
    void *context;
};

/* The current one: base/disk/disk.h has no space for another. Made when first asked for. */
struct world *world(void);
/* Another one instead; returns the one before. */
struct world *world_exchange(struct world *other);
struct world *world_new(void);
void world_free(struct world **w);
uint64_t world_next_boot(void);
/* Ends handles, locks and faults, and collects what has no name. */
void world_begin_again(struct world *w);

/* 0, or what this call fails with. */
int world_gate(void);
/* After a call that changed something. */
void world_changed(void);

struct inode *world_inode(const char *path); /* as seen; NULL: none */
struct entry *world_entry(const char *path); /* made when missing */
/* Each group once for each change, or for changes that come together. */
uint64_t world_group(void);
void world_see(struct entry *e, struct inode *inode, uint64_t group);
/* After a change of e->kept or e->seen by hand. */
void world_file(struct world *w, struct entry *e);
/* Its names. */
struct entry *world_list(const char *directory);
struct inode *world_inode_new(enum disk_kind kind, unsigned mode);
struct inode *world_inode_copy(struct world *into, const struct inode *inode);
bool world_has_names_in(const char *directory);
/* 0 when something can be made there. */
int world_check_parent(const char *path);
bool world_is_in(const struct entry *e, const char *directory, size_t length);

void world_write(struct inode *inode, size_t offset, struct text t);
void world_clean(struct inode *inode, size_t page);

/* A sync: what was dirty when it began reaches the disk, or counts as clean and is
 * lost. */
struct capture;
struct capture *world_capture(struct inode *inode, const char *directory, bool names);
void world_keep(struct capture **capture);
void world_lose(struct capture **capture);
void world_capture_free(struct capture **capture);

/* Memory that a process shares with a file. */
void *world_map(struct inode *inode, size_t size);
void world_unmap(void *map);
/* Copies the bytes stored there since into the file. */
void world_pull(struct inode *inode);
void world_pull_all(struct world *w);

#endif
