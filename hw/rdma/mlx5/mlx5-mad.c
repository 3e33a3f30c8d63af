/*
 * mlx5 management datagrams: the agents of a port, and of the switch
 *
 * Subnet management (SMP) and performance management (PMA) of an HCA's port
 * or of the switch of its subnet. Subnet administration, which only the
 * switch has, is in mlx5-mad-sa.c. Layouts: IBA release 1.2.1 volume 1,
 * chapters 13 to 16.
 *
 * SPDX-License-Identifier: GPL-2.0-or-later
 */
#include "qemu/osdep.h"
#include "qemu/cutils.h"
#include "mlx5-caps.h"
#include "mlx5-fabric.h"
#include "mlx5-hca.h"
#include "mlx5-mad.h"
#include "mlx5-vport.h"
#include "trace.h"

enum {
    SMP_DATA = 64,
    PMA_DATA = 64,
    SMP_NODE_DESC = 0x10,
    SMP_NODE_INFO = 0x11,
    SMP_SWITCH_INFO = 0x12,
    SMP_GUID_INFO = 0x14,
    SMP_PORT_INFO = 0x15,
    SMP_PKEY_TABLE = 0x16,
    SMP_SM_INFO = 0x20,
    PMA_CLASS_PORT_INFO = 0x01,
    PMA_PORT_COUNTERS = 0x12,
    PMA_PORT_COUNTERS_EXT = 0x1d,

    NODE_CA = 1,
    NODE_SWITCH = 2,
    RESP_TIME = 18,               /* 4.096 us * 2^18, about a second */
};

void mlx5_mad_node_info(Mlx5Fabric *f, Mlx5Hca *h, uint8_t *d)
{
    d[0] = 1;                     /* base and class version */
    d[1] = 1;
    d[2] = h ? NODE_CA : NODE_SWITCH;
    d[3] = h ? 1 : MIN(mlx5_fabric_count(f), 254);
    stq_be_p(d + 4, h ? h->port.sys_guid : f->switch_guid);
    stq_be_p(d + 12, h ? h->port.node_guid : f->switch_guid);
    stq_be_p(d + 20, h ? h->port.port_guid : f->switch_guid);
    stw_be_p(d + 28, h ? MLX5_PKEY_TABLE_SIZE : 1);
    stw_be_p(d + 30, h ? MLX5_DEVICE_ID : 0);
    stl_be_p(d + 32, 0);
    d[36] = h ? 1 : 0;            /* the port that answers */
    d[37] = 0x00;                 /* vendor id, 24 bits */
    d[38] = 0x02;
    d[39] = 0xc9;
}

void mlx5_mad_node_desc(Mlx5Fabric *f, Mlx5Hca *h, uint8_t *d)
{
    if (h) {
        memcpy(d, h->port.node_desc, 64);
    } else {
        g_autofree char *s = g_strdup_printf("QEMU fabric %s", f->name);

        strpadcpy((char *)d, 64, s, 0);
    }
}

void mlx5_mad_port_info(Mlx5Fabric *f, Mlx5Hca *h, uint8_t *d)
{
    const Mlx5Port *p = h ? &h->port : NULL;

    stq_be_p(d + 8, f->prefix);
    stw_be_p(d + 16, p ? p->lid : MLX5_FABRIC_SM_LID);
    stw_be_p(d + 18, MLX5_FABRIC_SM_LID);
    stl_be_p(d + 20, p ? p->cap_mask1 : MLX5_IB_CAPS | MLX5_IB_CAP_SM);
    d[28] = p ? 1 : 0;
    d[29] = MLX5_IB_WIDTHS;
    d[30] = MLX5_IB_WIDTHS;
    d[31] = MLX5_IB_WIDTH;
    d[32] = 7 << 4 | (p ? p->state : MLX5_IB_PORT_ACTIVE);
    d[33] = (p ? p->phys_state : MLX5_IB_PHYS_LINK_UP) << 4 |
            MLX5_IB_PHYS_POLLING;
    d[34] = p ? p->lmc : 0;
    d[35] = 4 << 4 | 7;           /* QDR and, below, its extension to HDR */
    d[36] = MLX5_IB_MTU << 4 | (p ? p->sm_sl : 0);
    d[37] = MLX5_IB_VL_CAP_CODE << 4;
    d[41] = MLX5_IB_MTU;
    d[43] = MLX5_IB_VL_CAP_CODE << 4;
    stw_be_p(d + 46, p ? MIN(p->pkey_viol, 0xffff) : 0);
    stw_be_p(d + 48, p ? MIN(p->qkey_viol, 0xffff) : 0);
    d[50] = 1;                    /* GUIDs */
    d[51] = MLX5_IB_SUBNET_TIMEOUT;
    d[52] = RESP_TIME;
    d[62] = 4 << 4 | 7;           /* HDR of FDR, EDR, HDR */
    d[63] = 7;
}

