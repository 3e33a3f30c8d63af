/*
 * mlx5 port: HCA vport context, GID and P_Key tables, counters
 *
 * SPDX-License-Identifier: GPL-2.0-or-later
 */
#include "qemu/osdep.h"
#include "mlx5-caps.h"
#include "mlx5-eq.h"
#include "mlx5-fabric.h"
#include "mlx5-vport.h"
#include "trace.h"

/* Syndromes of this file. */
enum {
    SYND_VPORT_OTHER = 0x560001,
    SYND_VPORT_PORT,
    SYND_VPORT_INDEX,
    SYND_VPORT_ROOM,
    SYND_VPORT_FIELD,
};

enum { INDEX_ALL = 0xffff };

/* field_select of MODIFY_HCA_VPORT_CONTEXT. */
enum {
    SELECT_PORT_GUID = 1 << 0,
    SELECT_NODE_GUID = 1 << 1,
    SELECT_POLICY = 1 << 2,
};

/* vport_state_policy. */
enum { POLICY_DOWN = 0, POLICY_UP = 1, POLICY_FOLLOW = 2 };

void mlx5_port_gid(Mlx5Hca *h, uint8_t gid[16])
{
    stq_be_p(gid, h->fabric->prefix);
    stq_be_p(gid + 8, h->port.port_guid);
}

void mlx5_port_set_state(Mlx5Hca *h, uint8_t state)
{
    if (state == h->port.state) {
        return;
    }
    trace_mlx5_port_state(h->name, h->port.state, state);
    h->port.state = state;
    h->port.phys_state = state == MLX5_IB_PORT_DOWN ? MLX5_IB_PHYS_DISABLED
                                                    : MLX5_IB_PHYS_LINK_UP;
    mlx5_event_port(h, state == MLX5_IB_PORT_DOWN ? MLX5_PORT_DOWN
                                                  : MLX5_PORT_ACTIVE);
}

/* All of these commands have the same head: one vport, one port. */
static enum Mlx5CmdStatus vport_head(Mlx5Cmd *c)
{
    if (MLX5_GET(c->in, query_hca_vport_context_in, other_vport) ||
        MLX5_GET(c->in, query_hca_vport_context_in, vport_number)) {
        c->syndrome = SYND_VPORT_OTHER;
        return MLX5_CMD_BAD_PARAM;
    }
    if (MLX5_GET(c->in, query_hca_vport_context_in, port_num) > 1) {
        c->syndrome = SYND_VPORT_PORT;
        return MLX5_CMD_BAD_PARAM;
    }
    return MLX5_CMD_OK;
}

static enum Mlx5CmdStatus cmd_query_context(Mlx5Hca *h, Mlx5Cmd *c)
{
    uint8_t *v = MLX5_ADDR(c->out, query_hca_vport_context_out,
                           hca_vport_context);
    enum Mlx5CmdStatus st = vport_head(c);
    const Mlx5Port *p = &h->port;

    if (st) {
        return st;
    }
    MLX5_SET(v, hca_vport_context, has_smi, 1);
    MLX5_SET(v, hca_vport_context, port_physical_state, p->phys_state);
    MLX5_SET(v, hca_vport_context, vport_state_policy, POLICY_FOLLOW);
    MLX5_SET(v, hca_vport_context, port_state, p->state);
    MLX5_SET(v, hca_vport_context, vport_state, p->state);
    MLX5_SET64(v, hca_vport_context, system_image_guid, p->sys_guid);
    MLX5_SET64(v, hca_vport_context, port_guid, p->port_guid);
    MLX5_SET64(v, hca_vport_context, node_guid, p->node_guid);
    MLX5_SET(v, hca_vport_context, cap_mask1, p->cap_mask1);
    MLX5_SET(v, hca_vport_context, cap_mask1_field_select,
             MLX5_IB_CAPS_SETTABLE);
    MLX5_SET(v, hca_vport_context, lid, p->lid);
    MLX5_SET(v, hca_vport_context, lmc, p->lmc);
    MLX5_SET(v, hca_vport_context, subnet_timeout, MLX5_IB_SUBNET_TIMEOUT);
    MLX5_SET(v, hca_vport_context, sm_lid, p->sm_lid);
    MLX5_SET(v, hca_vport_context, sm_sl, p->sm_sl);
    MLX5_SET(v, hca_vport_context, qkey_violation_counter,
             MIN(p->qkey_viol, 0xffff));
    MLX5_SET(v, hca_vport_context, pkey_violation_counter,
             MIN(p->pkey_viol, 0xffff));
    return MLX5_CMD_OK;
}

