#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
# odp: minutes=3 kernel=sva
"""Functions in the hands of programs of the guest: vfio-pci, by container
and group and by iommufd."""

import odptest
from odp.common import TOP
from svatest import Sva, WithAts


class Vfio(WithAts, Sva, odptest.GuestTest):
    # uio_pci_generic_sva keeps the vectors of a function with MSIs, and the
    # kernel breaks down when it is unbound from that.
    bound = '0x15b3:0x7f5a:'
    #: What is refused is an event of the SMMU; the HCA's driver misses its
    #: function while we have it.
    allow_log = r'arm-smmu-v3.*(event|caused fault)|uio_pci_sva|vfio-pci'

    @classmethod
    def settings(cls):
        script = TOP / 'tests/guest/odp-vfio.py'
        found = super().settings()
        found['copies'] = [*found['copies'],
                           f'{script}:/usr/local/bin/odp-vfio.py']
        return found

    @classmethod
    def prepare(cls, guest):
        super().prepare(guest)
        guest.sh('modprobe -a vfio_iommu_type1 vfio-pci iommufd')
        # DRIVER FUNCTION: gives it to the driver
        guest.sh('''cat >/tmp/rebind <<'EOF'
set -e
dev=/sys/bus/pci/devices/$2
[ ! -e $dev/driver ] || echo $2 >$dev/driver/unbind
echo $1 >$dev/driver_override
echo $2 >/sys/bus/pci/drivers_probe
[ $(basename $(readlink $dev/driver)) = $1 ]
EOF''')

    def both(self, mode, pci, driver=None):
        """With both interfaces; then the driver has it back."""
        said = ''
        for how in 'type1', 'iommufd':
            script = f'set -e; sh /tmp/rebind vfio-pci {pci}; ' \
                f'python3 /usr/local/bin/odp-vfio.py {mode} {how} {pci}'
            if driver:
                script += f'; sh /tmp/rebind {driver} {pci}'
            out = self.sh(script)
            print(''.join(f'# {how}: {line}\n'
                          for line in out.splitlines()), end='', flush=True)
            self.assertIn('done', out)
            said += out
        # Nothing else was disturbed.
        self.odp('traffic', '--iters', 50, '--kib', 64)
        return said

    def test_exerciser(self):
        """Mapped and unmapped under traffic; MSI doorbells."""
        pci = self.sh('grep -l 0xed01 /sys/bus/pci/devices/*/device')
        out = self.both('exerciser', pci.split('/')[-2])
        self.assertEqual(out.count('MSIs written 256, interrupts 1'), 2)

    def test_hca(self):
        """The second one: commands through mapped memory."""
        pci = self.portals[2][:-1] + '0'
        self.both('hca', pci, 'mlx5_core')
        self.assertIn('PORT_ACTIVE', self.sh('''for i in $(seq 50); do
    ibv_devinfo | grep -c PORT_ACTIVE | grep -q 2 && break; sleep 0.2
done; ibv_devinfo'''))

    def test_portal(self):
        """A portal, and then a process that has it by SVA."""
        self.both('portal', self.portals[0], 'uio_pci_sva')


odptest.main(__name__)