static uint16_t smp_get(Mlx5Hca *h, Mlx5Hca *of, uint16_t attr, uint32_t mod,
                        uint8_t *d)
{
    Mlx5Fabric *f = h->fabric;

    switch (attr) {
    case SMP_NODE_DESC:
        mlx5_mad_node_desc(f, of, d);
        return MAD_OK;
    case SMP_NODE_INFO:
        mlx5_mad_node_info(f, of, d);
        return MAD_OK;
    case SMP_SWITCH_INFO:
        if (of) {
            return MAD_BAD_ATTR;
        }
        stw_be_p(d, 0xc000);      /* forwarding tables' capacity */
        stw_be_p(d + 4, MLX5_FABRIC_MAX_GROUPS);
        stw_be_p(d + 6, f->next_lid - 1);
        return MAD_OK;
    case SMP_GUID_INFO:
        if (mod) {
            return MAD_BAD_FIELD;
        }
        stq_be_p(d, of ? of->port.port_guid : f->switch_guid);
        return MAD_OK;
    case SMP_PORT_INFO:
        if (mod > 1) {
            return MAD_BAD_FIELD;
        }
        mlx5_mad_port_info(f, of, d);
        return MAD_OK;
    case SMP_PKEY_TABLE:
        if ((mod & 0xffff) >= MLX5_PKEY_TABLE_SIZE / 32) {
            return MAD_BAD_FIELD;
        }
        if (!(mod & 0xffff)) {
            stw_be_p(d, MLX5_DEFAULT_PKEY);
        }
        return MAD_OK;
    case SMP_SM_INFO:
        if (of) {
            return MAD_BAD_ATTR;
        }
        stq_be_p(d, f->switch_guid);
        d[20] = 3;                /* priority 0, state master */
        return MAD_OK;
    default:
        return MAD_BAD_ATTR;
    }
}

static void pma_counters(const Mlx5Port *p, uint8_t *d)
{
    stl_be_p(d + 24, MIN(p->tx_bytes / 4, UINT32_MAX));
    stl_be_p(d + 28, MIN(p->rx_bytes / 4, UINT32_MAX));
    stl_be_p(d + 32, MIN(p->tx_pkts, UINT32_MAX));
    stl_be_p(d + 36, MIN(p->rx_pkts, UINT32_MAX));
}

static void pma_counters_ext(const Mlx5Port *p, uint8_t *d)
{
    stq_be_p(d + 8, p->tx_bytes / 4);
    stq_be_p(d + 16, p->rx_bytes / 4);
    stq_be_p(d + 24, p->tx_pkts);
    stq_be_p(d + 32, p->rx_pkts);
    stq_be_p(d + 40, p->tx_pkts); /* unicast */
    stq_be_p(d + 48, p->rx_pkts);
}

static uint16_t pma(Mlx5Hca *of, const uint8_t *in, uint8_t method,
                    uint16_t attr, uint8_t *d)
{
    static const Mlx5Port no_traffic;
    const Mlx5Port *p = of ? &of->port : &no_traffic;

    if (attr == PMA_CLASS_PORT_INFO) {
        if (method != MAD_GET) {
            return MAD_BAD_METHOD_ATTR;
        }
        memset(d, 0, 72);
        d[0] = 1;
        d[1] = 1;
        stw_be_p(d + 2, 1 << 9);  /* extended counters, all of them */
        d[7] = RESP_TIME;
        return MAD_OK;
    }
    if (attr != PMA_PORT_COUNTERS && attr != PMA_PORT_COUNTERS_EXT) {
        return MAD_BAD_ATTR;
    }
    /* Port select: this port or all ports. */
    if (in[PMA_DATA + 1] != (of ? 1 : 0) && in[PMA_DATA + 1] != 0xff) {
        return MAD_BAD_FIELD;
    }
    if (method == MAD_SET && of) {
        /* Counters that are written are reset; ours go together. */
        of->port.tx_bytes = of->port.rx_bytes = 0;
        of->port.tx_pkts = of->port.rx_pkts = 0;
    }
    memset(d + 4, 0, 192 - 4);
    if (attr == PMA_PORT_COUNTERS) {
        pma_counters(p, d);
    } else {
        pma_counters_ext(p, d);
    }
    return MAD_OK;
}

