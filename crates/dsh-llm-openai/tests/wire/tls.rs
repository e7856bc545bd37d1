//! Encryption, trust, and the proxy that the environment names.
//!
//! Environment variables belong to a process, so these tests ask from a process of their own: this test program again,
//! running only [`asks_in_a_process_of_its_own`].

use std::io::{Read, Write};
use std::net::TcpStream;
use std::path::Path;
use std::process::Output;
use std::sync::{Arc, mpsc};
use std::time::Duration;

use dsh_llm::{FinishReason, Retry};
use dsh_llm_openai::{OpenAiAdapter, OpenAiConfig};
use rcgen::{CertifiedKey, generate_simple_self_signed};
use tokio_rustls::rustls::crypto::ring;
use tokio_rustls::rustls::pki_types::PrivateKeyDer;
use tokio_rustls::rustls::{ServerConfig, ServerConnection, StreamOwned};

use super::server::{STREAM, Server, is_closed, read_request, stop};
use super::{KEY, ask, config};

/// Names the URL that the other process asks.
const URL: &str = "DSH_TEST_ASK_URL";

/// A name that no resolver knows: who reaches it was led there.
const HOST: &str = "api.dsh.invalid";

struct Identity {
    server: Arc<ServerConfig>,
    file: tempfile::NamedTempFile,
}

/// A server's identity for [`HOST`] and loopback, and the file that makes a client trust it.
fn identity() -> Identity {
    let names = [HOST.to_owned(), "127.0.0.1".to_owned()];
    let CertifiedKey { cert, signing_key } = generate_simple_self_signed(names).unwrap();
    let mut file = tempfile::NamedTempFile::new().unwrap();
    file.write_all(cert.pem().as_bytes()).unwrap();
    let key = PrivateKeyDer::try_from(signing_key.serialize_der()).unwrap();
    let server = ServerConfig::builder_with_provider(Arc::new(ring::default_provider()))
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_no_client_auth()
        .with_single_cert(vec![cert.der().clone()], key)
        .unwrap();
    Identity {
        server: Arc::new(server),
        file,
    }
}

/// Answers one request over TLS. Gives what was asked, if it came to that.
fn serve(client: TcpStream, identity: &Arc<ServerConfig>) -> Option<String> {
    let session = ServerConnection::new(Arc::clone(identity)).unwrap();
    let mut client = StreamOwned::new(session, client);
    let request = read_request(&mut client).ok()?;
    write!(client, "{STREAM}{}", stop()).unwrap();
    client.conn.send_close_notify();
    let _ = client.flush();
    Some(request)
}

async fn ask_elsewhere(url: &str, trusted: &Path, proxy: Option<&str>) -> Output {
    let mut command = tokio::process::Command::new(std::env::current_exe().unwrap());
    command.args(["--exact", "tls::asks_in_a_process_of_its_own", "--nocapture"]);
    for name in [
        "HTTPS_PROXY",
        "https_proxy",
        "ALL_PROXY",
        "all_proxy",
        "NO_PROXY",
        "no_proxy",
        "SSL_CERT_DIR",
    ] {
        command.env_remove(name);
    }
    if let Some(proxy) = proxy {
        command.env("HTTPS_PROXY", proxy);
    }
    command
        .env("SSL_CERT_FILE", trusted)
        .env(URL, url)
        .kill_on_drop(true);
    super::soon("the other process", command.output()).await.unwrap()
}

/// Does nothing unless another test has told it whom to ask.
#[tokio::test]
async fn asks_in_a_process_of_its_own() {
    if let Ok(url) = std::env::var(URL) {
        let config = OpenAiConfig {
            connect_timeout: Duration::from_secs(5),
            ..config(&url)
        };
        println!("{:?}", OpenAiAdapter::new(config.clone()).unwrap());
        match ask(config).await {
            Ok(answer) => println!("finished: {:?}", answer.finish),
            Err(error) => println!("failed: {} {:?} {error}", error.code, error.retry),
        }
    }
}

fn said(output: &Output) -> String {
    String::from_utf8_lossy(&output.stdout).into_owned()
}

#[tokio::test]
async fn a_certificate_that_the_machine_trusts_is_trusted() {
    let identity = identity();
    let (told, asked) = mpsc::channel();
    let server_identity = Arc::clone(&identity.server);
    let server = Server::raw(move |client| told.send(serve(client, &server_identity)).unwrap());
    let url = format!("https://{}/v1", server.address);
    let output = ask_elsewhere(&url, identity.file.path(), Some("http://127.0.0.1:9")).await;
    let finished = format!("finished: {:?}", Some(FinishReason::Stop));
    assert!(said(&output).contains(&finished), "{output:?}");
    let request = asked.recv().unwrap().unwrap();
    assert!(
        request.contains(KEY),
        "directly, since a proxy is not for this machine"
    );
}

