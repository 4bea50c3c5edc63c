/* The bank in Lua, for Redis or Valkey: the twin of bank.c.
 *
 * KEYS: sites. ARGV: the period in us, the time in ms after which a site is forgotten,
 * the number of hosts, now in us (0: the server's time); then for each key the members of
 * struct bank_question from interval_us to chance, in that order, true as 1. The answer
 * has the five numbers of struct bank_grant for each key. */
#ifndef SCHED_LIMITS_BANK_SCRIPT_H
#define SCHED_LIMITS_BANK_SCRIPT_H

extern const char bank_script[];

#endif
