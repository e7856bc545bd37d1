//! A server that does what a test tells it, byte by byte.

use std::io::{self, Read, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::thread::{self, JoinHandle};
use std::time::Duration;

/// The head of a stream that ends when the connection does.
pub(crate) const STREAM: &str = "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream; charset=utf-8\r\n\r\n";

/// The head of a stream in chunks.
pub(crate) const CHUNKED: &str =
    "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n";

/// No read or write of a server takes longer: what hangs is an error.
const PATIENCE: Duration = Duration::from_secs(20);

/// Serves on loopback, each connection on a thread of its own, until it is dropped.
pub(crate) struct Server {
    pub(crate) address: SocketAddr,
    requests: Arc<Mutex<Vec<String>>>,
    stop: Arc<AtomicBool>,
    accepting: Option<JoinHandle<()>>,
}

impl Server {
    /// Reads a request from each connection, then gives the connection to `serve`.
    pub(crate) fn start(serve: impl Fn(TcpStream) + Send + Sync + 'static) -> Self {
        let requests = Arc::new(Mutex::new(Vec::new()));
        let seen = Arc::clone(&requests);
        let read_first = move |mut client: TcpStream| {
            if let Ok(request) = read_request(&mut client) {
                seen.lock().unwrap().push(request);
                serve(client);
            }
        };
        let mut server = Self::raw(read_first);
        server.requests = requests;
        server
    }

    /// Answers every request with the same bytes, then closes.
    pub(crate) fn says(answer: impl Into<Vec<u8>>) -> Self {
        let answer = answer.into();
        Self::start(move |mut client| {
            let _ = client.write_all(&answer);
        })
    }

    /// Gives each connection to `serve`.
    pub(crate) fn raw(serve: impl Fn(TcpStream) + Send + Sync + 'static) -> Self {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        let address = listener.local_addr().unwrap();
        let stop = Arc::new(AtomicBool::new(false));
        let stopped = Arc::clone(&stop);
        let serve = Arc::new(serve);
        let accepting = thread::spawn(move || {
            let mut serving = Vec::new();
            for client in listener.incoming() {
                if stopped.load(Ordering::SeqCst) {
                    break;
                }
                let client = client.unwrap();
                client.set_nodelay(true).unwrap();
                client.set_read_timeout(Some(PATIENCE)).unwrap();
                client.set_write_timeout(Some(PATIENCE)).unwrap();
                let serve = Arc::clone(&serve);
                serving.push(thread::spawn(move || serve(client)));
            }
            for thread in serving {
                let served = thread.join();
                assert!(served.is_ok() || thread::panicking(), "the server failed");
            }
        });
        Self {
            address,
            requests: Arc::default(),
            stop,
            accepting: Some(accepting),
        }
    }

    /// The base URL.
    pub(crate) fn url(&self) -> String {
        format!("http://{}/v1", self.address)
    }

    /// The requests so far, head and body.
    pub(crate) fn requests(&self) -> Vec<String> {
        self.requests.lock().unwrap().clone()
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::SeqCst);
        let _ = TcpStream::connect(self.address);
        let served = self.accepting.take().map(JoinHandle::join);
        assert!(
            matches!(served, Some(Ok(()))) || thread::panicking(),
            "the server failed"
        );
    }
}

/// A request up to the end of its body.
pub(crate) fn read_request(client: &mut impl Read) -> io::Result<String> {
    let mut request = Vec::new();
    let mut piece = [0; 4096];
    loop {
        let text = String::from_utf8_lossy(&request).into_owned();
        if let Some((head, body)) = text.split_once("\r\n\r\n") {
            let mut lines = head.lines();
            let length = lines.find_map(|line| line.strip_prefix("content-length: "));
            let length: usize = length.map_or(0, |length| length.parse().unwrap());
            if body.len() >= length {
                return Ok(text);
            }
        }
        match client.read(&mut piece)? {
            0 => return Err(io::ErrorKind::UnexpectedEof.into()),
            read => request.extend_from_slice(&piece[..read]),
        }
    }
}

/// One event.
pub(crate) fn event(data: &str) -> String {
    format!("data: {data}\n\n")
}

/// An event with text.
pub(crate) fn text(text: &str) -> String {
    let text = serde_json::Value::from(text);
    event(&format!(
        r#"{{"choices":[{{"index":0,"delta":{{"content":{text}}},"finish_reason":null}}]}}"#
    ))
}

/// The event that ends an answer.
pub(crate) fn stop() -> String {
    event(r#"{"choices":[{"index":0,"delta":{},"finish_reason":"stop"}]}"#)
}

/// Waits for the client to close. Whatever it still sends is a failure, and so is patience running out.
pub(crate) fn is_closed(client: &mut TcpStream) -> bool {
    match client.read(&mut [0; 1]) {
        Ok(read) => read == 0,
        Err(error) => error.kind() == io::ErrorKind::ConnectionReset,
    }
}

/// Writes the same bytes until the client closes, or until far more was taken than it may take. Says how much.
pub(crate) fn flood(client: &mut TcpStream, bytes: &[u8]) -> usize {
    let mut taken = 0;
    while taken < 256 << 20 {
        match client.write(bytes) {
            Ok(written) => taken += written,
            Err(_) => break,
        }
    }
    taken
}
