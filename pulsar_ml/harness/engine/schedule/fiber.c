/* Fibers: stacks with a guard page, taken once and used for all executions, and the switch. */

#include <sys/mman.h>
#include <unistd.h>

#if defined(__x86_64__)
/* Inline, so that there is no call and no return: the processor predicts returns by calls, and they
 * would be another stack's. The compiler saves what it needs of the registers that change. It sees
 * no call and would think that variables of this file keep their values: hence SHARED. A fiber may
 * switch to itself. Returns `from`, but by way of the register of whoever switches back: what is
 * read through it waits for no load from the stack. */
static inline __attribute__((always_inline)) Fiber *fiber_switch(Fiber *from, Fiber *to)
{
    __asm__ volatile(
        "leaq -128(%%rsp), %%rsp\n\t"          /* the red zone */
        "pushq %%rbp\n\t"
        "leaq 1f(%%rip), %%rdx\n\t"
        "movq %%rdx, 8(%[from])\n\t"
        "movq %%rsp, (%[from])\n\t"
        "movq (%[to]), %%rsp\n\t"
        "jmp *8(%[to])\n"
        "1:\n\t"
        "popq %%rbp\n\t"
        "leaq 128(%%rsp), %%rsp\n\t"
        : [from] "+D"(from), [to] "+S"(to)
        :
        : "rax", "rbx", "rcx", "rdx", "r8", "r9", "r10", "r11", "r12", "r13", "r14", "r15", "memory", "cc",
          "xmm0", "xmm1", "xmm2", "xmm3", "xmm4", "xmm5", "xmm6", "xmm7", "xmm8", "xmm9", "xmm10", "xmm11",
          "xmm12", "xmm13", "xmm14", "xmm15");
    return to;
}

static Fiber fiber_prepare(char *top, void (*entry)(void))
{
    void **sp = (void **)((uintptr_t)top & ~(uintptr_t)15);
    *--sp = NULL;               /* where a return address would be: entry never returns */
    return (Fiber){sp, (void *)entry};
}
#elif defined(__aarch64__)
__asm__(
    ".text\n"
    ".p2align 4\n"
    ".type pml_fiber_switch,%function\n"
    "pml_fiber_switch:\n"
    "  sub sp, sp, #160\n"
    "  stp x19, x20, [sp, #0]\n  stp x21, x22, [sp, #16]\n  stp x23, x24, [sp, #32]\n"
    "  stp x25, x26, [sp, #48]\n  stp x27, x28, [sp, #64]\n  stp x29, x30, [sp, #80]\n"
    "  stp d8, d9, [sp, #96]\n  stp d10, d11, [sp, #112]\n"
    "  stp d12, d13, [sp, #128]\n  stp d14, d15, [sp, #144]\n"
    "  mov x9, sp\n  str x9, [x0]\n  ldr x9, [x1]\n  mov sp, x9\n"
    "  ldp x19, x20, [sp, #0]\n  ldp x21, x22, [sp, #16]\n  ldp x23, x24, [sp, #32]\n"
    "  ldp x25, x26, [sp, #48]\n  ldp x27, x28, [sp, #64]\n  ldp x29, x30, [sp, #80]\n"
    "  ldp d8, d9, [sp, #96]\n  ldp d10, d11, [sp, #112]\n"
    "  ldp d12, d13, [sp, #128]\n  ldp d14, d15, [sp, #144]\n"
    "  add sp, sp, #160\n  mov x0, x1\n"
    "  br x30\n"
    ".size pml_fiber_switch,.-pml_fiber_switch\n");
Fiber *pml_fiber_switch(Fiber *from, Fiber *to) __attribute__((visibility("hidden")));
#define fiber_switch pml_fiber_switch

static Fiber fiber_prepare(char *top, void (*entry)(void))
{
    void **sp = (void **)((uintptr_t)top & ~(uintptr_t)15) - 20;
    for (int i = 0; i < 20; i++)
        sp[i] = NULL;
    sp[11] = (void *)entry;
    return (Fiber){sp, NULL};
}
#else
#error "the engine knows how to switch fibers on x86-64 and aarch64"
#endif

static size_t page_bytes(void)
{
    static size_t bytes;
    if (bytes == 0)
        bytes = (size_t)sysconf(_SC_PAGESIZE);
    return bytes;
}

