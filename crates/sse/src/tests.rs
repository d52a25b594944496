//! What a server, or somebody who pretends to be one, might send.

use super::*;

fn frames(bytes: &[u8]) -> Vec<Frame> {
    let mut parser = Parser::new();
    parser.push(bytes).unwrap();
    std::iter::from_fn(|| parser.next_frame()).collect()
}

fn event(id: Option<&str>, event: Option<&str>, data: &str) -> Frame {
    Frame {
        id: id.map(str::to_owned),
        event: event.map(str::to_owned),
        data: Some(data.to_owned()),
    }
}

#[test]
fn a_frame_has_an_id_an_event_and_data() {
    assert_eq!(
        frames(b"id: 43\nevent: message\ndata: {}\n\n"),
        [event(Some("43"), Some("message"), "{}")]
    );
}

#[test]
fn lines_end_with_lf_cr_or_crlf() {
    let expected = [event(Some("1"), None, "a\nb"), event(None, None, "c")];
    for end in ["\n", "\r", "\r\n"] {
        let text = ["id: 1", "data: a", "data: b", "", "data: c", "", ""].join(end);
        assert_eq!(frames(text.as_bytes()), expected, "{end:?}");
    }
}

#[test]
fn a_stream_cut_anywhere_reads_the_same() {
    let text = "\u{feff}: hi\r\nid: 7.1\r\nevent: reaction_added\r\ndata: 👍 ä\r\n\r\n\
                data: x\r\rid: 8\n\ndata:\r\ndata: \u{10ffff}\r\n\r\n";
    let whole = frames(text.as_bytes());
    assert_eq!(whole.len(), 4);
    for first in 0..text.len() {
        for second in first..text.len() {
            let mut parser = Parser::new();
            let bytes = text.as_bytes();
            for part in [&bytes[..first], &bytes[first..second], &bytes[second..]] {
                parser.push(part).unwrap();
            }
            let cut: Vec<_> = std::iter::from_fn(|| parser.next_frame()).collect();
            assert_eq!(cut, whole, "cut at {first} and {second}");
        }
    }
}

#[test]
fn byte_by_byte_reads_the_same() {
    let text = "id: 1\r\ndata: ✓\r\n\r\ndata: 2\r\r";
    let mut parser = Parser::new();
    for byte in text.as_bytes() {
        parser.push(&[*byte]).unwrap();
        parser.push(&[]).unwrap();
    }
    let cut: Vec<_> = std::iter::from_fn(|| parser.next_frame()).collect();
    assert_eq!(cut, [event(Some("1"), None, "✓"), event(None, None, "2")]);
}

#[test]
fn comments_and_unknown_fields_say_nothing() {
    assert_eq!(frames(b": heartbeat\n\n:\n\ncolour: red\nnonsense\n\n"), []);
    assert_eq!(
        frames(b": before\ndata: x\n: between\n\n"),
        [event(None, None, "x")]
    );
}

#[test]
fn an_id_alone_is_a_frame_without_data() {
    let expected = Frame {
        id: Some("43.2".into()),
        ..Frame::default()
    };
    assert_eq!(frames(b"id: 43.2\n\n"), [expected]);
}

#[test]
fn an_event_without_data_or_id_is_nothing() {
    assert_eq!(frames(b"event: message\n\n\n\n"), []);
}

#[test]
fn an_event_name_does_not_reach_into_the_next_frame() {
    assert_eq!(
        frames(b"event: message\n\ndata: x\n\n"),
        [event(None, None, "x")]
    );
}

#[test]
fn one_space_after_the_colon_belongs_to_the_syntax() {
    assert_eq!(
        frames(b"data:x\ndata: y\ndata:  z\ndata\n\n"),
        [event(None, None, "x\ny\n z\n")]
    );
}

#[test]
fn a_colon_in_the_value_stays() {
    assert_eq!(frames(b"data: a: b:c\n\n"), [event(None, None, "a: b:c")]);
}

#[test]
fn an_id_with_a_nul_is_ignored() {
    assert_eq!(frames(b"id: 4\x002\ndata: x\n\n"), [event(None, None, "x")]);
}

