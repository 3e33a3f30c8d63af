/*
 * A small mlx5 driver for qtests
 *
 * Brings the HCA up as an operating system does and builds objects, work
 * requests and polls in a line each. It knows the device by the layouts of
 * hw/rdma/mlx5/mlx5-layout.h and by numbers of its own, never by the model's
 * private headers. No IOMMU: DMA addresses are guest physical ones.
 *
 * SPDX-License-Identifier: GPL-2.0-or-later
 */
#ifndef TESTS_QTEST_ODP_MLX5_DRIVER_H
#define TESTS_QTEST_ODP_MLX5_DRIVER_H

#include "libqtest.h"
#include "libqos/generic-pcihost.h"
#include "libqos/pci.h"
#include "hw/rdma/mlx5/mlx5-layout.h"

/* An address where no machine has anything. */
#define QMLX5_NOWHERE 0x00ff000000000000ull

typedef struct QMlx5Host QMlx5Host;
typedef struct QMlx5 QMlx5;
typedef struct QMlx5Eq QMlx5Eq;
typedef struct QMlx5Cq QMlx5Cq;
typedef struct QMlx5Qp QMlx5Qp;
typedef struct QMlx5Srq QMlx5Srq;

enum {
    QMLX5_PAGE = 4096,
    QMLX5_SLOT = 4,               /* PCI slot of the first HCA */
    QMLX5_CMD_SLOTS = 32,
    QMLX5_MBOX = 576,
    QMLX5_MBOX_DATA = 512,
    QMLX5_MBOX_STRIDE = 1024,
    QMLX5_MBOXES = 512,           /* in a chain, at most */
    QMLX5_VECTORS = 8,            /* that the driver sets up */
};

/* Opcodes of commands. */
enum {
    QMLX5_QUERY_HCA_CAP      = 0x100,
    QMLX5_QUERY_ADAPTER      = 0x101,
    QMLX5_INIT_HCA           = 0x102,
    QMLX5_TEARDOWN_HCA       = 0x103,
    QMLX5_ENABLE_HCA         = 0x104,
    QMLX5_DISABLE_HCA        = 0x105,
    QMLX5_QUERY_PAGES        = 0x107,
    QMLX5_MANAGE_PAGES       = 0x108,
    QMLX5_SET_HCA_CAP        = 0x109,
    QMLX5_QUERY_ISSI         = 0x10a,
    QMLX5_SET_ISSI           = 0x10b,
    QMLX5_CREATE_MKEY        = 0x200,
    QMLX5_QUERY_MKEY         = 0x201,
    QMLX5_DESTROY_MKEY       = 0x202,
    QMLX5_QUERY_SPECIAL      = 0x203,
    QMLX5_PAGE_FAULT_RESUME  = 0x204,
    QMLX5_ALLOC_MEMIC        = 0x205,
    QMLX5_DEALLOC_MEMIC      = 0x206,
    QMLX5_MODIFY_MEMIC       = 0x207,
    QMLX5_CREATE_EQ          = 0x301,
    QMLX5_DESTROY_EQ         = 0x302,
    QMLX5_QUERY_EQ           = 0x303,
    QMLX5_GEN_EQE            = 0x304,
    QMLX5_CREATE_CQ          = 0x400,
    QMLX5_DESTROY_CQ         = 0x401,
    QMLX5_QUERY_CQ           = 0x402,
    QMLX5_MODIFY_CQ          = 0x403,
    QMLX5_CREATE_PSV         = 0x600,
    QMLX5_DESTROY_PSV        = 0x601,
    QMLX5_CREATE_QP          = 0x500,
    QMLX5_DESTROY_QP         = 0x501,
    QMLX5_RST2INIT_QP        = 0x502,
    QMLX5_INIT2RTR_QP        = 0x503,
    QMLX5_RTR2RTS_QP         = 0x504,
    QMLX5_RTS2RTS_QP         = 0x505,
    QMLX5_SQERR2RTS_QP       = 0x506,
    QMLX5_2ERR_QP            = 0x507,
    QMLX5_2RST_QP            = 0x50a,
    QMLX5_QUERY_QP           = 0x50b,
    QMLX5_SQD_RTS_QP         = 0x50c,
    QMLX5_INIT2INIT_QP       = 0x50e,
    QMLX5_ARM_RQ             = 0x703,
    QMLX5_CREATE_XRQ         = 0x717,
    QMLX5_DESTROY_XRQ        = 0x718,
    QMLX5_QUERY_XRQ          = 0x719,
    QMLX5_QUERY_VPORT        = 0x762,
    QMLX5_ALLOC_Q_COUNTER    = 0x771,
    QMLX5_QUERY_Q_COUNTER    = 0x773,
    QMLX5_ALLOC_PD           = 0x800,
    QMLX5_DEALLOC_PD         = 0x801,
    QMLX5_ALLOC_UAR          = 0x802,
    QMLX5_DEALLOC_UAR        = 0x803,
    QMLX5_ALLOC_XRCD         = 0x80e,
    QMLX5_CREATE_RMP         = 0x90c,
    QMLX5_MODIFY_RMP         = 0x90d,
    QMLX5_DESTROY_RMP        = 0x90e,
    QMLX5_QUERY_RMP          = 0x90f,
};

