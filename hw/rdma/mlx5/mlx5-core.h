/*
 * mlx5 HCA model: the device as its objects see it
 *
 * Objects (mkey, QP, CQ, ...) know this structure and the floors below them,
 * never PCI: the shell in mlx5-pci.c gives them an address space and a way to
 * raise an interrupt. All of it runs in the main AioContext under the BQL.
 *
 * SPDX-License-Identifier: GPL-2.0-or-later
 */
#ifndef HW_RDMA_MLX5_CORE_H
#define HW_RDMA_MLX5_CORE_H

#include "qemu/osdep.h"
#include "qemu/log.h"
#include "qemu/queue.h"
#include "qemu/timer.h"
#include "system/memory.h"
#include "migration/vmstate.h"
#include "mlx5-layout.h"

typedef struct Mlx5Hca Mlx5Hca;
typedef struct Mlx5Cmd Mlx5Cmd;
typedef struct Mlx5Qp Mlx5Qp;
typedef struct Mlx5Cq Mlx5Cq;
typedef struct Mlx5Eq Mlx5Eq;
typedef struct Mlx5Srq Mlx5Srq;
typedef struct Mlx5Mkey Mlx5Mkey;
typedef struct Mlx5Op Mlx5Op;
typedef struct Mlx5Fabric Mlx5Fabric;
typedef struct Mlx5FaultStats Mlx5FaultStats;
typedef struct Mlx5Portal Mlx5Portal;

/*
 * Objects by number
 *
 * Every object that the guest names by a number starts with an Mlx5Obj. A
 * table owns a range of numbers and finds an object in constant time; its
 * list is what migrates, the slots are rebuilt by mlx5_table_post_load().
 */
typedef struct Mlx5Obj {
    uint32_t id;                  /* the number that the guest uses */
    uint16_t uid;                 /* DEVX owner; 0: the kernel */
    uint32_t refs;                /* other objects that rest on this one */
    QTAILQ_ENTRY(Mlx5Obj) next;
} Mlx5Obj;

typedef struct Mlx5Table {
    const char *kind;             /* of object */
    QLIST_ENTRY(Mlx5Table) on_hca;
    uint32_t first;               /* lowest number to give out */
    uint32_t limit;               /* one past the highest */
    uint32_t hint;                /* where to look for a free number next */
    uint32_t count;               /* objects in the table */
    uint32_t nslots;              /* slots allocated, grown on demand */
    Mlx5Obj **slot;               /* slot[id - first], NULL: free */
    const struct Mlx5Table *owners; /* user contexts: an object refs its own */
    QTAILQ_HEAD(, Mlx5Obj) all;
} Mlx5Table;

void mlx5_table_init(Mlx5Hca *h, Mlx5Table *t, const char *kind,
                     uint32_t first, uint32_t count);
/* Frees the slots; the owner has removed the objects. */
void mlx5_table_fini(Mlx5Table *t);
/*
 * Gives @o, whose uid is set, a free number, late reuse. false: the table is
 * full.
 */
bool mlx5_table_add(Mlx5Table *t, Mlx5Obj *o);
/* Puts @o at o->id. false: out of range or taken. */
bool mlx5_table_add_at(Mlx5Table *t, Mlx5Obj *o);
void mlx5_table_del(Mlx5Table *t, Mlx5Obj *o);
/* Frees all objects, which hold nothing but their own memory (g_malloc). */
void mlx5_table_free_all(Mlx5Table *t);
/* After load: slots from the list. false: an id is bad or double. */
bool mlx5_table_post_load(Mlx5Table *t);
/* The property "objects": how many there are of each kind. */
void mlx5_tables_add_property(Mlx5Hca *h);
void mlx5_tables_del_property(Mlx5Hca *h);

static inline Mlx5Obj *mlx5_table_get(const Mlx5Table *t, uint32_t id)
{
    uint32_t n = id - t->first;

    return n < t->nslots ? t->slot[n] : NULL;
}

/* @n more (or less) objects rest on @o; NULL: nothing to do. */
static inline void mlx5_obj_ref(Mlx5Obj *o, int n)
{
    if (o) {
        o->refs += n;
    }
}

/* Fields of an Mlx5Obj @_m that is the first member of _state. */
#define VMSTATE_MLX5_OBJ(_m, _state) \
    VMSTATE_UINT32(_m.id, _state), \
    VMSTATE_UINT16(_m.uid, _state), \
    VMSTATE_UINT32(_m.refs, _state)

/* The list of table _t (a field of _state), elements of _type. */
#define VMSTATE_MLX5_TABLE(_t, _state, _vmsd, _type) \
    VMSTATE_UINT32(_t.hint, _state), \
    VMSTATE_QTAILQ_V(_t.all, _state, 1, _vmsd, _type, obj.next)

/* Plain numbers without behaviour: PDs, UARs, XRC and transport domains. */
typedef struct Mlx5Res {
    Mlx5Obj obj;
} Mlx5Res;
extern const VMStateDescription vmstate_mlx5_res;

enum {
    MLX5_MAX_EQS = 64,            /* MSI-X vectors likewise */
    MLX5_MAX_FAULTS = 1 << 17,
    MLX5_MAX_PORTALS = 7,         /* functions beside the HCA's */
};

