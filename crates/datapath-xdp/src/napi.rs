//! A kernel thread for each queue's receive work, and its place among the priorities.