/* Status of a command, and of its delivery. */
enum {
    QMLX5_OK                 = 0x00,
    QMLX5_BAD_OP             = 0x02,
    QMLX5_BAD_PARAM          = 0x03,
    QMLX5_BAD_SYS_STATE      = 0x04,
    QMLX5_BAD_RES            = 0x05,
    QMLX5_RES_BUSY           = 0x06,
    QMLX5_LIM                = 0x08,
    QMLX5_BAD_RES_STATE      = 0x09,
    QMLX5_BAD_INDEX          = 0x0a,
    QMLX5_NO_RES             = 0x0f,
    QMLX5_BAD_QP_STATE       = 0x10,
    QMLX5_BAD_INP_LEN        = 0x50,
    QMLX5_BAD_OUTP_LEN       = 0x51,

    QMLX5_DELIV_OK           = 0x0,
    QMLX5_DELIV_SIG          = 0x1,
    QMLX5_DELIV_TOKEN        = 0x2,
    QMLX5_DELIV_BLOCK        = 0x3,
    QMLX5_DELIV_OUT_PTR      = 0x4,
    QMLX5_DELIV_IN_PTR       = 0x5,
    QMLX5_DELIV_FW           = 0x6,
    QMLX5_DELIV_IN_LEN       = 0x7,
    QMLX5_DELIV_OUT_LEN      = 0x8,
    QMLX5_DELIV_RES          = 0x9,
    QMLX5_DELIV_TYPE         = 0x10,
};

/* Event types. */
enum {
    QMLX5_EV_COMP            = 0x00,
    QMLX5_EV_COMM_EST        = 0x02,
    QMLX5_EV_SQ_DRAINED      = 0x03,
    QMLX5_EV_CQ_ERROR        = 0x04,
    QMLX5_EV_WQ_CATAS        = 0x05,
    QMLX5_EV_INTERNAL        = 0x08,
    QMLX5_EV_PORT            = 0x09,
    QMLX5_EV_CMD             = 0x0a,
    QMLX5_EV_PAGE_REQUEST    = 0x0b,
    QMLX5_EV_PAGE_FAULT      = 0x0c,
    QMLX5_EV_WQ_INVAL        = 0x10,
    QMLX5_EV_WQ_ACCESS       = 0x11,
    QMLX5_EV_SRQ_CATAS       = 0x12,
    QMLX5_EV_SRQ_LAST_WQE    = 0x13,
    QMLX5_EV_SRQ_LIMIT       = 0x14,
};

/* Work requests and completions. */
enum {
    QMLX5_OP_NOP             = 0x00,
    QMLX5_OP_SEND_INVAL      = 0x01,
    QMLX5_OP_WRITE           = 0x08,
    QMLX5_OP_WRITE_IMM       = 0x09,
    QMLX5_OP_SEND            = 0x0a,
    QMLX5_OP_SEND_IMM        = 0x0b,
    QMLX5_OP_READ            = 0x10,
    QMLX5_OP_CS              = 0x11,
    QMLX5_OP_FA              = 0x12,
    QMLX5_OP_MASKED_CS       = 0x14,
    QMLX5_OP_MASKED_FA       = 0x15,
    QMLX5_OP_SET_PSV         = 0x20,
    QMLX5_OP_UMR             = 0x25,
    QMLX5_OP_TAG_MATCHING    = 0x28,