/* Who sends an access, and on behalf of which key. Zeroed: the HCA itself. */
typedef struct Mlx5DmaVia {
    uint8_t function;             /* 0: the HCA's own, else a portal's */
    bool pasid_valid;
    uint32_t pasid;
    uint32_t key;                 /* 0: none */
} Mlx5DmaVia;

/* UMEMs that an object's memory and doorbell record lie in; 0: none. */
typedef struct Mlx5UmemRefs {
    uint32_t mem, dbr;
} Mlx5UmemRefs;

#define VMSTATE_MLX5_UMEM_REFS(_f, _state) \
    VMSTATE_UINT32(_f.mem, _state), \
    VMSTATE_UINT32(_f.dbr, _state)

/* What the port tells of itself; the fabric's subnet manager sets lid. */
typedef struct Mlx5Port {
    uint64_t node_guid, sys_guid, port_guid;
    uint16_t lid, sm_lid;
    uint8_t sm_sl, lmc;
    uint8_t state;                /* IB port state: 1 down .. 4 active */
    uint8_t phys_state;           /* 5: link up */
    uint32_t cap_mask1;
    uint32_t qkey_viol, pkey_viol;
    uint8_t node_desc[64];        /* text, padded with zeroes */
    uint64_t tx_bytes, rx_bytes, tx_pkts, rx_pkts;  /* PMA counters, bytes */
} Mlx5Port;

struct Mlx5Hca {
    /* Given by the shell. */
    DeviceState *dev;             /* for messages and reentrancy guards */
    const char *name;             /* qdev id or "mlx5", for trace and log */
    void (*raise_irq)(Mlx5Hca *h, uint32_t vector);
    uint32_t num_vectors;
    uint32_t function;            /* in its slot: the card's port, less 1 */
    uint32_t uar_first, uar_limit; /* UAR pages that BAR0 holds */
    MemReentrancyGuard *guard;

    /* Objects. */
    QLIST_HEAD(, Mlx5Table) tables; /* all of the following */
    Mlx5Table pds, uars, xrcds, tds, eqs, cqs, mkeys, qps, srqs;
    Mlx5Table q_counters;
    Mlx5Table uctxs, umems;       /* mlx5-devx.c */
    Mlx5Table mcgs;               /* mlx5-mcast.c */
    Mlx5Table rqpns, av_maps;     /* mlx5-gobj.c */
    Mlx5Table sched_elems, rates; /* mlx5-qos.c */
    Mlx5Table fts, fgs, ftes, fcs; /* mlx5-flow.c: tables, groups, entries, */
    uint32_t flow_root[2];        /* counters; root tables of RX and TX */
    /* (one table per kind; other kinds add theirs here) */

    struct Mlx5DmaState *dma;     /* mlx5-dma.c: functions, what waits */
    struct Mlx5CmdState *cmd;     /* mlx5-cmd.c: the command queue */
    struct Mlx5HcaState *hs;      /* mlx5-hca.c: HCA state, init segment */
    struct Mlx5EqState *eq;       /* mlx5-eq.c: who hears which event */
    struct Mlx5MkeyState *mk;     /* mlx5-mkey.c: special keys, memory used */
    struct Mlx5OdpState *odp;     /* mlx5-odp.c: pending page faults */
    struct Mlx5QpState *qp;       /* mlx5-qp.c: run queue, timers */
    struct Mlx5CapState *caps;    /* mlx5-caps.c: current capabilities */
    struct Mlx5MemicState *memic; /* mlx5-memic.c: device memory, or NULL */
    MemoryRegion memic_ram;       /* ... the memory itself */
    MemoryRegion memic_op[2];     /* ... windows of operations on it */

    uint32_t special_qpn[2];      /* migration: QPNs of QP0 and QP1 */
    uint32_t bf_qpn;              /* ... whose doorbell was not served yet */

    Mlx5Port port;
    Mlx5Fabric *fabric;           /* mlx5-fabric.c: whom this HCA reaches */
    QLIST_ENTRY(Mlx5Hca) on_fabric;

    /* Properties. */
    struct {
        char *fabric;             /* HCAs of one name reach each other */
        uint64_t guid;            /* 0: derived from the fabric and order */
        char *odp;                /* "off", "memory" (default), "transport" */
        uint64_t xlt_limit;       /* bytes of translation tables, at most */
        uint32_t max_faults_per_key; /* that wait; 0: no limit */
        uint32_t max_faults_per_pasid; /* likewise */
        uint32_t fault_retries;   /* waits of one access after its first */
        bool ats;                 /* function 0 has ATS, keys may ask for it */
    } conf;
};

/*
 * The HCA's free-running clock: one tick a nanosecond of virtual time, as
 * device_frequency_khz (1000000), the internal timer of the init segment and
 * the timestamps of CQEs tell.
 */
static inline uint64_t mlx5_timestamp(void)
{
    return qemu_clock_get_ns(QEMU_CLOCK_VIRTUAL);
}

/* Guest mistakes and holes, each with the device's name in front. */
#define mlx5_guest_error(h, fmt, ...) \
    qemu_log_mask(LOG_GUEST_ERROR, "%s: " fmt "\n", (h)->name, ## __VA_ARGS__)
#define mlx5_unimp(h, fmt, ...) \
    qemu_log_mask(LOG_UNIMP, "%s: " fmt "\n", (h)->name, ## __VA_ARGS__)

#endif
