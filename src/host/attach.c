/* Tensors in place: files that the caller of a set has mapped, and that its ranks map, too.
 *
 * An argument that lies in a shared mapping needs no copy. The file behind it is found by device and inode among the
 * descriptors of this process, sent to the ranks once, and mapped by them and by the host over the same part of the
 * segment; so an address in it is an offset in the segment like any other, and two mappings of one file in the caller
 * are one memory to the program. What is mapped where is asked anew at each call: an address that was shared once and
 * means something else now is found out. Where no descriptor is open, or something else does not fit, the argument is
 * copied, which is always right.
 *
 * A file stays attached until the caller has no mapping of it where it last was; each call looks after one of those
 * that it does not use. pypto_shared_free() does so at once.
 *
 * Kernels before Linux 6.11 do not answer for single addresses (base/os_maps). There only arguments from LOOK_FROM
 * bytes are looked for, which cost more to copy than to find; and what was private is taken to be so. */
#include "base/alloc.h"
#include "base/os.h"
#include "host/host.h"

#include <string.h>

#define LOOK_FROM ((int64_t)1 << 20)
/* Each takes a descriptor. */
#define MOST_FILES 128

static int64_t whole_pages(int64_t bytes)
{
    return (bytes + HEAP_ALIGN - 1) & ~(int64_t)(HEAP_ALIGN - 1);
}

/* ---- what is at an address ---- */

static bool maps_are_quick(pypto_worker *w)
{
    if (w->maps < 0) {
        w->maps = os_maps_open();
        w->maps_quick = os_maps_are_quick(w->maps);
    }
    return w->maps_quick;
}

static bool known_private(const pypto_worker *w, int64_t low, int64_t high)
{
    for (int32_t i = 0; i < KNOWN_PRIVATE; ++i)
        if (w->known_private[i].offset <= low &&
            high - w->known_private[i].offset <= w->known_private[i].bytes)
            return true;
    return false;
}

static bool same_file(const os_mapping *m, uint64_t device, uint64_t inode)
{
    return m->shared && m->device == device && m->inode == inode;
}

/* Whether one file is mapped at all of [low, high), in one piece; in as many mappings as the system may have made of
 * it. */
static bool mapped_in_one(pypto_worker *w, int64_t low, int64_t high, os_mapping *m)
{
    if (!os_mapping_at(w->maps, low, m) || !m->shared || m->inode == 0)
        return false;
    while (m->high < high) {
        os_mapping next;
        if (!os_mapping_at(w->maps, m->high, &next) || !same_file(&next, m->device, m->inode) ||
            next.file_offset - m->file_offset != next.low - m->low)
            return false;
        m->high = next.high;
        m->writable = m->writable && next.writable;
    }
    return true;
}

/* The shared mapping in which the bytes lie. *fd is its descriptor if it is one of our own blocks, else -1. */
static bool locate(pypto_worker *w, int64_t low, int64_t high, bool thoroughly, os_mapping *m,
                   int *fd)
{
    *fd = -1;
    if (shared_find(low, high, m, fd))
        return true;
    const bool quick = maps_are_quick(w);
    if (!quick && !thoroughly && (high - low < LOOK_FROM || known_private(w, low, high)))
        return false;
    if (mapped_in_one(w, low, high, m))
        return true;
    if (!quick)
        w->known_private[w->next_private++ % KNOWN_PRIVATE] = (heap_block){low, high - low};
    return false;
}

/* ---- attaching ---- */

static void detach(pypto_worker *w, attachment *a)
{
    for (attachment **link = &w->files; *link != NULL; link = &(*link)->next) {
        if (*link == a) {
            *link = a->next;
            break;
        }
    }
    --w->file_count;
    workers_detach(w, a->offset, a->bytes);
    heap_give(&w->files_area, a->offset - w->seg.set->files_offset, a->bytes);
    os_close(&a->fd);
    alloc_free(a);
}

/* Whether the caller still has it where it was. */
static bool still_mapped(pypto_worker *w, const attachment *a)
{
    os_mapping m;
    int fd;
    return (shared_find(a->address, a->address + 1, &m, &fd) ||
            os_mapping_at(w->maps, a->address, &m)) &&
           same_file(&m, a->device, a->inode);
}

static bool is_unused(const pypto_worker *w, const attachment *a)
{
    return a->users == 0 && a->used != w->file_clock;
}

