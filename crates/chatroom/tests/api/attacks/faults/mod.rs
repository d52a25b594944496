//! What holds when machines, disks, networks and callers fail.

mod bus;
mod full_disk;
mod hung_up;
mod network;
mod restore;
mod revocation;
mod stalled_node;
