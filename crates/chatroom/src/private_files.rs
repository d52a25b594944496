//! Files and folders that nobody else on the machine may open.

use std::{
    fs::{DirBuilder, File, OpenOptions, Permissions},
    io,
    os::unix::fs::{DirBuilderExt, OpenOptionsExt, PermissionsExt},
    path::Path,
};

/// The mode of a file that is its owner's alone.
pub const PRIVATE: u32 = 0o600;

/// Makes a folder that nobody else on the machine may open. One that is there stays as it is.
pub fn make_private_folder(folder: &Path) -> io::Result<()> {
    DirBuilder::new().recursive(true).mode(0o700).create(folder)
}

/// Makes a file that nobody else on the machine may open. One that is there keeps its content and
/// loses everybody else's rights.
pub fn make_private_file(path: &Path) -> io::Result<File> {
    let file = OpenOptions::new()
        .read(true)
        .write(true)
        .create(true)
        .truncate(false)
        .mode(PRIVATE)
        .open(path)?;
    close_to_others(path)?;
    Ok(file)
}

/// Takes everybody else's rights from a file, if it is there.
pub fn close_to_others(path: &Path) -> io::Result<()> {
    match std::fs::metadata(path) {
        Ok(metadata) if metadata.permissions().mode() & 0o777 != PRIVATE => {
            std::fs::set_permissions(path, Permissions::from_mode(PRIVATE))
        }
        Ok(_) => Ok(()),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        Err(error) => Err(error),
    }
}
