/*
 * mlx5 access registers (ACCESS_REG)
 *
 * SPDX-License-Identifier: GPL-2.0-or-later
 */
#include "qemu/osdep.h"
#include "mlx5-cmd.h"
#include "mlx5-hca.h"
#include "mlx5-vport.h"
#include "trace.h"

/* Syndromes of this file. */
enum {
    SYND_REG_UNKNOWN = 0x550001,
    SYND_REG_READ_ONLY,
    SYND_REG_VALUE,
    SYND_REG_PORT,
    SYND_REG_GROUP,
    SYND_REG_COMPONENT,
};

enum { REG_WRITE = 0, REG_READ = 1 };

enum {
    MCAM_GROUP_MAX = 3,
    MCQS_BOOT_IMAGE = 1,
    MCQS_PRESENT = 1,
    MCQI_VERSION = 1,             /* info_type */
};

/*
 * @in and @out hold as many bytes as the register has; @out starts as a copy
 * of @in, since the driver's selectors come back.
 */
typedef enum Mlx5CmdStatus (*RegFn)(Mlx5Hca *h, Mlx5Cmd *c, bool write,
                                    const uint8_t *in, uint8_t *out);

typedef struct Mlx5Reg {
    uint16_t id;
    const char *name;
    uint16_t bytes;
    bool writable;
    bool has_port;                /* local_port is in byte 1 */
    RegFn fn;
} Mlx5Reg;

static enum Mlx5CmdStatus reg_host_endianness(Mlx5Hca *h, Mlx5Cmd *c,
                                              bool write, const uint8_t *in,
                                              uint8_t *out)
{
    /* 0: little endian, the only one that atomics know here. */
    if (write && in[0]) {
        c->syndrome = SYND_REG_VALUE;
        return MLX5_CMD_BAD_PARAM;
    }
    out[0] = 0;
    return MLX5_CMD_OK;
}

static enum Mlx5CmdStatus reg_node_desc(Mlx5Hca *h, Mlx5Cmd *c, bool write,
                                        const uint8_t *in, uint8_t *out)
{
    if (write) {
        memcpy(h->port.node_desc, in, sizeof(h->port.node_desc));
    }
    memcpy(out, h->port.node_desc, sizeof(h->port.node_desc));
    return MLX5_CMD_OK;
}

static enum Mlx5CmdStatus reg_ptys(Mlx5Hca *h, Mlx5Cmd *c, bool write,
                                   const uint8_t *in, uint8_t *out)
{
    /* What the driver wants is accepted; the link stays what it is. */
    MLX5_SET(out, ptys_reg, ib_link_width_capability, MLX5_PTYS_WIDTHS);
    MLX5_SET(out, ptys_reg, ib_link_width_admin, MLX5_PTYS_WIDTHS);
    MLX5_SET(out, ptys_reg, ib_link_width_oper, MLX5_PTYS_WIDTH);
    MLX5_SET(out, ptys_reg, ib_proto_capability, MLX5_IB_SPEEDS);
    MLX5_SET(out, ptys_reg, ib_proto_admin, MLX5_IB_SPEEDS);
    MLX5_SET(out, ptys_reg, ib_proto_oper, MLX5_IB_SPEED);
    return MLX5_CMD_OK;
}

static enum Mlx5CmdStatus reg_pmtu(Mlx5Hca *h, Mlx5Cmd *c, bool write,
                                   const uint8_t *in, uint8_t *out)
{
    MLX5_SET(out, pmtu_reg, max_mtu, MLX5_IB_MTU_BYTES);
    MLX5_SET(out, pmtu_reg, admin_mtu, MLX5_IB_MTU_BYTES);
    MLX5_SET(out, pmtu_reg, oper_mtu, MLX5_IB_MTU_BYTES);
    return MLX5_CMD_OK;
}

static enum Mlx5CmdStatus reg_pvlc(Mlx5Hca *h, Mlx5Cmd *c, bool write,
                                   const uint8_t *in, uint8_t *out)
{
    MLX5_SET(out, pvlc_reg, vl_hw_cap, MLX5_IB_VL_CAP);
    MLX5_SET(out, pvlc_reg, vl_admin, MLX5_IB_VL_CAP);
    MLX5_SET(out, pvlc_reg, vl_operational, MLX5_IB_VL_CAP);
    return MLX5_CMD_OK;
}

