/*
 * mlx5 subnet administration: who is where, and which groups there are
 *
 * Answers at the switch's LID. Every answer is one MAD: queries whose answer
 * needs more than one record are refused (too many records). Layouts: IBA
 * release 1.2.1 volume 1, chapter 15.
 *
 * SPDX-License-Identifier: GPL-2.0-or-later
 */
#include "qemu/osdep.h"
#include "mlx5-fabric.h"
#include "mlx5-mad.h"
#include "mlx5-vport.h"
#include "trace.h"

enum {
    SA_RMPP_VERSION = 24,
    SA_RMPP_TYPE = 25,
    SA_RMPP_FLAGS = 26,
    SA_RMPP_SEGMENT = 28,
    SA_RMPP_LENGTH = 32,
    SA_ATTR_OFFSET = 44,
    SA_MASK = 48,
    SA_DATA = 56,
    SA_DATA_SIZE = 200,

    SA_CLASS_PORT_INFO = 0x01,
    SA_NODE_RECORD = 0x11,
    SA_PORT_INFO_RECORD = 0x12,
    SA_PATH_RECORD = 0x35,
    SA_MC_MEMBER_RECORD = 0x38,

    LIFE_TIME = 16,
};

/* A place on the subnet that a query names: an HCA, or the switch. */
typedef struct Place {
    bool found;
    Mlx5Hca *h;                   /* NULL: the switch */
} Place;

static Place place_by_lid(Mlx5Hca *from, uint16_t lid)
{
    Place p = { .found = lid == MLX5_FABRIC_SM_LID };

    if (!p.found) {
        p.h = mlx5_fabric_by_lid(from, lid);
        p.found = p.h;
    }
    return p;
}

static Place place_by_gid(Mlx5Hca *from, const uint8_t *gid)
{
    Place p = {
        .found = ldq_be_p(gid) == from->fabric->prefix &&
                 ldq_be_p(gid + 8) == from->fabric->switch_guid
    };

    if (!p.found) {
        p.h = mlx5_fabric_by_gid(from, gid);
        p.found = p.h;
    }
    return p;
}

static uint16_t place_lid(Place p)
{
    return p.h ? p.h->port.lid : MLX5_FABRIC_SM_LID;
}

static void place_gid(Mlx5Fabric *f, Place p, uint8_t *gid)
{
    stq_be_p(gid, f->prefix);
    stq_be_p(gid + 8, p.h ? p.h->port.port_guid : f->switch_guid);
}

static uint16_t sa_class_port_info(uint8_t *d)
{
    memset(d, 0, SA_DATA_SIZE);
    d[0] = 1;
    d[1] = 2;
    d[7] = MLX5_IB_SUBNET_TIMEOUT;
    return MAD_OK;
}

/* Component mask bits of a PathRecord. */
#define PATH_DGID  (1ULL << 2)
#define PATH_SGID  (1ULL << 3)
#define PATH_DLID  (1ULL << 4)
#define PATH_SLID  (1ULL << 5)
#define PATH_PKEY  (1ULL << 13)
#define PATH_SL    (1ULL << 15)

static uint16_t sa_path(Mlx5Hca *h, uint16_t slid, uint64_t mask, uint8_t *d)
{
    Place to, from;

    if (mask & PATH_DGID) {
        to = place_by_gid(h, d + 8);
    } else if (mask & PATH_DLID) {
        to = place_by_lid(h, lduw_be_p(d + 40));
    } else {
        return MAD_SA_TOO_MANY_RECORDS;
    }
    if (mask & PATH_SGID) {
        from = place_by_gid(h, d + 24);
    } else if (mask & PATH_SLID) {
        from = place_by_lid(h, lduw_be_p(d + 42));
    } else {
        from = place_by_lid(h, slid);
    }
    if (!to.found || !from.found ||
        (mask & PATH_DLID && lduw_be_p(d + 40) != place_lid(to)) ||
        (mask & PATH_SLID && lduw_be_p(d + 42) != place_lid(from)) ||
        (mask & PATH_PKEY && (lduw_be_p(d + 50) & 0x7fff) != 0x7fff)) {
        return MAD_SA_NO_RECORDS;
    }
    memset(d + 40, 0, 64 - 40);
    place_gid(h->fabric, to, d + 8);
    place_gid(h->fabric, from, d + 24);
    stw_be_p(d + 40, place_lid(to));
    stw_be_p(d + 42, place_lid(from));
    d[49] = 1 << 7 | 1;           /* reversible; one path */
    stw_be_p(d + 50, MLX5_DEFAULT_PKEY);
    d[54] = 2 << 6 | MLX5_IB_MTU; /* exactly */
    d[55] = 2 << 6 | MLX5_IB_RATE;
    d[56] = 2 << 6 | LIFE_TIME;
    return MAD_OK;
}

#define NODE_LID   (1ULL << 0)

static uint16_t sa_node(Mlx5Hca *h, uint64_t mask, uint8_t *d)
{
    uint16_t lid = lduw_be_p(d);
    Place p;

    if (!(mask & NODE_LID)) {
        return MAD_SA_TOO_MANY_RECORDS;
    }
    p = place_by_lid(h, lid);
    if (!p.found) {
        return MAD_SA_NO_RECORDS;
    }
    memset(d, 0, SA_DATA_SIZE);
    stw_be_p(d, lid);
    mlx5_mad_node_info(h->fabric, p.h, d + 4);
    mlx5_mad_node_desc(h->fabric, p.h, d + 44);
    return MAD_OK;
}

