/*
 * mlx5 memory keys
 *
 * SPDX-License-Identifier: GPL-2.0-or-later
 */
#ifndef HW_RDMA_MLX5_MKEY_H
#define HW_RDMA_MLX5_MKEY_H

#include "mlx5-core.h"
#include "mlx5-xlt.h"

/* What an access needs; bits as in the mkey context (lr rr lw rw a). */
enum Mlx5Access {
    MLX5_ACC_LR     = 1 << 0,     /* local read (not checked when absent) */
    MLX5_ACC_LW     = 1 << 1,
    MLX5_ACC_RR     = 1 << 2,
    MLX5_ACC_RW     = 1 << 3,
    MLX5_ACC_ATOMIC = 1 << 4,
};

/* A stretch of memory that a work request names by key. */
typedef struct Mlx5MkeyReq {
    uint32_t key;                 /* lkey or rkey: index << 8 | variant */
    uint32_t pd;                  /* PD of the QP (or SRQ) that asks */
    uint32_t qpn;                 /* for type 2 memory windows */
    uint32_t access;              /* Mlx5Access bits, all needed */
    uint64_t va;                  /* address as the work request gives it */
    uint64_t len;                 /* bytes from va; 0 is allowed: OK, len 0 */
} Mlx5MkeyReq;

typedef enum Mlx5MkeyResult {
    MLX5_MKEY_OK,                 /* addr, len: first run of the stretch */
    MLX5_MKEY_FAULT,              /* a page is absent: see fault_* */
    MLX5_MKEY_ERROR,              /* bad key, rights, bounds, PD or depth */
    MLX5_MKEY_NULL,               /* null mkey: zeroes, or to throw away */
} Mlx5MkeyResult;

typedef struct Mlx5MkeyRun {
    uint64_t addr;                /* DMA address */
    uint64_t len;                 /* bytes; neighbouring pages are one run */
    Mlx5DmaVia via;               /* who accesses it, by the last key */
    uint32_t fault_key;           /* MLX5_MKEY_FAULT: the root key, ... */
    uint64_t fault_va;            /* ... and the address within it */
    uint8_t fault_log;            /* log2 bytes of the piece that is absent */
} Mlx5MkeyRun;

/*
 * Looks @req up from its key down to DMA addresses: checks index and
 * variant, free state, PD, rights and bounds, walks KLM/KSM indirection up
 * to the depth that the caps advertise. Never blocks, takes no hold.
 */
Mlx5MkeyResult mlx5_mkey_translate(Mlx5Hca *h, const Mlx5MkeyReq *req,
                                   Mlx5MkeyRun *run);
/* Checks all of [va, va+len) for rights and bounds of the top key only. */
bool mlx5_mkey_check(Mlx5Hca *h, const Mlx5MkeyReq *req);

/* Local invalidate or send-with-invalidate. false: not allowed. */
bool mlx5_mkey_invalidate(Mlx5Hca *h, uint32_t key, uint32_t pd, uint32_t qpn,
                          bool remote);

/*
 * A UMR work request: @wqe holds @len bytes from the control segment on,
 * @mkey is the control segment's key. The translation list comes inline or
 * from a data segment. Also memory-window binds, which are UMRs. Returns 0
 * or the CQE syndrome.
 *
 * What a queue pair may do with an UMR is its context's business: the
 * driver's UMR service reaches keys of every PD and may give them another
 * one, and only queue pairs with fast registration enabled (kernel users) may
 * write lists of DMA addresses; others bind keys to keys (KLM).
 */
typedef struct Mlx5UmrCtx {
    uint32_t pd, qpn;
    uint32_t mkey;
    bool service;                 /* service type MLX5_ST_REG_UMR */
    bool fre;                     /* qpc.fre: fast registration enabled */
} Mlx5UmrCtx;
uint8_t mlx5_umr_execute(Mlx5Hca *h, const Mlx5UmrCtx *ctx,
                         const uint8_t *wqe, uint32_t len);

/* Access modes of the mkey context. */
enum Mlx5MkeyMode {
    MLX5_MKEY_PA      = 0,        /* the address is the DMA address */
    MLX5_MKEY_MTT     = 1,        /* pages */
    MLX5_MKEY_KLM     = 2,        /* pieces of other keys, any lengths */
    MLX5_MKEY_KSM     = 3,        /* pieces of other keys, one length */
    MLX5_MKEY_MEMIC   = 5,        /* device memory, start: offset in BAR0 */
};

