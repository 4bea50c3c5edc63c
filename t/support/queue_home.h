/* A spool on the real disk: where it is, what is in it, and time that passes, after
 * clock_stop(). */
#ifndef T_SUPPORT_QUEUE_HOME_H
#define T_SUPPORT_QUEUE_HOME_H

#include "t/sim/clock.h"
#include "t/support/queue_kit.h"

#include <dirent.h>
#include <ftw.h>
#include <sys/stat.h>
#include <unistd.h>

int queue_home_remove_one(const char *path, const struct stat *status, int kind, struct FTW *queue_home_where);

void queue_home_make_home(char home[64]);

void remove_home(const char *home);

void queue_home_path_of(const char *home, const char *dir, struct id id, char out[200]);

bool is_there(const char *home, const char *dir, struct id id);

/* Which of the directories have a file of id, as letters. */
const char * queue_home_where(const char *home, struct id id);

unsigned count_files(const char *home, const char *dir);

unsigned count_all(const char *home);

void wait_ms(struct kit *k, int64_t ms);

#endif