static uint16_t sa_port_info(Mlx5Hca *h, uint64_t mask, uint8_t *d)
{
    uint16_t lid = lduw_be_p(d);
    Place p;

    if (!(mask & NODE_LID)) {
        return MAD_SA_TOO_MANY_RECORDS;
    }
    p = place_by_lid(h, lid);
    if (!p.found) {
        return MAD_SA_NO_RECORDS;
    }
    memset(d, 0, SA_DATA_SIZE);
    stw_be_p(d, lid);
    d[2] = p.h ? 1 : 0;
    mlx5_mad_port_info(h->fabric, p.h, d + 4);
    return MAD_OK;
}

/* Of the broadcast group, which its members take from the record (RFC 4391) */
#define MLX5_IPOIB_QKEY 0x0b1b

/* Component mask bits of an MCMemberRecord. */
#define MC_MGID    (1ULL << 0)
#define MC_PORTGID (1ULL << 1)
#define MC_QKEY    (1ULL << 2)

static uint16_t sa_mc_member(Mlx5Hca *h, uint8_t method, uint64_t mask,
                             uint8_t *d)
{
    Mlx5McastGroup *g;

    if (!(mask & MC_MGID)) {
        return MAD_SA_SHORT_COMPONENTS;
    }
    if (d[0] != 0xff) {
        return MAD_SA_REQ_INVALID;
    }
    g = mlx5_fabric_group(h->fabric, d, method == MAD_SET,
                          mask & MC_QKEY ? ldl_be_p(d + 32) : MLX5_IPOIB_QKEY);
    if (!g) {
        return method == MAD_SET ? MAD_SA_NO_RESOURCES : MAD_SA_NO_RECORDS;
    }
    trace_mlx5_mad_mcast(h->name, method, g->mlid);
    if (!(mask & MC_PORTGID)) {
        mlx5_port_gid(h, d + 16);
    }
    stl_be_p(d + 32, g->qkey);
    stw_be_p(d + 36, g->mlid);
    d[38] = 2 << 6 | MLX5_IB_MTU;
    stw_be_p(d + 40, MLX5_DEFAULT_PKEY);
    d[42] = 2 << 6 | MLX5_IB_RATE;
    d[43] = 2 << 6 | LIFE_TIME;
    return MAD_OK;
}

static uint16_t sa_record(Mlx5Hca *h, uint16_t slid, const uint8_t *in,
                          uint8_t *d)
{
    uint64_t mask = ldq_be_p(in + SA_MASK);
    uint16_t attr = lduw_be_p(in + MAD_ATTR);
    uint8_t method = in[MAD_METHOD];

    if (attr == SA_MC_MEMBER_RECORD) {
        return sa_mc_member(h, method, mask, d);
    }
    if (method != MAD_GET && method != MAD_GET_TABLE) {
        return MAD_BAD_METHOD_ATTR;
    }
    switch (attr) {
    case SA_CLASS_PORT_INFO:
        return sa_class_port_info(d);
    case SA_NODE_RECORD:
        return sa_node(h, mask, d);
    case SA_PORT_INFO_RECORD:
        return sa_port_info(h, mask, d);
    case SA_PATH_RECORD:
        return sa_path(h, slid, mask, d);
    default:
        return MAD_BAD_ATTR;
    }
}

/* Bytes of a record, in units of 8, rounded up. */
static uint16_t sa_record_units(uint16_t attr)
{
    switch (attr) {
    case SA_NODE_RECORD:
        return 14;
    case SA_PORT_INFO_RECORD:
        return 9;
    case SA_PATH_RECORD:
        return 8;
    case SA_MC_MEMBER_RECORD:
        return 7;
    default:
        return 9;
    }
}

uint16_t mlx5_sa_process(Mlx5Hca *h, uint16_t slid, const uint8_t *in,
                         uint8_t *out)
{
    uint8_t method = in[MAD_METHOD];
    uint16_t attr = lduw_be_p(in + MAD_ATTR);
    uint16_t units = sa_record_units(attr);
    uint16_t status;

    if (method != MAD_GET && method != MAD_SET && method != MAD_GET_TABLE &&
        method != MAD_DELETE) {
        return MAD_BAD_METHOD;
    }
    status = sa_record(h, slid, in, out + SA_DATA);
    memset(out + SA_RMPP_VERSION, 0, 12);
    stw_be_p(out + SA_ATTR_OFFSET, units);
    if (method == MAD_GET_TABLE) {
        /* A table that fits: first and last segment at once. */
        if (status == MAD_SA_NO_RECORDS) {
            status = MAD_OK;
            units = 0;
        }
        out[SA_RMPP_VERSION] = 1;
        out[SA_RMPP_TYPE] = 1;
        out[SA_RMPP_FLAGS] = 0x7;
        stl_be_p(out + SA_RMPP_SEGMENT, 1);
        stl_be_p(out + SA_RMPP_LENGTH, 20 + units * 8);
    }
    return status;
}
