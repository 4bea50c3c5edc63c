/* The two files of `petrel init`: which may be replaced, and how they are written. */
#ifndef ADMIN_SETUP_INIT_FILES_H
#define ADMIN_SETUP_INIT_FILES_H

#include "base/disk/disk.h"

#define INIT_MARK "# petrel: as installed" /* the first line of the package's file */

enum { INIT_PATH_MAX = 1024, INIT_NAME_MAX = 201, INIT_FILES_WHY_MAX = 2400 };

struct init_files {
    struct disk *disk;
    char directory[INIT_PATH_MAX], name[INIT_NAME_MAX];
    char password[2 * INIT_PATH_MAX]; /* the path of its file, absolute */
    bool force;
    bool has_settings, has_password; /* there are such files now */
    bool is_installed; /* the settings are the package's: they may be replaced */
};

/* path of the settings; the password is beside them. Makes the directory, and tries
 * whether files can be made in it. 0, or a sysexits code with a sentence in why. */
int init_files_open(struct init_files *f, const char *path, bool force,
                    char why[INIT_FILES_WHY_MAX]);
/* Only the names, for --print. */
int init_files_name(struct init_files *f, const char *path,
                    char why[INIT_FILES_WHY_MAX]);
/* Each file has its old or its new content at any time, durably in the end; one that is
 * replaced is kept with `.old` behind its name. password empty: there is none. user:
 * NULL or the owner of the password. As init_files_open(). */
int init_files_write(struct init_files *f, struct text settings, struct text password,
                     const char *user, char why[INIT_FILES_WHY_MAX]);
void init_files_close(struct init_files *f);

#endif
