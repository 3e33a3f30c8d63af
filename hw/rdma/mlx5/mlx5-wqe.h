/*
 * mlx5 work requests and completions as they lie in guest memory
 *
 * Big endian. Member names are those of the Linux driver's structures
 * (include/linux/mlx5/qp.h and device.h), against which a test compares
 * every offset.
 *
 * SPDX-License-Identifier: GPL-2.0-or-later
 */
#ifndef HW_RDMA_MLX5_WQE_H
#define HW_RDMA_MLX5_WQE_H

#include "qemu/compiler.h"

enum {
    MLX5_WQE_BB         = 64,     /* send queue basic block, bytes */
    MLX5_WQE_DS         = 16,     /* unit of a WQE's size, bytes */
    MLX5_WQE_MAX        = 1024,   /* largest send WQE, bytes */
    MLX5_INLINE_SEG     = 1u << 31,
    MLX5_EXTENDED_UD_AV = 1u << 31,
};

enum Mlx5WqeOpcode {
    MLX5_OP_NOP              = 0x00,
    MLX5_OP_SEND_INVAL       = 0x01,
    MLX5_OP_RDMA_WRITE       = 0x08,
    MLX5_OP_RDMA_WRITE_IMM   = 0x09,
    MLX5_OP_SEND             = 0x0a,
    MLX5_OP_SEND_IMM         = 0x0b,
    MLX5_OP_LSO              = 0x0e,
    MLX5_OP_RDMA_READ        = 0x10,
    MLX5_OP_ATOMIC_CS        = 0x11,
    MLX5_OP_ATOMIC_FA        = 0x12,
    MLX5_OP_ATOMIC_MASKED_CS = 0x14,
    MLX5_OP_ATOMIC_MASKED_FA = 0x15,
    MLX5_OP_SET_PSV          = 0x20,
    MLX5_OP_UMR              = 0x25,
    MLX5_OP_TAG_MATCHING     = 0x28,
};

/* fm_ce_se of the control segment. */
enum {
    MLX5_CTRL_SOLICITED      = 1 << 1,
    MLX5_CTRL_CQ_UPDATE      = 2 << 2,  /* a completion is wanted */
};

typedef struct QEMU_PACKED Mlx5WqeCtrl {
    uint32_t opmod_idx_opcode;    /* opmod 31:24, index 23:8, opcode 7:0 */
    uint32_t qpn_ds;              /* QPN 31:8, size in 16 bytes 5:0 */
    uint8_t signature;
    uint16_t dci_stream;
    uint8_t fm_ce_se;
    uint32_t imm;                 /* immediate, key to invalidate or mkey */
} Mlx5WqeCtrl;

typedef struct QEMU_PACKED Mlx5WqeRaddr {
    uint64_t raddr;
    uint32_t rkey;
    uint32_t reserved;
} Mlx5WqeRaddr;

typedef struct QEMU_PACKED Mlx5WqeAtomic {
    uint64_t swap_add;
    uint64_t compare;
} Mlx5WqeAtomic;

typedef struct QEMU_PACKED Mlx5WqeMaskedAtomic {
    uint64_t swap_add;
    uint64_t compare;
    uint64_t swap_add_mask;
    uint64_t compare_mask;
} Mlx5WqeMaskedAtomic;

typedef struct QEMU_PACKED Mlx5WqeData {
    uint32_t byte_count;
    uint32_t lkey;
    uint64_t addr;
} Mlx5WqeData;

/* Address vector; the first 16 bytes alone when EXTENDED_UD_AV is clear. */
typedef struct QEMU_PACKED Mlx5WqeAv {
    uint32_t qkey;                /* or the upper half of a DC key */
    uint32_t dc_key_lo;
    uint32_t dqp_dct;
    uint8_t stat_rate_sl;
    uint8_t fl_mlid;
    uint16_t rlid;
    uint8_t reserved0[4];
    uint8_t rmac[6];
    uint8_t tclass;
    uint8_t hop_limit;
    uint32_t grh_gid_fl;          /* bit 30: GRH, GID index 27:20, flow 19:0 */
    uint8_t rgid[16];
} Mlx5WqeAv;

typedef struct QEMU_PACKED Mlx5WqeXrc {
    uint32_t xrc_srqn;
    uint8_t rsvd[12];
} Mlx5WqeXrc;

/* First 16 bytes of a receive WQE in a shared receive queue. */
typedef struct QEMU_PACKED Mlx5WqeSrqNext {
    uint8_t rsvd0[2];
    uint16_t next_wqe_index;
    uint8_t signature;
    uint8_t rsvd1[11];
} Mlx5WqeSrqNext;

typedef struct QEMU_PACKED Mlx5Cqe64 {
    uint8_t rsvd0[17];
    uint8_t ml_path;
    uint8_t rsvd20[4];
    uint16_t slid;
    uint32_t flags_rqpn;          /* SL 27:24, GRH 29:28, source QPN 23:0 */
    uint8_t hds_ip_ext;
    uint8_t l4_l3_hdr_type;
    uint16_t vlan_info;
    uint32_t srqn;                /* or the user index */
    uint32_t immediate;           /* or key invalidated, or P_Key */
    uint8_t rsvd40[4];
    uint32_t byte_cnt;
    uint32_t timestamp_h;
    uint32_t timestamp_l;
    uint32_t sop_drop_qpn;        /* opcode 31:24, QPN 23:0 */
    uint16_t wqe_counter;
    uint8_t signature;
    uint8_t op_own;               /* opcode 7:4, format 3:2, owner 0 */
} Mlx5Cqe64;

typedef struct QEMU_PACKED Mlx5ErrCqe {
    uint8_t rsvd0[32];
    uint32_t srqn;
    uint8_t rsvd1[18];
    uint8_t vendor_err_synd;
    uint8_t syndrome;
    uint32_t s_wqe_opcode_qpn;
    uint16_t wqe_counter;
    uint8_t signature;
    uint8_t op_own;
} Mlx5ErrCqe;

QEMU_BUILD_BUG_ON(sizeof(Mlx5WqeAv) != 48);
QEMU_BUILD_BUG_ON(sizeof(Mlx5Cqe64) != 64);
QEMU_BUILD_BUG_ON(sizeof(Mlx5ErrCqe) != 64);

#endif
