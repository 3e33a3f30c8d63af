/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef SVA_PORTAL_H
#define SVA_PORTAL_H

#include <infiniband/verbs.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/*
 * SVA portals of the mlx5-hca for verbs programs: keys for the memory of the
 * calling process that need no registration and pin nothing. One process per
 * portal; calls on one portal must not run at the same time.
 *
 *     struct sva_portal p;
 *     uint32_t key;
 *
 *     if (sva_portal_open(&p, "0000:01:00.1") ||
 *         sva_key_make(&p, pd, IBV_ACCESS_LOCAL_WRITE, NULL, 0, &key)) {
 *         puts(p.error);
 *     }
 *     ... key is the lkey of SGEs and the rkey of peers, for any address ...
 *     sva_portal_close(&p);
 *
 * The portal is bound to uio_pci_sva by whoever sets up the machine; or to
 * odp-stall (tests/guest/odp-stall), which serves faults behind an IOMMU
 * without PASIDs: keys are then made without one, too. The calls return 0 or
 * -1, with a line for people in p->error.
 */
struct sva_portal {
    int fd;                     /* /dev/uioN or odp-stall's; -1: closed */
    bool no_pasid;              /* bound to odp-stall */
    volatile uint8_t *regs;     /* BAR 0 */
    size_t len;
    uint32_t pasid;
    uint32_t result;            /* register RESULT of the last request */
    char error[160];
};

/* RESULT, as docs/specs/mlx5-sva-portal.md has it */
enum sva_result {
    SVA_OK, SVA_BAD_COMMAND, SVA_NO_PASID, SVA_BAD_PASID, SVA_LATCHED,
    SVA_PASID_OFF, SVA_ATS_OFF, SVA_NO_MASTER, SVA_HCA_DOWN, SVA_UNBOUND,
    SVA_BAD_PD, SVA_BAD_ACCESS, SVA_BAD_RANGE, SVA_NO_RESOURCES, SVA_BAD_KEY,
    SVA_MAX_RESULT = SVA_BAD_KEY
};

/* STATUS */
enum {
    SVA_STATUS_LATCHED = 1 << 0, SVA_STATUS_MASTER = 1 << 1,
    SVA_STATUS_ATS = 1 << 2, SVA_STATUS_PASID = 1 << 3,
    SVA_STATUS_PRI = 1 << 4, SVA_STATUS_HCA = 1 << 5,
    SVA_STATUS_UNBOUND = 1 << 6,
};

/* Counters of the function, or of a key (which has no ATC counters). */
struct sva_counters {
    uint64_t stalls, page_requests, resolved, denied, pending;
    uint64_t latency_sum, latency_max;          /* ns */
    uint64_t resolved_small, resolved_large, over_limit;
    uint64_t atc_hits, atc_misses, atc_invalidations, prg_pending;
    uint64_t latency[16];       /* waits below 1, 2, 4, ... us */
};

/*
 * Opens, binds the caller's address space, and latches its PASID where there
 * are PASIDs.
 */
int sva_portal_open(struct sva_portal *p, const char *pci);
/* Ends all keys, unmaps, closes: in the order that the kernel wants. */
void sva_portal_close(struct sva_portal *p);
/* Ends all keys and forgets the PASID. */
void sva_portal_reset(struct sva_portal *p);
/* Latches a PASID; sva_portal_open() did it with the process's own. */
int sva_portal_latch(struct sva_portal *p, uint32_t pasid);
uint32_t sva_portal_status(struct sva_portal *p);

/*
 * A key for [start, start + len), len 0: the whole address space. access:
 * IBV_ACCESS_LOCAL_WRITE, REMOTE_WRITE, REMOTE_READ and REMOTE_ATOMIC.
 */
int sva_key_make(struct sva_portal *p, struct ibv_pd *pd, unsigned access,
                 void *start, size_t len, uint32_t *key);
int sva_key_destroy(struct sva_portal *p, uint32_t key);

void sva_counters(struct sva_portal *p, struct sva_counters *c);
int sva_key_counters(struct sva_portal *p, uint32_t key,
                     struct sva_counters *c);

#endif
