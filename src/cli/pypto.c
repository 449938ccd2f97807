/* The `pypto` command, for people: what is installed, what an error means, what is in the cache.
 *
 *     pypto doctor | explain CODE | cache [list|clear] | ir PROGRAM | c PROGRAM
 *
 * Memory is one arena. When it is exhausted the command says so and ends. */
#include "base/diag.h"
#include "cli/cli.h"

#include <pypto/pypto.h>

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

typedef struct command_line {
    int count;
    char **words;
    int status; /* that the command ends with */
} command_line;

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

static pypto_status run_all(arena *a, void *context)
{
    command_line *line = context;
    line->status = run(a, line->count, line->words);
    return STATUS_OK;
}

int main(int count, char **words)
{
    command_line line = {count - 1, words + 1, 0};
    pypto_status status = arena_run(run_all, &line);
    if (!status_ok(status)) {
        fputs("pypto: memory is exhausted\n", stderr);
        pypto_status_clear(&status);
        return 1;
    }
    if (fflush(stdout) != 0 && line.status == 0)
        return 1;
    return line.status;
}
