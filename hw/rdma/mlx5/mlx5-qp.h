/*
 * mlx5 queue pairs and shared receive queues
 *
 * SPDX-License-Identifier: GPL-2.0-or-later
 */
#ifndef HW_RDMA_MLX5_QP_H
#define HW_RDMA_MLX5_QP_H

#include "mlx5-core.h"
#include "mlx5-dma.h"
#include "mlx5-caps.h"
#include "mlx5-op.h"

enum {
    MLX5_FIRST_QPN = 0x40,        /* below: special queue pairs */
};

enum Mlx5QpStateNr {
    MLX5_QPS_RST = 0,
    MLX5_QPS_INIT = 1,
    MLX5_QPS_RTR = 2,
    MLX5_QPS_RTS = 3,
    MLX5_QPS_SQER = 4,
    MLX5_QPS_SQD = 5,
    MLX5_QPS_ERR = 6,
};

enum Mlx5QpService {
    MLX5_ST_RC = 0,
    MLX5_ST_UC = 1,
    MLX5_ST_UD = 2,
    MLX5_ST_XRC = 3,
    MLX5_ST_DCI = 5,
    MLX5_ST_DCT = 6,              /* made by CREATE_DCT */
    MLX5_ST_QP0 = 7,
    MLX5_ST_QP1 = 8,
    MLX5_ST_REG_UMR = 12,
    MLX5_ST_SQ = 0x80,            /* made by CREATE_SQ; a number of ours */
};

enum Mlx5RqType {
    MLX5_RQ_OWN = 0,
    MLX5_RQ_SRQ = 1,
    MLX5_RQ_NONE = 3,
};

struct Mlx5Qp {
    Mlx5Obj obj;                  /* id: QPN */
    Mlx5Hca *hca;
    /*
     * The context as the driver wrote it, fields replaced by each transition
     * as the driver's masks say; what is not hot is read from here.
     */
    uint8_t qpc[MLX5_BYTES(qpc)];
    uint8_t st;                   /* Mlx5QpService */
    uint8_t state;                /* Mlx5QpStateNr */
    uint8_t rq_type;              /* Mlx5RqType */
    uint32_t pd, uar_page, user_index;
    uint64_t dbr_addr;            /* {RQ, SQ} counters, DMA address; 0: none */
    uint32_t cqn_snd, cqn_rcv, srqn;
    uint32_t remote_qpn;          /* connected services */
    uint16_t dlid;
    uint32_t qkey;
    uint64_t dc_key;              /* DCT: what an initiator must know */

    Mlx5UmemRefs umems;
    uint32_t nmcgs;               /* multicast groups it is attached to */
    /* Queue groups of requests and of answers to reads; 0: none. */
    uint32_t qos_req, qos_resp;
    uint32_t rate_index;          /* SQ: in the rate table; 0: none */
    uint8_t sqc[MLX5_AT(sqc, wq)]; /* SQ: the context as created */

    /* Queue memory: receive queue first, then the send queue. */
    Mlx5Buf buf;
    uint32_t rq_entries;          /* receive WQEs, power of two or 0 */
    uint32_t rq_stride;           /* bytes of one */
    uint32_t sq_bbs;              /* send queue's basic blocks, or 0 */
    uint64_t sq_off;              /* bytes before the send queue */

    Mlx5FaultStats *faults;       /* NULL: nothing to count so far */

    uint16_t sq_pi, sq_ci;        /* basic blocks posted and completed */
    uint16_t rq_pi, rq_ci;        /* receive WQEs posted and taken */

    Mlx5Op *op;                   /* the send WQE in execution, or NULL */
    int32_t nops;                 /* 1 when there is one, for migration */
    QLIST_HEAD(, Mlx5Op) rx_ops;  /* operations of others bound to us */
    bool rx_busy;                 /* our receive queue serves an operation */
    bool sq_busy;                 /* a send WQE is being worked on right now */
    bool bf_mode;                 /* its doorbells are followed by WQEs */
    const uint8_t *bf;            /* ... one that is at hand now, or NULL */
    bool orphan;                  /* a shared receive WQE was taken for a */
    uint16_t orphan_index;        /* message that never came to its end */
    uint32_t orphan_cqn, orphan_user_index;
    bool queued;                  /* on the HCA's run queue */
    bool err_polled;              /* ERR: receive posts are looked for */
    uint8_t dctc[MLX5_BYTES(dctc)]; /* DCT: the context as created */
    uint32_t dc_violations;       /* DCT: packets with another key */
    bool dc_armed;                /* DCT: the next of them is an event */
    uint16_t dci_failed[1 << MLX5_LOG_MAX_DCI_ERRORED]; /* DCI: streams that */
    uint16_t dci_nfailed;                               /* had an error */
    QTAILQ_ENTRY(Mlx5Qp) run;
    QTAILQ_ENTRY(Mlx5Qp) err;
    QTAILQ_HEAD(, Mlx5Op) turn;   /* operations that wait for rx_busy */
    QTAILQ_HEAD(, Mlx5TmRead) tm_reads; /* mlx5-tm.c: rendezvous */
};

