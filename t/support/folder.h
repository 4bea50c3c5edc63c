/* Directories of tests for which the disk does not matter: in memory if there is space,
 * so that no sync waits for other users of the disk. */
#ifndef T_SUPPORT_FOLDER_H
#define T_SUPPORT_FOLDER_H

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/statvfs.h>
#include <unistd.h>

enum { FOLDER_ROOM_MB = 512 };

void folder_make(char *out, size_t size, const char *name);

void folder_remove(const char *folder);

/* The open descriptors of this process, and one. */
int folder_descriptors(void);

/* The path of a file in it, until the next call. */
const char *folder_path(const char *folder, const char *name);

#endif
