/*
 * QTest: mlx5 management registers (ACCESS_REG)
 *
 * SPDX-License-Identifier: GPL-2.0-or-later
 */
#include "qemu/osdep.h"
#include "qemu/bswap.h"
#include "mlx5-driver.h"

enum {
    ACCESS_REG = 0x805, WRITE = 0, READ = 1,
    MCQS = 0x9060, MCQI = 0x9061, MCAM = 0x907f,
    HEAD = 16,
    BOOT_IMAGE = 1, VERSION = 1,
    FW_VERSION = 20 << 24 | 31 << 16 | 1014,
};

/* @in and @out are the register's bytes. */
static uint8_t reg(QMlx5 *d, uint16_t how, uint16_t id, const void *in,
                   uint32_t in_len, void *out, uint32_t out_len)
{
    uint8_t i[HEAD + 256] = { }, o[HEAD + 256] = { }, status;

    qmlx5_cmd_head(i, ACCESS_REG, how);
    stw_be_p(i + 10, id);
    memcpy(i + HEAD, in, in_len);
    status = qmlx5_cmd(d, i, HEAD + in_len, o, HEAD + out_len);
    memcpy(out, o + HEAD, out_len);
    return status;
}

static void test_mcam(void)
{
    QMlx5 *d = qmlx5_start("");
    uint8_t in[MLX5_BYTES(mcam_reg)] = { }, out[MLX5_BYTES(mcam_reg)];
    uint8_t cap[4096];

    qmlx5_query_cap(d, 0, true, cap);
    g_assert_cmpint(MLX5_GET(cap, cmd_hca_cap, mcam_reg), ==, 1);
    g_assert_cmphex(reg(d, READ, MCAM, in, sizeof(in), out, sizeof(out)), ==,
                    0);
    /* Exactly the two that the other test reads. */
    g_assert_cmphex(qmlx5_be32(out + 8), ==, 0x3);
    for (int i = 12; i < sizeof(out); i++) {
        g_assert_cmphex(out[i], ==, 0);
    }
    for (int group = 1; group < 4; group++) {
        in[3] = group;
        g_assert_cmphex(reg(d, READ, MCAM, in, sizeof(in), out, sizeof(out)),
                        ==, 0);
        g_assert_cmphex(qmlx5_be32(out + 8), ==, 0);
    }
    in[3] = 4;
    g_assert_cmphex(reg(d, READ, MCAM, in, sizeof(in), out, sizeof(out)), ==,
                    QMLX5_BAD_PARAM);
    in[3] = 0;
    in[1] = 1;
    g_assert_cmphex(reg(d, READ, MCAM, in, sizeof(in), out, sizeof(out)), ==,
                    QMLX5_BAD_PARAM);
    in[1] = 0;
    g_assert_cmphex(reg(d, WRITE, MCAM, in, sizeof(in), out, sizeof(out)), ==,
                    QMLX5_BAD_PARAM);
    g_assert_cmphex(reg(d, READ, MCAM, in, 68, out, sizeof(out)), ==,
                    QMLX5_BAD_INP_LEN);
    g_assert_cmphex(reg(d, READ, MCAM, in, sizeof(in), out, 68), ==,
                    QMLX5_BAD_OUTP_LEN);
    qmlx5_stop(d);
}

static void test_firmware(void)
{
    QMlx5 *d = qmlx5_start("");
    uint8_t s[MLX5_BYTES(mcqs_reg)] = { }, q[MLX5_BYTES(mcqi_reg)] = { };
    uint8_t out[sizeof(q) + MLX5_BYTES(mcqi_version)];

    g_assert_cmphex(reg(d, READ, MCQS, s, sizeof(s), out, sizeof(s)), ==, 0);
    g_assert_cmpint(MLX5_GET(out, mcqs_reg, identifier), ==, BOOT_IMAGE);
    g_assert_cmpint(MLX5_GET(out, mcqs_reg, last_index_flag), ==, 1);
    g_assert_cmpint(MLX5_GET(out, mcqs_reg, component_update_state), ==, 0);
    MLX5_SET(s, mcqs_reg, component_index, 1);
    g_assert_cmphex(reg(d, READ, MCQS, s, sizeof(s), out, sizeof(s)), ==,
                    QMLX5_BAD_PARAM);

    MLX5_SET(q, mcqi_reg, info_type, VERSION);
    MLX5_SET(q, mcqi_reg, data_size, MLX5_BYTES(mcqi_version));
    g_assert_cmphex(reg(d, READ, MCQI, q, sizeof(q), out, sizeof(out)), ==, 0);
    g_assert_cmphex(MLX5_GET(out + sizeof(q), mcqi_version, version), ==,
                    FW_VERSION);
    /* A part of it. */
    MLX5_SET(q, mcqi_reg, offset, 4);
    MLX5_SET(q, mcqi_reg, data_size, 4);
    g_assert_cmphex(reg(d, READ, MCQI, q, sizeof(q), out, sizeof(q) + 4), ==,
                    0);
    g_assert_cmphex(qmlx5_be32(out + sizeof(q)), ==, FW_VERSION);
    g_assert_cmphex(reg(d, READ, MCQI, q, sizeof(q), out, sizeof(q)), ==,
                    QMLX5_BAD_OUTP_LEN);
    MLX5_SET(q, mcqi_reg, data_size, MLX5_BYTES(mcqi_version));
    g_assert_cmphex(reg(d, READ, MCQI, q, sizeof(q), out, sizeof(out)), ==,
                    QMLX5_BAD_PARAM);
    MLX5_SET(q, mcqi_reg, offset, UINT32_MAX);
    g_assert_cmphex(reg(d, READ, MCQI, q, sizeof(q), out, sizeof(out)), ==,
                    QMLX5_BAD_PARAM);
    MLX5_SET(q, mcqi_reg, offset, 0);
    MLX5_SET(q, mcqi_reg, read_pending_component, 1);
    g_assert_cmphex(reg(d, READ, MCQI, q, sizeof(q), out, sizeof(out)), ==,
                    QMLX5_BAD_PARAM);
    MLX5_SET(q, mcqi_reg, read_pending_component, 0);
    MLX5_SET(q, mcqi_reg, info_type, 0);
    g_assert_cmphex(reg(d, READ, MCQI, q, sizeof(q), out, sizeof(out)), ==,
                    QMLX5_BAD_PARAM);
    MLX5_SET(q, mcqi_reg, info_type, VERSION);
    MLX5_SET(q, mcqi_reg, component_index, 1);
    g_assert_cmphex(reg(d, READ, MCQI, q, sizeof(q), out, sizeof(out)), ==,
                    QMLX5_BAD_PARAM);
    qmlx5_stop(d);
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    qtest_add_func("/mlx5/regs/mcam", test_mcam);
    qtest_add_func("/mlx5/regs/firmware", test_firmware);
    return g_test_run();
}
