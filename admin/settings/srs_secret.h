/* The secrets of SRS, of tagged senders and of hashed addresses: of the setting, or made
 * once in the spool, for all slices. */
#ifndef ADMIN_SETTINGS_SRS_SECRET_H
#define ADMIN_SETTINGS_SRS_SECRET_H

#include "admin/settings/options.h"
#include "mime/verp.h"

enum { SRS_SECRET_RANDOM = 5 }; /* numbers for a new secret and the name of its file */

/* NULL: `srs` is off, or nothing was forwarded ever and nothing is now (wanted false).
 * *error: 0, or why the file of the secret can be neither read nor made, as srs_secret_why()
 * has it: then it is blind, senders stay, and addresses of SRS wait. */
struct srs *srs_secret_use(const struct options *options,
                           const struct route_table *routes, struct disk *spool,
                           const uint64_t random[SRS_SECRET_RANDOM], bool wanted,
                           int *error);
/* Tagged senders, by the same secrets. NULL: there is no address `bounces`. *error as
 * above. */
struct verp *srs_secret_tags(const struct options *options, struct disk *spool,
                             const uint64_t random[SRS_SECRET_RANDOM], int *error);
/* The key of log_addresses = hash, by the first of these secrets. 0, or an error as
 * above. */
int srs_secret_mask(const struct options *options, struct disk *spool,
                    const uint64_t random[SRS_SECRET_RANDOM],
                    unsigned char key[DIGEST_SIZE]) __attribute__((warn_unused_result));
enum { SRS_SECRET_WHY_MAX = 120 };
void srs_secret_why(int error, char out[SRS_SECRET_WHY_MAX]);
/* The errors of the settings; routes: NULL if they have errors. */
void srs_secret_check(const struct options *options, const struct route_table *routes,
                      struct buffer *errors);

#endif
