/* Fiber creation and switching: see fiber.h. Called by sched.c (tasks) and host/call.c (host
 * functions). */
#include "sched/fiber.h"

#include "base/alloc.h"

#include <stddef.h>
#include <sys/mman.h>
#include <unistd.h>

#if defined(__SANITIZE_ADDRESS__)
#define FIBER_ASAN 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define FIBER_ASAN 1
#endif
#endif
#if defined(__SANITIZE_THREAD__)
#define FIBER_TSAN 1
#elif defined(__has_feature)
#if __has_feature(thread_sanitizer)
#define FIBER_TSAN 1
#endif
#endif

#ifdef FIBER_ASAN
#include <sanitizer/asan_interface.h>
#include <sanitizer/common_interface_defs.h>
#endif
#ifdef FIBER_TSAN
#include <sanitizer/tsan_interface.h>
#endif

#if !defined(PYPTO_FIBER_UCONTEXT) && !defined(__x86_64__) && !defined(__aarch64__)
#define PYPTO_FIBER_UCONTEXT 1
#endif

#ifdef PYPTO_FIBER_UCONTEXT
#include <ucontext.h>
#endif

struct fiber {
#ifdef PYPTO_FIBER_UCONTEXT
    ucontext_t context;
#else
    void *stack_pointer; /* while it is not running: where its registers are saved */
#endif
    char *mapping; /* guard page, then the stack; NULL for the thread's own */
    int64_t mapping_bytes;
    int64_t stack_bytes;
    fiber_entry entry;
    void *argument;
#ifdef FIBER_ASAN
    void *fake_stack;
    const void *stack_bottom; /* as the sanitizer reported it when we were last left */
    size_t stack_size;
    fiber *came_from;
#endif
#ifdef FIBER_TSAN
    void *tsan;
    uint32_t runs;
#endif
};

/* ---- the switch itself ---- */

#ifndef PYPTO_FIBER_UCONTEXT
/* fiber_swap(&from->stack_pointer, to->stack_pointer): pushes the registers that a call preserves,
 * stores the stack pointer, takes over the other one and pops. A new fiber's stack is prepared so
 * that the pops and the return lead to fiber_boot with the fiber in a preserved register. */
void fiber_swap(void **save, void *load) __asm__("pypto_fiber_swap");
void fiber_boot(void) __asm__("pypto_fiber_boot");
#endif

#if !defined(PYPTO_FIBER_UCONTEXT) && defined(__x86_64__)
__asm__(".text\n"
        ".p2align 4\n"
        ".hidden pypto_fiber_swap\n"
        ".globl pypto_fiber_swap\n"
        ".type pypto_fiber_swap, @function\n"
        "pypto_fiber_swap:\n"
        "  pushq %rbp\n"
        "  pushq %rbx\n"
        "  pushq %r12\n"
        "  pushq %r13\n"
        "  pushq %r14\n"
        "  pushq %r15\n"
        "  movq %rsp, (%rdi)\n"
        "  movq %rsi, %rsp\n"
        "  popq %r15\n"
        "  popq %r14\n"
        "  popq %r13\n"
        "  popq %r12\n"
        "  popq %rbx\n"
        "  popq %rbp\n"
        "  ret\n"
        ".size pypto_fiber_swap, . - pypto_fiber_swap\n"
        ".p2align 4\n"
        ".hidden pypto_fiber_boot\n"
        ".globl pypto_fiber_boot\n"
        ".type pypto_fiber_boot, @function\n"
        "pypto_fiber_boot:\n"
        "  xorl %ebp, %ebp\n" /* ends frame-pointer walks */
        "  movq %r12, %rdi\n"
        "  callq *%r13\n"
        "  ud2\n"
        ".size pypto_fiber_boot, . - pypto_fiber_boot\n");

#define SAVED_WORDS 9