    QMLX5_F_SOLICITED        = 0x02,
    QMLX5_F_SIGNALED         = 0x08,
    QMLX5_F_FENCE            = 0x80,

    QMLX5_CQE_REQ            = 0x0,
    QMLX5_CQE_WR_IMM         = 0x1,
    QMLX5_CQE_SEND           = 0x2,
    QMLX5_CQE_SEND_IMM       = 0x3,
    QMLX5_CQE_SEND_INV       = 0x4,
    QMLX5_CQE_NO_PACKET      = 0x6,
    QMLX5_CQE_SIG_ERR        = 0xc,
    QMLX5_CQE_REQ_ERR        = 0xd,
    QMLX5_CQE_RESP_ERR       = 0xe,

    QMLX5_SYN_LOCAL_LENGTH   = 0x01,
    QMLX5_SYN_LOCAL_QP_OP    = 0x02,
    QMLX5_SYN_LOCAL_PROT     = 0x04,
    QMLX5_SYN_FLUSH          = 0x05,
    QMLX5_SYN_MW_BIND        = 0x06,
    QMLX5_SYN_LOCAL_ACCESS   = 0x11,
    QMLX5_SYN_REMOTE_INVAL   = 0x12,
    QMLX5_SYN_REMOTE_ACCESS  = 0x13,
    QMLX5_SYN_REMOTE_OP      = 0x14,
    QMLX5_SYN_RETRY          = 0x15,
    QMLX5_SYN_RNR_RETRY      = 0x16,
};

/* Rights of a memory key, as Mlx5 numbers them in no register: ours. */
enum {
    QMLX5_LR = 1, QMLX5_LW = 2, QMLX5_RR = 4, QMLX5_RW = 8, QMLX5_A = 16,
    QMLX5_ALL = 31,
    QMLX5_MTT_R = 1, QMLX5_MTT_W = 2, QMLX5_MTT_RW = 3,
};

enum {
    QMLX5_RC = 0, QMLX5_UC = 1, QMLX5_UD = 2, QMLX5_ST_UMR = 12,
    QMLX5_RST = 0, QMLX5_INIT = 1, QMLX5_RTR = 2, QMLX5_RTS = 3,
    QMLX5_SQER = 4, QMLX5_SQD = 5, QMLX5_ERR = 6,
};

/* A machine with HCAs. */
struct QMlx5Host {
    QTestState *qts;
    QGenericPCIBus gbus;
    uint64_t next, end;           /* guest memory given out page by page */
};

struct QMlx5 {
    QMlx5Host *host;
    QTestState *qts;
    QPCIDevice *pdev;
    uint64_t bar;
    uint8_t slot;

    uint64_t cmdq;                /* entries, then two chains of mailboxes */
    uint64_t in_box, out_box;
    uint8_t token;
    uint64_t vectors;             /* page that MSI-X messages write to */
    uint64_t boot_pages;          /* pages given to the device */

    uint32_t uar, pd;
    uint32_t lkey;                /* PD's key of all memory, local rights */
    uint32_t null_mkey, resd_lkey;
    uint16_t lid;
    uint64_t dbr_next, dbr_end;
    QMlx5Eq *cmd_eq, *async_eq, *comp_eq, *pf_eq;
    QMlx5Qp *umr_qp;
    QMlx5Cq *umr_cq;
    uint8_t key_variant;
    GPtrArray *objs;
};

struct QMlx5Eq {
    QMlx5 *d;
    uint32_t eqn, uar, vector;
    uint8_t log_size;
    uint64_t buf;
    uint32_t ci;
};

struct QMlx5Cq {
    QMlx5 *d;
    uint32_t cqn, uar;
    uint8_t log_size;
    uint64_t buf, dbr;
    uint32_t ci;
    uint8_t arm_sn;
};

struct QMlx5Srq {
    QMlx5 *d;
    uint32_t srqn;
    uint8_t log_size, log_stride;
    uint64_t buf, dbr;
    uint16_t pi;                  /* WQEs posted */
    uint16_t tail;                /* WQE index to fill next */
};

