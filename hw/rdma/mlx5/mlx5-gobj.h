/*
 * mlx5 general objects
 *
 * SPDX-License-Identifier: GPL-2.0-or-later
 */
#ifndef HW_RDMA_MLX5_GOBJ_H
#define HW_RDMA_MLX5_GOBJ_H

#include "mlx5-cmd.h"

/* Types of general objects (Linux: mlx5_ifc.h, rdma-core: mlx5_ifc.h). */
enum Mlx5GobjTypeNr {
    MLX5_GOBJ_SCHED_ELEM    = 0x26,
    MLX5_GOBJ_RESERVED_QPN  = 0x2c,
    MLX5_GOBJ_AV_QP_MAPPING = 0x3a,
};

/* The same as bits 63 to 32 of general_obj_types. */
enum {
    MLX5_GOBJ_TYPES_HIGH = 0x04001040,
};

enum {
    MLX5_LOG_RESERVED_QPNS  = 3,  /* queue pair numbers of an object */
    MLX5_MAX_RESERVED_QPNS  = 1 << 15, /* objects */
    MLX5_MAX_AV_MAPS        = 1 << 14,
    MLX5_GOBJ_HEAD          = 16, /* bytes before the object in a command */
};

/*
 * How one type is made and told. All of them get the object's bytes, of
 * which there are as many as @bytes says.
 */
typedef struct Mlx5GobjType {
    uint16_t type;
    const char *name;
    uint32_t bytes;               /* of the object in commands */
    uint8_t log_range;            /* log2 of the numbers that an object has */
    Mlx5Table *(*table)(Mlx5Hca *h);
    /* Makes an object that the caller gives a number, or sets *@status. */
    Mlx5Obj *(*create)(Mlx5Hca *h, Mlx5Cmd *c, const uint8_t *in,
                       enum Mlx5CmdStatus *status);
    enum Mlx5CmdStatus (*modify)(Mlx5Hca *h, Mlx5Cmd *c, Mlx5Obj *o,
                                 const uint8_t *in);  /* NULL: never */
    void (*query)(Mlx5Hca *h, Mlx5Obj *o, uint8_t *out);
    /* Lets go of what @o rests on and frees it; it has no number any more. */
    void (*free)(Mlx5Hca *h, Mlx5Obj *o);
} Mlx5GobjType;

extern const Mlx5GobjType mlx5_gobj_sched_elem;     /* mlx5-qos.c */

/* An AV_QP_MAPPING: which queue pair's congestion control an address has. */
typedef struct Mlx5AvMap {
    Mlx5Obj obj;
    uint32_t qpn;
    uint8_t sl, gid_index;
    uint8_t rgid[16];
} Mlx5AvMap;

void mlx5_gobj_init(Mlx5Hca *h);
void mlx5_gobj_fini(Mlx5Hca *h);
void mlx5_gobj_destroy_all(Mlx5Hca *h);

extern const VMStateDescription vmstate_mlx5_gobjs;  /* of Mlx5Hca */

#endif
