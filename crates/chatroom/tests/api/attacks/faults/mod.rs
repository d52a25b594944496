//! What holds when machines, disks, networks and callers fail.

mod hung_up;
