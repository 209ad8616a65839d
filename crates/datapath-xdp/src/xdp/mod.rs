//! The datapath of AF_XDP lanes.
