/* SPDX-License-Identifier: GPL-2.0-or-later */
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include "region.h"
#include "util.h"

static void *map(int fd, size_t len)
{
    int flags = fd < 0 ? MAP_PRIVATE | MAP_ANONYMOUS : MAP_SHARED;
    void *p = mmap(NULL, len, PROT_READ | PROT_WRITE, flags, fd, 0);

    if (p == MAP_FAILED) {
        die_errno("mmap %zu", len);
    }
    return p;
}

struct region *region_new(struct vdev *v, enum mem mem, enum reg reg,
                          bool source, unsigned areas, struct ibv_mr *implicit)
{
    static const char *const regs[] = { "pinned", "odp", "implicit" };
    struct region *r = calloc(1, sizeof(*r));
    int access = source ? IBV_ACCESS_REMOTE_READ :
                 IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE |
                 IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_ATOMIC;
    char *name;

    if (asprintf(&name, "%s %s %s", regs[reg],
                 mem == MEM_FILE ? "file" : "anon",
                 source ? "source" : "target") < 0) {
        die("no memory");
    }
    r->name = name;
    r->mem = mem;
    r->reg = reg;
    r->source = source;
    r->len = (size_t)areas * AREA_BYTES;
    r->fd = -1;
    if (mem == MEM_FILE) {
        r->fd = memfd_create(name, MFD_CLOEXEC);
        if (r->fd < 0 || ftruncate(r->fd, r->len)) {
            die_errno("memfd of %zu", r->len);
        }
        r->cpu = map(r->fd, r->len);
    }
    r->dev = map(r->fd, r->len);
    if (mem == MEM_ANON) {
        r->cpu = r->dev;
    }
    switch (reg) {
    case REG_PINNED:
        r->mr = mr_reg(v, r->dev, r->len, access);
        break;
    case REG_ODP:
        r->mr = mr_reg(v, r->dev, r->len, access | IBV_ACCESS_ON_DEMAND);
        break;
    case REG_IMPLICIT:
        r->mr = implicit;
        r->mr_shared = true;
        break;
    }
    return r;
}

void region_free(struct region *r)
{
    if (!r->mr_shared && ibv_dereg_mr(r->mr)) {
        die_errno("ibv_dereg_mr %s", r->name);
    }
    munmap(r->dev, r->len);
    if (r->mem == MEM_FILE) {
        munmap(r->cpu, r->len);
        close(r->fd);
    }
    free((char *)r->name);
    free(r);
}

void region_drop(struct region *r, size_t offset, size_t len)
{
    if (madvise(r->dev + offset, len, MADV_DONTNEED)) {
        die_errno("MADV_DONTNEED");
    }
}

void region_remap(struct region *r, size_t offset, size_t len)
{
    if (mmap(r->dev + offset, len, PROT_READ | PROT_WRITE,
             MAP_SHARED | MAP_FIXED, r->fd, offset) == MAP_FAILED) {
        die_errno("mmap over %s", r->name);
    }
}

void region_flip(struct region *r, size_t offset, size_t len, bool readonly)
{
    if (mprotect(r->dev + offset, len,
                 readonly ? PROT_READ : PROT_READ | PROT_WRITE)) {
        die_errno("mprotect %s", r->name);
    }
}