enum Mlx5SrqKind {
    MLX5_SRQK_RMP,                /* what a verbs SRQ is with ISSI 1 */
    MLX5_SRQK_XRC,
    MLX5_SRQK_SRQ,                /* CREATE_SRQ, ISSI 0 */
    MLX5_SRQK_XRQ,                /* with or without tag matching */
};

/* The queue's own CQ is where receives complete. */
static inline bool mlx5_srq_has_cq(uint8_t kind)
{
    return kind == MLX5_SRQK_XRC || kind == MLX5_SRQK_XRQ;
}

struct Mlx5Srq {
    Mlx5Obj obj;                  /* id: SRQN or RMPN */
    uint8_t kind;                 /* Mlx5SrqKind */
    uint8_t state;                /* 0 good, 1 error */
    uint32_t pd, xrcd, cqn, user_index;
    Mlx5Buf buf;
    Mlx5UmemRefs umems;
    uint32_t entries, stride;
    uint64_t dbr_addr;            /* counter of WQEs posted, 16 bits */
    uint16_t pi, ci;              /* posted, taken */
    uint16_t head;                /* index of the next WQE of the list */
    uint16_t lwm;                 /* limit event armed when not 0 */
    uint8_t raw[MLX5_BYTES(srqc)]; /* context as created (RMP, XRQ: its WQ) */
    struct Mlx5Tm *tm;            /* XRQ: tag matching, or NULL */
};

/* Run queue, timers and counters of an HCA's queue pairs. */
typedef struct Mlx5QpState {
    Mlx5Hca *hca;
    QTAILQ_HEAD(, Mlx5Qp) run;
    QTAILQ_HEAD(, Mlx5Qp) err;    /* in ERR, receive posts are polled for */
    QTAILQ_HEAD(, Mlx5Op) timed;  /* sorted by wake_at */
    QEMUTimer *timer;             /* for the first of timed */
    QEMUTimer *err_timer;
    int64_t err_period;
    QEMUBH *bh;
    bool running;                 /* a slice is on: do not nest */
    bool relink;                  /* loaded: operations look for their peers */
    VMChangeStateEntry *vmstate;
    GPtrArray *free_ops;          /* a few spare Mlx5Op */
    uint32_t qp0, qp1;            /* QPNs of the special queue pairs, or 0 */
    uint32_t half_uar, half;      /* first half of a split CQ doorbell */
    /* A BlueFlame register that is being written, for a queue of CREATE_SQ: */
    uint32_t bf_uar, bf_off;      /* which */
    uint32_t bf_len;              /* bytes so far; 0: none is */
    bool bf_wait;                 /* the doorbell waits for the rest */
    uint8_t bf_bytes[256];
    QEMUTimer *bf_timer;          /* no more came */
} Mlx5QpState;

/* A queue pair without a number yet, for the owner @uid. */
Mlx5Qp *mlx5_qp_new(Mlx5Hca *h, uint16_t uid);
/*
 * Reads qp->qpc, gives @qp a number and holds what it rests on. false: no
 * number is free; @qp is gone.
 */
bool mlx5_qp_add(Mlx5Qp *qp);
/* Hot fields and queue geometry from the context. false: not possible. */
bool mlx5_qp_setup(Mlx5Qp *qp);
/* ... and what the data path reads often and transitions change. */
void mlx5_qp_refresh(Mlx5Qp *qp);
void mlx5_qp_free(Mlx5Qp *qp);

/* mlx5-dct.c: dynamically connected transport. */
/* Whether DC target @dct takes a packet with @key; counts those with none. */
bool mlx5_dct_admits(Mlx5Qp *dct, uint64_t key);
bool mlx5_dci_stream_failed(const Mlx5Qp *qp, uint16_t stream);
/* A request of @stream failed. false: that is an error of the queue pair. */
bool mlx5_dci_stream_fail(Mlx5Qp *qp, uint16_t stream);
void mlx5_dci_stream_reset(Mlx5Qp *qp, uint16_t stream);

void mlx5_qp_init(Mlx5Hca *h);
void mlx5_qp_fini(Mlx5Hca *h);
void mlx5_qp_destroy_all(Mlx5Hca *h);
void mlx5_srq_destroy_all(Mlx5Hca *h);

static inline Mlx5Qp *mlx5_qp_find(Mlx5Hca *h, uint32_t qpn)
{
    return (Mlx5Qp *)mlx5_table_get(&h->qps, qpn);
}

