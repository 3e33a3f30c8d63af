/*
 * SMMUv3: with the optional features off it is QEMU 10.2.2's
 *
 * ID registers, device tree, IORT, qtree (but for the new properties) and
 * the description at the end of the migration stream are compared by hash
 * with those of an unpatched QEMU 10.2.2. The hashes below are what
 *
 *     ODP_PRINT=1 QTEST_QEMU_BINARY=UNPATCHED odp-smmuv3-identity-test
 *
 * prints. With ODP_QEMU_BASE=UNPATCHED state migrates there and back, too.
 *
 * SPDX-License-Identifier: GPL-2.0-or-later
 */
#include "qemu/osdep.h"
#include "qemu/bswap.h"
#include "qobject/qdict.h"
#include "smmuv3-test.h"

enum { IDREGS, DTB, IORT, QTREE, STREAM, KINDS };
static const char *const kind_name[KINDS] = {
    "ID registers", "device tree", "IORT", "qtree", "migration stream",
};

typedef struct Config {
    const char *name, *args;
    uint64_t smmu;
    const char *hash[KINDS];
} Config;

static const Config config[] = {
    {
        "machine", ",iommu=smmuv3", 0x09050000, {
            "de6ee51acd618fadc4926fa7cf5bc9e3"
            "3bb987014a8a088fd6fdbd711994f0bc",
            "c6077dd6549f8370c0cf2e779fbc4eb1"
            "32a13f388f8451a3b5174e3cf51b3c4c",
            "d5f83d68ae66f68e5a8dc036db89bf12"
            "1219d0902f400668e840be5f03438fdb",
            "7485576c07ff930e5886256441cfc635"
            "2f66c1ab9b2ad3cca853308c28834607",
            "d60117a830b33961904410c17a30ad8a"
            "ddc52737914e248ec1555f4c0ebf8889",
        },
    }, {
        "machine-its-off", ",iommu=smmuv3,its=off", 0x09050000, {
            "de6ee51acd618fadc4926fa7cf5bc9e3"
            "3bb987014a8a088fd6fdbd711994f0bc",
            "8382bf3bd5e1cc39bbd6854a869ba3c7"
            "cd6616fa746ea545c8b16b08fc5c3aaa",
            "288eb85ca9f5fe6ae0f0dc4ec21e2337"
            "9084e8c36547cb2f7f7e1ebeaf492b28",
            "477926f6dd50091a33ef11cc5daf6bc6"
            "14a720eadf2555dcdc3d461897121758",
            "e0dddbde937b649b5ec5dde6cbf2a9fd"
            "5eb852aa6d25ba73112d458e97c33647",
        },
    }, {
        "device", " -device arm-smmuv3,primary-bus=pcie.0", 0x0c000000, {
            "41ee6e2a085a02cfedba9aaf6d45284a"
            "403a561563589d8c63f058ee777bb2a0",
            "ceec8fdc29d693b510531ac96564a30a"
            "1095dc24fa84a3cbd96ee565ec8b442e",
            "1827aecaaa4e6d6add5d57cdebb21895"
            "20dfde8f9668aa573571905ce67d8f4c",
            "419ea30fa0085d8579e6a85120f35b76"
            "9c4ab708e0acc82cac182f59a80ef50a",
            "d60117a830b33961904410c17a30ad8a"
            "ddc52737914e248ec1555f4c0ebf8889",
        },
    }, {
        "device-nested", " -device arm-smmuv3,primary-bus=pcie.0,stage=nested",
        0x0c000000, {
            "de6ee51acd618fadc4926fa7cf5bc9e3"
            "3bb987014a8a088fd6fdbd711994f0bc",
            "ceec8fdc29d693b510531ac96564a30a"
            "1095dc24fa84a3cbd96ee565ec8b442e",
            "1827aecaaa4e6d6add5d57cdebb21895"
            "20dfde8f9668aa573571905ce67d8f4c",
            "689b63beef180918264fe364991b92ac"
            "b61434ba9aecab25d1e51b431bc528e7",
            "d60117a830b33961904410c17a30ad8a"
            "ddc52737914e248ec1555f4c0ebf8889",
        },
    },
};

