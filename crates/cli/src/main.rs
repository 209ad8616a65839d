//! Command `isolane` with the datapaths of the library `isolane`.

#[global_allocator]
static ALLOCATOR: isolane::ExitWithoutMemory = isolane::ExitWithoutMemory;

fn main() -> std::process::ExitCode {
    isolane_cli::run(isolane::DATAPATHS)
}
