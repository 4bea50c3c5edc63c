/* The files of the history in all slices, oldest first, and their lines. */
#ifndef ADMIN_HISTORY_TRACE_FILES_H
#define ADMIN_HISTORY_TRACE_FILES_H

#include "base/disk/disk.h"

enum {
    TRACE_PATH_MAX = 64,
    TRACE_FILES_MAX = 20000,      /* of all slices */
    TRACE_PIECE_BYTES = 64 * 1024 /* that are read with one call */
};

struct trace_file {
    char path[TRACE_PATH_MAX];
    uint64_t first_ms;
    uint64_t until_ms; /* the next file of its ring begins then */
    bool is_mail;
    int64_t offset; /* up to which it was read, behind a line's end */
    int64_t end;    /* nothing behind it is read */
};

/* Zeroed before the first use. */
struct trace_files {
    struct disk *spool;
    struct trace_file *list;
    size_t count;
    size_t directories; /* of slices; 0: one daemon */
};

/* Finds them anew; a file that was known keeps its offset. 0 or -errno. */
int trace_files_find(struct trace_files *files);
void trace_files_free(struct trace_files *files);

/* Reads whole lines from the file's offset on, a piece at most. Bytes read, 0: there are
 * no more now. */
size_t trace_file_read(struct disk *spool, struct trace_file *file,
                       void (*each)(void *context, struct text line), void *context);

#endif
