//! Loops end against liars, too; and agents are called once, in time, and not for nothing.

mod budget;
mod calls;
mod clocks;
