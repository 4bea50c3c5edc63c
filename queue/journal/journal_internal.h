/* What the files of the journal share; nobody else includes it. */
#ifndef QUEUE_JOURNAL_INTERNAL_H
#define QUEUE_JOURNAL_INTERNAL_H

#include "queue/journal/segment.h"

enum { SEGMENT_PATH_MAX = 128 };
void journal_path(const char *directory, uint32_t number, char out[SEGMENT_PATH_MAX]);

/* A segment file as it was found. */
struct found_segment {
    uint32_t number;
    size_t size;
    uint64_t sequence, cookie; /* 0: nothing of ours is in it */
    uint64_t oldest;           /* as its last block tells; 0: not */
    bool strange;              /* no header, and not the zeros of a new one either */
};
struct journal_scan {
    struct found_segment *segments; /* by sequence */
    unsigned count;
    /* Of the last batch that counts: acknowledged, or whole; 0: there is none. */
    uint64_t number, sequence;
    size_t end;       /* behind it */
    uint64_t oldest;  /* the first sequence that is needed */
    uint64_t highest; /* number of any batch, whole or not */
};

/* Reads all; the caller frees scan->segments. */
int journal_scan(struct disk *disk, const char *directory,
                 const struct journal_reading *reading, struct journal_summary *summary,
                 struct journal_scan *scan);

#endif
