/* Changes the user and drops privileges, in the only order that works.
 *
 * The bounding set comes first, since lowering it needs a capability. Groups come
 * before the user: afterwards they could not be changed. is_for_good() does not trust
 * the results of the calls: it tries to become root again. */
#include "base/sandbox/identity.h"

#include "base/text.h"

#include <errno.h>
#include <grp.h>
#include <linux/capability.h>
#include <pwd.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

enum { CAPABILITY_LIMIT = 64 };         /* two words of the system call */
#define NUMBER_MAX UINT64_C(4294967294) /* one more: (uid_t)-1, none */

/* "1000" or "1000:1000": a container image may have no /etc/passwd. */
static bool
find_by_number(struct identity *who, struct text number)
{
    struct text rest = number, field;
    uint64_t uid = 0, gid = 0;
    if (!text_cut(&rest, ':', &field) || !text_number(field, NUMBER_MAX, &uid) ||
        (rest.at != NULL && !text_number(rest, NUMBER_MAX, &gid)))
        return false;
    const struct passwd *entry = getpwuid((uid_t)uid);
    if (rest.at == NULL)
        gid = entry != NULL ? entry->pw_gid : uid;
    *who = (struct identity){.change = true, .uid = (uid_t)uid, .gid = (gid_t)gid};
    return true;
}

/* Root's own groups must not stay; a uid without a name has none. */
static bool
take_groups(const struct identity *who)
{
    return who->name != NULL ? initgroups(who->name, who->gid) == 0
                             : setgroups(0, NULL) == 0;
}

bool
identity_find(struct identity *who, const char *name)
{
    *who = (struct identity){.name = name};
    if (name == NULL || geteuid() != 0)
        return true;
    const struct passwd *entry = getpwnam(name);
    if (entry == NULL)
        return find_by_number(who, text_from(name));
    who->change = true;
    who->uid = entry->pw_uid;
    who->gid = entry->pw_gid;
    return true;
}

bool
identity_find_number(struct identity *who, uid_t uid)
{
    const struct passwd *entry = getpwuid(uid);
    *who = (struct identity){.uid = uid};
    if (entry == NULL)
        return false;
    who->gid = entry->pw_gid;
    who->name = entry->pw_name;
    return true;
}

void
identity_name(char out[IDENTITY_NAME_MAX])
{
    const struct passwd *entry = getpwuid(geteuid());
    if (entry != NULL)
        snprintf(out, IDENTITY_NAME_MAX, "%s", entry->pw_name);
    else
        snprintf(out, IDENTITY_NAME_MAX, "%u", (unsigned)geteuid());
}

/* Changes the effective ids only, so that identity_take_off() can return to root. */
bool
identity_try_on(const struct identity *who)
{
    return !who->change ||
           (take_groups(who) && setegid(who->gid) == 0 && seteuid(who->uid) == 0);
}

bool
identity_take_off(const struct identity *who)
{
    return !who->change || (seteuid(0) == 0 && setegid(0) == 0);
}

/* The bounding set: capabilities that no executed program can regain. Needs a
 * capability itself, so it comes before the others are dropped; without it
 * no_new_privs has the same effect. */
static void
lower_bounds(uint64_t kept)
{
    for (unsigned i = 0; i < CAPABILITY_LIMIT; i++)
        if ((kept >> i & 1) == 0 && prctl(PR_CAPBSET_READ, i, 0, 0, 0) == 1)
            (void)!prctl(PR_CAPBSET_DROP, i, 0, 0, 0);
    (void)!prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0);
}

static bool
keep_capabilities(uint64_t kept)
{
    struct __user_cap_header_struct header = {.version = _LINUX_CAPABILITY_VERSION_3};
    struct __user_cap_data_struct data[2] = {{0}};
    if (syscall(SYS_capget, &header, data) != 0)
        return false;
    for (unsigned word = 0; word < 2; word++) {
        uint32_t both = data[word].permitted & (uint32_t)(kept >> (32 * word));
        data[word] =
            (struct __user_cap_data_struct){.effective = both, .permitted = both};
    }
    return syscall(SYS_capset, &header, data) == 0;
}

static bool
is_for_good(const struct identity *who)
{
    uid_t real, effective, saved;
    gid_t real_group, effective_group, saved_group;
    if (getresuid(&real, &effective, &saved) != 0 ||
        getresgid(&real_group, &effective_group, &saved_group) != 0)
        return false;
    /* For the message of the caller: a comparison sets none. */
    errno = EPERM;
    return real == who->uid && effective == who->uid && saved == who->uid &&
           real_group == who->gid && effective_group == who->gid &&
           saved_group == who->gid &&
           (who->uid == 0 || (setuid(0) != 0 && seteuid(0) != 0)) &&
           (who->uid == 0 || who->gid == 0 || (setgid(0) != 0 && setegid(0) != 0));
}

bool
identity_keep(const struct identity *who)
{
    if (!who->change)
        return true;
    if (who->uid != 0)
        lower_bounds(0);
    return take_groups(who) && setresgid(who->gid, who->gid, who->gid) == 0 &&
           setresuid(who->uid, who->uid, who->uid) == 0 &&
           (who->uid == 0 || keep_capabilities(0)) && is_for_good(who);
}

bool
identity_shed(void)
{
    uint64_t kept = geteuid() == 0 ? UINT64_C(1) << CAP_DAC_OVERRIDE |
                                         UINT64_C(1) << CAP_DAC_READ_SEARCH
                                   : 0;
    lower_bounds(kept);
    return keep_capabilities(kept);
}
