//! Where a datagram leaves, and the headers in front of it: routes and neighbours, followed by netlink.
