==== /usr/local/sbin/isolane-tune.sh
#!/bin/sh
# Sets a machine up for its critical topics, and puts back what was there.
# Made by isolane tune export for left, profile latency.
# Facts: made up from the driver's source (README.md), not recorded from a machine: a server with a Mellanox ConnectX-5
# apply: every step in order, and stop at the first that fails; undo: all of them, in reverse.
# It changes nothing of itself: it knows what was there when the facts were read, and no journal.
set -u

failed=0

# A step that is not done here, and why.
left_out() {
    echo "$1 is left out, for $2" >&2
}

# The number of an interrupt by its name: after a boot it is another one.
interrupt() {
    awk -v name="$1" '
        { gsub(/, /, ","); at = length($0) - length(name) }
        at > 0 && substr($0, at) == " " name { sub(/:.*/, ""); sub(/^ */, ""); print; exit }
    ' "${INTERRUPTS:-/proc/interrupts}"
}

# The NAPI thread of an interface's receive queue: they are made in the order of the queues, with ascending numbers.
napi() {
    pgrep -l "^napi/$1-[0-9]+\$" | awk '{ number = $2; sub(/.*-/, "", number); print number, $1 }' | sort -n |
        awk -v line=$(($2 + 1)) '
            NR > 1 && $1 != last + 1 { several = 1 }
            { last = $1 }
            NR == line { thread = $2 }
            END { if (!several) print thread }
        '
}

# Waits until an interface is up, which takes a network manager some seconds.
up() {
    tries=30
    while [ $(($(cat "/sys/class/net/$1/flags" 2>/dev/null || echo 0) & 1)) = 0 ]; do
        [ "$tries" -gt 0 ] || { echo "$1 is not up" >&2; return 1; }
        tries=$((tries - 1))
        sleep 1
    done
}

