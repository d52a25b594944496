//! The programs that the tests need, and the Debian packages they come in.

use crate::run::{command, find_program, is_root, run};
use std::{path::PathBuf, process::Stdio};

/// A program and its package. Python's modules are found by Python.
struct Need {
    program: &'static str,
    package: &'static str,
}

impl Need {
    fn is_here(&self) -> bool {
        match self.program.strip_prefix("python3 -m ") {
            None => find(self.program).is_some(),
            Some(module) => command("python3")
                .args(["-c", &format!("import {module}")])
                .stderr(Stdio::null())
                .status()
                .is_ok_and(|status| status.success()),
        }
    }
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
        program: "jq",
        package: "jq",
    },
    Need {
        program: "curl",
        package: "curl",
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
        program: "python3",
        package: "python3",
    },
    Need {
        program: "python3 -m ensurepip",
        package: "python3-venv",
    },
    Need {
        program: "dash",
        package: "dash",
    },
    Need {
        program: "busybox",
        package: "busybox",
    },
    Need {
        program: "zsh",
        package: "zsh",
    },
    Need {
        program: "fish",
        package: "fish",
    },
    Need {
        program: "shellcheck",
        package: "shellcheck",
    },
    Need {
        program: "chromium",
        package: "chromium",
    },
    Need {
        program: "firefox-esr",
        package: "firefox-esr",
    },
];

/// Only the screenshots look better with it: an emoji is a box without.
const EMOJI_FONT: &str = "fonts-noto-color-emoji";

/// Installs what is missing, or says what to install.
pub fn ensure() -> Result<(), String> {
    let missing: Vec<&str> = NEEDS
        .iter()
        .filter(|need| !need.is_here())
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
    install(&missing)?;
    if let Err(why) = install(&[EMOJI_FONT]) {
        println!("Going on without {EMOJI_FONT}: {why}");
    }
    match NEEDS.iter().find(|need| !need.is_here()) {
        None => Ok(()),
        Some(need) => Err(format!(
            "{} is installed, but there is still no {}",
            need.package, need.program
        )),
    }
}

fn install(packages: &[&str]) -> Result<(), String> {
    run(command("apt-get")
        .args(["install", "-q", "-y", "--no-install-recommends"])
        .args(packages)
        .env("DEBIAN_FRONTEND", "noninteractive"))
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