static enum Mlx5CmdStatus cmd_modify_context(Mlx5Hca *h, Mlx5Cmd *c)
{
    const uint8_t *v = MLX5_ADDR(c->in, modify_hca_vport_context_in,
                                 hca_vport_context);
    uint32_t select = MLX5_GET(v, hca_vport_context, field_select);
    uint32_t caps = MLX5_GET(v, hca_vport_context, cap_mask1_field_select);
    enum Mlx5CmdStatus st = vport_head(c);
    Mlx5Port *p = &h->port;

    if (st) {
        return st;
    }
    if (select & ~(SELECT_PORT_GUID | SELECT_NODE_GUID | SELECT_POLICY) ||
        caps & ~MLX5_IB_CAPS_SETTABLE) {
        c->syndrome = SYND_VPORT_FIELD;
        return MLX5_CMD_BAD_PARAM;
    }
    p->cap_mask1 = (p->cap_mask1 & ~caps) |
                   (MLX5_GET(v, hca_vport_context, cap_mask1) & caps);
    if (select & SELECT_NODE_GUID) {
        p->node_guid = MLX5_GET64(v, hca_vport_context, node_guid);
    }
    if (select & SELECT_PORT_GUID) {
        p->port_guid = MLX5_GET64(v, hca_vport_context, port_guid);
        mlx5_event_port(h, MLX5_PORT_GUID);
    }
    if (select & SELECT_POLICY) {
        mlx5_port_set_state(h, MLX5_GET(v, hca_vport_context,
                                        vport_state_policy) == POLICY_DOWN ?
                            MLX5_IB_PORT_DOWN : MLX5_IB_PORT_ACTIVE);
    }
    return MLX5_CMD_OK;
}

static enum Mlx5CmdStatus cmd_query_gid(Mlx5Hca *h, Mlx5Cmd *c)
{
    uint32_t index = MLX5_GET(c->in, query_hca_vport_gid_in, gid_index);
    uint8_t *gid = MLX5_ADDR(c->out, query_hca_vport_gid_out, gid);
    uint32_t n = index == INDEX_ALL ? MLX5_GID_TABLE_SIZE : 1;
    enum Mlx5CmdStatus st = vport_head(c);

    if (st) {
        return st;
    }
    if (index != INDEX_ALL && index >= MLX5_GID_TABLE_SIZE) {
        c->syndrome = SYND_VPORT_INDEX;
        return MLX5_CMD_BAD_INDEX;
    }
    if (c->out_len < MLX5_AT(query_hca_vport_gid_out, gid) + 16 * n) {
        c->syndrome = SYND_VPORT_ROOM;
        return MLX5_CMD_BAD_OUTP_LEN;
    }
    MLX5_SET(c->out, query_hca_vport_gid_out, gids_num, n);
    /* Other entries have the prefix only: no GUID. */
    while (n--) {
        stq_be_p(gid + 16 * n, h->fabric->prefix);
    }
    if (index == INDEX_ALL || index == 0) {
        mlx5_port_gid(h, gid);
    }
    return MLX5_CMD_OK;
}

static enum Mlx5CmdStatus cmd_query_pkey(Mlx5Hca *h, Mlx5Cmd *c)
{
    uint32_t index = MLX5_GET(c->in, query_hca_vport_pkey_in, pkey_index);
    uint8_t *pkey = MLX5_ADDR(c->out, query_hca_vport_pkey_out, pkey);
    uint32_t n = index == INDEX_ALL ? MLX5_PKEY_TABLE_SIZE : 1;
    enum Mlx5CmdStatus st = vport_head(c);

    if (st) {
        return st;
    }
    if (index != INDEX_ALL && index >= MLX5_PKEY_TABLE_SIZE) {
        c->syndrome = SYND_VPORT_INDEX;
        return MLX5_CMD_BAD_INDEX;
    }
    /* An entry is a dword, the key in its low half. */
    if (c->out_len < MLX5_AT(query_hca_vport_pkey_out, pkey) + 4 * n) {
        c->syndrome = SYND_VPORT_ROOM;
        return MLX5_CMD_BAD_OUTP_LEN;
    }
    if (index == INDEX_ALL || index == 0) {
        stl_be_p(pkey, MLX5_DEFAULT_PKEY);
    }
    return MLX5_CMD_OK;
}