enum { PAOS_UP = 1, PAOS_DOWN = 2 };

static enum Mlx5CmdStatus reg_paos(Mlx5Hca *h, Mlx5Cmd *c, bool write,
                                   const uint8_t *in, uint8_t *out)
{
    uint8_t state;

    if (write && MLX5_GET(in, paos_reg, ase)) {
        switch (MLX5_GET(in, paos_reg, admin_status)) {
        case PAOS_UP:
            mlx5_port_set_state(h, MLX5_IB_PORT_ACTIVE);
            break;
        case PAOS_DOWN:
            mlx5_port_set_state(h, MLX5_IB_PORT_DOWN);
            break;
        default:
            c->syndrome = SYND_REG_VALUE;
            return MLX5_CMD_BAD_PARAM;
        }
    }
    state = h->port.state == MLX5_IB_PORT_DOWN ? PAOS_DOWN : PAOS_UP;
    MLX5_SET(out, paos_reg, admin_status, state);
    MLX5_SET(out, paos_reg, oper_status, state);
    return MLX5_CMD_OK;
}

/*
 * Error counters, all of them zero: the link has none. Traffic is counted by
 * QUERY_VPORT_COUNTER.
 */
static enum Mlx5CmdStatus reg_ppcnt(Mlx5Hca *h, Mlx5Cmd *c, bool write,
                                    const uint8_t *in, uint8_t *out)
{
    memset(MLX5_ADDR(out, ppcnt_reg, counter_set), 0,
           MLX5_BYTES(ppcnt_reg) - MLX5_AT(ppcnt_reg, counter_set));
    return MLX5_CMD_OK;
}

/* Which of the management registers there are (those of this file). */
static enum Mlx5CmdStatus reg_mcam(Mlx5Hca *h, Mlx5Cmd *c, bool write,
                                   const uint8_t *in, uint8_t *out)
{
    if (MLX5_GET(in, mcam_reg, feature_group) ||
        MLX5_GET(in, mcam_reg, access_reg_group) > MCAM_GROUP_MAX) {
        c->syndrome = SYND_REG_GROUP;
        return MLX5_CMD_BAD_PARAM;
    }
    memset(out + 8, 0, MLX5_BYTES(mcam_reg) - 8);
    if (!MLX5_GET(in, mcam_reg, access_reg_group)) {
        MLX5_SET(out, mcam_reg,
                 mng_access_reg_cap_mask__access_regs__mcqs, 1);
        MLX5_SET(out, mcam_reg,
                 mng_access_reg_cap_mask__access_regs__mcqi, 1);
    }
    return MLX5_CMD_OK;
}

/* One component, the firmware: what runs, with no other one pending. */
static enum Mlx5CmdStatus reg_mcqs(Mlx5Hca *h, Mlx5Cmd *c, bool write,
                                   const uint8_t *in, uint8_t *out)
{
    if (MLX5_GET(in, mcqs_reg, component_index)) {
        c->syndrome = SYND_REG_COMPONENT;
        return MLX5_CMD_BAD_PARAM;
    }
    memset(out, 0, MLX5_BYTES(mcqs_reg));
    MLX5_SET(out, mcqs_reg, last_index_flag, 1);
    MLX5_SET(out, mcqs_reg, identifier, MCQS_BOOT_IMAGE);
    MLX5_SET(out, mcqs_reg, component_status, MCQS_PRESENT);
    return MLX5_CMD_OK;
}

