/* libstdc++ itself is not recompiled, and frees memory that recompiled code allocated: a string
 * that grows in it, for one. Its calls of free() are redirected here, by their entries in its table
 * of addresses; and those of malloc(), whose memory may have to be kept, see kept_blocks.c. */

#include <elf.h>

static void library_free(void *memory) { free_memory(memory, PC); }
static void *library_malloc(size_t bytes) { return from_libc(malloc(bytes)); }

#if defined(__x86_64__)
enum { SLOT = R_X86_64_JUMP_SLOT, WORD = R_X86_64_GLOB_DAT };
#else
enum { SLOT = R_AARCH64_JUMP_SLOT, WORD = R_AARCH64_GLOB_DAT };
#endif

static void redirect(void **entry, void *function)
{
    uintptr_t page = (uintptr_t)entry & ~(uintptr_t)(page_bytes() - 1);
    /* The page may be read-only since the library was loaded, and stays writable. */
    if (mprotect((void *)page, page_bytes(), PROT_READ | PROT_WRITE) == 0)
        *entry = function;
}

static void redirect_all(uintptr_t base, const ElfW(Rela) *from, size_t bytes, const ElfW(Sym) *symbols,
                         const char *names)
{
    for (size_t i = 0; from && i < bytes / sizeof *from; i++) {
        unsigned kind = ELF64_R_TYPE(from[i].r_info);
        const ElfW(Sym) *symbol = &symbols[ELF64_R_SYM(from[i].r_info)];
        const char *name = names + symbol->st_name;
        if (kind != SLOT && kind != WORD)
            continue;
        if (strcmp(name, "free") == 0)
            redirect((void **)(base + from[i].r_offset), (void *)library_free);
        else if (strcmp(name, "malloc") == 0)
            redirect((void **)(base + from[i].r_offset), (void *)library_malloc);
    }
}

static int find_library(struct dl_phdr_info *info, size_t size, void *nothing)
{
    const ElfW(Rela) *calls = NULL, *words = NULL;
    const ElfW(Sym) *symbols = NULL;
    const char *names = NULL;
    size_t calls_bytes = 0, words_bytes = 0;
    (void)size;
    (void)nothing;
    if (info->dlpi_name == NULL || strstr(info->dlpi_name, "libstdc++.so") == NULL)
        return 0;
    for (int i = 0; i < info->dlpi_phnum; i++) {
        if (info->dlpi_phdr[i].p_type != PT_DYNAMIC)
            continue;
        /* The loader has made these addresses absolute. */
        for (const ElfW(Dyn) *d = (void *)(info->dlpi_addr + info->dlpi_phdr[i].p_vaddr); d->d_tag; d++) {
            switch (d->d_tag) {
            case DT_JMPREL: calls = (void *)d->d_un.d_ptr; break;
            case DT_PLTRELSZ: calls_bytes = d->d_un.d_val; break;
            case DT_RELA: words = (void *)d->d_un.d_ptr; break;
            case DT_RELASZ: words_bytes = d->d_un.d_val; break;
            case DT_SYMTAB: symbols = (void *)d->d_un.d_ptr; break;
            case DT_STRTAB: names = (void *)d->d_un.d_ptr; break;
            }
        }
    }
    if (symbols && names) {
        redirect_all(info->dlpi_addr, calls, calls_bytes, symbols, names);
        redirect_all(info->dlpi_addr, words, words_bytes, symbols, names);
    }
    return 0;
}

static void redirect_library(void)
{
    static int done;
    if (!done && cxx_symbol("__cxa_get_globals")) {
        done = 1;
        dl_iterate_phdr(find_library, NULL);
    }
}
