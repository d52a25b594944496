//! The pages and what they are made of.

use crate::harness::{Setup, one_engine};
use serde_json::json;

one_engine![
    pages_allow_nothing_from_elsewhere_and_no_inline_script,
    assets_are_kept_for_good_and_pages_are_asked_for_anew,
    the_qr_code_of_an_invite_lasts_as_long_as_the_invite,
    documents_and_missing_pages_are_pages_for_people_and_text_for_programs,
    every_link_of_a_document_leads_somewhere,
];

async fn pages_allow_nothing_from_elsewhere_and_no_inline_script(setup: Setup) {
    let server = setup.start().await;
    for path in ["/", "/view", "/leaderboard.html"] {
        let page = server.anonymous().get(path).await;
        assert_eq!(page.status, 200);
        let policy = page.header("content-security-policy").unwrap();
        assert!(policy.starts_with("default-src 'none'; script-src 'self'; style-src 'self';"));
        assert!(!policy.contains("unsafe"), "{policy}");
        assert!(policy.contains("require-trusted-types-for 'script'"));
        assert_eq!(page.header("referrer-policy"), Some("no-referrer"));
        assert_eq!(page.header("x-content-type-options"), Some("nosniff"));
        let html = page.text();
        assert!(!html.contains("style=") && !html.contains("<style") && !html.contains(" onclick"));
        for part in html
            .split(['"', '\''])
            .filter(|part| part.starts_with("http"))
        {
            assert!(part.contains('…'), "{path} names {part}");
        }
    }
}

async fn assets_are_kept_for_good_and_pages_are_asked_for_anew(setup: Setup) {
    let server = setup.start().await;
    let nobody = server.anonymous();
    let page = nobody.get("/view").await;
    let etag = page.header("etag").unwrap().to_owned();
    assert_eq!(page.header("cache-control"), Some("no-cache"));
    let again = nobody.get("/view").header("if-none-match", &etag).await;
    assert_eq!((again.status, again.text()), (304, ""));
    let script = page
        .text()
        .split('"')
        .find(|part| part.ends_with("/view.js"));
    let script = script.unwrap().to_owned();
    let asset = nobody.get(&script).await;
    assert!(asset.header("cache-control").unwrap().contains("immutable"));
    assert!(
        asset
            .header("content-type")
            .unwrap()
            .starts_with("text/javascript")
    );
    let packed = nobody
        .get(&script)
        .header("accept-encoding", "br, gzip")
        .await;
    assert_eq!(packed.header("content-encoding"), Some("gzip"));
    for wrong in [
        "/assets/0000000000000000/view.js".to_owned(),
        script.replace("view.js", "none.js"),
    ] {
        nobody.get(wrong).await.refused(404, "not_found");
    }
}

async fn the_qr_code_of_an_invite_lasts_as_long_as_the_invite(setup: Setup) {
    let server = setup.start().await;
    let alice = server.user("u_alice");
    let room = alice.creates_a_room().await;
    let path = format!("/rooms/{room}/invites");
    let invite = alice.post(&path, json!({})).await.created();
    let qr = format!("/i/{}/qr.svg", invite["short_code"].as_str().unwrap());
    let image = server.anonymous().get(&qr).await;
    assert_eq!(image.header("content-type"), Some("image/svg+xml"));
    assert!(image.text().contains("<svg"));
    let invites = alice.get(&path).await.ok();
    let jti = invites["invites"][0]["code_jti"]
        .as_str()
        .unwrap()
        .to_owned();
    alice.delete(format!("{path}/{jti}")).await.ok();
    let nobody = server.anonymous();
    nobody.get(&qr).await.refused(404, "not_found");
    nobody
        .get("/i/i_nothing1/qr.svg")
        .await
        .refused(404, "not_found");
}

async fn documents_and_missing_pages_are_pages_for_people_and_text_for_programs(setup: Setup) {
    let server = setup.start().await;
    let nobody = server.anonymous();
    let asks = async |path: &str, accept: &str| nobody.get(path).header("accept", accept).await;
    for path in ["/docs/api", "/docs/", "/docs"] {
        let page = asks(path, "text/html,application/xhtml+xml,*/*;q=0.8").await;
        assert_eq!(
            (page.status, page.header("content-type")),
            (200, Some("text/html; charset=utf-8"))
        );
        assert!(page.text().contains("<h1>") && page.header("content-security-policy").is_some());
        let text = asks(path, "*/*").await;
        assert_eq!(
            text.header("content-type"),
            Some("text/markdown; charset=utf-8")
        );
        assert_eq!(
            (text.header("vary"), page.header("vary")),
            (Some("accept"), Some("accept"))
        );
        assert!(text.text().starts_with("# "));
    }
    let missing = asks("/no/such/page", "text/html").await;
    assert_eq!(
        (missing.status, missing.header("content-type")),
        (404, Some("text/html; charset=utf-8"))
    );
    assert!(
        !missing.text().contains("no/such"),
        "nothing of the address is shown"
    );
    asks("/no/such/page", "*/*").await.refused(404, "not_found");
    // Links that people open, and that have ended.
    for (path, status, words) in [
        ("/docs/nothing", 404, "No such document."),
        ("/k/ck_nothing1", 404, "No such link"),
        ("/i/i_nothing1", 404, "No such invite"),
        ("/first/nothing", 410, "This link was used"),
        ("/rooms/rm_nothing", 401, "Authorization"),
    ] {
        let page = asks(path, "text/html,*/*;q=0.8").await;
        assert_eq!(page.status, status, "{path}");
        assert_eq!(
            page.header("content-type"),
            Some("text/html; charset=utf-8")
        );
        let text = page.text();
        assert!(text.contains(words) && text.contains("<h1>"), "{text}");
        let told = asks(path, "*/*").await;
        assert_eq!(told.header("content-type"), Some("application/json"));
    }
    // What somebody put into the address does not become markup.
    let hostile = asks("/docs/%3Cimg%20src=x%3E", "text/html").await;
    assert!(!hostile.text().contains("<img src=x"), "{}", hostile.text());
}

async fn every_link_of_a_document_leads_somewhere(setup: Setup) {
    let server = setup.start().await;
    let mut pages = vec!["/docs/".to_owned()];
    let mut looked_at = 0;
    while let Some(path) = pages.get(looked_at).cloned() {
        looked_at += 1;
        let page = server.anonymous().get(&path);
        let page = page.header("accept", "text/html").await;
        assert_eq!(page.status, 200, "{path}");
        if !path.starts_with("/docs/") || path == "/docs/api-reference" {
            continue;
        }
        for href in page.text().split("href=\"").skip(1) {
            let (href, _) = href.split_once('"').unwrap();
            let to = href.split(['#', '?']).next().unwrap();
            assert!(
                to.is_empty() || to.starts_with('/') || href.contains(':'),
                "{href} in {path}"
            );
            if to.starts_with('/') && !pages.iter().any(|known| known == to) {
                pages.push(to.to_owned());
            }
        }
    }
    assert!(pages.len() > 15, "{pages:?}");
}
