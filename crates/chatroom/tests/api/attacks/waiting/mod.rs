//! Nobody can make the others wait.

mod queries;
