//! What liars and faults try, and that it does not work: a module for each heading of the issue.

mod faults;
mod waiting;