typedef struct QMlx5QpAttr {
    uint8_t st;
    uint8_t log_sq, log_rq;       /* basic blocks; receive WQEs */
    uint8_t log_rq_stride;        /* log2 of 16-byte units */
    uint8_t rq_type;              /* 0 own, 1 SRQ, 3 none */
    QMlx5Cq *scq, *rcq;
    QMlx5Srq *srq;
    uint32_t pd, uar, qkey;
    uint32_t access;              /* QMLX5_RR, _RW, _A */
    uint8_t retry, rnr_retry, min_rnr_nak, ack_timeout;
    uint8_t log_msg_max;
    bool fre, block_lb_mc;
    uint32_t counter_set;
} QMlx5QpAttr;

struct QMlx5Qp {
    QMlx5 *d;
    QMlx5QpAttr a;
    uint32_t qpn, uar;
    uint64_t buf, rq_buf, sq_buf, dbr;
    uint16_t sq_pi, rq_pi;
    uint32_t remote_qpn;
    uint16_t dlid;
};

typedef struct QMlx5Wqe {
    uint8_t b[1024];
    uint32_t len;
} QMlx5Wqe;

/* Machine, device. */
QMlx5Host *qmlx5_host(const char *args);
void qmlx5_host_free(QMlx5Host *h);
uint64_t qmlx5_alloc(QMlx5Host *h, uint64_t bytes);
/* Finds and maps the HCA in @slot; nothing is sent to it. */
QMlx5 *qmlx5_open(QMlx5Host *h, unsigned slot);
/* Points MSI-X at memory, enables bus mastering. */
void qmlx5_enable_pci(QMlx5 *d);
/* Gives the device a command queue, with no command run. */
void qmlx5_cmdq_init(QMlx5 *d);
/* The commands up to and with INIT_HCA, EQs, UAR, PD. */
void qmlx5_bring_up(QMlx5 *d);
/* One machine with one HCA that is up; @props: "" or ",name=value...". */
QMlx5 *qmlx5_start(const char *props);
/* @n HCAs on one fabric in slots QMLX5_SLOT.. */
QMlx5Host *qmlx5_start_n(QMlx5 **d, unsigned n, const char *props);
void qmlx5_free(QMlx5 *d);
/* ... with its machine. */
void qmlx5_stop(QMlx5 *d);
/* A driver for the same device in another QEMU (after migration). */
void qmlx5_moved(QMlx5 *d, QMlx5Host *to);
/* The one device of qmlx5_start(""). */
#define QMLX5_DEVICE "-device mlx5-hca,id=hca0,addr=0x4"
/* Waits for a migration, either way; false: it failed. */
bool qmlx5_migrated(QTestState *qts);
/* Moves the machine to a fresh QEMU; the old one is ended. */
QMlx5Host *qmlx5_migrate(QMlx5Host *from, const char *devices);
/* ... that of qmlx5_start(""). */
void qmlx5_move(QMlx5 *d);

/* BAR0, big endian. */
uint32_t qmlx5_bar_read(QMlx5 *d, uint64_t off);
void qmlx5_bar_write(QMlx5 *d, uint64_t off, uint32_t v);
/* true: MSI-X vector fired since last asked. */
bool qmlx5_irq(QMlx5 *d, unsigned vector);

/* Guest memory. */
void qmlx5_read(QMlx5 *d, uint64_t addr, void *p, size_t len);
void qmlx5_write(QMlx5 *d, uint64_t addr, const void *p, size_t len);
uint32_t qmlx5_get32(QMlx5 *d, uint64_t addr);          /* big endian */
void qmlx5_put32(QMlx5 *d, uint64_t addr, uint32_t v);
uint64_t qmlx5_get64_le(QMlx5 *d, uint64_t addr);
void qmlx5_put64_le(QMlx5 *d, uint64_t addr, uint64_t v);
/* A pattern that depends on every byte's place and on @seed. */
void qmlx5_fill(QMlx5 *d, uint64_t addr, size_t len, uint32_t seed);
uint8_t *qmlx5_pattern(size_t len, uint32_t seed);
void qmlx5_expect(QMlx5 *d, uint64_t addr, size_t len, uint32_t seed);
void qmlx5_expect_byte(QMlx5 *d, uint64_t addr, size_t len, uint8_t byte);

/* Lets the device's bottom halves run. */
void qmlx5_settle(QMlx5 *d);
/* Virtual time on by @ns, in steps that timers of the device can follow. */
void qmlx5_clock(QMlx5 *d, int64_t ns);

/* Commands. */
typedef struct QMlx5Entry {
    uint8_t type;
    uint32_t in_len, out_len;
    uint64_t in_ptr, out_ptr;
    uint8_t in[16], out[16];
    uint8_t token, sig, status_own;
} QMlx5Entry;

