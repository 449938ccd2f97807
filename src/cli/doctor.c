/* `pypto doctor`: what a bug report needs to know of a machine, and what often is the cause: no compiler,
 * little memory, tight limits, a cache that cannot be used. Exit status 1 when programs cannot be compiled.
 */
#include "cli/cli.h"

#include "base/diag.h"
#include "base/os.h"
#include "base/settings.h"
#include "codegen/cache.h"
#include "codegen/toolchain.h"

#include <pypto/pypto.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static bool print_compiler(arena *a)
{
    toolchain tools;
    pypto_status status = toolchain_find(a, &tools);
    bool found = status_ok(status);
    if (found) {
        printf("compiler       %s\n               flags:", tools.compiler);
        for (int i = 1; tools.command[i] != NULL; i++)
            printf(" %s", tools.command[i]);
        printf("\n");
    } else {
        char *text = pypto_status_text(&status);
        printf("compiler       NOT FOUND: %s\n", text == NULL ? "?" : text);
        free(text);
    }
    pypto_status_clear(&status);
    return found;
}

static void print_memory(void)
{
    int64_t total = os_number_in("/proc/meminfo", "MemTotal:");
    int64_t available = os_number_in("/proc/meminfo", "MemAvailable:");
    printf("memory         %.1f GB, %.1f GB available\n", (double)total * 1024 / 1e9,
           (double)available * 1024 / 1e9);
    const int64_t left = os_memory_left(INT64_MAX);
    if (left < available * 1024)
        printf("               %.1f GB of that as far as control groups allow\n",
               (double)left / 1e9);
}

static void print_limits(void)
{
    static const char *const limits[] = {"files", "processes", "address space", "file size"};
    for (size_t i = 0; i < sizeof limits / sizeof *limits; i++) {
        int64_t limit = os_limit(limits[i]);
        printf("%-14s %s: ", i == 0 ? "limits" : "", limits[i]);
        if (limit < 0)
            printf("none\n");
        else
            printf("%lld\n", (long long)limit);
    }
}

static void print_settings(void)
{
    printf("settings\n");
    for (int i = 0; i < SETTING_COUNT; i++) {
        setting s = (setting)i;
        const char *set = getenv(setting_name(s));
        const char *text = setting_text(s);
        printf("  %-18s %s%s\n  %-18s   %s\n", setting_name(s), text[0] == '\0' ? "-" : text,
               set == NULL || set[0] == '\0' ? "" : "   (set)", "", setting_help(s));
        pypto_status status = setting_check(s);
        for (const pypto_diagnostic *d = status.diagnostics; d != NULL; d = d->next)
            printf("  %-18s   BAD: %s\n", "", d->message);
        pypto_status_clear(&status);
    }
}

int cli_doctor(arena *a, int count, char **words)
{
    (void)words;
    if (count != 0) {
        fputs("usage: pypto doctor\n", stderr);
        return 2;
    }
    printf("pypto          %s, library in %s\n", pypto_version(), os_library_dir(a));
    bool ready = print_compiler(a);
    printf("CPUs           %d\n", os_cpu_count());
    print_memory();
    print_limits();
    cache c = cache_open(a);
    printf("cache          %s\n", c.root == NULL
                                      ? "none that this user can use: programs are compiled "
                                        "into temporary folders"
                                      : c.root);
    print_settings();
    return ready ? 0 : 1;
}
