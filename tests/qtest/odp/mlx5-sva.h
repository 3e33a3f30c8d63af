/*
 * QTest: an HCA with SVA portals behind an SMMUv3
 *
 * SPDX-License-Identifier: GPL-2.0-or-later
 */
#ifndef TESTS_QTEST_ODP_MLX5_SVA_H
#define TESTS_QTEST_ODP_MLX5_SVA_H

#include "qemu/bswap.h"
#include "hw/pci/pci_regs.h"
#include "mlx5-driver.h"
#include "smmuv3-test.h"

#define SVA_VA 0x12345000ull

enum {
    SVA_PORTALS = 2,
    SVA_PASID = 5,                /* portal i: SVA_PASID + i */

    /* Extended capabilities of a portal */
    SVA_CAP_PASID = 0x100, SVA_CAP_ATS = 0x110, SVA_CAP_PRI = 0x120,

    SVA_MAGIC = 0x00, SVA_VERSION = 0x04, SVA_CAP = 0x08, SVA_STATUS = 0x0c,
    SVA_CONTROL = 0x10, SVA_REG_PASID = 0x14, SVA_KEY_PD = 0x20,
    SVA_KEY_ACCESS = 0x24, SVA_KEY_START = 0x28, SVA_KEY_LENGTH = 0x30,
    SVA_KEY = 0x38, SVA_COMMAND = 0x3c, SVA_RESULT = 0x40, SVA_NKEYS = 0x44,
    SVA_COUNTERS = 0x100, SVA_KEY_COUNTERS = 0x300,

    SVA_MAKE = 1, SVA_DESTROY = 2, SVA_QUERY = 3,
    SVA_ALL = 0xf,                /* KEY_ACCESS: all rights */
    SVA_UNBOUND = 1 << 6,         /* STATUS */
    SVA_VALID = 1u << 31,

    SVA_STALLS = 0x00, SVA_PAGE_REQUESTS = 0x08, SVA_RESOLVED = 0x10,
    SVA_DENIED = 0x18, SVA_PENDING = 0x20, SVA_LATENCY_SUM = 0x28,
    SVA_SMALL = 0x38, SVA_LARGE = 0x40, SVA_OVER_LIMIT = 0x48,
    SVA_ATC_HITS = 0x50, SVA_ATC_MISSES = 0x58, SVA_ATC_INVS = 0x60,
    SVA_PRGS = 0x68, SVA_HISTOGRAM = 0x80,
};

typedef enum SvaResult {
    SVA_R_OK, SVA_R_BAD_COMMAND, SVA_R_NO_PASID, SVA_R_BAD_PASID,
    SVA_R_LATCHED, SVA_R_PASID_OFF, SVA_R_ATS_OFF, SVA_R_NO_MASTER,
    SVA_R_HCA_DOWN, SVA_R_UNBOUND, SVA_R_BAD_PD, SVA_R_BAD_ACCESS,
    SVA_R_BAD_RANGE, SVA_R_NO_RESOURCES, SVA_R_BAD_KEY,
} SvaResult;

/* What a machine is to have */
enum {
    SVA_STALL = 1,                /* CDs stall */
    SVA_ATS = 2,                  /* enabled in SMMU and portals */
    SVA_PRI = 4,
    SVA_PORT = 8,                 /* the HCA is on bus 1, in a root port */
};

typedef struct Sva {
    QMlx5Host *h;
    QMlx5 *d;
    SmmuTest t;
    unsigned how;
    uint8_t port_exp;             /* SVA_PORT: its PCI Express capability */
    QPCIDevice *portal[SVA_PORTALS];
    QPCIBar bar[SVA_PORTALS];
    uint64_t cds[SVA_PORTALS], root[SVA_PORTALS];
    Cd cd[SVA_PORTALS];
    uint64_t buf;                 /* pinned memory, 64 KiB */
    uint32_t all;                 /* key of all pinned memory */
} Sva;

/* Machine, HCA that is up, SMMU, portals whose PASIDs have empty tables. */
Sva *sva_start(unsigned how, const char *props);
void sva_stop(Sva *s);
/* SVA_PORT: the guest lets the HCA be pulled out; DEVICE_DELETED comes. */
void sva_unplug(Sva *s);
/* Moves the machine to another QEMU. */
void sva_migrate(Sva *s, const char *props);

/* StreamID of function 0 */
extern uint32_t sva_first_sid;

static inline uint32_t sva_sid(unsigned portal)
{
    return sva_first_sid + portal + 1;
}

static inline uint32_t sva_r(Sva *s, unsigned p, unsigned reg)
{
    return qpci_io_readl(s->portal[p], s->bar[p], reg);
}

static inline void sva_w(Sva *s, unsigned p, unsigned reg, uint32_t val)
{
    qpci_io_writel(s->portal[p], s->bar[p], reg, val);
}

static inline uint64_t sva_count(Sva *s, unsigned p, unsigned counter)
{
    return qpci_io_readq(s->portal[p], s->bar[p], SVA_COUNTERS + counter);
}

/* Extended configuration space, which libqos does not reach; -1: function 0 */
static inline uint64_t sva_ecam(Sva *s, unsigned p, unsigned off)
{
    return s->h->gbus.ecam_alloc_ptr + ((sva_sid(p) & 0xff) << 12) + off;
}

SvaResult sva_command(Sva *s, unsigned p, unsigned command);
SvaResult sva_latch(Sva *s, unsigned p, uint32_t pasid);
/* MAKE_KEY; *@key: the key. */
SvaResult sva_make(Sva *s, unsigned p, uint32_t pd, uint32_t access,
                   uint32_t *key);
/* A key of portal @p's whole address space with all rights. */
uint32_t sva_key(Sva *s, unsigned p);
SvaResult sva_destroy(Sva *s, unsigned p, uint32_t key);
/* Enables or disables bus master, PASID, ATS, PRI. */
void sva_master(Sva *s, unsigned p, bool on);
void sva_pasid(Sva *s, unsigned p, bool on);
void sva_ats(Sva *s, unsigned p, bool on);
void sva_pri(Sva *s, unsigned p, unsigned credits);
void sva_flr(QPCIDevice *dev);

/* Maps a fresh page at @va of portal @p's process; its address. */
uint64_t sva_map(Sva *s, unsigned p, uint64_t va);
/* Unmaps, and invalidates as Linux does. */
void sva_unmap(Sva *s, unsigned p, uint64_t va);
void sva_atc_inv_all(Sva *s, unsigned p);
/* The oldest event is a stall by portal @p at @va: its STAG. */
uint16_t sva_pop_stall(Sva *s, unsigned p, uint64_t va, bool read);
/* The oldest page request is one by portal @p for @va: its PRG index. */
uint16_t sva_pop_request(Sva *s, unsigned p, uint64_t va);
/* Answers it: 0 failure, 1 invalid, 2 success. */
void sva_respond(Sva *s, unsigned p, uint16_t prgi, unsigned code);

#endif
