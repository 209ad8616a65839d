==== /usr/local/sbin/isolane-tune.sh
#!/bin/sh
# Sets a machine up for its critical topics, and puts back what was there.
# Made by isolane tune export for left, profile latency.
# Facts: made up from the driver's source (README.md), not recorded from a machine: a desktop with an Intel I226 and PREEMPT_RT, as Meszlenyi et al. have it
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
    # relied on: queues of eth0
    { ethtool -L eth0 combined 4; } || exit 1
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
    # interface.rings.eth0: the ring of 256 frames is full after 172 us at 1 Gbit/s (shortest frames): if the core is busy for longer, the next frames are lost
    { ethtool -G eth0 rx 1024 tx 256; } || exit 1
    # interface.moderation.eth0: the driver delays interrupts by 10 to 250 us, depending on the load, and each frame waits for its interrupt
    { ethtool -C eth0 rx-usecs 0; } || exit 1
    # interface.udp-hash.eth0: the device hashes only addresses: all levels between two hosts arrive on the same queue
    { ethtool -N eth0 rx-flow-hash udp4 sdfn; } || exit 1
    # interface.receive-table.eth0: critical datagrams have 1 of 128 table entries, which lead to queue 3; all other traffic is spread over the other queues
    left_out interface.receive-table.eth0 'it rests on this boot'\''s measurement'
    # interface.transmit.eth0: critical frames have transmit queue 3: the device sends this queue before all others (according to its driver, not verified on hardware): a critical frame waits for the frame on the wire; IGMP and LACP (priority 7) use this queue too, 0.7 us for each frame at 1 Gbit/s: some frames when a program joins or leaves groups
    { tc qdisc replace dev eth0 root mqprio num_tc 4 map 0 0 0 1 1 2 2 3 0 0 0 0 0 0 0 0 queues 1@0 1@1 1@2 1@3 hw 1; } || exit 1
    # cores.governor.7: after a pause a core runs at a fraction of its speed for milliseconds, and everything takes correspondingly longer
    { echo performance > /sys/devices/system/cpu/cpu7/cpufreq/scaling_governor; } || exit 1
    # cores.idle-state-2.7: core 7 takes 127 us to leave this idle state: the first sample after a pause waits for it
    { echo 1 > /sys/devices/system/cpu/cpu7/cpuidle/state2/disable; } || exit 1
    # cores.idle-state-3.7: core 7 takes 1048 us to leave this idle state: the first sample after a pause waits for it
    { echo 1 > /sys/devices/system/cpu/cpu7/cpuidle/state3/disable; } || exit 1
    # cores.work-queues: deferred work of drivers and file systems may arrive on core 7: some microseconds each
    { echo 7f > /sys/devices/virtual/workqueue/cpumask; } || exit 1
    # cores.new-interrupts: interrupts that are requested after this change may arrive on core 7: some microseconds each
    { echo 7f > /proc/irq/default_smp_affinity; } || exit 1
    # cores.watchdog: a watchdog thread of the highest priority checks every 4 s whether core 7 still runs
    { echo 0-6 > /proc/sys/kernel/watchdog_cpumask; } || exit 1
    # cores.statistics: each second, every core updates its memory counters: some microseconds
    { echo 10 > /proc/sys/vm/stat_interval; } || exit 1
    # scheduler.throttling: a real-time thread that does not sleep is stopped for 50 ms of each period
    { echo -1 > /proc/sys/kernel/sched_rt_runtime_us; } || exit 1
    # scheduler.fair-server.7: when ordinary programs wait on the executor's core, the kernel stops the executor for the time reserved for them: 50 ms of each second by default
    { echo 0 > /sys/kernel/debug/sched/fair_server/cpu7/runtime; } || exit 1
    # sockets.buffer-most: at level 1, up to 200 datagrams arrive within 20 ms, and the kernel drops those that do not fit
    { echo 577536 > /proc/sys/net/core/rmem_max; } || exit 1
    # sockets.buffer: at level 1, up to 200 datagrams arrive within 20 ms, and the kernel drops those that do not fit
    { echo 577536 > /proc/sys/net/core/rmem_default; } || exit 1
    # services.irqbalance: every ten seconds irqbalance moves interrupts, also to core 7, and undoes their affinities
    { mkdir -p /etc/systemd/system/irqbalance.service.d && printf %s '[Service]
Environment=IRQBALANCE_BANNED_CPULIST=7
' > /etc/systemd/system/irqbalance.service.d/50-isolane.conf; } || exit 1
    # in effect after systemctl daemon-reload, and a restart of the service; or a boot
    # boot.arguments: on core 7, other programs run for milliseconds, and the kernel's tick and callbacks for 1 to 10 us, up to 1,000 times a second; these arguments keep them off
    { mkdir -p /etc/default/grub.d && printf %s 'GRUB_CMDLINE_LINUX="$GRUB_CMDLINE_LINUX isolcpus=managed_irq,domain,7 nohz_full=7 rcu_nocbs=7 irqaffinity=0-6"
' > /etc/default/grub.d/90-isolane.cfg; } || exit 1
    # in effect after update-grub, and a boot
    # interface.thread-0.eth0: this thread receives bulk when no application with FIFO 70 has work, and before all ordinary programs; at ordinary priority it would starve, and later occupy a core for milliseconds; receive work beyond its budget continues in ksoftirqd at ordinary priority, unless the priority of ksoftirqd is raised as well
    left_out interface.thread-0.eth0 'it rests on this boot'\''s measurement'
    # interface.thread-1.eth0: this thread receives bulk when no application with FIFO 70 has work, and before all ordinary programs; at ordinary priority it would starve, and later occupy a core for milliseconds; receive work beyond its budget continues in ksoftirqd at ordinary priority, unless the priority of ksoftirqd is raised as well
    left_out interface.thread-1.eth0 'it rests on this boot'\''s measurement'
    # interface.thread-2.eth0: this thread receives bulk when no application with FIFO 70 has work, and before all ordinary programs; at ordinary priority it would starve, and later occupy a core for milliseconds; receive work beyond its budget continues in ksoftirqd at ordinary priority, unless the priority of ksoftirqd is raised as well
    left_out interface.thread-2.eth0 'it rests on this boot'\''s measurement'
    # interface.thread-3.eth0: critical jobs wait for the frames that this thread receives, so it runs above the applications, which should run at FIFO 70; receive work beyond its budget continues in ksoftirqd at ordinary priority, unless the priority of ksoftirqd is raised as well
    left_out interface.thread-3.eth0 'it rests on this boot'\''s measurement'
}

undo() {
    :
    # boot.arguments: on core 7, other programs run for milliseconds, and the kernel's tick and callbacks for 1 to 10 us, up to 1,000 times a second; these arguments keep them off
    { rm -f /etc/default/grub.d/90-isolane.cfg; } || failed=1
    # services.irqbalance: every ten seconds irqbalance moves interrupts, also to core 7, and undoes their affinities
    { rm -f /etc/systemd/system/irqbalance.service.d/50-isolane.conf; } || failed=1
    # sockets.buffer: at level 1, up to 200 datagrams arrive within 20 ms, and the kernel drops those that do not fit
    { echo 212992 > /proc/sys/net/core/rmem_default; } || failed=1
    # sockets.buffer-most: at level 1, up to 200 datagrams arrive within 20 ms, and the kernel drops those that do not fit
    { echo 212992 > /proc/sys/net/core/rmem_max; } || failed=1
    # scheduler.fair-server.7: when ordinary programs wait on the executor's core, the kernel stops the executor for the time reserved for them: 50 ms of each second by default
    { echo 50000000 > /sys/kernel/debug/sched/fair_server/cpu7/runtime; } || failed=1
    # scheduler.throttling: a real-time thread that does not sleep is stopped for 50 ms of each period
    { echo 950000 > /proc/sys/kernel/sched_rt_runtime_us; } || failed=1
    # cores.statistics: each second, every core updates its memory counters: some microseconds
    { echo 1 > /proc/sys/vm/stat_interval; } || failed=1
    # cores.watchdog: a watchdog thread of the highest priority checks every 4 s whether core 7 still runs
    { echo 0-7 > /proc/sys/kernel/watchdog_cpumask; } || failed=1
    # cores.new-interrupts: interrupts that are requested after this change may arrive on core 7: some microseconds each
    { echo ff > /proc/irq/default_smp_affinity; } || failed=1
    # cores.work-queues: deferred work of drivers and file systems may arrive on core 7: some microseconds each
    { echo ff > /sys/devices/virtual/workqueue/cpumask; } || failed=1
    # cores.idle-state-3.7: core 7 takes 1048 us to leave this idle state: the first sample after a pause waits for it
    { echo 0 > /sys/devices/system/cpu/cpu7/cpuidle/state3/disable; } || failed=1
    # cores.idle-state-2.7: core 7 takes 127 us to leave this idle state: the first sample after a pause waits for it
    { echo 0 > /sys/devices/system/cpu/cpu7/cpuidle/state2/disable; } || failed=1
    # cores.governor.7: after a pause a core runs at a fraction of its speed for milliseconds, and everything takes correspondingly longer
    { echo powersave > /sys/devices/system/cpu/cpu7/cpufreq/scaling_governor; } || failed=1
    # interface.transmit.eth0: critical frames have transmit queue 3: the device sends this queue before all others (according to its driver, not verified on hardware): a critical frame waits for the frame on the wire; IGMP and LACP (priority 7) use this queue too, 0.7 us for each frame at 1 Gbit/s: some frames when a program joins or leaves groups
    { tc qdisc del dev eth0 root; } || failed=1
    # interface.udp-hash.eth0: the device hashes only addresses: all levels between two hosts arrive on the same queue
    { ethtool -N eth0 rx-flow-hash udp4 sd; } || failed=1
    # interface.moderation.eth0: the driver delays interrupts by 10 to 250 us, depending on the load, and each frame waits for its interrupt
    { ethtool -C eth0 rx-usecs 3; } || failed=1
    # interface.rings.eth0: the ring of 256 frames is full after 172 us at 1 Gbit/s (shortest frames): if the core is busy for longer, the next frames are lost
    { ethtool -G eth0 rx 256 tx 256; } || failed=1
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
==== missing: interface.receive-table.eth0: it rests on this boot's measurement
==== missing: interface.thread-0.eth0: it rests on this boot's measurement
==== missing: interface.thread-1.eth0: it rests on this boot's measurement
==== missing: interface.thread-2.eth0: it rests on this boot's measurement
==== missing: interface.thread-3.eth0: it rests on this boot's measurement
