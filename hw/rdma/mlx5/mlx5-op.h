/*
 * mlx5: one work request in execution
 *
 * An operation is a plain structure: a page fault, a receiver that is not
 * ready or the end of a slice leave it as it stands, and whoever runs it next
 * goes on from @done. It holds no guest memory and no stack meanwhile.
 *
 * SPDX-License-Identifier: GPL-2.0-or-later
 */
#ifndef HW_RDMA_MLX5_OP_H
#define HW_RDMA_MLX5_OP_H

#include "mlx5-core.h"
#include "mlx5-dma.h"
#include "mlx5-odp.h"
#include "mlx5-wqe.h"

enum {
    MLX5_OP_MAX_SGE = 64,         /* more than fits a WQE of 1024 bytes */
    MLX5_GRH_LEN = 40,
    MLX5_TM_HEAD = 32,            /* bytes of tag matching and rendezvous */
};

typedef struct Mlx5Sge {
    uint32_t key;
    uint32_t len;
    uint64_t va;
} Mlx5Sge;

/* What the operation needs before it can go on. */
typedef enum Mlx5OpState {
    MLX5_OPS_START,               /* peer not looked up yet (or anew) */
    MLX5_OPS_COPY,                /* bound to its peer, bytes move */
    MLX5_OPS_FINISH,              /* bytes are there, completions are not */
} Mlx5OpState;

/* Why an operation cannot go on now; what sets it going again. */
typedef enum Mlx5OpWait {
    MLX5_WAIT_NONE,
    MLX5_WAIT_FAULT,              /* PAGE_FAULT_RESUME */
    MLX5_WAIT_RNR,                /* timer: receiver had no receive WQE */
    MLX5_WAIT_RETRY,              /* timer: peer did not answer */
    MLX5_WAIT_TURN,               /* the receiver is busy with another op */
    MLX5_WAIT_DMA,                /* the IOMMU suspended the access */
    MLX5_WAIT_PACE,               /* timer: its queue group's turn */
} Mlx5OpWait;

/* One end of the copy: bytes in the WQE itself or a list of keys. */
typedef struct Mlx5Side {
    bool remote;                  /* on the peer's HCA, checked by its rules */
    bool is_inline;               /* op->data instead of keys */
    uint8_t nsge, cur;            /* list length, element we are in */
    uint32_t off;                 /* bytes done of that element */
    uint32_t access;              /* Mlx5Access bits that it needs */
} Mlx5Side;

struct Mlx5Op {
    Mlx5Qp *qp;                   /* the requester */
    uint8_t opcode;               /* Mlx5WqeOpcode */
    uint8_t fm_ce_se;
    uint8_t state;                /* Mlx5OpState */
    uint8_t wait;                 /* Mlx5OpWait */
    uint8_t syndrome;             /* of the requester's CQE, 0 so far */
    uint16_t wqe_index;           /* basic block counter of the WQE */
    uint16_t wqe_bbs;             /* basic blocks it takes */
    uint32_t imm;                 /* as in the WQE, CPU order */

    /* Tag matching. */
    uint8_t tm;                   /* Mlx5TmVerdict */
    bool tm_own;                  /* the device's own: of a rendezvous */
    uint8_t tm_head[MLX5_TM_HEAD]; /* header of the message */

    /* Destination. */
    uint16_t dlid;
    uint32_t dqpn, qkey;          /* UD, DC */
    uint32_t xrc_srqn;
    uint64_t dc_key;              /* DC: the target's */
    bool mcast;                   /* UD: to a group; next member of it: */
    uint16_t mc_lid;
    uint32_t mc_id;
    uint16_t dci_stream;
    bool has_grh;                 /* UD: GRH lies in data[0..39] */
    uint8_t grh_left;             /* bytes of it still to be written */
    bool agent, agent_to_sm;      /* for a management agent of the device */
    uint8_t sl;
    uint16_t src_lid;             /* as the receiver's CQE tells */
    uint32_t src_qpn;

    /* The copy. */
    uint64_t len, done;           /* bytes of the message */
    struct Mlx5SigCopy *sig;      /* through signature keys, or NULL */
    bool sig_failed;              /* the requester's data had a bad one */
    Mlx5Side src, dst;
    Mlx5Sge local[MLX5_OP_MAX_SGE];
    Mlx5Sge remote[MLX5_OP_MAX_SGE]; /* the peer's: receive WQE or one rkey */
    uint8_t data[MLX5_WQE_MAX];   /* inline bytes */

    /* Atomics: executed once, then only the result travels. */
    uint64_t swap_add, compare, swap_add_mask, compare_mask;
    bool atomic_done;

