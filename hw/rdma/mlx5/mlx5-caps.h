/*
 * mlx5 capabilities: limits that other modules keep to
 *
 * SPDX-License-Identifier: GPL-2.0-or-later
 */
#ifndef HW_RDMA_MLX5_CAPS_H
#define HW_RDMA_MLX5_CAPS_H

#include "mlx5-cmd.h"

/* log2 of how many there can be; what QUERY_HCA_CAP tells. */
enum {
    MLX5_LOG_MAX_QP         = 18,
    MLX5_LOG_MAX_QP_SZ      = 15,
    MLX5_LOG_MAX_SQ         = 14, /* of CREATE_SQ */
    MLX5_LOG_MAX_SRQ        = 16,
    MLX5_LOG_MAX_SRQ_SZ     = 15,
    MLX5_LOG_MAX_XRQ        = 16, /* they are numbered with the SRQs */
    MLX5_LOG_MAX_TM_LIST    = 7,  /* tags of an XRQ */
    MLX5_LOG_MAX_CQ         = 18,
    MLX5_LOG_MAX_CQ_SZ      = 22,
    MLX5_LOG_MAX_EQ         = 6,
    MLX5_LOG_MAX_EQ_SZ      = 22,
    MLX5_LOG_MAX_MKEY       = 20,
    MLX5_LOG_MAX_PD         = 16,
    MLX5_LOG_MAX_XRCD       = 16,
    MLX5_LOG_MAX_TD         = 16,
    MLX5_LOG_MAX_MSG        = 30,
    MLX5_LOG_MAX_DCI_STREAMS = 4, /* of a DC initiator, and how many of them */
    MLX5_LOG_MAX_DCI_ERRORED = 4, /* may have had an error */
    MLX5_LOG_MAX_MCG        = 10, /* multicast groups, as the subnet has */
    MLX5_MAX_QP_MCG         = 240, /* queue pairs of an HCA in one of them */
    MLX5_MAX_MCG_MEMBERS    = 16384,
    MLX5_LOG_MAX_RA_RES     = 4,  /* reads and atomics outstanding, RC */
    MLX5_LOG_MAX_RA_REQ     = 4,
    MLX5_LOG_MAX_KLM_LIST   = 18, /* entries of an indirect key */
    MLX5_MAX_INDIRECTION    = 4,  /* keys below a key */
    MLX5_MAX_WQE_SZ_SQ      = 1024,
    MLX5_MAX_WQE_SZ_RQ      = 512,
    MLX5_MAX_Q_COUNTERS     = 256,
    MLX5_LOG_MAX_UCTX       = 14, /* user contexts (DEVX) */
    MLX5_LOG_MAX_UMEM       = 16,
    MLX5_GID_TABLE_SIZE     = 8,
    MLX5_MAX_FUNCTIONS      = 8,  /* HCAs in one slot: ports of one card */
    MLX5_PKEY_TABLE_SIZE    = 128,
    MLX5_CORE_CLOCK_KHZ     = 1000000, /* mlx5_timestamp() */
};

/* Capability types that have a table here. */
enum Mlx5CapType {
    MLX5_CAP_GENERAL   = 0x00,
    MLX5_CAP_ODP       = 0x02,
    MLX5_CAP_ATOMIC    = 0x03,
    MLX5_CAP_FLOW      = 0x07,
    MLX5_CAP_QOS       = 0x0c,
    MLX5_CAP_DEV_MEM   = 0x0f,
    MLX5_CAP_GENERAL_2 = 0x20,
};

void mlx5_caps_init(Mlx5Hca *h);
void mlx5_caps_fini(Mlx5Hca *h);
/* Current capabilities as after power-up. */
void mlx5_caps_reset(Mlx5Hca *h);

/* What the driver has set. */
unsigned mlx5_caps_uar_shift(Mlx5Hca *h);   /* log2 of 4 KiB UARs a page */
bool mlx5_caps_mem_page_fault(Mlx5Hca *h);  /* memory scheme chosen */
/* 8-byte atomics work on the host's byte order, not on big endian. */
bool mlx5_caps_atomic_host_endian(Mlx5Hca *h);
unsigned mlx5_caps_log_max_qp(Mlx5Hca *h);

extern const VMStateDescription vmstate_mlx5_caps;   /* of Mlx5Hca */

#endif