static void prepare_stack(fiber *f, void (*start)(fiber *))
{
    void **top = (void **)(f->mapping + f->mapping_bytes);
    /* From the top: two words of padding, return address, rbp, rbx, r12, r13, r14, r15. At
     * fiber_boot's `callq` the stack pointer is a multiple of 16, as the calling convention asks.
     */
    top[-1] = NULL;
    top[-2] = NULL;
    top[-3] = (void *)fiber_boot;
    top[-4] = NULL;
    top[-5] = NULL;
    top[-6] = f;
    top[-7] = (void *)start;
    top[-8] = NULL;
    top[-9] = NULL;
    f->stack_pointer = top - SAVED_WORDS;
}
#elif !defined(PYPTO_FIBER_UCONTEXT)
__asm__(".text\n"
        ".p2align 4\n"
        ".hidden pypto_fiber_swap\n"
        ".globl pypto_fiber_swap\n"
        ".type pypto_fiber_swap, %function\n"
        "pypto_fiber_swap:\n"
        "  sub sp, sp, #160\n"
        "  stp x19, x20, [sp, #0]\n"
        "  stp x21, x22, [sp, #16]\n"
        "  stp x23, x24, [sp, #32]\n"
        "  stp x25, x26, [sp, #48]\n"
        "  stp x27, x28, [sp, #64]\n"
        "  stp x29, x30, [sp, #80]\n"
        "  stp d8, d9, [sp, #96]\n"
        "  stp d10, d11, [sp, #112]\n"
        "  stp d12, d13, [sp, #128]\n"
        "  stp d14, d15, [sp, #144]\n"
        "  mov x9, sp\n"
        "  str x9, [x0]\n"
        "  mov sp, x1\n"
        "  ldp x19, x20, [sp, #0]\n"
        "  ldp x21, x22, [sp, #16]\n"
        "  ldp x23, x24, [sp, #32]\n"
        "  ldp x25, x26, [sp, #48]\n"
        "  ldp x27, x28, [sp, #64]\n"
        "  ldp x29, x30, [sp, #80]\n"
        "  ldp d8, d9, [sp, #96]\n"
        "  ldp d10, d11, [sp, #112]\n"
        "  ldp d12, d13, [sp, #128]\n"
        "  ldp d14, d15, [sp, #144]\n"
        "  add sp, sp, #160\n"
        "  ret\n"
        ".size pypto_fiber_swap, . - pypto_fiber_swap\n"
        ".p2align 4\n"
        ".hidden pypto_fiber_boot\n"
        ".globl pypto_fiber_boot\n"
        ".type pypto_fiber_boot, %function\n"
        "pypto_fiber_boot:\n"
        "  mov x29, xzr\n"
        "  mov x0, x19\n"
        "  blr x20\n"
        "  brk #0\n"
        ".size pypto_fiber_boot, . - pypto_fiber_boot\n");

static void prepare_stack(fiber *f, void (*start)(fiber *))
{
    void **frame = (void **)(f->mapping + f->mapping_bytes - 160);
    for (int i = 0; i < 20; ++i)
        frame[i] = NULL;
    frame[0] = f;                   /* x19 */
    frame[1] = (void *)start;       /* x20 */
    frame[11] = (void *)fiber_boot; /* x30 */
    f->stack_pointer = frame;
}
#endif

/* ---- life ---- */

static void after_arrival(fiber *f)
{
#ifdef FIBER_ASAN
    const void *bottom = NULL;
    size_t size = 0;
    __sanitizer_finish_switch_fiber(f->fake_stack, &bottom, &size);
    if (f->came_from != NULL && f->came_from->mapping == NULL) {
        f->came_from->stack_bottom = bottom;
        f->came_from->stack_size = size;
    }
#else
    (void)f;
#endif
}

static void fiber_start(fiber *f)
{
    after_arrival(f);
    f->entry(f->argument);
    __builtin_trap(); /* an entry never returns */
}