#[test]
fn what_is_no_utf8_is_replaced() {
    assert_eq!(
        frames(b"data: a\xff\xfeb\xe2\x82\n\n"),
        [event(None, None, "a\u{fffd}\u{fffd}b\u{fffd}")]
    );
}

#[test]
fn a_frame_that_never_ends_is_no_frame() {
    assert_eq!(frames(b"id: 1\ndata: half"), []);
    assert_eq!(frames(b"id: 1\ndata: whole line\n"), []);
}

#[test]
fn retry_is_read_and_bounded() {
    let retry = |text: &str| {
        let mut parser = Parser::new();
        parser.push(text.as_bytes()).unwrap();
        parser.retry()
    };
    assert_eq!(retry("retry: 2500\n"), Some(Duration::from_millis(2500)));
    assert_eq!(retry("retry: 99999999999999999999\n"), Some(MAX_RETRY));
    for nothing in ["retry\n", "retry:\n", "retry: -1\n", "retry: 1s\n"] {
        assert_eq!(retry(nothing), None, "{nothing}");
    }
}

#[test]
fn a_line_without_an_end_is_an_error_and_not_memory() {
    let mut parser = Parser::new();
    let part = vec![b'x'; 64 * 1024];
    let outcome = (0..1000).try_for_each(|_| parser.push(&part));
    assert_eq!(outcome, Err(SseError::LineTooLong(MAX_BYTES)));
    assert!(parser.partial.len() <= MAX_BYTES);
}

#[test]
fn a_long_line_in_one_piece_is_an_error_too() {
    let mut line = vec![b'x'; MAX_BYTES + 1];
    line.push(b'\n');
    assert_eq!(
        Parser::new().push(&line),
        Err(SseError::LineTooLong(MAX_BYTES))
    );
}

#[test]
fn a_frame_without_an_end_is_an_error_and_not_memory() {
    let mut parser = Parser::new();
    let lines = b"data: 0123456789\n".repeat(1000);
    let outcome = (0..1000).try_for_each(|_| parser.push(&lines));
    assert_eq!(outcome, Err(SseError::FrameTooLong(MAX_BYTES)));
}

#[test]
fn empty_data_lines_count_towards_the_bound() {
    let mut parser = Parser::new();
    let lines = b"data\n".repeat(10_000);
    let outcome = (0..1000).try_for_each(|_| parser.push(&lines));
    assert_eq!(outcome, Err(SseError::FrameTooLong(MAX_BYTES)));
}

#[test]
fn noise_never_panics() {
    // A small generator is enough, and gives the same noise each time.
    let mut state = 0x2545_f491_4f6c_dd1d_u64;
    let alphabet = b"\r\n:d at\0\xff\xe2\x82\xaceventretryid0129";
    for _ in 0..2000 {
        let mut parser = Parser::new();
        for _ in 0..8 {
            let noise: Vec<u8> = (0..32)
                .map(|_| {
                    state ^= state << 13;
                    state ^= state >> 7;
                    state ^= state << 17;
                    alphabet[state as usize % alphabet.len()]
                })
                .collect();
            parser.push(&noise).unwrap();
            while parser.next_frame().is_some() {}
        }
    }
}

#[test]
fn a_strict_parser_refuses_what_is_no_text_and_keeps_its_own_bound() {
    let mut parser = Parser::strict(20);
    assert_eq!(parser.push(b"data: \xff\n"), Err(SseError::NoText));
    let mut parser = Parser::strict(20);
    let many = "data: 12345\n".repeat(5);
    assert_eq!(
        parser.push(many.as_bytes()),
        Err(SseError::FrameTooLong(20))
    );
    let mut parser = Parser::strict(20);
    assert_eq!(parser.push(&[b'x'; 21]), Err(SseError::LineTooLong(20)));
}

#[test]
fn a_last_frame_without_its_end_counts_where_the_stream_is_over() {
    for text in ["data: a", "data: a\n", "data: a\n\n"] {
        let mut parser = Parser::new();
        parser.push(text.as_bytes()).unwrap();
        parser.finish().unwrap();
        assert_eq!(
            parser.next_frame(),
            Some(event(None, None, "a")),
            "{text:?}"
        );
        assert_eq!(parser.next_frame(), None);
    }
}
