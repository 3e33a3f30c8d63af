/*
 * mlx5 completion queues
 *
 * SPDX-License-Identifier: GPL-2.0-or-later
 */
#ifndef HW_RDMA_MLX5_CQ_H
#define HW_RDMA_MLX5_CQ_H

#include "mlx5-core.h"
#include "mlx5-dma.h"

/* CQE opcodes (mlx5 driver: device.h). */
enum Mlx5CqeOpcode {
    MLX5_CQE_REQ             = 0x0,
    MLX5_CQE_RESP_WR_IMM     = 0x1,
    MLX5_CQE_RESP_SEND       = 0x2,
    MLX5_CQE_RESP_SEND_IMM   = 0x3,
    MLX5_CQE_RESP_SEND_INV   = 0x4,
    MLX5_CQE_RESIZE_CQ       = 0x5,
    MLX5_CQE_NO_PACKET       = 0x6,
    MLX5_CQE_SIG_ERR         = 0xc,
    MLX5_CQE_REQ_ERR         = 0xd,
    MLX5_CQE_RESP_ERR        = 0xe,
    MLX5_CQE_INVALID         = 0xf,
};

/* Syndromes of error CQEs (mlx5 driver: device.h). */
enum Mlx5CqeSyndrome {
    MLX5_SYN_NONE            = 0x00,
    MLX5_SYN_LOCAL_LENGTH    = 0x01,
    MLX5_SYN_LOCAL_QP_OP     = 0x02,
    MLX5_SYN_LOCAL_PROT      = 0x04,
    MLX5_SYN_WR_FLUSH        = 0x05,
    MLX5_SYN_MW_BIND         = 0x06,
    MLX5_SYN_BAD_RESP        = 0x10,
    MLX5_SYN_LOCAL_ACCESS    = 0x11,
    MLX5_SYN_REMOTE_INVAL    = 0x12,
    MLX5_SYN_REMOTE_ACCESS   = 0x13,
    MLX5_SYN_REMOTE_OP       = 0x14,
    MLX5_SYN_RETRY_EXC       = 0x15,
    MLX5_SYN_RNR_RETRY_EXC   = 0x16,
    MLX5_SYN_REMOTE_ABORTED  = 0x22,
};

enum {
    MLX5_CQE_SIZE = 64,
    MLX5_CQE_COMP_MAX = 64,       /* CQEs of a compressed session */
};

typedef struct Mlx5Mini Mlx5Mini;

/* Context's status field. */
enum {
    MLX5_CQ_STATUS_OK       = 0x0,
    MLX5_CQ_STATUS_OVERFLOW = 0x9,
    MLX5_CQ_STATUS_WRITE    = 0xa, /* the queue's memory refused a CQE */
};

/* Syndromes of a CQ-error event. */
enum {
    MLX5_CQ_ERR_OVERRUN     = 1,
    MLX5_CQ_ERR_ACCESS      = 2,
};

struct Mlx5Cq {
    Mlx5Obj obj;
    Mlx5Hca *hca;
    Mlx5Buf buf;
    Mlx5UmemRefs umems;
    uint64_t dbr_addr;            /* doorbell record: {ci, arm}, DMA address */
    uint32_t eqn;
    uint32_t uar_page;
    uint8_t log_size;             /* log2 of the CQEs */
    uint8_t cqe_sz;               /* 0: 64 B, 1: 128 B */
    bool oi;                      /* ignore overruns */
    uint8_t status;               /* context's status: 0 ok, 9 overflow, ... */
    uint32_t pi;                  /* producer counter, free running */
    uint32_t ci;                  /* last consumer counter we know of */
    uint32_t solicited_pi;        /* pi after the last solicited or error CQE */
    uint32_t notified_pi;         /* pi at the last completion event */
    uint8_t armed;                /* 0 no, 1 any, 2 solicited or error only */
    uint32_t arm_sn;
    uint16_t period, max_count;   /* moderation: us, completions */
    bool event_due;               /* an event waits for the moderation timer */
    QEMUTimer *timer;             /* moderation; made when first needed */
    uint8_t mini_format;          /* of compressed CQEs, as in the context */
    Mlx5Mini *mini;               /* NULL: none are compressed */
    uint8_t raw[64];              /* context as created, for QUERY_CQ */
};

Mlx5Cq *mlx5_cq_find(Mlx5Hca *h, uint32_t cqn);
/*
 * Posts one 64-byte CQE; owner bit and, for 128-byte CQEs, the place are
 * filled in here. @solicited: counts for an arm of solicited completions
 * only (error CQEs always do). false: the CQ is in error or has overrun; a
 * CQ-error event was sent and the caller moves its QP to error.
 */
bool mlx5_cq_post(Mlx5Hca *h, Mlx5Cq *cq, const uint8_t cqe[64],
                  bool solicited);
/* Writes 64 bytes to slot @index (free running); @cqe: sets the owner bit. */
bool mlx5_cq_write(Mlx5Cq *cq, uint32_t index, const uint8_t b[64], bool cqe);
/* @n CQEs have been written; events as they are due. */
void mlx5_cq_advance(Mlx5Cq *cq, uint32_t n, bool solicited);
void mlx5_cq_fail(Mlx5Cq *cq, uint8_t status, uint8_t syndrome);

/* mlx5-minicqe.c: compressed CQEs. */
void mlx5_mini_new(Mlx5Cq *cq);
void mlx5_mini_free(Mlx5Cq *cq);
/* CQEs that wait for the end of the slice. */
uint32_t mlx5_mini_pending(const Mlx5Cq *cq);
/* Keeps the CQE back until then. false: not this one. */
bool mlx5_mini_take(Mlx5Cq *cq, const uint8_t cqe[64], bool solicited);
/* Writes what waits. false: the CQ is in error. */
bool mlx5_mini_flush(Mlx5Cq *cq);
void mlx5_mini_flush_all(void);

/* CQ doorbell in a UAR page (offset 0x20, 8 bytes big endian). */
void mlx5_cq_doorbell(Mlx5Hca *h, uint64_t value);
void mlx5_cq_init(Mlx5Hca *h);
void mlx5_cq_fini(Mlx5Hca *h);
void mlx5_cq_destroy_all(Mlx5Hca *h);

extern const VMStateDescription vmstate_mlx5_cqs;   /* of Mlx5Hca */

#endif
