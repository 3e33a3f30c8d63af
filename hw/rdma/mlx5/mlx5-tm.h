/*
 * mlx5 tag matching: receive queues (XRQ) that put messages where they belong
 *
 * A message begins with a header of 16 bytes: kind and tag. The XRQ has a
 * list of tags with a mask and a buffer each, which work requests of its
 * command queue pair change. The first entry that matches takes the message:
 * an eager one lands in its buffer, of a rendezvous one only the place of the
 * data comes, which the device then reads itself.
 * (rdma-core: libibverbs/tm_types.h; providers/mlx5: qp.c, cq.c)
 *
 * SPDX-License-Identifier: GPL-2.0-or-later
 */
#ifndef HW_RDMA_MLX5_TM_H
#define HW_RDMA_MLX5_TM_H

#include "mlx5-core.h"
#include "mlx5-op.h"

/* What becomes of a message at an XRQ. */
enum Mlx5TmVerdict {
    MLX5_TM_NONE,                 /* no XRQ is there */
    MLX5_TM_NO_TAG,               /* into a receive WQE */
    MLX5_TM_UNEXPECTED,           /* likewise: no entry matches */
    MLX5_TM_MATCH,                /* into the buffer of an entry */
    MLX5_TM_MATCH_SW,             /* ... software does the rendezvous */
    MLX5_TM_RNDV,                 /* the device reads the data */
};

typedef struct Mlx5TmEntry {
    bool used;                    /* from APPEND to its last completion */
    bool listed;                  /* can match */
    bool parked;                  /* listed once software is in step */
    uint64_t seq;                 /* order of the list */
    uint64_t tag, mask;
    uint32_t key, len;
    uint64_t va;
} Mlx5TmEntry;

typedef struct Mlx5Tm {
    bool rndv;                    /* the device does the rendezvous */
    uint16_t next;                /* index that the next APPEND fills */
    uint16_t sw_cnt, hw_cnt;      /* unexpected messages: handled, sent up */
    uint64_t seq;
    int32_t n;                    /* entries: a power of two */
    Mlx5TmEntry *e;
} Mlx5Tm;

/* A rendezvous that waits for its turn or is on, of a queue pair. */
typedef struct Mlx5TmRead {
    uint32_t srqn;
    uint16_t index;
    Mlx5Sge from;                 /* the peer's memory */
    uint8_t head[MLX5_TM_HEAD];
    bool fin;                     /* data is there, the peer is told */
    QTAILQ_ENTRY(Mlx5TmRead) next;
} Mlx5TmRead;

/* The XRQ of @qp, or NULL. */
Mlx5Srq *mlx5_tm_of_qp(Mlx5Qp *qp);
/* A work request on the command queue pair; 0 or the syndrome. */
uint8_t mlx5_tm_wqe(Mlx5Qp *qp, const uint8_t *wqe, uint32_t len);

/*
 * A message for @srq of @peer: sets op->tm. What does not go to a receive WQE
 * has its destination then. MLX5_OP_WAIT: the header cannot be read yet.
 */
Mlx5OpResult mlx5_tm_classify(Mlx5Op *op, Mlx5Qp *peer, Mlx5Srq *srq);
/* It has its receive WQE: counts an unexpected one. */
void mlx5_tm_taken(Mlx5Op *op, Mlx5Srq *srq);
/* Fields of the receive CQE. */
void mlx5_tm_cqe(const Mlx5Op *op, Mlx5Cqe64 *cqe);
/* The bytes of a matched message have come: its entry is free. */
void mlx5_tm_done(Mlx5Op *op, Mlx5Qp *peer);
/* ... will not come: the entry is given back with a completion. */
void mlx5_tm_cancel(Mlx5Op *op, Mlx5Qp *peer);

/* The next rendezvous of @qp becomes qp->op. */
void mlx5_tm_start(Mlx5Qp *qp);
/* Such an operation has ended. */
void mlx5_tm_read_done(Mlx5Op *op);
/* All of them end; @tell: with a completion each. */
void mlx5_tm_flush(Mlx5Qp *qp, bool tell);

void mlx5_tm_free(Mlx5Srq *srq);
extern const VMStateDescription vmstate_mlx5_tm, vmstate_mlx5_tm_read;

#endif