static char *sha(const void *data, size_t len)
{
    return g_compute_checksum_for_data(G_CHECKSUM_SHA256, data, len);
}

static char *args_of(const Config *c, const char *more)
{
    return g_strdup_printf("-machine virt,gic-version=3,dtb-randomness=off%s "
                           "-cpu cortex-a57 -smp 1 -m 256 -nic none "
                           "-display none -serial null -monitor none %s",
                           c->args, more);
}

static char *idregs(QTestState *qts, const Config *c)
{
    uint32_t reg[8 + 12];

    for (int i = 0; i < 8; i++) {
        reg[i] = cpu_to_le32(qtest_readl(qts, c->smmu + i * 4));
    }
    for (int i = 0; i < 12; i++) {
        reg[8 + i] = cpu_to_le32(qtest_readl(qts, c->smmu + 0xfd0 + i * 4));
    }
    return sha(reg, sizeof(reg));
}

static char *dtb(QTestState *qts)
{
    uint32_t head[2];
    g_autofree char *blob = NULL;
    size_t len;

    qtest_memread(qts, VIRT_RAM, head, sizeof(head));
    g_assert_cmphex(be32_to_cpu(head[0]), ==, 0xd00dfeed);
    len = be32_to_cpu(head[1]);
    blob = g_malloc(len);
    qtest_memread(qts, VIRT_RAM, blob, len);
    return sha(blob, len);
}

static char *iort(QTestState *qts)
{
    size_t size;
    g_autofree uint8_t *tables = fw_cfg_file(qts, "etc/acpi/tables", &size);

    for (size_t at = 0; at + 36 <= size; at++) {
        uint32_t len = ldl_le_p(tables + at + 4);

        if (!memcmp(tables + at, "IORT", 4) && len <= size - at) {
            return sha(tables + at, len);
        }
    }
    g_error("no IORT");
}

/* Properties that the patches add */
static const char *const added[] = {
    "oas", "ssidsize", "stall-model", "stall-max", "ats", "pri", "httu",
    "atc-inv-timeout", "pmcg", "ril", "msi",
};

static char *qtree(QTestState *qts)
{
    g_autofree char *text = qtest_hmp(qts, "info qtree");
    g_auto(GStrv) line = g_strsplit(text, "\n", -1);
    g_autoptr(GString) kept = g_string_new(NULL);
    bool in_smmu = false;

    for (int i = 0; line[i]; i++) {
        const char *s = line[i] + strspn(line[i], " \r");
        bool drop = false;

        if (g_str_has_prefix(s, "dev: ")) {
            in_smmu = g_str_has_prefix(s, "dev: arm-smmuv3");
        }
        for (int j = 0; in_smmu && j < ARRAY_SIZE(added); j++) {
            size_t n = strlen(added[j]);

            drop |= !strncmp(s, added[j], n) && !strncmp(s + n, " = ", 3);
        }
        if (!drop) {
            g_string_append_printf(kept, "%s\n", s);
        }
    }
    return sha(kept->str, kept->len);
}

static void wait_for(QTestState *qts, const char *what, const char *status)
{
    for (int i = 0; i < 3000; i++) {
        QDict *rsp = qtest_qmp(qts, "{ 'execute': %s }", what);
        const char *s = qdict_get_try_str(qdict_get_qdict(rsp, "return"),
                                          "status");
        bool done = s && !strcmp(s, status);

        g_assert_true(!s || strcmp(s, "failed"));
        qobject_unref(rsp);
        if (done) {
            return;
        }
        g_usleep(10000);
    }
    g_error("%s never says %s", what, status);
}

static char *save(QTestState *qts)
{
    char *file = g_strdup_printf("%s/odp-identity-%d.state", g_get_tmp_dir(),
                                 getpid());
    g_autofree char *uri = g_strdup_printf("file:%s", file);

    qtest_qmp_assert_success(qts, "{ 'execute': 'migrate', 'arguments': "
                             "{ 'uri': %s } }", uri);
    wait_for(qts, "query-migrate", "completed");
    return file;
}

