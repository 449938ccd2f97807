/* The `pypto` command, for people: what is installed, what an error means, what is in the cache.
 *
 *     pypto doctor | explain CODE | cache [list|clear] | ir PROGRAM | c PROGRAM
 *
 * Memory is one arena. When it is exhausted the command says so and ends. */
#include "cli/cli.h"

#include <pypto/pypto.h>

#include <setjmp.h>
#include <stdio.h>
#include <string.h>

static const char usage[] =
    "usage: pypto COMMAND\n"
    "\n"
    "  doctor            compiler, CPUs, memory, limits, cache and settings of this machine\n"
    "  explain CODE      what a diagnostic means, an example, and what to do\n"
    "  explain --list    all codes\n"
    "  cache             where compiled programs are, how many, how large\n"
    "  cache list        one line per program, newest first\n"
    "  cache clear       removes all of them\n"
    "  ir PROGRAM        the IR of a compiled program: a function's name, a hash or its start, a folder\n"
    "  c PROGRAM         its C text\n"
    "  --version\n";

static int run(arena *a, int count, char **words)
{
    const char *command = count == 0 ? "" : words[0];
    if (strcmp(command, "--version") == 0) {
        printf("pypto %s\n", pypto_version());
        return 0;
    }
    if (strcmp(command, "help") == 0 || strcmp(command, "--help") == 0 ||
        strcmp(command, "-h") == 0) {
        fputs(usage, stdout);
        return 0;
    }
    if (strcmp(command, "doctor") == 0)
        return cli_doctor(a, count - 1, words + 1);
    if (strcmp(command, "explain") == 0)
        return cli_explain(a, count - 1, words + 1);
    if (strcmp(command, "cache") == 0)
        return cli_cache(a, count - 1, words + 1);
    if (strcmp(command, "ir") == 0)
        return cli_show(a, count - 1, words + 1, "program.ir");
    if (strcmp(command, "c") == 0)
        return cli_show(a, count - 1, words + 1, "program.c");
    if (count > 0)
        fprintf(stderr, "pypto: there is no command '%s'\n", command);
    fputs(usage, stderr);
    return 2;
}

int main(int count, char **words)
{
    jmp_buf exhausted;
    arena *a = arena_create();
    if (a == NULL || setjmp(exhausted) != 0) {
        fputs("pypto: memory is exhausted\n", stderr);
        return 1;
    }
    arena_set_recovery(a, &exhausted);
    int status = run(a, count - 1, words + 1);
    arena_destroy(a);
    if (fflush(stdout) != 0 && status == 0)
        return 1;
    return status;
}
