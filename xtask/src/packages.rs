//! The programs that the tests need, and the Debian packages they come in.

use crate::run::{command, find_program, is_root, run};
use std::path::PathBuf;

/// A program and its package.
struct Need {
    program: &'static str,
    package: &'static str,
}

const NEEDS: &[Need] = &[
    Need {
        program: "initdb",
        package: "postgresql",
    },
    Need {
        program: "nats-server",
        package: "nats-server",
    },
    Need {
        program: "xmllint",
        package: "libxml2-utils",
    },
    Need {
        program: "node",
        package: "nodejs",
    },
    Need {
        program: "npm",
        package: "npm",
    },
    Need {
        program: "chromium",
        package: "chromium",
    },
];

/// Installs what is missing, or says what to install.
pub fn ensure() -> Result<(), String> {
    let missing: Vec<&str> = NEEDS
        .iter()
        .filter(|need| find(need.program).is_none())
        .map(|need| need.package)
        .collect();
    if missing.is_empty() {
        return Ok(());
    }
    let list = missing.join(" ");
    if !is_root() || find("apt-get").is_none() {
        return Err(format!(
            "the tests need these Debian packages: {list}\nInstall them, e.g. with `sudo apt-get install {list}`, and run this again."
        ));
    }
    println!("Installing {list}");
    run(command("apt-get").args(["update", "-q"]))?;
    run(command("apt-get")
        .args(["install", "-q", "-y", "--no-install-recommends"])
        .args(&missing)
        .env("DEBIAN_FRONTEND", "noninteractive"))?;
    match NEEDS.iter().find(|need| find(need.program).is_none()) {
        None => Ok(()),
        Some(need) => Err(format!(
            "{} is installed, but there is still no {}",
            need.package, need.program
        )),
    }
}

/// Where a program is. Debian keeps PostgreSQL's server programs off the PATH.
pub fn find(program: &str) -> Option<PathBuf> {
    let mut folders: Vec<PathBuf> = std::fs::read_dir("/usr/lib/postgresql")
        .into_iter()
        .flatten()
        .flatten()
        .map(|version| version.path().join("bin"))
        .collect();
    folders.sort();
    folders.reverse();
    folders.push("/usr/sbin".into());
    find_program(program, &folders)
}
