//! Conformance of the memory datapath.

use isolane_testkit::fixtures::MemoryNetwork;

isolane_testkit::conformance!(unicast, MemoryNetwork);
isolane_testkit::conformance!(multicast, MemoryNetwork);