/* Entry and chains for a command; does not ring. */
void qmlx5_entry_init(QMlx5 *d, QMlx5Entry *e, const void *in, uint32_t in_len,
                      uint32_t out_len);
void qmlx5_entry_write(QMlx5 *d, unsigned slot, const QMlx5Entry *e);
void qmlx5_entry_read(QMlx5 *d, unsigned slot, QMlx5Entry *e);
void qmlx5_cmd_ring(QMlx5 *d, uint32_t slots);
/* Waits for the entry's ownership; false: the device never gave it back. */
bool qmlx5_cmd_wait(QMlx5 *d, unsigned slot, QMlx5Entry *e);
void qmlx5_cmd_output(QMlx5 *d, const QMlx5Entry *e, void *out, uint32_t len);
/* Builds, rings, waits: delivery status. */
uint8_t qmlx5_cmd_deliver(QMlx5 *d, unsigned slot, const void *in,
                          uint32_t in_len, void *out, uint32_t out_len);
/* A command that is delivered: its status. */
uint8_t qmlx5_cmd(QMlx5 *d, const void *in, uint32_t in_len, void *out,
                  uint32_t out_len);
/* 16 bytes each way: opcode, op_mod, dwords at 8 and 12. */
uint8_t qmlx5_cmd_simple(QMlx5 *d, uint16_t op, uint16_t op_mod, uint32_t dw2,
                         uint32_t dw3, uint8_t out[16]);
void qmlx5_cmd_head(void *in, uint16_t op, uint16_t op_mod);
/* QUERY_HCA_CAP: 4096 bytes. */
void qmlx5_query_cap(QMlx5 *d, unsigned type, bool cur, uint8_t cap[4096]);

/* Objects. */
uint32_t qmlx5_pd_new(QMlx5 *d);
uint32_t qmlx5_uar_new(QMlx5 *d);
uint64_t qmlx5_dbr_new(QMlx5 *d);
QMlx5Eq *qmlx5_eq_new(QMlx5 *d, uint8_t log_size, unsigned vector,
                      uint64_t mask);
/* Context for CREATE_EQ as qmlx5_eq_new() has it; returns input length. */
uint32_t qmlx5_eq_in(QMlx5Eq *eq, uint8_t *in, uint64_t mask);
bool qmlx5_eq_poll(QMlx5Eq *eq, uint8_t eqe[64]);
/* Waits for an event of @type (asserts that it comes). */
void qmlx5_eq_wait(QMlx5Eq *eq, uint8_t type, uint8_t eqe[64]);
void qmlx5_eq_none(QMlx5Eq *eq);
/* Tells the consumer index; @arm: asks for an interrupt. */
void qmlx5_eq_update(QMlx5Eq *eq, bool arm);
uint8_t qmlx5_eq_destroy(QMlx5Eq *eq);

QMlx5Cq *qmlx5_cq_new(QMlx5 *d, uint8_t log_size);
/* One that is not created yet: the command for it, *@len bytes (g_free). */
QMlx5Cq *qmlx5_cq_prepare(QMlx5 *d, uint8_t log_size, uint8_t **in,
                          uint32_t *len);
uint32_t qmlx5_cq_in(QMlx5Cq *cq, uint8_t *in, uint32_t eqn);
bool qmlx5_cq_peek(QMlx5Cq *cq, uint8_t cqe[64]);
bool qmlx5_cq_poll(QMlx5Cq *cq, uint8_t cqe[64]);
void qmlx5_cq_wait(QMlx5Cq *cq, uint8_t cqe[64]);
void qmlx5_cq_none(QMlx5Cq *cq);
void qmlx5_cq_arm(QMlx5Cq *cq, bool solicited);
uint8_t qmlx5_cq_destroy(QMlx5Cq *cq);
/* A big-endian dword, unsigned (ldl_be_p() is not). */
static inline uint32_t qmlx5_be32(const uint8_t *p)
{
    return ldl_be_p(p);
}
static inline uint8_t qmlx5_cqe_op(const uint8_t *cqe)
{
    return cqe[63] >> 4;
}
static inline uint8_t qmlx5_cqe_syndrome(const uint8_t *cqe)
{
    return cqe[55];
}
/* Waits for a completion with this opcode; returns the CQE's byte count. */
uint32_t qmlx5_cq_expect(QMlx5Cq *cq, uint8_t opcode);
/* Waits for an error completion. */
void qmlx5_cq_expect_err(QMlx5Cq *cq, uint8_t opcode, uint8_t syndrome);