static void sweep(pypto_worker *w)
{
    for (attachment *a = w->files, *next; a != NULL; a = next) {
        next = a->next;
        if (is_unused(w, a) && !still_mapped(w, a))
            detach(w, a);
    }
}

/* The same for one of them, which becomes the last. */
static void sweep_one(pypto_worker *w)
{
    attachment **link = &w->files;
    while (*link != NULL && !is_unused(w, *link))
        link = &(*link)->next;
    attachment *a = *link;
    if (a == NULL || !maps_are_quick(w))
        return;
    if (!still_mapped(w, a)) {
        detach(w, a);
        return;
    }
    *link = a->next;
    while (*link != NULL)
        link = &(*link)->next;
    *link = a;
    a->next = NULL;
}

static attachment *longest_unused(const pypto_worker *w)
{
    attachment *found = NULL;
    for (attachment *a = w->files; a != NULL; a = a->next)
        if (is_unused(w, a) && (found == NULL || a->used < found->used))
            found = a;
    return found;
}

/* Room in the segment, for which others may have to go; -1: there is none. */
static int64_t take_room(pypto_worker *w, int64_t bytes)
{
    for (;;) {
        const int64_t offset = w->file_count < MOST_FILES ? heap_take(&w->files_area, bytes) : -1;
        if (offset >= 0)
            return w->seg.set->files_offset + offset;
        attachment *victim = longest_unused(w);
        if (bytes > w->files_area.limit || victim == NULL)
            return -1;
        detach(w, victim);
    }
}

/* NULL: it cannot be; the argument is copied then. Takes over the descriptor. */
static attachment *attach(pypto_worker *w, const os_mapping *m, int fd, bool writable)
{
    attachment *a = alloc_zeroed(1, (int64_t)sizeof *a);
    int64_t bytes = 0;
    if (a != NULL && os_is_file(fd, m->device, m->inode, &bytes) && bytes > 0) {
        *a = (attachment){.device = m->device,
                          .inode = m->inode,
                          .fd = fd,
                          .writable = writable,
                          .bytes = whole_pages(bytes)};
        a->offset = take_room(w, a->bytes);
        if (a->offset >= 0 && workers_attach(w, a->offset, a->bytes, fd, &a->writable)) {
            a->next = w->files;
            w->files = a;
            ++w->file_count;
            return a;
        }
        if (a->offset >= 0)
            heap_give(&w->files_area, a->offset - w->seg.set->files_offset, a->bytes);
    }
    os_close(&fd);
    alloc_free(a);
    return NULL;
}

/* Files that cannot be attached, so that they are not tried at each call. */
static bool known_copied(const pypto_worker *w, const os_mapping *m)
{
    for (int32_t i = 0; i < KNOWN_COPIED; ++i)
        if (w->known_copied[i].inode == m->inode && w->known_copied[i].device == m->device)
            return true;
    return false;
}

static void note_copied(pypto_worker *w, const os_mapping *m)
{
    w->known_copied[w->next_copied++ % KNOWN_COPIED] = *m;
}

/* A descriptor of our own for the file of a mapping; -1: there is none. */
static int open_again(pypto_worker *w, const os_mapping *m, int own, bool *writable)
{
    *writable = true;
    if (known_copied(w, m))
        return -1;
    if (own >= 0)
        return os_duplicate(own);
    const int fd = os_find_descriptor(m->device, m->inode, writable);
    if (fd < 0)
        note_copied(w, m);
    return fd;
}

/* The attachment of a mapping's file that reaches to `end` of the file, if it can be had. */
static attachment *attachment_of(pypto_worker *w, const os_mapping *m, int own, int64_t end,
                                 bool written, int64_t *file_bytes)
{
    *file_bytes = INT64_MAX;
    for (attachment *a = w->files; a != NULL; a = a->next) {
        if (a->device != m->device || a->inode != m->inode)
            continue;
        const bool sized = own < 0 && os_is_file(a->fd, a->device, a->inode, file_bytes);
        const bool taken = a->used == w->file_clock; /* by another argument, as it is */
        const bool reaches = !sized || whole_pages(*file_bytes) <= a->bytes;
        if ((reaches || (taken && end <= a->bytes)) && (a->writable || !written))
            return a;
        if (taken || a->users > 0)
            return NULL; /* copied, until it can be attached anew */
        detach(w, a);
        break;
    }
    bool writable;
    const int fd = open_again(w, m, own, &writable);
    if (fd < 0)
        return NULL;
    (void)os_is_file(fd, m->device, m->inode, file_bytes);
    sweep(w);
    attachment *a = attach(w, m, fd, writable);
    if (a == NULL)
        note_copied(w, m);
    return a != NULL && (a->writable || !written) ? a : NULL;
}