/* Moves @mk to another PD, which then cannot go away under it. */
void mlx5_mkey_set_pd(Mlx5Hca *h, Mlx5Mkey *mk, uint32_t pd);

struct Mlx5Mkey {
    Mlx5Obj obj;                  /* id: index, key bits 31:8 */
    uint8_t variant;              /* key bits 7:0 */
    uint8_t mode;                 /* Mlx5MkeyMode */
    uint8_t access;               /* Mlx5Access bits */
    uint8_t log_page;             /* log2 of a page or KSM entry in bytes */
    bool free;                    /* not usable until an UMR enables it */
    bool umr_en;                  /* UMRs may change it */
    bool en_rinval;               /* remote peers may invalidate it */
    bool length64;                /* all of the address space */
    uint32_t pd;
    bool pd_held;                 /* the PD counts this key */
    uint32_t qpn;                 /* the only QP that may use it, or all ones */
    uint64_t start, len;
    /* Of an SVA portal: whose DMA it does, mode PA. */
    uint8_t portal;               /* function number, 0: none */
    bool dead;                    /* has ended, its index rests */
    bool pasid_valid;
    uint32_t pasid;
    Mlx5Xlt xlt;
    Mlx5FaultStats *faults;       /* NULL: nothing to count so far */
    /* Where a walk of the KLM list ended: entry and its offset. */
    uint32_t klm_hint;
    uint64_t klm_hint_off;
    Mlx5UmemRefs umems;           /* .mem: its pages are this UMEM's */
    struct Mlx5SigKey *sig;       /* NULL: made without a signature part */
    uint8_t mkc[MLX5_BYTES(mkc)]; /* as created and changed, for queries */
};

enum {
    MLX5_MKEY_ANY_QPN = 0xffffff,
    MLX5_MKEY_LOG_MAX_XLT = 27,   /* octowords of one key, log2 */
    MLX5_MKEY_FIRST = 16,         /* lower indexes are special keys */
};

typedef struct Mlx5MkeyState {
    uint64_t xlt_bytes;           /* translation tables of all keys */
    uint32_t portal_keys[1 + MLX5_MAX_PORTALS]; /* that live */
    GQueue resting;               /* dead Mlx5Mkey, oldest first */
    uint8_t *variants;            /* of portals' keys, last one by index */
    uint32_t nvariants;
    Mlx5Table psvs;               /* mlx5-sig.c */
    uint32_t nsigs;               /* keys that have a signature part */
} Mlx5MkeyState;

/* The key's object whatever its state; NULL for special and unused ones. */
static inline Mlx5Mkey *mlx5_mkey_find(Mlx5Hca *h, uint32_t key)
{
    return (Mlx5Mkey *)mlx5_table_get(&h->mkeys, key >> 8);
}

/*
 * The signature descriptor that is in force for @key, or NULL. It stays until
 * the next command or work request.
 */
const struct Mlx5Bsf *mlx5_mkey_bsf(Mlx5Hca *h, uint32_t key);

void mlx5_mkey_init(Mlx5Hca *h);
void mlx5_mkey_fini(Mlx5Hca *h);
void mlx5_mkey_destroy_all(Mlx5Hca *h);

/* Keys that QUERY_SPECIAL_CONTEXTS tells, and those that have a meaning. */
enum {
    MLX5_RESERVED_LKEY = 0,       /* grants nothing: not advertised */
    MLX5_TERMINATE_KEY = 0x100,   /* ends a scatter list */
    MLX5_NULL_KEY = 0x200,        /* zeroes to read, writes thrown away */
    MLX5_DUMP_FILL_KEY = 0x300,   /* likewise */
    MLX5_STRIDE_KEY = 0x400,      /* a KLM list's head: strided blocks */
};
uint32_t mlx5_mkey_resd_lkey(Mlx5Hca *h);
uint32_t mlx5_mkey_null(Mlx5Hca *h);
uint32_t mlx5_mkey_dump_fill(Mlx5Hca *h);

extern const VMStateDescription vmstate_mlx5_mkeys; /* of Mlx5Hca */

#endif