/* Memory keys: returns the key, index << 8 | variant. */
typedef struct QMlx5MkeyAttr {
    uint8_t mode;                 /* 0 PA, 1 MTT, 2 KLM, 3 KSM */
    uint32_t pd, access, qpn;
    uint64_t va, len;
    bool length64, free, umr, en_rinval, pg_access, ats;
    bool sig;                     /* room for a signature descriptor */
    uint8_t log_page;
    uint32_t entries;             /* MTTs, KLMs or KSMs */
    const uint64_t *list;         /* MTT, or pairs as KLM {bc<<32|key, va} */
    uint32_t nlist;               /* of them in the command */
    uint32_t actual;              /* octowords claimed; 0: those of nlist */
} QMlx5MkeyAttr;
uint8_t qmlx5_mkey_cmd(QMlx5 *d, const QMlx5MkeyAttr *a, uint32_t *key);
uint32_t qmlx5_mkey_new(QMlx5 *d, const QMlx5MkeyAttr *a);
uint8_t qmlx5_mkey_destroy(QMlx5 *d, uint32_t key);
uint32_t qmlx5_mkey_pa(QMlx5 *d, uint32_t pd, uint32_t access);
/* [va, va + len) on memory at @pa, pages of 4 KiB; va and pa page-aligned. */
uint32_t qmlx5_mkey_mtt(QMlx5 *d, uint32_t pd, uint32_t access, uint64_t va,
                        uint64_t pa, uint64_t len);
/* An ODP key: @pages of 4 KiB, none present; made as mlx5_ib does it. */
uint32_t qmlx5_mkey_odp(QMlx5 *d, uint32_t access, uint64_t va,
                        uint32_t pages);

/* Queue pairs. */
QMlx5QpAttr qmlx5_qp_attr(QMlx5 *d, uint8_t st);
QMlx5Qp *qmlx5_qp_new(QMlx5 *d, const QMlx5QpAttr *a);
uint32_t qmlx5_qp_in(QMlx5Qp *qp, uint8_t *in);
void qmlx5_qp_context(QMlx5Qp *qp, uint16_t op, uint8_t *in);
uint8_t qmlx5_qp_modify(QMlx5Qp *qp, uint16_t op);
void qmlx5_qp_connect(QMlx5Qp *a, QMlx5Qp *b);
void qmlx5_qp_rts(QMlx5Qp *qp);
uint8_t qmlx5_qp_state(QMlx5Qp *qp);
uint8_t qmlx5_qp_destroy(QMlx5Qp *qp);
/* RC (UC, UD) queue pair in RTS, connected to itself. */
QMlx5Qp *qmlx5_qp_self(QMlx5 *d, uint8_t st);
/* Back to RTS after an error: 2RST, INIT, RTR, RTS. */
void qmlx5_qp_revive(QMlx5Qp *qp);

QMlx5Srq *qmlx5_srq_new(QMlx5 *d, uint32_t pd, uint8_t log_size,
                        uint16_t lwm);
void qmlx5_srq_recv(QMlx5Srq *s, uint32_t lkey, uint64_t va, uint32_t len);

/* Work requests. */
void qmlx5_wqe(QMlx5Wqe *w, uint8_t op, uint8_t flags, uint32_t imm);
void qmlx5_wqe_raddr(QMlx5Wqe *w, uint64_t va, uint32_t rkey);
void qmlx5_wqe_data(QMlx5Wqe *w, uint32_t lkey, uint64_t va, uint32_t len);
void qmlx5_wqe_inline(QMlx5Wqe *w, const void *p, uint32_t len);
void qmlx5_wqe_atomic(QMlx5Wqe *w, uint64_t swap_add, uint64_t compare);
void qmlx5_wqe_av(QMlx5Wqe *w, uint16_t dlid, uint32_t dqpn, uint32_t qkey);
/* Puts the request into the queue; qmlx5_ring() or qmlx5_post() starts it. */
void qmlx5_queue(QMlx5Qp *qp, QMlx5Wqe *w);
void qmlx5_ring(QMlx5Qp *qp);
void qmlx5_post(QMlx5Qp *qp, QMlx5Wqe *w);
/* Signaled requests with one data segment. */
void qmlx5_post_rdma(QMlx5Qp *qp, uint8_t op, uint32_t lkey, uint64_t va,
                     uint32_t len, uint32_t rkey, uint64_t raddr);