/* ---- the arguments of a call ---- */

static pypto_status refuse_private(const pld_function *f, const pld_param *param)
{
    return diag_status(
        DIAG_ARGUMENT_NOT_SHARED, "use pypto.runtime.empty_shared(), or x.share_memory_() of torch",
        "argument '%s' of %s must be in shared memory: this worker copies no tensors", param->name,
        f->name);
}

/* Whether another argument shares memory with these bytes: then both are in place, or none. */
static bool meets_another(const pypto_argument *args, int32_t count, int32_t index, int64_t low,
                          int64_t high)
{
    for (int32_t i = 0; i < count; ++i) {
        int64_t other_low, other_high;
        if (i != index && args[i].kind == PLD_ARG_TENSOR && args[i].tensor.rows == NULL &&
            tensor_range(&args[i].tensor, &other_low, &other_high) && other_low < high &&
            low < other_high)
            return true;
    }
    return false;
}

static pypto_status place_argument(pypto_worker *w, const pld_function *f,
                                   const pypto_argument *args, int32_t count, int32_t index,
                                   argument_place *place)
{
    const pld_param *param = &f->params[index];
    const pypto_tensor *tensor = &args[index].tensor;
    const bool written = param->direction != PLD_IN;
    int64_t low, high;
    if (tensor->rows != NULL || !tensor_range(tensor, &low, &high) || low == high ||
        in_segment(&w->seg, low, high))
        return STATUS_OK;
    os_mapping m;
    int own;
    attachment *a = NULL;
    if (locate(w, low, high, w->shared_only || meets_another(args, count, index, low, high), &m,
               &own)) {
        const int64_t start = m.file_offset + (low - m.low);
        int64_t file_bytes;
        if (written && !m.writable)
            return diag_status(DIAG_ARGUMENT_READ_ONLY, "map it for writing",
                               "argument '%s' of %s is written by the program but its memory is "
                               "mapped for reading only",
                               param->name, f->name);
        a = attachment_of(w, &m, own, start + (high - low), written, &file_bytes);
        if (start + (high - low) > file_bytes)
            return diag_status(
                DIAG_SHORT_FILE, "make the file longer, or pass a part of the tensor",
                "argument '%s' of %s lies in a mapped file of %lld bytes, of which "
                "it needs the first %lld",
                param->name, f->name, (long long)file_bytes, (long long)(start + (high - low)));
        if (a != NULL) {
            *place = (argument_place){a, w->seg.base + a->offset + start +
                                             ((int64_t)(intptr_t)tensor->data - low)};
            a->address = low;
            a->used = w->file_clock;
            ++a->users;
        }
    }
    return a == NULL && w->shared_only ? refuse_private(f, param) : STATUS_OK;
}

pypto_status attach_find(pypto_worker *w, const pld_function *f, const pypto_argument *args,
                         int32_t count, argument_place *places)
{
    ++w->file_clock;
    pypto_status status = STATUS_OK;
    /* What is written first: so a file is not attached for reading only, and then needed for writing. */
    for (int written = 1; written >= 0; --written)
        for (int32_t i = 0; status_ok(status) && i < count; ++i)
            if (args[i].kind == PLD_ARG_TENSOR && (f->params[i].direction != PLD_IN) == written)
                status = place_argument(w, f, args, count, i, &places[i]);
    sweep_one(w);
    return status;
}

void attach_release(argument_place *places, int32_t count)
{
    for (int32_t i = 0; i < count; ++i) {
        if (places[i].file != NULL)
            --places[i].file->users;
        places[i].file = NULL;
    }
}

void attach_forget(pypto_worker *w, uint64_t device, uint64_t inode)
{
    for (attachment *a = w->files; a != NULL; a = a->next) {
        if (a->device != device || a->inode != inode)
            continue;
        if (a->users == 0)
            detach(w, a);
        return;
    }
}

void attach_disown(pypto_worker *w)
{
    for (attachment *a = w->files; a != NULL; a = a->next)
        os_close(&a->fd);
    os_close(&w->maps);
}

void attach_destroy(pypto_worker *w)
{
    attach_disown(w);
    while (w->files != NULL) {
        attachment *a = w->files;
        w->files = a->next;
        alloc_free(a);
    }
    heap_destroy(&w->files_area);
}