apply() {
    :
    up eth0 || exit 1
    # relied on: queues of eth0
    { ethtool -L eth0 combined 16; } || exit 1
    # relied on: UDP ports in the hash of eth0
    { ethtool -N eth0 rx-flow-hash udp4 sdfn; } || exit 1
    # interface.offload-rx-gro.eth0: the kernel merges frames of one flow before it delivers them: a critical frame waits for the other frames of its poll
    { ethtool -K eth0 rx-gro off; } || exit 1
    # interface.offload-tx-tcp-segmentation.eth0: 64 KiB of a bulk stream go to the wire at once: 524 us at 1 Gbit/s, in front of a critical frame that shares the queue
    { ethtool -K eth0 tx-tcp-segmentation off; } || exit 1
    # interface.offload-tx-tcp6-segmentation.eth0: 64 KiB of a bulk stream over IPv6 go to the wire at once: 524 us at 1 Gbit/s, in front of a critical frame that shares the queue
    { ethtool -K eth0 tx-tcp6-segmentation off; } || exit 1
    # interface.offload-tx-generic-segmentation.eth0: 64 KiB of a bulk stream wait as one unit and are cut only when they are sent, so no critical frame is sent between the parts
    { ethtool -K eth0 tx-generic-segmentation off; } || exit 1
    # interface.offload-tx-udp-segmentation.eth0: 64 KiB of a bulk stream go to the wire at once, in front of a critical frame that shares the queue
    { ethtool -K eth0 tx-udp-segmentation off; } || exit 1
    # interface.rings.eth0: 1024 frames of 1,500 B in the ring take 12599 us at 1 Gbit/s, and a critical frame cannot overtake them
    { ethtool -G eth0 rx 1024 tx 256; } || exit 1
    # interface.moderation.eth0: the driver delays interrupts depending on the load, so the wait of a frame cannot be predicted
    { ethtool -C eth0 adaptive-rx off adaptive-tx off rx-usecs 0 rx-frames 1 tx-usecs 0 tx-frames 32; } || exit 1
    # interface.rules-on.eth0: without this feature, the device ignores flow rules
    { ethtool -K eth0 rx-ntuple-filter on; } || exit 1
    # interface.rule-7007.eth0: datagrams to UDP port 7007 arrive on queue 7, where only critical traffic arrives
    { ethtool -N eth0 flow-type udp4 dst-ip 10.0.0.1 dst-port 7007 action 7 loc 0; } || exit 1
    # interface.receive-table.eth0: only rules lead to queue 7; the hash spreads all other traffic over the other queues
    { ethtool -X eth0 weight 1 1 1 1 1 1 1 0 1 1 1 1 1 1 1 1; } || exit 1
    # interface.transmit.eth0: critical frames have transmit queue 7: a critical frame does not wait behind frames of other queues, except for one frame of each if the device serves its queues in turn; IGMP and LACP (priority 7) use this queue too, 0.7 us for each frame at 1 Gbit/s: some frames when a program joins or leaves groups
    { tc qdisc replace dev eth0 root mqprio num_tc 2 map 0 0 0 0 0 0 0 1 0 0 0 0 0 0 0 0 queues 8@8 1@7 hw 0; } || exit 1
    # interface.interrupt-mlx5_comp0@pci:0000:3b:00.0.eth0: mlx5_comp0@pci:0000:3b:00.0 would take core 15 from the executor: some microseconds each time, milliseconds in a flood
    { echo 0-14 > "/proc/irq/$(interrupt mlx5_comp0@pci:0000:3b:00.0)/smp_affinity_list"; } || exit 1
    # interface.interrupt-mlx5_comp1@pci:0000:3b:00.0.eth0: mlx5_comp1@pci:0000:3b:00.0 would take core 15 from the executor: some microseconds each time, milliseconds in a flood
    { echo 0-14 > "/proc/irq/$(interrupt mlx5_comp1@pci:0000:3b:00.0)/smp_affinity_list"; } || exit 1
    # interface.interrupt-mlx5_comp2@pci:0000:3b:00.0.eth0: mlx5_comp2@pci:0000:3b:00.0 would take core 15 from the executor: some microseconds each time, milliseconds in a flood
    { echo 0-14 > "/proc/irq/$(interrupt mlx5_comp2@pci:0000:3b:00.0)/smp_affinity_list"; } || exit 1
    # interface.interrupt-mlx5_comp3@pci:0000:3b:00.0.eth0: mlx5_comp3@pci:0000:3b:00.0 would take core 15 from the executor: some microseconds each time, milliseconds in a flood
    { echo 0-14 > "/proc/irq/$(interrupt mlx5_comp3@pci:0000:3b:00.0)/smp_affinity_list"; } || exit 1
    # interface.interrupt-mlx5_comp4@pci:0000:3b:00.0.eth0: mlx5_comp4@pci:0000:3b:00.0 would take core 15 from the executor: some microseconds each time, milliseconds in a flood
    { echo 0-14 > "/proc/irq/$(interrupt mlx5_comp4@pci:0000:3b:00.0)/smp_affinity_list"; } || exit 1
    # interface.interrupt-mlx5_comp5@pci:0000:3b:00.0.eth0: mlx5_comp5@pci:0000:3b:00.0 would take core 15 from the executor: some microseconds each time, milliseconds in a flood
    { echo 0-14 > "/proc/irq/$(interrupt mlx5_comp5@pci:0000:3b:00.0)/smp_affinity_list"; } || exit 1
    # interface.interrupt-mlx5_comp6@pci:0000:3b:00.0.eth0: mlx5_comp6@pci:0000:3b:00.0 would take core 15 from the executor: some microseconds each time, milliseconds in a flood
    { echo 0-14 > "/proc/irq/$(interrupt mlx5_comp6@pci:0000:3b:00.0)/smp_affinity_list"; } || exit 1
    # interface.interrupt-mlx5_comp7@pci:0000:3b:00.0.eth0: according to the measurement, mlx5_comp7@pci:0000:3b:00.0 serves only critical datagrams: core 15 receives them, where the executor uses them
    { echo 15 > "/proc/irq/$(interrupt mlx5_comp7@pci:0000:3b:00.0)/smp_affinity_list"; } || exit 1
    # interface.interrupt-mlx5_comp8@pci:0000:3b:00.0.eth0: mlx5_comp8@pci:0000:3b:00.0 would take core 15 from the executor: some microseconds each time, milliseconds in a flood
    { echo 0-14 > "/proc/irq/$(interrupt mlx5_comp8@pci:0000:3b:00.0)/smp_affinity_list"; } || exit 1
    # interface.interrupt-mlx5_comp9@pci:0000:3b:00.0.eth0: mlx5_comp9@pci:0000:3b:00.0 would take core 15 from the executor: some microseconds each time, milliseconds in a flood
    { echo 0-14 > "/proc/irq/$(interrupt mlx5_comp9@pci:0000:3b:00.0)/smp_affinity_list"; } || exit 1
    # interface.interrupt-mlx5_comp10@pci:0000:3b:00.0.eth0: mlx5_comp10@pci:0000:3b:00.0 would take core 15 from the executor: some microseconds each time, milliseconds in a flood
    { echo 0-14 > "/proc/irq/$(interrupt mlx5_comp10@pci:0000:3b:00.0)/smp_affinity_list"; } || exit 1
    # interface.interrupt-mlx5_comp11@pci:0000:3b:00.0.eth0: mlx5_comp11@pci:0000:3b:00.0 would take core 15 from the executor: some microseconds each time, milliseconds in a flood
    { echo 0-14 > "/proc/irq/$(interrupt mlx5_comp11@pci:0000:3b:00.0)/smp_affinity_list"; } || exit 1
    # interface.interrupt-mlx5_comp12@pci:0000:3b:00.0.eth0: mlx5_comp12@pci:0000:3b:00.0 would take core 15 from the executor: some microseconds each time, milliseconds in a flood
    { echo 0-14 > "/proc/irq/$(interrupt mlx5_comp12@pci:0000:3b:00.0)/smp_affinity_list"; } || exit 1
    # interface.interrupt-mlx5_comp13@pci:0000:3b:00.0.eth0: mlx5_comp13@pci:0000:3b:00.0 would take core 15 from the executor: some microseconds each time, milliseconds in a flood
    { echo 0-14 > "/proc/irq/$(interrupt mlx5_comp13@pci:0000:3b:00.0)/smp_affinity_list"; } || exit 1
    # interface.interrupt-mlx5_comp14@pci:0000:3b:00.0.eth0: mlx5_comp14@pci:0000:3b:00.0 would take core 15 from the executor: some microseconds each time, milliseconds in a flood
    { echo 0-14 > "/proc/irq/$(interrupt mlx5_comp14@pci:0000:3b:00.0)/smp_affinity_list"; } || exit 1
    # interface.interrupt-mlx5_comp15@pci:0000:3b:00.0.eth0: mlx5_comp15@pci:0000:3b:00.0 would take core 15 from the executor: some microseconds each time, milliseconds in a flood
    { echo 0-14 > "/proc/irq/$(interrupt mlx5_comp15@pci:0000:3b:00.0)/smp_affinity_list"; } || exit 1
    # cores.idle-state-2.15: core 15 takes 127 us to leave this idle state: the first sample after a pause waits for it
    { echo 1 > /sys/devices/system/cpu/cpu15/cpuidle/state2/disable; } || exit 1
    # cores.idle-state-3.15: core 15 takes 1048 us to leave this idle state: the first sample after a pause waits for it
    { echo 1 > /sys/devices/system/cpu/cpu15/cpuidle/state3/disable; } || exit 1
    # cores.work-queues: deferred work of drivers and file systems may arrive on core 15: some microseconds each
    { echo 7fff > /sys/devices/virtual/workqueue/cpumask; } || exit 1
    # cores.new-interrupts: interrupts that are requested after this change may arrive on core 15: some microseconds each
    { echo 7fff > /proc/irq/default_smp_affinity; } || exit 1
    # cores.watchdog: a watchdog thread of the highest priority checks every 4 s whether core 15 still runs
    { echo 0-14 > /proc/sys/kernel/watchdog_cpumask; } || exit 1
    # cores.statistics: each second, every core updates its memory counters: some microseconds
    { echo 10 > /proc/sys/vm/stat_interval; } || exit 1
    # scheduler.throttling: a real-time thread that does not sleep is stopped for 50 ms of each period
    { echo -1 > /proc/sys/kernel/sched_rt_runtime_us; } || exit 1
    # scheduler.fair-server.15: when ordinary programs wait on the executor's core, the kernel stops the executor for the time reserved for them: 50 ms of each second by default
    { echo 0 > /sys/kernel/debug/sched/fair_server/cpu15/runtime; } || exit 1
    # sockets.buffer-most: at level 1, up to 200 datagrams arrive within 20 ms, and the kernel drops those that do not fit
    { echo 577536 > /proc/sys/net/core/rmem_max; } || exit 1
    # sockets.buffer: at level 1, up to 200 datagrams arrive within 20 ms, and the kernel drops those that do not fit
    { echo 577536 > /proc/sys/net/core/rmem_default; } || exit 1
    # boot.arguments: on core 15, other programs run for milliseconds, and the kernel's tick and callbacks for 1 to 10 us, up to 1,000 times a second; these arguments keep them off
    { mkdir -p /etc/default/grub.d && printf %s 'GRUB_CMDLINE_LINUX="$GRUB_CMDLINE_LINUX isolcpus=managed_irq,domain,15 nohz_full=15 rcu_nocbs=15 irqaffinity=0-14"
' > /etc/default/grub.d/90-isolane.cfg; } || exit 1
    # in effect after update-grub, and a boot
    # interface.threaded.eth0: receive work in a soft interrupt, also of bulk, runs before every thread; receive threads have priorities
    { echo 1 > /sys/class/net/eth0/threaded; } || exit 1
    # interface.thread-0.eth0: this thread receives bulk when no application with FIFO 70 has work, and before all ordinary programs; at ordinary priority it would starve, and later occupy a core for milliseconds
    { chrt -f -p 60 "$(napi eth0 0)" && taskset -pc 0-14 "$(napi eth0 0)"; } || exit 1
    # interface.thread-1.eth0: this thread receives bulk when no application with FIFO 70 has work, and before all ordinary programs; at ordinary priority it would starve, and later occupy a core for milliseconds
    { chrt -f -p 60 "$(napi eth0 1)" && taskset -pc 0-14 "$(napi eth0 1)"; } || exit 1
    # interface.thread-2.eth0: this thread receives bulk when no application with FIFO 70 has work, and before all ordinary programs; at ordinary priority it would starve, and later occupy a core for milliseconds
    { chrt -f -p 60 "$(napi eth0 2)" && taskset -pc 0-14 "$(napi eth0 2)"; } || exit 1
    # interface.thread-3.eth0: this thread receives bulk when no application with FIFO 70 has work, and before all ordinary programs; at ordinary priority it would starve, and later occupy a core for milliseconds
    { chrt -f -p 60 "$(napi eth0 3)" && taskset -pc 0-14 "$(napi eth0 3)"; } || exit 1
    # interface.thread-4.eth0: this thread receives bulk when no application with FIFO 70 has work, and before all ordinary programs; at ordinary priority it would starve, and later occupy a core for milliseconds
    { chrt -f -p 60 "$(napi eth0 4)" && taskset -pc 0-14 "$(napi eth0 4)"; } || exit 1
    # interface.thread-5.eth0: this thread receives bulk when no application with FIFO 70 has work, and before all ordinary programs; at ordinary priority it would starve, and later occupy a core for milliseconds
    { chrt -f -p 60 "$(napi eth0 5)" && taskset -pc 0-14 "$(napi eth0 5)"; } || exit 1
    # interface.thread-6.eth0: this thread receives bulk when no application with FIFO 70 has work, and before all ordinary programs; at ordinary priority it would starve, and later occupy a core for milliseconds
    { chrt -f -p 60 "$(napi eth0 6)" && taskset -pc 0-14 "$(napi eth0 6)"; } || exit 1
    # interface.thread-7.eth0: critical jobs wait for the frames that this thread receives, so it runs above the applications, which should run at FIFO 70
    { chrt -f -p 75 "$(napi eth0 7)" && taskset -pc 15 "$(napi eth0 7)"; } || exit 1
    # interface.thread-8.eth0: this thread receives bulk when no application with FIFO 70 has work, and before all ordinary programs; at ordinary priority it would starve, and later occupy a core for milliseconds
    { chrt -f -p 60 "$(napi eth0 8)" && taskset -pc 0-14 "$(napi eth0 8)"; } || exit 1
    # interface.thread-9.eth0: this thread receives bulk when no application with FIFO 70 has work, and before all ordinary programs; at ordinary priority it would starve, and later occupy a core for milliseconds
    { chrt -f -p 60 "$(napi eth0 9)" && taskset -pc 0-14 "$(napi eth0 9)"; } || exit 1
    # interface.thread-10.eth0: this thread receives bulk when no application with FIFO 70 has work, and before all ordinary programs; at ordinary priority it would starve, and later occupy a core for milliseconds
    { chrt -f -p 60 "$(napi eth0 10)" && taskset -pc 0-14 "$(napi eth0 10)"; } || exit 1
    # interface.thread-11.eth0: this thread receives bulk when no application with FIFO 70 has work, and before all ordinary programs; at ordinary priority it would starve, and later occupy a core for milliseconds
    { chrt -f -p 60 "$(napi eth0 11)" && taskset -pc 0-14 "$(napi eth0 11)"; } || exit 1
    # interface.thread-12.eth0: this thread receives bulk when no application with FIFO 70 has work, and before all ordinary programs; at ordinary priority it would starve, and later occupy a core for milliseconds
    { chrt -f -p 60 "$(napi eth0 12)" && taskset -pc 0-14 "$(napi eth0 12)"; } || exit 1
    # interface.thread-13.eth0: this thread receives bulk when no application with FIFO 70 has work, and before all ordinary programs; at ordinary priority it would starve, and later occupy a core for milliseconds
    { chrt -f -p 60 "$(napi eth0 13)" && taskset -pc 0-14 "$(napi eth0 13)"; } || exit 1
    # interface.thread-14.eth0: this thread receives bulk when no application with FIFO 70 has work, and before all ordinary programs; at ordinary priority it would starve, and later occupy a core for milliseconds
    { chrt -f -p 60 "$(napi eth0 14)" && taskset -pc 0-14 "$(napi eth0 14)"; } || exit 1
    # interface.thread-15.eth0: this thread receives bulk when no application with FIFO 70 has work, and before all ordinary programs; at ordinary priority it would starve, and later occupy a core for milliseconds
    { chrt -f -p 60 "$(napi eth0 15)" && taskset -pc 0-14 "$(napi eth0 15)"; } || exit 1
}

undo() {
    :
    # interface.thread-15.eth0: this thread receives bulk when no application with FIFO 70 has work, and before all ordinary programs; at ordinary priority it would starve, and later occupy a core for milliseconds
    { : it ends by itself; } || failed=1
    # interface.thread-14.eth0: this thread receives bulk when no application with FIFO 70 has work, and before all ordinary programs; at ordinary priority it would starve, and later occupy a core for milliseconds
    { : it ends by itself; } || failed=1
    # interface.thread-13.eth0: this thread receives bulk when no application with FIFO 70 has work, and before all ordinary programs; at ordinary priority it would starve, and later occupy a core for milliseconds
    { : it ends by itself; } || failed=1
    # interface.thread-12.eth0: this thread receives bulk when no application with FIFO 70 has work, and before all ordinary programs; at ordinary priority it would starve, and later occupy a core for milliseconds
    { : it ends by itself; } || failed=1
    # interface.thread-11.eth0: this thread receives bulk when no application with FIFO 70 has work, and before all ordinary programs; at ordinary priority it would starve, and later occupy a core for milliseconds
    { : it ends by itself; } || failed=1
    # interface.thread-10.eth0: this thread receives bulk when no application with FIFO 70 has work, and before all ordinary programs; at ordinary priority it would starve, and later occupy a core for milliseconds
    { : it ends by itself; } || failed=1
    # interface.thread-9.eth0: this thread receives bulk when no application with FIFO 70 has work, and before all ordinary programs; at ordinary priority it would starve, and later occupy a core for milliseconds
    { : it ends by itself; } || failed=1
    # interface.thread-8.eth0: this thread receives bulk when no application with FIFO 70 has work, and before all ordinary programs; at ordinary priority it would starve, and later occupy a core for milliseconds
    { : it ends by itself; } || failed=1
    # interface.thread-7.eth0: critical jobs wait for the frames that this thread receives, so it runs above the applications, which should run at FIFO 70
    { : it ends by itself; } || failed=1
    # interface.thread-6.eth0: this thread receives bulk when no application with FIFO 70 has work, and before all ordinary programs; at ordinary priority it would starve, and later occupy a core for milliseconds
    { : it ends by itself; } || failed=1
    # interface.thread-5.eth0: this thread receives bulk when no application with FIFO 70 has work, and before all ordinary programs; at ordinary priority it would starve, and later occupy a core for milliseconds
    { : it ends by itself; } || failed=1
    # interface.thread-4.eth0: this thread receives bulk when no application with FIFO 70 has work, and before all ordinary programs; at ordinary priority it would starve, and later occupy a core for milliseconds
    { : it ends by itself; } || failed=1
    # interface.thread-3.eth0: this thread receives bulk when no application with FIFO 70 has work, and before all ordinary programs; at ordinary priority it would starve, and later occupy a core for milliseconds
    { : it ends by itself; } || failed=1
    # interface.thread-2.eth0: this thread receives bulk when no application with FIFO 70 has work, and before all ordinary programs; at ordinary priority it would starve, and later occupy a core for milliseconds
    { : it ends by itself; } || failed=1
    # interface.thread-1.eth0: this thread receives bulk when no application with FIFO 70 has work, and before all ordinary programs; at ordinary priority it would starve, and later occupy a core for milliseconds
    { : it ends by itself; } || failed=1
    # interface.thread-0.eth0: this thread receives bulk when no application with FIFO 70 has work, and before all ordinary programs; at ordinary priority it would starve, and later occupy a core for milliseconds
    { : it ends by itself; } || failed=1
    # interface.threaded.eth0: receive work in a soft interrupt, also of bulk, runs before every thread; receive threads have priorities
    { echo 0 > /sys/class/net/eth0/threaded; } || failed=1
    # boot.arguments: on core 15, other programs run for milliseconds, and the kernel's tick and callbacks for 1 to 10 us, up to 1,000 times a second; these arguments keep them off
    { rm -f /etc/default/grub.d/90-isolane.cfg; } || failed=1
    # sockets.buffer: at level 1, up to 200 datagrams arrive within 20 ms, and the kernel drops those that do not fit
    { echo 212992 > /proc/sys/net/core/rmem_default; } || failed=1
    # sockets.buffer-most: at level 1, up to 200 datagrams arrive within 20 ms, and the kernel drops those that do not fit
    { echo 212992 > /proc/sys/net/core/rmem_max; } || failed=1
    # scheduler.fair-server.15: when ordinary programs wait on the executor's core, the kernel stops the executor for the time reserved for them: 50 ms of each second by default
    { echo 50000000 > /sys/kernel/debug/sched/fair_server/cpu15/runtime; } || failed=1
    # scheduler.throttling: a real-time thread that does not sleep is stopped for 50 ms of each period
    { echo 950000 > /proc/sys/kernel/sched_rt_runtime_us; } || failed=1
    # cores.statistics: each second, every core updates its memory counters: some microseconds
    { echo 1 > /proc/sys/vm/stat_interval; } || failed=1
    # cores.watchdog: a watchdog thread of the highest priority checks every 4 s whether core 15 still runs
    { echo 0-15 > /proc/sys/kernel/watchdog_cpumask; } || failed=1
    # cores.new-interrupts: interrupts that are requested after this change may arrive on core 15: some microseconds each
    { echo ffff > /proc/irq/default_smp_affinity; } || failed=1
    # cores.work-queues: deferred work of drivers and file systems may arrive on core 15: some microseconds each
    { echo ffff > /sys/devices/virtual/workqueue/cpumask; } || failed=1
    # cores.idle-state-3.15: core 15 takes 1048 us to leave this idle state: the first sample after a pause waits for it
    { echo 0 > /sys/devices/system/cpu/cpu15/cpuidle/state3/disable; } || failed=1
    # cores.idle-state-2.15: core 15 takes 127 us to leave this idle state: the first sample after a pause waits for it
    { echo 0 > /sys/devices/system/cpu/cpu15/cpuidle/state2/disable; } || failed=1
    # interface.interrupt-mlx5_comp15@pci:0000:3b:00.0.eth0: mlx5_comp15@pci:0000:3b:00.0 would take core 15 from the executor: some microseconds each time, milliseconds in a flood
    { echo 0-15 > "/proc/irq/$(interrupt mlx5_comp15@pci:0000:3b:00.0)/smp_affinity_list"; } || failed=1
    # interface.interrupt-mlx5_comp14@pci:0000:3b:00.0.eth0: mlx5_comp14@pci:0000:3b:00.0 would take core 15 from the executor: some microseconds each time, milliseconds in a flood
    { echo 0-15 > "/proc/irq/$(interrupt mlx5_comp14@pci:0000:3b:00.0)/smp_affinity_list"; } || failed=1
    # interface.interrupt-mlx5_comp13@pci:0000:3b:00.0.eth0: mlx5_comp13@pci:0000:3b:00.0 would take core 15 from the executor: some microseconds each time, milliseconds in a flood
    { echo 0-15 > "/proc/irq/$(interrupt mlx5_comp13@pci:0000:3b:00.0)/smp_affinity_list"; } || failed=1
    # interface.interrupt-mlx5_comp12@pci:0000:3b:00.0.eth0: mlx5_comp12@pci:0000:3b:00.0 would take core 15 from the executor: some microseconds each time, milliseconds in a flood
    { echo 0-15 > "/proc/irq/$(interrupt mlx5_comp12@pci:0000:3b:00.0)/smp_affinity_list"; } || failed=1
    # interface.interrupt-mlx5_comp11@pci:0000:3b:00.0.eth0: mlx5_comp11@pci:0000:3b:00.0 would take core 15 from the executor: some microseconds each time, milliseconds in a flood
    { echo 0-15 > "/proc/irq/$(interrupt mlx5_comp11@pci:0000:3b:00.0)/smp_affinity_list"; } || failed=1
    # interface.interrupt-mlx5_comp10@pci:0000:3b:00.0.eth0: mlx5_comp10@pci:0000:3b:00.0 would take core 15 from the executor: some microseconds each time, milliseconds in a flood
    { echo 0-15 > "/proc/irq/$(interrupt mlx5_comp10@pci:0000:3b:00.0)/smp_affinity_list"; } || failed=1
    # interface.interrupt-mlx5_comp9@pci:0000:3b:00.0.eth0: mlx5_comp9@pci:0000:3b:00.0 would take core 15 from the executor: some microseconds each time, milliseconds in a flood
    { echo 0-15 > "/proc/irq/$(interrupt mlx5_comp9@pci:0000:3b:00.0)/smp_affinity_list"; } || failed=1
    # interface.interrupt-mlx5_comp8@pci:0000:3b:00.0.eth0: mlx5_comp8@pci:0000:3b:00.0 would take core 15 from the executor: some microseconds each time, milliseconds in a flood
    { echo 0-15 > "/proc/irq/$(interrupt mlx5_comp8@pci:0000:3b:00.0)/smp_affinity_list"; } || failed=1
    # interface.interrupt-mlx5_comp7@pci:0000:3b:00.0.eth0: according to the measurement, mlx5_comp7@pci:0000:3b:00.0 serves only critical datagrams: core 15 receives them, where the executor uses them
    { echo 0-15 > "/proc/irq/$(interrupt mlx5_comp7@pci:0000:3b:00.0)/smp_affinity_list"; } || failed=1
    # interface.interrupt-mlx5_comp6@pci:0000:3b:00.0.eth0: mlx5_comp6@pci:0000:3b:00.0 would take core 15 from the executor: some microseconds each time, milliseconds in a flood
    { echo 0-15 > "/proc/irq/$(interrupt mlx5_comp6@pci:0000:3b:00.0)/smp_affinity_list"; } || failed=1
    # interface.interrupt-mlx5_comp5@pci:0000:3b:00.0.eth0: mlx5_comp5@pci:0000:3b:00.0 would take core 15 from the executor: some microseconds each time, milliseconds in a flood
    { echo 0-15 > "/proc/irq/$(interrupt mlx5_comp5@pci:0000:3b:00.0)/smp_affinity_list"; } || failed=1
    # interface.interrupt-mlx5_comp4@pci:0000:3b:00.0.eth0: mlx5_comp4@pci:0000:3b:00.0 would take core 15 from the executor: some microseconds each time, milliseconds in a flood
    { echo 0-15 > "/proc/irq/$(interrupt mlx5_comp4@pci:0000:3b:00.0)/smp_affinity_list"; } || failed=1
    # interface.interrupt-mlx5_comp3@pci:0000:3b:00.0.eth0: mlx5_comp3@pci:0000:3b:00.0 would take core 15 from the executor: some microseconds each time, milliseconds in a flood
    { echo 0-15 > "/proc/irq/$(interrupt mlx5_comp3@pci:0000:3b:00.0)/smp_affinity_list"; } || failed=1
    # interface.interrupt-mlx5_comp2@pci:0000:3b:00.0.eth0: mlx5_comp2@pci:0000:3b:00.0 would take core 15 from the executor: some microseconds each time, milliseconds in a flood
    { echo 0-15 > "/proc/irq/$(interrupt mlx5_comp2@pci:0000:3b:00.0)/smp_affinity_list"; } || failed=1
    # interface.interrupt-mlx5_comp1@pci:0000:3b:00.0.eth0: mlx5_comp1@pci:0000:3b:00.0 would take core 15 from the executor: some microseconds each time, milliseconds in a flood
    { echo 0-15 > "/proc/irq/$(interrupt mlx5_comp1@pci:0000:3b:00.0)/smp_affinity_list"; } || failed=1
    # interface.interrupt-mlx5_comp0@pci:0000:3b:00.0.eth0: mlx5_comp0@pci:0000:3b:00.0 would take core 15 from the executor: some microseconds each time, milliseconds in a flood
    { echo 0-15 > "/proc/irq/$(interrupt mlx5_comp0@pci:0000:3b:00.0)/smp_affinity_list"; } || failed=1
    # interface.transmit.eth0: critical frames have transmit queue 7: a critical frame does not wait behind frames of other queues, except for one frame of each if the device serves its queues in turn; IGMP and LACP (priority 7) use this queue too, 0.7 us for each frame at 1 Gbit/s: some frames when a program joins or leaves groups
    { tc qdisc del dev eth0 root; } || failed=1
    # interface.receive-table.eth0: only rules lead to queue 7; the hash spreads all other traffic over the other queues
    { ethtool -X eth0 equal 16; } || failed=1
    # interface.rule-7007.eth0: datagrams to UDP port 7007 arrive on queue 7, where only critical traffic arrives
    { ethtool -N eth0 delete 0; } || failed=1
    # interface.rules-on.eth0: without this feature, the device ignores flow rules
    { ethtool -K eth0 rx-ntuple-filter off; } || failed=1
    # interface.moderation.eth0: the driver delays interrupts depending on the load, so the wait of a frame cannot be predicted
    { ethtool -C eth0 adaptive-rx on adaptive-tx on rx-usecs 8 rx-frames 128 tx-usecs 16 tx-frames 32; } || failed=1
    # interface.rings.eth0: 1024 frames of 1,500 B in the ring take 12599 us at 1 Gbit/s, and a critical frame cannot overtake them
    { ethtool -G eth0 rx 1024 tx 1024; } || failed=1
    # interface.offload-tx-udp-segmentation.eth0: 64 KiB of a bulk stream go to the wire at once, in front of a critical frame that shares the queue
    { ethtool -K eth0 tx-udp-segmentation on; } || failed=1
    # interface.offload-tx-generic-segmentation.eth0: 64 KiB of a bulk stream wait as one unit and are cut only when they are sent, so no critical frame is sent between the parts
    { ethtool -K eth0 tx-generic-segmentation on; } || failed=1
    # interface.offload-tx-tcp6-segmentation.eth0: 64 KiB of a bulk stream over IPv6 go to the wire at once: 524 us at 1 Gbit/s, in front of a critical frame that shares the queue
    { ethtool -K eth0 tx-tcp6-segmentation on; } || failed=1
    # interface.offload-tx-tcp-segmentation.eth0: 64 KiB of a bulk stream go to the wire at once: 524 us at 1 Gbit/s, in front of a critical frame that shares the queue
    { ethtool -K eth0 tx-tcp-segmentation on; } || failed=1
    # interface.offload-rx-gro.eth0: the kernel merges frames of one flow before it delivers them: a critical frame waits for the other frames of its poll
    { ethtool -K eth0 rx-gro on; } || failed=1
}

case "${1:-}" in
    apply | start) apply ;;
    undo | stop) undo ;;
    *)
        echo "usage: $0 apply | undo" >&2
        exit 2
        ;;
esac
exit "$failed"
