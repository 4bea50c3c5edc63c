/* The path in MAIL and RCPT: as RFC 5321 has it, and as devices and programs write it.
 * Pure.
 *
 *                                            all clients   forgiving
 *   <a@b>  <@route:a@b>  <>  <postmaster>    taken         taken
 *   a@b  <a@b  a@b>  <a@b.>                  taken         taken
 *   <root>  root                             no domain     root@hostname
 *   < a@b >  <a @ b>  <<a@b>>                refused       a@b
 *   Name <a@b>  <Name <a@b>>  <a@b (note)>   refused       a@b */
#ifndef SMTP_SERVER_PATH_H
#define SMTP_SERVER_PATH_H

#include "mime/address.h"

struct path_rules {
    bool forgiving;       /* the client sends its own mail, or is an old device */
    struct text hostname; /* completes an address without a domain */
};

struct path {
    /* Slices of the argument, of kept, or of the rules; as address_judge_path() has it. */
    struct address address;
    char kept[ADDRESS_MAX + 2]; /* the mailbox, if it had to be put together */
};

/* Cuts the path off the front of *argument, which then begins with a blank or is empty.
 * NULL, or the rule that the path breaks, in words for the reply. */
const char *path_read(struct text *argument, const struct path_rules *rules,
                      struct path *out);

#endif