/* Lowest usable byte of a new stack, with an inaccessible page below; NULL without memory. */
static char *stack_new(void)
{
    size_t guard = page_bytes();
    char *base = mmap(NULL, STACK_BYTES + guard, PROT_READ | PROT_WRITE,
                      MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (base == MAP_FAILED)
        return NULL;
    mprotect(base, guard, PROT_NONE);
    return base + guard;
}

/* Whether the address is in the thread's own stack, and no thread that it started may know it. */
static inline int on_stack(const Thread *t, uintptr_t address)
{
    return address - t->own_stack < STACK_BYTES;
}

/* Where the libraries keep these words for the thread of the system that runs the engine. */
static uint64_t no_exceptions[2];
static int no_error;
static void *no_once[2];
SHARED struct {
    uint64_t *exceptions;
    int *error;
    void **once_callable, **once_call;  /* of std::call_once; not exchanged, see call_once_only() */
    uint8_t floats;               /* code under test changed its floating-point environment once */
    uint64_t busy;                /* so it did, or a word of a fiber that waits was not 0 */
} library = {no_exceptions, &no_error, &no_once[0], &no_once[1], 0, 0};

static __attribute__((noinline)) void get_floats(LibraryState *state)
{
#if defined(__x86_64__)
    uint16_t x87;
    __asm__ volatile("stmxcsr %0" : "=m"(state->float_control));
    __asm__ volatile("fnstcw %0" : "=m"(x87));
    state->float_status = x87;
#else
    uint64_t control, status;
    __asm__ volatile("mrs %0, fpcr\n\tmrs %1, fpsr" : "=r"(control), "=r"(status));
    state->float_control = (uint32_t)control;
    state->float_status = (uint32_t)status;
#endif
}

static __attribute__((noinline)) void set_floats(const LibraryState *state)
{
#if defined(__x86_64__)
    uint16_t x87 = (uint16_t)state->float_status;
    __asm__ volatile("ldmxcsr %0" : : "m"(state->float_control));
    __asm__ volatile("fldcw %0" : : "m"(x87));
#else
    __asm__ volatile("msr fpcr, %0\n\tmsr fpsr, %1"
                     : : "r"((uint64_t)state->float_control), "r"((uint64_t)state->float_status));
#endif
}

static inline __attribute__((always_inline)) void get_library_state(LibraryState *state)
{
    state->exceptions[0] = library.exceptions[0];
    state->exceptions[1] = library.exceptions[1];
    state->error = *library.error;
    if (unlikely(library.floats))
        get_floats(state);
}

static inline __attribute__((always_inline)) void set_library_state(const LibraryState *state)
{
    library.exceptions[0] = state->exceptions[0];
    library.exceptions[1] = state->exceptions[1];
    *library.error = state->error;
    if (unlikely(library.floats))
        set_floats(state);
}

static __attribute__((noinline)) void exchange_library_state(Thread *from, Thread *to)
{
    const LibraryState *state = &from->library;
    get_library_state(&from->library);
    if (state->exceptions[0] | state->exceptions[1] | (uint64_t)state->error)
        library.busy = 1;
    set_library_state(&to->library);
}

_Static_assert(offsetof(Thread, fiber) == 0, "a thread is found by its fiber");

/* Mostly no word is set, and none is exchanged. `to` may be `from`. Returns `from`. */
INLINED Thread *switch_to(Thread *from, Thread *to)
{
    E.switches += from != to;
    current = to;
    if (unlikely((library.exceptions[0] | library.exceptions[1] | (uint32_t)*library.error | library.busy) != 0))
        exchange_library_state(from, to);
    return (Thread *)fiber_switch(&from->fiber, &to->fiber);
}

/* Of CPython, if this process has it. A benchmark that includes this file has CPython's header. */
#if !defined(Py_PYTHON_H)
extern int PyGILState_Check(void) __attribute__((weak));
extern void *PyEval_SaveThread(void) __attribute__((weak));
#endif

/* Ends the execution from within a fiber; its fibers are not resumed but prepared anew. */
static void __attribute__((noreturn, noinline)) abandon(void)
{
    Fiber unused;
    /* The engine runs without the GIL, so that a fiber which holds it took it and will not give it
     * back. */
    if (PyGILState_Check && PyGILState_Check())
        PyEval_SaveThread();
    E.broken = 1;
    E.ended = 1;
    current = NULL;
    fiber_switch(&unused, &E.host);
    __builtin_unreachable();
}
