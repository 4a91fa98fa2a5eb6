/* Where the threads of an execution stand in another process: a child that blocks or loops without
 * end, and that no signal reaches. The child is a fork of this process, so addresses mean the same
 * here. Its memory is read from outside; stacks are searched for return addresses into the code
 * under test. */

#include <dlfcn.h>
#include <sys/uio.h>

enum { SCANNED_BYTES = 4096 };

static int read_child(int pid, void *to, const void *from, size_t bytes)
{
    struct iovec here = {to, bytes}, there = {(void *)(uintptr_t)from, bytes};
    return process_vm_readv(pid, &here, 1, &there, 1, 0) == (ssize_t)bytes;
}

/* A number that changes with each step of the execution under way in a child; 0 if unknown. */
uint64_t engine_steps_in(int32_t pid)
{
    uint64_t hooks = 0;
    uint32_t step = 0;
    if (!read_child(pid, &hooks, &E.hooks, sizeof hooks) || !read_child(pid, &step, &E.step, sizeof step))
        return 0;
    return hooks + step;
}

/* Is there a call in front of this address, in the module of the code under test? */
static int is_return_address(uint64_t pc, const void *module)
{
    const uint8_t *code = (const uint8_t *)(uintptr_t)pc;
    Dl_info info;
    if (pc < 4096 || dladdr(code, &info) == 0 || info.dli_fbase != module)
        return 0;
#if defined(__x86_64__)
    return code[-5] == 0xE8 || (code[-2] == 0xFF && (code[-1] & 0xF8) == 0xD0) ||
           (code[-3] == 0xFF && (code[-2] & 0x38) == 0x10) || (code[-6] == 0xFF && (code[-5] & 0x38) == 0x10);
#elif defined(__aarch64__)
    uint32_t call;
    memcpy(&call, code - 4, sizeof call);
    return call >> 26 == 0x25 || (call & 0xFFFFFC1F) == 0xD63F0000;
#else
    return 1;
#endif
}

/* The innermost place of the code under test on a stack, from sp to its end; 0: none. */
static uint64_t innermost_call(int pid, uint64_t sp, uint64_t end, const void *module)
{
    uint64_t words[SCANNED_BYTES / 8];
    size_t bytes = end - sp < sizeof words ? (end - sp) & ~(size_t)7 : sizeof words;
    if (sp >= end || !read_child(pid, words, (const void *)(uintptr_t)sp, bytes))
        return 0;
    for (size_t i = 0; i < bytes / 8; i++)
        if (is_return_address(words[i], module))
            return words[i];
    return 0;
}

/* The place of each unfinished thread of the execution under way in a child that stands at sp, with
 * its number (-1: the main thread). Returns how many there are, at most `room`. */
int32_t engine_places_in(int32_t pid, uint64_t sp, int32_t *numbers, uint64_t *places, int32_t room)
{
    Engine *far = malloc(sizeof *far);
    Thread *t = malloc(sizeof *t);
    Dl_info info;
    int32_t n = 0;
    if (far && t && read_child(pid, far, &E, sizeof *far) && far->config.subject && far->threads &&
        dladdr(*(void *const *)&far->config.subject->apply, &info)) {
        for (int32_t i = -1; i < far->n && i < ENGINE_MOST_THREADS && n < room; i++) {
            uint64_t low, at;
            if (i < 0)
                *t = far->main;
            else if (!read_child(pid, t, far->threads + i, sizeof *t))
                break;
            low = (uint64_t)(uintptr_t)t->stack;
            at = sp >= low && sp < low + STACK_BYTES ? sp : (uint64_t)(uintptr_t)t->fiber.sp;
            if ((i < 0 && at != sp) || (i >= 0 && t->done))
                continue;
            numbers[n] = i;
            places[n++] = innermost_call(pid, at, low + STACK_BYTES, info.dli_fbase);
        }
    }
    free(far);
    free(t);
    return n;
}
