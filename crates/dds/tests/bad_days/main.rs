//! Tests of failures of a lane: two participants on AF_XDP lanes, between network namespaces of this program, while
//! something fails. The participants continue, by lane or by socket, or end with an error that names the remedy. Lost
//! datagrams are counted under a name, and nothing stays behind. The tests need root, and print a message without it.
//!
//! Lower layers have tests of most failures as well. In the last column, `xdp/` and similar names are folders of
//! `datapath-xdp/tests`.
//!
//! | failure | tests here | tests of lower layers |
//! | --- | --- | --- |
//! | no native XDP | `opening` | `classifier_attach`, `requirements` |
//! | a queue that is taken, or not there | `opening` | `socket/opening`, `xdp/interface` |
//! | taken for a while after a death | `killed` | `socket/opening` |
//! | memory too small for the lanes | `opening` | `xdp/sharing` |
//! | locked memory | `cli/tests/lane.rs` | `socket/opening`, `requirements` |
//! | a missing capability | `cli/tests/lane.rs` | `classifier_attach/rights`, `requirements` |
//! | a program of somebody else | `opening` | `classifier_attach`, `requirements` |
//! | interface down, flapping | `opening`, `interface` | `routing/interface`, `socket/full`, `xdp/interface` |
//! | renamed | `interface` | `routing/interface`, `classifier_attach` |
//! | deleted, or in another namespace | `interface` | `routing/interface`, `xdp/interface` |
//! | another MTU | `interface` | `routing/interface`, `xdp/sending`, `requirements` |
//! | a neighbour with another MAC | `interface` | `routing/neighbours` |
//! | killed in any state | `killed` | `classifier_attach`, `napi` |
//! | receive rings full | `full` | `socket/full`, `xdp/sharing` |
//! | completions late | `full` | `socket/full` |
//! | malformed headers, tags in tags, fragments | `frames` | `reference_model`, `xdp/sending` |
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