/* The JSON at the stream's end names every field, type and size. */
static char *stream(QTestState *qts)
{
    g_autofree char *file = save(qts), *data = NULL;
    gsize len;
    const char *from;

    g_assert_true(g_file_get_contents(file, &data, &len, NULL));
    unlink(file);
    from = memmem(data, len, "\"page_size\"", 11);
    g_assert_nonnull(from);
    g_assert_nonnull(memmem(from, data + len - from, "\"smmuv3\"", 8));
    return sha(from, data + len - from);
}

static void test_identity(gconstpointer opaque)
{
    const Config *c = opaque;
    g_autofree char *args = args_of(c, "");
    QTestState *qts = qtest_init(args);
    char *got[KINDS] = {
        [IDREGS] = idregs(qts, c), [DTB] = dtb(qts), [IORT] = iort(qts),
        [QTREE] = qtree(qts), [STREAM] = stream(qts),
    };

    if (g_getenv("ODP_PRINT")) {
        g_print("# %s\n", c->name);
    }
    for (int i = 0; i < KINDS; i++) {
        if (g_getenv("ODP_PRINT")) {
            g_print("#         \"%s\",\n", got[i]);
        } else if (g_strcmp0(got[i], c->hash[i])) {
            g_error("%s: %s differs from QEMU 10.2.2", c->name, kind_name[i]);
        }
        g_free(got[i]);
    }
    qtest_quit(qts);
}

/* State of the SMMU goes from one emulator to another. */
static void transfer(const Config *c, const char *from, const char *to)
{
    g_autofree char *args = args_of(c, ""), *in = NULL, *args_in = NULL;
    g_autofree char *file = NULL;
    QTestState *qts;

    g_setenv("QTEST_QEMU_BINARY", from, true);
    qts = qtest_init(args);
    qtest_writeq(qts, c->smmu + SMMU_STRTAB_BASE, 0x44440000);
    qtest_writel(qts, c->smmu + SMMU_STRTAB_BASE_CFG, 8);
    qtest_writeq(qts, c->smmu + SMMU_EVENTQ_BASE, 0x45550000 | 4);
    qtest_writel(qts, c->smmu + SMMU_CR0, CR0_SMMUEN | CR0_EVENTQEN);
    file = save(qts);
    qtest_quit(qts);

    g_setenv("QTEST_QEMU_BINARY", to, true);
    in = g_strdup_printf("-incoming file:%s", file);
    args_in = args_of(c, in);
    qts = qtest_init(args_in);
    wait_for(qts, "query-status", "running");
    unlink(file);
    g_assert_cmphex(qtest_readq(qts, c->smmu + SMMU_STRTAB_BASE), ==,
                    0x44440000);
    g_assert_cmphex(qtest_readl(qts, c->smmu + SMMU_STRTAB_BASE_CFG), ==, 8);
    g_assert_cmphex(qtest_readq(qts, c->smmu + SMMU_EVENTQ_BASE), ==,
                    0x45550000 | 4);
    g_assert_cmphex(qtest_readl(qts, c->smmu + SMMU_CR0), ==,
                    CR0_SMMUEN | CR0_EVENTQEN);
    qtest_quit(qts);
}

static void test_transfer(gconstpointer opaque)
{
    g_autofree char *ours = g_strdup(g_getenv("QTEST_QEMU_BINARY"));

    transfer(opaque, g_getenv("ODP_QEMU_BASE"), ours);
    transfer(opaque, ours, g_getenv("ODP_QEMU_BASE"));
    g_setenv("QTEST_QEMU_BINARY", ours, true);
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    for (int i = 0; i < ARRAY_SIZE(config); i++) {
        g_autofree char *name = g_strdup_printf("smmuv3/identity/%s",
                                                config[i].name);
        g_autofree char *move = g_strdup_printf("smmuv3/transfer/%s",
                                                config[i].name);

        qtest_add_data_func(name, &config[i], test_identity);
        if (g_getenv("ODP_QEMU_BASE")) {
            qtest_add_data_func(move, &config[i], test_transfer);
        }
    }
    return g_test_run();
}
