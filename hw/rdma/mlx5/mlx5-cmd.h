/*
 * mlx5 command interface: how a command reaches its handler
 *
 * SPDX-License-Identifier: GPL-2.0-or-later
 */
#ifndef HW_RDMA_MLX5_CMD_H
#define HW_RDMA_MLX5_CMD_H

#include "mlx5-core.h"

/* Delivery and command status (mlx5 driver: cmd.c, device.h). */
enum Mlx5CmdStatus {
    MLX5_CMD_OK                = 0x00,
    MLX5_CMD_INTERNAL_ERR      = 0x01,
    MLX5_CMD_BAD_OP            = 0x02,
    MLX5_CMD_BAD_PARAM         = 0x03,
    MLX5_CMD_BAD_SYS_STATE     = 0x04,
    MLX5_CMD_BAD_RES           = 0x05,
    MLX5_CMD_RES_BUSY          = 0x06,
    MLX5_CMD_LIM_ERR           = 0x08,
    MLX5_CMD_BAD_RES_STATE     = 0x09,
    MLX5_CMD_BAD_INDEX         = 0x0a,
    MLX5_CMD_NO_RES            = 0x0f,
    MLX5_CMD_BAD_INP_LEN       = 0x50,
    MLX5_CMD_BAD_OUTP_LEN      = 0x51,
    MLX5_CMD_BAD_QP_STATE      = 0x10,
    MLX5_CMD_BAD_PKT           = 0x30,
    MLX5_CMD_BAD_SIZE_OUTS_CQES = 0x40,
};

/*
 * The uid of what the kernel makes for everybody (Linux: EQs and counters,
 * once there are user contexts); handlers see 0.
 */
enum { MLX5_SHARED_UID = 0xffff };

/*
 * One command being executed. @in holds in_len bytes, all of it readable;
 * @out holds out_len bytes, zeroed, and the dispatcher writes status and
 * syndrome to its first 8 bytes. Both lengths are at least what the
 * descriptor asks for. Handlers check the length of variable parts (page
 * lists) against in_len themselves.
 */
struct Mlx5Cmd {
    uint16_t opcode, op_mod, uid;
    const uint8_t *in;
    uint32_t in_len;
    uint8_t *out;
    uint32_t out_len;
    uint32_t syndrome;            /* a number of ours that says why */
};

typedef enum Mlx5CmdStatus (*Mlx5CmdFn)(Mlx5Hca *h, Mlx5Cmd *c);

typedef struct Mlx5CmdDesc {
    uint16_t opcode;
    const char *name;
    uint32_t in_min, out_min;     /* bytes, at least */
    Mlx5CmdFn fn;
    uint32_t flags;
} Mlx5CmdDesc;

enum {
    MLX5_CMDF_ANY_STATE = 1 << 0, /* also before INIT_HCA and after TEARDOWN */
    MLX5_CMDF_DISABLED  = 1 << 1, /* also before ENABLE_HCA */
    MLX5_CMDF_NOT_INIT  = 1 << 2, /* not between INIT_HCA and TEARDOWN */
};

/* Each module's commands end with an entry whose fn is NULL. */
extern const Mlx5CmdDesc mlx5_hca_cmds[], mlx5_caps_cmds[], mlx5_reg_cmds[],
    mlx5_vport_cmds[], mlx5_mad_cmds[], mlx5_res_cmds[], mlx5_eq_cmds[],
    mlx5_cq_cmds[], mlx5_mkey_cmds[], mlx5_odp_cmds[], mlx5_qp_cmds[],
    mlx5_srq_cmds[], mlx5_memic_cmds[], mlx5_devx_cmds[],
    mlx5_dct_cmds[], mlx5_flow_cmds[], mlx5_fte_cmds[], mlx5_gobj_cmds[],
    mlx5_mcast_cmds[], mlx5_qos_cmds[], mlx5_sig_cmds[], mlx5_sqobj_cmds[];

void mlx5_cmd_init(Mlx5Hca *h);
void mlx5_cmd_fini(Mlx5Hca *h);
void mlx5_cmd_reset(Mlx5Hca *h);
/* The guest wrote the doorbell at 0x18 of the init segment. */
void mlx5_cmd_doorbell(Mlx5Hca *h, uint32_t bitmap);
/*
 * Ends every object of the guest (reset, FLR, TEARDOWN_HCA): stops traffic,
 * aborts what is suspended, frees QPs, SRQs, CQs, mkeys, EQs and numbers.
 */
void mlx5_hca_destroy_all(Mlx5Hca *h);

#endif