/* Its version, behind the register; there is no pending one to read. */
static enum Mlx5CmdStatus reg_mcqi(Mlx5Hca *h, Mlx5Cmd *c, bool write,
                                   const uint8_t *in, uint8_t *out)
{
    uint32_t size = MLX5_GET(in, mcqi_reg, data_size);
    uint32_t offset = MLX5_GET(in, mcqi_reg, offset);
    uint8_t v[MLX5_BYTES(mcqi_version)] = { };

    if (MLX5_GET(in, mcqi_reg, component_index) ||
        MLX5_GET(in, mcqi_reg, read_pending_component) ||
        MLX5_GET(in, mcqi_reg, info_type) != MCQI_VERSION ||
        offset > sizeof(v) || size > sizeof(v) - offset) {
        c->syndrome = SYND_REG_COMPONENT;
        return MLX5_CMD_BAD_PARAM;
    }
    if (c->out_len - MLX5_AT(access_register_out, register_data) -
        MLX5_BYTES(mcqi_reg) < size) {
        return MLX5_CMD_BAD_OUTP_LEN;
    }
    MLX5_SET(v, mcqi_version, version,
             MLX5_FW_MAJOR << 24 | MLX5_FW_MINOR << 16 | MLX5_FW_SUB);
    MLX5_SET(out, mcqi_reg, info_size, sizeof(v));
    memcpy(out + MLX5_BYTES(mcqi_reg), v + offset, size);
    return MLX5_CMD_OK;
}

static const Mlx5Reg regs[] = {
    { 0x5003, "PMTU", MLX5_BYTES(pmtu_reg), true, true, reg_pmtu },
    { 0x5004, "PTYS", MLX5_BYTES(ptys_reg), true, true, reg_ptys },
    { 0x5006, "PAOS", MLX5_BYTES(paos_reg), true, true, reg_paos },
    { 0x5008, "PPCNT", MLX5_BYTES(ppcnt_reg), false, true, reg_ppcnt },
    { 0x500f, "PVLC", MLX5_BYTES(pvlc_reg), false, true, reg_pvlc },
    { 0x6001, "NODE_DESC", 64, true, false, reg_node_desc },
    { 0x7004, "HOST_ENDIANNESS", 16, true, false, reg_host_endianness },
    { 0x9060, "MCQS", MLX5_BYTES(mcqs_reg), false, false, reg_mcqs },
    { 0x9061, "MCQI", MLX5_BYTES(mcqi_reg), false, false, reg_mcqi },
    { 0x907f, "MCAM", MLX5_BYTES(mcam_reg), false, false, reg_mcam },
};

static const Mlx5Reg *reg_find(uint32_t id)
{
    int i;

    for (i = 0; i < ARRAY_SIZE(regs); i++) {
        if (regs[i].id == id) {
            return &regs[i];
        }
    }
    return NULL;
}

static enum Mlx5CmdStatus cmd_access_reg(Mlx5Hca *h, Mlx5Cmd *c)
{
    uint32_t id = MLX5_GET(c->in, access_register_in, register_id);
    const uint8_t *in = MLX5_ADDR(c->in, access_register_in, register_data);
    uint8_t *out = MLX5_ADDR(c->out, access_register_out, register_data);
    bool write = c->op_mod == REG_WRITE;
    const Mlx5Reg *r = reg_find(id);

    if (!r || c->op_mod > REG_READ) {
        mlx5_unimp(h, "ACCESS_REG: register 0x%x, op_mod %u", id, c->op_mod);
        c->syndrome = SYND_REG_UNKNOWN;
        return MLX5_CMD_BAD_PARAM;
    }
    if (c->in_len - MLX5_AT(access_register_in, register_data) < r->bytes) {
        return MLX5_CMD_BAD_INP_LEN;
    }
    if (c->out_len - MLX5_AT(access_register_out, register_data) < r->bytes) {
        return MLX5_CMD_BAD_OUTP_LEN;
    }
    if (write && !r->writable) {
        c->syndrome = SYND_REG_READ_ONLY;
        return MLX5_CMD_BAD_PARAM;
    }
    if (r->has_port && in[1] != 1) {
        c->syndrome = SYND_REG_PORT;
        return MLX5_CMD_BAD_PARAM;
    }
    trace_mlx5_reg(h->name, r->name, id, write);
    memcpy(out, in, r->bytes);
    return r->fn(h, c, write, in, out);
}

const Mlx5CmdDesc mlx5_reg_cmds[] = {
    { 0x805, "ACCESS_REG", MLX5_AT(access_register_in, register_data),
      MLX5_AT(access_register_out, register_data), cmd_access_reg,
      MLX5_CMDF_ANY_STATE },
    { }
};
