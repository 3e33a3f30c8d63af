/* SPDX-License-Identifier: GPL-2.0-or-later */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <infiniband/mlx5dv.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "portal.h"

enum {
    REG_MAGIC = 0x000, REG_VERSION = 0x004, REG_STATUS = 0x00c,
    REG_CONTROL = 0x010, REG_PASID = 0x014, REG_KEY_PD = 0x020,
    REG_KEY_ACCESS = 0x024, REG_KEY_START = 0x028, REG_KEY_LENGTH = 0x030,
    REG_KEY = 0x038, REG_COMMAND = 0x03c, REG_RESULT = 0x040,
    REG_COUNTERS = 0x100, REG_KEY_COUNTERS = 0x300,
};

enum { CONTROL_RESET = 1, COMMAND_MAKE = 1, COMMAND_DESTROY = 2,
       COMMAND_QUERY = 3, MAGIC = 0x50415653, BAR_BYTES = 0x10000 };

#define PASID_VALID (1u << 31)
#define ACCESS_NO_PASID (1u << 31)

static const char *const result_names[] = {
    "OK", "bad command", "no PASID is latched", "bad PASID",
    "another PASID is latched", "PASID is not enabled", "ATS is not enabled",
    "bus master is off", "the HCA is not initialised",
    "the address space is gone", "bad protection domain", "bad access rights",
    "bad range", "no resources", "bad key",
};

static uint32_t rd(struct sva_portal *p, unsigned reg)
{
    return *(volatile uint32_t *)(p->regs + reg);
}

static void wr(struct sva_portal *p, unsigned reg, uint32_t value)
{
    *(volatile uint32_t *)(p->regs + reg) = value;
}

static void wr64(struct sva_portal *p, unsigned reg, uint64_t value)
{
    wr(p, reg, value);
    wr(p, reg + 4, value >> 32);
}

static int fail(struct sva_portal *p, const char *what)
{
    snprintf(p->error, sizeof(p->error), "%s: %s", what, strerror(errno));
    return -1;
}

static int result(struct sva_portal *p, const char *what)
{
    p->result = rd(p, REG_RESULT);
    if (p->result == SVA_OK) {
        return 0;
    }
    snprintf(p->error, sizeof(p->error), "%s: %s (%u)", what,
             p->result <= SVA_MAX_RESULT ? result_names[p->result] :
             "unknown result", p->result);
    return -1;
}

/* The number of the only UIO device of a PCI function; -1: none. */
static int find_uio(const char *pci)
{
    char path[128];
    struct dirent *e;
    int uio = -1;
    DIR *dir;

    snprintf(path, sizeof(path), "/sys/bus/pci/devices/%s/uio", pci);
    dir = opendir(path);
    if (!dir) {
        return -1;
    }
    while ((e = readdir(dir))) {
        if (!strncmp(e->d_name, "uio", 3)) {
            uio = atoi(e->d_name + 3);
        }
    }
    closedir(dir);
    return uio;
}

static int read_pasid(const char *pci)
{
    char path[128], text[32];
    ssize_t n = -1;
    int fd;

    snprintf(path, sizeof(path), "/sys/bus/pci/devices/%s/pasid", pci);
    fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd >= 0) {
        n = read(fd, text, sizeof(text) - 1);
        close(fd);
    }
    text[n > 0 ? n : 0] = 0;
    return atoi(text);
}

/* Opens the function's device node. Returns where its BAR 0 can be mapped. */
static int open_node(struct sva_portal *p, const char *pci)
{
    char path[128];
    int uio = find_uio(pci), bar;

    if (uio >= 0) {
        snprintf(path, sizeof(path), "/dev/uio%d", uio);
        p->fd = open(path, O_RDWR | O_CLOEXEC);
        return p->fd < 0 ? fail(p, path) : p->fd;
    }
    snprintf(path, sizeof(path), "/dev/odp-stall-%s", pci);
    p->fd = open(path, O_RDWR | O_CLOEXEC);
    if (p->fd < 0) {
        snprintf(p->error, sizeof(p->error), "%s is bound neither to "
                 "uio_pci_sva nor to odp-stall", pci);
        return -1;
    }
    p->no_pasid = true;
    snprintf(path, sizeof(path), "/sys/bus/pci/devices/%s/resource0", pci);
    bar = open(path, O_RDWR | O_CLOEXEC);
    return bar < 0 ? fail(p, path) : bar;
}

/* What the function may reach: the address space, from now on. */
static int bind_memory(struct sva_portal *p, const char *pci)
{
    static const char all[] = "0 1000000000000";
    int pasid;

    if (p->no_pasid) {
        return write(p->fd, all, sizeof(all) - 1) < 0 ?
               fail(p, "lending the memory") : 0;
    }
    pasid = read_pasid(pci);
    if (pasid <= 0) {
        snprintf(p->error, sizeof(p->error), "%s has no PASID", pci);
        return -1;
    }
    return sva_portal_latch(p, pasid);
}

