//! Which proxy `http_get` uses, and how it asks one for an `http://` URL.

#[path = "../../examples/http_get/proxy.rs"]
mod proxy;

use rotor::http::client::Url;

use self::proxy::Proxy;
use crate::client::{PATIENCE, command};
use crate::upstream::upstream;

/// Returns the proxy for a URL in an environment, as text.
fn proxy_for(url: &str, environment: &[(&str, &str)]) -> String {
    let url: Url = url.parse().expect("a URL");
    let variable = |name: &str| {
        environment.iter().find(|(own, _)| *own == name).map(|(_, value)| (*value).to_owned())
    };
    match Proxy::for_url(&url, variable) {
        Ok(None) => "direct".to_owned(),
        Ok(Some(Proxy { host, authorization })) => {
            let authorization = authorization.map(|value| format!(" {value}")).unwrap_or_default();
            format!("{host}{authorization}")
        }
        Err(error) => format!("error: {error}"),
    }
}

#[test]
fn the_scheme_selects_the_variable_that_names_the_proxy() {
    let (http, https) = ("http://a/", "https://a/");
    for (url, environment, expected) in [
        (https, &[("HTTPS_PROXY", "http://p:1")][..], "p:1"),
        (https, &[("https_proxy", "http://p:1"), ("HTTPS_PROXY", "http://q:2")], "p:1"),
        (https, &[("https_proxy", ""), ("HTTPS_PROXY", "http://q:2")], "direct"),
        (https, &[("http_proxy", "http://p:1")], "direct"),
        (http, &[("http_proxy", "http://p:1")], "p:1"),
        (http, &[("https_proxy", "http://p:1")], "direct"),
        // A client of a CGI program could set it (CVE-2016-5385).
        (http, &[("HTTP_PROXY", "http://p:1")], "direct"),
        (https, &[], "direct"),
    ] {
        assert_eq!(proxy_for(url, environment), expected, "{url} {environment:?}");
    }
}

#[test]
fn a_proxy_is_a_host_with_or_without_scheme_port_and_user() {
    for (value, expected) in [
        ("http://p.example:3128/", "p.example:3128"),
        ("HTTP://p.example", "p.example:80"),
        ("p.example:3128", "p.example:3128"),
        ("[::1]:3128", "[::1]:3128"),
        // RFC 7617 §2.
        ("http://Aladdin:open%20sesame@p:1", "p:1 Basic QWxhZGRpbjpvcGVuIHNlc2FtZQ=="),
        ("http://a:b@c%40d:%@p:1", "p:1 Basic YTpiQGNAZDol"),
        ("u@p:1", "p:1 Basic dTo="),
        ("https://p:1", "error: https_proxy: only proxies that begin with http:// are supported"),
        ("socks5://p:1", "error: https_proxy: only proxies that begin with http:// are supported"),
    ] {
        assert_eq!(proxy_for("https://a/", &[("https_proxy", value)]), expected, "{value}");
    }
    let error = proxy_for("https://a/", &[("HTTPS_PROXY", "http://user:secret@p:x")]);
    assert!(error.starts_with("error: HTTPS_PROXY: ") && !error.contains("secret"), "{error}");
}

#[test]
fn a_server_in_the_list_of_exempt_ones_has_no_proxy() {
    for (url, list, is_exempt) in [
        ("https://example.com/", "example.com", true),
        ("https://example.com./", "example.com", true),
        ("https://example.com/", "a,Example.COM. ,b", true),
        ("https://example.com/", "a b  example.com", true),
        ("https://www.example.com/", "example.com", true),
        ("https://www.example.com/", ".example.com", true),
        ("https://example.com/", ".example.com", true),
        ("https://badexample.com/", "example.com", false),
        ("https://example.com/", "www.example.com", false),
        ("https://example.com/", "example.com:443", true),
        ("https://example.com:8443/", "example.com:443", false),
        ("https://example.com:8443/", "example.com:8443", true),
        ("https://example.com/", "example.com:x", false),
        ("https://example.com/", "*", true),
        ("https://example.com/", ",. ,:443", false),
        ("https://10.1.2.3/", "10.1.2.3", true),
        ("https://110.1.2.3/", "10.1.2.3", false),
        ("https://10.1.2.3/", "10.0.0.0/8", true),
        ("https://11.1.2.3/", "10.0.0.0/8", false),
        ("https://11.1.2.3/", "0.0.0.0/0", true),
        ("https://10.1.2.3/", "10.1.2.3/32", true),
        ("https://10.1.2.2/", "10.1.2.3/32", false),
        ("https://10.1.2.3/", "10.1.2.3/33", false),
        ("https://[::1]/", "::1", true),
        ("https://[::1]/", "[::1]", true),
        ("https://[::1]/", "[::1]:443", true),
        ("https://[fd00::1]/", "fc00::/7", true),
        ("https://[fd00::1]/", "0.0.0.0/0", false),
    ] {
        let expected = if is_exempt { "direct" } else { "p:1" };
        for name in ["no_proxy", "NO_PROXY"] {
            let environment = [("https_proxy", "http://p:1"), (name, list)];
            assert_eq!(proxy_for(url, &environment), expected, "{url} {list:?}");
        }
    }
}

#[test]
fn a_proxy_is_asked_for_the_whole_url_of_a_server_without_tls() {
    let (address, heads) = upstream(|client, _| {
        let answer = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nhi";
        let _ended_early = std::io::Write::write_all(client, answer);
    });
    let got = command("http_get")
        .arg("http://site.invalid/page?x=1#top")
        .env("http_proxy", format!("http://me:secret@{address}"))
        .output()
        .expect("it starts");
    assert_eq!(got.stdout, b"hi", "{}", String::from_utf8_lossy(&got.stderr));
    let head = heads.recv_timeout(PATIENCE).expect("it was asked");
    assert!(head.starts_with("GET http://site.invalid/page?x=1 HTTP/1.1\r\n"), "{head}");
    assert!(head.contains("\r\nHost: site.invalid\r\n"), "{head}");
    assert!(head.contains("\r\nProxy-Authorization: Basic bWU6c2VjcmV0\r\n"), "{head}");
}
