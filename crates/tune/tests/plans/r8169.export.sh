==== /usr/local/sbin/isolane-tune.sh
#!/bin/sh
# Sets a machine up for its critical topics, and puts back what was there.
# Made by isolane tune export for left, profile latency.
# Facts: made up from the driver's source (README.md), not recorded from a machine: a laptop with a Realtek RTL8168, a wireless interface, and everything as it was delivered
# apply: every step in order, and stop at the first that fails; undo: all of them, in reverse.
# It changes nothing of itself: it knows what was there when the facts were read, and no journal.
set -u

failed=0

# A step that is not done here, and why.
left_out() {
    echo "$1 is left out, for $2" >&2
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
    # cores.sibling.2: cores 3 and 2 are two hardware threads of one core: programs on core 2 take up to half of the executor's speed
    { echo 0 > /sys/devices/system/cpu/cpu2/online; } || exit 1
    # cores.governor.3: after a pause a core runs at a fraction of its speed for milliseconds, and everything takes correspondingly longer
    { echo performance > /sys/devices/system/cpu/cpu3/cpufreq/scaling_governor; } || exit 1
    # cores.idle-state-2.3: core 3 takes 133 us to leave this idle state: the first sample after a pause waits for it
    { echo 1 > /sys/devices/system/cpu/cpu3/cpuidle/state2/disable; } || exit 1
    # cores.idle-state-3.3: core 3 takes 890 us to leave this idle state: the first sample after a pause waits for it
    { echo 1 > /sys/devices/system/cpu/cpu3/cpuidle/state3/disable; } || exit 1
    # cores.work-queues: deferred work of drivers and file systems may arrive on core 3: some microseconds each
    { echo f3 > /sys/devices/virtual/workqueue/cpumask; } || exit 1
    # cores.new-interrupts: interrupts that are requested after this change may arrive on core 3: some microseconds each
    { echo f3 > /proc/irq/default_smp_affinity; } || exit 1
    # cores.watchdog: a watchdog thread of the highest priority checks every 4 s whether core 3 still runs
    { echo 0-1,4-7 > /proc/sys/kernel/watchdog_cpumask; } || exit 1
    # cores.statistics: each second, every core updates its memory counters: some microseconds
    { echo 10 > /proc/sys/vm/stat_interval; } || exit 1
    # scheduler.throttling: a real-time thread that does not sleep is stopped for 50 ms of each period
    { echo -1 > /proc/sys/kernel/sched_rt_runtime_us; } || exit 1
    # memory.huge-pages: a page fault may copy 2 MiB, which takes some 100 us, in a program that did not request huge pages
    { echo madvise > /sys/kernel/mm/transparent_hugepage/enabled; } || exit 1
    # sockets.buffer-most: at level 1, up to 200 datagrams arrive within 20 ms, and the kernel drops those that do not fit
    { echo 577536 > /proc/sys/net/core/rmem_max; } || exit 1
    # sockets.buffer: at level 1, up to 200 datagrams arrive within 20 ms, and the kernel drops those that do not fit
    { echo 577536 > /proc/sys/net/core/rmem_default; } || exit 1
    # sockets.busy-read: each read of a socket first polls the device for 50 us, also on critical cores
    { echo 0 > /proc/sys/net/core/busy_read; } || exit 1
    # services.irqbalance: every ten seconds irqbalance moves interrupts, also to core 3, and undoes their affinities
    { mkdir -p /etc/systemd/system/irqbalance.service.d && printf %s '[Service]
Environment=IRQBALANCE_BANNED_CPULIST=3
' > /etc/systemd/system/irqbalance.service.d/50-isolane.conf; } || exit 1
    # in effect after systemctl daemon-reload, and a restart of the service; or a boot
    # boot.arguments: on core 3, other programs run for milliseconds, and the kernel's tick and callbacks for 1 to 10 us, up to 1,000 times a second; these arguments keep them off
    { mkdir -p /etc/default/grub.d && printf %s 'GRUB_CMDLINE_LINUX="$GRUB_CMDLINE_LINUX isolcpus=managed_irq,domain,3 nohz_full=3 rcu_nocbs=3 irqaffinity=0-1,4-7"
' > /etc/default/grub.d/90-isolane.cfg; } || exit 1
    # in effect after update-grub, and a boot
}

undo() {
    :
    # boot.arguments: on core 3, other programs run for milliseconds, and the kernel's tick and callbacks for 1 to 10 us, up to 1,000 times a second; these arguments keep them off
    { rm -f /etc/default/grub.d/90-isolane.cfg; } || failed=1
    # services.irqbalance: every ten seconds irqbalance moves interrupts, also to core 3, and undoes their affinities
    { rm -f /etc/systemd/system/irqbalance.service.d/50-isolane.conf; } || failed=1
    # sockets.busy-read: each read of a socket first polls the device for 50 us, also on critical cores
    { echo 50 > /proc/sys/net/core/busy_read; } || failed=1
    # sockets.buffer: at level 1, up to 200 datagrams arrive within 20 ms, and the kernel drops those that do not fit
    { echo 212992 > /proc/sys/net/core/rmem_default; } || failed=1
    # sockets.buffer-most: at level 1, up to 200 datagrams arrive within 20 ms, and the kernel drops those that do not fit
    { echo 212992 > /proc/sys/net/core/rmem_max; } || failed=1
    # memory.huge-pages: a page fault may copy 2 MiB, which takes some 100 us, in a program that did not request huge pages
    { echo always > /sys/kernel/mm/transparent_hugepage/enabled; } || failed=1
    # scheduler.throttling: a real-time thread that does not sleep is stopped for 50 ms of each period
    { echo 950000 > /proc/sys/kernel/sched_rt_runtime_us; } || failed=1
    # cores.statistics: each second, every core updates its memory counters: some microseconds
    { echo 1 > /proc/sys/vm/stat_interval; } || failed=1
    # cores.watchdog: a watchdog thread of the highest priority checks every 4 s whether core 3 still runs
    { echo 0-7 > /proc/sys/kernel/watchdog_cpumask; } || failed=1
    # cores.new-interrupts: interrupts that are requested after this change may arrive on core 3: some microseconds each
    { echo ff > /proc/irq/default_smp_affinity; } || failed=1
    # cores.work-queues: deferred work of drivers and file systems may arrive on core 3: some microseconds each
    { echo ff > /sys/devices/virtual/workqueue/cpumask; } || failed=1
    # cores.idle-state-3.3: core 3 takes 890 us to leave this idle state: the first sample after a pause waits for it
    { echo 0 > /sys/devices/system/cpu/cpu3/cpuidle/state3/disable; } || failed=1
    # cores.idle-state-2.3: core 3 takes 133 us to leave this idle state: the first sample after a pause waits for it
    { echo 0 > /sys/devices/system/cpu/cpu3/cpuidle/state2/disable; } || failed=1
    # cores.governor.3: after a pause a core runs at a fraction of its speed for milliseconds, and everything takes correspondingly longer
    { echo powersave > /sys/devices/system/cpu/cpu3/cpufreq/scaling_governor; } || failed=1
    # cores.sibling.2: cores 3 and 2 are two hardware threads of one core: programs on core 2 take up to half of the executor's speed
    { echo 1 > /sys/devices/system/cpu/cpu2/online; } || failed=1
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