int sva_portal_open(struct sva_portal *p, const char *pci)
{
    int bar;

    memset(p, 0, sizeof(*p));
    p->fd = -1;
    bar = open_node(p, pci);
    if (bar < 0) {
        sva_portal_close(p);
        return -1;
    }
    p->len = BAR_BYTES;
    p->regs = mmap(NULL, p->len, PROT_READ | PROT_WRITE, MAP_SHARED, bar, 0);
    if (p->regs == MAP_FAILED) {
        p->regs = NULL;
        fail(p, "mapping the registers");
    }
    if (bar != p->fd) {
        close(bar);
    }
    if (!p->regs) {
        goto error;
    }
    /* A child's copy would keep the address space bound after our close. */
    madvise((void *)p->regs, p->len, MADV_DONTFORK);
    if (rd(p, REG_MAGIC) != MAGIC || rd(p, REG_VERSION) >> 16 != 1) {
        snprintf(p->error, sizeof(p->error), "%s is no SVA portal that we "
                 "know", pci);
        goto error;
    }
    /* Old keys end before there is something to reach. */
    sva_portal_reset(p);
    if (bind_memory(p, pci)) {
        goto error;
    }
    return 0;
error:
    sva_portal_close(p);
    return -1;
}

void sva_portal_close(struct sva_portal *p)
{
    if (p->regs) {
        if (rd(p, REG_MAGIC) == MAGIC) {
            sva_portal_reset(p);
        }
        munmap((void *)p->regs, p->len);
        p->regs = NULL;
    }
    if (p->fd >= 0) {
        close(p->fd);
        p->fd = -1;
    }
}

void sva_portal_reset(struct sva_portal *p)
{
    wr(p, REG_CONTROL, CONTROL_RESET);
    p->pasid = 0;
}

int sva_portal_latch(struct sva_portal *p, uint32_t pasid)
{
    wr(p, REG_PASID, pasid | PASID_VALID);
    if (result(p, "latching the PASID")) {
        return -1;
    }
    p->pasid = pasid;
    return 0;
}

uint32_t sva_portal_status(struct sva_portal *p)
{
    return rd(p, REG_STATUS);
}

static int pd_number(struct ibv_pd *pd, uint32_t *pdn)
{
    struct mlx5dv_pd dv = { 0 };
    struct mlx5dv_obj obj = { .pd = { .in = pd, .out = &dv } };
    int err = mlx5dv_init_obj(&obj, MLX5DV_OBJ_PD);

    *pdn = dv.pdn;
    return err;
}

int sva_key_make(struct sva_portal *p, struct ibv_pd *pd, unsigned access,
                 void *start, size_t len, uint32_t *key)
{
    uint32_t pdn;

    errno = pd_number(pd, &pdn);
    if (errno) {
        return fail(p, "not a protection domain of an mlx5 device");
    }
    wr(p, REG_KEY_PD, pdn);
    wr(p, REG_KEY_ACCESS, access | (p->no_pasid ? ACCESS_NO_PASID : 0));
    wr64(p, REG_KEY_START, (uintptr_t)start);
    wr64(p, REG_KEY_LENGTH, len);
    wr(p, REG_COMMAND, COMMAND_MAKE);
    if (result(p, "making a key")) {
        return -1;
    }
    *key = rd(p, REG_KEY);
    return 0;
}

int sva_key_destroy(struct sva_portal *p, uint32_t key)
{
    wr(p, REG_KEY, key);
    wr(p, REG_COMMAND, COMMAND_DESTROY);
    return result(p, "destroying a key");
}

static void counters(struct sva_portal *p, unsigned base,
                     struct sva_counters *c)
{
    uint64_t *const field[] = {
        &c->stalls, &c->page_requests, &c->resolved, &c->denied, &c->pending,
        &c->latency_sum, &c->latency_max, &c->resolved_small,
        &c->resolved_large, &c->over_limit, &c->atc_hits, &c->atc_misses,
        &c->atc_invalidations, &c->prg_pending,
    };

    for (unsigned i = 0; i < sizeof(field) / sizeof(*field); i++) {
        *field[i] = *(volatile uint64_t *)(p->regs + base + 8 * i);
    }
    for (unsigned i = 0; i < 16; i++) {
        c->latency[i] = *(volatile uint64_t *)(p->regs + base + 0x80 + 8 * i);
    }
}

void sva_counters(struct sva_portal *p, struct sva_counters *c)
{
    counters(p, REG_COUNTERS, c);
}

int sva_key_counters(struct sva_portal *p, uint32_t key,
                     struct sva_counters *c)
{
    wr(p, REG_KEY, key);
    wr(p, REG_COMMAND, COMMAND_QUERY);
    if (result(p, "reading a key's counters")) {
        return -1;
    }
    counters(p, REG_KEY_COUNTERS, c);
    return 0;
}
