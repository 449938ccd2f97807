/* The `pypto` command: what its files share. Each subcommand is one function that gets the words behind
 * its name, writes to stdout, and returns the exit status. */
#ifndef CLI_CLI_H
#define CLI_CLI_H

#include "base/arena.h"

/* doctor.c: what a bug report needs to know of a machine */
int cli_doctor(arena *a, int count, char **words);
/* explain.c: what a diagnostic means */
int cli_explain(arena *a, int count, char **words);
/* programs.c: the cache of compiled programs, and their IR and C text */
int cli_cache(arena *a, int count, char **words);
int cli_show(arena *a, int count, char **words, const char *file);

#endif