static uint16_t mad_dispatch(Mlx5Hca *h, bool to_sm, uint16_t slid,
                             const uint8_t *in, uint8_t *out)
{
    Mlx5Hca *of = to_sm ? NULL : h;
    uint8_t class = in[MAD_CLASS], method = in[MAD_METHOD];
    uint16_t attr = lduw_be_p(in + MAD_ATTR);

    if (in[MAD_BASE_VERSION] != 1) {
        return MAD_BAD_VERSION;
    }
    switch (class) {
    case MAD_CLASS_SMP:
    case MAD_CLASS_SMP_DR:
        if (in[MAD_CLASS_VERSION] != 1) {
            return MAD_BAD_VERSION;
        }
        if (method != MAD_GET) {
            /* The embedded subnet manager alone configures the subnet. */
            return MAD_BAD_METHOD_ATTR;
        }
        memset(out + SMP_DATA, 0, 64);
        return smp_get(h, of, attr, ldl_be_p(in + MAD_ATTR_MOD),
                       out + SMP_DATA);
    case MAD_CLASS_PMA:
        if (in[MAD_CLASS_VERSION] != 1) {
            return MAD_BAD_VERSION;
        }
        if (method != MAD_GET && method != MAD_SET) {
            return MAD_BAD_METHOD;
        }
        return pma(of, in, method, attr, out + PMA_DATA);
    case MAD_CLASS_SA:
        if (!to_sm || in[MAD_CLASS_VERSION] != 2) {
            return MAD_BAD_VERSION;
        }
        return mlx5_sa_process(h, slid, in, out);
    default:
        return MAD_BAD_VERSION;
    }
}

bool mlx5_mad_process(Mlx5Hca *h, bool to_sm, uint16_t slid, uint32_t src_qp,
                      const uint8_t in[256], uint8_t out[256])
{
    uint8_t method = in[MAD_METHOD];
    uint16_t status;

    /* Responses, traps and reports ask for nothing. */
    if (method & MAD_RESPONSE || method == MAD_TRAP ||
        method == MAD_TRAP_REPRESS || method == MAD_SEND) {
        return false;
    }
    memcpy(out, in, 256);
    status = mad_dispatch(h, to_sm, slid, in, out);
    trace_mlx5_mad(h->name, to_sm, slid, in[MAD_CLASS], method,
                   lduw_be_p(in + MAD_ATTR), status);
    out[MAD_METHOD] = method == MAD_SET ? MAD_GET_RESP
                                        : method | MAD_RESPONSE;
    if (in[MAD_CLASS] == MAD_CLASS_SMP_DR) {
        status |= 0x8000;         /* on its way back */
    }
    stw_be_p(out + MAD_STATUS, status);
    return true;
}

static enum Mlx5CmdStatus cmd_mad_ifc(Mlx5Hca *h, Mlx5Cmd *c)
{
    if (MLX5_GET(c->in, mad_ifc_in, port) != 1) {
        return MLX5_CMD_BAD_PARAM;
    }
    if (!mlx5_mad_process(h, false, MLX5_GET(c->in, mad_ifc_in, remote_lid), 0,
                          MLX5_ADDR(c->in, mad_ifc_in, mad),
                          MLX5_ADDR(c->out, mad_ifc_out,
                                    response_mad_packet))) {
        return MLX5_CMD_BAD_PKT;
    }
    return MLX5_CMD_OK;
}

const Mlx5CmdDesc mlx5_mad_cmds[] = {
    { 0x50d, "MAD_IFC", MLX5_BYTES(mad_ifc_in), MLX5_BYTES(mad_ifc_out),
      cmd_mad_ifc },
    { }
};
