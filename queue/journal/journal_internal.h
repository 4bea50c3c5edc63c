/* Shared by the files of the journal; no other file includes it. */
#ifndef QUEUE_JOURNAL_JOURNAL_INTERNAL_H
#define QUEUE_JOURNAL_JOURNAL_INTERNAL_H

#include "queue/journal/segment.h"

enum { SEGMENT_PATH_MAX = 128 };
void journal_path(const char *directory, uint32_t number, char out[SEGMENT_PATH_MAX]);

/* A segment file as it was found. */
struct found_segment {
    uint32_t number;
    size_t size;
    uint64_t sequence, cookie; /* 0: the file has no batch */
    uint64_t oldest;           /* by its last block; 0: unknown */
    bool strange;              /* neither a header nor the zeros of a new file */
};
struct journal_scan {
    struct found_segment *segments; /* by sequence */
    unsigned count;
    /* The last batch that counts: acknowledged, or complete; 0: none. */
    uint64_t number, sequence;
    size_t end;       /* behind it */
    uint64_t oldest;  /* the first sequence that is needed */
    uint64_t highest; /* number of any batch, also a torn one */
};

/* Reads all segments; the caller frees scan->segments. */
int journal_scan(struct disk *disk, const char *directory,
                 const struct journal_reading *reading, struct journal_summary *summary,
                 struct journal_scan *scan);

/* Whether no record waits and no batch is in flight; for tests. */
bool journal_is_quiet(const struct journal *journal);

#endif
