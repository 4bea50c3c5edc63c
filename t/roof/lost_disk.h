/* The first host's disk is lost: it is killed, its spool is emptied, and it starts again with
 * another identity; or the spool is that of some time ago, as after a backup. Only while the
 * engine of copies has all that was acknowledged (engine_has_all()). */
#ifndef T_ROOF_LOST_DISK_H
#define T_ROOF_LOST_DISK_H

void lost_disk_act(void);
/* The spool of a host that does not run: directories stay. */
struct host;
void lost_disk_empty(struct host *h);

#endif