    /* Bound to the peer while it executes there. */
    Mlx5Qp *peer;
    QLIST_ENTRY(Mlx5Op) on_peer;
    uint64_t peer_guid;           /* after load: to find peer again */
    uint32_t peer_qpn;
    bool has_recv;                /* a receive WQE of peer is ours */
    bool recv_is_srq;
    uint8_t dst_nrecv;            /* its scatter list's length */
    uint16_t recv_index;          /* its index, for the CQE */
    uint32_t recv_srqn;
    uint32_t remote_pd;           /* whose keys remote[] are: QP's or SRQ's */
    uint32_t recv_user_index;     /* the SRQ's, for XRC */
    uint32_t recv_cqn;            /* where the receive completes */

    /* Retries. */
    uint8_t rnr_left, retry_left;
    bool resp_booked;             /* in the responder's queue group */
    int64_t wake_at;              /* MLX5_WAIT_RNR, _RETRY, _PACE: virtual ns */
    QTAILQ_ENTRY(Mlx5Op) timed;   /* or on turn_of's list of waiters */
    Mlx5Qp *turn_of;

    Mlx5DmaWait dma;              /* MLX5_WAIT_DMA */
    Mlx5Waiter waiter;            /* MLX5_WAIT_FAULT */
    Mlx5Hca *fault_hca;           /* whose fault it is */
    bool fault_remote;            /* the fault was on the peer's side */
    bool fault_failed;            /* it was resumed with an error */
    bool lost;                    /* the peer left in mid-operation */
};

/* What running an operation led to. */
typedef enum Mlx5OpResult {
    MLX5_OP_DONE,                 /* finished, op->syndrome says how */
    MLX5_OP_GO,                   /* next state */
    MLX5_OP_AGAIN,                /* slice used up */
    MLX5_OP_WAIT,                 /* op->wait says for what */
} Mlx5OpResult;

static inline bool mlx5_opcode_is_send(uint8_t opcode)
{
    return opcode == MLX5_OP_SEND || opcode == MLX5_OP_SEND_IMM ||
           opcode == MLX5_OP_SEND_INVAL;
}

static inline bool mlx5_opcode_is_atomic(uint8_t opcode)
{
    return opcode == MLX5_OP_ATOMIC_CS || opcode == MLX5_OP_ATOMIC_FA ||
           opcode == MLX5_OP_ATOMIC_MASKED_CS ||
           opcode == MLX5_OP_ATOMIC_MASKED_FA;
}

/*
 * Reads the first @n bytes of a message that has not begun to move. Other
 * than MLX5_OP_GO: it waits or has failed, and begins anew.
 */
Mlx5OpResult mlx5_op_peek(Mlx5Op *op, uint8_t *head, uint32_t n);
/* Runs @op for at most *@budget bytes, which it counts down. */
Mlx5OpResult mlx5_op_run(Mlx5Op *op, uint64_t *budget);
/*
 * mlx5-transport.c: what happens at the peer before and after the copy.
 * begin() finds the peer, checks what it allows, takes its receive WQE and
 * sets the copy up; finish() completes there.
 */
Mlx5OpResult mlx5_transport_begin(Mlx5Op *op);
Mlx5OpResult mlx5_transport_finish(Mlx5Op *op);
/*
 * Memory at one end cannot be reached: @remote says which. Sets the
 * requester's syndrome and does what the service prescribes at the peer.
 */
Mlx5OpResult mlx5_transport_fail(Mlx5Op *op, bool remote);
/* Binds to @peer for the time of execution, and unbinds. */
void mlx5_op_bind(Mlx5Op *op, Mlx5Qp *peer);
void mlx5_op_unbind(Mlx5Op *op);
/* Stops @op wherever it waits and unbinds it from its peer. */
void mlx5_op_detach(Mlx5Op *op);

Mlx5Op *mlx5_op_new(Mlx5Qp *qp);
void mlx5_op_free(Mlx5Op *op);

/* The peer resets, errs or is destroyed; called for each op bound to it. */
void mlx5_op_lost_peer(Mlx5Op *op);

/*
 * Books @op's bytes in queue group @group of @h (0: none). true: it may go on;
 * false: it waits for its turn.
 */
bool mlx5_op_book(Mlx5Op *op, Mlx5Hca *h, uint32_t group);

/* After load: finds the peer again and waits on. */
void mlx5_op_relink(Mlx5Op *op);

/* A timer of @op's wait has passed or its turn has come: run it again. */
void mlx5_op_wake(Mlx5Op *op);

extern const VMStateDescription vmstate_mlx5_op;

#endif