void qmlx5_post_send(QMlx5Qp *qp, uint8_t op, uint32_t lkey, uint64_t va,
                     uint32_t len);
void qmlx5_post_atomic(QMlx5Qp *qp, uint8_t op, uint32_t lkey, uint64_t va,
                       uint32_t rkey, uint64_t raddr, uint64_t swap_add,
                       uint64_t compare);
typedef struct QMlx5Sge {
    uint32_t key;
    uint64_t va;
    uint32_t len;
} QMlx5Sge;
void qmlx5_recv(QMlx5Qp *qp, uint32_t lkey, uint64_t va, uint32_t len);
void qmlx5_recv_sgl(QMlx5Qp *qp, const QMlx5Sge *sge, unsigned n);

/* UMR. */
enum {
    QMLX5_UMR_INLINE = 0x80, QMLX5_UMR_CHECK_FREE = 0x40,
    QMLX5_UMR_CHECK_NOT_FREE = 0x20, QMLX5_UMR_OFFSET = 0x10,
};
#define QMLX5_M_LEN       (1ull << 0)
#define QMLX5_M_PAGE_SIZE (1ull << 1)
#define QMLX5_M_START     (1ull << 6)
#define QMLX5_M_PD        (1ull << 7)
#define QMLX5_M_KEY       (1ull << 13)
#define QMLX5_M_QPN       (1ull << 14)
#define QMLX5_M_LR        (1ull << 17)
#define QMLX5_M_LW        (1ull << 18)
#define QMLX5_M_RR        (1ull << 19)
#define QMLX5_M_RW        (1ull << 20)
#define QMLX5_M_A         (1ull << 21)
#define QMLX5_M_SIGERR    (1ull << 9)
#define QMLX5_M_BSF       (1ull << 12)
#define QMLX5_M_FREE      (1ull << 29)
#define QMLX5_M_ACCESS \
    (QMLX5_M_LR | QMLX5_M_LW | QMLX5_M_RR | QMLX5_M_RW | QMLX5_M_A)

typedef struct QMlx5Umr {
    uint32_t key;                 /* in the control segment */
    uint8_t flags;
    uint64_t mask;
    uint32_t octowords;           /* of the list */
    uint64_t offset;              /* in octowords of the key's list */
    /* Memory key segment, for what mask names. */
    bool free;
    uint32_t access, pd;
    uint8_t variant;
    uint64_t va, len;
    uint8_t log_page;
    uint32_t xlt;                 /* octowords of the whole list */
    /* List: in memory by (lkey, addr), or inline bytes. */
    uint32_t lkey;
    uint64_t addr;
    uint32_t bytes;
    const void *inl;
    /* Signatures: a descriptor of 64 bytes, or NULL. */
    const uint8_t *bsf;
    bool bsf_en, sigerr;
} QMlx5Umr;
void qmlx5_wqe_umr(QMlx5Wqe *w, const QMlx5Umr *u);
/* On the UMR service QP; returns the syndrome, 0: done. */
uint8_t qmlx5_umr(QMlx5 *d, const QMlx5Umr *u);
/* Writes @n MTTs of an ODP key from entry @first on. */
void qmlx5_mtt_update(QMlx5 *d, uint32_t key, uint32_t first,
                      const uint64_t *mtt, uint32_t n);

/* Page faults, memory scheme. */
typedef struct QMlx5Fault {
    uint8_t sub_type;
    uint8_t flags;
    uint64_t token;
    uint32_t pages;               /* 4 KiB that the operation needs */
    uint32_t key;
    uint64_t va;
    uint8_t data[28];
} QMlx5Fault;
/* Makes the page-fault EQ (as the first ODP MR does). */
void qmlx5_pf_enable(QMlx5 *d, uint8_t log_size);
bool qmlx5_pf_poll(QMlx5 *d, QMlx5Fault *f);
void qmlx5_pf_wait(QMlx5 *d, QMlx5Fault *f);
uint8_t qmlx5_pf_resume(QMlx5 *d, const QMlx5Fault *f, bool error);

#endif
