/* What os_file.c and os_folder.c share: files by the descriptor of their directory. */
#ifndef BASE_OS_AT_H
#define BASE_OS_AT_H

#include "base/os.h"

/* Writes everything and closes; 0 or the error. */
int os_write_and_close(int fd, const char *bytes, int64_t count);
/* As os_remove_tree(). */
void os_remove_at(int parent, const char *name);
/* As os_list_dir() of what `open_it` opens, which is called twice. */
os_names os_list_with(arena *a, int (*open_it)(const void *context), const void *context);

#endif
