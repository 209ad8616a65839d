//! Tests of failures of a lane: two participants on AF_XDP lanes, between network namespaces of this program, while
//! something fails. The participants continue, by lane or by socket, or end with an error that names the remedy. Lost
//! datagrams are counted under a name, and nothing stays behind. The tests need root, and print a message without it.
//!
//! Lower layers have tests of most failures as well. In the last column, `xdp/` and similar names are folders of
//! `datapath-xdp/tests`.
//!
//! | failure | tests here | tests of lower layers |
//! | --- | --- | --- |
//! | no native XDP | `opening` | `classifier_attach`, `preflight` |
//! | a queue in use, or missing | `opening` | `socket/opening`, `xdp/interface` |
//! | a queue still in use after its process was killed | `killed` | `socket/opening` |
//! | memory too small for the lanes | `opening` | `xdp/sharing` |
//! | locked memory | `cli/tests/lane.rs` | `socket/opening`, `preflight` |
//! | a missing capability | `cli/tests/lane.rs` | `classifier_attach/rights`, `preflight` |
//! | an XDP program of another process | `opening` | `classifier_attach`, `preflight` |
//! | interface down, flapping | `opening`, `interface` | `egress/interface`, `socket/full`, `xdp/interface` |
//! | renamed | `interface` | `egress/interface`, `classifier_attach` |
//! | deleted, or in another namespace | `interface` | `egress/interface`, `xdp/interface` |
//! | another MTU | `interface` | `egress/interface`, `xdp/sending`, `preflight` |
//! | a neighbour with another MAC | `interface` | `egress/neighbours` |
//! | killed in any state | `killed` | `classifier_attach`, `napi` |
//! | receive rings full | `full` | `socket/full`, `xdp/sharing` |
//! | completions late | `full` | `socket/full` |
//! | malformed headers, nested VLAN tags, fragments | `frames` | `classifier_twin`, `xdp/sending` |
//! | 64 KiB datagrams in fragments | `dds/tests/lanes.rs` | `xdp/sending` |
//! | floods: on the critical port, on another one, on an unused one | `floods` | `xdp/flows`, `xdp/sharing` |

#[path = "../../../datapath-xdp/tests/hosts/mod.rs"]
#[allow(unreachable_pub)]
mod hosts;
#[path = "../../../datapath-xdp/tests/xdp/network.rs"]
#[allow(dead_code)]
mod network;

mod floods;
mod frames;
mod full;
mod interface;
mod killed;
mod opening;
mod world;