static inline Mlx5Srq *mlx5_srq_find(Mlx5Hca *h, uint32_t srqn)
{
    return (Mlx5Srq *)mlx5_table_get(&h->srqs, srqn);
}

/* mlx5-sched.c: who runs when. */
bool mlx5_sched_in_slice(void);             /* of any HCA */
void mlx5_sched_qp(Mlx5Qp *qp);             /* as soon as possible */
void mlx5_sched_now(Mlx5Qp *qp);            /* from a doorbell: at once */
void mlx5_sched_resume(Mlx5Qp *qp);         /* its access may go on */
void mlx5_sched_forget(Mlx5Qp *qp);
void mlx5_sched_at(Mlx5Op *op, int64_t when);
void mlx5_sched_untimed(Mlx5Op *op);
void mlx5_sched_poll_err(Mlx5Qp *qp);

/* mlx5-sq.c: the send queue. */
/* Doorbell: takes the producer counter from the doorbell record, runs. */
void mlx5_sq_doorbell(Mlx5Qp *qp);
/*
 * The same with the newest WQE at hand, in multiples of 64 bytes, which are
 * read before this returns.
 */
void mlx5_sq_doorbell_bf(Mlx5Qp *qp, const uint8_t *wqe);
/* Runs send WQEs for at most *budget bytes; true: there is more to do. */
bool mlx5_sq_run(Mlx5Qp *qp, uint64_t *budget);
/* ERR and SQER: completes everything posted with the flush syndrome. */
void mlx5_sq_flush(Mlx5Qp *qp);
/* The operation in execution ended: its CQE, and on to the next WQE. */
void mlx5_sq_complete(Mlx5Op *op);

/* mlx5-rq.c: receive WQEs of queue pairs and shared receive queues. */
typedef enum Mlx5RqResult {
    MLX5_RQ_OK,
    MLX5_RQ_EMPTY,
    MLX5_RQ_ERROR,                /* malformed or unreadable */
} Mlx5RqResult;
/* Takes the next receive WQE of @qp for @op: op->remote[], op->recv_*. */
Mlx5RqResult mlx5_rq_take(Mlx5Qp *qp, Mlx5Op *op);
/*
 * Completes the receive WQE that @op took. @syndrome 0: success, with the
 * CQE opcode @cqe_opcode; otherwise an error completion.
 */
void mlx5_rq_complete(Mlx5Qp *qp, Mlx5Op *op, uint8_t cqe_opcode,
                      uint8_t syndrome);
/*
 * The message that @op took a receive WQE for will not come to its end. The
 * WQE serves the next message, or is flushed when @qp errs.
 */
void mlx5_rq_abort(Mlx5Qp *qp, Mlx5Op *op);
/* ERR: completes all posted receive WQEs with the flush syndrome. */
void mlx5_rq_flush(Mlx5Qp *qp);

/* mlx5-doorbell.c: a doorbell that waits for a WQE waits no longer. */
void mlx5_bf_flush(Mlx5Hca *h);

/* mlx5-qp.c: the state machine. */
void mlx5_qp_reset(Mlx5Qp *qp);
/* Into queue groups @req and @resp (0: none), out of those before. */
void mlx5_qp_set_groups(Mlx5Qp *qp, uint32_t req, uint32_t resp);
/* Moves to ERR (event @type unless 0), flushes, lets bound ops go. */
void mlx5_qp_to_error(Mlx5Qp *qp, uint8_t event);
/* Operations bound to @qp lose it; those with a receive WQE flush it. */
void mlx5_qp_unbind_rx(Mlx5Qp *qp, bool flush);

/* Requests are acknowledged and retried. */
static inline bool mlx5_qp_reliable(const Mlx5Qp *qp)
{
    return qp->st == MLX5_ST_RC || qp->st == MLX5_ST_XRC ||
           qp->st == MLX5_ST_DCI || qp->st == MLX5_ST_DCT;
}

static inline bool mlx5_qp_can_receive(const Mlx5Qp *qp)
{
    return qp->state == MLX5_QPS_RTR || qp->state == MLX5_QPS_RTS ||
           qp->state == MLX5_QPS_SQD || qp->state == MLX5_QPS_SQER;
}

/* The QPN that packets of @qp carry as their source. */
uint32_t mlx5_qp_wire_qpn(const Mlx5Qp *qp);

/*
 * mlx5-gsi.c: a reply of a management agent at (@slid, @src_qpn, QP 0 or 1)
 * to whoever of @h sent as @dst_qpn. Lost when there is no receive WQE.
 */
void mlx5_mad_deliver(Mlx5Hca *h, uint16_t slid, uint32_t src_qpn,
                      uint32_t dst_qpn, const uint8_t mad[256]);

extern const VMStateDescription vmstate_mlx5_qps, vmstate_mlx5_srqs;
/* VMState roots: of Mlx5Hca */

#endif
