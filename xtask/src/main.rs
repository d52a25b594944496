//! What developers run: `cargo xtask test`, `ci` and `bench`.
fn main() {}
