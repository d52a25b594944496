//! Frames: a length, a checksum, and so many bytes.

use super::JournalError;
use std::io::{BufReader, Read, Write};
use std::path::Path;

/// What a journal begins with. The digits change with the form.
pub const MAGIC: &[u8; 8] = b"SCJRNL01";

const HEADER: usize = 8;

/// Appends one frame.
pub fn write(to: &mut impl Write, body: &[u8]) -> std::io::Result<u64> {
    let length = u32::try_from(body.len()).map_err(std::io::Error::other)?;
    let mut frame = Vec::with_capacity(HEADER + body.len());
    frame.extend_from_slice(&length.to_le_bytes());
    frame.extend_from_slice(&checksum(length, body).to_le_bytes());
    frame.extend_from_slice(body);
    to.write_all(&frame)?;
    Ok(frame.len() as u64)
}

/// Of the length too, so that a wrong one is noticed.
fn checksum(length: u32, body: &[u8]) -> u32 {
    let mut hasher = crc32fast::Hasher::new();
    hasher.update(&length.to_le_bytes());
    hasher.update(body);
    hasher.finalize()
}

/// Reads a whole file of `size` bytes, frame by frame. Gives where the last whole
/// frame ends: what follows was torn by a crash.
pub fn read_all(
    path: &Path,
    file: impl Read,
    size: u64,
    mut each: impl FnMut(&[u8]) -> Result<(), JournalError>,
) -> Result<u64, JournalError> {
    let mut file = BufReader::new(file);
    let mut magic = [0; MAGIC.len()];
    let has_magic = file.read_exact(&mut magic).is_ok() && magic == *MAGIC;
    if !has_magic {
        return Err(JournalError::unreadable(path, "it does not begin as one"));
    }
    let mut at = MAGIC.len() as u64;
    loop {
        match read(&mut file, size - at).map_err(JournalError::io(path))? {
            Frame::Whole(body) => {
                each(&body)?;
                at += (HEADER + body.len()) as u64;
            }
            Frame::End => return Ok(at),
            // Only the last frame can be torn: each is safe before the next begins.
            Frame::Broken { length } => {
                let next = at + HEADER as u64 + length;
                let follows =
                    next < size && matches!(read(&mut file, size - next), Ok(Frame::Whole(_)));
                return match follows {
                    true => Err(JournalError::Damaged {
                        path: path.to_owned(),
                        at,
                    }),
                    false => Ok(at),
                };
            }
        }
    }
}

enum Frame {
    Whole(Vec<u8>),
    /// So many bytes that are not what was written.
    Broken {
        length: u64,
    },
    End,
}

/// Reads one frame of a file that has `left` bytes more.
fn read(file: &mut impl Read, left: u64) -> std::io::Result<Frame> {
    if left < HEADER as u64 {
        return Ok(Frame::End);
    }
    let (mut length, mut sum) = ([0; 4], [0; 4]);
    file.read_exact(&mut length)?;
    file.read_exact(&mut sum)?;
    let length = u32::from_le_bytes(length);
    if u64::from(length) > left - HEADER as u64 {
        return Ok(Frame::End);
    }
    let mut body = vec![0; length as usize];
    file.read_exact(&mut body)?;
    Ok(match checksum(length, &body) == u32::from_le_bytes(sum) {
        true => Frame::Whole(body),
        false => Frame::Broken {
            length: u64::from(length),
        },
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn file(bodies: &[&str]) -> Vec<u8> {
        let mut file = MAGIC.to_vec();
        for body in bodies {
            write(&mut file, body.as_bytes()).unwrap();
        }
        file
    }

    fn texts(file: &[u8]) -> Result<(Vec<String>, u64), JournalError> {
        let mut texts = Vec::new();
        let end = read_all(Path::new("x"), file, file.len() as u64, |body| {
            texts.push(String::from_utf8(body.to_vec()).unwrap());
            Ok(())
        })?;
        Ok((texts, end))
    }

    #[test]
    fn a_file_that_was_cut_anywhere_keeps_its_whole_frames() {
        let whole = file(&["one", "", "three"]);
        let ends = [file(&[]), file(&["one"]), file(&["one", ""]), whole.clone()].map(|f| f.len());
        for cut in MAGIC.len()..=whole.len() {
            let (texts, end) = texts(&whole[..cut]).unwrap();
            let kept = ends.iter().filter(|end| **end <= cut).count();
            assert_eq!(texts.len() + 1, kept);
            assert_eq!(end as usize, ends[kept - 1]);
        }
    }

    #[test]
    fn a_changed_byte_in_the_last_frame_is_a_torn_end_and_before_it_is_damage() {
        let whole = file(&["one", "two"]);
        let last = file(&["one"]).len();
        for place in MAGIC.len() + HEADER..whole.len() {
            let mut changed = whole.clone();
            changed[place] ^= 1;
            let read = texts(&changed);
            match place < last {
                true => assert!(matches!(read, Err(JournalError::Damaged { at: 8, .. }))),
                false => assert_eq!(read.unwrap(), (vec!["one".to_owned()], last as u64)),
            }
        }
        assert!(matches!(
            texts(b"PNG"),
            Err(JournalError::Unreadable { .. })
        ));
    }
}
