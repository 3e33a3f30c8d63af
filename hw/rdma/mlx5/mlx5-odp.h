/*
 * mlx5 on-demand paging: page-fault events and their resumption
 *
 * An operation that meets an absent page describes it and leaves a waiter;
 * PAGE_FAULT_RESUME wakes the waiter. Nothing else is held meanwhile.
 *
 * SPDX-License-Identifier: GPL-2.0-or-later
 */
#ifndef HW_RDMA_MLX5_ODP_H
#define HW_RDMA_MLX5_ODP_H

#include "mlx5-core.h"

/* Work queue types of a transport-scheme event. */
enum {
    MLX5_PF_RMP = 0,              /* receive from an SRQ or RMP */
    MLX5_PF_REQ_SEND_WRITE = 1,   /* requester: send or write */
    MLX5_PF_RESP = 2,             /* responder */
    MLX5_PF_REQ_READ_ATOMIC = 3,  /* requester: read or atomic response */
};

enum {
    MLX5_PF_PAGE_BITS = 12,       /* a page, as events count them */
    MLX5_PF_MAX_ALSO = 16,
};

/* More that the driver brings when it answers. */
typedef struct Mlx5FaultAlso {
    uint32_t key;
    uint64_t va;
    uint8_t log_piece;
} Mlx5FaultAlso;

typedef struct Mlx5FaultInfo {
    uint32_t key;                 /* root key and address (memory scheme) */
    uint64_t va;
    uint64_t len;                 /* bytes the operation still needs there */
    uint8_t log_piece;            /* log2 bytes of what is absent as one */
    bool is_write;                /* the access would write */
    /* Transport scheme. */
    bool rdma;                    /* remote address: sub_type 1, else a WQE */
    uint8_t wq_type;              /* MLX5_PF_* */
    uint32_t wqn;                 /* QPN, or SRQN for MLX5_PF_RMP */
    uint16_t wqe_index;
    uint32_t bytes_committed;     /* done of the WQE's message */
    uint32_t packet_len;
    uint32_t rdma_key;            /* as on the wire */
    uint64_t rdma_va;             /* where the operation starts, and its */
    uint32_t rdma_op_len;         /* length; bytes_committed of it are done */
    /* What else of the WQE is absent in large pieces. Not migrated. */
    unsigned n_also;
    Mlx5FaultAlso also[MLX5_PF_MAX_ALSO];
} Mlx5FaultInfo;

typedef struct Mlx5Waiter {
    /*
     * @error: the driver could not map the page. Called in a bottom half or
     * from the command interface, never from mlx5_odp_fault().
     */
    void (*wake)(struct Mlx5Waiter *w, bool error);
    uint64_t token;               /* of the fault waited for; 0: none */
    /* The fault is another's: try again, whatever its answer. */
    bool held;
    bool counted;                 /* its operation is in Mlx5OdpStats */
    QLIST_ENTRY(Mlx5Waiter) next;
} Mlx5Waiter;

void mlx5_odp_init(Mlx5Hca *h);
void mlx5_odp_fini(Mlx5Hca *h);
/* Forgets all faults without waking (the objects are going away). */
void mlx5_odp_destroy_all(Mlx5Hca *h);
/*
 * Raises a page fault, or waits for one that is pending for the same piece
 * with at least the same intent. @w is linked until woken or cancelled.
 * false: nobody listens for page faults; the access fails.
 */
bool mlx5_odp_fault(Mlx5Hca *h, const Mlx5FaultInfo *f, Mlx5Waiter *w);
void mlx5_odp_cancel(Mlx5Hca *h, Mlx5Waiter *w);
/* After load: @w (token from the stream) waits again. false: unknown. */
bool mlx5_odp_reattach(Mlx5Hca *h, Mlx5Waiter *w);
/* Counters for QMP, trace and tests. */
typedef struct Mlx5OdpStats {
    uint64_t operations;          /* that met an absent page, each once */
    uint64_t faults;              /* events raised */
    uint64_t joined;              /* waiters for a fault of others */
    uint64_t resumed, failed;     /* resumes without and with error */
    uint32_t pending, max_pending;
} Mlx5OdpStats;
const Mlx5OdpStats *mlx5_odp_stats(Mlx5Hca *h);

extern const VMStateDescription vmstate_mlx5_odp;   /* of Mlx5Hca */

#endif
