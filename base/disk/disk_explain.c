/* Explains errors of the door to the author of a setting that names a file. */
#include "base/disk/disk.h"

#include <errno.h>
#include <string.h>

const char *
disk_explain(int error)
{
    switch (error) {
    case -EINVAL: /* disk_read_regular() */
    case -ENXIO:  /* the open of a socket */
        return "it is not a regular file";
    default:
        return strerror(-error);
    }
}