static enum Mlx5CmdStatus cmd_query_vport_state(Mlx5Hca *h, Mlx5Cmd *c)
{
    bool up = h->port.state != MLX5_IB_PORT_DOWN;

    if (MLX5_GET(c->in, query_vport_state_in, other_vport)) {
        c->syndrome = SYND_VPORT_OTHER;
        return MLX5_CMD_BAD_PARAM;
    }
    MLX5_SET(c->out, query_vport_state_out, admin_state, up);
    MLX5_SET(c->out, query_vport_state_out, state, up);
    return MLX5_CMD_OK;
}

static enum Mlx5CmdStatus cmd_query_vport_counter(Mlx5Hca *h, Mlx5Cmd *c)
{
    enum Mlx5CmdStatus st = vport_head(c);
    Mlx5Port *p = &h->port;

    if (st) {
        return st;
    }
    MLX5_SET64(c->out, query_vport_counter_out,
               received_ib_unicast__packets, p->rx_pkts);
    MLX5_SET64(c->out, query_vport_counter_out,
               received_ib_unicast__octets, p->rx_bytes);
    MLX5_SET64(c->out, query_vport_counter_out,
               transmitted_ib_unicast__packets, p->tx_pkts);
    MLX5_SET64(c->out, query_vport_counter_out,
               transmitted_ib_unicast__octets, p->tx_bytes);
    if (MLX5_GET(c->in, query_vport_counter_in, clear)) {
        p->rx_pkts = p->rx_bytes = p->tx_pkts = p->tx_bytes = 0;
    }
    return MLX5_CMD_OK;
}

const Mlx5CmdDesc mlx5_vport_cmds[] = {
    { 0x750, "QUERY_VPORT_STATE", 16, 16, cmd_query_vport_state },
    { 0x762, "QUERY_HCA_VPORT_CONTEXT", 16,
      MLX5_BYTES(query_hca_vport_context_out), cmd_query_context },
    { 0x763, "MODIFY_HCA_VPORT_CONTEXT",
      MLX5_BYTES(modify_hca_vport_context_in), 8, cmd_modify_context },
    { 0x764, "QUERY_HCA_VPORT_GID", 16, 16, cmd_query_gid },
    { 0x765, "QUERY_HCA_VPORT_PKEY", 16, 16, cmd_query_pkey },
    { 0x770, "QUERY_VPORT_COUNTER", 32, MLX5_BYTES(query_vport_counter_out),
      cmd_query_vport_counter },
    { }
};

const VMStateDescription vmstate_mlx5_port = {
    .name = "mlx5-hca/port",
    .version_id = 1,
    .minimum_version_id = 1,
    .fields = (const VMStateField[]) {
        VMSTATE_UINT64(port.node_guid, Mlx5Hca),
        VMSTATE_UINT64(port.sys_guid, Mlx5Hca),
        VMSTATE_UINT64(port.port_guid, Mlx5Hca),
        VMSTATE_UINT16(port.lid, Mlx5Hca),
        VMSTATE_UINT16(port.sm_lid, Mlx5Hca),
        VMSTATE_UINT8(port.sm_sl, Mlx5Hca),
        VMSTATE_UINT8(port.lmc, Mlx5Hca),
        VMSTATE_UINT8(port.state, Mlx5Hca),
        VMSTATE_UINT8(port.phys_state, Mlx5Hca),
        VMSTATE_UINT32(port.cap_mask1, Mlx5Hca),
        VMSTATE_UINT32(port.qkey_viol, Mlx5Hca),
        VMSTATE_UINT32(port.pkey_viol, Mlx5Hca),
        VMSTATE_BUFFER(port.node_desc, Mlx5Hca),
        VMSTATE_UINT64(port.tx_bytes, Mlx5Hca),
        VMSTATE_UINT64(port.rx_bytes, Mlx5Hca),
        VMSTATE_UINT64(port.tx_pkts, Mlx5Hca),
        VMSTATE_UINT64(port.rx_pkts, Mlx5Hca),
        VMSTATE_END_OF_LIST()
    },
};
