//! Conformance of the UDP datapath, by unicast on 127.0.0.1.

use isolane_testkit::fixtures::UdpOnLoopback;

isolane_testkit::conformance!(unicast, UdpOnLoopback);
