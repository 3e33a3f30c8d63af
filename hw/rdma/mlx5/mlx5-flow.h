/*
 * mlx5 flow steering: tables, groups, entries, counters
 *
 * SPDX-License-Identifier: GPL-2.0-or-later
 */
#ifndef HW_RDMA_MLX5_FLOW_H
#define HW_RDMA_MLX5_FLOW_H

#include "mlx5-cmd.h"
#include "mlx5-op.h"

enum {
    MLX5_LOG_MAX_FT         = 10, /* tables */
    MLX5_LOG_MAX_FT_SIZE    = 16, /* entries of one */
    MLX5_LOG_MAX_FLOW       = 12, /* entries of all of them: each is looked */
                                  /* at once for a message, at most */
    MLX5_MAX_FT_LEVEL       = 255,
    MLX5_MAX_FLOW_GROUPS    = 4096,
    MLX5_MAX_FLOW_COUNTERS  = 1 << 15,
};

/* Types of tables. */
enum Mlx5FtType {
    MLX5_FT_RDMA_RX = 7,
    MLX5_FT_RDMA_TX = 8,
};

enum { MLX5_FLOW_ROOTS = 2 };     /* one of each type */

/* What an entry does: bits. */
enum {
    MLX5_FLOW_ALLOW = 1 << 0,
    MLX5_FLOW_DROP = 1 << 1,
    MLX5_FLOW_FORWARD = 1 << 2,
    MLX5_FLOW_COUNT = 1 << 3,
};

typedef struct Mlx5Fte Mlx5Fte;

typedef struct Mlx5FlowTable {
    Mlx5Obj obj;                  /* refs: groups, and who goes on here */
    uint8_t type;                 /* Mlx5FtType */
    uint8_t level;
    uint8_t log_size;
    uint32_t miss_id;             /* where a miss goes on; 0: default */
    QTAILQ_HEAD(, Mlx5Fte) entries; /* by index */
} Mlx5FlowTable;

/* Entries [start, end] of a table, which look at the same bits. */
typedef struct Mlx5FlowGroup {
    Mlx5Obj obj;                  /* refs: entries */
    uint32_t table;
    uint32_t start, end;
    uint32_t qpn_mask;            /* of bth_dst_qp */
} Mlx5FlowGroup;

struct Mlx5Fte {
    Mlx5Obj obj;                  /* id: ours, the guest names the index */
    uint32_t table, group, index;
    uint32_t qpn;                 /* bth_dst_qp */
    uint32_t action;              /* bits */
    uint32_t tag;
    uint32_t dest;                /* table, or 0 */
    uint32_t counter;             /* or 0 */
    QTAILQ_ENTRY(Mlx5Fte) in_table;
};

typedef struct Mlx5FlowCounter {
    Mlx5Obj obj;                  /* refs: entries */
    uint64_t packets, octets;
} Mlx5FlowCounter;

/*
 * Whether packets with @bytes of payload for queue pair @qpn get through
 * @h's tables of @type; counts them.
 */
bool mlx5_flow_pass_slow(Mlx5Hca *h, enum Mlx5FtType type, uint32_t qpn,
                         uint64_t bytes);

static inline bool mlx5_flow_pass(Mlx5Hca *h, enum Mlx5FtType type,
                                  uint32_t qpn, uint64_t bytes)
{
    return !h->flow_root[type - MLX5_FT_RDMA_RX] ||
           mlx5_flow_pass_slow(h, type, qpn, bytes);
}

/*
 * The table that a command names (SET, CREATE, DESTROY, QUERY of tables,
 * groups and entries have it at the same place), of the type that it names;
 * NULL: *@status says why.
 */
Mlx5FlowTable *mlx5_ft_of_cmd(Mlx5Hca *h, Mlx5Cmd *c,
                              enum Mlx5CmdStatus *status);

/* Puts @f at its place among the entries of @t. */
void mlx5_fte_insert(Mlx5FlowTable *t, Mlx5Fte *f);

void mlx5_flow_init(Mlx5Hca *h);
void mlx5_flow_fini(Mlx5Hca *h);
void mlx5_flow_destroy_all(Mlx5Hca *h);

extern const VMStateDescription vmstate_mlx5_flow;   /* of Mlx5Hca */

#endif
