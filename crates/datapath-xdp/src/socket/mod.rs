//! AF_XDP sockets: registered memory, rings, options.
