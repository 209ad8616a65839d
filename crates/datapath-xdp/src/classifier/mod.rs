//! The eBPF program at the driver: flows, budgets, recycling, and its twin.