#[tokio::test]
async fn a_certificate_that_nobody_trusts_gets_no_key() {
    let (server_side, trusted) = (identity(), identity());
    let (told, asked) = mpsc::channel();
    let server = Server::raw(move |client| told.send(serve(client, &server_side.server)).unwrap());
    let url = format!("https://{}/v1", server.address);
    let output = ask_elsewhere(&url, trusted.file.path(), None).await;
    let failed = format!("failed: CONNECT {:?}", Retry::Never);
    assert!(said(&output).contains(&failed), "{output:?}");
    assert_eq!(asked.recv().unwrap(), None);
}

#[tokio::test]
async fn a_proxy_of_the_environment_is_used_and_sees_the_host_only() {
    let identity = identity();
    let (told, asked) = mpsc::channel();
    let server_identity = Arc::clone(&identity.server);
    let proxy = Server::raw(move |mut client| {
        let connect = read_request(&mut client).unwrap();
        client.write_all(b"HTTP/1.1 200 OK\r\n\r\n").unwrap();
        told.send((connect, serve(client, &server_identity))).unwrap();
    });
    let through = format!("http://me:secret@{}", proxy.address);
    let output = ask_elsewhere(&format!("https://{HOST}"), identity.file.path(), Some(&through)).await;
    let finished = format!("finished: {:?}", Some(FinishReason::Stop));
    assert!(said(&output).contains(&finished), "{output:?}");
    assert!(
        !said(&output).contains("secret") && !said(&output).contains(KEY),
        "{output:?}"
    );
    let (connect, request) = asked.recv().unwrap();
    assert!(
        connect.starts_with(&format!("CONNECT {HOST}:443 HTTP/1.1\r\n")),
        "{connect}"
    );
    assert!(connect.contains("Proxy-Authorization: Basic "), "{connect}");
    assert!(
        !connect.contains(KEY) && !connect.contains("chat/completions"),
        "{connect}"
    );
    let request = request.unwrap();
    assert!(
        request.starts_with("POST /chat/completions HTTP/1.1\r\n"),
        "{request}"
    );
    assert!(request.contains(KEY));
}

#[tokio::test]
async fn a_proxy_that_refuses_or_is_of_no_use_is_named() {
    let identity = identity();
    let url = format!("https://{HOST}");
    let proxy = Server::raw(|mut client| {
        let _ = read_request(&mut client);
        let _ = client.write_all(b"HTTP/1.1 403 Forbidden\r\n\r\n");
    });
    let through = format!("http://me:secret@{}", proxy.address);
    let output = ask_elsewhere(&url, identity.file.path(), Some(&through)).await;
    assert!(said(&output).contains("failed: CONNECT Later"), "{output:?}");
    let named = format!("cannot connect: proxy {}: ", proxy.address);
    assert!(said(&output).contains(&named), "{output:?}");
    assert!(!said(&output).contains("secret"), "{output:?}");

    let output = ask_elsewhere(&url, identity.file.path(), Some("socks5://me:secret@127.0.0.1:9")).await;
    let told = String::from_utf8_lossy(&output.stderr).into_owned() + &said(&output);
    assert!(!output.status.success(), "{told}");
    assert!(told.contains("Proxy { scheme: \"socks5\""), "{told}");
    assert!(!told.contains("secret"), "{told}");
}

#[tokio::test]
async fn no_trusted_certificate_at_all_is_told_with_its_remedy() {
    let empty = tempfile::NamedTempFile::new().unwrap();
    let output = ask_elsewhere(&format!("https://{HOST}"), empty.path(), None).await;
    let told = String::from_utf8_lossy(&output.stderr).into_owned() + &said(&output);
    assert!(told.contains("NoRoots"), "{told}");
}

#[tokio::test]
async fn tls_to_a_port_that_speaks_none_is_told_and_not_tried_again() {
    let server = Server::raw(|mut client| {
        let _ = client.read(&mut [0; 4096]);
        let _ = client.write_all(b"HTTP/1.1 400 Bad Request\r\n\r\n");
    });
    let identity = identity();
    let output = ask_elsewhere(&format!("https://{}", server.address), identity.file.path(), None).await;
    let failed = format!("failed: CONNECT {:?}", Retry::Never);
    assert!(said(&output).contains(&failed), "{output:?}");
    assert!(said(&output).contains("TLS"), "{output:?}");
}

#[tokio::test]
async fn a_server_that_never_shakes_hands_is_given_up_on() {
    let (told, closed) = mpsc::channel();
    let server = Server::raw(move |mut client| {
        let mut greeting = [0; 16 << 10];
        let _ = client.read(&mut greeting);
        told.send(is_closed(&mut client)).unwrap();
    });
    let identity = identity();
    let output = ask_elsewhere(&format!("https://{}", server.address), identity.file.path(), None).await;
    assert!(said(&output).contains("failed: CONNECT Later"), "{output:?}");
    assert!(said(&output).contains("no connection within 5s"), "{output:?}");
    assert_eq!(closed.recv(), Ok(true));
}
