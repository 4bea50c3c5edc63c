/* Inside of the disk's stand-in: the world that disk_world.c keeps and disk.c opens. */
#ifndef T_SIM_DISK_WORLD_H
#define T_SIM_DISK_WORLD_H

#include "t/sim/sim_disk.h"

#include <uthash.h>

enum { PATH_LIMIT = 2048, FIRST_HANDLE = 50000, HANDLES_MAX = 4096 };

/* A file's bytes; pages are what a sync takes along or loses. */
struct bytes {
    char *at;
    size_t size, capacity;
};

struct inode {
    enum disk_kind kind;
    unsigned mode, owner;
    int64_t changed_ms;
    struct bytes seen, kept;
    char *dirty; /* one flag a page of seen */
    size_t dirty_pages;
    bool named; /* a name of it is or was durable */
    bool locked, marked;
    size_t pulled; /* FIFO */
    struct inode *next;
};

/* A name; NULL = the name is not there in this version. */
struct entry {
    char *path;
    struct inode *seen, *kept;
    UT_hash_handle hh;
};

struct handle {
    struct inode *inode;
    bool open, holds_lock;
};

struct world {
    struct entry *entries;
    struct inode *inodes;
    struct handle handles[HANDLES_MAX];
    uint64_t calls, fail_at, die_at;
    int fail_with;
    bool dead, failed;
    int64_t now_ms;
    unsigned user;
    struct disk_space space;
    bool made;
};
/* One for the program: base/disk.h has no room for another. */
extern struct world sim_disk_world;

/* 0, or what this call fails with. */
int world_gate(void);
void world_make(void);

struct inode *world_inode(const char *path); /* as seen; NULL: none */
struct entry *world_entry(const char *path); /* made when missing */
struct inode *world_inode_new(enum disk_kind kind, unsigned mode);
unsigned world_links(const struct inode *inode);

void world_write(struct inode *inode, size_t offset, struct text t);
/* A sync: dirty pages reach the disk, or count as clean and are lost. */
void world_keep(struct inode *inode);
void world_lose(struct inode *inode);

#endif
