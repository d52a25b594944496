use super::*;

#[test]
fn private_addresses_are_known_in_all_their_forms() {
    for ip in [
        "127.0.0.1",
        "10.1.2.3",
        "172.16.0.1",
        "192.168.1.1",
        "169.254.169.254",
        "100.64.0.1",
        "0.0.0.0",
        "192.0.0.1",
        "198.18.0.1",
        "224.0.0.1",
        "255.255.255.255",
        "203.0.113.1",
        "::1",
        "::",
        "fe80::1",
        "fc00::1",
        "::ffff:127.0.0.1",
        "::ffff:10.0.0.1",
        "::7f00:1",
        "64:ff9b::7f00:1",
        "2002:7f00:1::",
        "2001:db8::1",
        "2001::1",
        "ff02::1",
    ] {
        assert!(!is_public(ip.parse().unwrap()), "{ip}");
    }
    for ip in [
        "1.1.1.1",
        "93.184.216.34",
        "100.128.0.1",
        "2606:4700::1111",
        "2001:4860:4860::8888",
    ] {
        assert!(is_public(ip.parse().unwrap()), "{ip}");
    }
}

#[tokio::test]
async fn the_inside_of_a_network_is_out_of_reach() {
    let tool = HttpGet::new(false, Duration::from_secs(5)).unwrap();
    for url in [
        "http://127.0.0.1:9/",
        "http://localhost:9/",
        "http://[::1]:9/",
        "http://2130706433/",
        "http://0x7f.1/",
        "http://169.254.169.254/latest",
        "file:///etc/passwd",
        "ftp://example.com/",
        "nonsense",
    ] {
        let error = tool.get(Args { url: url.into() }).await.unwrap_err();
        assert!(
            !error.0.contains("refused"),
            "{url} was connected to: {error}"
        );
    }
}

async fn serve(answers: Vec<String>) -> String {
    use tokio::io::{AsyncReadExt, AsyncWriteExt};
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    tokio::spawn(async move {
        for answer in answers {
            let (mut stream, _) = listener.accept().await.unwrap();
            let _ = stream.read(&mut [0; 4096]).await;
            let _ = stream.write_all(answer.as_bytes()).await;
        }
    });
    format!("http://{address}/")
}

#[tokio::test]
async fn an_address_is_read_and_an_error_is_told() {
    let answer = |status: &str, body: &str| {
        format!(
            "HTTP/1.1 {status}\r\ncontent-length: {}\r\nconnection: close\r\n\r\n{body}",
            body.len()
        )
    };
    let url = serve(vec![
        answer("200 OK", "hello"),
        answer("404 Not Found", "gone"),
    ])
    .await;
    let tool = HttpGet::new(true, Duration::from_secs(5)).unwrap();
    let read = tool.get(Args { url: url.clone() }).await.unwrap();
    assert_eq!(read, [ContentSegment::text("hello")]);
    let error = tool.get(Args { url }).await.unwrap_err();
    assert!(
        error.0.contains("404") && error.0.contains("gone"),
        "{error}"
    );
}

#[tokio::test]
async fn redirects_end() {
    let loop_back =
        "HTTP/1.1 302 X\r\nlocation: /\r\ncontent-length: 0\r\nconnection: close\r\n\r\n";
    let url = serve(vec![loop_back.to_string(); 20]).await;
    let tool = HttpGet::new(true, Duration::from_secs(5)).unwrap();
    let error = tool.get(Args { url }).await.unwrap_err();
    assert!(error.0.contains("redirects"), "{error}");
}

#[test]
fn a_redirect_to_the_inside_is_refused() {
    let url = Url::parse("http://10.0.0.1/").unwrap();
    assert!(check(&url, false).is_err());
    assert!(check(&url, true).is_ok());
}