#ifdef PYPTO_FIBER_UCONTEXT
/* makecontext passes ints only, so the pointer travels in two halves. */
static void ucontext_start(unsigned high, unsigned low)
{
    fiber_start((fiber *)(((uintptr_t)high << 32) | (uintptr_t)low));
}
#endif

fiber *fiber_of_thread(void)
{
    fiber *f = alloc_zeroed(1, (int64_t)sizeof *f);
#ifdef FIBER_TSAN
    if (f != NULL)
        f->tsan = __tsan_get_current_fiber();
#endif
    return f;
}

fiber *fiber_create(int64_t stack_bytes)
{
    const int64_t page = sysconf(_SC_PAGESIZE);
    fiber *f = alloc_zeroed(1, (int64_t)sizeof *f);
    if (f == NULL)
        return NULL;
    f->stack_bytes = (stack_bytes + page - 1) / page * page;
    f->mapping_bytes = f->stack_bytes + page;
    void *mapping = mmap(NULL, (size_t)f->mapping_bytes, PROT_READ | PROT_WRITE,
                         MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_STACK, -1, 0);
    if (mapping == MAP_FAILED || mprotect(mapping, (size_t)page, PROT_NONE) != 0) {
        if (mapping != MAP_FAILED)
            munmap(mapping, (size_t)f->mapping_bytes);
        alloc_free(f);
        return NULL;
    }
    f->mapping = mapping;
#ifdef FIBER_ASAN
    f->stack_bottom = f->mapping + page;
    f->stack_size = (size_t)f->stack_bytes;
#endif
#ifdef FIBER_TSAN
    f->tsan = __tsan_create_fiber(0);
#endif
    return f;
}

void fiber_reset(fiber *f, fiber_entry entry, void *argument)
{
    f->entry = entry;
    f->argument = argument;
#ifdef FIBER_ASAN
    /* Whatever frames the dropped run left behind poisoned must not be seen by the next. */
    __asan_unpoison_memory_region(f->stack_bottom, f->stack_size);
    f->fake_stack = NULL;
#endif
#ifdef FIBER_TSAN
    /* The frames of runs that left without returning add up until TSan has no room for more; making
     * its fiber anew each time would take longer than most runs. */
    if (++f->runs % 4096 == 0) {
        __tsan_destroy_fiber(f->tsan);
        f->tsan = __tsan_create_fiber(0);
    }
#endif
#ifdef PYPTO_FIBER_UCONTEXT
    getcontext(&f->context);
    f->context.uc_stack.ss_sp = f->mapping + (f->mapping_bytes - f->stack_bytes);
    f->context.uc_stack.ss_size = (size_t)f->stack_bytes;
    f->context.uc_link = NULL;
    makecontext(&f->context, (void (*)(void))ucontext_start, 2, (unsigned)((uintptr_t)f >> 32),
                (unsigned)(uintptr_t)f);
#else
    prepare_stack(f, fiber_start);
#endif
}

void fiber_switch(fiber *from, fiber *to, bool finished)
{
#ifdef FIBER_ASAN
    to->came_from = from;
    __sanitizer_start_switch_fiber(finished ? NULL : &from->fake_stack, to->stack_bottom,
                                   to->stack_size);
#else
    (void)finished;
#endif
#ifdef FIBER_TSAN
    __tsan_switch_to_fiber(to->tsan, 0);
#endif
#ifdef PYPTO_FIBER_UCONTEXT
    swapcontext(&from->context, &to->context);
#else
    fiber_swap(&from->stack_pointer, to->stack_pointer);
#endif
    after_arrival(from);
}

void fiber_destroy(fiber *f)
{
    if (f == NULL)
        return;
#ifdef FIBER_TSAN
    if (f->mapping != NULL)
        __tsan_destroy_fiber(f->tsan);
#endif
    if (f->mapping != NULL)
        munmap(f->mapping, (size_t)f->mapping_bytes);
    alloc_free(f);
}
