//! A hash that is the same in every process and every version.

/// FNV-1a over the bytes of `parts`.
pub(crate) fn fnv<'a>(parts: impl IntoIterator<Item = &'a str>) -> u64 {
    fnv_bytes(parts.into_iter().flat_map(str::bytes))
}

/// FNV-1a over bytes.
pub(crate) fn fnv_bytes(bytes: impl IntoIterator<Item = u8>) -> u64 {
    bytes.into_iter().fold(0xcbf2_9ce4_8422_2325, |hash, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
    })
}

/// So many letters and digits that stand for a text.
pub(crate) fn letters(text: &str, count: usize) -> String {
    let mut hash = fnv([text]);
    let mut next = || {
        let digit = char::from_digit((hash % 36) as u32, 36).unwrap_or('0');
        hash /= 36;
        digit
    };
    (0..count).map(|_| next()).collect()
}
