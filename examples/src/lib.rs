//! Programs to copy from: each file in `src/bin` is one program. `cargo run -p isolane-examples --bin NAME` runs it.
